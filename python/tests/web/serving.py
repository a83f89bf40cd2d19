"""Real servers for the tests, on ports of their own, and clients that hammer them."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parents[1]

# How long a server may take to come up, and how often it is looked at.
READY_SECONDS_MAX = 120
POLL_SECONDS = 0.02


class Reply(NamedTuple):
    status: int
    pid: int
    before: int
    after: int


@dataclass
class Server:
    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def get(self, path: str = "/") -> http.client.HTTPResponse:
        """A response, read whole."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path, headers={"Connection": "close"})
            response = connection.getresponse()
            response.body = response.read()  # type: ignore[attr-defined]
            return response
        finally:
            connection.close()

    def ask(self, path: str = "/") -> Reply:
        response = self.get(path)
        pid, before, after = (
            int(response.headers[name]) for name in ("X-Pid", "X-Before", "X-After")
        )
        return Reply(response.status, pid, before, after)

    def wait_for_workers(self, number: int) -> set[int]:
        """Until so many have answered; they are asked at the same time, so that each gets its share."""
        pids: set[int] = set()

        def ask() -> None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                pids.add(self.ask("/pid").pid)

        give_up_at = time.monotonic() + READY_SECONDS_MAX
        while len(pids) < number:
            assert time.monotonic() < give_up_at, (
                f"{len(pids)} workers of {number}\n{self.log.read_text()}"
            )
            together([ask] * number)
        return pids

    def signal(self, which: signal.Signals) -> None:
        self.process.send_signal(which)


@contextlib.contextmanager
def serve(
    command: list[str], tmp_path: Path, path: str = "/pid", **environment: str
) -> Iterator[Server]:
    """Runs the server module; `{port}` in the command is where it is to listen. Ends it with all its workers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *(part.format(port=port) for part in command)],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(TESTS),
                "PYTHONDONTWRITEBYTECODE": "1",
                **environment,
            },
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    server = Server(process, port, log)
    try:
        _wait_until_ready(server, path)
        yield server
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)
        # Its workers too, if it left some.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_until_ready(server: Server, path: str) -> None:
    give_up_at = time.monotonic() + READY_SECONDS_MAX
    while True:
        assert server.process.poll() is None, server.log.read_text()
        assert time.monotonic() < give_up_at, server.log.read_text()
        with contextlib.suppress(OSError, http.client.HTTPException):
            if server.get(path).status == 200:
                return
        time.sleep(POLL_SECONDS)


def together(work: list[Callable[[], None]]) -> None:
    """Runs each in a thread of its own, and raises what one of them raised."""
    failed: list[BaseException] = []

    def run(each: Callable[[], None]) -> None:
        try:
            each()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(each,)) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


@dataclass
class Hammered:
    """What clients got who asked at the same time."""

    admitted: list[Reply] = field(default_factory=list)
    refused: list[Reply] = field(default_factory=list)
    lost: int = 0
    """Requests without an answer, which may or may not have been admitted."""

    @property
    def count(self) -> int:
        return len(self.admitted) + len(self.refused) + self.lost

    def add(self, reply: Reply) -> None:
        {200: self.admitted, 429: self.refused}[reply.status].append(reply)


def hammer(
    server: Server,
    until: Callable[[Hammered], bool],
    *,
    into: Hammered | None = None,
    clients: int = 12,
    requests_max: int = 20_000,
    may_lose: bool = False,
) -> Hammered:
    """Asks from several clients at once until enough has been seen."""
    hammered = Hammered() if into is None else into
    lock = threading.Lock()

    def ask_again_and_again() -> None:
        while True:
            with lock:
                if until(hammered):
                    return
                assert hammered.count < requests_max, "enough was not seen"
            try:
                reply = server.ask()
            except (OSError, http.client.HTTPException):
                if not may_lose:
                    raise
                with lock:
                    hammered.lost += 1
                continue
            with lock:
                hammered.add(reply)

    together([ask_again_and_again] * clients)
    return hammered
