"""Who runs, where a thread may have several: tasks or greenlets that take turns in it."""

from __future__ import annotations

import sys


def current() -> object | None:
    """The task that runs, else the greenlet; `None` where this thread has neither. Who needs neither asyncio nor
    greenlets has not imported them."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        task: object = asyncio.current_task()
        if task is not None:
            return task
    greenlet = sys.modules.get("greenlet")
    here: object = None if greenlet is None else greenlet.getcurrent()
    return here
