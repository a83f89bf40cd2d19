"""Limits of functions."""

from __future__ import annotations

import asyncio
import logging
import pickle
import signal
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import sprag
from sprag import web
from web.conftest import parsed


def test_a_function_beyond_its_limit_is_not_run(clocked: sprag.Space) -> None:
    ran: list[str] = []

    @web.limit(clocked.limiter("mail", "2/minute"), key=lambda to, text="": to)
    def send(to: str, text: str = "") -> int:
        """Sends."""
        ran.append(to)
        return len(ran)

    assert [send("ann"), send("ann", text="b"), send(to="bob")] == [1, 2, 3]
    with pytest.raises(
        web.RateLimitedError, match="mail is used up for 'ann': Retry after 30 seconds"
    ) as raised:
        send("ann")
    assert ran == ["ann", "ann", "bob"]
    assert (send.__name__, send.__doc__) == ("send", "Sends.")
    error = raised.value
    assert isinstance(error, sprag.Error)
    assert (error.name, error.key, error.retry_after) == ("mail", "ann", 30)
    assert not error.decision.allowed
    assert error.status == 429
    assert error.headers["Retry-After"] == "30"
    assert parsed(error.headers["RateLimit"]) == [("mail", {"r": 0, "t": 30})]
    assert parsed(error.headers["RateLimit-Policy"]) == [("mail", {"q": 2, "w": 60})]
    assert b"quota-exceeded" in error.body
    copy = pickle.loads(pickle.dumps(error))
    assert isinstance(copy, web.RateLimitedError)
    assert str(copy) == str(error) and copy.retry_after == 30
    assert (copy.name, copy.key) == (error.name, error.key)
    assert (copy.headers, copy.body) == (error.headers, error.body)


def test_a_coroutine_function_stays_one(clocked: sprag.Space) -> None:
    @web.limit(clocked.limiter("mail", "1/minute"))
    async def send(to: str) -> str:
        return to

    assert asyncio.iscoroutinefunction(send)

    async def main() -> None:
        assert await send("ann") == "ann"
        with pytest.raises(web.RateLimitedError):
            await send("bob")

    asyncio.run(main())


def test_a_cost_is_told_from_the_arguments(clocked: sprag.Space) -> None:
    @web.limit(clocked.limiter("bytes", "10/minute"), key="all", cost=len)
    def write(data: bytes) -> None: ...

    write(b"1234567")
    with pytest.raises(web.RateLimitedError) as raised:
        write(b"1234")
    assert raised.value.decision.remaining == 3
    write(b"123")


def test_several_limits_are_told_each(clocked: sprag.Space) -> None:
    @web.limit(clocked.joint_limiter("login", ["1/minute", "10/day"]), key="ann")
    def login() -> None: ...

    login()
    with pytest.raises(web.RateLimitedError) as raised:
        login()
    assert parsed(raised.value.headers["RateLimit-Policy"]) == [
        ("login 1/minute", {"q": 1, "w": 60}),
        ("login 10/day", {"q": 10, "w": 86_400}),
    ]
    assert parsed(raised.value.headers["RateLimit"]) == [("login 1/minute", {"r": 0, "t": 60})]


def test_methods_are_limited_too(clocked: sprag.Space) -> None:
    class Mailer:
        @web.limit(clocked.limiter("mail", "1/minute"), key=lambda self, to: to)
        def send(self, to: str) -> str:
            return to

    assert Mailer().send("ann") == "ann"
    with pytest.raises(web.RateLimitedError):
        Mailer().send("ann")


def test_objects_that_are_called_are_limited_too(clocked: sprag.Space) -> None:
    class Send:
        def __call__(self) -> str:
            return "sent"

    class SendLater:
        async def __call__(self) -> str:
            return "sent"

    send = web.limit(clocked.limiter("mail", "1/minute"))(Send())
    assert send() == "sent"
    with pytest.raises(web.RateLimitedError):
        send()
    send_later = web.limit(clocked.limiter("later", "1/minute"), wait=0.1)(SendLater())
    assert asyncio.run(send_later()) == "sent"


def test_generators_are_limited_when_they_are_made(clocked: sprag.Space) -> None:
    @web.limit(clocked.limiter("a", "1/minute"))
    async def numbers() -> AsyncIterator[int]:
        yield 1

    async def main() -> list[int]:
        return [number async for number in numbers()]

    assert asyncio.run(main()) == [1]
    with pytest.raises(web.RateLimitedError):
        numbers()
    with pytest.raises(TypeError, match="generator"):
        web.limit(clocked.limiter("a", "1/minute"), wait=1)(numbers.__wrapped__)  # type: ignore[attr-defined]


def test_a_call_waits_for_its_place(clock: sprag.ManualClock, clocked: sprag.Space) -> None:
    @web.limit(clocked.limiter("mail", "1000/second", burst=1), key="all", wait=0.0021)
    def send() -> None: ...

    # By the clock of the space all come at once, so that each waits a millisecond longer than the one before.
    for _ in range(3):
        send()
    with pytest.raises(web.RateLimitedError) as raised:
        send()
    assert raised.value.retry_after == 0.003


def test_a_wait_that_is_interrupted_gives_its_place_back(clocked: sprag.Space) -> None:
    limiter = clocked.limiter("mail", "1/hour", burst=1)

    @web.limit(limiter, key="all", wait=7200)
    def send() -> None: ...

    def interrupt(number: int, frame: object) -> None:
        if limiter.test("all").retry_after == 7200:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt

    send()
    before = signal.signal(signal.SIGALRM, interrupt)
    # Again and again, until it waits.
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        with pytest.raises(KeyboardInterrupt):
            send()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert limiter.test("all").retry_after == 3600


def test_a_place_that_cannot_be_given_back_hides_no_cancellation(clocked: sprag.Space) -> None:
    class Replaced:
        """A limiter whose region is replaced while somebody waits."""

        def __init__(self) -> None:
            self.limiter = clocked.limiter("mail", "1/hour", burst=1)

        def hit(self, key: str | bytes, cost: int = 1) -> sprag.Decision:
            return self.limiter.hit(key, cost)

        def reserve(self, key: str | bytes, cost: int, wait_max: float) -> sprag.Decision:
            return self.limiter.reserve(key, cost, wait_max)

        def refund(self, decision: sprag.Decision) -> float | None:
            raise sprag.ReplacedError("another region is in its place")

    @web.limit(Replaced(), key="all", wait=7200)
    async def send() -> None: ...

    async def main() -> None:
        await send()
        waiting = asyncio.create_task(send())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())


def test_a_coroutine_waits_without_its_loop_and_gives_its_place_back_if_cancelled(
    clocked: sprag.Space,
) -> None:
    limiter = clocked.limiter("mail", "1/hour", burst=1)
    ran: list[int] = []

    @web.limit(limiter, key="all", wait=7200)
    async def send(number: int) -> None:
        ran.append(number)

    async def main() -> None:
        await send(1)
        waiting = asyncio.create_task(send(2))
        while limiter.hit("all", 0).retry_after_for(1) == 3600:
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())
    assert ran == [1]
    assert limiter.hit("all", 0).retry_after_for(1) == 3600


def test_what_goes_wrong_is_raised_or_let_pass(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def nowhere() -> sprag.Space:
        raise sprag.PlaceError("nowhere")

    lazy = web.LazyLimiter(nowhere, "a", "1/hour")

    @web.limit(lazy)
    def strict() -> None: ...

    @web.limit(lazy, on_error="allow")
    def lenient() -> str:
        return "ran"

    @web.limit(lazy, on_error="allow")
    async def lenient_async() -> str:
        return "ran"

    with pytest.raises(sprag.PlaceError):
        strict()
    with caplog.at_level(logging.INFO, logger="sprag.web"):
        assert [lenient() for _ in range(3)] == ["ran"] * 3
        assert len(caplog.records) == 1
    assert asyncio.run(lenient_async()) == "ran"


def test_a_coroutine_opens_its_limiter_beside_the_loop(space: sprag.Space) -> None:
    by: list[int] = []

    def open_space() -> sprag.Space:
        by.append(threading.get_ident())
        return space

    @web.limit(web.LazyLimiter(open_space, "a", "1/hour"))
    async def once() -> None: ...

    asyncio.run(once())
    assert by and by[0] != threading.get_ident()


def test_a_long_key_is_hashed(space: sprag.Space) -> None:
    @web.limit(space.limiter("a", "1/hour"), key=lambda key: key)
    def ask(key: str) -> None: ...

    for key in ["x" * 100_000, "x" * 100_001, ""]:
        ask(key)
        with pytest.raises(web.RateLimitedError):
            ask(key)


@pytest.mark.parametrize("wrong", [{"on_error": "ignore"}, {"wait": -1}, {"wait": float("nan")}])
def test_options_that_are_none_are_refused(space: sprag.Space, wrong: Any) -> None:
    with pytest.raises(ValueError):
        web.limit(space.limiter("a", "1/hour"), **wrong)


def test_a_joint_limiter_has_no_places_to_wait_for(space: sprag.Space) -> None:
    with pytest.raises(TypeError, match="reservations"):
        web.limit(space.joint_limiter("a", ["1/hour", "2/day"]), wait=1)
