"""Locks by `with` and by call."""

from __future__ import annotations

import gc
import threading
from datetime import timedelta

import pytest

import sprag


def test_a_lock_is_held_in_its_block_and_free_after(space: sprag.Space) -> None:
    lock = space.lock("a", ttl=10)
    with lock as hold:
        assert hold.token > 0
        assert hold.is_valid() and hold.is_held() and not hold.lost
        assert 0 < hold.lease_left <= 10
        assert lock.locked() and lock.owned()
        assert lock.acquire(blocking=False) is None
    assert not lock.locked() and not lock.owned()
    assert not hold.is_valid() and not hold.lost


def test_tokens_rise_by_one(space: sprag.Space) -> None:
    lock = space.lock(b"\xff\x00")
    first = lock.acquire()
    token = first.token
    first.release()
    with lock as second:
        assert second.token == token + 1


def test_a_hold_is_a_block_of_its_own(space: sprag.Space) -> None:
    lock = space.lock("a")
    hold = lock.acquire()
    with hold as same:
        assert same is hold
    assert not lock.locked()
    with pytest.raises(sprag.ReleasedError) as raised:
        hold.release()
    assert raised.value.token == hold.token


def test_a_hold_that_is_dropped_releases_the_lock(space: sprag.Space) -> None:
    lock = space.lock("a")
    hold = lock.acquire()
    del hold
    gc.collect()
    assert not lock.locked()


def test_a_wait_ends_with_its_timeout(space: sprag.Space) -> None:
    lock = space.lock("a")
    with lock:
        assert lock.acquire(timeout=0) is None
        assert lock.acquire(timeout=0.001) is None
        assert lock.acquire(timeout=timedelta(milliseconds=1)) is None
    with pytest.raises(ValueError):
        lock.acquire(blocking=False, timeout=1)


def test_a_waiting_thread_lets_others_run_and_is_served(space: sprag.Space) -> None:
    lock = space.lock("a")
    tokens = []

    def work() -> None:
        with lock as hold:
            tokens.append(hold.token)

    with lock as mine:
        thread = threading.Thread(target=work)
        thread.start()
        while space.lock("a").acquire(timeout=0) is None and not thread.is_alive():
            pass
    thread.join()
    assert tokens == [mine.token + 1]


def test_a_lost_hold_is_told_at_the_end_of_its_block(
    clock: sprag.ManualClock, clocked: sprag.Space
) -> None:
    lock = clocked.lock("a", ttl=3)
    with pytest.raises(sprag.LostError) as raised:
        with lock as hold:
            clock.advance(3)
            assert not hold.is_valid() and hold.lost
            with lock as later:
                assert later.token == hold.token + 1
    assert raised.value.token == hold.token
    assert raised.value.name == "a"
    assert hold.lost


def test_what_the_body_raises_is_not_hidden_by_a_loss(
    clock: sprag.ManualClock, clocked: sprag.Space
) -> None:
    lock = clocked.lock("a", ttl=3)
    with pytest.raises(KeyError):
        with lock:
            clock.advance(3)
            assert lock.acquire(blocking=False) is not None
            raise KeyError("mine")


def test_each_thread_leaves_with_the_hold_it_entered(
    clock: sprag.ManualClock, clocked: sprag.Space
) -> None:
    """One lock object for two threads: the first one's hold is lost, and the other enters meanwhile."""
    lock = clocked.lock("a", ttl=3)
    entered, left = threading.Event(), threading.Event()
    lost: list[BaseException] = []

    def first() -> None:
        try:
            with lock:
                entered.set()
                assert left.wait(60)
        except sprag.LostError as error:
            lost.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    assert entered.wait(60)
    clock.advance(3)
    with lock as mine:
        left.set()
        thread.join()
        assert len(lost) == 1
        assert mine.is_held()


def test_shared_holds_are_there_together(space: sprag.Space) -> None:
    readers = space.lock("a", shared=True)
    with readers as one, readers as other:
        assert one.is_shared and one.token != other.token
        assert space.lock("a").acquire(blocking=False) is None


def test_a_hold_goes_from_hand_to_hand_by_its_token(space: sprag.Space) -> None:
    lock = space.lock("deploy")
    hold = lock.acquire()
    token = hold.detach()
    assert lock.locked()
    lock.renew_token(token)
    adopted = lock.adopt_token(token)
    assert adopted.token == token
    adopted.release()
    with pytest.raises(sprag.LostError):
        lock.release_token(token)


def test_a_hold_is_upgraded_and_downgraded(space: sprag.Space) -> None:
    shared = space.lock("a", shared=True)
    mine, other = shared.acquire(), shared.acquire()
    token = mine.token
    assert not mine.upgrade(timeout=0)
    other.release()
    assert mine.upgrade()
    assert mine.token > token and not mine.is_shared
    mine.downgrade()
    assert mine.is_shared


def test_a_lease_is_renewed_and_extended(clock: sprag.ManualClock, clocked: sprag.Space) -> None:
    with clocked.lock("a", ttl=3) as hold:
        clock.advance(2)
        hold.renew()
        assert hold.lease_left == 3
        hold.extend(timedelta(minutes=1))
        assert hold.lease_left == 60
