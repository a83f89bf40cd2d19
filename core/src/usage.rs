//! How full a region is: for those who watch it, to give it more room in time.
//!
//! Owns the counting. Changes nothing and stops nobody: what others take or leave meanwhile is counted or not.

use crate::engine::Engine;
use crate::region::{JOINTS, LIMITS};
use crate::slot::Control;
use crate::{chunk, permit, waiter};
use core::sync::atomic::Ordering::Relaxed;

/// How much of something is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// How many are taken. Of what is counted as it comes and goes, off by one for each process killed in between.
    pub used: u64,
    /// How many there can be.
    pub cap: u64,
}

impl Fill {
    fn new(used: u64, cap: u32) -> Self {
        let cap = cap.into();
        Self { used, cap }
    }
}

/// How much of each thing in a region is taken. What is idle, expired or left by the dead stays taken until somebody
/// needs its room, so what is full need not refuse anybody; what is far from full never does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Locks, semaphores, fences, counters, names of limiters, overrides, keys of concurrency limiters and onces.
    pub objects: Fill,
    /// Keys of limiters.
    pub limiter_keys: Fill,
    /// Keys of joint limiters.
    pub joint_keys: Fill,
    /// Sessions that are alive.
    pub sessions: Fill,
    /// Places in queues.
    pub waiters: Fill,
    /// Shared holds, and holds of semaphores and of concurrency limiters.
    pub permits: Fill,
    /// Limits of limiters and of overrides. Every region has room for 1,024.
    pub limits: Fill,
    /// Joint limiters. Every region has room for 256.
    pub joint_limiters: Fill,
}

impl Engine {
    /// How full the region is. Reads a word of each place for a session, a wait, a permit and a limit: some 2 µs
    /// with the default caps, and in a shared region a system call for each session besides.
    pub fn usage(&self) -> Usage {
        let region = &self.region;
        let caps = region.caps();
        // Relaxed: each is counted as it was at some moment during the call.
        let is_limit =
            |id: &u32| !Control(region.word(region.limit_at(*id)).load(Relaxed)).is_free();
        let is_joint =
            |id: &u32| !Control(region.word(region.joint_at(*id)).load(Relaxed)).is_free();
        Usage {
            objects: Fill::new(self.objects.live_count(region), caps.objects),
            limiter_keys: Fill::new(self.limiter_keys.live_count(region), caps.limiter_keys),
            joint_keys: Fill::new(self.joint_keys.live_count(region), caps.joint_keys),
            sessions: Fill::new(self.sessions.alive_count(region), caps.sessions),
            waiters: Fill::new(waiter::taken_count(region), caps.waiters),
            permits: Fill::new(permit::taken_count(region), caps.permits),
            limits: Fill::new((0..LIMITS).filter(is_limit).count() as u64, LIMITS),
            joint_limiters: Fill::new((0..JOINTS).filter(is_joint).count() as u64, JOINTS),
        }
    }

    /// How many chunks are taken by long names and results. Nobody keeps count of them, so it looks at each and at
    /// whose it is: some 0.2 ms with the default caps, and 7 ms where nearly all are taken.
    pub fn key_chunk_usage(&self) -> Fill {
        let is_taken = |owner, _| self.is_current(owner);
        let used = chunk::count_owned(&self.region, is_taken);
        Fill::new(used.into(), self.region.caps().key_chunks)
    }
}
