"""What ends a wait or a process from outside: signals, forks, the end of the interpreter."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import sprag

START = """
import asyncio, atexit, os, signal, sys, threading, time
import sprag
"""


def run(script: str, *, code: int = 0) -> str:
    """What a process of its own prints that ends with `code`, and with no word of complaint."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", START + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (code, ""), done
    return done.stdout


def interrupt_once(waits: Callable[[], bool]) -> threading.Thread:
    """Sends an interrupt to this process once somebody waits."""

    def send() -> None:
        while not waits():
            pass
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


@pytest.mark.parametrize(
    "kind", ["lock", "with", "shared", "several", "table", "semaphore", "owner", "several of", "upgrade"]
)
def test_an_interrupt_ends_a_wait_and_leaves_nothing(space: sprag.Space, kind: str) -> None:
    semaphore = space.semaphore("s", 1)
    owner = space.owner()
    held = semaphore.acquire() if kind == "semaphore" else space.lock("a", shared=kind == "upgrade").acquire()
    mine = space.lock("a", shared=True).acquire() if kind == "upgrade" else None

    def enter() -> None:
        with space.lock("a"):
            pass

    waits: dict[str, Callable[[], object]] = {
        "lock": space.lock("a").acquire,
        "with": enter,
        "shared": space.lock("a", shared=True).acquire,
        "several": space.locks(["b", "a"]).acquire,
        "table": space.table().acquire,
        "semaphore": semaphore.acquire,
        "owner": owner.lock("a").acquire,
        "several of": owner.locks(["b", "a"]).acquire,
        "upgrade": (mine or held).upgrade,
    }

    def waiters() -> int:
        locks = sum(info.waiters for info in [*space.inspect(), *space.inspect_coarse()])
        return locks + semaphore.peek().waiters

    thread = interrupt_once(lambda: waiters() > 0)
    with pytest.raises(KeyboardInterrupt):
        waits[kind]()
    thread.join()
    assert waiters() == 0
    assert held.is_held()
    held.release()
    if mine is not None:
        assert mine.is_held() and mine.is_shared
        mine.release()
    infos = [*space.inspect(), *space.inspect_coarse()]
    assert not any(info.is_held for info in infos)
    assert semaphore.peek().used == 0


def test_a_handler_that_raises_nothing_leaves_the_wait_its_place(space: sprag.Space) -> None:
    handled: list[int] = []
    held = space.lock("a").acquire()

    def handle(number: int, _: object) -> None:
        # In the midst of the wait, and free to use the same space.
        assert space.inspect("a")[0].waiters == 1
        handled.append(number)
        held.release()

    before = signal.signal(signal.SIGINT, handle)
    try:
        thread = interrupt_once(lambda: space.inspect("a")[0].waiters > 0)
        with space.lock("a") as mine:
            assert mine.token == held.token + 1
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert handled == [signal.SIGINT]


def test_a_handler_cannot_ask_a_hold_that_its_own_thread_upgrades(space: sprag.Space) -> None:
    shared = space.lock("a", shared=True)
    mine, other = shared.acquire(), shared.acquire()
    raised: list[RuntimeError] = []

    def handle(number: int, _: object) -> None:
        try:
            mine.is_held()
        except RuntimeError as error:
            raised.append(error)
        other.release()

    before = signal.signal(signal.SIGINT, handle)
    try:
        thread = interrupt_once(lambda: space.inspect("a")[0].waiters > 0)
        assert mine.upgrade()
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(raised) == 1
    assert mine.is_held() and not mine.is_shared


def test_a_handler_cannot_ask_a_hold_that_its_own_thread_is_asking(space: sprag.Space) -> None:
    """What is asked of an owner's hold waits for another thread of the owner's that upgrades it."""
    shared = space.owner().lock("a", shared=True)
    first, second = shared.acquire(), shared.acquire()
    other = space.lock("a", shared=True).acquire()
    raised: list[RuntimeError] = []

    def handle(number: int, _: object) -> None:
        try:
            second.is_held()
        except RuntimeError as error:
            raised.append(error)
            other.release()

    def interrupt() -> None:
        # Once is not enough if that comes before this thread has begun to ask.
        while not raised:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)

    before = signal.signal(signal.SIGINT, handle)
    try:
        upgrade = threading.Thread(target=first.upgrade)
        upgrade.start()
        while space.inspect("a")[0].waiters == 0:
            pass
        thread = threading.Thread(target=interrupt)
        thread.start()
        second.renew()
        thread.join()
        upgrade.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(raised) == 1
    assert second.is_held() and not second.is_shared


def test_a_hold_that_another_thread_upgrades_is_asked_after_that(space: sprag.Space) -> None:
    shared = space.lock("a", shared=True)
    mine, other = shared.acquire(), shared.acquire()
    token = mine.token
    thread = threading.Thread(target=mine.upgrade)
    thread.start()
    while not space.inspect("a")[0].waiters:
        pass
    release = threading.Thread(target=other.release)
    release.start()
    assert mine.token > token
    release.join()
    thread.join()


def test_a_forked_child_owns_nothing_and_leaves_its_parents_holds_alone(tmp_path: Path) -> None:
    url = f"shm:{tmp_path}/region"
    out = run(
        f"""
        space = sprag.open({url!r})
        api, counter = space.limiter("api", "5/hour"), space.counter("c")
        lock, semaphore, owner = space.lock("a", keep_alive=True), space.semaphore("s", 1), space.owner()
        hold, permit, owned = lock.acquire(), semaphore.acquire(), owner.lock("o").acquire()
        with space.lock("b"):
            child = os.fork()
            if child == 0:
                assert not hold.is_valid() and not hold.is_held()
                for call in (
                    lambda: space.lock("x").acquire(),
                    lambda: lock.acquire(),
                    lambda: api.hit("ann"),
                    lambda: counter.add(),
                    lambda: hold.renew(),
                    lambda: hold.release(),
                    lambda: owner.lock("o").acquire(),
                    lambda: asyncio.run(lock.acquire_async()),
                ):
                    try:
                        call()
                    except sprag.ForkedError:
                        continue
                    raise SystemExit("no error")
                del hold, permit, owned, lock, semaphore, owner
                with sprag.open({url!r}) as own, own.lock("child's"):
                    assert own.lock("a").acquire(blocking=False) is None
                sys.exit(7)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), hold.is_held(), permit.is_held(), owned.is_held())
        """
    )
    # The block that the child leaves by raising is its parent's.
    assert out == "7 True True True\n"


def test_a_forked_child_does_not_wait_for_an_upgrade_of_its_parents(tmp_path: Path) -> None:
    out = run(
        f"""
        space = sprag.open("shm:{tmp_path}/region")
        shared = space.lock("a", shared=True)
        mine, other = shared.acquire(), shared.acquire()
        thread = threading.Thread(target=mine.upgrade)
        thread.start()
        while not space.inspect("a")[0].waiters:
            pass
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            for call in (lambda: mine.lost, mine.is_held, mine.release):
                try:
                    call()
                except sprag.ForkedError:
                    continue
                os._exit(1)
            os._exit(7)
        _, status = os.waitpid(child, 0)
        other.release()
        thread.join()
        print(os.waitstatus_to_exitcode(status), mine.is_held())
        """
    )
    assert out == "7 True\n"


def test_a_child_tells_losses_by_a_thread_of_its_own(tmp_path: Path) -> None:
    run(
        """
        def lose():
            told = threading.Event()
            space = sprag.open("mem:")
            hold = space.lock("a", on_lost=lambda hold: told.set()).acquire()
            space.break_lock("a")
            assert told.wait(60)
        lose()
        child = os.fork()
        lose()
        if child:
            _, status = os.waitpid(child, 0)
            assert status == 0
        """
    )


HELD = """
space = sprag.open(URL)
held = space.lock("held", ttl=1, keep_alive=True, on_lost=print).acquire()
lock = space.lock("a")
inner = lock.acquire()
def wait():
    with lock:
        pass
thread = threading.Thread(target=wait, daemon=True)
thread.start()
def wait_for_owner():
    with owner.lock("a"):
        pass
owner = space.owner()
threading.Thread(target=wait_for_owner, daemon=True).start()
while space.inspect("a")[0].waiters < 2:
    pass
class Late:
    # Lets the threads that wait have their turn while the interpreter is being torn down.
    def __init__(self, hold):
        self.hold = hold
    def __del__(self, sleep=time.sleep):
        self.hold.release()
        sleep(0.05)
"""


@pytest.mark.parametrize("reach", ["mem", "shm"])
@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("", 0),
        ("sys.exit(3)", 3),
        ("os._exit(4)", 4),
        # Freed while the interpreter goes: the thread that waits is granted it then.
        ("atexit.register(inner.release)", 0),
        ("import builtins; builtins.late = Late(inner); del inner", 0),
        ("space.break_lock('held')", 0),
        ("space.break_lock('held'); os._exit(5)", 5),
        ("sys.stdout = None; held.keep_alive(on_lost=lambda hold: time.sleep(3600)); space.break_lock('held')", 0),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9),
    ],
)
def test_the_interpreter_ends_in_peace(tmp_path: Path, reach: str, ending: str, code: int) -> None:
    """With holds, leases that are renewed, and daemon threads that wait."""
    url = "mem:" if reach == "mem" else f"shm:{tmp_path}/region"
    for _ in range(3):
        run(f"URL = {url!r}\n{HELD}\n{ending}", code=code)
    if reach == "shm":
        with sprag.open(url) as space:
            assert space.lock("held").acquire(timeout=10) is not None


@pytest.mark.parametrize("ending", ["", "loop.close()", "raise SystemExit(0)", "os._exit(0)"])
def test_the_interpreter_ends_in_peace_with_tasks_that_wait(ending: str) -> None:
    run(
        f"""
        space = sprag.open("mem:")
        held = space.lock("a").acquire()
        async def work():
            async with space.lock("a"):
                pass
        async def main():
            global tasks
            tasks = [asyncio.create_task(work()) for _ in range(10)]
            while space.inspect("a")[0].waiters < 10:
                await asyncio.sleep(0)
        loop = asyncio.new_event_loop()
        loop.run_until_complete(main())
        for task in tasks:
            task._log_destroy_pending = False
        loop.close()
        {ending}
        """
    )


def test_an_uncaught_error_in_a_block_ends_as_any_does(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", START + "with sprag.open('mem:').lock('a'): raise KeyError('mine')"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.endswith("KeyError: 'mine'\n")


def test_a_loss_is_told_once_with_its_hold(space: sprag.Space) -> None:
    told: list[sprag.Hold] = []
    came = threading.Event()

    def on_lost(hold: sprag.Hold) -> None:
        told.append(hold)
        came.set()

    lock = space.lock("a", keep_alive=True, on_lost=on_lost)
    hold = lock.acquire()
    assert space.break_lock("a") == hold.token
    assert came.wait(60)
    assert told == [hold] and hold.lost


def test_a_hold_that_is_watched_is_told_when_its_lease_is_over(space: sprag.Space) -> None:
    came = threading.Event()
    hold = space.lock("a", ttl=0.02, on_lost=lambda hold: came.set()).acquire()
    assert came.wait(60)
    assert not hold.is_valid()


def test_a_hold_that_is_kept_alive_outlasts_its_lease(space: sprag.Space) -> None:
    with space.lock("a", ttl=1, keep_alive=True) as hold:
        renewed = 0
        left = hold.lease_left
        # Each time a third of it is over.
        while renewed < 3:
            now = hold.lease_left
            renewed += now > left
            left = now
        assert hold.is_held()


def test_a_loss_is_told_of_the_hold_that_was_first_however_often_its_owner_entered(
    space: sprag.Space,
) -> None:
    told: list[sprag.Hold] = []
    came = threading.Event()

    def on_lost(hold: sprag.Hold) -> None:
        told.append(hold)
        came.set()

    lock = space.owner().lock("a", keep_alive=True, on_lost=on_lost)
    outer = lock.acquire()
    with lock:
        pass
    space.break_lock("a")
    assert came.wait(60)
    assert told == [outer]


def test_a_callback_that_raises_is_reported_and_the_next_one_is_called() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            START
            + textwrap.dedent(
                """
                came, told = threading.Event(), threading.Event()
                def fail(hold):
                    came.set()
                    raise KeyError("in the callback")
                space = sprag.open("mem:")
                first = space.lock("a", on_lost=fail).acquire()
                second = space.lock("b", on_lost=lambda hold: told.set()).acquire()
                space.break_lock("a")
                assert came.wait(60)
                space.break_lock("b")
                assert told.wait(60)
                """
            ),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 and done.stderr.endswith("KeyError: 'in the callback'\n")


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_nothing_that_a_callback_raises_keeps_others_from_being_told(
    space: sprag.Space, error: type[BaseException]
) -> None:
    came, told = threading.Event(), threading.Event()

    def fail(hold: sprag.Hold) -> None:
        came.set()
        raise error

    first = space.lock("a", on_lost=fail).acquire()
    second = space.lock("b", on_lost=lambda hold: told.set()).acquire()
    space.break_lock("a")
    assert came.wait(60)
    space.break_lock("b")
    assert told.wait(60)
    assert first.lost and second.lost


def test_what_watches_a_hold_does_not_keep_it(space: sprag.Space) -> None:
    """An object that has the hold and is told of its loss: a circle, which the collector finds."""
    import gc

    class Worker:
        def __init__(self) -> None:
            self.hold = space.lock("a", keep_alive=True, on_lost=self.on_lost).acquire()

        def on_lost(self, hold: sprag.Hold) -> None: ...

    worker = Worker()
    assert space.lock("a").locked()
    del worker
    gc.collect()
    assert not space.lock("a").locked()
