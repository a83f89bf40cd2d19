"""What each process opens for itself when it first needs it: spaces, and limiters in them.

Servers fork, and what was opened before a fork is of no use after it. So whatever is here is forgotten in forked
children, and opened anew when the space under it was replaced.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Generic, Literal, TypeVar

import sprag

T = TypeVar("T")

SpaceSource = str | sprag.Space | Callable[[], sprag.Space]
"""A URL, a space that is open, or a function that opens one."""

STALE = (sprag.ForkedError, sprag.ReplacedError, sprag.LimiterGoneError, sprag.ClosedError)
"""Errors that opening anew may cure."""

# After an opening that failed, how long the next ones fail at once.
_RETRY_SECONDS = 1.0


class PerProcess(Generic[T]):
    """One value for each process, made when first asked for, by whichever thread comes first."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._clear()
        _all.add(self)

    def _clear(self) -> None:
        self._lock = threading.Lock()
        self._value: T | None = None
        self._failed: tuple[Exception, float] | None = None

    def get(self) -> T:
        """The value. It may take what opening a space takes, which is some system calls, and up to some seconds
        while another process makes or resizes the region."""
        value = self._value
        if value is not None:
            return value
        self._raise_while_failed()
        with self._lock:
            value = self._value
            if value is None:
                self._raise_while_failed()
                try:
                    value = self._value = self._make()
                    self._failed = None
                except Exception as error:
                    self._failed = (error, time.monotonic())
                    raise
            return value

    async def get_async(self) -> T:
        """The same. If it has to be made, another thread does that."""
        value = self._value
        if value is not None:
            return value
        self._raise_while_failed()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            # Another library's loop.
            return self.get()
        return await loop.run_in_executor(None, self.get)

    def forget(self, value: T) -> None:
        """The value is of no use any more. Without the lock, which a loop is not to wait for: if this takes away
        what another thread has made just now, that is made once more."""
        if self._value is value:
            self._value = None

    def _raise_while_failed(self) -> None:
        failed = self._failed
        if failed is not None and time.monotonic() - failed[1] < _RETRY_SECONDS:
            raise failed[0].with_traceback(None)


_all: weakref.WeakSet[PerProcess[Any]] = weakref.WeakSet()


def _clear_in_child() -> None:
    for each in list(_all):
        each._clear()


os.register_at_fork(after_in_child=_clear_in_child)


def opener(space: SpaceSource) -> Callable[[], sprag.Space]:
    """What opens the space."""
    if isinstance(space, str):
        url = space
        return lambda: sprag.open(url)
    if isinstance(space, sprag.Space):
        opened = space
        return lambda: opened
    if callable(space):
        return space
    raise TypeError(
        f"space must be a URL, a Space or a function that opens one, not {type(space).__name__}"
    )


def written(
    name: str,
    rate: str,
    burst: int | None,
    window: Literal["fixed", "sliding"] | None,
    cost: int = 1,
) -> str:
    """The limit as its limiter will tell it. Refuses what no limiter can be opened with or asked for, before any
    space is."""
    with sprag.open("mem:") as space:
        limiter = space.limiter(name, rate, burst, window=window)
        limiter.test(name, cost)
        return limiter.limit


class LazyLimiter:
    """A limiter that each process opens when it first asks it, so that it can be made at import, before servers
    fork: `LazyLimiter("shm:mail", "mail", "10/second")`.

    Unlike `Space.limiter`, it changes the limit of a limiter that is there already, so that a program's new
    version brings its new limit; `update=False` makes that an error.
    """

    def __init__(
        self,
        space: SpaceSource,
        name: str,
        rate: str,
        burst: int | None = None,
        *,
        window: Literal["fixed", "sliding"] | None = None,
        update: bool = True,
    ) -> None:
        self._name = name
        self._limit = written(name, rate, burst, window)
        open_space = opener(space)
        self._limiter = PerProcess(
            lambda: open_space().limiter(name, rate, burst, window=window, update=update)
        )

    @property
    def name(self) -> str:
        """The limiter's name."""
        return self._name

    @property
    def limit(self) -> str:
        """Its limit, as text."""
        return self._limit

    def hit(self, key: str | bytes, cost: int = 1) -> sprag.Decision:
        """As `Limiter.hit`."""
        return self._ask(lambda limiter: limiter.hit(key, cost))

    def test(self, key: str | bytes, cost: int = 1) -> sprag.Decision:
        """As `Limiter.test`."""
        return self._ask(lambda limiter: limiter.test(key, cost))

    def reserve(self, key: str | bytes, cost: int, wait_max: float) -> sprag.Decision:
        """As `Limiter.reserve`."""
        return self._ask(lambda limiter: limiter.reserve(key, cost, wait_max))

    def refund(self, decision: sprag.Decision) -> float | None:
        """As `Limiter.refund`."""
        return self._limiter.get().refund(decision)

    async def open(self) -> None:
        """Opens it, without holding up the loop: another thread waits if the region is being made or resized."""
        await self._limiter.get_async()

    def _ask(self, question: Callable[[sprag.Limiter], sprag.Decision]) -> sprag.Decision:
        limiter = self._limiter.get()
        try:
            return question(limiter)
        except STALE:
            self._limiter.forget(limiter)
            return question(self._limiter.get())

    def __repr__(self) -> str:
        return f"<sprag.web.LazyLimiter {self._name!r} {self._limit}>"
