"""One space for several processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import sprag

WORKERS = 4
ROUNDS = 100


def start(script: str, *args: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "import asyncio, os, sys, sprag\n" + textwrap.dedent(script), *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_processes_exclude_each_other_in_threads_and_tasks(tmp_path: Path) -> None:
    """What is counted under the lock without any other care adds up."""
    counted = tmp_path / "counted"
    counted.write_text("0")
    script = """
        url, path, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
        space = sprag.open(url)
        lock = space.lock("counted")
        def add(hold):
            assert hold.is_held()
            with open(path) as file:
                number = int(file.read())
            with open(path, "w") as file:
                file.write(str(number + 1))
            space.fence("counted").admit_once(hold.token)
        async def main():
            for _ in range(rounds):
                async with lock as hold:
                    add(hold)
                with lock as hold:
                    add(hold)
        asyncio.run(main())
        """
    url = f"shm:{tmp_path}/region"
    workers = [start(script, url, counted, ROUNDS) for _ in range(WORKERS)]
    assert [worker.wait(60) for worker in workers] == [0] * WORKERS
    for worker in workers:
        worker.communicate()
    assert int(counted.read_text()) == WORKERS * ROUNDS * 2


def test_what_a_killed_process_held_passes_on(tmp_path: Path) -> None:
    url = f"shm:{tmp_path}/region"
    holder = start(
        """
        space = sprag.open(sys.argv[1])
        hold = space.lock("a", ttl=3600, keep_alive=True).acquire()
        permit = space.semaphore("s", 1).acquire()
        print(hold.token, flush=True)
        sys.stdin.read()
        """,
        url,
    )
    assert holder.stdout is not None
    token = int(holder.stdout.readline())
    with sprag.open(url) as space:
        assert space.lock("a").acquire(blocking=False) is None
        os.kill(holder.pid, signal.SIGKILL)
        with space.lock("a") as hold, space.semaphore("s", 1):
            assert hold.token == token + 1
    holder.communicate()


def test_ten_workers_have_one_limit(tmp_path: Path) -> None:
    url = f"shm:{tmp_path}/region"
    script = """
        api = sprag.open(sys.argv[1]).limiter("api", "500/day")
        print(sum(api.hit("all").allowed for _ in range(100)))
        """
    workers = [start(script, url) for _ in range(10)]
    admitted = [int(worker.communicate(timeout=60)[0]) for worker in workers]
    # A day's 500 add one more every three minutes.
    assert sum(admitted) == 500
