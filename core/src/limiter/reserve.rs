//! Taking a place ahead: a check at the first time at which it would be allowed.
//!
//! This file owns what is asked of a key's value, a check or a reservation; how it is asked of the key's
//! word is the same for both, in [`super`]. When that time is, is in [`crate::limit`].

use super::{Checked, LimiterRef};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::limit::{Algorithm, Moment, Prepared, Reserve, Verdict};
use crate::readable::Readable;
use crate::session::SessionId;

/// What is asked of a key.
#[derive(Clone, Copy)]
pub(super) struct Ask {
    pub(super) cost: u64,
    /// For a reservation, the longest wait.
    pub(super) wait_ns_max: Option<u64>,
}

impl Ask {
    #[inline(always)]
    pub(super) const fn check(cost: u64) -> Self {
        Self {
            cost,
            wait_ns_max: None,
        }
    }

    /// The verdict, and how long to wait before acting.
    #[inline(always)]
    pub(super) fn decide(self, prepared: &Prepared, value: u128, moment: Moment) -> (Verdict, u64) {
        let Some(wait_ns_max) = self.wait_ns_max else {
            return (prepared.check(value, moment, self.cost), 0);
        };
        match prepared.reserve(value, moment, self.cost, wait_ns_max) {
            Reserve::Taken { new_value, wait_ns } => (Verdict::Allowed { new_value }, wait_ns),
            Reserve::TooLate => (Verdict::Refused, 0),
            // Limiters without reservations were sent away.
            Reserve::Never | Reserve::Unsupported => (Verdict::Never, 0),
        }
    }
}

impl Engine {
    /// Takes `cost` of `key` now, to be acted on after [`Checked::wait_ns`], if that is at most
    /// `wait_ns_max`: the first time at which a check would be allowed if nobody else came. Who comes
    /// later finds it taken. Refused as a check is, writing nothing.
    ///
    /// # Errors
    ///
    /// [`Error::NoReservations`] for a sliding window; else as [`check`](Self::check).
    pub fn reserve(
        &self,
        limiter: &LimiterRef,
        key: &[u8],
        cost: u64,
        wait_ns_max: u64,
        by: SessionId,
        now_ns: u64,
    ) -> Result<Checked> {
        let ask = Ask {
            cost,
            wait_ns_max: Some(wait_ns_max),
        };
        self.check_slowly(limiter, key, ask, by, now_ns)
    }
}

impl LimiterRef {
    /// Whether what is asked can be had of the limit at all.
    pub(super) fn can_decide(&self, ask: Ask) -> bool {
        ask.wait_ns_max.is_none() || self.limit().algorithm() != Algorithm::SlidingWindow
    }

    /// What whoever reserves where that can't be done exactly is told.
    #[cold]
    pub(super) fn no_reservations(&self) -> Error {
        Error::NoReservations {
            limiter: Readable(&self.name.to_vec()).to_string(),
        }
    }
}
