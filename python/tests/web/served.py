"""What the applications under real servers share: limits from the environment, and answers that say by which
worker and when they were decided.

`X-Before` and `X-After` are nanoseconds of boot time, which is what the engine's time goes by: the decision lies
between them.
"""

from __future__ import annotations

import os
import time
from typing import Any

from sprag import web

BOOT = time.CLOCK_BOOTTIME


def space() -> str:
    return os.environ["TEST_SPACE"]


def limits() -> list[web.Limit]:
    window: Any = os.environ.get("TEST_WINDOW")
    burst = os.environ.get("TEST_BURST")
    return [
        web.Limit(
            "all",
            os.environ["TEST_RATE"],
            key="all",
            burst=int(burst) if burst else None,
            window=window,
        )
    ]


def told(before: int) -> list[tuple[str, str]]:
    after = time.clock_gettime_ns(BOOT)
    return [("X-Pid", str(os.getpid())), ("X-Before", str(before)), ("X-After", str(after))]


class TimedWSGI:
    def __init__(self, app: Any) -> None:
        self.app = web.WSGIMiddleware(app, space(), limits(), exempt=["/pid"], on_error="refuse")

    def __call__(self, environ: Any, start_response: Any) -> Any:
        before = time.clock_gettime_ns(BOOT)

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            return start_response(status, [*headers, *told(before)], exc_info)

        return self.app(environ, start)


class TimedASGI:
    def __init__(self, app: Any) -> None:
        self.app = web.ASGIMiddleware(app, space(), limits(), exempt=["/pid"], on_error="refuse")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        before = time.clock_gettime_ns(BOOT)

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                fields = [(name.encode(), value.encode()) for name, value in told(before)]
                message = {**message, "headers": [*message["headers"], *fields]}
            await send(message)

        await self.app(scope, receive, sending)
