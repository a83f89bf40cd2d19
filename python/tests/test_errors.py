"""What is raised, and what it carries."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import sprag


@pytest.mark.parametrize(
    "ttl",
    [
        0,
        -1,
        -0.5,
        math.nan,
        math.inf,
        1e300,
        10**30,
        timedelta(seconds=-1),
        timedelta(days=367),
        timedelta.max,
        0.0009,
    ],
)
def test_a_time_out_of_bounds_is_refused_by_name(space: sprag.Space, ttl: Any) -> None:
    with pytest.raises(sprag.BoundsError) as raised:
        space.lock("a", ttl=ttl)
    error = raised.value
    assert isinstance(error, ValueError)
    assert error.argument == "ttl"
    assert (error.minimum, error.maximum) == (0.001, 366 * 86_400)
    assert str(error).startswith("ttl is ")


@pytest.mark.parametrize("wrong", [-1, 0, 10**12])
@pytest.mark.parametrize(
    ("argument", "call", "least", "most"),
    [
        ("permits", lambda space, wrong: space.semaphore("a", wrong), 1, 16_777_215),
        ("permits", lambda space, wrong: space.concurrency("a", wrong), 1, 16_777_215),
        ("permits", lambda space, wrong: space.semaphore("a", 3).acquire(wrong), 1, 3),
        ("share_percent", lambda _, wrong: sprag.open("mem:", share_percent=wrong), 1, 100),
        ("objects", lambda _, wrong: sprag.Caps(objects=wrong), 1, 2**26),
        ("sessions", lambda _, wrong: sprag.Caps(sessions=wrong), 1, 4_095),
        ("waiters", lambda _, wrong: sprag.Caps(waiters=wrong), 1, 65_536),
        ("ttl", lambda space, wrong: space.once("a").begin(wrong), 0.001, 366 * 86_400),
    ],
)
def test_what_is_out_of_bounds_is_told_the_parameter_and_its_bounds(
    space: sprag.Space,
    argument: str,
    call: Callable[[sprag.Space, int], object],
    least: float,
    most: float,
    wrong: int,
) -> None:
    with pytest.raises(sprag.BoundsError, match=f"^{argument} is ") as raised:
        call(space, wrong)
    error = raised.value
    assert (error.argument, error.value) == (argument, wrong)
    assert (error.minimum, error.maximum) == (least, most)


@pytest.mark.parametrize("wrong", [-1, 64, 10**12])
def test_a_partition_is_one_of_the_spaces(space: sprag.Space, wrong: int) -> None:
    with pytest.raises(sprag.BoundsError) as raised:
        space.partition(wrong)
    assert (raised.value.argument, raised.value.maximum) == ("partition", space.partitions - 1)


@pytest.mark.parametrize("name", ["", "x" * 1025, b"", b"x" * 1025])
def test_a_name_has_its_length(space: sprag.Space, name: str | bytes) -> None:
    with pytest.raises(sprag.BoundsError) as raised:
        space.lock(name)
    assert (raised.value.value, raised.value.minimum, raised.value.maximum) == (len(name), 1, 1024)


@pytest.mark.parametrize("wrong", [None, 1, ["a"], bytearray(b"a")])
def test_other_types_than_names_are_type_errors(space: sprag.Space, wrong: Any) -> None:
    with pytest.raises(TypeError, match="name must be str or bytes, not "):
        space.lock(wrong)
    with pytest.raises(TypeError, match="key must be str or bytes, not "):
        space.limiter("api", "1/s").hit(wrong)


@pytest.mark.parametrize("wrong", ["1", None, [1]])
def test_other_types_than_times_are_type_errors(space: sprag.Space, wrong: Any) -> None:
    with space.lock("a") as hold, pytest.raises(TypeError):
        hold.extend(wrong)


def test_what_cannot_be_called_back_is_refused_before_there_is_a_loss(space: sprag.Space) -> None:
    wrong: Any = "on_lost"
    for make in (space.lock, space.owner().lock, space.concurrency("a", 1).key):
        with pytest.raises(TypeError, match="on_lost must be a function of the hold, not str"):
            make("a", on_lost=wrong)
    with space.lock("a") as hold, pytest.raises(TypeError, match="on_lost must be a function"):
        hold.keep_alive(on_lost=wrong)


@pytest.mark.parametrize("cost", [-1, 2**64, 10**40])
def test_a_cost_out_of_bounds_is_refused(space: sprag.Space, cost: int) -> None:
    with pytest.raises(sprag.BoundsError) as raised:
        space.limiter("api", "1/s").hit("a", cost)
    assert raised.value.argument == "cost"
    assert raised.value.value == cost
    assert (raised.value.minimum, raised.value.maximum) == (0, 2**64 - 1)


def test_a_number_that_python_does_not_write_is_refused_all_the_same(space: sprag.Space) -> None:
    with pytest.raises(sprag.BoundsError, match="^cost is a number of too many digits; ") as raised:
        space.limiter("api", "1/s").hit("a", 10**5000)
    assert raised.value.value == 10**5000


@pytest.mark.parametrize("below_or_above", [-1, 1])
def test_bounds_are_those_that_hold(space: sprag.Space, below_or_above: int) -> None:
    def out_of(minimum: int, maximum: int) -> int:
        return minimum - 1 if below_or_above < 0 else maximum + 1

    last, most = space.partitions - 1, 2**24 - 1
    for argument, minimum, maximum, call in (
        ("partition", 0, last, space.partition),
        ("partition", 0, last, space.owner().partition),
        ("permits", 1, most, lambda number: space.semaphore("a", number)),
        ("permits", 1, most, lambda number: space.concurrency("a", number)),
        ("permits", 1, most, space.semaphore("a", most).acquire),
        ("share_percent", 1, 100, lambda number: sprag.open("mem:", share_percent=number)),
    ):
        with pytest.raises(sprag.BoundsError) as raised:
            call(out_of(minimum, maximum))
        error = raised.value
        assert (error.argument, error.minimum, error.maximum) == (argument, minimum, maximum)
        call(maximum)


def test_another_limit_is_an_error_that_tells_both(space: sprag.Space) -> None:
    space.limiter("api", "100/minute")
    with pytest.raises(sprag.LimitDiffersError, match="update=True") as raised:
        space.limiter("api", "50/minute")
    assert (raised.value.existing, raised.value.asked) == ("100/minute", "50/minute")
    assert space.limiter("api", "50/minute", update=True).limit == "50/minute"


@pytest.mark.parametrize("limit", ["", "100", "x/minute", "1/parsec", "-1/s"])
def test_what_is_no_limit_is_refused(space: sprag.Space, limit: str) -> None:
    with pytest.raises(sprag.LimitError):
        space.limiter("api", limit)


@pytest.mark.parametrize("url", ["", "mem", "http://x", "shm:", "shm:a/b"])
def test_what_is_no_url_of_a_space_is_refused(url: str) -> None:
    with pytest.raises(sprag.PlaceError):
        sprag.open(url)


def test_errors_cross_processes_whole(space: sprag.Space) -> None:
    with pytest.raises(sprag.BoundsError) as raised:
        space.lock("a", ttl=-1)
    copy = pickle.loads(pickle.dumps(raised.value))
    assert type(copy) is sprag.BoundsError
    assert str(copy) == str(raised.value)
    assert copy.__dict__ == raised.value.__dict__


def test_a_closed_space_says_so() -> None:
    space = sprag.open("mem:")
    assert not space.closed
    space.close()
    space.close()
    assert space.closed
    with pytest.raises(sprag.ClosedError):
        space.lock("a")
