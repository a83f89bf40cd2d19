"""What the tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sprag


@pytest.fixture
def space() -> Iterator[sprag.Space]:
    with sprag.open("mem:") as space:
        yield space


@pytest.fixture
def clock() -> sprag.ManualClock:
    return sprag.ManualClock()


@pytest.fixture
def clocked(clock: sprag.ManualClock) -> Iterator[sprag.Space]:
    """A space that goes by `clock`."""
    with sprag.open("mem:", clock=clock) as space:
        yield space
