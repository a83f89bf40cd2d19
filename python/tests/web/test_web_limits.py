"""Which limits a request is under, and what becomes of it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sprag
from sprag import web
from web.conftest import Serve, serve_wsgi


@pytest.mark.parametrize(
    ("pattern", "matches", "others"),
    [
        ("/", ["/", ""], ["/a", "//a"]),
        (
            "/login",
            ["/login", "/login/"],
            ["/login/a", "/logins", "/Login", "/a/login", "/login\n"],
        ),
        ("/items/*", ["/items/5", "/items/5/", "/items/a b"], ["/items", "/items/", "/items/5/6"]),
        ("/items/*/tags", ["/items/5/tags"], ["/items/5/6/tags", "/items//tags"]),
        ("/files/*.pdf", ["/files/a.pdf"], ["/files/a.txt", "/files/a/b.pdf"]),
        ("/api/**", ["/api", "/api/", "/api/a/b/c", "/api/a\nb"], ["/apis", "/a/api"]),
        ("/**/edit", ["/a/edit", "/a/b/edit"], ["/a/edit/b"]),
        ("/**", ["/", "/a/b", ""], []),
        ("/a.b", ["/a.b"], ["/axb"]),
        (re.compile("/v[12]/.*"), ["/v1/a"], ["/v3/a", "/x/v1/a"]),
    ],
)
def test_paths_match_whole(
    serve: Serve, space: sprag.Space, pattern: Any, matches: list[str], others: list[str]
) -> None:
    served = serve(space, [web.Limit("a", "1000/hour", paths=[pattern])])
    assert [path for path in matches + others if served(path).all("RateLimit")] == matches


def test_methods_are_chosen_and_head_is_get(serve: Serve, space: sprag.Space) -> None:
    served = serve(
        space,
        [
            web.Limit("r", "9/hour", methods=["get"]),
            web.Limit("w", "9/hour", methods=["POST", "PUT"]),
        ],
    )
    told = {
        method: [name for name, _ in served(method=method).items("RateLimit")]
        for method in ["GET", "HEAD", "POST", "PUT", "DELETE"]
    }
    assert told == {"GET": ["r"], "HEAD": ["r"], "POST": ["w"], "PUT": ["w"], "DELETE": []}


def test_exempt_paths_are_under_no_limit(serve: Serve, space: sprag.Space) -> None:
    served = serve(space, [web.Limit("a", "1/hour")], exempt=["/healthz", "/static/**"])
    assert [served(path).status for path in ["/", "/healthz", "/static/a/b", "/"]] == [
        200,
        200,
        200,
        429,
    ]
    inside = serve(
        space, [web.Limit("b", "1/hour")], exempt=lambda request: request.peer == "10.0.0.1"
    )
    assert [inside(peer="10.0.0.1").status for _ in range(3)] == [200] * 3
    assert [inside().status for _ in range(2)] == [200, 429]


def test_a_key_of_none_is_no_limit(serve: Serve, space: sprag.Space) -> None:
    served = serve(space, [web.Limit("a", "1/hour", key=lambda request: None)])
    assert [served().status for _ in range(3)] == [200] * 3


def test_a_request_takes_from_all_its_limits_or_from_none(serve: Serve, space: sprag.Space) -> None:
    served = serve(
        space,
        [web.Limit("client", "10/hour"), web.Limit("login", "1/hour", key="all", paths=["/login"])],
    )
    assert [served("/login").status for _ in range(5)] == [200, 429, 429, 429, 429]
    assert space.limiter("client", "10/hour").hit("address/192.0.2.1", 0).remaining == 9
    assert served("/").status == 200


def test_a_refused_request_does_not_reach_the_application(serve: Serve, space: sprag.Space) -> None:
    served = serve(space, [web.Limit("a", "1/hour")])
    served("/first")
    refused = served("/second")
    assert served.called == ["/first"]
    assert refused.one("x-app") is None


def test_a_refused_head_has_no_content_where_no_server_takes_it_away(space: sprag.Space) -> None:
    served = serve_wsgi(space, [web.Limit("a", "1/hour")])
    served()
    refused = served(method="HEAD")
    assert (refused.status, refused.body) == (429, b"")
    assert refused.one("Content-Length") == str(len(served().body))


def test_without_limits_the_application_is_as_it_was(serve: Serve) -> None:
    response = serve("mem:", [])()
    assert [(name.lower(), value) for name, value in response.headers] == [("x-app", "1")]
    assert (response.status, response.body) == (200, b"app")


def test_eight_limits_are_decided_together_and_nine_are_too_many(
    serve: Serve, space: sprag.Space
) -> None:
    limits = [web.Limit(str(at), "9/hour", paths=["/a"] if at == 8 else []) for at in range(9)]
    served = serve(space, limits)
    assert len(served("/").items("RateLimit")) == 8
    with pytest.raises(sprag.BoundsError):
        served("/a")
    with pytest.raises(ValueError, match="at most 8"):
        serve(space, [web.Limit(str(at), "9/hour") for at in range(9)])


@pytest.mark.parametrize(
    "wrong",
    [
        {"rate": "100"},
        {"rate": "100/minute", "burst": -1},
        {"rate": "100/minute", "burst": 5, "window": "fixed"},
        {"rate": "100/minute", "window": "tumbling"},
        {"rate": "100/minute", "paths": ["login"]},
        {"rate": "100/minute", "paths": "/login"},
        {"rate": "100/minute", "methods": "GET"},
        {"rate": "100/minute", "cost": -1},
        {"rate": "100/minute", "cost": 2**64},
        {"rate": "100/minute", "cost": 1.5},
        {"rate": "100/minute", "cost": "1"},
        {"rate": "100/minute", "key": 5},
        {"rate": "100/minute", "unit": "é"},
    ],
)
def test_what_is_no_limit_is_refused_where_it_is_written(wrong: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        web.Limit("a", **wrong)


def test_options_that_are_none_are_refused(serve: Serve) -> None:
    with pytest.raises(ValueError, match="on_error"):
        serve("mem:", [], on_error="ignore")
    with pytest.raises(ValueError, match="same name"):
        serve("mem:", [web.Limit("a", "1/s"), web.Limit("a", "2/s")])
    with pytest.raises(TypeError, match="space"):
        serve(5, [])


def test_a_new_version_brings_its_new_limit(serve: Serve, tmp_path: Path) -> None:
    url = f"shm:{tmp_path}/region"
    old = serve(url, [web.Limit("a", "2/hour")])
    old(), old()
    new = serve(url, [web.Limit("a", "5/hour")])
    response = new()
    assert response.items("RateLimit-Policy")[0][1]["q"] == 5
    assert response.items("RateLimit")[0][1]["r"] == 2, "what was used counts"


def test_another_limit_may_be_an_error(serve: Serve, tmp_path: Path) -> None:
    url = f"shm:{tmp_path}/region"
    serve(url, [web.Limit("a", "2/hour")])()
    held = serve(url, [web.Limit("a", "5/hour", update=False)], on_error="refuse")
    assert held().status == 503


@pytest.mark.parametrize(("on_error", "status"), [("allow", 200), ("refuse", 503)])
def test_while_limits_cannot_be_looked_at_requests_pass_or_not_and_it_is_logged_once(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture, on_error: str, status: int
) -> None:
    is_there = False

    def open_space() -> sprag.Space:
        if not is_there:
            raise sprag.PlaceError("not yet")
        return sprag.open(f"shm:{tmp_path}/region")

    served = serve(open_space, [web.Limit("a", "1/hour")], on_error=on_error)
    with caplog.at_level(logging.INFO, logger="sprag.web"):
        responses = [served() for _ in range(5)]
        assert [response.status for response in responses] == [status] * 5
        assert all(not response.all("RateLimit") for response in responses)
        [record] = caplog.records
        assert record.levelno == logging.ERROR and record.exc_info is not None
        is_there = True
        # It is not tried at each request: so ask until it is again.
        while not served().all("RateLimit"):
            pass
        assert served().status == 429
        assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.INFO]


def test_a_region_that_is_replaced_is_opened_again(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "region"
    served = serve(f"shm:{path}", [web.Limit("a", "1/hour")], on_error="refuse")
    assert [served().status for _ in range(2)] == [200, 429]
    path.unlink()
    # Looked for now and then, not at each request.
    while served().status == 429:
        pass
    assert served().status == 429
    assert path.exists()


def test_a_mistake_in_a_cost_is_the_applications(serve: Serve, space: sprag.Space) -> None:
    served = serve(space, [web.Limit("a", "1/hour", cost=lambda _: -1)])
    with pytest.raises(sprag.BoundsError):
        served()


def test_what_the_application_raises_after_it_began_to_answer_is_its_own(
    serve: Serve, space: sprag.Space
) -> None:
    @web.limit(space.limiter("mail", "1/minute"), key="all")
    def send() -> None: ...

    send()
    with pytest.raises(web.RateLimitedError) as raised:
        send()
    served = serve(space, [web.Limit("a", "9/minute")])
    served.raises, served.has_begun = raised.value, True
    with pytest.raises(web.RateLimitedError):
        served()


def test_a_limited_function_in_the_application_is_answered_for(
    serve: Serve, space: sprag.Space
) -> None:
    mail = space.limiter("mail", "1/minute")

    @web.limit(mail, key="all")
    def send() -> None: ...

    send()
    served = serve(space, [web.Limit("a", "9/minute")])
    with pytest.raises(web.RateLimitedError) as raised:
        send()
    served.raises = raised.value
    response = served()
    assert response.status == 429
    assert response.one("Retry-After") == "60"
    assert [name for name, _ in response.items("RateLimit")] == ["mail"]
    assert response.body == raised.value.body


@pytest.mark.parametrize("is_late", [False, True])
def test_a_generator_is_an_application_too(space: sprag.Space, is_late: bool) -> None:
    """One that raises before it starts its response is answered for, and closed as the server asks."""
    mail = space.limiter("mail", "1/hour")

    @web.limit(mail, key="all")
    def send() -> None: ...

    done: list[str] = []

    def app(environ: Any, start_response: Any) -> Iterator[bytes]:
        try:
            if is_late:
                start_response("200 OK", [])
                yield b"a"
            send()
            start_response("200 OK", [])
            yield b"b"
        finally:
            done.append("closed")

    limited: Any = web.WSGIMiddleware(app, space, [web.Limit("a", "9/hour")])
    environ = {"REQUEST_METHOD": "GET", "REMOTE_ADDR": "::1"}
    started: list[tuple[str, dict[str, str]]] = []

    def start(status: str, headers: list[tuple[str, str]]) -> None:
        started.append((status, dict(headers)))

    send()
    body = limited(environ, start)
    content = iter(body)
    if is_late:
        assert next(content) == b"a"
        assert started[0][1]["RateLimit-Policy"] == '"a";q=9;w=3600'
        with pytest.raises(web.RateLimitedError):
            next(content)
    else:
        assert b"quota-exceeded" in b"".join(content)
        assert started[0][0] == "429 Too Many Requests"
        assert started[0][1]["RateLimit"].startswith('"mail";r=0;t=')
    body.close()
    assert done == ["closed"] and len(started) == 1
