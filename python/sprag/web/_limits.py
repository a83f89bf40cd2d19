"""The limits of an application: which apply to a request, and what they say of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, NamedTuple

import sprag
from sprag.web._keys import Key, KeyFunction, bounded, client_address, key_function
from sprag.web._lazy import STALE, PerProcess, SpaceSource, opener, written
from sprag.web._policy import check_string, joined, policy_of, retry_after_seconds
from sprag.web._refusal import Fields, Refusal, too_many, unavailable
from sprag.web._request import Request
from sprag.web._routes import Path, Routes

_log = logging.getLogger("sprag.web")

_AT_ONCE_MAX = 8
"""The most limits that one request can be under: as many as `Space.check_all` decides together."""


@dataclass(frozen=True, eq=False)
class Limit:
    """A limit for requests: how many of each key, and of which requests.

    `Limit("login", "5/minute", paths=["/login"], methods=["POST"])` is five attempts a minute from each client.

    - `name`: the limiter's name in the space, and the policy's in header fields: printable ASCII. Applications that
      name it alike in one space share it.
    - `rate`: the limit, as `Space.limiter` takes it: `"100/minute"`.
    - `key`: whom a request counts for: a function of the request, or one key for all; the client's address if
      nothing is said. A function's `None` means that the limit is not for this request. Keys of more than
      `KEY_BYTES_MAX` bytes are hashed.
    - `cost`: how much a request takes: a number, or a function of the request.
    - `burst`: how much may be taken at once, if not as much as the rate's number.
    - `window`: counts in windows, `"fixed"` or `"sliding"`, instead of by token bucket.
    - `paths`: for which paths it is, all together; every path if none is given. `*` stands for a segment or a part
      of one, `**` for anything; or compiled expressions, for the whole path. A slash at the end may be there or not.
    - `methods`: for which methods it is, all if none is given. `GET` is `HEAD` too.
    - `update`: whether a limiter of this name that is there with another limit gets this one, as after a
      deployment. If not, that is an error.
    - `advertise`: whether clients are told of it by name. A limit over all of them tells what the service can bear.
    - `partition_key`: the parameter `pk` of header fields, which tells clients which of their quotas this is.
      Nothing confidential.
    - `unit`: the parameter `qu`, if it is not requests that are counted: `"content-bytes"`.
    """

    name: str
    rate: str
    _: KW_ONLY
    key: KeyFunction | Key = client_address()
    cost: int | Callable[[Request], int] = 1
    burst: int | None = None
    window: Literal["fixed", "sliding"] | None = None
    paths: Sequence[Path] = ()
    methods: Sequence[str] = ()
    update: bool = True
    advertise: bool = True
    partition_key: Callable[[Request], bytes | None] | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        check_string("name", self.name)
        if self.unit is not None:
            check_string("unit", self.unit)
        # Each refuses what is none.
        key_function(self.key)
        Routes(self.paths, self.methods)
        cost = 1 if callable(self.cost) else self.cost
        written(self.name, self.rate, self.burst, self.window, cost)


class Verdict(NamedTuple):
    """Whether a request may pass, and what its client is told."""

    refusal: Refusal | None
    """The response, if it may not."""
    fields: Fields
    """For the application's response, if it may."""
    is_used_up: bool
    """Whether nothing is left for a further request."""


class _Asked(NamedTuple):
    """A limit that applies to a request."""

    at: int
    key: bytes
    cost: int
    partition_key: bytes | None


class _Opened(NamedTuple):
    space: sprag.Space
    limiters: list[sprag.Limiter]


PASSED = Verdict(None, [], False)


class Limits:
    """What both middlewares do: match, ask, answer."""

    def __init__(
        self,
        space: SpaceSource,
        limits: Iterable[Limit],
        *,
        exempt: Iterable[Path] | Callable[[Request], bool] = (),
        headers: bool = True,
        on_error: Literal["allow", "refuse"] = "allow",
    ) -> None:
        if on_error not in ("allow", "refuse"):
            raise ValueError(f"on_error is {on_error!r}; it must be 'allow' or 'refuse'")
        self._limits = list(limits)
        self._routes = [Routes(limit.paths, limit.methods) for limit in self._limits]
        self._keys = [key_function(limit.key) for limit in self._limits]
        for_all = sum(routes.are_all for routes in self._routes)
        if for_all > _AT_ONCE_MAX:
            raise ValueError(
                f"{for_all} limits for all requests; at most {_AT_ONCE_MAX} can be on one"
            )
        names = [limit.name for limit in self._limits]
        if len(set(names)) < len(names):
            raise ValueError("two limits have the same name")
        self._is_exempt = _exemption(exempt)
        self._tells_allowed, self._on_error = headers, on_error
        self._is_failing = False
        open_space = opener(space)

        def open_all() -> _Opened:
            space = open_space()
            limiters = [
                space.limiter(
                    limit.name, limit.rate, limit.burst, window=limit.window, update=limit.update
                )
                for limit in self._limits
            ]
            return _Opened(space, limiters)

        self._opened = PerProcess(open_all)

    def applying(self, request: Request) -> list[_Asked]:
        """Which limits apply, each with its key and its cost."""
        if self._is_exempt is not None and self._is_exempt(request):
            return []
        asked = []
        for at, limit in enumerate(self._limits):
            if not self._routes[at].match(request):
                continue
            key = self._keys[at](request)
            if key is None:
                continue
            cost = limit.cost(request) if callable(limit.cost) else limit.cost
            partition_key = None if limit.partition_key is None else limit.partition_key(request)
            asked.append(_Asked(at, bounded(key), cost, partition_key))
        return asked

    def check(self, request: Request) -> Verdict:
        """Takes what the request costs under each limit that applies, from all of them or from none."""
        asked = self.applying(request)
        if not asked:
            return PASSED
        try:
            opened = self._opened.get()
            try:
                return self._decide(opened, asked)
            except STALE:
                self._opened.forget(opened)
                return self._decide(self._opened.get(), asked)
        except sprag.Error as error:
            return self._failed(error)

    async def check_async(self, request: Request) -> Verdict:
        """The same; what may take longer than a look into memory is done by another thread."""
        asked = self.applying(request)
        if not asked:
            return PASSED
        try:
            opened = await self._opened.get_async()
            try:
                return self._decide(opened, asked)
            except STALE:
                self._opened.forget(opened)
                return self._decide(await self._opened.get_async(), asked)
        except sprag.Error as error:
            return self._failed(error)

    async def open_async(self) -> None:
        """Opens the space ahead of the first request. What fails is told, and is tried again by requests."""
        try:
            await self._opened.get_async()
        except sprag.Error as error:
            self._failed(error)

    def _decide(self, opened: _Opened, asked: list[_Asked]) -> Verdict:
        limiters = opened.limiters
        if len(asked) == 1:
            one = asked[0]
            decision = limiters[one.at].hit(one.key, one.cost)
            is_allowed, decisions = decision.allowed, [decision]
        else:
            several = opened.space.check_all(
                [(limiters[at], key, cost) for at, key, cost, _ in asked]
            )
            is_allowed, decisions = several.all_allowed, list(several)
        if self._is_failing:
            self._is_failing = False
            _log.info("the rate limits are looked at again")
        if is_allowed and not self._tells_allowed:
            return PASSED
        policies, rests, violated = [], [], []
        is_used_up = False
        for one, said in zip(asked, decisions, strict=True):
            limit, limiter = self._limits[one.at], limiters[one.at]
            if not limit.advertise:
                continue
            # Asked each time: it may have been changed since it was opened, and a key may have one of its own.
            now = opened.space.find_limiter(limit.name) or limiter
            text = limiter.override_of(one.key) or now.limit
            policy = policy_of(limit.name, text, limit.unit)
            policies.append(policy.item(one.partition_key))
            # Of a refused request, those tell their rest that refused it: others may last longer than Retry-After.
            if is_allowed or not said.allowed:
                rests.append(policy.service_limit(said, one.partition_key))
                is_used_up = is_used_up or said.remaining == 0
            if not said.allowed:
                violated.append(limit.name)
        fields = [
            (name, joined(items))
            for name, items in (("RateLimit-Policy", policies), ("RateLimit", rests))
            if items
        ]
        if is_allowed:
            return Verdict(None, fields, is_used_up)
        retry_after = retry_after_seconds([said for said in decisions if not said.allowed])
        return Verdict(too_many(violated, retry_after, fields), [], True)

    def _failed(self, error: sprag.Error) -> Verdict:
        if isinstance(error, sprag.BoundsError):
            # A cost, or more limits on a request than there can be: the application's mistake.
            raise error
        if not self._is_failing:
            self._is_failing = True
            what = "pass unlimited" if self._on_error == "allow" else "are refused"
            _log.error(
                "the rate limits cannot be looked at; requests %s until they can",
                what,
                exc_info=error,
            )
        return PASSED if self._on_error == "allow" else Verdict(unavailable(), [], False)


def _exemption(
    exempt: Iterable[Path] | Callable[[Request], bool],
) -> Callable[[Request], bool] | None:
    if callable(exempt):
        return exempt
    routes = Routes(exempt)
    return None if routes.are_all else lambda request: routes.match_path(request.path)
