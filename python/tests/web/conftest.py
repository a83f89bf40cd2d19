"""What the tests of `sprag.web` share: both middlewares behind one way to call them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import http_sfv.list
import pytest

from sprag import web


@dataclass
class Response:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def all(self, name: str) -> list[str]:
        return [value for field, value in self.headers if field.lower() == name.lower()]

    def one(self, name: str) -> str | None:
        values = self.all(name)
        assert len(values) <= 1, (name, values)
        return values[0] if values else None

    def items(self, name: str) -> list[tuple[Any, dict[str, Any]]]:
        """The members of a list of a structured field."""
        values = self.all(name)
        return parsed(", ".join(values)) if values else []


def parsed(text: str) -> list[tuple[Any, dict[str, Any]]]:
    members = http_sfv.list.List()
    members.parse(text.encode())
    return [(member.value, dict(member.params)) for member in members]


@dataclass
class Served:
    """An application under a middleware."""

    call: Callable[..., Response]
    status: int = 200
    raises: Exception | None = None
    has_begun: bool = False
    """Whether it begins to answer before it raises."""
    called: list[str] = field(default_factory=list)

    def __call__(
        self,
        path: str = "/",
        *,
        method: str = "GET",
        peer: str | None = "192.0.2.1",
        headers: Iterable[tuple[str, str]] = (),
        **more: Any,
    ) -> Response:
        return self.call(path, method, peer, list(headers), more)


Serve = Callable[..., Served]


def serve_wsgi(*arguments: Any, **options: Any) -> Served:
    def app(environ: Any, start_response: Any) -> list[bytes]:
        served.called.append(environ["PATH_INFO"])
        if served.raises is None or served.has_begun:
            start_response(f"{served.status} Whatever", [("X-App", "1")])
        if served.raises is not None:
            raise served.raises
        return [b"app"]

    middleware = web.WSGIMiddleware(app, *arguments, **options)

    def call(
        path: str,
        method: str,
        peer: str | None,
        headers: list[tuple[str, str]],
        more: Mapping[str, Any],
    ) -> Response:
        environ = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": path.encode().decode("latin-1"),
            "REMOTE_ADDR": peer or "",
            **{f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers},
            **more,
        }
        started: list[Any] = []
        body = b"".join(middleware(environ, lambda *start: started.append(start)))  # type: ignore[arg-type]
        [(status, fields)] = started
        return Response(int(status.split()[0]), fields, body)

    served = Served(call)
    return served


def serve_asgi(*arguments: Any, **options: Any) -> Served:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        served.called.append(scope["path"])
        if served.raises is None or served.has_begun:
            start = {"status": served.status, "headers": [(b"x-app", b"1")]}
            await send({"type": "http.response.start", **start})
        if served.raises is not None:
            raise served.raises
        await send({"type": "http.response.body", "body": b"app"})

    middleware = web.ASGIMiddleware(app, *arguments, **options)

    def call(
        path: str,
        method: str,
        peer: str | None,
        headers: list[tuple[str, str]],
        more: Mapping[str, Any],
    ) -> Response:
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "headers": [
                (name.lower().encode(), value.encode("latin-1")) for name, value in headers
            ],
            "client": None if peer is None else (peer, 1234),
            **more,
        }
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "http.request"}

        asyncio.run(middleware(scope, receive, send))
        start, *rest = sent
        fields = [(name.decode(), value.decode()) for name, value in start["headers"]]
        return Response(start["status"], fields, b"".join(message["body"] for message in rest))

    served = Served(call)
    return served


@pytest.fixture(params=[serve_asgi, serve_wsgi], ids=["asgi", "wsgi"])
def serve(request: pytest.FixtureRequest) -> Serve:
    """Makes an application under a middleware, once of each kind."""
    made: Serve = request.param
    return made
