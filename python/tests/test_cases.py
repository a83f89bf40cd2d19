"""The cases that every language shares, read from `api/tests/cases`; the page there says what they mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sprag

CASES = Path(__file__).parents[2] / "api" / "tests" / "cases"
LOCKS = json.loads((CASES / "locks.json").read_text())
LIMITERS = json.loads((CASES / "limiters.json").read_text())

Step = dict[str, Any]
Reach = tuple[sprag.Space, sprag.ManualClock | None]


def by_name(file: dict[str, Any]) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in file["cases"]]


@pytest.fixture(params=["mem", "shm"])
def reach(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reach]:
    """An empty space, and the clock that it goes by where that can be moved."""
    clock = sprag.ManualClock() if request.param == "mem" else None
    url = "mem:" if request.param == "mem" else f"shm:{tmp_path}/region"
    with sprag.open(url, clock=clock) as space:
        yield space, clock


def outcome(call: Callable[[], object]) -> str:
    try:
        call()
    except sprag.LostError:
        return "lost"
    except sprag.StaleError:
        return "stale"
    except sprag.BoundsError:
        return "out_of_range"
    return "ok"


class LockCase:
    """A case of locks, and what its names stand for."""

    def __init__(self, space: sprag.Space, clock: sprag.ManualClock | None) -> None:
        self.space = space
        self.clock = clock
        self.holds: dict[str, sprag.Hold] = {}
        self.tokens: dict[str, int] = {}

    def token(self, value: Any) -> int:
        """The token that a name stands for, or the number itself."""
        return self.tokens[value] if isinstance(value, str) else int(value)

    def keep(self, step: Step, hold: sprag.Hold) -> None:
        self.holds[step["as"]] = hold
        self.tokens[step["as"]] = hold.token

    def lock(self, step: Step) -> sprag.Lock:
        ttl = step.get("ttl_ms")
        return self.space.lock(step["lock"], **({} if ttl is None else {"ttl": ttl / 1000}))

    def run(self, step: Step) -> None:
        expect = step.get("expect")
        token = self.token(step.get("number", step.get("token", 0)))
        match step["do"]:
            case "advance":
                assert self.clock is not None
                self.clock.advance(step["ms"] / 1000)
            case "try":
                hold = self.lock(step).acquire(blocking=False)
                assert ("busy" if hold is None else "granted") == expect
                if hold is not None:
                    if "after" in step:
                        assert hold.token == self.token(step["after"]) + 1
                    self.keep(step, hold)
            case "release" | "detach" as verb:
                assert outcome(getattr(self.holds.pop(step["hold"]), verb)) == expect
            case "drop":
                del self.holds[step["hold"]]
            case "renew":
                assert outcome(self.holds[step["hold"]].renew) == expect
            case "extend":
                hold = self.holds[step["hold"]]
                assert outcome(lambda: hold.extend(step["ttl_ms"] / 1000)) == expect
            case "valid":
                assert self.holds[step["hold"]].is_valid() is expect
            case "release_token":
                assert outcome(lambda: self.lock(step).release_token(token)) == expect
            case "renew_token":
                assert outcome(lambda: self.lock(step).renew_token(token)) == expect
            case "adopt":
                adopt = lambda: self.keep(step, self.lock(step).adopt_token(token))
                assert outcome(adopt) == expect
            case "break":
                broken = self.space.break_lock(step["lock"])
                assert broken == (None if expect is None else self.token(expect))
            case "inspect":
                info = self.space.inspect(step["lock"])[0]
                seen = {
                    "held": info.is_held,
                    "token": info.token,
                    "waiters": info.waiters,
                    "lease_left_ms": round(info.lease_left * 1000),
                }
                assert expect is not None
                for field, value in expect.items():
                    assert seen[field] == (self.token(value) if field == "token" else value)
            case "admit" | "admit_once" as verb:
                fence = self.space.fence(step["fence"])
                assert outcome(lambda: getattr(fence, verb)(token)) == expect
            case "highest":
                assert self.space.fence(step["fence"]).highest == self.token(expect)
            case unknown:
                pytest.fail(f"unknown step {unknown}")


@pytest.mark.parametrize("case", by_name(LOCKS))
def test_the_shared_cases_of_locks_hold(reach: Reach, case: dict[str, Any]) -> None:
    space, clock = reach
    if case.get("clock") and clock is None:
        return
    run = LockCase(space, clock)
    for step in case["steps"]:
        run.run(step)


def nanoseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e9)


@pytest.mark.parametrize("case", by_name(LIMITERS))
def test_the_shared_cases_of_limiters_hold(reach: Reach, case: dict[str, Any]) -> None:
    space, clock = reach
    if case.get("clock") and clock is None:
        return
    limiter = space.limiter("limiter", case["limit"])
    for step in case["steps"]:
        if "check" in step:
            decision = limiter.hit(step["check"], step.get("cost", 1))
        elif "peek" in step:
            decision = limiter.test(step["peek"], cost=0)
        elif "update" in step:
            limiter = space.limiter("limiter", step["update"], update=True)
            continue
        elif "open" in step:
            if step["error"]:
                with pytest.raises(sprag.LimitDiffersError):
                    space.limiter("limiter", step["open"])
            else:
                space.limiter("limiter", step["open"])
            continue
        else:
            assert clock is not None
            clock.advance(step.get("advance_ms", 0) / 1e3 + step.get("advance_ns", 0) / 1e9)
            continue
        seen = {
            "allowed": decision.allowed,
            "limit": decision.limit,
            "remaining": decision.remaining,
            "retry_after_ns": nanoseconds(decision.retry_after),
            "reset_after_ns": nanoseconds(decision.reset_after),
        }
        for field in step.keys() - {"check", "peek", "cost"}:
            assert seen[field] == step[field], (field, step)


@pytest.mark.parametrize("limit", LIMITERS["limits"], ids=lambda limit: limit["text"] or "empty")
def test_the_shared_limits_read_as_they_should(space: sprag.Space, limit: dict[str, Any]) -> None:
    if limit.get("error"):
        with pytest.raises(sprag.LimitError):
            space.limiter("limiter", limit["text"])
    else:
        assert space.limiter("limiter", limit["text"]).limit == limit["is"]
