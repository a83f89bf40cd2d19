"""Which reactor an event loop has. It lives with the loop: it is an attribute of it."""

from __future__ import annotations

import asyncio

from sprag._sprag import Reactor

_NAME = "_sprag_reactor"


def of_running_loop() -> tuple[asyncio.AbstractEventLoop, Reactor]:
    """The loop that runs in this thread and its reactor, which is made for the first wait."""
    loop = asyncio.get_running_loop()
    reactor = getattr(loop, _NAME, None)
    if not isinstance(reactor, Reactor):
        reactor = Reactor()
        loop.add_reader(reactor.fileno(), reactor.wake)
        setattr(loop, _NAME, reactor)
    return loop, reactor
