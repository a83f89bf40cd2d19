"""What a client is told that is refused: status, header fields, a problem document (RFC 9457)."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Sequence
from typing import Any

from sprag._errors import Error
from sprag.web._policy import Answer, joined, policy_of, retry_after_seconds

Fields = list[tuple[str, str]]

_QUOTA_EXCEEDED = "https://iana.org/assignments/http-problem-types#quota-exceeded"


class Refusal:
    """A response, for ASGI and WSGI alike."""

    __slots__ = ("body", "fields", "phrase", "status")

    def __init__(self, status: int, phrase: str, problem: dict[str, Any], fields: Fields) -> None:
        self.status, self.phrase = status, phrase
        self.body = json.dumps(problem, ensure_ascii=False).encode()
        self.fields = [
            ("Content-Type", "application/problem+json"),
            ("Content-Length", str(len(self.body))),
            *fields,
        ]


def too_many(violated: Sequence[str], retry_after: int | None, fields: Fields) -> Refusal:
    """Status 429; `violated` are the policies that refused."""
    problem: dict[str, Any] = {
        "type": _QUOTA_EXCEEDED,
        "title": "Quota Exceeded",
        "status": 429,
        "detail": _detail(retry_after),
        "violated-policies": list(violated),
    }
    # Without it, the client is not to come back with the same request at all.
    retry = [] if retry_after is None else [("Retry-After", str(retry_after))]
    return Refusal(429, "Too Many Requests", problem, retry + fields)


def unavailable() -> Refusal:
    """Status 503: whether the request is within its limits can't be told."""
    problem = {
        "type": "about:blank",
        "title": "Service Unavailable",
        "status": 503,
        "detail": "The rate limits of this service cannot be looked at now.",
    }
    return Refusal(503, "Service Unavailable", problem, [])


class RateLimitedError(Error):
    """A function under `limit` was called more often than its limiter allows; it was not run.

    The middlewares of this package answer it with status 429, if it reaches them. Where a framework catches what
    its handlers raise, as Flask does, make a response from `status`, `headers` and `body`.
    """

    name: str
    """The limiter's name."""
    key: str | bytes
    """The key that has used up its limit."""
    decision: Answer
    """What the limiter said: a `Decision`, or a `JointDecision`. An error that was pickled has none."""
    retry_after: float | None
    """Seconds until the same call would be allowed, if nobody else comes; `None` for never."""

    status = 429

    def __init__(self, limiter: Any, key: str | bytes, decision: Any) -> None:
        name = limiter.name
        name = name if isinstance(name, str) else ascii(name)
        retry_after = decision.retry_after
        super().__init__(
            f"the limit {name} is used up for {reprlib.repr(key)}: {_detail(retry_after)}",
            name=name,
            key=key,
            decision=decision,
            retry_after=retry_after,
        )
        self._refusal = _refusal_of(limiter, name, decision)

    @property
    def headers(self) -> dict[str, str]:
        """The response's header fields."""
        return dict(self._refusal.fields)

    @property
    def body(self) -> bytes:
        """The response's content: the problem document."""
        return self._refusal.body

    def __reduce__(self) -> Any:
        # Limiters and decisions stay in their process; all else goes along.
        told = {name: value for name, value in self.__dict__.items() if name != "decision"}
        return _again, (type(self), self.args, told)


def _again(
    kind: type[RateLimitedError], args: tuple[object, ...], told: dict[str, Any]
) -> RateLimitedError:
    """The error that was pickled."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(told)
    return error


def _refusal_of(limiter: Any, name: str, decision: Any) -> Refusal:
    limits: list[str] | None = getattr(limiter, "limits", None)
    if limits is None:
        each = [(policy_of(name, limiter.limit), decision)]
    else:
        # Of a joint limiter each limit is a policy, named with it.
        each = [
            (policy_of(f"{name} {limit}", limit), said)
            for limit, said in zip(limits, decision.each, strict=True)
        ]
    refused = [(of, said) for of, said in each if not said.allowed]
    fields = [
        ("RateLimit-Policy", joined(of.item(None) for of, _ in each)),
        ("RateLimit", joined(of.service_limit(said, None) for of, said in refused)),
    ]
    return too_many(
        [of.name for of, _ in refused], retry_after_seconds([said for _, said in refused]), fields
    )


def _detail(retry_after: float | None) -> str:
    if retry_after is None:
        return "It asks for more than is ever allowed at once."
    return f"Retry after {retry_after:.10g} seconds."
