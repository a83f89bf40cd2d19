//! Metrics: what this process did with a space, and how full its region is.
//!
//! Owns what is told, and the reading. What is counted where is each noun's own affair; the counters are in
//! [`counts`].

mod counts;
mod seat;

pub(crate) use counts::{Counts, Often, Seldom};

use crate::{Result, Space};
use counts::BUCKETS;
use sprag_core::usage::{Fill, Usage};
use std::time::Duration;

/// What was done with a space, through the [`Space`] that it is asked of and its clones, since that was opened; and
/// how full its region is. Made by [`Space::metrics`].
///
/// Each count is exact, and only rises. They are read one after the other, so what other threads do meanwhile may be
/// in one and not yet in another; what a thread did before it told the reader of it is in. Calls by token
/// ([`Lock::release_token`](crate::Lock::release_token) and its like) are not counted, nor is a call that failed for
/// another reason than those named.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Checks of limits.
    pub checks: CheckCounts,
    /// How acquires of locks, of permits and of several locks went, and upgrades, which are acquires too.
    pub acquires: AcquireCounts,
    /// How long those waited that were granted after waiting.
    pub waits: WaitTimes,
    /// Leases that were renewed, by a call or in the background.
    pub renewals: u64,
    /// Holds that were found lost, by any call that says so, by a release or a drop that came too late, or in the
    /// background; each hold once.
    pub holds_lost: u64,
    /// Idempotency keys.
    pub onces: OnceCounts,
    /// How full the region is, whoever filled it.
    pub region: Usage,
}

/// Answers to checks. A reservation is a check, each key of a batch is one, and a call of several limits, declared
/// together or not, is one as a whole; a peek is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckCounts {
    /// Allowed. Refunds take nothing off.
    pub allowed: u64,
    /// Refused.
    pub refused: u64,
    /// How many of both were decided, one of several limits' keys at least, by a bucket that keys without room share.
    pub overflow: u64,
}

/// How acquires went. Re-entry, and what the threads of one owner wait for each other, is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AcquireCounts {
    /// Granted without waiting.
    pub at_once: u64,
    /// Granted after waiting, as [`WaitTimes::count`].
    pub after_wait: u64,
    /// Tries that were not granted, and did not wait.
    pub busy: u64,
    /// Waits whose time was over.
    pub timed_out: u64,
    /// Waits of futures that were dropped, and waits that were stopped ([`interruptible`](crate::interruptible)).
    pub cancelled: u64,
    /// Waits that ended with [`Error::Deadlock`](crate::Error::Deadlock).
    pub deadlocks: u64,
}

/// How long waits took, by the space's clock: a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitTimes {
    /// How many waits took so long, by bucket: up to 1 µs, then up to 2 µs, up to 4 µs and so on, as
    /// [`bound`](Self::bound) says. Those of shorter ones are not in the longer ones'.
    pub buckets: [u64; WaitTimes::BUCKETS],
    /// All waits together.
    pub sum: Duration,
}

/// What came of idempotency keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OnceCounts {
    /// Attempts that began here.
    pub started: u64,
    /// Beginnings that found another attempt under way.
    pub in_progress: u64,
    /// Beginnings that were given the result.
    pub done: u64,
    /// Of those that began here: finished, the result stored.
    pub finished: u64,
    /// Of those that began here: dropped without an end, or found lost when they were to be ended.
    pub unfinished: u64,
}

impl WaitTimes {
    /// How many buckets there are.
    pub const BUCKETS: usize = BUCKETS;

    /// The longest wait of a bucket: 2^`bucket` µs; `None` for the last one, which has all that are longer than those
    /// of the one before (2^30 µs, some 18 minutes), and for one that does not exist.
    pub fn bound(bucket: usize) -> Option<Duration> {
        (bucket < Self::BUCKETS - 1).then(|| Duration::from_micros(1 << bucket))
    }

    /// How many waits there were.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

impl Space {
    /// What was done with the space, and how full its region is: see [`Metrics`]. Stops nobody. Some microseconds,
    /// and in `shm:` a system call for each session.
    ///
    /// ```
    /// let space = sprag::Space::open("mem:")?;
    /// let api = space.limiter("api", "2/hour")?;
    /// for _ in 0..3 {
    ///     let _ = api.check("ann", 1)?;
    /// }
    /// let metrics = space.metrics()?;
    /// assert_eq!((metrics.checks.allowed, metrics.checks.refused), (2, 1));
    /// assert_eq!(metrics.region.limiter_keys.used, 1);
    /// # Ok::<(), sprag::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Forked`](crate::Error::Forked). A region that was replaced is none: what was done in it is told still.
    pub fn metrics(&self) -> Result<Metrics> {
        self.inner.check_process()?;
        let counts = &self.inner.counts;
        let waits = counts.waits();
        Ok(Metrics {
            checks: CheckCounts {
                allowed: counts.sum(Often::Allowed),
                refused: counts.sum(Often::Refused),
                overflow: counts.get(Seldom::Overflow),
            },
            acquires: AcquireCounts {
                at_once: counts.sum(Often::Acquired),
                after_wait: waits.count(),
                busy: counts.get(Seldom::Busy),
                timed_out: counts.get(Seldom::TimedOut),
                cancelled: counts.get(Seldom::Cancelled),
                deadlocks: counts.get(Seldom::Deadlock),
            },
            waits,
            renewals: counts.get(Seldom::Renewed),
            holds_lost: counts.get(Seldom::Lost),
            onces: OnceCounts {
                started: counts.get(Seldom::OnceStarted),
                in_progress: counts.get(Seldom::OnceInProgress),
                done: counts.sum(Often::OnceDone),
                finished: counts.get(Seldom::OnceFinished),
                unfinished: counts.get(Seldom::OnceUnfinished),
            },
            region: self.inner.engine.usage(),
        })
    }

    /// How many chunks ([`Caps::key_chunks`](crate::Caps)) long names and results take. Apart from the
    /// [metrics](Self::metrics), since it looks at each of them: 7 ms with the default caps where nearly all are
    /// taken. Stops nobody. It fails as that does.
    pub fn key_chunk_usage(&self) -> Result<Fill> {
        self.inner.check_process()?;
        Ok(self.inner.engine.key_chunk_usage())
    }
}
