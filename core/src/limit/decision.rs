//! What a caller is told about a check. Owns the rounding of times and of what remains; a field costs
//! its division only when it is asked for.

use super::definition::Algorithm;
use super::prepared::{Moment, Prepared, Verdict, saturate, wide};
use super::refund::Refund;
use super::sliding::Sliding;

/// The answer to one check, and the key's state right after it.
///
/// Copied with what it was computed from: [`Decision::is_allowed`] costs nothing, the others one or two
/// divisions each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Decision {
    prepared: Prepared,
    moment: Moment,
    cost: u64,
    /// The value after the decision.
    value: u128,
    outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Allowed,
    Refused,
    Never,
}

impl Decision {
    #[inline]
    pub(super) const fn new(
        prepared: Prepared,
        verdict: Verdict,
        value: u128,
        moment: Moment,
        cost: u64,
    ) -> Self {
        let (outcome, value) = match verdict {
            Verdict::Allowed { new_value } => (Outcome::Allowed, new_value),
            Verdict::Refused => (Outcome::Refused, value),
            Verdict::Never => (Outcome::Never, value),
        };
        Self {
            prepared,
            moment,
            cost,
            value,
            outcome,
        }
    }

    /// Whether the cost was admitted.
    #[inline]
    pub const fn is_allowed(&self) -> bool {
        matches!(self.outcome, Outcome::Allowed)
    }

    /// The cost that was asked for.
    #[inline]
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// The most that can be admitted at once, as [`Prepared::limit`].
    #[inline]
    pub const fn limit(&self) -> u64 {
        self.prepared.limit()
    }

    /// The greatest cost that a further check at the same moment would admit; from 0 to
    /// [`Decision::limit`].
    pub const fn remaining(&self) -> u64 {
        let limit = self.limit();
        match self.prepared.algorithm {
            Algorithm::TokenBucket => {
                let room = wide(limit, self.prepared.period).saturating_sub(self.owed());
                // At most the limit, since the room is at most limit·P′.
                (room / self.prepared.period as u128) as u64
            }
            Algorithm::FixedWindow if self.is_ahead() => 0,
            Algorithm::FixedWindow => limit.saturating_sub(self.used()),
            Algorithm::SlidingWindow => {
                let used = self.sliding().used_times_period(&self.prepared);
                let room = wide(limit, self.prepared.period).saturating_sub(used);
                (room / self.prepared.period as u128) as u64
            }
        }
    }

    /// Nanoseconds after the check's moment at which the same cost is admitted if nobody else takes
    /// any; one nanosecond earlier it is not. `Some(0)` if it was allowed, `None` if it never can be.
    /// A wait beyond 584 years, more than a region's time has room for, is `u64::MAX`.
    pub const fn retry_after_ns(&self) -> Option<u64> {
        match self.outcome {
            Outcome::Allowed => Some(0),
            Outcome::Never => None,
            Outcome::Refused => self.wait_ns_for(self.cost),
        }
    }

    /// Nanoseconds after the check's moment at which a further check of `cost` would be admitted if
    /// nobody else takes any; one nanosecond earlier it would not. `Some(0)` if it would be at once,
    /// `None` if it never can be. Beyond 584 years it is `u64::MAX`.
    pub const fn wait_ns_for(&self, cost: u64) -> Option<u64> {
        if cost == 0 {
            return Some(0);
        }
        if cost > self.limit() {
            return None;
        }
        match self.prepared.algorithm {
            Algorithm::TokenBucket => {
                let room = wide(self.limit() - cost, self.prepared.period);
                self.prepared.units_to_ns(self.owed().saturating_sub(room))
            }
            Algorithm::FixedWindow if cost <= self.remaining() => Some(0),
            Algorithm::FixedWindow if self.is_ahead() && self.used() <= self.limit() - cost => {
                Some(self.until_start_ns())
            }
            Algorithm::FixedWindow => Some(self.window_left_ns()),
            Algorithm::SlidingWindow => {
                let room = self.limit() - cost;
                Some(self.sliding().wait_ns(&self.prepared, room, self.moment))
            }
        }
    }

    /// Nanoseconds after the check's moment until nothing is used any more if nobody takes any: the bucket is
    /// full, or the window over (a sliding one: the next one too); rounded up. `Some(0)` if nothing is used,
    /// `None` if that never happens (a bucket with a count of 0 that was changed to it while in use). Beyond 584
    /// years it is `u64::MAX`.
    pub const fn reset_after_ns(&self) -> Option<u64> {
        match self.prepared.algorithm {
            Algorithm::TokenBucket => self.prepared.units_to_ns(self.owed()),
            Algorithm::FixedWindow if self.prepared.is_full(self.value, self.moment) => Some(0),
            Algorithm::FixedWindow if self.used() == 0 => Some(self.until_start_ns()),
            Algorithm::FixedWindow => Some(self.window_left_ns()),
            Algorithm::SlidingWindow => {
                Some(self.sliding().full_after_ns(&self.prepared, self.moment))
            }
        }
    }

    /// What of the cost can be given back at `moment`, now that the key's value is `value`: see
    /// [`Prepared::refund`]. The decision must be an admission.
    pub const fn refund(&self, value: u128, is_marked: bool, moment: Moment) -> Refund {
        self.prepared
            .refund(value, is_marked, self.value, self.cost, moment)
    }

    /// Token bucket: units that are used at the moment.
    const fn owed(&self) -> u128 {
        self.value
            .saturating_sub(self.prepared.now_units(self.moment))
    }

    /// Sliding window: the counts at the moment.
    const fn sliding(&self) -> Sliding {
        Sliding::at(&self.prepared, self.value, self.moment)
    }

    /// Fixed window: whether it was reserved and has not begun.
    const fn is_ahead(&self) -> bool {
        self.prepared.is_ahead(self.value, self.moment)
    }

    /// Fixed window: what is used of the window that counts at the moment.
    const fn used(&self) -> u64 {
        self.prepared.window_at(self.value, self.moment).1
    }

    /// Fixed window: nanoseconds until the stored window begins.
    const fn until_start_ns(&self) -> u64 {
        let start = self.prepared.window_start(self.value);
        saturate(start.saturating_sub(self.moment.unix_ns() as u128))
    }

    /// Fixed window: nanoseconds to the end of the window that counts at the moment.
    const fn window_left_ns(&self) -> u64 {
        let (index, _) = self.prepared.window_at(self.value, self.moment);
        let unix_ns = self.moment.unix_ns() as u128;
        saturate(self.prepared.window_end(index).saturating_sub(unix_ns))
    }
}
