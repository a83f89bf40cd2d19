"""Workers of a pre-forking server that share one limit: fork first, open after."""

from __future__ import annotations

import os

import sprag

WORKERS = 4
REQUESTS = 100


def work() -> int:
    """One worker: how many of its requests were admitted."""
    with sprag.open("shm:shared-limit-example") as space:
        api = space.limiter("api", "150/day")
        return sum(api.hit("everybody").allowed for _ in range(REQUESTS))


def main() -> None:
    children = []
    for _ in range(WORKERS):
        child = os.fork()
        if child == 0:
            os._exit(work())
        children.append(child)
    admitted = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    print(f"{sum(admitted)} of {WORKERS * REQUESTS} admitted, whoever asked first")


if __name__ == "__main__":
    main()
