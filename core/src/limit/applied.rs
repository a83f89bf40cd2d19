//! What admissions make of a value, where that they were allowed is known.
//!
//! Owns the step alone: asks for no room, and rounds nothing.

use super::definition::Algorithm;
use super::prepared::{
    Moment, Prepared, USED_MAX, VALUE_MAX, Verdict, pack_window, unpack_window, wide,
};
use super::sliding::Sliding;

/// What was admitted since a value.
#[derive(Clone, Copy)]
pub(crate) struct Since {
    /// The time of the last batch.
    pub(crate) then: Moment,
    /// What was admitted at that time.
    pub(crate) sum: u64,
    /// What was admitted in all, that included.
    pub(crate) total: u64,
    /// Whether the value becomes what it is by the total, at whatever times that came; else by the batch alone.
    pub(crate) is_by_total: bool,
}

/// In which ways one can say what a value is after an admission.
#[derive(Clone, Copy)]
pub(crate) struct Ways {
    /// By the batch, grown by the cost.
    pub(crate) grown: bool,
    /// By a batch of the cost alone, at its own time.
    pub(crate) fresh: bool,
    /// By the total, grown by the cost.
    pub(crate) total: bool,
}

impl Prepared {
    /// `value` after `cost` was admitted at `moment`: what [`Prepared::check`] leaves where it allows, and the same
    /// for a cost that was admitted in parts at that moment, one after the other. A cost of 0 leaves the value
    /// itself.
    ///
    /// Any `value` is harmless: what no value holds is cut to the most that one does. Costs a multiplication or
    /// two; a window divides (64 bits) only to enter a new one.
    #[inline(always)]
    pub(crate) const fn applied(&self, value: u128, moment: Moment, cost: u64) -> u128 {
        if cost == 0 {
            return value;
        }
        match self.algorithm {
            Algorithm::TokenBucket => {
                let now = self.now_units(moment);
                let arrival = if value > now { value } else { now };
                // Each is below 2^85, but for a scribbled cost, whose product is below 2^119.
                let after = arrival + wide(cost, self.period);
                if after > VALUE_MAX { VALUE_MAX } else { after }
            }
            Algorithm::FixedWindow => {
                let (index, used) = self.window_at(value, moment);
                let after = used.saturating_add(cost);
                pack_window(index, if after > USED_MAX { USED_MAX } else { after })
            }
            Algorithm::SlidingWindow => self.applied_sliding(value, moment, cost),
        }
    }

    /// `value` after `cost` was admitted at times at which a bucket had not drained, and in the window of the value: what
    /// [`applied`](Self::applied) makes of it at each such time.
    #[inline(always)]
    pub(crate) const fn added(&self, value: u128, cost: u64) -> u128 {
        if cost == 0 {
            return value;
        }
        match self.algorithm {
            Algorithm::TokenBucket => {
                let after = value + wide(cost, self.period);
                if after > VALUE_MAX { VALUE_MAX } else { after }
            }
            Algorithm::FixedWindow => {
                let (index, used) = unpack_window(value);
                let after = used.saturating_add(cost);
                pack_window(index, if after > USED_MAX { USED_MAX } else { after })
            }
            Algorithm::SlidingWindow => Sliding::stored(self, value).filled(self, cost).pack(self),
        }
    }

    /// `value` after all that was admitted since.
    #[inline(always)]
    pub(crate) const fn after(&self, value: u128, since: Since) -> u128 {
        if since.is_by_total {
            self.added(value, since.total)
        } else {
            self.applied(value, since.then, since.sum)
        }
    }

    /// [`check`](Prepared::check) of what `value` is after all that was admitted since and, where it allows, the ways to
    /// say what it is then.
    #[inline(always)]
    pub(crate) const fn check_after(
        &self,
        value: u128,
        since: Since,
        now: Moment,
        cost: u64,
    ) -> (Verdict, Ways) {
        let verdict = self.check(self.after(value, since), now, cost);
        let ways = match verdict {
            Verdict::Allowed { new_value } => Ways {
                grown: self.applied(value, since.then, since.sum + cost) == new_value,
                fresh: self.applied(value, now, cost) == new_value,
                total: self.added(value, since.total + cost) == new_value,
            },
            Verdict::Refused | Verdict::Never => Ways {
                grown: false,
                fresh: false,
                total: false,
            },
        };
        (verdict, ways)
    }

    /// What a bucket of 64 bits ([`Prepared::is_narrow`]) has used after a further `cost` that its batch, which has not
    /// drained, grows by; `None` if it refuses, or otherwise. The batch's sum and the cost are not 0, times at most
    /// [`TIME_NS_MAX`](super::TIME_NS_MAX).
    #[inline(always)]
    pub(crate) const fn grown_in_64_bits(
        &self,
        value: u64,
        since: Since,
        now_ns: u64,
        cost: u64,
    ) -> Option<u64> {
        let used = self.after_in_64_bits(value, since);
        if used < now_ns || self.refuses_in_64_bits(used, now_ns, cost) {
            return None;
        }
        Some(used + cost * self.period)
    }

    /// The same where the cost is a batch of its own: also whether it is said by the total, which a bucket is that was
    /// before and has not drained. `None` for another that has not.
    #[inline(always)]
    pub(crate) const fn fresh_in_64_bits(
        &self,
        value: u64,
        since: Since,
        now_ns: u64,
        cost: u64,
    ) -> Option<(u64, bool)> {
        let used = self.after_in_64_bits(value, since);
        if self.refuses_in_64_bits(used, now_ns, cost) {
            return None;
        }
        if used <= now_ns {
            Some((now_ns + cost * self.period, false))
        } else if since.is_by_total {
            Some((used + cost * self.period, true))
        } else {
            None
        }
    }

    /// [`after`](Self::after) in 64 bits, which hold all of a value and what was admitted after it; for others what comes
    /// out means nothing.
    #[inline(always)]
    const fn after_in_64_bits(&self, value: u64, since: Since) -> u64 {
        let then_ns = since.then.now_ns;
        let (start, cost) = if since.is_by_total {
            (value, since.total)
        } else {
            (if value > then_ns { value } else { then_ns }, since.sum)
        };
        start.wrapping_add(cost.wrapping_mul(self.period))
    }

    #[inline(always)]
    const fn refuses_in_64_bits(&self, used: u64, now_ns: u64, cost: u64) -> bool {
        cost > self.burst || used > now_ns + (self.burst - cost) * self.period
    }

    /// Whether a bucket's checks fit 64 bits.
    pub(crate) const fn is_narrow(&self) -> bool {
        self.is_narrow
    }

    /// [`applied`](Self::applied) for a sliding window. By itself, so that the rest stays small.
    #[inline(never)]
    const fn applied_sliding(&self, value: u128, moment: Moment, cost: u64) -> u128 {
        Sliding::at(self, value, moment)
            .filled(self, cost)
            .pack(self)
    }
}
