"""What Sprag raises. Each class keeps what it was raised with as attributes, beside its text.

Bad types are `TypeError`; everything else that goes wrong is an `Error`.
"""

from __future__ import annotations

import os


class Error(Exception):
    """Any error of Sprag's. Its text says what to do about it."""

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        # Pickles as any exception does: by its text, and then its attributes.
        self.__dict__.update(details)


class BoundsError(Error, ValueError):
    """An argument lies outside its bounds. Nothing was changed."""

    argument: str
    """Which argument."""
    value: object
    """What was given; of a name its length in bytes, of a duration seconds."""
    minimum: float
    """The lowest value allowed."""
    maximum: float
    """The highest value allowed."""


class CounterOverflowError(BoundsError, OverflowError):
    """A counter would leave the range of 64 bits. Nothing was changed."""

    number: int
    """What the counter is at."""


class LimitError(Error, ValueError):
    """What was given as a limit is none: not its text, or outside its bounds."""


class LimitDiffersError(Error):
    """The limiter, or the semaphore, exists with another limit."""

    name: str
    """Which one."""
    existing: str | int
    """What it has."""
    asked: str | int
    """What was asked for."""


class LimiterGoneError(Error):
    """The limiter was removed while in use; open it again."""

    name: str
    """Which one."""


class OtherSpaceError(Error, ValueError):
    """A limiter that is to be checked together with others was opened in another space."""

    name: str
    """Which one."""


class LostError(Error):
    """The hold, or the attempt, is no longer the caller's: its lease ended, or it was taken away."""

    name: str | None
    """Of which lock or key; `None` where that cannot be told any more."""
    token: int
    """Its token."""


class ReleasedError(Error, RuntimeError):
    """The hold, or the attempt, was given up by its own holder before."""

    token: int
    """Its token."""


class UnfinishedError(Error):
    """The block of an attempt ended without finishing or abandoning it: the next one is told that its work may have
    been done in part."""


class StaleError(Error):
    """The fence has admitted a higher token: whoever comes with this one has lost what it holds."""

    fence: str
    """Which fence."""
    token: int
    """The token."""
    highest: int
    """The highest that was admitted."""


class DeadlockError(Error):
    """Owners wait for each other in a circle, and this wait is the one to give up."""

    waits: list[tuple[str | bytes, int | None]]
    """The circle: what each wait in it waits for, and the id of the process that waits."""


class UpgradeConflictError(Error):
    """Another who shares the lock waits to have it alone already."""

    name: str | None
    """Which lock; `None` where that cannot be told."""


class OwnerSharesError(Error):
    """An owner that shares a lock with others asked for it alone; upgrade the hold that it has."""

    name: str
    """Which lock."""


class FullError(Error):
    """There is no room for another: a cap of the region, this process's share of it, or the file system."""

    what: str | None = None
    """What there is no room for."""
    cap: int | None = None
    """The cap that was reached, if it was the region's."""
    used: int | None = None
    """How many this process has, if it was its share."""
    errno: int | None = None
    """What the system said, if it was the file system."""


class ForkedError(Error):
    """This process was forked after the space was opened: it owns nothing in it. Open the space again."""


class ClosedError(Error):
    """The space was closed."""


class NoSessionError(Error):
    """The space was opened without a session, and this needs one."""


class PlaceError(Error):
    """The URL is not one of a space, or what is at its place cannot be used."""

    path: str | os.PathLike[str] | None = None
    """The file, where it is about one."""
    errno: int | None = None
    """What the system said, where it did."""


class ReplacedError(Error):
    """The region's file was replaced or removed while open, or this process's session in it was lost: so are all
    holds. Open the space again."""


class DamagedError(Error):
    """The region's words contradict each other, or its tokens are used up."""


class UnsupportedError(Error):
    """What was asked for is not to be had here, or of this object."""


class HostError(Error):
    """The host lacks something: a clock, memory, descriptors, threads."""
