"""What each process opens for itself: across forks, and when the space goes away."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import sprag
from sprag import web
from sprag.web._lazy import PerProcess

CHILD_SECONDS_MAX = 60


def in_child(work: Callable[[], str]) -> str:
    """What a forked child says."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            told = work()
        except BaseException as error:
            told = repr(error)
        os.write(writing, told.encode())
        # As a worker that is killed: nothing is tidied up.
        os._exit(0)
    os.close(writing)
    # A child that waits for ever is ended, and has said nothing.
    select.select([reading], [], [], CHILD_SECONDS_MAX)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        return pipe.read()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"shm:{tmp_path}/region"


def test_a_forked_child_opens_it_for_itself_and_shares_the_limit(url: str) -> None:
    limiter = web.LazyLimiter(url, "a", "3/hour")
    assert limiter.hit("ann")
    assert in_child(lambda: str(limiter.hit("ann").remaining)) == "1"
    assert limiter.hit("ann").remaining == 0
    assert in_child(lambda: str(limiter.hit("ann").allowed)) == "False"


def test_what_was_not_used_before_the_fork_is_opened_after_it(url: str, tmp_path: Path) -> None:
    limiter = web.LazyLimiter(url, "a", "2/hour")
    assert not (tmp_path / "region").exists()
    assert [in_child(lambda: str(limiter.hit("ann").allowed)) for _ in range(3)] == [
        "True",
        "True",
        "False",
    ]


def test_a_fork_while_another_thread_opens_it_leaves_the_child_free(url: str) -> None:
    is_opening, may_go_on = threading.Event(), threading.Event()
    parent = os.getpid()

    def open_space() -> sprag.Space:
        if os.getpid() == parent:
            is_opening.set()
            assert may_go_on.wait(60)
        return sprag.open(url)

    limiter = web.LazyLimiter(open_space, "a", "3/hour")
    thread = threading.Thread(target=limiter.hit, args=("ann",))
    thread.start()
    assert is_opening.wait(60)
    assert in_child(lambda: str(limiter.hit("ann").remaining)) == "2"
    may_go_on.set()
    thread.join()
    assert limiter.hit("ann", 0).remaining == 1


def test_a_space_that_was_given_open_fails_in_a_child(url: str) -> None:
    with sprag.open(url) as space:
        limiter = web.LazyLimiter(space, "a", "3/hour")
        assert limiter.hit("ann")
        assert in_child(lambda: str(limiter.hit("ann"))).startswith("ForkedError(")
        assert limiter.hit("ann").remaining == 1


def test_many_threads_open_it_once(url: str) -> None:
    opened: list[int] = []

    def open_space() -> sprag.Space:
        opened.append(1)
        return sprag.open(url)

    limiter = web.LazyLimiter(open_space, "a", "1000/hour")
    threads = [threading.Thread(target=limiter.hit, args=("ann",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 1
    assert limiter.hit("ann", 0).remaining == 992


def test_forgetting_does_not_wait_for_who_opens_it_anew() -> None:
    is_opening, may_go_on = threading.Event(), threading.Event()
    made: list[object] = []

    def make() -> object:
        if made:
            is_opening.set()
            assert may_go_on.wait(60)
        made.append(object())
        return made[-1]

    each = PerProcess(make)
    old = each.get()
    each.forget(old)
    opening = threading.Thread(target=each.get)
    opening.start()
    assert is_opening.wait(60)
    forgetting = threading.Thread(target=each.forget, args=(old,))
    forgetting.start()
    forgetting.join(60)
    assert not forgetting.is_alive()
    may_go_on.set()
    opening.join()
    assert each.get() is made[1], "what was made anew is not forgotten"


def test_what_failed_is_not_tried_at_each_call() -> None:
    tried: list[int] = []

    def open_space() -> sprag.Space:
        tried.append(1)
        raise sprag.PlaceError("nowhere")

    limiter = web.LazyLimiter(open_space, "a", "1/hour")
    for _ in range(10):
        with pytest.raises(sprag.PlaceError, match="nowhere"):
            limiter.hit("ann")
    assert len(tried) < 10


def test_a_lazy_limiter_does_what_a_limiter_does(space: sprag.Space) -> None:
    limiter = web.LazyLimiter(space, "a", "2/hour", burst=1)
    assert limiter.limit == "2/hour;burst=1" and limiter.name == "a"
    assert repr(limiter) == "<sprag.web.LazyLimiter 'a' 2/hour;burst=1>"
    decision = limiter.hit("ann")
    assert not limiter.test("ann")
    assert limiter.refund(decision)
    assert limiter.reserve("ann", 1, 3600)
    with pytest.raises(sprag.LimitError):
        web.LazyLimiter("mem:", "a", "2")
