"""What metrics tell: counts of what this process did with a space, and how full its region is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CheckCounts:
    """Answers to checks of limits: each key of `hit_many` is one, a call of several limits is one as a whole."""

    allowed: int
    refused: int
    overflow: int
    """How many of both were decided by the bucket that keys without room share."""


@dataclass(frozen=True, slots=True)
class AcquireCounts:
    """How acquires of locks and permits went."""

    at_once: int
    after_wait: int
    busy: int
    """Tries that were not granted, and did not wait."""
    timed_out: int
    cancelled: int
    deadlocks: int


@dataclass(frozen=True, slots=True)
class WaitTimes:
    """How long those waited that were granted after waiting."""

    buckets: list[int]
    """How many waited up to a microsecond, then up to 2, up to 4 and so on; the last one has all that are longer."""
    sum: float
    """All waits together, in seconds."""


@dataclass(frozen=True, slots=True)
class OnceCounts:
    """What came of idempotency keys."""

    started: int
    in_progress: int
    """Beginnings that found another attempt under way."""
    done: int
    """Beginnings that were given the result."""
    finished: int
    unfinished: int


@dataclass(frozen=True, slots=True)
class Fill:
    """How much of something is taken."""

    used: int
    cap: int


@dataclass(frozen=True, slots=True)
class Usage:
    """How full the region is, whoever filled it."""

    objects: Fill
    limiter_keys: Fill
    joint_keys: Fill
    sessions: Fill
    waiters: Fill
    permits: Fill
    limits: Fill
    joint_limiters: Fill


@dataclass(frozen=True, slots=True)
class Metrics:
    """Each count is exact, and only rises."""

    checks: CheckCounts
    acquires: AcquireCounts
    waits: WaitTimes
    renewals: int
    holds_lost: int
    onces: OnceCounts
    region: Usage
