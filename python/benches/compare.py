"""Sprag beside its peers from Python, row by row, in one run on one machine.

Both contestants of a row are set up first and then measured in turn, several rounds, by the time that their thread
had of a processor; the ratio of the medians is what counts. This program measures: it never fails because of a number, and a row that can't be run says why. What peers it
needs is in `requirements-bench.txt`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import threading
import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sprag

KEY = "user:42"
KEYS = [f"user:{number}" for number in range(100)]

Contestant = Callable[[int], float]
"""Makes so many calls, and returns the seconds that they took."""


@dataclass(frozen=True)
class Row:
    case: str
    peer: str
    budget: float
    calls: int
    """How many a round has; of a peer that takes microseconds a tenth."""
    set_up: Callable[[], tuple[Contestant, Contestant]]
    peer_calls: int


def calls(statement: str, **names: Any) -> Contestant:
    """A loop around a statement, compiled with the loop, so that nothing but the loop itself is measured besides."""
    return timeit.Timer(statement, timer=time.thread_time, globals=names).timeit


def limiter(name: str = "api") -> sprag.Limiter:
    """One that admits everything, as its peers do."""
    return sprag.open("mem:").limiter(name, "1000000000/second")


def against_limits() -> tuple[Contestant, Contestant]:
    import limits

    item = limits.RateLimitItemPerSecond(1_000_000_000)
    strategy = limits.strategies.FixedWindowRateLimiter(limits.storage.MemoryStorage())
    assert strategy.hit(item, KEY)
    api = sprag.open("mem:").limiter("api", "1000000000/second", window="fixed")
    return calls("api.hit(key)", api=api, key=KEY), calls("hit(item, key)", hit=strategy.hit, item=item, key=KEY)


def against_pyrate() -> tuple[Contestant, Contestant]:
    import pyrate_limiter

    # Its finest: a microsecond each, and a burst that admits all of a run.
    rate = pyrate_limiter.Rate(1_000_000, pyrate_limiter.Duration.SECOND, burst=1_000_000_000)
    peer = pyrate_limiter.Limiter(pyrate_limiter.StateBucket([rate], pyrate_limiter.GCRA()))
    assert peer.try_acquire(KEY, blocking=False)
    return (
        calls("api.hit(key)", api=limiter(), key=KEY),
        calls("acquire(key, blocking=False)", acquire=peer.try_acquire, key=KEY),
    )


def against_throttled() -> tuple[Contestant, Contestant]:
    import throttled

    quota = throttled.per_sec(1_000_000_000, burst=1_000_000_000)
    peer = throttled.Throttled(using="gcra", quota=quota, store=throttled.MemoryStore())
    assert not peer.limit(KEY).limited
    return (
        calls("api.hit(key)", api=limiter(), key=KEY),
        calls("limit(key)", limit=peer.limit, key=KEY),
    )


def many_against_single() -> tuple[Contestant, Contestant]:
    many, single = limiter(), limiter()

    def each_of(run: Contestant) -> Contestant:
        return lambda number: run(number // len(KEYS))

    return (
        each_of(calls("hit_many(keys)", hit_many=many.hit_many, keys=KEYS)),
        each_of(calls("for key in keys: hit(key)", hit=single.hit, keys=KEYS)),
    )


def lock_against_threading() -> tuple[Contestant, Contestant]:
    lock = sprag.open("mem:").lock("a")
    return (
        calls("with lock: pass", lock=lock),
        calls("with lock: pass", lock=threading.Lock()),
    )


def shared_lock_against_filelock() -> tuple[Contestant, Contestant]:
    import filelock

    directory = tempfile.TemporaryDirectory(dir="/dev/shm")
    lock = sprag.open(f"shm:{directory.name}/region").lock("a")
    peer = filelock.FileLock(f"{directory.name}/lock")
    return (
        calls("with lock: pass", lock=lock, kept=directory),
        calls("with lock: pass", lock=peer, kept=directory),
    )


def async_lock_against_asyncio() -> tuple[Contestant, Contestant]:
    def loops(lock: Any) -> Contestant:
        async def run(number: int) -> float:
            started = time.thread_time()
            for _ in range(number):
                async with lock:
                    pass
            return time.thread_time() - started

        return lambda number: asyncio.run(run(number))

    return loops(sprag.open("mem:").lock("a")), loops(asyncio.Lock())


ROWS = [
    Row("Python limiter.hit(key)", "limits, fixed window, memory", 0.045, 200_000, against_limits, 20_000),
    Row("Python limiter.hit(key)", "pyrate-limiter, GCRA, memory", 0.02, 200_000, against_pyrate, 20_000),
    Row("Python limiter.hit(key)", "throttled-py, GCRA, memory", 0.035, 200_000, against_throttled, 20_000),
    Row("Python hit_many, 100 keys, per key", "limiter.hit one by one", 0.50, 200_000, many_against_single, 200_000),
    Row("Python with lock", "threading.Lock (no token, no lease)", 2.5, 200_000, lock_against_threading, 200_000),
    Row("Python with lock, shm:", "filelock on tmpfs", 0.005, 200_000, shared_lock_against_filelock, 2_000),
    Row("Python async with lock", "asyncio.Lock", 2.0, 100_000, async_lock_against_asyncio, 100_000),
]


def measure(row: Row, rounds: int, divisor: int) -> dict[str, Any]:
    line: dict[str, Any] = {
        "case": row.case,
        "unit": "ns",
        "ours_ns": None,
        "peer": row.peer,
        "peer_ns": None,
        "ratio": None,
        "budget": str(row.budget),
        "met": None,
        "ours_admitted": None,
        "peer_admitted": None,
    }
    try:
        ours, peer = row.set_up()
    except ImportError as error:
        return line | {"skipped": f"{error.name} is not installed"}
    turns = [(ours, row.calls // divisor), (peer, row.peer_calls // divisor)]
    measured: list[list[float]] = [[], []]
    # Memory is touched and branches are learnt before it counts; who goes first changes with every round.
    for number in range(-1, rounds):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            contestant, times = turns[side]
            taken = contestant(times) / times * 1e9
            if number >= 0:
                measured[side].append(taken)
    ours_ns, peer_ns = map(statistics.median, measured)
    ratio = ours_ns / peer_ns
    return line | {"ours_ns": ours_ns, "peer_ns": peer_ns, "ratio": ratio, "met": ratio <= row.budget}


def print_table(lines: list[dict[str, Any]]) -> None:
    def figure(value: float | None) -> str:
        return "" if value is None else f"{value:.1f}" if value < 100 else f"{value:.0f}"

    def cells(line: dict[str, Any]) -> list[str]:
        ratio = line["ratio"]
        met = {True: "yes", False: "no", None: f"skipped: {line.get('skipped')}"}[line["met"]]
        shown = "" if ratio is None else f"{ratio:.5f}" if ratio < 0.01 else f"{ratio:.3f}"
        ours, peer = figure(line["ours_ns"]), figure(line["peer_ns"])
        return [line["case"], ours, line["peer"], peer, shown, line["budget"], met, ""]

    head = ["case", "ours ns", "peer", "peer ns", "ratio", "budget", "met", "admitted"]
    table = [head, *map(cells, lines)]
    widths = [max(map(len, column)) for column in zip(*table)]
    for number, row in enumerate(table):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")
        if number == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures Sprag beside its peers, from Python.")
    parser.add_argument("--json", action="store_true", help="print a JSON array instead of a table")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--rounds", type=int, default=7, metavar="N")
    parser.add_argument("--quick", action="store_true", help="an eighth of the work and three rounds")
    parser.add_argument("--list", action="store_true", help="list the rows and measure nothing")
    options = parser.parse_args()
    rows = [
        row
        for row in ROWS
        if not options.only
        or any(only.lower() in f"{row.case} {row.peer}".lower() for only in options.only)
    ]
    if options.list:
        for row in rows:
            print(f"{row.case} | {row.peer} | {row.budget}")
        return
    lines = []
    for row in rows:
        print(f"{row.case} | {row.peer} …", file=sys.stderr)
        rounds = 3 if options.quick else options.rounds
        lines.append(measure(row, rounds, 8 if options.quick else 1))
    if options.json:
        print(json.dumps(lines, indent=2))
    else:
        print_table(lines)


if __name__ == "__main__":
    main()
