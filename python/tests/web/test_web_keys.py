"""Whom requests are counted for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import sprag
from sprag import web
from sprag.web._keys import bounded
from sprag.web._request import ASGIRequest, WSGIRequest
from web.conftest import Serve


@pytest.fixture
def key_of(serve: Serve, space: sprag.Space) -> Any:
    """The key that a function makes of a request."""

    def ask(function: Any, **request: Any) -> Any:
        seen: list[Any] = []

        def spy(made: web.Request) -> Any:
            seen.append(function(made))
            return seen[-1]

        serve(space, [web.Limit("a", "1000/s", key=spy)])(**request)
        return seen[0]

    return ask


@pytest.mark.parametrize(
    ("peer", "key"),
    [
        ("192.0.2.7", "address/192.0.2.7"),
        ("::ffff:192.0.2.7", "address/192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "address/2001:db8:1:2::/64"),
        ("fe80::1%eth0", "address/fe80::/64"),
        (None, "peer/"),
        ("testclient", "peer/testclient"),
    ],
)
def test_a_client_is_known_by_its_network(key_of: Any, peer: str | None, key: str) -> None:
    assert key_of(web.client_address(), peer=peer) == key


def test_what_a_client_says_of_itself_is_not_believed(key_of: Any) -> None:
    said = [
        ("X-Forwarded-For", "198.51.100.1"),
        ("Forwarded", "for=198.51.100.1"),
        ("X-Real-Ip", "198.51.100.1"),
    ]
    assert key_of(web.client_address(), peer="192.0.2.7", headers=said) == "address/192.0.2.7"
    behind = web.client_address(proxies=["10.0.0.0/8"])
    assert key_of(behind, peer="192.0.2.7", headers=said) == "address/192.0.2.7", (
        "not through our proxy"
    )


@pytest.mark.parametrize(
    ("forwarded", "key"),
    [
        ("198.51.100.1", "198.51.100.1"),
        # What the client wrote itself stands before what our proxies wrote.
        ("203.0.113.9, 198.51.100.1", "198.51.100.1"),
        ("203.0.113.9, 198.51.100.1, 10.1.1.1", "198.51.100.1"),
        ("198.51.100.1:4711", "198.51.100.1"),
        ("[2001:db8::1]:4711", "2001:db8::/64"),
        ('"[2001:db8::1]"', "2001:db8::/64"),
        # A word that is no address ends what can be believed.
        ("198.51.100.1, rubbish", "10.0.0.5"),
        ("198.51.100.1, rubbish, 10.1.1.1", "10.1.1.1"),
        ("10.2.2.2, 10.1.1.1", "10.2.2.2"),
        ("", "10.0.0.5"),
        (None, "10.0.0.5"),
    ],
)
def test_behind_proxies_the_last_address_that_is_none_of_theirs_counts(
    key_of: Any, forwarded: str | None, key: str
) -> None:
    behind = web.client_address(proxies=["10.0.0.0/8"])
    headers = [] if forwarded is None else [("X-Forwarded-For", forwarded)]
    assert key_of(behind, peer="10.0.0.5", headers=headers) == f"address/{key}"


def test_a_proxy_at_a_unix_socket_is_trusted_if_told_so(key_of: Any) -> None:
    headers = [("X-Forwarded-For", "198.51.100.1")]
    assert key_of(web.client_address(), peer=None, headers=headers) == "peer/"
    assert key_of(web.client_address(proxies=["10.0.0.1"]), peer=None, headers=headers) == "peer/"
    assert (
        key_of(web.client_address(proxies=["unix"]), peer=None, headers=headers)
        == "address/198.51.100.1"
    )
    assert (
        key_of(web.client_address(proxies=["unix"]), peer="192.0.2.7", headers=headers)
        == "address/192.0.2.7"
    )


@pytest.mark.parametrize(
    "wrong",
    [{"proxies": "10.0.0.1"}, {"proxies": ["nginx"]}, {"ipv6_prefix": 129}, {"ipv4_prefix": -1}],
)
def test_what_is_no_network_is_refused(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        web.client_address(**wrong)


def test_a_header_is_a_key_and_leaving_it_out_no_way_around(key_of: Any) -> None:
    by_key = web.header("X-Api-Key")
    assert key_of(by_key, headers=[("x-api-key", "abc")]) == "x-api-key/abc"
    assert key_of(by_key, peer="192.0.2.7") == "address/192.0.2.7"
    assert key_of(web.header("X-Api-Key", otherwise="nobody")) == "nobody"
    assert key_of(web.header("Content-Type", otherwise=lambda _: None)) is None


def test_a_user_is_a_key(space: sprag.Space) -> None:
    ann = SimpleNamespace(is_authenticated=True, display_name="ann")
    nobody = SimpleNamespace(is_authenticated=False, display_name="")
    by_user = web.user()
    scope = {"type": "http", "path": "/", "headers": [], "client": ("192.0.2.7", 1)}
    assert by_user(ASGIRequest({**scope, "user": ann})) == "user/ann"
    assert by_user(ASGIRequest({**scope, "user": nobody})) == "address/192.0.2.7"
    assert by_user(ASGIRequest(scope)) == "address/192.0.2.7"
    environ = {"REQUEST_METHOD": "GET", "REMOTE_ADDR": "192.0.2.7"}
    assert by_user(WSGIRequest({**environ, "REMOTE_USER": "ann"})) == "user/ann"
    assert by_user(WSGIRequest(environ)) == "address/192.0.2.7"


def test_keys_are_bounded_and_stay_apart() -> None:
    assert bounded("a" * web.KEY_BYTES_MAX) == b"a" * web.KEY_BYTES_MAX
    long = [
        bounded("a" * 129),
        bounded("a" * 130),
        bounded("é" * 65),
        bounded("x" * 10_000_000),
        bounded(""),
    ]
    assert len(set(long)) == len(long)
    assert all(1 <= len(key) <= web.KEY_BYTES_MAX for key in long)
    assert bounded("\udcff")


@pytest.mark.parametrize("wrong", [5, None, ["a"], bytearray(200)])
def test_a_key_of_another_type_says_so(wrong: Any) -> None:
    with pytest.raises(TypeError, match="a key must be str or bytes, not "):
        bounded(wrong)


def test_a_key_of_any_length_is_limited(serve: Serve, space: sprag.Space) -> None:
    served = serve(space, [web.Limit("a", "1/hour", key=web.header("x-key"))])
    for value in ["", "x" * 4096, "\xff\x00"]:
        headers = [("x-key", value)]
        assert [served(headers=headers).status for _ in range(2)] == [200, 429]


def test_each_client_has_its_own_limit(serve: Serve, space: sprag.Space) -> None:
    served = serve(space, [web.Limit("a", "1/hour")])
    assert [served(peer=peer).status for peer in ["192.0.2.1", "192.0.2.2", "192.0.2.1"]] == [
        200,
        200,
        429,
    ]
    assert len(served.called) == 2


def test_one_key_is_for_all(serve: Serve, space: sprag.Space) -> None:
    served = serve(space, [web.Limit("a", "1/hour", key="all")])
    assert [served(peer=peer).status for peer in ["192.0.2.1", "192.0.2.2"]] == [200, 429]
