"""What an inspection tells: each as it was at one moment. Times are seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sprag._sprag import Done, InProgress, Unfinished


@dataclass(frozen=True, slots=True)
class HoldInfo:
    """One hold of a lock or a semaphore."""

    token: int
    permits: int
    """How many of a semaphore's permits it has; 1 of a lock."""
    is_live: bool
    """Whether it holds, and not merely by an expired lease or by a process that died."""
    pid: int | None
    """The holder's process id in its own namespace, also of one that died; `None` if detached, or not known."""
    is_detached: bool
    """Whether it belongs to no process: a script holds it by its token."""
    lease_left: float
    """What is left of the lease; 0 once it is over."""
    held_for: float | None
    """How long it has been held; `None` if not known."""


@dataclass(frozen=True, slots=True)
class LockInfo:
    """A lock; what is said of the holder is said of the one whose lease lasts longest."""

    name: str | bytes
    token: int
    """The holder's, or the last one's."""
    is_held: bool
    """Whether it is held, and not merely by an expired lease or by a process that died."""
    is_holder_dead: bool
    """Whether its holder died without releasing it: the next one that comes for it gets it."""
    is_shared: bool
    """Whether those who hold it share it."""
    holders: int
    """How many hold it: one at most, unless it is shared."""
    holds: list[HoldInfo]
    """Each hold on it, those included that are over or whose process died."""
    holder_pid: int | None
    is_detached: bool
    lease_left: float
    held_for: float | None
    waiters: int
    """How many wait for it."""
    waiters_dead: int
    """How many more died while they waited."""


@dataclass(frozen=True, slots=True)
class SemaphoreInfo:
    """A semaphore, or a key of a concurrency limiter."""

    name: str | bytes
    """The semaphore's name, or the key."""
    permits: int
    """How many there are."""
    used: int
    """How many are held, and not merely by an expired lease or by a process that died."""
    remaining: int
    """The most that could be had beside those, if nobody waits."""
    holders: int
    """How many hold some."""
    holds: list[HoldInfo]
    waiters: int
    waiters_dead: int


@dataclass(frozen=True, slots=True)
class ConcurrencyInfo:
    """A concurrency limiter, and its keys that have an entry."""

    name: str | bytes
    permits: int
    """How many each key can have at once."""
    keys: list[SemaphoreInfo]


@dataclass(frozen=True, slots=True)
class LimiterInfo:
    """A limiter."""

    name: str | bytes
    limit: str
    keys: int
    """How many keys have an entry: those with something used, and full ones not reclaimed yet."""


@dataclass(frozen=True, slots=True)
class JointLimiterInfo:
    """A joint limiter."""

    name: str | bytes
    limits: list[str]
    keys: int
    """How many keys have an entry."""


@dataclass(frozen=True, slots=True)
class OverrideInfo:
    """A limit of its own of one key."""

    limiter: str | bytes
    key: str | bytes
    limit: str


@dataclass(frozen=True, slots=True)
class CounterInfo:
    """A counter that is not at 0."""

    name: str | bytes
    number: int


@dataclass(frozen=True, slots=True)
class OnceInfo:
    """An idempotency key."""

    name: str | bytes
    status: InProgress | Done | Unfinished


@dataclass(frozen=True, slots=True)
class BreakInfo:
    """A hold that was taken away by force."""

    at: float
    """When, in seconds of unix time."""
    token: int
    """The token of the hold that was ended."""
    by_pid: int
    """Process id of whoever did it."""
    name: str | bytes
    """The lock's name, its first 96 bytes."""
