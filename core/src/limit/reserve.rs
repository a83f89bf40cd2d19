//! Taking a place in the future: when a cost would be admitted if nobody else came, and the value that
//! says so. Owns no refusal's text; never waits.

use super::definition::Algorithm;
use super::prepared::{AHEAD, Moment, Prepared, TIME_NS_MAX, Verdict};

/// What a reservation says; the caller publishes `new_value`, or does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Reserve {
    /// The cost is admitted once the value becomes `new_value`, and may be acted on later.
    Taken {
        /// The value after; the old value if the cost was 0.
        new_value: u128,
        /// How long after the moment to act, in nanoseconds.
        wait_ns: u64,
    },
    /// Not as soon as was asked for, or not within a region's time; or what a fixed window has used was
    /// carried over from a greater limit, and it is not over. The value stays.
    TooLate,
    /// Not at any time under this limit. The value stays.
    Never,
    /// The algorithm has no reservations: a sliding window would have to hold a third count.
    Unsupported,
}

impl Prepared {
    /// Takes `cost` at the first time from `moment` on, its slot, at which a check would admit it if
    /// nobody else came, if that is within `wait_ns_max`. From then on every check and reservation finds
    /// it taken.
    ///
    /// A fixed window whose rest is too small for the cost is passed over as a whole: nothing more is
    /// admitted until the reserved window begins. Costs two divisions.
    pub const fn reserve(
        &self,
        value: u128,
        moment: Moment,
        cost: u64,
        wait_ns_max: u64,
    ) -> Reserve {
        if matches!(self.algorithm, Algorithm::SlidingWindow) {
            return Reserve::Unsupported;
        }
        if cost == 0 {
            let (new_value, wait_ns) = (value, 0);
            return Reserve::Taken { new_value, wait_ns };
        }
        let wait_ns = match self.check(value, moment, cost) {
            Verdict::Allowed { new_value } => {
                let wait_ns = 0;
                return Reserve::Taken { new_value, wait_ns };
            }
            Verdict::Never => return Reserve::Never,
            Verdict::Refused => self.peek(value, moment).wait_ns_for(cost),
        };
        let Some(wait_ns) = wait_ns else {
            return Reserve::Never;
        };
        if matches!(self.algorithm, Algorithm::FixedWindow)
            && self.window_at(value, moment).1 > self.burst
        {
            // Carried over from a greater limit; a window reserved ahead says of those before it that
            // they have used at most their count, and would lose the rest.
            return Reserve::TooLate;
        }
        let slot_ns = moment.elapsed_ns().saturating_add(wait_ns);
        if wait_ns > wait_ns_max || slot_ns > TIME_NS_MAX {
            return Reserve::TooLate;
        }
        let at_slot = Moment {
            now_ns: slot_ns,
            ..moment
        };
        let new_value = match self.check(value, at_slot, cost) {
            Verdict::Allowed { new_value } => new_value,
            Verdict::Refused | Verdict::Never => return Reserve::TooLate,
        };
        match self.algorithm {
            Algorithm::FixedWindow => Reserve::Taken {
                new_value: new_value | AHEAD,
                wait_ns,
            },
            _ => Reserve::Taken { new_value, wait_ns },
        }
    }
}
