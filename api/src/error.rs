//! What a call can fail with; each says what to do about it.

use crate::host::HostError;
use crate::host::place::PlaceError;
use sprag_core::readable::Readable;
use sprag_core::span::Span;
use std::time::Duration;

/// An error of a space.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// From the engine: a full region, a bad name, a damaged file.
    #[error(transparent)]
    Engine(#[from] sprag_core::Error),
    /// The URL is not one of a space, or its place is not usable.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The host lacks something: a clock, memory, descriptors.
    #[error(transparent)]
    Host(#[from] HostError),
    /// What was given as a limit is none: not its text, or outside its bounds.
    #[error(transparent)]
    Limit(#[from] sprag_core::limit::LimitError),
    /// A token that the fence has seen a higher one than.
    #[error("token {} is stale: the fence {fence} has admitted {}; give up what you hold", stale.token, stale.highest)]
    Stale {
        /// The fence's name, readable.
        fence: String,
        /// The token, and the highest that was admitted.
        stale: sprag_core::Stale,
    },
    /// This process was forked after the space was opened.
    #[error(
        "this process was forked after the space was opened and owns nothing in it; open the space again"
    )]
    Forked,
    /// The space was opened without a session, and this needs one.
    #[error(
        "the space was opened without a session, to look, to break, and to release and renew by token; \
         open it with one for all else"
    )]
    NoSession,
    /// The hold is no longer the caller's: its lease ended, it was broken, or it was transferred.
    #[error(
        "the hold with token {token}{} is lost: its lease ended or it was taken away; stop what it protects",
        on(lock.as_deref())
    )]
    Lost {
        /// The name of the lock or the semaphore, or the key, readable; `None` if its entry is gone from the
        /// region, so that the name of a mere hold cannot be told.
        lock: Option<String>,
        /// The token of the lost hold.
        token: u64,
    },
    /// Another who shares the lock waits to have it alone already, so that the two would wait for each other
    /// for ever.
    #[error(
        "another holder{} waits to have it alone already; release the hold, and acquire the lock anew",
        lock.as_deref().map_or_else(String::new, |name| format!(" of the lock {name}"))
    )]
    UpgradeConflict {
        /// The lock's name, readable, where it can be told.
        lock: Option<String>,
    },
    /// Owners wait for each other in a circle, and this wait is the one to give up: release something, and
    /// begin anew.
    #[error("waiting would never end: {deadlock}; release what this owner holds, and acquire anew")]
    Deadlock {
        /// The circle: what each wait in it waits for.
        deadlock: sprag_core::lock::Deadlock,
    },
    /// An owner that shares a lock with others asked for it alone.
    #[error(
        "the owner shares the lock {lock} with others and cannot acquire it alone; upgrade the hold that \
         it has, or release it first"
    )]
    OwnerShares {
        /// The lock's name, readable.
        lock: String,
    },
    /// The attempt is no longer the caller's: its deadline passed, or it was ended by its token.
    #[error(
        "the attempt with token {token} at {once} is lost: its deadline passed, or it was ended by its token; \
         nothing was stored, so begin again to learn what others did"
    )]
    AttemptLost {
        /// The key, readable.
        once: String,
        /// The token of the lost attempt.
        token: u64,
    },
    /// The wait was told to stop ([`interruptible`](crate::interruptible)): it left the queue, and nothing is held.
    #[error("the wait was stopped by its caller; nothing is held")]
    Stopped,
    /// A duration lies outside its bounds.
    #[error("{what} is {}; it must be {} to {}", Span(*value), Span(*min), Span(*max))]
    Duration {
        /// Which argument.
        what: &'static str,
        /// What was given.
        value: Duration,
        /// The shortest allowed.
        min: Duration,
        /// The longest allowed.
        max: Duration,
    },
    /// An owner has acquired this lock again and again, more often than can be counted.
    #[error("this owner holds the lock {lock} {depth} times, the most that are counted")]
    TooDeep {
        /// The lock's name, readable.
        lock: String,
        /// How many times.
        depth: u32,
    },
    /// A limiter that is to be checked together with others was opened in another space.
    #[error("the limiter {limiter} is of another space; open it in the one that it is checked in")]
    OtherSpace {
        /// The limiter's name, readable.
        limiter: String,
    },
    /// An option does not go with the space's reach.
    #[error("{what} does not go with {url}; {way_out}")]
    NotHere {
        /// Which option or operation.
        what: &'static str,
        /// The space's URL.
        url: String,
        /// What to do instead.
        way_out: &'static str,
    },
    /// The background thread could not be started.
    #[error("cannot start the thread that renews leases and wakes futures: {source}")]
    Thread {
        /// What the system said.
        source: std::io::Error,
    },
}

impl Error {
    /// A hold of the lock `name`, where that is known, is lost.
    #[cold]
    pub(crate) fn lost(name: Option<&[u8]>, token: u64) -> Self {
        Self::Lost {
            lock: name.map(|name| Readable(name).to_string()),
            token,
        }
    }

    /// The limiter `name` is of another space.
    #[cold]
    pub(crate) fn other_space(name: &[u8]) -> Self {
        Self::OtherSpace {
            limiter: Readable(name).to_string(),
        }
    }

    /// An attempt at the once `name` is lost.
    #[cold]
    pub(crate) fn attempt_lost(name: &[u8], token: u64) -> Self {
        Self::AttemptLost {
            once: Readable(name).to_string(),
            token,
        }
    }
}

fn on(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!(" on {name}"))
}
