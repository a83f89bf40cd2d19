"""What only ASGI has: WebSockets, the lifespan, a loop that must go on."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import sprag
from sprag import web


def scope_of(kind: str, **more: Any) -> Any:
    return {"type": kind, "path": "/", "headers": [], "client": ("192.0.2.1", 1), **more}


async def run(app: Any, scope: Any, *received: Any) -> list[Any]:
    """What is sent, after these messages were received."""
    sent: list[Any] = []
    messages = list(received)

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    assert not messages, "everything was received"
    return sent


async def accepting(scope: Any, receive: Any, send: Any) -> None:
    assert (await receive())["type"] == "websocket.connect"
    await send({"type": "websocket.accept"})


def test_opening_a_websocket_is_a_request(space: sprag.Space) -> None:
    app = web.ASGIMiddleware(accepting, space, [web.Limit("a", "1/hour", methods=["GET"])])
    connect = {"type": "websocket.connect"}
    [accept] = asyncio.run(run(app, scope_of("websocket"), connect))
    assert accept["type"] == "websocket.accept"
    assert (b"ratelimit", b'"a";r=0;t=3600') in accept["headers"]
    [close] = asyncio.run(run(app, scope_of("websocket"), connect))
    assert (close["type"], close["code"]) == ("websocket.close", 1008)


def test_a_refused_websocket_is_answered_in_full_where_the_server_can(space: sprag.Space) -> None:
    app = web.ASGIMiddleware(accepting, space, [web.Limit("a", "1/hour", cost=2)])
    scope = scope_of("websocket", extensions={"websocket.http.response": {}})
    start, body = asyncio.run(run(app, scope, {"type": "websocket.connect"}))
    assert (start["type"], start["status"]) == ("websocket.http.response.start", 429)
    assert body["type"] == "websocket.http.response.body" and b"quota-exceeded" in body["body"]


def test_the_space_is_opened_when_the_server_starts(tmp_path: Path) -> None:
    passed: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        passed.append(scope["type"])

    limited = web.ASGIMiddleware(app, f"shm:{tmp_path}/region", [web.Limit("a", "1/hour")])
    assert not (tmp_path / "region").exists(), "not when it is made"
    asyncio.run(run(limited, {"type": "lifespan"}))
    assert passed == ["lifespan"]
    assert (tmp_path / "region").exists()


def test_the_loop_goes_on_while_the_space_is_opened(space: sprag.Space) -> None:
    """The opening waits for what only the loop can do meanwhile."""
    did_go_on = threading.Event()
    opened_by: list[int] = []

    def open_space() -> sprag.Space:
        opened_by.append(threading.get_ident())
        assert did_go_on.wait(60)
        return space

    async def ok(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    app = web.ASGIMiddleware(ok, open_space, [web.Limit("a", "3/hour")], on_error="refuse")

    async def main() -> list[int]:
        requests = [asyncio.create_task(run(app, scope_of("http", method="GET"))) for _ in range(5)]
        while not opened_by:
            await asyncio.sleep(0)
        did_go_on.set()
        return sorted([(await request)[0]["status"] for request in requests])

    assert asyncio.run(main()) == [200, 200, 200, 429, 429]
    assert len(opened_by) == 1, "once for all"
    assert opened_by[0] != threading.get_ident()
