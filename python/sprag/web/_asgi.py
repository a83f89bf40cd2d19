"""Rate limits around an ASGI 3 application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Literal

from sprag.web._lazy import SpaceSource
from sprag.web._limits import Limit, Limits, Verdict
from sprag.web._refusal import Fields, RateLimitedError, Refusal
from sprag.web._request import ASGIRequest, Request
from sprag.web._routes import Path

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

# The close code of WebSockets for what a policy forbids (RFC 6455).
_POLICY_VIOLATION = 1008


class ASGIMiddleware:
    """Rate limits around an ASGI application, HTTP requests and openings of WebSockets alike.

    `space` is a URL, which each worker opens for itself when it starts or the first request comes; or a function
    that opens a space; or one that is open, which must not be used by a process that forks later.

    `limits` are asked together: a request passes if all that apply to it admit it, and takes from all; or it is
    refused, and takes from none. At most 8 can apply to one request. `exempt` are paths that no limit is for, or a
    function of the request.

    A refused request is answered with status 429 and never reaches the application. `headers=False` keeps the
    fields `RateLimit` and `RateLimit-Policy` to those answers. `on_error` says what becomes of requests while the
    limits cannot be looked at: they pass (`"allow"`, the default), or get status 503 (`"refuse"`). That it began
    is logged once, to `sprag.web`, and that it ended.

    Where it stands among other middlewares decides what it sees: outside of one that authenticates, no user.
    """

    def __init__(
        self,
        app: Application,
        space: SpaceSource,
        limits: Iterable[Limit],
        *,
        exempt: Iterable[Path] | Callable[[Request], bool] = (),
        headers: bool = True,
        on_error: Literal["allow", "refuse"] = "allow",
    ) -> None:
        self.app = app
        self._limits = Limits(space, limits, exempt=exempt, headers=headers, on_error=on_error)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind == "lifespan":
            # Before the first request, where the server says when that is.
            await self._limits.open_async()
        if kind not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        verdict = await self._limits.check_async(ASGIRequest(scope))
        if verdict.refusal is not None:
            await _refuse(verdict.refusal, scope, receive, send)
            return
        sending = _Sending(send, verdict)
        try:
            await self.app(scope, receive, sending)
        except RateLimitedError as error:
            if sending.has_started:
                raise
            await _refuse(error._refusal, scope, None, send)


class _Sending:
    """Sends what the application does, with the limits' fields."""

    __slots__ = ("_send", "_verdict", "has_started")

    def __init__(self, send: Send, verdict: Verdict) -> None:
        self._send, self._verdict, self.has_started = send, verdict, False

    async def __call__(self, message: Message) -> None:
        if message["type"] in (
            "http.response.start",
            "websocket.accept",
            "websocket.http.response.start",
        ):
            self.has_started = True
            # A client that waits before it follows a redirection would wait for nothing.
            is_redirection = 300 <= message.get("status", 101) < 400
            if self._verdict.fields and not (self._verdict.is_used_up and is_redirection):
                message = {
                    **message,
                    "headers": [*message.get("headers", ()), *_encoded(self._verdict.fields)],
                }
        await self._send(message)


async def _refuse(refusal: Refusal, scope: Scope, receive: Receive | None, send: Send) -> None:
    prefix = ""
    if scope["type"] == "websocket":
        if receive is not None:
            # The request to open it, which is to be taken before it is answered.
            await receive()
        if "websocket.http.response" not in scope.get("extensions", {}):
            # The server answers for itself, with status 403.
            await send(
                {"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": refusal.phrase}
            )
            return
        prefix = "websocket."
    start = {"status": refusal.status, "headers": _encoded(refusal.fields)}
    await send({"type": prefix + "http.response.start", **start})
    await send({"type": prefix + "http.response.body", "body": refusal.body})


def _encoded(fields: Fields) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("ascii"), value.encode("ascii")) for name, value in fields]
