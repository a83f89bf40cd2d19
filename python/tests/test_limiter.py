"""Limiters and their decisions."""

from __future__ import annotations

from typing import Literal

import pytest

import sprag


def test_a_limiter_admits_its_burst_and_then_its_rate(
    clock: sprag.ManualClock, clocked: sprag.Space
) -> None:
    api = clocked.limiter("api", "1/second", burst=3)
    assert [bool(api.hit("ann")) for _ in range(4)] == [True, True, True, False]
    refused = api.hit("ann")
    assert not refused.allowed
    assert (refused.limit, refused.remaining) == (3, 0)
    assert refused.retry_after == 1.0
    assert refused.reset_after == 3.0
    assert refused.act_after == 0.0
    clock.advance(1)
    allowed = api.hit("ann")
    assert allowed and allowed.retry_after == 0.0
    assert api.hit(b"ann").remaining == 0, "the same key"


def test_what_can_never_be_had_has_no_time_to_retry(space: sprag.Space) -> None:
    api = space.limiter("api", "1/second")
    assert api.hit("ann", cost=2).retry_after is None
    assert api.hit("ann", cost=1)


def test_what_was_taken_is_given_back_once(clocked: sprag.Space) -> None:
    mail = clocked.limiter("mail", "10/hour")
    batch = mail.hit("ann", cost=7)
    assert mail.refund(batch) == pytest.approx(7)
    assert batch.allowed and batch.remaining == 3, "it still says what it said"
    assert mail.refund(batch) is None
    assert mail.hit("ann", cost=0).remaining == 10


def test_a_place_is_reserved_ahead(clocked: sprag.Space) -> None:
    mail = clocked.limiter("mail", "10/second", burst=1)
    assert mail.reserve("ann", 1, wait_max=0).act_after == 0
    later = mail.reserve("ann", 1, wait_max=1)
    assert later and later.act_after == 0.1


def test_a_key_has_a_limit_of_its_own(space: sprag.Space) -> None:
    api = space.limiter("api", "2/hour")
    api.set_override("bigcorp", "1000/hour")
    assert api.override_of("bigcorp") == "1000/hour"
    assert api.hit("bigcorp").limit == 1000
    assert api.hit("ann").limit == 2
    assert api.clear_override("bigcorp")
    assert api.override_of("bigcorp") is None


@pytest.mark.parametrize("window", ["fixed", "sliding"])
def test_windows_are_chosen_by_name(space: sprag.Space, window: Literal["fixed", "sliding"]) -> None:
    api = space.limiter("api", "2/hour", window=window)
    assert api.limit == f"2/hour;window={window}"
    with pytest.raises(ValueError):
        space.limiter("other", "2/hour", window="tumbling")  # type: ignore[arg-type]
