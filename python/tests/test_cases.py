"""The cases that every language shares, read from `api/tests/cases`; the page there says what they mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sprag

CASES = Path(__file__).parents[2] / "api" / "tests" / "cases"

Step = dict[str, Any]

# What the words for errors stand for. The class itself: one that is derived from it is another word's.
ERRORS = {
    "lost": sprag.LostError,
    "stale": sprag.StaleError,
    "out_of_range": sprag.BoundsError,
    "above_capacity": sprag.BoundsError,
    "owner_shares": sprag.OwnerSharesError,
    "overflow": sprag.CounterOverflowError,
    "differs": sprag.LimitDiffersError,
}


def read(file: str, cases: str = "cases") -> list[Any]:
    found = json.loads((CASES / f"{file}.json").read_text())[cases]
    assert found
    return found  # type: ignore[no-any-return]


def by_name(file: str, cases: str = "cases") -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in read(file, cases)]


def number(value: Any) -> int:
    """A number, which is a text where a double could not hold it."""
    return int(value)


def nanoseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e9)


class Scene:
    """A case, and what its names stand for."""

    def __init__(
        self, space: sprag.Space, clock: sprag.ManualClock | None, case: dict[str, Any]
    ) -> None:
        self.space = space
        self.clock = clock
        self.tokens: dict[str, int] = {}
        self.open(case)

    def open(self, case: dict[str, Any]) -> None:
        """Makes what the case begins with."""

    def run(self, step: Step) -> None:
        raise NotImplementedError

    def unknown(self, step: Step) -> None:
        pytest.fail(f"an unknown step: {step}")

    def advance(self, ns: int) -> None:
        assert self.clock is not None
        self.clock.advance(ns / 1e9)

    def token(self, value: Any) -> int:
        """The token that a name stands for, or the number itself."""
        return self.tokens[value] if isinstance(value, str) else int(value)

    def keep(self, step: Step, token: int) -> None:
        """Notes the token, which is to follow another one, or to be the same."""
        if "after" in step:
            assert token == self.token(step["after"]) + 1, step
        if "same" in step:
            assert token == self.token(step["same"]), step
        self.tokens[step["as"]] = token

    def expect(self, step: Step, call: Callable[[], str | None]) -> None:
        """That a call comes to the word that is expected; one that has no other word for it is `ok`."""
        expected = step.get("expect", "ok")
        try:
            word = call() or "ok"
        except sprag.Error as error:
            assert type(error) is ERRORS.get(expected), (error, step)
        else:
            assert word == expected, step


@pytest.fixture(params=["mem", "shm"])
def reach(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[[type[Scene], dict[str, Any]], None]]:
    """Runs a case in an empty space, on a clock that can be moved if there is one."""
    clock = sprag.ManualClock() if request.param == "mem" else None
    url = "mem:" if request.param == "mem" else f"shm:{tmp_path}/region"

    def run(scene: type[Scene], case: dict[str, Any]) -> None:
        if case.get("clock") and clock is None:
            return
        with sprag.open(url, clock=clock) as space:
            of = scene(space, clock, case)
            for step in case["steps"]:
                of.run(step)

    yield run


Reach = Callable[[type[Scene], dict[str, Any]], None]


class HoldScene(Scene):
    def open(self, case: dict[str, Any]) -> None:
        self.holds: dict[str, sprag.Hold] = {}
        self.owners: dict[str, sprag.Owner] = {}

    def acquired(self, step: Step) -> sprag.Lock | sprag.Semaphore:
        of: dict[str, Any] = {"ttl": step["ttl_ms"] / 1000} if "ttl_ms" in step else {}
        if "semaphore" in step:
            return self.space.semaphore(step["semaphore"], step["permits"], **of)
        if "concurrency" in step:
            update = step.get("update", False)
            name, permits = step["concurrency"], step["permits"]
            return self.space.concurrency(name, permits, update=update).key(step["key"], **of)
        by: sprag.Space | sprag.Owner = self.space
        if "owner" in step:
            by = self.owners.setdefault(step["owner"], self.space.owner())
        if "locks" in step:
            return by.locks(step["locks"], **of)
        if "partition_of" in step:
            return by.partition(self.space.partition_of(step["partition_of"]), **of)
        if "table" in step:
            return by.table(**of)
        return by.lock(step["lock"], shared="mode" in step, **of)

    def keep_hold(self, step: Step, hold: sprag.Hold | None) -> str:
        if hold is None:
            return "busy"
        self.holds[step["as"]] = hold
        self.keep(step, max(hold.tokens))
        return "granted"

    def acquire(self, step: Step) -> str:
        acquired = self.acquired(step)
        if isinstance(acquired, sprag.Semaphore):
            return self.keep_hold(step, acquired.acquire(step.get("count", 1), blocking=False))
        return self.keep_hold(step, acquired.acquire(blocking=False))

    def upgrade(self, step: Step) -> str:
        hold = self.holds[step["hold"]]
        if not hold.upgrade(timeout=0):
            return "busy"
        self.keep({**step, "as": step["hold"]}, hold.token)
        return "ok"

    def adopt(self, step: Step) -> None:
        self.keep_hold(step, self.acquired(step).adopt_token(self.token(step["token"])))

    def inspect(self, step: Step) -> None:
        info = self.space.inspect(step["lock"])[0]
        seen = {
            "held": info.is_held,
            "token": info.token,
            "waiters": info.waiters,
            "lease_left_ms": round(info.lease_left * 1000),
        }
        for field, value in step["expect"].items():
            assert seen[field] == (self.token(value) if field == "token" else value), step

    def run(self, step: Step) -> None:
        token = self.token(step.get("number", step.get("token", 0)))
        match step["do"]:
            case "advance":
                self.advance(step["ms"] * 1_000_000)
            case "try":
                self.expect(step, lambda: self.acquire(step))
            case "release" | "renew" as verb:
                self.expect(step, getattr(self.holds[step["hold"]], verb))
            case "detach":
                self.expect(step, lambda: "ok" if self.holds[step["hold"]].detach() else None)
            case "extend":
                hold = self.holds[step["hold"]]
                self.expect(step, lambda: hold.extend(step["ttl_ms"] / 1000))
            case "upgrade":
                self.expect(step, lambda: self.upgrade(step))
            case "downgrade":
                self.expect(step, self.holds[step["hold"]].downgrade)
            case "drop":
                del self.holds[step["hold"]]
            case "valid":
                assert self.holds[step["hold"]].is_valid() is step["expect"], step
            case "held":
                assert self.holds[step["hold"]].is_held() is step["expect"], step
            case "shared":
                assert self.holds[step["hold"]].is_shared is step["expect"], step
            case "release_token":
                self.expect(step, lambda: self.acquired(step).release_token(token))
            case "renew_token":
                self.expect(step, lambda: self.acquired(step).renew_token(token))
            case "adopt":
                self.expect(step, lambda: self.adopt(step))
            case "break":
                broken, expected = self.space.break_lock(step["lock"]), step["expect"]
                assert broken == (None if expected is None else self.token(expected)), step
            case "inspect":
                self.inspect(step)
            case "admit" | "admit_once" as verb:
                fence = self.space.fence(step["fence"])
                self.expect(step, lambda: getattr(fence, verb)(token))
            case "highest":
                assert self.space.fence(step["fence"]).highest == self.token(step["expect"]), step
            case _:
                self.unknown(step)


class CounterScene(Scene):
    def told(self, step: Step, is_at: int | None) -> None:
        """Compares the number that a call told, if it told one."""
        if "is" in step and is_at is not None:
            assert is_at == number(step["is"]), step

    def counter(self, step: Step) -> sprag.Counter | sprag.StripedCounter:
        if "striped" in step:
            return self.space.counter(step["striped"]).striped()
        return self.space.counter(step["counter"])

    def call(self, step: Step) -> str | None:
        of = self.counter(step)
        match step["do"]:
            case "get":
                self.told(step, of.get())
            case "add":
                self.told(step, of.add(number(step["delta"])))
            case "add_within":
                bounds = number(step["min"]), number(step["max"])
                added = of.add_within(number(step["delta"]), *bounds)
                # Where it is refused, the number is not told here, but asked for.
                self.told(step, of.get())
                if added is None or added is False:
                    return "refused"
                assert added is True or added == of.get()
            case "swap":
                self.told(step, of.swap(number(step["to"])))
            case "compare_exchange":
                is_set = of.compare_exchange(number(step["from"]), number(step["to"]))
                self.told(step, number(step["from"]) if is_set else of.get())
                return "ok" if is_set else "differs"
            case _:
                self.unknown(step)
        return None

    def run(self, step: Step) -> None:
        self.expect(step, lambda: self.call(step))


class OnceScene(Scene):
    def open(self, case: dict[str, Any]) -> None:
        self.attempts: dict[str, sprag.Attempt] = {}

    def told(self, step: Step, seen: object) -> str:
        match seen:
            case sprag.Attempt():
                self.attempts[step["as"]] = seen
                self.keep(step, seen.token)
                return "started"
            case sprag.InProgress():
                return "in_progress"
            case sprag.Done():
                assert seen.result == step["result"].encode(), step
                return "done"
            case sprag.Unfinished():
                return "unfinished"
            case _:
                assert seen is None
                return "none"

    def call(self, step: Step) -> str | None:
        result = step.get("result", "").encode()
        ttl, keep_for = step.get("ttl_ms", 0) / 1000, step.get("keep_ms", 0) / 1000
        token = self.token(step.get("token", 0))
        if "once" in step:
            once = self.space.once(step["once"])
            match step["do"]:
                case "begin":
                    return self.told(step, once.begin(ttl))
                case "status":
                    return self.told(step, once.status())
                case "finish_token":
                    once.finish_token(token, result, keep_for)
                case "extend_token":
                    once.extend_token(token, ttl)
                case "abandon_token":
                    once.abandon_token(token)
                case _:
                    self.unknown(step)
            return None
        attempt = self.attempts[step["attempt"]]
        match step["do"]:
            case "finish":
                attempt.finish(result, keep_for)
            case "extend":
                attempt.extend(ttl)
            case "abandon":
                attempt.abandon()
            case "detach":
                attempt.detach()
            case _:
                self.unknown(step)
        return None

    def run(self, step: Step) -> None:
        match step["do"]:
            case "advance":
                self.advance(step["ms"] * 1_000_000)
            case "valid":
                assert self.attempts[step["attempt"]].is_valid() is step["expect"], step
            case "after_unfinished":
                seen = self.attempts[step["attempt"]].is_after_unfinished
                assert seen is step["expect"], step
            case _:
                self.expect(step, lambda: self.call(step))


class LimitScene(Scene):
    """What the scenes of one limiter and of a joint limiter share."""

    def is_passing(self, step: Step) -> bool:
        """Whether the step is that time goes by, which it does then."""
        if not {"advance_ms", "advance_ns"} & step.keys():
            return False
        self.advance(step.get("advance_ms", 0) * 1_000_000 + step.get("advance_ns", 0))
        return True

    def compare(self, step: Step, decision: sprag.Decision | sprag.JointDecision) -> None:
        seen: dict[str, object] = {
            "allowed": decision.allowed,
            "limit": decision.limit,
            "remaining": decision.remaining,
            "retry_after_ns": nanoseconds(decision.retry_after),
            "reset_after_ns": nanoseconds(decision.reset_after),
        }
        if isinstance(decision, sprag.Decision):
            seen["act_after_ns"] = nanoseconds(decision.act_after)
        else:
            seen["refused_by"] = decision.refused_by
            seen["of"] = [each.remaining for each in decision.each]
        for field in step.keys() - {"check", "peek", "reserve", "cost", "wait_max_ms", "as"}:
            assert seen[field] == step[field], (field, step)

    def is_opened(self, step: Step, opens: Callable[[], object]) -> None:
        if step["error"]:
            with pytest.raises(sprag.Error):
                opens()
        else:
            opens()


class LimiterScene(LimitScene):
    def open(self, case: dict[str, Any]) -> None:
        self.limiter = self.space.limiter("limiter", case["limit"])
        self.decisions: dict[str, sprag.Decision] = {}

    def decide(self, step: Step) -> sprag.Decision | None:
        cost = number(step.get("cost", 1))
        if "check" in step:
            return self.limiter.hit(step["check"], cost)
        if "peek" in step:
            return self.limiter.test(step["peek"], cost=0)
        if "reserve" in step:
            return self.limiter.reserve(step["reserve"], cost, step["wait_max_ms"] / 1000)
        return None

    def run(self, step: Step) -> None:
        decision = self.decide(step)
        if decision is not None:
            self.compare(step, decision)
            if "as" in step:
                self.decisions[step["as"]] = decision
        elif "refund" in step:
            amount = self.limiter.refund(self.decisions[step["refund"]])
            word = "void" if amount is None else "given" if amount else "over"
            assert (word, amount or 0) == (step["expect"], step.get("amount", 0)), step
        elif "update" in step:
            self.limiter = self.space.limiter("limiter", step["update"], update=True)
        elif "open" in step:
            self.is_opened(step, lambda: self.space.limiter("limiter", step["open"]))
        elif "override" in step:
            self.limiter.set_override(step["override"], step["is"])
        elif "clear_override" in step:
            assert self.limiter.clear_override(step["clear_override"]) is step["expect"], step
        elif "override_of" in step:
            assert self.limiter.override_of(step["override_of"]) == step["expect"], step
        elif not self.is_passing(step):
            self.unknown(step)


class JointScene(LimitScene):
    def open(self, case: dict[str, Any]) -> None:
        self.limiter = self.space.joint_limiter("limiter", case["limits"])

    def run(self, step: Step) -> None:
        if "check" in step:
            self.compare(step, self.limiter.hit(step["check"], number(step.get("cost", 1))))
        elif "peek" in step:
            self.compare(step, self.limiter.test(step["peek"]))
        elif "open" in step:
            self.is_opened(step, lambda: self.space.joint_limiter("limiter", step["open"]))
        elif not self.is_passing(step):
            self.unknown(step)


class CheckAllScene(Scene):
    def open(self, case: dict[str, Any]) -> None:
        self.limiters = {
            name: self.space.limiter(name, limit) for name, limit in case["limiters"].items()
        }

    def run(self, step: Step) -> None:
        checks = [(self.limiters[name], key, number(cost)) for name, key, cost in step["check_all"]]
        if "error" in step:
            self.expect({"expect": step["error"]}, lambda: str(self.space.check_all(checks)))
            return
        decisions = self.space.check_all(checks)
        assert decisions.all_allowed is step["allowed"], step
        seen = {
            "each": [decision.allowed for decision in decisions],
            "remaining": [decision.remaining for decision in decisions],
        }
        for field in step.keys() - {"check_all", "allowed"}:
            assert seen[field] == step[field], (field, step)


@pytest.mark.parametrize("case", by_name("locks"))
def test_the_shared_cases_of_locks_hold(reach: Reach, case: dict[str, Any]) -> None:
    reach(HoldScene, case)


@pytest.mark.parametrize("case", by_name("semaphores"))
def test_the_shared_cases_of_semaphores_hold(reach: Reach, case: dict[str, Any]) -> None:
    reach(HoldScene, case)


@pytest.mark.parametrize("case", by_name("counters"))
def test_the_shared_cases_of_counters_hold(reach: Reach, case: dict[str, Any]) -> None:
    reach(CounterScene, case)


@pytest.mark.parametrize("case", by_name("onces"))
def test_the_shared_cases_of_onces_hold(reach: Reach, case: dict[str, Any]) -> None:
    reach(OnceScene, case)


@pytest.mark.parametrize("case", by_name("limiters"))
def test_the_shared_cases_of_limiters_hold(reach: Reach, case: dict[str, Any]) -> None:
    reach(LimiterScene, case)


@pytest.mark.parametrize("case", by_name("several_limits", "joint"))
def test_the_shared_cases_of_joint_limiters_hold(reach: Reach, case: dict[str, Any]) -> None:
    reach(JointScene, case)


@pytest.mark.parametrize("case", by_name("several_limits", "check_all"))
def test_the_shared_cases_of_several_limiters_hold(reach: Reach, case: dict[str, Any]) -> None:
    reach(CheckAllScene, case)


@pytest.mark.parametrize(
    "limit", read("limiters", "limits"), ids=lambda limit: limit["text"] or "empty"
)
def test_the_shared_limits_read_as_they_should(space: sprag.Space, limit: dict[str, Any]) -> None:
    if limit.get("error"):
        with pytest.raises(sprag.LimitError):
            space.limiter("limiter", limit["text"])
    else:
        assert space.limiter("limiter", limit["text"]).limit == limit["is"]
