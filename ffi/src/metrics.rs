//! # Metrics
//!
//! What was done with a space through a handle, since that was opened, by this process; and how full its region
//! is, whoever filled it. Each count is exact, and only rises. They are read one after the other, so what other
//! threads do meanwhile may be in one and not yet in another. Calls by token are not counted.

use crate::border::{Failure, give, on, wanted};
use crate::duration::nanoseconds;
use crate::error::sprag_error;
use crate::space::sprag_space;
use crate::status::sprag_status::{self, SPRAG_OK};
use sprag::{Fill, Metrics, WaitTimes};

/// How much of something in a region is taken. What is idle, expired or left by the dead stays taken until somebody
/// needs its room, so what is full need not refuse anybody; what is far from full never does.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct sprag_fill {
    /// How many are taken.
    pub used: u64,
    /// How many there can be.
    pub cap: u64,
}

impl From<Fill> for sprag_fill {
    fn from(fill: Fill) -> Self {
        Self {
            used: fill.used,
            cap: fill.cap,
        }
    }
}

/// How many buckets the waits are told by.
pub const SPRAG_WAIT_BUCKETS: usize = 32;

const _: () = assert!(SPRAG_WAIT_BUCKETS == WaitTimes::BUCKETS);

/// The metrics of a space. Begins with its size, which the caller sets: that of the header that it was built with.
/// What a newer caller has room for and this library does not know is zero.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sprag_metrics {
    /// sizeof(sprag_metrics).
    pub size: usize,
    /// Checks of limits that were allowed. A reservation is a check, each key of a batch is one, and a call of
    /// several limits is one as a whole; a peek is none. Refunds take nothing off.
    pub checks_allowed: u64,
    /// Those that were refused.
    pub checks_refused: u64,
    /// How many of both were decided by a bucket that keys without room share.
    pub checks_overflow: u64,
    /// Acquires of locks, of permits and of several locks, and upgrades, that were granted without waiting.
    pub acquires_at_once: u64,
    /// Those that were granted after waiting.
    pub acquires_after_wait: u64,
    /// Tries that were not granted, and did not wait.
    pub acquires_busy: u64,
    /// Waits whose time was over.
    pub acquires_timed_out: u64,
    /// Waits that were stopped: see sprag_interruptible().
    pub acquires_cancelled: u64,
    /// Waits that ended with SPRAG_ERROR_DEADLOCK.
    pub acquires_deadlocks: u64,
    /// How long those waited that were granted after waiting, all together, in nanoseconds.
    pub wait_sum_ns: u64,
    /// How many of them waited how long: up to 1 us, then up to 2 us, up to 4 us and so on, the last all that
    /// waited longer. Those of a shorter one are not in a longer one's.
    pub wait_buckets: [u64; SPRAG_WAIT_BUCKETS],
    /// Leases that were renewed, by a call or in the background.
    pub renewals: u64,
    /// Holds that were found lost, each once.
    pub holds_lost: u64,
    /// Attempts at idempotency keys that began.
    pub onces_started: u64,
    /// Beginnings that found another attempt under way.
    pub onces_in_progress: u64,
    /// Beginnings that were given the result.
    pub onces_done: u64,
    /// Attempts that were finished, the result stored.
    pub onces_finished: u64,
    /// Attempts that were closed without an end, or found lost when they were to be ended.
    pub onces_unfinished: u64,
    /// From here on how full the region is. Locks, semaphores, fences, counters, names of limiters, overrides,
    /// keys of concurrency limiters and idempotency keys.
    pub objects: sprag_fill,
    /// Keys of limiters.
    pub limiter_keys: sprag_fill,
    /// Keys of joint limiters.
    pub joint_keys: sprag_fill,
    /// Sessions that are alive.
    pub sessions: sprag_fill,
    /// Places in queues.
    pub waiters: sprag_fill,
    /// Shared holds, and holds of semaphores and of concurrency limiters.
    pub permits: sprag_fill,
    /// Limits of limiters and of overrides.
    pub limits: sprag_fill,
    /// Joint limiters.
    pub joint_limiters: sprag_fill,
}

impl sprag_metrics {
    fn new(size: usize, metrics: &Metrics) -> Self {
        let (checks, acquires) = (&metrics.checks, &metrics.acquires);
        let (onces, region) = (&metrics.onces, &metrics.region);
        Self {
            size,
            checks_allowed: checks.allowed,
            checks_refused: checks.refused,
            checks_overflow: checks.overflow,
            acquires_at_once: acquires.at_once,
            acquires_after_wait: acquires.after_wait,
            acquires_busy: acquires.busy,
            acquires_timed_out: acquires.timed_out,
            acquires_cancelled: acquires.cancelled,
            acquires_deadlocks: acquires.deadlocks,
            wait_sum_ns: nanoseconds(metrics.waits.sum),
            wait_buckets: metrics.waits.buckets,
            renewals: metrics.renewals,
            holds_lost: metrics.holds_lost,
            onces_started: onces.started,
            onces_in_progress: onces.in_progress,
            onces_done: onces.done,
            onces_finished: onces.finished,
            onces_unfinished: onces.unfinished,
            objects: region.objects.into(),
            limiter_keys: region.limiter_keys.into(),
            joint_keys: region.joint_keys.into(),
            sessions: region.sessions.into(),
            waiters: region.waiters.into(),
            permits: region.permits.into(),
            limits: region.limits.into(),
            joint_limiters: region.joint_limiters.into(),
        }
    }
}

impl sprag_metrics {
    /// Writes as much as an older caller has room for; zeros for what only a newer one knows.
    ///
    /// # Safety
    ///
    /// `size` bytes may be written at `to`.
    unsafe fn write(&self, to: *mut u8, size: usize) {
        let known = size.min(size_of::<Self>());
        // SAFETY: as many may be written, by this function's contract, and known are no more than there are here.
        unsafe {
            to.copy_from_nonoverlapping(std::ptr::from_ref(self).cast(), known);
            to.add(known).write_bytes(0, size - known);
        }
    }
}

/// What the first release told: no caller has room for less. A number, since it stays when fields are appended.
const BYTES_MIN: usize = 528;
/// Larger ones are a mistake.
const BYTES_MAX: usize = 4096;

/// Writes the metrics, for as many bytes as their size says, which the caller has set. Stops nobody. Some
/// microseconds, and in shm: a system call for each session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_space_metrics(
    space: *const sprag_space,
    metrics: *mut sprag_metrics,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract; what is written lies within the size that the caller set.
    unsafe {
        on(space, error, |space| {
            wanted(metrics, "metrics")?;
            let size = (&raw const (*metrics).size).read_unaligned();
            if !(BYTES_MIN..=BYTES_MAX).contains(&size) {
                return Err(Failure::Bounds {
                    argument: "metrics.size",
                    value: size as u64,
                    min: BYTES_MIN as u64,
                    max: BYTES_MAX as u64,
                });
            }
            sprag_metrics::new(size, &space.metrics()?).write(metrics.cast(), size);
            Ok(SPRAG_OK)
        })
    }
}

/// Writes how many chunks long names, long keys and results take. Apart from the metrics, since it looks at each of
/// them: some milliseconds with the default caps where nearly all are taken. Stops nobody.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_space_key_chunk_usage(
    space: *const sprag_space,
    chunks: *mut sprag_fill,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            wanted(chunks, "chunks")?;
            give(chunks, space.key_chunk_usage()?.into());
            Ok(SPRAG_OK)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::{sprag_hold, sprag_hold_release};
    use crate::limiter::{sprag_limiter_check, sprag_limiter_close};
    use crate::lock::{sprag_lock_acquire, sprag_lock_close, sprag_lock_open};
    use crate::status::sprag_status::{SPRAG_BUSY, SPRAG_ERROR_NULL, SPRAG_ERROR_OUT_OF_RANGE};
    use crate::testing::{Scene, at, fails, limiter, outcome, works};
    use std::mem::zeroed;
    use std::ptr::null_mut;

    #[test]
    fn what_was_done_is_told() {
        let scene = Scene::new();
        let api = limiter(&scene, "api", c"2/hour");
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let ann = b"ann".as_ptr().cast();
            for _ in 0..3 {
                let checked =
                    outcome(|error| sprag_limiter_check(api, ann, 3, 1, null_mut(), error));
                assert!(checked.is_ok());
            }
            let (mut lock, mut holds): (_, [sprag_hold; 2]) = (null_mut(), zeroed());
            works(|error| sprag_lock_open(scene.space, ann, 3, 0, &raw mut lock, error));
            let (first, second) = (&raw mut holds[0], &raw mut holds[1]);
            works(|error| sprag_lock_acquire(lock, 0, first, error));
            let busy = outcome(|error| sprag_lock_acquire(lock, 0, second, error));
            assert_eq!(busy, Ok(SPRAG_BUSY));

            let mut metrics: sprag_metrics = zeroed();
            metrics.size = size_of::<sprag_metrics>();
            works(|error| sprag_space_metrics(scene.space, &raw mut metrics, error));
            assert_eq!(metrics.size, size_of::<sprag_metrics>());
            assert_eq!((metrics.checks_allowed, metrics.checks_refused), (2, 1));
            assert_eq!((metrics.acquires_at_once, metrics.acquires_busy), (1, 1));
            assert_eq!(metrics.limiter_keys.used, 1);
            assert_eq!(metrics.joint_limiters, sprag_fill { used: 0, cap: 256 });
            let mut chunks: sprag_fill = zeroed();
            works(|error| sprag_space_key_chunk_usage(scene.space, &raw mut chunks, error));
            assert_eq!((chunks.used, chunks.cap), (0, 262_144));
            works(|error| sprag_hold_release(first, error));
            sprag_lock_close(lock);
            sprag_limiter_close(api);
        }
    }

    #[test]
    fn an_older_caller_gets_what_it_has_room_for() {
        let told = sprag_metrics {
            size: 24,
            checks_allowed: 1,
            checks_refused: 2,
            // SAFETY: zeros are a value of it.
            ..unsafe { zeroed() }
        };
        let mut older = [7_u64; 4];
        // SAFETY: 24 bytes of the array.
        unsafe { told.write(older.as_mut_ptr().cast(), 24) };
        assert_eq!(older, [24, 1, 2, 7]);
    }

    #[test]
    fn a_newer_caller_gets_zeros_for_what_is_not_known() {
        #[repr(C)]
        struct Newer {
            known: sprag_metrics,
            unknown: [u64; 2],
            beyond: u64,
        }
        let scene = Scene::new();
        // SAFETY: as the contract asks: variables of this test's own; zeros are a value of it.
        unsafe {
            let mut newer: Newer = zeroed();
            newer.known.size = size_of::<sprag_metrics>() + 16;
            (newer.unknown, newer.beyond) = ([7; 2], 7);
            let to = (&raw mut newer).cast();
            works(|error| sprag_space_metrics(scene.space, to, error));
            assert_eq!((newer.unknown, newer.beyond), ([0; 2], 7));
            assert_eq!(newer.known.size, size_of::<sprag_metrics>() + 16);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let scene = Scene::new();
        // SAFETY: as the contract asks: variables of this test's own; zeros are a value of it.
        unsafe {
            let mut metrics: sprag_metrics = zeroed();
            for size in [0, size_of::<sprag_metrics>() - 1, usize::MAX] {
                metrics.size = size;
                let to = &raw mut metrics;
                let wrong = fails(|error| sprag_space_metrics(scene.space, to, error));
                assert_eq!(wrong, at(SPRAG_ERROR_OUT_OF_RANGE, "metrics.size"));
            }
            assert_eq!(metrics.sessions.cap, 0);
            let nowhere = fails(|error| sprag_space_metrics(scene.space, null_mut(), error));
            assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "metrics"));
            let nowhere =
                fails(|error| sprag_space_key_chunk_usage(scene.space, null_mut(), error));
            assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "chunks"));
        }
    }
}
