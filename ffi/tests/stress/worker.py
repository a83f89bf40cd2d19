"""The worker in Python; page.h has the rules, and is read for its numbers and texts."""

import mmap
import os
import random
import re
import sys
from pathlib import Path

import sprag

HEADER = Path(__file__).with_name("page.h").read_text()
# `NAME = VALUE,` of the enumeration, where a value is a sum and product of names before it; and `#define NAME "TEXT"`.
NUMBERS: dict[str, int] = {}
for name, value in re.findall(r"^    ([A-Z_]+) = ([A-Z_0-9 +*]+),$", HEADER, re.MULTILINE):
    NUMBERS[name] = eval(value, {}, NUMBERS)
TEXTS = dict(re.findall(r'^#define ([A-Z_]+) "(.*)"$', HEADER, re.MULTILINE))


class Broken(Exception):
    """A rule of the page is."""


class Worker:
    def __init__(self, url: str, page: memoryview, seat: int, id: int) -> None:
        self.page, self.seat, self.id = page, seat, id
        self.random = random.Random(id)
        space = sprag.open(url)
        names = [f"lock {i}" for i in range(NUMBERS["LOCKS"])]
        self.locks = [space.lock(name) for name in names]
        self.shared = [space.lock(name, shared=True) for name in names]
        self.fences = [space.fence(name) for name in names]
        self.pair = space.locks(names[:2])
        self.semaphore = space.semaphore(TEXTS["SEMAPHORE_NAME"], NUMBERS["PERMITS"])
        self.few = space.limiter(TEXTS["FEW_NAME"], TEXTS["FEW_LIMIT"])
        self.rate = space.limiter(TEXTS["RATE_NAME"], TEXTS["RATE_LIMIT"])
        self.counter = space.counter(TEXTS["COUNTER_NAME"])

    def word(self, name: str, at: int = 0) -> int:
        return NUMBERS[name] + at

    def mine(self, name: str) -> int:
        return NUMBERS["SEAT"] + self.seat * NUMBERS["SEAT_WORDS"] + NUMBERS[name]

    def count(self, name: str, at: int = 0) -> None:
        # Nobody else writes the words of this seat.
        self.page[self.mine(name) + at] += 1

    def let_others_run(self) -> None:
        """Now and then, so that they meet what is held."""
        if self.random.randrange(4) == 0:
            os.sched_yield()

    def is_killed(self, id: int) -> bool:
        return self.page[self.word("KILLED", id)] != 0

    def nobody_is_inside(self, lock: int) -> None:
        inside = self.page[self.word("INSIDE", lock)]
        if inside != 0 and not self.is_killed(inside):
            raise Broken(f"somebody else is inside: {inside}")

    def be_inside(self, lock: int, token: int) -> None:
        inside, last, count = (self.word(name, lock) for name in ("INSIDE", "TOKEN", "COUNT"))
        self.nobody_is_inside(lock)
        self.page[inside] = self.id
        if token <= self.page[last]:
            raise Broken(f"a token did not rise: {token} after {self.page[last]}")
        self.page[last] = token
        self.fences[lock].admit(token)
        counted = self.page[count]
        self.let_others_run()
        self.page[count] = counted + 1
        if self.page[inside] != self.id:
            raise Broken(f"somebody else came inside: {self.page[inside]}")
        self.page[inside] = 0
        self.count("COUNTED", lock)

    def alone(self) -> None:
        lock = self.random.randrange(NUMBERS["LOCKS"])
        with self.locks[lock] as hold:
            self.be_inside(lock, hold.token)

    def beside_others(self) -> None:
        lock = self.random.randrange(NUMBERS["LOCKS"])
        with self.shared[lock]:
            self.let_others_run()
            self.nobody_is_inside(lock)
        self.count("SHARED")

    def two_at_once(self) -> None:
        with self.pair as hold:
            for lock, token in enumerate(hold.tokens):
                self.be_inside(lock, token)

    def look(self) -> list[tuple[int, int]]:
        """What each seat has, by who sits there; nothing of those that were killed."""
        seats = []
        for seat in range(self.page[NUMBERS["SEATS"]]):
            at = NUMBERS["SEAT"] + seat * NUMBERS["SEAT_WORDS"]
            id, has = self.page[at + NUMBERS["SEAT_ID"]], self.page[at + NUMBERS["HAS"]]
            seats.append((id, has))
        return seats

    def with_permits(self) -> None:
        permits = self.random.randint(1, 2)
        has = self.mine("HAS")
        used = self.page[has] // 256 + 1
        with self.semaphore.acquire(permits):
            self.page[has] = used * 256 + permits
            self.let_others_run()
            seen, again = self.look(), self.look()
            seen, again = (
                [(id, has) for id, has in seats if not self.is_killed(id)] for seats in (seen, again)
            )
            if seen == again:
                out = sum(has % 256 for _, has in seen)
                if out > NUMBERS["PERMITS"]:
                    raise Broken(f"more permits are out than there are: {out}")
                self.count("SNAPSHOTS")
            self.page[has] = used * 256

    def check_limits(self) -> None:
        if self.few.hit(TEXTS["KEY"]):
            self.count("FEW_ADMITTED")
        if self.rate.hit(TEXTS["KEY"]):
            self.count("RATE_ADMITTED")

    def add(self) -> None:
        self.counter.add(1)
        self.count("ADDED")

    def work(self) -> None:
        works = (
            self.alone,
            self.beside_others,
            self.two_at_once,
            self.with_permits,
            self.check_limits,
            self.add,
        )
        while self.page[NUMBERS["STOP"]] == 0:
            self.random.choice(works)()


def main() -> None:
    _, url, path, seat, id = sys.argv
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        page = memoryview(mapped).cast("Q")
        try:
            Worker(url, page, int(seat), int(id)).work()
        except (Broken, sprag.Error) as error:
            sys.exit(f"Python worker {id}: {error}")
        finally:
            page.release()


if __name__ == "__main__":
    main()
