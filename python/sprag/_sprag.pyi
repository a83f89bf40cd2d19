"""The compiled half of the package: everything that `sprag` exports, but for errors and what inspections tell."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, ClassVar, Literal, TypeAlias, final, overload
from weakref import ReferenceType

from sprag._info import (
    BreakInfo,
    ConcurrencyInfo,
    CounterInfo,
    JointLimiterInfo,
    LimiterInfo,
    LockInfo,
    OnceInfo,
    OverrideInfo,
    SemaphoreInfo,
)
from sprag._metrics import Metrics

__all__ = [
    "Acquire",
    "Attempt",
    "Caps",
    "Completed",
    "Concurrency",
    "Counter",
    "Decision",
    "Decisions",
    "Done",
    "Fence",
    "Hold",
    "InProgress",
    "JointDecision",
    "JointLimiter",
    "Limiter",
    "Lock",
    "LostQueue",
    "ManualClock",
    "Once",
    "Owner",
    "Reactor",
    "Semaphore",
    "Space",
    "StripedCounter",
    "Unfinished",
    "__version__",
    "open",
]

__version__: str

_Name: TypeAlias = str | bytes
"""1 to 1,024 bytes; text as its UTF-8."""
_Seconds: TypeAlias = float | timedelta
"""A time that is not negative, kept in nanoseconds."""
_OnLost: TypeAlias = Callable[["Hold"], object]

def open(
    url: str,
    *,
    create: bool = True,
    group_shared: bool = False,
    session: bool = True,
    share_percent: int = 75,
    caps: Caps | None = None,
    clock: ManualClock | None = None,
) -> Space:
    """Opens the space at `url`: `mem:`, `shm:NAME` or `shm:/path`.

    Each `mem:` is a space of its own, for the threads of this process; share the object. `shm:NAME` is the file
    `NAME.sprag` in `$SPRAG_DIR`, or else in `/dev/shm/sprag-UID`, shared by all processes of this host that may open
    it.

    - `create`: whether to create the region if there is none, or raise `PlaceError`.
    - `group_shared`: whether the group may use the region too, mode 0660 instead of 0600.
    - `session`: without one, it is enough to look, to break, and to release and renew by token.
    - `share_percent`: how much of each cap of a shared region this session may fill, 1 to 100.
    - `caps`: of the region, if this call creates it.
    - `clock`: one that a test moves by hand; `mem:` only.

    Costs some dozen system calls; a region that another process is resizing or making is waited for, for up to 10 s.
    A process that was forked from one with an open space gets `ForkedError` until it opens its own.
    """

@final
class Space:
    """A set of named objects, opened by URL with `open`.

    What is made of it (locks, limiters) keeps its session; that ends with the last of them, and what it still held is
    then free for others.
    """

    def lock(
        self,
        name: _Name,
        ttl: _Seconds = 30,
        *,
        shared: bool = False,
        keep_alive: bool = False,
        on_lost: _OnLost | None = None,
    ) -> Lock:
        """A handle on the lock `name`. Nothing is created before it is acquired; cheap to make, cheaper to keep.

        - `ttl`: the lease of its holds, 1 ms to 366 days. One that is not renewed ends then, whatever its holder does.
        - `shared`: whether its holds share the lock with each other.
        - `keep_alive`: whether the lease is renewed in the background, for up to 24 hours.
        - `on_lost`: called with a hold once that is lost, in a thread of its own, within about 200 ms; also without
          `keep_alive`, when the lease is over.

        Not re-entrant: a second acquire waits for the first hold. For re-entry see `owner`.
        """

    def locks(
        self,
        names: Iterable[_Name],
        ttl: _Seconds = 30,
        *,
        keep_alive: bool = False,
        on_lost: _OnLost | None = None,
    ) -> Lock:
        """Several locks, 1 to 64, acquired all at once or not at all. In whatever order they are named, such acquires
        never deadlock with each other. Its hold has `tokens`."""

    def partition(
        self,
        partition: int,
        ttl: _Seconds = 30,
        *,
        keep_alive: bool = False,
        on_lost: _OnLost | None = None,
    ) -> Lock:
        """The lock of a partition, of those that `partition_of` counts: it excludes the locks of all keys in it."""

    def table(
        self, ttl: _Seconds = 30, *, keep_alive: bool = False, on_lost: _OnLost | None = None
    ) -> Lock:
        """The lock of the table: it excludes all locks of keys and of partitions."""

    def owner(self) -> Owner:
        """An owner, whose locks are re-entrant and whose deadlocks are found."""

    def semaphore(
        self,
        name: _Name,
        permits: int,
        ttl: _Seconds = 30,
        *,
        keep_alive: bool = False,
        on_lost: _OnLost | None = None,
    ) -> Semaphore:
        """The semaphore `name`, which has `permits`: 1 to 16,777,215, each leased. That it exists with another number
        is found out by acquiring: `LimitDiffersError`."""

    def concurrency(self, name: _Name, permits: int, *, update: bool = False) -> Concurrency:
        """The concurrency limiter `name`: of each key at most `permits` are held at once, 1 to 16,777,215.
        `LimitDiffersError` if it allows another number, unless `update`, which changes it for everybody."""

    def limiter(
        self,
        name: _Name,
        limit: str,
        burst: int | None = None,
        *,
        window: Literal["fixed", "sliding"] | None = None,
        update: bool = False,
    ) -> Limiter:
        """The limiter `name`, created with `limit` if there is none. Open it once and keep it.

        `limit` is a text such as "100/minute", "5/10s" or "30/second;burst=5"; `burst` and `window` can be given
        beside it. A token bucket, unless `window` says otherwise. `LimitError` if it is no limit, `LimitDiffersError`
        if the limiter has another one, unless `update`, which changes it and keeps what each key has used.
        """

    def find_limiter(self, name: _Name) -> Limiter | None:
        """The limiter `name` with whatever limit it has; `None` if there is none."""

    def find_concurrency(self, name: _Name) -> Concurrency | None:
        """The concurrency limiter `name` as it is; `None` if there is none."""

    def joint_limiter(self, name: _Name, limits: Sequence[str]) -> JointLimiter:
        """2 to 6 limits that each key is under at once: all of them admit, or nothing is taken. `LimitDiffersError`
        if it has others."""

    def check_all(
        self, checks: Iterable[tuple[Limiter, _Name] | tuple[Limiter, _Name, int]]
    ) -> Decisions:
        """Checks 1 to 8 limiters of this space, each with a key and a cost, 1 if not given: all are allowed and all
        is taken, or nothing is."""

    def counter(self, name: _Name) -> Counter:
        """The counter `name`, 0 until somebody changes it."""

    def once(self, key: _Name) -> Once:
        """A handle on an idempotency key."""

    def fence(self, name: _Name) -> Fence:
        """The fence `name`, created when it first admits a token. It stays for as long as the region does."""

    def break_lock(self, name: _Name) -> int | None:
        """Takes the lock away from whoever holds it, and notes who did; the token that was ended, or `None` if it was
        not held. What the holder still writes, a fence rejects."""

    def metrics(self) -> Metrics:
        """What this process did with the space since it was opened, and how full its region is. Stops nobody; some
        microseconds."""

    def breaks(self) -> list[BreakInfo]:
        """The last forced releases, oldest first, at most 64."""

    def inspect(self, prefix: _Name = "") -> list[LockInfo]:
        """The locks whose names begin with `prefix`, by name. Like all lists here it reads the whole table, and stops
        no one."""

    def inspect_coarse(self) -> list[LockInfo]:
        """The locks of partitions and of the table that are held or waited for."""

    def semaphores(self, prefix: _Name = "") -> list[SemaphoreInfo]:
        """The semaphores whose names begin with `prefix`, by name."""

    def concurrency_limiters(self, prefix: _Name = "") -> list[ConcurrencyInfo]:
        """The concurrency limiters whose names begin with `prefix`, by name, and what is held of their keys."""

    def limiters(self, prefix: _Name = "") -> list[LimiterInfo]:
        """The limiters whose names begin with `prefix`, by name."""

    def joint_limiters(self, prefix: _Name = "") -> list[JointLimiterInfo]:
        """The joint limiters whose names begin with `prefix`, by name."""

    def overrides(self, prefix: _Name = "") -> list[OverrideInfo]:
        """The overrides of limiters whose names begin with `prefix`, by limiter and key."""

    def counters(self, prefix: _Name = "") -> list[CounterInfo]:
        """The counters that are not at 0 and whose names begin with `prefix`, by name."""

    def onces(self, prefix: _Name = "") -> list[OnceInfo]:
        """The idempotency keys that begin with `prefix`, by name, but for new ones."""

    def partition_of(self, key: _Name) -> int:
        """The partition that a key falls into, counted from 0."""

    @property
    def partitions(self) -> int:
        """How many partitions there are: a power of two, at most 64."""

    @property
    def url(self) -> str:
        """The URL that it was opened by."""

    @property
    def closed(self) -> bool:
        """Whether it was closed."""

    def close(self) -> None:
        """Gives the space up: all that is asked of it then is a `ClosedError`. What was made of it goes on, and keeps
        the session."""

    def __enter__(self) -> Space: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

@final
class Caps:
    """What a region that is created has room for; what is not said keeps its default."""

    def __new__(
        cls,
        *,
        objects: int | None = None,
        limiter_keys: int | None = None,
        joint_keys: int | None = None,
        sessions: int | None = None,
        waiters: int | None = None,
        permits: int | None = None,
        key_chunks: int | None = None,
    ) -> Caps:
        """- `objects`: locks, semaphores, fences, counters, limiter names, overrides, keys of concurrency limiters
          and onces together: 1 to 2^26; 65,536 if not said.
        - `limiter_keys`: keys of all limiters together: 1 to 2^28; 262,144.
        - `joint_keys`: keys of all joint limiters together: 1 to 2^26; 65,536.
        - `sessions`: open spaces at one time: 1 to 4,095; 1,024.
        - `waiters`: waits at one time: 1 to 65,536; 4,096.
        - `permits`: shared holds and holds of semaphores at one time: 1 to 65,536; 8,192.
        - `key_chunks`: chunks of 48 bytes for long names and results: 1 to 2^28; 262,144.
        """

@final
class ManualClock:
    """A clock for tests: it shows the same time until it is moved. Timeouts go by it as well."""

    def __new__(cls) -> ManualClock: ...
    def advance(self, by: _Seconds) -> None:
        """Moves the clock forward."""

    @property
    def boot_ns(self) -> int:
        """Nanoseconds of boot time, by which leases and limits run."""

    @property
    def unix_ns(self) -> int:
        """Nanoseconds of unix time; moves together with boot time."""

@final
class Lock:
    """A lock: by name, of a partition or the table, of an owner, or several at once.

    `with lock as hold:` and `async with lock as hold:` acquire it, waiting in first-come order, and release it at the
    end; `LostError` then if the hold was lost meanwhile, unless the body raised something itself. One object serves
    any number of threads, tasks and greenlets: each leaves its block with its own hold.
    """

    @overload
    def acquire(self, blocking: Literal[True] = True, timeout: None = None) -> Hold: ...
    @overload
    def acquire(self, blocking: bool = True, timeout: _Seconds | None = None) -> Hold | None:
        """Acquires it; `None` if `blocking` is false and it can't be had at once, or its turn did not come within
        `timeout`. Other threads run meanwhile, and Ctrl-C ends the wait with nothing held.

        Keep the hold that it returns, or enter it by `with`: one that nobody has any more is released."""

    @overload
    def acquire_async(self, timeout: None = None) -> Coroutine[Any, Any, Hold]: ...
    @overload
    def acquire_async(self, timeout: _Seconds | None = None) -> Coroutine[Any, Any, Hold | None]:
        """Acquires it when awaited: without a trip through the loop if it is free. Cancelling leaves nothing held or
        queued. asyncio and its like only."""

    def __enter__(self) -> Hold: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...
    def __aenter__(self) -> Coroutine[Any, Any, Hold]: ...
    def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> Awaitable[None]: ...
    def locked(self) -> bool:
        """Whether anybody holds it, here or in another process; of several, any of them."""

    def owned(self) -> bool:
        """Whether a hold that came of this object holds still: one that a block entered, or the last one acquired."""

    def release_token(self, token: int) -> None:
        """Ends the hold with this token, whoever took it: the other half of `Hold.detach`. `LostError` if the lock
        is not held under this token."""

    def renew_token(self, token: int) -> None:
        """Sets the lease of the hold with this token to this object's, from now."""

    def adopt_token(self, token: int) -> Hold:
        """Takes over the hold with this token from whoever has it: how a hold goes from one process to another."""

@final
class Hold:
    """What was acquired: a lock, several, or permits. It belongs to whoever has the object, in whichever thread or
    task, and ends by `release()`, at the end of its own `with` block, or with the object.

    It can end before that: when its lease ends, or somebody breaks the lock. Ask `is_valid()` before each step that
    needs the lock, and send `token` along to a fence, which is the only thing that stops a step already under way.
    """

    @property
    def token(self) -> int:
        """The fencing token: higher than that of every earlier hold of this lock. Of several locks, see `tokens`."""

    @property
    def tokens(self) -> list[int]:
        """The tokens, of several locks in the order of their names."""

    def is_valid(self) -> bool:
        """Whether the lease still runs, by the holder's own clock. Errs towards false near the end."""

    def is_held(self) -> bool:
        """Whether it still holds, by the engine's word: also notices a broken lock."""

    @property
    def lost(self) -> bool:
        """Whether it ended, or is about to, though nobody gave it up."""

    @property
    def is_shared(self) -> bool:
        """Whether others may hold the lock beside this one."""

    @property
    def lease_left(self) -> float:
        """What is left of the lease, in seconds; 0 once it is over."""

    def renew(self) -> None:
        """Starts the lease anew, from now, with the length it had. `LostError` once it is over."""

    def extend(self, ttl: _Seconds) -> None:
        """`renew` with another length: 1 ms to 366 days."""

    def keep_alive(
        self, at_most: _Seconds | None = None, on_lost: _OnLost | None = None
    ) -> None:
        """Has the lease renewed in the background, by one thread for the whole space, for `at_most`, 24 hours if not
        said. `on_lost` is called with the hold once that is lost, in a thread of its own. A second call replaces what
        the first asked for."""

    def upgrade(self, timeout: _Seconds | None = None) -> bool:
        """Takes alone what this hold shares, waiting for the others to release it; the token is a new one then.
        False if they share it still when `timeout` is over. `UpgradeConflictError` if another waits for the same."""

    def downgrade(self) -> None:
        """Goes on sharing the lock instead of having it alone."""

    def release(self) -> None:
        """Gives it up. `LostError` if somebody else has taken it since, `ReleasedError` if that was done before."""

    def detach(self) -> int:
        """Lets the hold live on without this process until its lease ends, which starts anew, or somebody releases it
        by the token returned."""

    def __enter__(self) -> Hold: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...
    @property
    def _on_lost(self) -> _OnLost | None: ...

@final
class Acquire:
    """An acquire to be awaited, once: a coroutine, for `await`, `asyncio.create_task`, `asyncio.wait_for`."""

    def __await__(self) -> Acquire: ...
    def __iter__(self) -> Acquire: ...
    def __next__(self) -> Any: ...
    def send(self, value: None) -> Any: ...
    def throw(self, kind: Any, error: Any = None, trace: Any = None) -> Any: ...
    def close(self) -> None: ...
    def _time_out(self) -> None: ...

@final
class Completed:
    """What is done already, as something to await."""

    def __await__(self) -> Awaitable[None]: ...
    def __iter__(self) -> Awaitable[None]: ...
    def __next__(self) -> None: ...

@final
class Semaphore:
    """A number of permits by name, or those of a key of a concurrency limiter. Each hold has a lease, a token and as
    many permits as it asked for at once. In `with` and `async with` blocks it is one."""

    @overload
    def acquire(
        self, permits: int = 1, blocking: Literal[True] = True, timeout: None = None
    ) -> Hold: ...
    @overload
    def acquire(
        self, permits: int = 1, blocking: bool = True, timeout: _Seconds | None = None
    ) -> Hold | None:
        """Takes `permits` at once, in first-come order, as `Lock.acquire`."""

    @overload
    def acquire_async(self, permits: int = 1, timeout: None = None) -> Coroutine[Any, Any, Hold]: ...
    @overload
    def acquire_async(
        self, permits: int = 1, timeout: _Seconds | None = None
    ) -> Coroutine[Any, Any, Hold | None]:
        """Takes `permits` at once when awaited, as `Lock.acquire_async`."""

    def __enter__(self) -> Hold: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...
    def __aenter__(self) -> Coroutine[Any, Any, Hold]: ...
    def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> Awaitable[None]: ...
    def peek(self) -> SemaphoreInfo:
        """Who has permits and who waits for some, changing nothing."""

    @property
    def permits(self) -> int:
        """How many there are in all."""

    @property
    def name(self) -> str | bytes:
        """The name; of a limiter's key the key."""

    def release_token(self, token: int) -> None:
        """Ends the hold with this token, as `Lock.release_token`."""

    def renew_token(self, token: int) -> None:
        """Sets the lease of the hold with this token to this object's, from now."""

    def adopt_token(self, token: int) -> Hold:
        """Takes over the hold with this token, and all its permits."""

@final
class Concurrency:
    """At every instant at most so many at once of each key, leased as a semaphore's permits are."""

    def key(
        self,
        key: _Name,
        ttl: _Seconds = 30,
        *,
        keep_alive: bool = False,
        on_lost: _OnLost | None = None,
    ) -> Semaphore:
        """What `key` can have at once."""

    @property
    def permits(self) -> int:
        """How many each key can have at once now."""

    @property
    def name(self) -> str | bytes: ...

@final
class Owner:
    """Who holds, when locks are to be re-entrant and deadlocks found: an object, never a thread.

    An owner that acquires a lock it already holds gets the same hold again; the lock is released with the last of
    them. Owners that wait for each other in a circle, in whichever threads and processes they are, find that out at
    once: the one that began to wait last gets a `DeadlockError`.
    """

    def lock(
        self,
        name: _Name,
        ttl: _Seconds = 30,
        *,
        shared: bool = False,
        keep_alive: bool = False,
        on_lost: _OnLost | None = None,
    ) -> Lock:
        """A handle on the lock `name`, re-entrant for this owner."""

    def locks(
        self,
        names: Iterable[_Name],
        ttl: _Seconds = 30,
        *,
        keep_alive: bool = False,
        on_lost: _OnLost | None = None,
    ) -> Lock:
        """Several locks, as `Space.locks`; not re-entrant."""

    def partition(
        self,
        partition: int,
        ttl: _Seconds = 30,
        *,
        keep_alive: bool = False,
        on_lost: _OnLost | None = None,
    ) -> Lock:
        """The lock of a partition, as `Space.partition`; not re-entrant."""

    def table(
        self, ttl: _Seconds = 30, *, keep_alive: bool = False, on_lost: _OnLost | None = None
    ) -> Lock:
        """The lock of the table, as `Space.table`; not re-entrant."""

@final
class Limiter:
    """A rate over keys, shared by everyone who opens it, exact to its formula."""

    def hit(self, key: _Name, cost: int = 1) -> Decision:
        """Checks `cost` of `key` and takes it if allowed; a cost of 0 takes nothing. Never waits."""

    def test(self, key: _Name, cost: int = 1) -> Decision:
        """What `hit` would find; changes nothing. Its `remaining` is what there is before."""

    def hit_many(self, keys: Iterable[_Name], cost: int = 1) -> Decisions:
        """`hit` for many keys, each on its own and in order, at less than half the price."""

    def reserve(self, key: _Name, cost: int, wait_max: _Seconds) -> Decision:
        """Takes `cost` now, to be acted on after `Decision.act_after`, which is at most `wait_max`. Not under a
        sliding window."""

    def refund(self, decision: Decision) -> float | None:
        """Gives back what a hit or a reservation took, as far as that raises no interval above the limit: how much
        that was. `None` where it is not known how much still counts, and when it was given back before."""

    def set_override(self, key: _Name, limit: str) -> None:
        """Gives `key` a limit of its own, for all who use the limiter, until it is cleared."""

    def clear_override(self, key: _Name) -> bool:
        """Takes it away again; whether it had one."""

    def override_of(self, key: _Name) -> str | None:
        """The limit that `key` has instead of the limiter's."""

    @property
    def name(self) -> str | bytes: ...
    @property
    def limit(self) -> str:
        """The limit that it was opened with, as it is written."""

@final
class Decision:
    """The answer of a limiter, and the key's state right after it; true if it admitted the cost. What costs a division
    is computed when asked for. Times are seconds, `None` for never."""

    @property
    def allowed(self) -> bool:
        """Whether the cost was admitted."""

    @property
    def limit(self) -> int:
        """The most that can be admitted at once: the burst, or a window's count."""

    @property
    def remaining(self) -> int:
        """The greatest cost that another hit at the same instant would be allowed."""

    @property
    def retry_after(self) -> float | None:
        """How long until the same cost would be allowed, if nobody else takes any; 0 if it was."""

    @property
    def reset_after(self) -> float | None:
        """How long until nothing is used any more, if nobody takes any."""

    @property
    def act_after(self) -> float:
        """How long to wait before acting on a reservation; 0 of all else."""

    @property
    def is_overflow(self) -> bool:
        """Whether the region had no room for the key, so that a bucket shared by all such keys decided."""

    def retry_after_for(self, cost: int) -> float | None:
        """How long until a further `cost` would be allowed, if nobody else takes any."""

    def __bool__(self) -> bool: ...

@final
class Decisions:
    """The answers to many checks, in their order; true if all were admitted, as `all_allowed`."""

    @property
    def all_allowed(self) -> bool:
        """Whether all were admitted."""

    @property
    def refused(self) -> list[int]:
        """Which were refused, as places."""

    @property
    def retry_after(self) -> float | None:
        """The longest of those that were refused; 0 if none was."""

    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __getitem__(self, at: int, /) -> Decision: ...
    def __iter__(self) -> Iterator[Decision]: ...

@final
class JointLimiter:
    """Several limits over keys, decided together: all of them admit a cost, or nothing is taken."""

    def hit(self, key: _Name, cost: int = 1) -> JointDecision:
        """Checks `cost` of `key`, at most 67,108,863, and takes it from all if all allow it."""

    def test(self, key: _Name) -> JointDecision:
        """What a hit of cost 0 would find; changes nothing."""

    @property
    def name(self) -> str | bytes: ...
    @property
    def limits(self) -> list[str]:
        """The limits, in their order."""

@final
class JointDecision:
    """The answer of a joint limiter; true if every limit admitted the cost. As `Decision`, of all limits together."""

    @property
    def allowed(self) -> bool: ...
    @property
    def refused_by(self) -> int | None:
        """Which limit refuses longest, by its place; `None` if all admitted."""

    @property
    def each(self) -> list[Decision]:
        """What each limit says for itself."""

    @property
    def limit(self) -> int: ...
    @property
    def remaining(self) -> int: ...
    @property
    def retry_after(self) -> float | None: ...
    @property
    def reset_after(self) -> float | None: ...
    @property
    def is_overflow(self) -> bool: ...
    def retry_after_for(self, cost: int) -> float | None: ...
    def __bool__(self) -> bool: ...

@final
class Counter:
    """A signed 64-bit number by name. Each call is one step."""

    def add(self, delta: int = 1) -> int:
        """Adds `delta`, and returns the sum. `CounterOverflowError` if that does not fit 64 bits."""

    def add_within(
        self, delta: int, minimum: int | None = None, maximum: int | None = None
    ) -> int | None:
        """Adds `delta` if the sum lies within the bounds, and returns it; else changes nothing: `None`."""

    def get(self) -> int:
        """The number."""

    def swap(self, new: int) -> int:
        """Sets the number, and returns what it was."""

    def compare_exchange(self, expected: int, new: int) -> bool:
        """Sets the number to `new` if it is `expected`; whether it was."""

    def striped(self) -> StripedCounter:
        """The same counter in several parts, for additions by many threads or processes at once."""

    @property
    def name(self) -> str | bytes: ...

@final
class StripedCounter:
    """A counter in several parts. Adding is fast; what needs the whole number has to gather it."""

    def add(self, delta: int = 1) -> None:
        """Adds `delta`. The sum is not told: nobody knows it without looking at all parts."""

    def add_within(
        self, delta: int, minimum: int | None = None, maximum: int | None = None
    ) -> bool:
        """Adds `delta` if the sum lies within the bounds; whether it did."""

    def get(self) -> int: ...
    def swap(self, new: int) -> int: ...
    def compare_exchange(self, expected: int, new: int) -> bool: ...
    @property
    def name(self) -> str | bytes: ...

@final
class Once:
    """A handle on an idempotency key: the first to begin owns it until a deadline, and may store a result."""

    def begin(self, ttl: _Seconds) -> Attempt | InProgress | Done:
        """An `Attempt` if the key is new or its last attempt is over: the caller owns it for `ttl`, 1 ms to 366 days.
        `InProgress` if another is at it, `Done` with the result if it was done. Each can be used in a `with` block."""

    def status(self) -> InProgress | Done | Unfinished | None:
        """What is known of the key; `None` if it is new. Creates nothing."""

    def finish_token(self, token: int, result: bytes, keep_for: _Seconds) -> None:
        """`Attempt.finish` by the attempt's token: the other half of `Attempt.detach`."""

    def abandon_token(self, token: int) -> None:
        """`Attempt.abandon` by the attempt's token."""

    def extend_token(self, token: int, ttl: _Seconds) -> None:
        """`Attempt.extend` by the attempt's token."""

    @property
    def name(self) -> str | bytes: ...

@final
class Attempt:
    """An attempt of one's own at a key. It ends by `finish` or `abandon`; dropped without either, it frees the key at
    once, and the next attempt is told that one ended unfinished. So it is when its `with` block raises."""

    @property
    def token(self) -> int:
        """Higher than that of every attempt at this key before; a fence admits it as it does a lock's."""

    @property
    def is_after_unfinished(self) -> bool:
        """Whether an attempt before ended unfinished, so that its work may have been done in part."""

    def is_valid(self) -> bool:
        """Whether the deadline is still to come, by the owner's own clock."""

    def is_held(self) -> bool:
        """Whether the key is still this attempt's, by the engine's word."""

    @property
    def deadline_left(self) -> float:
        """What is left until the deadline, in seconds."""

    def finish(self, result: bytes, keep_for: _Seconds) -> None:
        """Stores the result for `keep_for`: from then on `begin` gives it to everybody. `LostError` once the deadline
        has passed."""

    def abandon(self) -> None:
        """Frees the key at once, as if this attempt had not been."""

    def renew(self) -> None:
        """Starts the time until the deadline anew."""

    def extend(self, ttl: _Seconds) -> None:
        """`renew` with another length."""

    def detach(self) -> int:
        """Lets the attempt go on without this process; its token."""

    def __enter__(self) -> Attempt: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

@final
class InProgress:
    """That another attempt is under way."""

    __match_args__: ClassVar[tuple[str, str]] = ...
    @property
    def holder_pid(self) -> int | None:
        """The owner's process id in its own namespace; `None` if it is detached, or not known."""

    @property
    def deadline_left(self) -> float:
        """What is left until its deadline, in seconds."""

    def __enter__(self) -> InProgress: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

@final
class Done:
    """That it was done, and the result."""

    __match_args__: ClassVar[tuple[str]] = ...
    @property
    def result(self) -> bytes: ...
    @property
    def kept_left(self) -> float | None:
        """For how much longer the result is kept at least, in seconds; `None` from `begin`, which does not ask."""

    def __enter__(self) -> Done: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

@final
class Unfinished:
    """That the last attempt ended unfinished, so that its work may have been done in part."""

@final
class Fence:
    """The resource's side of a lock's token: remembers the highest that it admitted, and rejects older ones."""

    def admit(self, token: int) -> None:
        """Admits a token not lower than the highest admitted. `StaleError` for a lower one."""

    def admit_once(self, token: int) -> None:
        """Admits a token strictly higher than the highest admitted: each once."""

    @property
    def highest(self) -> int:
        """The highest token admitted; 0 if none was."""

    @property
    def name(self) -> str | bytes: ...

@final
class LostQueue:
    """Losses that are to be told."""

    def __new__(cls) -> LostQueue: ...
    def next(self) -> ReferenceType[Hold]: ...

@final
class Reactor:
    """The waits of one event loop."""

    def __new__(cls) -> Reactor: ...
    def fileno(self) -> int: ...
    def wake(self) -> None: ...
