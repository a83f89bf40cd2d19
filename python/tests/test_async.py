"""Locks and semaphores under asyncio."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
import weakref
from collections.abc import Callable

import pytest

import sprag


async def until(condition: Callable[[], object]) -> None:
    """Lets the loop run until it holds."""
    while not condition():
        await asyncio.sleep(0)


def waiters(space: sprag.Space, name: str = "a") -> int:
    return sum(info.waiters for info in space.inspect(name))


def test_what_is_free_is_had_without_a_trip_through_the_loop(space: sprag.Space) -> None:
    """Driven by hand: nothing is ever yielded to a loop, and none runs."""

    async def work() -> int:
        async with space.lock("a") as hold:
            assert space.lock("a").locked()
            token = hold.token
        other = await space.semaphore("s", 2).acquire_async(2)
        other.release()
        return token

    with pytest.raises(StopIteration) as stopped:
        work().send(None)
    assert stopped.value.value > 0
    assert not space.lock("a").locked()


def test_tasks_take_turns_in_order(space: sprag.Space) -> None:
    async def main() -> None:
        lock = space.lock("a")
        order: list[int] = []

        async def work(number: int) -> None:
            async with lock as hold:
                assert hold.is_held()
                await asyncio.sleep(0)
                order.append(number)

        await asyncio.gather(*(work(number) for number in range(20)))
        assert order == list(range(20))
        assert not lock.locked()

    asyncio.run(main())


def test_a_wait_does_not_block_the_loop_and_is_woken_by_another_thread(space: sprag.Space) -> None:
    async def main() -> None:
        lock = space.lock("a")
        mine = lock.acquire()
        task = asyncio.create_task(lock.acquire_async())
        await until(lambda: waiters(space) == 1)
        assert not task.done()
        threading.Thread(target=mine.release).start()
        hold = await task
        assert hold.token == mine.token + 1

    asyncio.run(main())


def test_many_waits_cost_no_threads(space: sprag.Space) -> None:
    async def main() -> None:
        lock = space.lock("a")
        entered = 0

        async def work() -> None:
            nonlocal entered
            async with lock:
                entered += 1

        before = threading.active_count()
        async with lock:
            tasks = [asyncio.create_task(work()) for _ in range(300)]
            await until(lambda: waiters(space) == 300)
            assert threading.active_count() == before
            with open("/proc/self/status") as status:
                (threads,) = [line for line in status if line.startswith("Threads:")]
            assert int(threads.split()[1]) <= before + 2
        await asyncio.gather(*tasks)
        assert entered == 300

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["lock", "shared", "several", "table", "semaphore", "owner"])
def test_every_kind_waits_and_is_cancelled_without_a_trace(space: sprag.Space, kind: str) -> None:
    async def main() -> None:
        semaphore = space.semaphore("s", 1)
        kinds: dict[str, tuple[sprag.Lock | sprag.Semaphore, sprag.Lock | sprag.Semaphore]] = {
            "lock": (space.lock("a"), space.lock("a")),
            "shared": (space.lock("a"), space.lock("a", shared=True)),
            "several": (space.lock("a"), space.locks(["b", "a"])),
            "table": (space.lock("a"), space.table()),
            "semaphore": (semaphore, semaphore),
            "owner": (space.lock("a"), space.owner().lock("a")),
        }
        holder, waiter = kinds[kind]
        held = holder.acquire()
        first = asyncio.create_task(waiter.acquire_async())
        second = asyncio.create_task(waiter.acquire_async())
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        held.release()
        hold = await second
        assert hold.is_held()
        hold.release()
        infos = space.inspect() + space.inspect_coarse()
        assert [(info.holders, info.waiters) for info in infos if info.holders or info.waiters] == []
        assert semaphore.peek().used == semaphore.peek().waiters == 0

    asyncio.run(main())


def test_a_cancelled_acquire_whose_grant_came_just_then_holds_nothing(space: sprag.Space) -> None:
    async def main() -> None:
        lock = space.lock("a")
        for round in range(50):
            held = lock.acquire()
            task = asyncio.create_task(lock.acquire_async())
            await until(lambda: waiters(space) == 1)
            held.release()
            # The grant is on its way, in one round of the loop or another.
            for _ in range(round % 4):
                await asyncio.sleep(0)
            task.cancel()
            try:
                hold = await task
            except asyncio.CancelledError:
                assert lock.acquire(blocking=False) is not None
            else:
                hold.release()
        assert waiters(space) == 0

    asyncio.run(main())


def test_an_await_ends_with_its_timeout(space: sprag.Space) -> None:
    async def main() -> None:
        lock = space.lock("a")
        async with lock:
            assert await lock.acquire_async(timeout=0) is None
            assert await lock.acquire_async(timeout=0.001) is None
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(lock.acquire_async(), 0.001)
            assert waiters(space) == 0
        hold = await lock.acquire_async(timeout=60)
        assert hold is not None

    asyncio.run(main())


def test_a_task_leaves_with_its_own_hold(clock: sprag.ManualClock, clocked: sprag.Space) -> None:
    """One lock object for two tasks: the first one's hold is lost, and the other enters meanwhile."""

    async def main() -> None:
        lock = clocked.lock("a", ttl=3)
        entered, left = asyncio.Event(), asyncio.Event()

        async def first() -> None:
            async with lock:
                entered.set()
                await left.wait()

        task = asyncio.create_task(first())
        await entered.wait()
        clock.advance(3)
        async with lock as mine:
            left.set()
            with pytest.raises(sprag.LostError):
                await task
            assert mine.is_held()
        assert not lock.locked()

    asyncio.run(main())


def test_the_bodys_error_is_not_hidden_by_a_loss(
    clock: sprag.ManualClock, clocked: sprag.Space
) -> None:
    async def main() -> None:
        lock = clocked.lock("a", ttl=3)
        with pytest.raises(KeyError):
            async with lock:
                clock.advance(3)
                stolen = lock.acquire()
                raise KeyError

    asyncio.run(main())


def test_a_cancelled_block_has_released(space: sprag.Space) -> None:
    async def main() -> None:
        lock = space.lock("a")

        async def work() -> None:
            async with lock:
                await asyncio.sleep(3600)

        task = asyncio.create_task(work())
        await until(lock.locked)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not lock.locked()

    asyncio.run(main())


def test_an_owner_tells_a_deadlock_to_the_task(space: sprag.Space) -> None:
    async def main() -> None:
        async def cross(first: str, second: str, both: list[str]) -> int:
            owner = space.owner()
            async with owner.lock(first):
                both.append(first)
                await until(lambda: len(both) == 2)
                try:
                    async with owner.lock(second):
                        return 0
                except sprag.DeadlockError:
                    return 1

        both: list[str] = []
        told = await asyncio.gather(cross("a", "b", both), cross("b", "a", both))
        assert sum(told) == 1

    asyncio.run(main())


def test_an_owner_awaits_several_locks_and_the_table(space: sprag.Space) -> None:
    async def main() -> None:
        owner = space.owner()
        async with owner.locks(["a", "b"]) as both:
            assert len(both.tokens) == 2
            with pytest.raises(sprag.DeadlockError):
                await owner.table().acquire_async()
        for wanted in (owner.locks(["a", "b"]), owner.table()):
            with space.lock("a") as held:
                task = asyncio.create_task(wanted.acquire_async())
                await asyncio.sleep(0)
                assert not task.done() and held.is_held()
            (await task).release()

    asyncio.run(main())


def test_an_acquire_is_awaited_once(space: sprag.Space) -> None:
    async def main() -> None:
        acquire = space.lock("a").acquire_async()
        assert await acquire is not None
        with pytest.raises(RuntimeError):
            await acquire

    asyncio.run(main())


def test_a_second_who_awaits_an_acquire_does_not_take_it_from_the_first(space: sprag.Space) -> None:
    async def main() -> None:
        held = space.lock("a").acquire()
        acquire = space.lock("a").acquire_async()
        first = asyncio.create_task(acquire)
        await until(lambda: waiters(space))
        with pytest.raises(RuntimeError, match="awaited already"):
            await acquire
        held.release()
        hold = await first
        assert hold is not None and hold.is_held()

    asyncio.run(main())


def test_a_loop_with_a_wait_left_over_is_freed_and_so_is_its_place(space: sprag.Space) -> None:
    held = space.lock("a").acquire()
    loop = asyncio.new_event_loop()

    async def work() -> None:
        async with space.lock("a"):
            pass

    task = loop.create_task(work())
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.run_until_complete(asyncio.sleep(0))
    assert waiters(space) == 1
    loop.close()
    gone = weakref.ref(loop)
    # Its owner gives it up, and says so.
    setattr(task, "_log_destroy_pending", False)
    del loop, task
    gc.collect()
    assert gone() is None
    assert waiters(space) == 0


def test_waits_of_several_loops_in_several_threads(space: sprag.Space) -> None:
    counted = 0

    async def main() -> None:
        nonlocal counted
        lock = space.lock("a")

        async def work() -> None:
            nonlocal counted
            for _ in range(20):
                async with lock:
                    now = counted
                    await asyncio.sleep(0)
                    counted = now + 1

        await asyncio.gather(*(work() for _ in range(5)))

    threads = [threading.Thread(target=asyncio.run, args=(main(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted == 4 * 5 * 20


def test_a_holder_that_is_late_is_passed_over_while_a_task_waits(space: sprag.Space) -> None:
    async def main() -> None:
        held = space.lock("a", ttl=0.05).acquire()
        started = time.monotonic()
        async with space.lock("a") as mine:
            assert time.monotonic() - started >= 0.04
            assert mine.token == held.token + 1

    asyncio.run(main())


def test_uvloop_works_the_same(space: sprag.Space) -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> None:
        lock = space.lock("a")

        async def work() -> None:
            async with lock:
                await asyncio.sleep(0)

        async with lock:
            tasks = [asyncio.create_task(work()) for _ in range(10)]
            await until(lambda: waiters(space) == 10)
            tasks.pop().cancel()
        await asyncio.gather(*tasks)
        assert not lock.locked()

    uvloop.run(main())


def test_a_hold_that_nobody_took_is_given_up_with_the_interpreter_let_go(space: sprag.Space) -> None:
    """To give up an owner's hold waits for its other threads, and what they wait for may need the interpreter."""

    async def main() -> None:
        shared = space.owner().lock("a", shared=True)
        taken = space.lock("a").acquire()
        acquire = shared.acquire_async()
        acquire.send(None)
        taken.release()
        await until(lambda: "ready" in repr(acquire))
        mine = shared.acquire()
        other = space.lock("a", ttl=10, shared=True).acquire()
        go, held = threading.Event(), []

        def release() -> None:
            go.wait()
            held.append(other.is_held())
            other.release()

        releases = threading.Thread(target=release)
        releases.start()
        upgrades = threading.Thread(target=mine.upgrade)
        upgrades.start()
        await until(lambda: waiters(space) == 1)
        before = sys.getswitchinterval()
        sys.setswitchinterval(1000)
        try:
            go.set()
            acquire.close()
        finally:
            sys.setswitchinterval(before)
        releases.join()
        upgrades.join()
        assert held == [True]
        assert mine.is_held() and not mine.is_shared

    asyncio.run(main())
