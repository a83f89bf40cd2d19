"""The header fields, read back by a parser of structured fields."""

from __future__ import annotations

import json
from typing import Any

import pytest

import sprag
from sprag import web
from sprag.web._policy import Policy
from web.conftest import Serve, parsed


@pytest.mark.parametrize(
    ("limit", "params"),
    [
        ("100/minute", {"q": 100, "w": 60}),
        ("5/10s", {"q": 5, "w": 10}),
        ("1000/day;window=sliding", {"q": 1000, "w": 86_400}),
        ("7/week;window=fixed", {"q": 7, "w": 604_800}),
        ("100/minute;burst=20", {"q": 100, "w": 60, "sprag-burst": 20}),
        # Windows are whole seconds.
        ("100/500ms", {"q": 200, "w": 1}),
        ("1/1500ms", {"q": 2, "w": 3}),
        ("3/us", {"q": 3_000_000, "w": 1}),
        ("1/year", {"q": 1, "w": 31_536_000}),
        ("0/minute;burst=3", {"q": 0, "w": 60, "sprag-burst": 3}),
        # An integer has fifteen digits.
        ("18000000000/us", {"q": 999_999_999_999_999, "w": 1}),
    ],
)
def test_a_policy_tells_quota_and_window_in_whole_seconds(
    space: sprag.Space, limit: str, params: dict[str, Any]
) -> None:
    told = space.limiter("a", limit).limit
    assert parsed(Policy("a", told).item(None)) == [("a", params)]


@pytest.mark.parametrize(
    ("unit", "seconds"),
    [
        ("ns", 1),
        ("us", 1),
        ("ms", 1),
        ("s", 1),
        ("m", 60),
        ("h", 3_600),
        ("d", 86_400),
        ("w", 604_800),
    ],
)
def test_every_unit_that_a_limiter_writes_is_read(
    space: sprag.Space, unit: str, seconds: int
) -> None:
    for periods in (1, 3):
        told = space.limiter(str(periods), f"1/{periods}{unit}").limit
        [(_, params)] = parsed(Policy("a", told).item(None))
        assert params["w"] == periods * seconds


def test_names_units_and_partition_keys_have_the_types_of_the_draft() -> None:
    policy = Policy('say "hi" \\ twice', "10/minute", unit="content-bytes")
    [(name, params)] = parsed(policy.item(b"\x00\xffann"))
    assert name == 'say "hi" \\ twice'
    assert type(name) is str
    assert list(params.items()) == [
        ("q", 10),
        ("qu", "content-bytes"),
        ("w", 60),
        ("pk", b"\x00\xffann"),
    ]


def test_two_limits_are_two_members_in_the_order_given(serve: Serve, clocked: sprag.Space) -> None:
    served = serve(
        clocked,
        [
            web.Limit("burst", "10/second"),
            web.Limit("daily", "1000/day", window="fixed", partition_key=lambda _: b"p"),
        ],
    )
    response = served()
    assert response.status == 200
    assert response.one("x-app") == "1"
    assert response.items("RateLimit-Policy") == [
        ("burst", {"q": 10, "w": 1}),
        ("daily", {"q": 1000, "w": 86_400, "pk": b"p"}),
    ]
    [burst, (name, daily)] = response.items("RateLimit")
    assert burst == ("burst", {"r": 9, "t": 1})
    assert (name, daily["r"], daily["pk"]) == ("daily", 999, b"p")
    assert 1 <= daily["t"] <= 86_400
    assert response.one("Retry-After") is None


def test_a_bucket_tells_the_time_in_which_its_rest_comes_back(
    serve: Serve, clock: sprag.ManualClock, clocked: sprag.Space
) -> None:
    served = serve(clocked, [web.Limit("a", "4/minute")])
    rest = [served().items("RateLimit")[0][1] for _ in range(4)]
    assert rest == [{"r": 3, "t": 45}, {"r": 2, "t": 30}, {"r": 1, "t": 15}, {"r": 0, "t": 15}]
    clock.advance(4.5)
    refused = served()
    assert refused.status == 429
    assert refused.items("RateLimit") == [("a", {"r": 0, "t": 11})]
    assert refused.one("Retry-After") == "11", "10.5, rounded up"
    clock.advance(10.5)
    assert served().status == 200


def test_a_fixed_window_tells_when_the_next_begins(
    serve: Serve, clock: sprag.ManualClock, clocked: sprag.Space
) -> None:
    served = serve(clocked, [web.Limit("a", "2/minute", window="fixed")])
    first = served().items("RateLimit")[0][1]
    clock.advance(0.25)
    served()
    refused = served()
    told = refused.items("RateLimit")[0][1]
    assert refused.status == 429
    assert told["r"] == 0 and told["t"] in (first["t"], first["t"] - 1)
    assert refused.one("Retry-After") == str(told["t"])
    clock.advance(told["t"])
    assert served().items("RateLimit")[0][1]["r"] == 1


def test_no_field_of_a_refusal_lasts_longer_than_retry_after(
    serve: Serve, clocked: sprag.Space
) -> None:
    served = serve(
        clocked, [web.Limit("short", "1/second"), web.Limit("long", "1000/day", window="fixed")]
    )
    served()
    refused = served()
    assert refused.one("Retry-After") == "1"
    assert [name for name, _ in refused.items("RateLimit-Policy")] == ["short", "long"]
    assert refused.items("RateLimit") == [("short", {"r": 0, "t": 1})]


@pytest.mark.parametrize("names", [["short", "long"], ["long", "short"]])
def test_retry_after_is_that_of_the_limit_that_refuses_longest(
    serve: Serve, clocked: sprag.Space, names: list[str]
) -> None:
    rates = {"short": "1/second", "long": "1/minute"}
    served = serve(clocked, [web.Limit(name, rates[name]) for name in names])
    served()
    refused = served()
    assert refused.one("Retry-After") == "60"
    assert json.loads(refused.body)["violated-policies"] == names


def test_what_can_never_be_had_has_no_retry_after(serve: Serve, clocked: sprag.Space) -> None:
    served = serve(clocked, [web.Limit("a", "10/second", cost=11)])
    refused = served()
    assert refused.status == 429
    assert refused.one("Retry-After") is None
    assert refused.items("RateLimit") == [("a", {"r": 10, "t": 1})]


def test_a_dear_request_is_told_what_is_left(serve: Serve, clocked: sprag.Space) -> None:
    served = serve(
        clocked, [web.Limit("a", "10/second", cost=lambda request: int(request.path[1:]))]
    )
    served("/7")
    refused = served("/5")
    assert refused.items("RateLimit") == [("a", {"r": 3, "t": 1})]
    assert served("/3").status == 200, "nothing was taken by what was refused"


def test_a_refused_dear_request_may_come_again_at_the_end_of_the_window_that_is_told(
    serve: Serve, clock: sprag.ManualClock, clocked: sprag.Space
) -> None:
    served = serve(
        clocked, [web.Limit("a", "10/minute", cost=lambda request: int(request.path[1:]))]
    )
    served("/1")
    refused = served("/10")
    assert refused.one("Retry-After") == "6"
    assert refused.items("RateLimit") == [("a", {"r": 9, "t": 6})]
    clock.advance(6)
    assert served("/10").status == 200


@pytest.mark.parametrize("rate", ["7/minute", "100/second", "3/hour", "1/1500ms"])
@pytest.mark.parametrize("used", [1, 2, 6])
def test_who_uses_the_rest_in_each_window_of_a_bucket_is_never_refused(
    serve: Serve, clock: sprag.ManualClock, clocked: sprag.Space, rate: str, used: int
) -> None:
    served = serve(clocked, [web.Limit("a", rate, burst=8)])
    for _ in range(used):
        response = served()
    [(_, told)] = response.items("RateLimit")
    assert told["r"] == 8 - used
    for _ in range(5):
        assert [served().status for _ in range(told["r"])] == [200] * told["r"]
        clock.advance(told["t"])


def test_the_problem_is_that_of_the_draft(serve: Serve, clocked: sprag.Space) -> None:
    served = serve(clocked, [web.Limit("a", "1/minute")])
    served()
    refused = served()
    assert refused.one("Content-Type") == "application/problem+json"
    assert refused.one("Content-Length") == str(len(refused.body))
    assert json.loads(refused.body) == {
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Quota Exceeded",
        "status": 429,
        "detail": "Retry after 60 seconds.",
        "violated-policies": ["a"],
    }


def test_fields_of_what_passes_can_be_left_out(serve: Serve, clocked: sprag.Space) -> None:
    served = serve(clocked, [web.Limit("a", "1/minute")], headers=False)
    passed = served()
    assert passed.all("RateLimit") == passed.all("RateLimit-Policy") == []
    refused = served()
    assert refused.items("RateLimit") == [("a", {"r": 0, "t": 60})]


def test_a_limit_that_is_not_advertised_is_not_named(serve: Serve, clocked: sprag.Space) -> None:
    served = serve(
        clocked,
        [web.Limit("mine", "2/minute"), web.Limit("all", "1/minute", key="all", advertise=False)],
    )
    assert [name for name, _ in served().items("RateLimit")] == ["mine"]
    refused = served()
    assert refused.one("Retry-After") == "60"
    assert [name for name, _ in refused.items("RateLimit-Policy")] == ["mine"]
    assert refused.all("RateLimit") == []
    assert json.loads(refused.body)["violated-policies"] == []


def test_a_redirection_with_nothing_left_does_not_hold_the_client_up(
    serve: Serve, clocked: sprag.Space
) -> None:
    served = serve(clocked, [web.Limit("a", "2/minute")])
    served.status = 308
    assert served().items("RateLimit") == [("a", {"r": 1, "t": 30})]
    assert served().all("RateLimit") == []


def test_a_key_with_a_limit_of_its_own_is_told_that_one(serve: Serve, clocked: sprag.Space) -> None:
    served = serve(clocked, [web.Limit("api", "2/minute", key=web.header("x-api-key"))])
    served(headers=[("X-Api-Key", "ann")])
    clocked.limiter("api", "2/minute").set_override("x-api-key/bigcorp", "1000/hour")
    big = served(headers=[("X-Api-Key", "bigcorp")])
    assert big.items("RateLimit-Policy") == [("api", {"q": 1000, "w": 3600})]
    assert big.items("RateLimit") == [("api", {"r": 999, "t": 3597})]


def test_a_limit_that_is_changed_meanwhile_is_told_as_it_is_now(
    serve: Serve, clocked: sprag.Space
) -> None:
    served = serve(clocked, [web.Limit("a", "2/minute")])
    assert served().items("RateLimit-Policy") == [("a", {"q": 2, "w": 60})]
    clocked.limiter("a", "2/hour", update=True)
    assert served().items("RateLimit-Policy") == [("a", {"q": 2, "w": 3600})]
    clocked.limiter("a", "5/hour", update=True)
    for _ in range(2):
        assert served().items("RateLimit-Policy") == [("a", {"q": 5, "w": 3600})]
    clocked.limiter("a", "5/hour", update=True).set_override("address/192.0.2.9", "9/hour")
    assert served(peer="192.0.2.9").items("RateLimit-Policy") == [("a", {"q": 9, "w": 3600})]
    assert served().items("RateLimit-Policy") == [("a", {"q": 5, "w": 3600})]


def test_one_middleware_may_stand_within_another(clocked: sprag.Space) -> None:
    def app(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return []

    inner = web.WSGIMiddleware(app, clocked, [web.Limit("inner", "1/s")])
    outer = web.WSGIMiddleware(inner, clocked, [web.Limit("outer", "1/s")])
    started: list[Any] = []
    environ = {"REQUEST_METHOD": "GET", "REMOTE_ADDR": "::1"}
    outer(environ, lambda *start: started.append(start))  # type: ignore[arg-type]
    # Lists may be split over several fields.
    fields = [value for name, value in started[0][1] if name == "RateLimit-Policy"]
    assert [name for name, _ in parsed(", ".join(fields))] == ["inner", "outer"]


@pytest.mark.parametrize("name", ["", "grüße", "a\nb", "x" * 1025])
def test_a_name_that_no_field_can_carry_is_refused(name: str) -> None:
    with pytest.raises(ValueError):
        web.Limit(name, "1/s")
