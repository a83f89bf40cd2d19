"""Whom a request is counted for: functions from a request to a key, and the length that keys are kept to."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Callable, Iterable
from functools import lru_cache

from sprag.web._request import Request

Key = str | bytes
KeyFunction = Callable[[Request], str | bytes | None]

KEY_BYTES_MAX = 128
"""The most bytes of a key that is used as it is; of longer ones a hash is."""

# No text in UTF-8 begins with it, so no key of text is equal to the hash of another.
_HASHED = b"\xff"


def bounded(key: Key) -> bytes:
    """A key of 1 to `KEY_BYTES_MAX` bytes: the given one, or if it is too long, or empty, a hash of it."""
    if isinstance(key, str):
        # Surrogates stand for what a server could not decode.
        key = key.encode("utf-8", "surrogatepass")
    elif not isinstance(key, bytes):
        raise TypeError(f"a key must be str or bytes, not {type(key).__name__}")
    if 0 < len(key) <= KEY_BYTES_MAX:
        return key
    return _HASHED + hashlib.blake2b(key, digest_size=32).digest()


def client_address(
    *,
    proxies: Iterable[str] = (),
    proxy_header: str = "x-forwarded-for",
    ipv4_prefix: int = 32,
    ipv6_prefix: int = 64,
) -> KeyFunction:
    """A key by the client's address: `address/192.0.2.7`, `address/2001:db8::/64`.

    It is the address at the other end of the connection, and nothing that the client says of itself. Where that is
    a proxy's, name its address or network in `proxies`; `"unix"` stands for all who come over a Unix socket. Then,
    and only on connections from them, `proxy_header` is read, from its end: the last address that is not itself
    one of the `proxies` is the client's. Servers may look at that header by themselves before: uvicorn does by
    default, for proxies at 127.0.0.1.

    Addresses are counted by network: of IPv6 by /64, which is what one client has. Who has no address is counted
    with all others who have none.
    """
    if not 0 <= ipv4_prefix <= 32:
        raise ValueError(f"ipv4_prefix is {ipv4_prefix}; it must be 0 to 32")
    if not 0 <= ipv6_prefix <= 128:
        raise ValueError(f"ipv6_prefix is {ipv6_prefix}; it must be 0 to 128")
    if isinstance(proxies, str):
        raise TypeError("proxies must be several addresses or networks, not one text")
    named = list(proxies)
    is_unix_trusted = "unix" in named
    networks = [ipaddress.ip_network(proxy, strict=False) for proxy in named if proxy != "unix"]

    def is_proxy(address: _Address | None) -> bool:
        if address is None:
            return is_unix_trusted
        return any(address in network for network in networks)

    def key_of(address: _Address) -> str:
        bits, whole = (ipv4_prefix, 32) if address.version == 4 else (ipv6_prefix, 128)
        if bits == whole:
            return f"address/{address}"
        return f"address/{ipaddress.ip_network((address.packed, bits), strict=False)}"

    @lru_cache(maxsize=4096)
    def direct(peer: str | None) -> tuple[_Address | None, str]:
        """The address at the other end, and its key."""
        address = None if peer is None else _address(peer)
        # It may be told by a name, as test clients do.
        return address, f"peer/{peer or ''}" if address is None else key_of(address)

    def client_address_of(request: Request) -> str:
        peer = request.peer
        address, key = direct(peer)
        if named and (peer is None or address is not None) and is_proxy(address):
            for entry in reversed((request.header(proxy_header) or "").split(",")):
                before = _address(entry)
                if before is None:
                    # Nothing that a proxy of ours wrote: what stands before it is anybody's word.
                    break
                key = key_of(before)
                if not is_proxy(before):
                    break
        return key

    return client_address_of


def header(name: str, *, otherwise: KeyFunction | Key | None = None) -> KeyFunction:
    """A key by a header field's value, as `x-api-key/a81b…`.

    Requests without it are counted by `otherwise`: by their client's address if nothing is said, so that leaving
    the field out is no way around the limit. Check elsewhere that the value is a true one: who can invent values
    has as many keys.
    """
    prefix, other = (
        name.lower() + "/",
        key_function(client_address() if otherwise is None else otherwise),
    )

    def header_of(request: Request) -> Key | None:
        value = request.header(name)
        return other(request) if value is None else prefix + value

    return header_of


def user(*, otherwise: KeyFunction | Key | None = None) -> KeyFunction:
    """A key by who is authenticated, as `user/ann`: of ASGI what a middleware outside of this one left as
    `scope["user"]`, of WSGI `REMOTE_USER`. Others are counted by `otherwise`: by their client's address if nothing
    is said."""
    other = key_function(client_address() if otherwise is None else otherwise)

    def user_of(request: Request) -> Key | None:
        name = request.user
        return other(request) if name is None else "user/" + name

    return user_of


def key_function(key: KeyFunction | Key) -> KeyFunction:
    """A function of each request, also where it is one key for all."""
    if callable(key):
        return key
    if isinstance(key, (str, bytes)):
        always = key
        return lambda _: always
    raise TypeError(
        f"key must be str, bytes or a function of the request, not {type(key).__name__}"
    )


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _address(text: str) -> _Address | None:
    """The address in an entry, which may have a port; `None` if there is none."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
