//! What admissions make of a value, where that they were allowed is known.
//!
//! Owns the step alone: asks for no room, and rounds nothing.

use super::definition::Algorithm;
use super::prepared::{Moment, Prepared, USED_MAX, VALUE_MAX, Verdict, pack_window, wide};
use super::sliding::Sliding;

/// Admissions at one time.
#[derive(Clone, Copy)]
pub(crate) struct Batch {
    pub(crate) moment: Moment,
    /// What they took together.
    pub(crate) sum: u64,
}

impl Prepared {
    /// `value` after `cost` was admitted at `moment`: what [`Prepared::check`] leaves where it allows, and the same
    /// for a cost that was admitted in parts at that moment, one after the other. A cost of 0 leaves the value
    /// itself.
    ///
    /// Any `value` is harmless: what no value holds is cut to the most that one does. Costs a multiplication or
    /// two; a window divides (64 bits) only to enter a new one.
    #[inline(always)]
    pub const fn applied(&self, value: u128, moment: Moment, cost: u64) -> u128 {
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

    /// What `value` is after a batch and then `cost`, for a bucket of 64 bits ([`Prepared::is_narrow`]) whose
    /// batch has not drained by `now`, and where there is room; `None` if it is none, or otherwise. Times are at
    /// most [`TIME_NS_MAX`](super::TIME_NS_MAX).
    #[inline(always)]
    pub(crate) const fn grown_in_64_bits(
        &self,
        value: u64,
        batch: Batch,
        now_ns: u64,
        cost: u64,
    ) -> Option<u64> {
        if cost > self.burst {
            return None;
        }
        let then_ns = batch.moment.now_ns;
        let start = if value > then_ns { value } else { then_ns };
        // 64 bits hold all of a value and a batch that were admitted; of others what comes out means nothing.
        let used = start.wrapping_add(batch.sum.wrapping_mul(self.period));
        if used < now_ns || used > now_ns + (self.burst - cost) * self.period {
            return None;
        }
        Some(used + cost * self.period)
    }

    /// Whether a bucket's checks fit 64 bits.
    pub(crate) const fn is_narrow(&self) -> bool {
        self.is_narrow
    }

    /// [`check`](Prepared::check) of what `value` has become by a batch, and whether the batch with `cost` more,
    /// at its own time, leaves what an admission now does.
    #[inline(always)]
    pub(crate) const fn check_batched(
        &self,
        value: u128,
        batch: Batch,
        now: Moment,
        cost: u64,
    ) -> (Verdict, bool) {
        let verdict = self.check(self.applied(value, batch.moment, batch.sum), now, cost);
        let is_grown = match verdict {
            Verdict::Allowed { new_value } => {
                self.applied(value, batch.moment, batch.sum + cost) == new_value
            }
            Verdict::Refused | Verdict::Never => true,
        };
        (verdict, is_grown)
    }

    /// [`applied`](Self::applied) for a sliding window. By itself, so that the rest stays small.
    #[inline(never)]
    const fn applied_sliding(&self, value: u128, moment: Moment, cost: u64) -> u128 {
        Sliding::at(self, value, moment)
            .filled(self, cost)
            .pack(self)
    }
}
