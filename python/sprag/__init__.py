"""Locks with fencing tokens and leases, rate limiters, semaphores, counters and idempotency keys, at memory speed.

A `Space` is a set of named objects, opened by URL: `mem:` for the threads of this process, `shm:NAME` for all
processes of this host.

    import sprag

    space = sprag.open("mem:")
    with space.lock("orders/42", ttl=10) as hold:
        print(hold.token)
    if space.limiter("api", "100/minute", burst=20).hit("user:42"):
        ...
"""

from sprag._errors import (
    BoundsError,
    ClosedError,
    CounterOverflowError,
    DamagedError,
    DeadlockError,
    Error,
    ForkedError,
    FullError,
    HostError,
    LimitDiffersError,
    LimiterGoneError,
    LimitError,
    LostError,
    NoSessionError,
    OtherSpaceError,
    OwnerSharesError,
    PlaceError,
    ReleasedError,
    ReplacedError,
    StaleError,
    UnsupportedError,
    UpgradeConflictError,
)
from sprag._sprag import Caps, Decision, Hold, Limiter, Lock, ManualClock, Space, open

__all__ = [
    "BoundsError",
    "Caps",
    "ClosedError",
    "CounterOverflowError",
    "DamagedError",
    "DeadlockError",
    "Decision",
    "Error",
    "ForkedError",
    "FullError",
    "Hold",
    "HostError",
    "LimitDiffersError",
    "LimitError",
    "Limiter",
    "LimiterGoneError",
    "Lock",
    "LostError",
    "ManualClock",
    "NoSessionError",
    "OtherSpaceError",
    "OwnerSharesError",
    "PlaceError",
    "ReleasedError",
    "ReplacedError",
    "Space",
    "StaleError",
    "UnsupportedError",
    "UpgradeConflictError",
    "open",
]
