"""The fields `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11: structured fields
(RFC 9651), each a list with an item for a policy."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from functools import lru_cache
from math import ceil, gcd
from typing import Protocol

_SECOND_NS = 1_000_000_000
_INTEGER_MAX = 999_999_999_999_999
_UNITS_NS = {
    "y": 365 * 86_400 * _SECOND_NS,
    "w": 7 * 86_400 * _SECOND_NS,
    "d": 86_400 * _SECOND_NS,
    "h": 3_600 * _SECOND_NS,
    "m": 60 * _SECOND_NS,
    "s": _SECOND_NS,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}
_WORDS = {
    "year": "y",
    "week": "w",
    "day": "d",
    "hour": "h",
    "minute": "m",
    "second": "s",
    "millisecond": "ms",
    "microsecond": "us",
    "nanosecond": "ns",
}
_LIMIT = re.compile(r"(\d+)/(?:(\d+)([a-z]+)|([a-z]+))(?:;burst=(\d+)|;window=(fixed|sliding))?")


class Answer(Protocol):
    """What a decision says of its key."""

    @property
    def allowed(self) -> bool: ...
    @property
    def remaining(self) -> int: ...
    @property
    def retry_after(self) -> float | None: ...
    @property
    def reset_after(self) -> float | None: ...
    def retry_after_for(self, cost: int, /) -> float | None: ...


class Policy:
    """A limit as clients are told of it: by a name, with how much (`q`) in which window of whole seconds (`w`)."""

    __slots__ = ("_count", "_name", "_period_ns", "_text", "_window", "name")

    name: str

    def __init__(self, name: str, limit: str, unit: str | None = None) -> None:
        """`limit` as a `Limiter` tells its own."""
        parts = _LIMIT.fullmatch(limit)
        if parts is None:
            raise ValueError(f"{limit!r} is not how a limiter writes its limit")
        count, periods, short, word, burst, window = parts.groups()
        self.name, self._name = name, string(name)
        self._count, self._window = int(count), window
        self._period_ns = int(periods or 1) * _UNITS_NS[short or _WORDS[word]]
        # Windows are whole seconds, so of shorter ones as many as make whole ones.
        times = _SECOND_NS // gcd(self._period_ns, _SECOND_NS)
        text = f"{self._name};q={_integer(self._count * times)}"
        if unit is not None:
            text += f";qu={string(unit)}"
        text += f";w={_integer(self._period_ns * times // _SECOND_NS)}"
        if burst is not None:
            text += f";sprag-burst={_integer(int(burst))}"
        self._text = text

    def item(self, partition_key: bytes | None) -> str:
        """An item of `RateLimit-Policy`."""
        return self._text + _parameter(partition_key)

    def service_limit(self, answer: Answer, partition_key: bytes | None) -> str:
        """An item of `RateLimit`: what is left (`r`), and the time in which no more than that can be used
        (`t`)."""
        text = f"{self._name};r={_integer(answer.remaining)}"
        window = self._effective_window(answer)
        if window is not None:
            text += f";t={_integer(window)}"
        return text + _parameter(partition_key)

    def _effective_window(self, answer: Answer) -> int | None:
        """Whole seconds, rounded up; `None` for ever.

        A bucket's rest may be used at once, and then its rate. Who uses `r` in each `t` is to keep that rate, so
        `t` is the time in which `r` comes back.
        """
        remaining = answer.remaining
        if self._window == "fixed":
            # Nothing used, and so no window begun that anybody could know of.
            seconds = answer.reset_after or self._period_ns / _SECOND_NS
        elif remaining == 0:
            until_one = answer.retry_after_for(1)
            if until_one is None:
                return None
            seconds = until_one
        elif self._count == 0:
            return None
        else:
            seconds = remaining * self._period_ns / (self._count * _SECOND_NS)
        if not answer.allowed and answer.retry_after is not None:
            # Retry-After is not to be before the window's end.
            seconds = min(seconds, answer.retry_after)
        return ceil(seconds)


policy_of = lru_cache(maxsize=1024)(Policy)
"""The policy of a limit, which is made once."""


def check_string(what: str, text: str) -> None:
    """Refuses what no structured field can carry as a string."""
    if not text.isascii() or not text.isprintable():
        raise ValueError(
            f"{what} is {text!r}; header fields carry it, so it must be printable ASCII"
        )


def string(text: str) -> str:
    """A string of a structured field; of a name that it can't carry, the readable part."""
    text = text.encode("ascii", "replace").decode("ascii")
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def joined(items: Iterable[str]) -> str:
    """A list of a structured field."""
    return ", ".join(items)


def retry_after_seconds(answers: Iterable[Answer]) -> int | None:
    """Whole seconds, rounded up, until none of these refuses any more; `None` if one always will."""
    longest = 0.0
    for answer in answers:
        retry_after = answer.retry_after
        if retry_after is None:
            return None
        longest = max(longest, retry_after)
    return ceil(longest)


def _integer(number: int) -> int:
    return min(number, _INTEGER_MAX)


def _parameter(partition_key: bytes | None) -> str:
    if partition_key is None:
        return ""
    return f";pk=:{base64.b64encode(partition_key).decode('ascii')}:"
