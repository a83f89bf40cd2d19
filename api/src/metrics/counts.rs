//! What a space counts of its own use. Owns the counters and how they are added to; never what they are told as.
//!
//! What takes nanoseconds is counted in a line of its own for each thread ([`super::seat`]); what takes longer anyway,
//! in counters that all threads share.
//!
//! All accesses are relaxed: a counter orders nothing else, only rises, and is one word. What a thread counted before
//! it told another of that in any way, the other one's reading finds.

use super::WaitTimes;
use super::seat::{self, SEATS, STANDING};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Buckets of waits: as many as end with one of some 18 minutes, and one for longer waits.
pub(super) const BUCKETS: usize = 32;

/// What is done so fast that counting it must cost next to nothing.
#[derive(Clone, Copy)]
pub(crate) enum Often {
    Allowed,
    Refused,
    Acquired,
    OnceDone,
}

/// What takes its time.
#[derive(Clone, Copy)]
pub(crate) enum Seldom {
    Overflow,
    Busy,
    TimedOut,
    Cancelled,
    Deadlock,
    Renewed,
    Lost,
    OnceStarted,
    OnceInProgress,
    OnceFinished,
    OnceUnfinished,
}

const OFTEN: usize = Often::OnceDone as usize + 1;
const SELDOM: usize = Seldom::OnceUnfinished as usize + 1;

/// A thread's counters. Two lines of the cache, since a processor may fetch the one beside along.
#[derive(Default)]
#[repr(align(128))]
struct Line([AtomicU64; OFTEN]);

/// The counters of a space.
pub(crate) struct Counts {
    /// Apart, so that all else of a space stays within reach of short instructions.
    own: Box<[Line]>,
    standing: Box<[Line]>,
    seldom: [AtomicU64; SELDOM],
    waits: [AtomicU64; BUCKETS],
    waited_ns: AtomicU64,
}

impl Default for Counts {
    fn default() -> Self {
        let lines = |count| std::iter::repeat_with(Line::default).take(count).collect();
        Self {
            own: lines(SEATS),
            standing: lines(STANDING),
            seldom: Default::default(),
            waits: Default::default(),
            waited_ns: AtomicU64::default(),
        }
    }
}

impl Counts {
    /// Counts one. A handful of instructions.
    #[inline(always)]
    pub(crate) fn often(&self, what: Often) {
        match self.own.get(seat::known()) {
            Some(line) => {
                let counter = &line.0[what as usize];
                // Nobody else writes it, so nothing is lost between the two.
                counter.store(counter.load(Relaxed) + 1, Relaxed);
            }
            None => self.often_slowly(what),
        }
    }

    /// The same, for a thread that has not counted yet or has no seat.
    #[cold]
    #[inline(never)]
    fn often_slowly(&self, what: Often) {
        let seat = seat::find();
        let line =
            (self.own.get(seat)).unwrap_or_else(|| &self.standing[(seat - SEATS) % STANDING]);
        line.0[what as usize].fetch_add(1, Relaxed);
    }

    /// Counts the answer to a check.
    #[inline(always)]
    pub(crate) fn check(&self, is_allowed: bool) {
        self.often(if is_allowed {
            Often::Allowed
        } else {
            Often::Refused
        });
    }

    /// Counts the answer to a check that may have been decided by a bucket for keys without room.
    pub(crate) fn check_anywhere(&self, is_allowed: bool, is_overflow: bool) {
        self.check(is_allowed);
        if is_overflow {
            self.seldom(Seldom::Overflow);
        }
    }

    pub(crate) fn seldom(&self, what: Seldom) {
        self.seldom[what as usize].fetch_add(1, Relaxed);
    }

    /// Counts a wait that was granted.
    pub(crate) fn waited(&self, wait_ns: u64) {
        self.waited_ns.fetch_add(wait_ns, Relaxed);
        self.waits[bucket(wait_ns)].fetch_add(1, Relaxed);
    }

    pub(super) fn sum(&self, what: Often) -> u64 {
        let of = |line: &Line| line.0[what as usize].load(Relaxed);
        self.own.iter().chain(&self.standing).map(of).sum()
    }

    pub(super) fn get(&self, what: Seldom) -> u64 {
        self.seldom[what as usize].load(Relaxed)
    }

    pub(super) fn waits(&self) -> WaitTimes {
        WaitTimes {
            buckets: self.waits.each_ref().map(|count| count.load(Relaxed)),
            sum: Duration::from_nanos(self.waited_ns.load(Relaxed)),
        }
    }
}

/// The bucket of a wait: the first whose bound it does not pass.
fn bucket(wait_ns: u64) -> usize {
    let wait_us = wait_ns.div_ceil(1_000).max(1);
    (wait_us.next_power_of_two().trailing_zeros() as usize).min(BUCKETS - 1)
}
