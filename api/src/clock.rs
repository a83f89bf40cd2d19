//! The clocks a space can run on.
//!
//! [`Clock::host`] is the host's boot time: it counts suspend, no administrator can set it, and
//! processes in different time namespaces read the same value. [`ManualClock`] is moved by a test.
//! This file owns the choice between them and the fast path; it never waits and never starts a thread.
//!
//! # The fast path and its error
//!
//! Where the kernel itself keeps time by the processor's time-stamp counter, [`Clock::now_ns`] reads
//! the counter and extrapolates from an *anchor*: a recent pair of counter and boot time, and the
//! rate between the two. Whoever finds the anchor older than `anchor::TICKS_MAX` measures a new one
//! against the kernel. Everywhere else `now_ns` asks the kernel.
//!
//! | What makes it wrong | By how much |
//! |---|---|
//! | locating the kernel's reading between two counter reads, for both ends of the measured rate and for the anchor | at most 3 × half of 2,048 ticks |
//! | `adjtimex` changing the frequency within ±500 ppm after the rate was measured | 1,000 ppm of the anchor's age |
//!
//! At 1 GHz, the slowest counter in question, that is 3.1 µs + 4.2 µs, at 3 GHz 1 µs + 1.4 µs: below
//! [`ERROR_NS_MAX`]. A time daemon that slews faster than `adjtimex` alone (chrony may go to 8 %) can add a
//! quarter of the anchor's age until the next anchor, 1 ms at 1 GHz; a counter that stood still in suspend leaves
//! the reading behind for what remains of the anchor's age, at most 4.2 ms of running time. Near a deadline, and
//! before taking from someone else, ask [`Clock::precise_ns`].
//!
//! Two readings can be out of order by twice the error, on one thread (at a change of anchor) or on
//! two. What must not go back takes `max(now, last)` where it is used.
//!
//! # Why the anchor is so young
//!
//! The error grows with the age, and a new anchor costs some 100 ns. At 2^22 ticks (1.4 ms at 3 GHz)
//! that is 0.01 % of one thread's time, while an anchor of 100 ms would be wrong by 100 µs under an
//! ordinary slew: with a rate of 10^9 per second, 100,000 units of a limit. Nothing is gained by waiting longer.
//!
//! # Why an unserialised counter read is enough
//!
//! The processor may run the read early or late by what it holds in flight, some hundred nanoseconds around a
//! cache miss. That is inside the stated error and has no bearing on memory order: exclusion never rests on time
//! alone, it rests on a compare-and-swap, and a theft on `precise_ns`, whose read is serialised by the kernel's
//! own code.

pub(crate) mod anchor;
mod counter;
mod manual;
pub(crate) mod real;

use crate::host::{HostError, page};
use anchor::Anchor;
pub use manual::ManualClock;

/// How far [`Clock::now_ns`] may be from [`Clock::precise_ns`], in nanoseconds, while the kernel's
/// own clock is not slewed by more than 500 ppm. See the module's table for what lies beyond.
pub const ERROR_NS_MAX: u64 = 10_000;

/// A clock without an anchor: it is never fresh, so every reading takes the slow path.
static NEVER_ANCHORED: Anchor = Anchor::new();

/// Where a space gets the time from.
///
/// The anchor, not the kind of clock, is what the fast path looks at. A clock that has none (moved by hand,
/// or where the kernel doesn't keep time by the counter) points at one that is never valid, so the
/// kinds are told apart only where no anchor was usable and the choice costs the fast path nothing.
#[derive(Clone, Debug)]
pub struct Clock {
    anchor: &'static Anchor,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Host(&'static page::ProcessPage),
    Manual(ManualClock),
}

impl Clock {
    /// The host's clock: boot time in nanoseconds, less the offset of this process's time namespace.
    ///
    /// Reads the namespace's offset anew, so call it at every open and after every fork. A process
    /// that moves itself to another time namespace (`setns`) must open anew.
    ///
    /// # Errors
    ///
    /// [`HostError::ClockUnavailable`] when the kernel has no boot-time clock for us,
    /// [`HostError::TimeNamespaceUnsettled`] when the process has unshared its time namespace twice
    /// and hasn't entered the last, [`HostError::MapPage`] when there is no memory for the anchor.
    pub fn host() -> Result<Self, HostError> {
        real::settle_offset()?;
        let page = page::this_process()?;
        let anchor = if counter::is_usable() {
            &page.anchor
        } else {
            &NEVER_ANCHORED
        };
        Ok(Self {
            anchor,
            source: Source::Host(page),
        })
    }

    /// A clock that shows what `hands` show and moves only when they are moved.
    pub fn manual(hands: &ManualClock) -> Self {
        Self {
            anchor: &NEVER_ANCHORED,
            source: Source::Manual(hands.clone()),
        }
    }

    /// Nanoseconds of boot time, within [`ERROR_NS_MAX`] of [`Clock::precise_ns`].
    ///
    /// Costs one counter read and one cache line that changes every millisecond. Can be behind an
    /// earlier reading by twice the error.
    #[inline(always)]
    pub fn now_ns(&self) -> u64 {
        match self.anchor.extrapolate(counter::ticks) {
            Some(ns) => ns,
            None => self.without_anchor_ns(),
        }
    }

    /// Nanoseconds of boot time from the kernel itself. Never goes back on one host.
    pub fn precise_ns(&self) -> u64 {
        match &self.source {
            Source::Host(_) => real::host_ns(),
            Source::Manual(hands) => hands.now_ns(),
        }
    }

    /// Nanoseconds since 1970-01-01 UTC. Can be set by an administrator: for showing and for seeding, never for
    /// deadlines.
    pub fn unix_ns(&self) -> u64 {
        match &self.source {
            Source::Host(_) => real::unix_ns(),
            Source::Manual(hands) => hands.unix_ns(),
        }
    }

    /// Whether a test moves this clock. Whoever waits on it must not sleep until a deadline by the
    /// host's time.
    pub fn is_manual(&self) -> bool {
        matches!(self.source, Source::Manual(_))
    }

    /// Whether [`Clock::now_ns`] reads the time-stamp counter on this machine (once its rate is known).
    pub fn reads_counter(&self) -> bool {
        !std::ptr::eq(self.anchor, &raw const NEVER_ANCHORED)
    }

    #[cold]
    #[inline(never)]
    fn without_anchor_ns(&self) -> u64 {
        match &self.source {
            Source::Host(page) if self.reads_counter() => anchor::renew(page),
            Source::Host(_) => real::host_ns(),
            Source::Manual(hands) => hands.now_ns(),
        }
    }
}
