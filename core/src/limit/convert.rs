//! How a value is carried over when its limit changes, or when two values become one.
//! Owns the promise that what was used stays used; rounds only upwards, in used cost.

use super::definition::Algorithm;
use super::prepared::{
    Moment, Prepared, USED_MAX, VALUE_MAX, pack_window, saturate, unpack_window, wide,
};
use super::sliding::Sliding;

/// The value under `new` of a key that has `old_value` under `old`, at `moment`.
///
/// What is used at `moment` stays used: the tokens still missing from a bucket, the cost counted in a window that
/// is not over, or a sliding window's estimate. It is carried over in full, even above the new limit, which then
/// admits nothing until the excess has been paid off; a fraction is rounded up to the new value's unit (1/P′ of a
/// token, or a cost of 1), so that never more is admitted than with exact numbers. What does not fit the new value
/// is cut to the most that it holds, far beyond any region's life for a bucket and no less than any count for a
/// window. A window takes it as used since its start. Times stay exact: a bucket whose burst alone changes keeps
/// its value, and so does a window whose count does.
///
/// What is reserved counts as used at `moment`, whenever its slot; where a fixed window is reserved ahead, so
/// does the whole count of each one from the current one to there, of which no more is known.
///
/// A stamp from before a stored window counts as that window's start. Costs a few 128-bit divisions.
#[must_use]
pub const fn convert(old: &Prepared, old_value: u128, new: &Prepared, moment: Moment) -> u128 {
    let is_same_window = match (old.algorithm, new.algorithm) {
        (Algorithm::FixedWindow, Algorithm::FixedWindow)
        | (Algorithm::SlidingWindow, Algorithm::SlidingWindow) => old.period == new.period,
        _ => false,
    };
    if is_same_window {
        return new.advanced(old_value, moment);
    }
    let (used, moment) = used_at(old, old_value, moment);
    match new.algorithm {
        Algorithm::TokenBucket => {
            let owed = used.times_rounded_up(new.period);
            // Both are at most VALUE_MAX.
            at_most(new.now_units(moment) + owed, VALUE_MAX)
        }
        Algorithm::FixedWindow => {
            let used = at_most(used.times_rounded_up(1), USED_MAX as u128) as u64;
            pack_window(moment.unix_ns() / new.period, used)
        }
        Algorithm::SlidingWindow => Sliding::new(new, used.times_rounded_up(1), moment).pack(new),
    }
}

/// A used cost, exactly: `parts` / `parts_per_cost`.
#[derive(Clone, Copy)]
struct Used {
    /// Below 2^93.
    parts: u128,
    /// Never 0, at most `PERIOD_NS_MAX`.
    parts_per_cost: u64,
}

impl Used {
    /// The cost times `factor`, rounded up, at most `VALUE_MAX`. Whole costs and the rest are multiplied
    /// apart, since the product of `parts` and `factor` can take 148 bits.
    const fn times_rounded_up(self, factor: u64) -> u128 {
        let divisor = self.parts_per_cost as u128;
        // Below the divisor, so within 64 bits.
        let rest = (self.parts % divisor) as u64;
        let rest = wide(rest, factor).div_ceil(divisor);
        let whole = (self.parts / divisor).saturating_mul(factor as u128);
        at_most(whole.saturating_add(rest), VALUE_MAX)
    }
}

/// What is used at `moment`, and the moment itself, moved up to the start of the stored window.
const fn used_at(old: &Prepared, value: u128, moment: Moment) -> (Used, Moment) {
    match old.algorithm {
        Algorithm::FixedWindow if old.is_ahead(value, moment) => {
            // What was used of the windows from the current one on is not known, and at most the count
            // of each.
            let (index, reserved) = unpack_window(value);
            let windows = index - moment.unix_ns() / old.period;
            let used = Used {
                parts: wide(windows, old.count) + reserved as u128,
                parts_per_cost: 1,
            };
            (used, moment)
        }
        Algorithm::TokenBucket => {
            let owed = at_most(value, VALUE_MAX).saturating_sub(old.now_units(moment));
            let used = Used {
                parts: owed,
                parts_per_cost: old.period,
            };
            (used, moment)
        }
        Algorithm::FixedWindow => {
            let (_, used) = old.window_at(value, moment);
            let used = Used {
                parts: used as u128,
                parts_per_cost: 1,
            };
            let (index, _) = unpack_window(value);
            (used, not_before(old, index, moment))
        }
        Algorithm::SlidingWindow => {
            let window = Sliding::at(old, value, moment);
            let used = Used {
                parts: window.used_times_period(old),
                parts_per_cost: old.period,
            };
            (used, not_before(old, window.index(), moment))
        }
    }
}

/// `moment`, or the start of window `index` if that is later.
const fn not_before(windows: &Prepared, index: u64, moment: Moment) -> Moment {
    let start_ns = saturate(wide(index, windows.period)).saturating_sub(moment.base_ns);
    let now_ns = if start_ns > moment.now_ns {
        start_ns
    } else {
        moment.now_ns
    };
    Moment { now_ns, ..moment }
}

const fn at_most(number: u128, bound: u128) -> u128 {
    if number > bound { bound } else { number }
}
