"""Rate limits of functions."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import logging
import time
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeVar, cast

import sprag
from sprag.web._keys import bounded
from sprag.web._lazy import LazyLimiter
from sprag.web._refusal import RateLimitedError

Function = TypeVar("Function", bound=Callable[..., Any])

_log = logging.getLogger("sprag.web")


class _Limiter(Protocol):
    """What `limit` asks: a `Limiter`, a `JointLimiter` or a `LazyLimiter`."""

    def hit(self, key: str | bytes, cost: int = ..., /) -> Any: ...


def limit(
    limiter: _Limiter,
    *,
    key: str | bytes | Callable[..., str | bytes] | None = None,
    cost: int | Callable[..., int] = 1,
    wait: float = 0,
    on_error: Literal["raise", "allow"] = "raise",
) -> Callable[[Function], Function]:
    """Limits how often a function is called, a coroutine's too: `@limit(limiter, key=lambda user: user)`.

    `key` says whom a call counts for: a function of the call's arguments, or one key for all calls; if it is not
    given, the function's own name. So does `cost` say how much it takes. A call beyond the limit raises
    `RateLimitedError`, and the function is not run.

    With `wait`, in seconds, a call takes the next free place, if that comes within so long, and waits for it; a
    coroutine without holding up its loop. If that wait is interrupted, the place is given back. Joint limiters and
    sliding windows have no places.

    A `LazyLimiter` can be used before a server forks, and is opened by each process. What goes wrong at the
    limiter is raised (`on_error="raise"`, the default), or the function is run all the same (`"allow"`), which is
    logged once.
    """
    if on_error not in ("raise", "allow"):
        raise ValueError(f"on_error is {on_error!r}; it must be 'raise' or 'allow'")
    if not wait >= 0:
        raise ValueError(f"wait is {wait}; it must be seconds, not negative")
    if wait and not hasattr(limiter, "reserve"):
        raise TypeError(
            f"wait needs a limiter that takes reservations, not {type(limiter).__name__}"
        )
    is_failing = False

    def decorate(function: Function) -> Function:
        name = f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"
        if wait and inspect.isasyncgenfunction(function):
            raise TypeError("an asynchronous generator has nobody who could wait before it begins")

        def take(args: Any, kwargs: Any) -> Any:
            """The decision, if it is one to wait for."""
            nonlocal is_failing
            of = name if key is None else key(*args, **kwargs) if callable(key) else key
            units = cost(*args, **kwargs) if callable(cost) else cost
            try:
                if wait:
                    decision = cast(sprag.Limiter, limiter).reserve(bounded(of), units, wait)
                else:
                    decision = limiter.hit(bounded(of), units)
            except sprag.Error as error:
                if on_error == "raise" or isinstance(error, sprag.BoundsError):
                    raise
                if not is_failing:
                    is_failing = True
                    _log.error("%s is called without its limit", name, exc_info=error)
                return None
            is_failing = False
            if not decision.allowed:
                raise RateLimitedError(limiter, of, decision)
            return decision if wait and decision.act_after > 0 else None

        def give_back(decision: Any) -> None:
            # What ended the wait is on its way, and nothing is to take its place.
            with contextlib.suppress(sprag.Error):
                cast(sprag.Limiter, limiter).refund(decision)

        if any(map(inspect.iscoroutinefunction, (function, type(function).__call__))):

            @functools.wraps(function)
            async def asynchronous(*args: Any, **kwargs: Any) -> Any:
                if isinstance(limiter, LazyLimiter):
                    # What goes wrong, it says again when it is asked.
                    with contextlib.suppress(sprag.Error):
                        await limiter.open()
                if (place := take(args, kwargs)) is not None:
                    try:
                        await asyncio.sleep(place.act_after)
                    except BaseException:
                        give_back(place)
                        raise
                return await function(*args, **kwargs)

            return cast(Function, asynchronous)

        @functools.wraps(function)
        def synchronous(*args: Any, **kwargs: Any) -> Any:
            if (place := take(args, kwargs)) is not None:
                try:
                    time.sleep(place.act_after)
                except BaseException:
                    give_back(place)
                    raise
            return function(*args, **kwargs)

        return cast(Function, synchronous)

    return decorate
