"""Every other noun: semaphores, owners, several locks, counters, onces, fences, joint limits, inspection."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import greenlet  # type: ignore[import-untyped]
import pytest

import sprag
from sprag import _errors


def test_a_semaphore_has_so_many_permits(space: sprag.Space) -> None:
    connections = space.semaphore("connections", 3)
    two = connections.acquire(2)
    with connections as one:
        assert connections.acquire(blocking=False) is None
        info = connections.peek()
        assert (info.permits, info.used, info.remaining, info.holders) == (3, 3, 0, 2)
        assert sorted(hold.permits for hold in info.holds) == [1, 2]
        assert one.is_valid()
    two.release()
    assert connections.peek().remaining == 3
    with pytest.raises(sprag.BoundsError):
        connections.acquire(4)
    with connections, pytest.raises(sprag.LimitDiffersError) as raised:
        space.semaphore("connections", 4).acquire()
    assert (raised.value.existing, raised.value.asked) == (3, 4)


def test_greenlets_and_tasks_of_one_thread_leave_with_their_own_permits(space: sprag.Space) -> None:
    """One semaphore object, entered by several in one thread, and left by the first one first."""
    semaphore = space.semaphore("a", 9)
    held: list[bool] = []

    def work() -> None:
        with semaphore as permit:
            greenlet.getcurrent().parent.switch()
            held.append(permit.is_held())

    workers = [greenlet.greenlet(work) for _ in range(3)]
    for _ in ("enter", "leave"):
        for worker in workers:
            worker.switch()
    assert held == [True] * 3

    async def wait() -> None:
        with semaphore as permit:
            await asyncio.sleep(0)
            held.append(permit.is_held())

    async def main() -> None:
        await asyncio.gather(*(wait() for _ in range(3)))

    asyncio.run(main())
    assert held == [True] * 6


def test_a_concurrency_limiter_has_permits_for_each_key(space: sprag.Space) -> None:
    uploads = space.concurrency("uploads", 1)
    assert uploads.permits == 1
    with uploads.key("ann"), uploads.key("bob"):
        assert uploads.key("ann").acquire(blocking=False) is None
        with pytest.raises(sprag.LimitDiffersError):
            space.concurrency("uploads", 2)
        space.concurrency("uploads", 2, update=True)
        with uploads.key("ann"):
            (info,) = space.concurrency_limiters("up")
            assert {key.name: key.used for key in info.keys} == {"ann": 2, "bob": 1}


def test_several_locks_are_taken_together(space: sprag.Space) -> None:
    accounts = space.locks(["account/17", b"account/4"], ttl=5)
    with accounts as hold:
        assert len(hold.tokens) == 2
        assert not hasattr(hold, "token")
        assert space.lock("account/4").locked() and accounts.locked()
    assert not accounts.locked()
    with space.lock("account/4"):
        assert accounts.acquire(timeout=0.001) is None
        assert not space.lock("account/17").locked(), "none is taken"
    with pytest.raises(TypeError):
        space.locks("account")


def test_coarse_locks_exclude_what_is_beneath(space: sprag.Space) -> None:
    key = space.lock("orders/42")
    with space.partition(space.partition_of("orders/42")) as hold:
        assert hold.token > 0
        assert key.acquire(blocking=False) is None
        assert len(space.inspect_coarse()) == 1
    with key:
        assert space.table().acquire(blocking=False) is None
    with space.table():
        assert len(space.inspect_coarse()) == space.partitions + 1
    with pytest.raises(sprag.BoundsError):
        space.partition(space.partitions)


def test_an_owner_enters_again(space: sprag.Space) -> None:
    owner = space.owner()
    with owner.lock("accounts") as outer:
        with owner.lock("accounts") as inner:
            assert inner.token == outer.token
        assert outer.is_held() and space.lock("accounts").locked()
    assert not space.lock("accounts").locked()


def test_owners_that_wait_in_a_circle_are_told(space: sprag.Space) -> None:
    mine, other = space.owner(), space.owner()
    found: list[sprag.DeadlockError] = []
    both = threading.Barrier(2)

    def cross(owner: sprag.Owner, first: str, second: str) -> None:
        with owner.lock(first):
            both.wait()
            try:
                with owner.lock(second):
                    pass
            except sprag.DeadlockError as error:
                found.append(error)

    thread = threading.Thread(target=cross, args=(other, "b", "a"))
    thread.start()
    cross(mine, "a", "b")
    thread.join()
    (error,) = found
    assert {name for name, _ in error.waits} == {"a", "b"}


def test_an_owner_of_coarse_locks_and_several_finds_deadlocks_too(space: sprag.Space) -> None:
    owner = space.owner()
    with owner.locks(["a", "b"]) as hold:
        assert len(hold.tokens) == 2
        with pytest.raises(sprag.DeadlockError):
            owner.table().acquire()
    with owner.table(), pytest.raises(sprag.DeadlockError):
        owner.lock("a").acquire()


def test_who_shares_as_an_owner_must_upgrade(space: sprag.Space) -> None:
    owner = space.owner()
    with owner.lock("a", shared=True) as hold:
        with pytest.raises(sprag.OwnerSharesError):
            owner.lock("a").acquire()
        assert hold.upgrade()
        with owner.lock("a"):
            pass


def test_two_upgrades_conflict(space: sprag.Space) -> None:
    shared = space.lock("a", shared=True)
    mine, other = shared.acquire(), shared.acquire()
    waits = threading.Thread(target=mine.upgrade)
    waits.start()
    while not space.inspect("a")[0].waiters:
        pass
    with pytest.raises(sprag.UpgradeConflictError):
        other.upgrade()
    assert other.is_held()
    other.release()
    waits.join()
    assert not mine.is_shared


def test_a_counter_counts(space: sprag.Space) -> None:
    stock = space.counter("stock")
    assert stock.add(10) == 10
    assert stock.add() == 11
    assert stock.add_within(-7, minimum=0) == 4
    assert stock.add_within(-7, minimum=0) is None, "no overdraft"
    assert not stock.compare_exchange(5, 6)
    assert stock.compare_exchange(4, 6)
    assert stock.swap(2**63 - 1) == 6
    with pytest.raises(sprag.CounterOverflowError) as raised:
        stock.add(1)
    assert raised.value.number == 2**63 - 1
    assert (raised.value.value, raised.value.maximum) == (1, 0)
    assert space.counters("st") == [sprag.CounterInfo("stock", 2**63 - 1)]
    with pytest.raises(sprag.BoundsError):
        stock.add(2**63)
    with pytest.raises(sprag.BoundsError):
        stock.add_within(1, minimum=2, maximum=1)


def test_a_striped_counter_is_the_same_counter(space: sprag.Space) -> None:
    hits = space.counter("hits").striped()

    def add() -> None:
        for _ in range(1_000):
            hits.add()

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert hits.get() == space.counter("hits").get() == 4_000
    assert hits.add_within(1, maximum=4_001)
    assert not hits.add_within(1, maximum=4_001)


def test_a_once_runs_once(space: sprag.Space) -> None:
    once = space.once("invoice-42")
    assert once.status() is None
    with once.begin(ttl=60) as attempt:
        assert isinstance(attempt, sprag.Attempt)
        assert attempt.is_held() and not attempt.is_after_unfinished
        assert 0 < attempt.deadline_left <= 60
        with once.begin(60) as other:
            assert isinstance(other, sprag.InProgress)
        attempt.finish(b"receipt 4711", keep_for=3600)
    begun = once.begin(60)
    assert isinstance(begun, sprag.Done) and begun.result == b"receipt 4711"
    (info,) = space.onces()
    assert isinstance(info.status, sprag.Done)
    assert info.status.kept_left is not None and info.status.kept_left > 0


def test_an_attempt_that_fails_counts_as_unfinished(space: sprag.Space) -> None:
    once = space.once("import")
    with pytest.raises(KeyError), once.begin(60):
        raise KeyError
    assert isinstance(once.status(), sprag.Unfinished)
    attempt = once.begin(60)
    assert isinstance(attempt, sprag.Attempt)
    assert attempt.is_after_unfinished
    attempt.abandon()
    with pytest.raises(sprag.ReleasedError):
        attempt.abandon()
    with pytest.raises(sprag.UnfinishedError), once.begin(60):
        pass


def test_an_attempt_goes_on_by_its_token(space: sprag.Space) -> None:
    once = space.once("import")
    attempt = once.begin(60)
    assert isinstance(attempt, sprag.Attempt)
    token = attempt.detach()
    once.extend_token(token, 120)
    once.finish_token(token, b"1,024 rows", 60)
    assert isinstance(once.status(), sprag.Done)
    with pytest.raises(sprag.LostError) as raised:
        once.abandon_token(token)
    assert raised.value.name == "import"


def test_an_attempt_that_is_late_stores_nothing(
    clock: sprag.ManualClock, clocked: sprag.Space
) -> None:
    attempt = clocked.once("a").begin(1)
    assert isinstance(attempt, sprag.Attempt)
    clock.advance(1)
    assert not attempt.is_valid()
    with pytest.raises(sprag.LostError):
        attempt.finish(b"", keep_for=1)


def test_a_result_that_is_too_long_leaves_the_attempt_as_it_is(space: sprag.Space) -> None:
    attempt = space.once("a").begin(60)
    assert isinstance(attempt, sprag.Attempt)
    with pytest.raises(sprag.BoundsError):
        attempt.finish(b"x" * 100_000, keep_for=60)
    attempt.finish(b"short", keep_for=60)


@pytest.mark.parametrize("name", ["LostError", "ReleasedError"])
def test_an_attempt_can_be_asked_while_it_raises(
    monkeypatch: pytest.MonkeyPatch, clock: sprag.ManualClock, clocked: sprag.Space, name: str
) -> None:
    """An error is made by code of Python's, in the midst of which other threads may run and ask the attempt."""
    attempt = clocked.once("a").begin(1)
    assert isinstance(attempt, sprag.Attempt)
    asked: list[bool] = []
    error: Callable[..., object] = getattr(_errors, name)

    def ask(*args: object, **details: object) -> object:
        thread = threading.Thread(target=lambda: asked.append(attempt.is_held()))
        thread.start()
        thread.join()
        return error(*args, **details)

    monkeypatch.setattr(_errors, name, ask)
    if name == "ReleasedError":
        attempt.abandon()
    else:
        clock.advance(1)
    with pytest.raises((sprag.LostError, sprag.ReleasedError)):
        attempt.extend(1)
    with pytest.raises((sprag.LostError, sprag.ReleasedError)):
        attempt.finish(b"", keep_for=1)
    assert asked == [False, False]


def test_a_fence_rejects_older_tokens(space: sprag.Space) -> None:
    fence = space.fence("orders")
    fence.admit(7)
    fence.admit(7)
    with pytest.raises(sprag.StaleError) as raised:
        fence.admit_once(7)
    assert (raised.value.fence, raised.value.token, raised.value.highest) == ("orders", 7, 7)
    fence.admit_once(8)
    assert fence.highest == 8


def test_joint_limits_are_decided_together(clocked: sprag.Space) -> None:
    api = clocked.joint_limiter("api", ["2/second", "100/hour"])
    assert api.limits == ["2/second", "100/hour"]
    assert api.hit("ann") and api.hit("ann")
    third = api.hit("ann")
    assert not third and third.refused_by == 0
    assert [each.remaining for each in third.each] == [0, 98]
    assert third.retry_after == 0.5 and third.retry_after_for(2) == 1.0
    del api
    assert third.remaining == 0, "it keeps its limiter"


def test_several_limiters_are_all_charged_or_none(clocked: sprag.Space) -> None:
    per_user = clocked.limiter("per user", "2/hour")
    everybody = clocked.limiter("everybody", "100/hour")
    for _ in range(2):
        assert clocked.check_all([(per_user, "ann"), (everybody, "all", 1)])
    decisions = clocked.check_all([(per_user, "ann", 1), (everybody, "all", 1)])
    assert not decisions and decisions.refused == [0]
    assert decisions.retry_after == 1800
    assert [decision.allowed for decision in decisions] == [False, True]
    assert everybody.test("all").remaining == 98
    with pytest.raises(TypeError):
        clocked.check_all([("per user", "ann")])  # type: ignore[list-item]
    with sprag.open("mem:") as other, pytest.raises(sprag.OtherSpaceError):
        other.check_all([(per_user, "ann")])


def test_many_keys_are_hit_in_one_call(clocked: sprag.Space) -> None:
    api = clocked.limiter("api", "2/hour")
    decisions = api.hit_many(["ann", b"bob", "ann", "ann"])
    assert len(decisions) == 4 and not decisions.all_allowed
    assert decisions.refused == [3]
    assert decisions[-1].remaining == 0 and decisions[1].remaining == 1
    assert decisions[0] is decisions[0]
    assert [decision.allowed for decision in decisions] == [True, True, True, False]
    with pytest.raises(IndexError):
        decisions[4]
    assert api.hit_many(key for key in ("cat", "dog"))
    assert api.hit_many([])
    with pytest.raises(TypeError):
        api.hit_many("ann")
    with pytest.raises(sprag.BoundsError):
        api.hit_many(["eve", ""])
    assert api.test("eve").remaining == 2


def test_a_test_changes_nothing_and_tells_of_its_cost(clocked: sprag.Space) -> None:
    api = clocked.limiter("api", "2/second")
    assert api.test("ann", cost=2) and api.test("ann", cost=2)
    assert not api.test("ann", cost=3) and api.test("ann", cost=3).retry_after is None
    api.hit("ann")
    look = api.test("ann", cost=2)
    assert not look and look.retry_after == 0.5 and look.remaining == 1


def test_who_holds_what_can_be_told(space: sprag.Space) -> None:
    with space.lock("a/1") as hold, space.lock("b"):
        (info,) = space.inspect("a/")
        assert (info.name, info.token, info.is_held) == ("a/1", hold.token, True)
        assert info.holds[0].token == hold.token
        assert len(space.inspect()) == 2
        assert space.break_lock("a/1") == hold.token
        assert hold.lost
        (broken,) = space.breaks()
        assert (broken.token, broken.name) == (hold.token, "a/1")
        assert broken.at > 1_700_000_000
        with pytest.raises(sprag.LostError):
            hold.release()
    assert space.break_lock("a/1") is None


def test_metrics_tell_what_was_done_and_how_full_the_region_is(space: sprag.Space) -> None:
    before = space.metrics()
    assert before.checks == sprag.CheckCounts(allowed=0, refused=0, overflow=0)
    api = space.limiter("api", "2/hour")
    assert [bool(api.hit("ann")) for _ in range(3)] == [True, True, False]
    with space.lock("a", ttl=10) as hold:
        hold.renew()
        assert space.lock("a").acquire(blocking=False) is None
    metrics = space.metrics()
    assert metrics.checks == sprag.CheckCounts(allowed=2, refused=1, overflow=0)
    assert (metrics.acquires.at_once, metrics.acquires.busy, metrics.renewals) == (1, 1, 1)
    assert metrics.waits.sum == 0 and set(metrics.waits.buckets) == {0}
    assert (metrics.region.limiter_keys.used, metrics.region.sessions.used) == (1, 1)
    assert metrics.region.objects.cap == 65_536


def test_what_is_there_is_found_as_it_is(space: sprag.Space) -> None:
    assert space.find_limiter("api") is None
    assert space.find_concurrency("uploads") is None
    space.limiter("api", "2/hour")
    space.concurrency("uploads", 3)
    limiter, concurrency = space.find_limiter("api"), space.find_concurrency("uploads")
    assert limiter is not None and limiter.limit == "2/hour"
    assert concurrency is not None and concurrency.permits == 3


@pytest.mark.parametrize("token", [-1, 2**64])
def test_tokens_out_of_bounds_are_refused(space: sprag.Space, token: int) -> None:
    for call in (
        space.lock("a").release_token,
        space.semaphore("s", 1).adopt_token,
        space.fence("f").admit,
        space.once("o").abandon_token,
    ):
        with pytest.raises(sprag.BoundsError):
            call(token)


def test_limiters_and_overrides_can_be_listed(space: sprag.Space) -> None:
    api = space.limiter(b"\xffapi", "2/hour")
    api.hit("ann")
    api.set_override("bob", "3/hour")
    assert space.limiters() == [sprag.LimiterInfo(b"\xffapi", "2/hour", 1)]
    assert space.overrides(b"\xff") == [sprag.OverrideInfo(b"\xffapi", "bob", "3/hour")]
    space.joint_limiter("both", ["1/s", "2/m"])
    (joint,) = space.joint_limiters()
    assert joint.limits == ["1/second", "2/minute"]


def test_a_space_without_a_session_only_looks(tmp_path: object) -> None:
    url = f"shm:{tmp_path}/region"
    with sprag.open(url) as space, space.lock("a") as hold:
        with sprag.open(url, session=False, create=False) as looks:
            assert looks.inspect()[0].token == hold.token
            with pytest.raises(sprag.NoSessionError):
                looks.lock("b").acquire()


def test_what_a_region_has_room_for_can_be_chosen() -> None:
    with sprag.open("mem:", caps=sprag.Caps(limiter_keys=1, objects=64)) as space:
        assert space.limiter("a", "1/s").hit("x" * 20)
    with pytest.raises(sprag.BoundsError):
        sprag.Caps(objects=0)
    with pytest.raises(sprag.PlaceError):
        sprag.open("shm:/nowhere/at/all", create=False)
