"""Rate limits for web applications and for plain functions, shared by all workers of a host.

    from sprag import web

    app = web.ASGIMiddleware(app, "shm:shop", [
        web.Limit("per-client", "100/minute"),
        web.Limit("login", "5/minute", paths=["/login"], methods=["POST"]),
    ])

`ASGIMiddleware` is for Starlette, FastAPI, Quart and Django's asynchronous side, `WSGIMiddleware` for Flask,
Django and Pyramid. Neither needs any of them. What is refused gets status 429 with `Retry-After`, the fields
`RateLimit` and `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-11 and a problem document (RFC 9457).

`limit` is the same for a function: `@web.limit(limiter, key=...)`.

A space given by its URL is opened by each worker for itself when the first request comes, so servers may fork as
they like. Names here are the public ones; the modules beside hold them.
"""

from sprag.web._asgi import ASGIMiddleware
from sprag.web._decorator import limit
from sprag.web._keys import KEY_BYTES_MAX, client_address, header, user
from sprag.web._lazy import LazyLimiter
from sprag.web._limits import Limit
from sprag.web._refusal import RateLimitedError
from sprag.web._request import Request
from sprag.web._wsgi import WSGIMiddleware

__all__ = [
    "KEY_BYTES_MAX",
    "ASGIMiddleware",
    "LazyLimiter",
    "Limit",
    "RateLimitedError",
    "Request",
    "WSGIMiddleware",
    "client_address",
    "header",
    "limit",
    "user",
]
