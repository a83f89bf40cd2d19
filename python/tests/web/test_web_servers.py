"""Several workers of real servers share one limit, exactly.

A bucket of B that refills at r admits, from its first admission to any refusal after a time D and while it is
never full again meanwhile, exactly B + floor(r * D). Each answer says between which two readings of boot time it
was decided, and this process, which opens the same space, sees the engine's own state.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

import sprag
from web.served import BOOT
from web.serving import Hammered, Reply, Server, hammer, serve

BURST, PER_SECOND = 40, 4
# What the engine's clock may differ from boot time, at both ends.
CLOCKS_NS = 20_000

GUNICORN = ["gunicorn", "--bind", "127.0.0.1:{port}", "--graceful-timeout", "10"]
UVICORN_WORKER = ["--worker-class", "uvicorn_worker.UvicornWorker"]
SERVERS = {
    "gunicorn-sync-flask": [*GUNICORN, "--workers", "10", "web.served_flask:app"],
    "gunicorn-preload-flask": [*GUNICORN, "--workers", "10", "--preload", "web.served_flask:app"],
    "gunicorn-uvicorn-starlette": [
        *GUNICORN,
        *UVICORN_WORKER,
        "--workers",
        "10",
        "--preload",
        "web.served_starlette:app",
    ],
    "uvicorn-fastapi": [
        "uvicorn",
        "--port",
        "{port}",
        "--workers",
        "10",
        "--no-access-log",
        "web.served_fastapi:app",
    ],
}


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"shm:{tmp_path}/region"


def bucket(url: str) -> dict[str, str]:
    return {"TEST_SPACE": url, "TEST_RATE": f"{PER_SECOND}/second", "TEST_BURST": str(BURST)}


def admitted_by_formula(server: Server, seen: Hammered) -> int:
    """How many the bucket is to have admitted until a refusal that is asked for now."""
    for _ in range(10_000):
        reply = server.ask()
        seen.add(reply)
        if reply.status == 200:
            continue
        first = (
            min(each.before for each in seen.admitted),
            min(each.after for each in seen.admitted),
        )
        shortest = reply.before - first[1] - CLOCKS_NS
        longest = reply.after - first[0] + CLOCKS_NS
        least, most = (BURST + PER_SECOND * delta // 1_000_000_000 for delta in (shortest, longest))
        # Just when another place came free, the answer's two times do not tell before or after.
        if least == most:
            return least
    raise AssertionError("each refusal came just when a place came free")


def check_state(url: str, seen: Hammered) -> None:
    """The engine's own word for it: what has drained since the first admission and what is used now are together
    what was admitted, and nothing but that; of answers that were lost nobody else knows."""
    with sprag.open(url) as space:
        limiter = space.limiter("all", f"{PER_SECOND}/second", BURST)
        before = time.clock_gettime_ns(BOOT)
        reset_after = limiter.test("all").reset_after
        after = time.clock_gettime_ns(BOOT)
    assert reset_after is not None
    used = reset_after * PER_SECOND
    shortest = before - min(each.after for each in seen.admitted) - CLOCKS_NS
    longest = after - min(each.before for each in seen.admitted) + CLOCKS_NS
    drained = (PER_SECOND * shortest / 1e9, PER_SECOND * longest / 1e9)
    assert used + drained[0] <= len(seen.admitted) + seen.lost
    assert len(seen.admitted) <= used + drained[1]


@pytest.mark.parametrize("command", SERVERS.values(), ids=SERVERS.keys())
def test_ten_workers_admit_what_one_limit_does(
    command: list[str], tmp_path: Path, url: str
) -> None:
    with serve(command, tmp_path, **bucket(url)) as server:
        assert len(server.wait_for_workers(10)) == 10
        seen = hammer(server, lambda seen: len(seen.admitted) >= BURST + 6)
        assert len({reply.pid for reply in seen.admitted + seen.refused}) > 1
        formula = admitted_by_formula(server, seen)
        assert len(seen.admitted) == formula
        check_state(url, seen)
        assert "cannot be looked at" not in server.log.read_text()


def test_an_application_that_is_loaded_before_the_fork_is_opened_after_it(
    tmp_path: Path, url: str
) -> None:
    with serve(SERVERS["gunicorn-preload-flask"], tmp_path, **bucket(url)) as server:
        worker, inode = server.ask().pid, f" {os.stat(url.removeprefix('shm:')).st_ino} "
        assert inode in Path(f"/proc/{worker}/maps").read_text()
        assert inode not in Path(f"/proc/{server.process.pid}/maps").read_text()


def test_ten_workers_admit_a_window_as_one_does(tmp_path: Path, url: str) -> None:
    window_ns, count = 1_000_000_000, 25
    limit = {"TEST_SPACE": url, "TEST_RATE": f"{count}/second", "TEST_WINDOW": "fixed"}
    with serve(SERVERS["gunicorn-preload-flask"], tmp_path, **limit) as server:
        server.wait_for_workers(10)
        end, margin = window_end(server, url, f"{count}/second")

        def windows_of(reply: Reply) -> set[int]:
            """In which windows it may have been decided: one, unless that was just at an end."""
            return {
                (reply.before - margin - end) // window_ns,
                (reply.after + margin - end) // window_ns,
            }

        def full_windows(seen: Hammered) -> set[int]:
            return {
                min(windows) for reply in seen.refused if len(windows := windows_of(reply)) == 1
            }

        seen = hammer(server, lambda seen: len(full_windows(seen)) >= 4)
        full = sorted(full_windows(seen))
        # What was admitted in the first one before that is not known.
        for window in full[1:]:
            surely = sum(windows_of(reply) == {window} for reply in seen.admitted)
            maybe = sum(window in windows_of(reply) for reply in seen.admitted)
            assert surely <= count <= maybe


def window_end(server: Server, url: str, rate: str) -> tuple[int, int]:
    """When a window ends, by the engine, in nanoseconds of boot time; and what that may be off by."""
    with sprag.open(url) as space:
        limiter = space.limiter("all", rate, window="fixed")
        for _ in range(10_000):
            server.ask()
            before = time.clock_gettime_ns(BOOT)
            reset_after = limiter.test("all").reset_after
            took = time.clock_gettime_ns(BOOT) - before
            # If the window has just ended, nothing is used in the next one, and nothing is to be told of it.
            if reset_after and took < CLOCKS_NS:
                return before + round(reset_after * 1e9), took + CLOCKS_NS
    raise AssertionError("no window was seen")


@pytest.mark.parametrize("worker", ["sync", "uvicorn"])
def test_a_worker_that_is_killed_takes_nothing_of_the_limit_along(
    worker: str, tmp_path: Path, url: str
) -> None:
    kind, app = (
        (UVICORN_WORKER, "web.served_starlette:app")
        if worker == "uvicorn"
        else ([], "web.served_flask:app")
    )
    command = [*GUNICORN, *kind, "--workers", "4", "--preload", app]
    with serve(command, tmp_path, **bucket(url)) as server:
        workers = server.wait_for_workers(4)
        seen = hammer(server, lambda seen: len(seen.admitted) >= BURST // 2)
        killed = seen.admitted[-1].pid
        assert killed in workers

        to_kill = [killed]

        def kill_and_go_on(seen: Hammered) -> bool:
            while to_kill:
                os.kill(to_kill.pop(), signal.SIGKILL)
            return len(seen.admitted) >= BURST + 4

        hammer(server, kill_and_go_on, into=seen, may_lose=True)
        assert len(server.wait_for_workers(4) - workers) >= 1, "another one came in its place"
        formula = admitted_by_formula(server, seen)
        assert formula - seen.lost <= len(seen.admitted) <= formula
        check_state(url, seen)
        assert seen.lost <= 12, "not more than clients that waited for it"


def test_a_reload_keeps_the_limit(tmp_path: Path, url: str) -> None:
    with serve(
        [*GUNICORN, "--workers", "3", "web.served_flask:app"], tmp_path, **bucket(url)
    ) as server:
        before = server.wait_for_workers(3)
        seen = hammer(server, lambda seen: len(seen.admitted) >= BURST // 2)
        server.signal(signal.SIGHUP)

        def has_reloaded(seen: Hammered) -> bool:
            pids = {reply.pid for reply in seen.admitted + seen.refused}
            return len(seen.admitted) >= BURST + 4 and bool(pids - before)

        hammer(server, has_reloaded, into=seen, may_lose=True)
        formula = admitted_by_formula(server, seen)
        assert formula - seen.lost <= len(seen.admitted) <= formula
        check_state(url, seen)
