"""A writer that is stopped in time: the file takes no line of a holder that has lost the lock meanwhile."""

from __future__ import annotations

import sprag


class Journal:
    """What the lock protects. It keeps the fence beside its data, and asks it before each write."""

    def __init__(self, space: sprag.Space) -> None:
        self._fence = space.fence("journal")
        self.lines: list[str] = []

    def write(self, token: int, line: str) -> None:
        self._fence.admit(token)
        self.lines.append(line)


def main() -> None:
    clock = sprag.ManualClock()
    space = sprag.open("mem:", clock=clock)
    lock = space.lock("journal", ttl=10)
    journal = Journal(space)

    slow = lock.acquire()
    journal.write(slow.token, "written in time")
    clock.advance(11)  # It was paused for longer than its lease.

    with lock as fast:
        journal.write(fast.token, "written by the next holder")
    try:
        journal.write(slow.token, "written too late")
    except sprag.StaleError as error:
        print(error)
    print(*journal.lines, sep="\n")


if __name__ == "__main__":
    main()
