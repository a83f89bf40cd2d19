//! Sprag: locks with fencing tokens and leases, rate limiters, semaphores, fences, counters and idempotency keys, at
//! memory speed.
//!
//! A [`Space`] is a set of named objects, opened by URL; the URL decides how far it reaches:
//!
//! | URL | shared by | survives |
//! |---|---|---|
//! | `mem:` | the threads of this process | nothing |
//! | `shm:NAME`, `shm:/path` | the processes of this host | any of them dying at any instruction |
//!
//! Each opening of `mem:` makes a space of its own, which has nothing in common with the others: to share
//! one, clone the [`Space`]. `shm:NAME` is the file `NAME.sprag` in `$SPRAG_DIR`, or else in
//! `/dev/shm/sprag-UID`, so another user, or another `SPRAG_DIR`, has another space of that name.
//! `shm:/path` is that very file.
//!
//! What is promised where, and what no lock can promise:
//! [docs/guarantees.md](../../../docs/guarantees.md) in the repository.
//!
//! ```
//! use std::time::Duration;
//!
//! let space = sprag::Space::open("mem:")?;
//!
//! // A lock: one holder, a token that only rises, a lease.
//! let hold = space.lock("nightly-report")?.ttl(Duration::from_secs(30))?.acquire()?;
//! assert!(hold.is_valid());
//!
//! // The resource's side: a late writer with an older token is rejected.
//! let fence = space.fence("reports")?;
//! fence.admit(hold.token())?;
//! hold.release()?;
//!
//! // A limiter: exact, shared by everyone who opens it.
//! let api = space.limiter("api", "100/minute;burst=20")?;
//! let decision = api.check("user:42", 1)?;
//! assert!(decision.is_allowed());
//! # Ok::<(), sprag::Error>(())
//! ```
//!
//! Names and keys are bytes. For a number, its own bytes are the cheapest:
//!
//! ```
//! # let space = sprag::Space::open("mem:")?;
//! let id: u64 = 42;
//! let hold = space.lock(&id.to_be_bytes())?.acquire()?;
//! assert!(space.limiter("api", "5/s")?.check(&id.to_be_bytes(), 1)?.is_allowed());
//! # Ok::<(), sprag::Error>(())
//! ```
//!
//! Every call is safe from any thread. A process that was forked from one with an open space gets
//! [`Error::Forked`] until it opens its own. No thread is started unless a hold is kept alive
//! ([`Hold::keep_alive`]) or a future waits ([`Lock::acquire_async`]); it ends with the last of those.

mod background;
mod check_all;
// Hidden: for this workspace's own command, benches and tests, and no part of what users build on.
#[doc(hidden)]
pub mod clock;
mod coarse;
mod concurrency;
mod counter;
mod error;
mod fence;
mod hold;
// Hidden for the same reason.
#[doc(hidden)]
pub mod host;
mod info;
mod into_limit;
mod joint;
mod limiter;
mod lock;
mod locks;
mod metrics;
mod once;
mod overrides;
mod owner;
#[cfg(target_os = "linux")]
pub mod region;
mod semaphore;
mod share;
mod space;
mod stop;
mod wait;

pub use check_all::Decisions;
pub use clock::ManualClock;
pub use coarse::CoarseLock;
pub use concurrency::{Concurrency, ConcurrencyInfo};
pub use counter::{Added, Counter, StripedCounter};
pub use error::Error;
pub use fence::Fence;
pub use hold::{Hold, KeepAlive};
pub use host::HostError;
pub use host::place::PlaceError;
pub use info::{CounterInfo, HoldInfo, LimiterInfo, LockInfo};
pub use into_limit::IntoLimit;
pub use joint::{JointDecision, JointLimiter, JointLimiterInfo};
pub use limiter::{Decision, Limiter};
pub use lock::{Acquire, Lock};
pub use locks::{AcquireAll, HoldAll, Locks};
pub use metrics::{AcquireCounts, CheckCounts, Metrics, OnceCounts, WaitTimes};
pub use once::{Attempt, Begun, Once, OnceInfo, OnceStatus};
pub use overrides::OverrideInfo;
pub use owner::{HoldOf, Owner, OwnerAcquire, OwnerHold, OwnerLock};
pub use semaphore::{Semaphore, SemaphoreInfo};
pub use space::{Space, SpaceBuilder};
pub use sprag_core::key::NAME_BYTES_MAX;
pub use sprag_core::limit::Limit;
pub use sprag_core::lock::{BreakRecord, Deadlock, DeadlockedWait};
pub use sprag_core::once::RESULT_BYTES_MAX;
pub use sprag_core::region::Caps;
pub use sprag_core::span::Span;
pub use sprag_core::usage::{Fill, Usage};
pub use sprag_core::{Error as EngineError, Refunded, TOKEN_MAX};
pub use stop::interruptible;

/// The fence to embed in your own storage, and the error for a token that came too late.
pub mod embed {
    pub use sprag_core::{Fence, Stale};
}

/// What a [`Limit`] is made of: its algorithms, its bounds, and why one is refused.
pub mod limit {
    pub use sprag_core::limit::{
        Algorithm, Amount, COUNT_MAX, Limit, LimitError, PERIOD_NS_MAX, REDUCED_COUNT_MAX,
        TIME_NS_MAX, WINDOW_PERIOD_NS_MIN,
    };
}

/// The result of this crate's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The README's Rust is run as printed.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
