//! What the clones of a space share: engine, session and clock, and the looks that every call begins with.

use crate::background::Background;
use crate::clock::{Clock, ERROR_NS_MAX};
use crate::host::futex::{self, Reach};
use crate::metrics::Counts;
use crate::{Error, Result};
use sprag_core::session::Process;
use sprag_core::sync::Half;
use sprag_core::waiter::{Ticket, Wake};
use sprag_core::{Engine, SessionId};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How long what is done often takes it that the region is in place, in nanoseconds.
const LOOK_NS: u64 = 50_000_000;

/// A clock moved by hand wakes nobody, so those who sleep by one look at it this often.
const MANUAL_CLOCK_POLL: Duration = Duration::from_millis(2);

pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) session: SessionId,
    pub(crate) clock: Clock,
    /// Boot time at the region's zero; 0 if that lies before the boot.
    pub(super) zero_boot_ns: u64,
    /// How long before the boot the region's zero lies; 0 if it does not.
    pub(super) before_boot_ns: u64,
    pub(crate) background: Background,
    pub(crate) process: Process,
    pub(crate) counts: Counts,
    #[cfg(unix)]
    pub(super) origin: crate::host::fork::Origin,
    pub(super) url: String,
    /// When to look next whether the region is in place, in nanoseconds of region time; never in `mem:`.
    pub(super) look_at_ns: AtomicU64,
}

impl Inner {
    /// Region time, fast: see [`Clock::now_ns`].
    #[inline(always)]
    pub(crate) fn now_ns(&self) -> u64 {
        self.region_ns(self.clock.now_ns())
    }

    /// Region time by the system's own clock: near deadlines, and where a hold may be taken over.
    pub(crate) fn precise_ns(&self) -> u64 {
        self.region_ns(self.clock.precise_ns())
    }

    /// Region time, fast, and never past the system's own: nobody's time is taken to be over before it is.
    #[inline(always)]
    pub(crate) fn cautious_ns(&self) -> u64 {
        self.now_ns().saturating_sub(self.clock_margin_ns())
    }

    /// Never before the region's own zero: the fast clock may still read a little less than the
    /// precise one did when the region was made.
    #[inline(always)]
    fn region_ns(&self, boot_ns: u64) -> u64 {
        // Nothing wraps: a clock moved by hand has nothing to add, and no host is up for 2^63 ns. One signed
        // difference in their place takes twice the instructions, and a check waits for each.
        boot_ns
            .saturating_sub(self.zero_boot_ns)
            .wrapping_add(self.before_boot_ns)
    }

    /// Whether the lease of a hold still runs, by its holder's own clock, up to `deadline_ns` of region time;
    /// errs towards no near the end.
    #[inline(always)]
    pub(crate) fn is_in_lease(&self, deadline_ns: u64) -> bool {
        self.check_process().is_ok() && self.now_ns() + self.clock_margin_ns() < deadline_ns
    }

    /// By how much two readings of the fast clock may disagree: a holder stops this much early.
    #[inline(always)]
    fn clock_margin_ns(&self) -> u64 {
        if self.clock.is_manual() {
            0
        } else {
            2 * ERROR_NS_MAX
        }
    }

    /// Fails in a forked child. One load.
    #[inline(always)]
    pub(crate) fn check_process(&self) -> Result<()> {
        #[cfg(unix)]
        if !self.origin.is_this_process() {
            return Err(Error::Forked);
        }
        Ok(())
    }

    /// Fails if the region's file was replaced, or this process closed its session's descriptor: asked
    /// on slow paths.
    pub(crate) fn check_in_place(&self) -> Result<()> {
        Ok(self.engine.check_in_place()?)
    }

    /// [`check_process`](Self::check_process) and [`check_in_place`](Self::check_in_place), before what there is is listed.
    pub(crate) fn check_to_list(&self) -> Result<()> {
        self.check_process()?;
        self.check_in_place()
    }

    /// Fails in a space without a session, which never goes past [`is_to_look`](Self::is_to_look).
    pub(crate) fn check_session(&self) -> Result<()> {
        if self.session == SessionId::DETACHED {
            return Err(Error::NoSession);
        }
        Ok(())
    }

    /// Fails where nothing can be taken: in a forked child, without a session, or of a region that was replaced.
    pub(crate) fn check_usable(&self) -> Result<()> {
        self.check_process()?;
        self.check_session()?;
        self.check_in_place()
    }

    /// Whether it is time to look again, after [`LOOK_NS`]. One load.
    #[inline(always)]
    pub(crate) fn is_to_look(&self, now_ns: u64) -> bool {
        // Relaxed: two threads that both look are no harm.
        now_ns >= self.look_at_ns.load(Relaxed)
    }

    /// Whether it is not yet time to look again. Over memory of this process alone it never is, and no clock
    /// is read to find out.
    #[inline(always)]
    pub(crate) fn is_in_place_for_now(&self) -> bool {
        let look_at_ns = self.look_at_ns.load(Relaxed);
        look_at_ns == u64::MAX || self.now_ns() < look_at_ns
    }

    /// [`check_in_place`](Self::check_in_place), if it is time to look again.
    #[inline]
    pub(crate) fn check_in_place_now_and_then(&self, now_ns: u64) -> Result<()> {
        if self.is_to_look(now_ns) {
            self.check_session()?;
            self.check_in_place()?;
            self.look_at_ns
                .store(now_ns.saturating_add(LOOK_NS), Relaxed);
        }
        Ok(())
    }

    /// The same for who only looks, and needs no session: without one, each time.
    #[inline]
    pub(crate) fn check_in_place_to_look(&self, now_ns: u64) -> Result<()> {
        if self.session == SessionId::DETACHED {
            return self.check_in_place();
        }
        self.check_in_place_now_and_then(now_ns)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    fn reach(&self) -> Reach {
        if self.engine.region().is_shared() {
            Reach::Host
        } else {
            Reach::Process
        }
    }

    /// Leaves a queue, and wakes those whose turn it is now.
    pub(crate) fn leave(&self, ticket: Ticket) {
        let now_ns = self.precise_ns();
        self.engine
            .cancel(ticket, now_ns, |wake| self.wake(Some(wake)));
    }

    /// Wakes a waiter that sleeps.
    #[inline(always)]
    pub(crate) fn wake(&self, wake: Option<Wake>) {
        if let Some(wake) = wake {
            self.wake_sleeper(wake);
        }
    }

    /// Sleeps while `word` is `seen`, for `sleep_ns` of region time at most.
    pub(crate) fn sleep_on(&self, word: &Half, seen: u32, sleep_ns: u64) {
        let timeout = self.longest_sleep(sleep_ns);
        futex::wait(word.as_atomic(), seen, timeout, self.reach());
    }

    /// For how long one may sleep who waits for `region_ns` of region time at most, before looking at the clock again.
    pub(crate) fn longest_sleep(&self, region_ns: u64) -> Duration {
        let longest = Duration::from_nanos(region_ns);
        if self.clock.is_manual() {
            longest.min(MANUAL_CLOCK_POLL)
        } else {
            longest
        }
    }

    #[cold]
    fn wake_sleeper(&self, wake: Wake) {
        let mut next = Some(wake);
        while let Some(wake) = next {
            if let Some(word) = self.engine.to_wake(wake) {
                self.wake_all(word);
            }
            next = self.engine.next_wake(wake);
        }
    }

    /// Wakes all that sleep on `word`.
    pub(crate) fn wake_all(&self, word: &Half) {
        futex::wake_all(word.as_atomic(), self.reach());
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.check_process().is_ok() && self.check_session().is_ok() {
            self.engine.close_session(self.session);
        }
    }
}
