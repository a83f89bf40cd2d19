//! The reduced form of a limit and the transitions of a value under it.
//! Owns the value's layout and the arithmetic of a check; never divides on the way of an admission
//! within a window or bucket, and never rounds.

use super::decision::Decision;
use super::definition::{Algorithm, Limit, PERIOD_NS_MAX, WINDOW_PERIOD_NS_MIN};
use super::sliding::{self, Sliding};

/// Bits of a limiter's value.
pub const VALUE_BITS: u32 = 85;

/// The greatest value of a limiter.
pub const VALUE_MAX: u128 = (1 << VALUE_BITS) - 1;

/// The latest time since a region's base that is told apart, in nanoseconds: 2^59 - 1, about 18 years.
/// Later times are taken for this one, at which a token bucket stops refilling.
pub const TIME_NS_MAX: u64 = (1 << 59) - 1;

/// The greatest count of a token bucket after division by the greatest common divisor with its period
/// in nanoseconds: 2^26 - 1, so that [`TIME_NS_MAX`] in units fits the value with room for a burst.
pub const REDUCED_COUNT_MAX: u64 = (1 << (VALUE_BITS - 59)) - 1;

/// Words of an encoded [`Prepared`].
pub const PREPARED_WORDS: usize = 5;

/// When a call happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Nanoseconds since the region's base. Above [`TIME_NS_MAX`] it counts as [`TIME_NS_MAX`].
    pub now_ns: u64,
    /// The region's base, in nanoseconds since the unix epoch. Only windows look at it.
    pub base_ns: u64,
}

impl Moment {
    /// Nanoseconds since the region's base, at most [`TIME_NS_MAX`].
    #[inline]
    pub(super) const fn elapsed_ns(self) -> u64 {
        if self.now_ns > TIME_NS_MAX {
            TIME_NS_MAX
        } else {
            self.now_ns
        }
    }

    /// Nanoseconds since the unix epoch, at most `UNIX_NS_MAX`.
    #[inline]
    pub(super) const fn unix_ns(self) -> u64 {
        let unix_ns = self.base_ns.saturating_add(self.elapsed_ns());
        if unix_ns > UNIX_NS_MAX {
            UNIX_NS_MAX
        } else {
            unix_ns
        }
    }
}

/// What a check says; the caller publishes `new_value`, or does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// The cost is admitted once the value becomes `new_value`.
    Allowed {
        /// The value after the admission; the old value if the cost was 0.
        new_value: u128,
    },
    /// Not now; later, if others leave room. The value stays.
    Refused,
    /// Not at any time under this limit: the cost is above the burst (token bucket) or the count
    /// (windows), or the count is 0. The value stays.
    Never,
}

/// A [`Limit`] in the form that a check computes with: 40 bytes, copied freely, kept in shared memory
/// as [`PREPARED_WORDS`] words.
///
/// Two are equal exactly when the limits they come from are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prepared {
    pub(super) algorithm: Algorithm,
    /// Token bucket: N′, the units in a nanosecond, at most `REDUCED_COUNT_MAX`. Windows: the count.
    pub(super) count: u64,
    /// Token bucket: P′, the units in a token. Windows: the period in ns. Never 0, at most
    /// `PERIOD_NS_MAX`.
    pub(super) period: u64,
    /// What count and period were divided by.
    pub(super) divisor: u64,
    /// The most that is admitted at once, but for a count of 0. Windows: the count.
    pub(super) burst: u64,
    /// Token bucket: whether a unit is a nanosecond and a full burst less than 2^62 of them, so that
    /// 64 bits hold every sum of a check.
    pub(super) is_narrow: bool,
}

impl Prepared {
    /// Decides on `cost` at `moment`, for a key whose value is `value`.
    ///
    /// A cost of 0 is always allowed and changes nothing, under a count of 0 too. Otherwise, a token bucket admits
    /// if max(value, now) + cost·P′ ≤ now + burst·P′, all in units (ITU-T I.371, virtual scheduling); a fixed
    /// window admits if used + cost ≤ count, in the later of the current window and the stored one, but not before
    /// one that is reserved ahead; a sliding window if previous·left/period + current + cost ≤ count, left being
    /// what is left of that window, without rounding.
    ///
    /// Any `value` is harmless: one that no admission could have left refuses, and the new value is
    /// never above [`VALUE_MAX`]. Costs three multiplications for a token bucket, one for a fixed
    /// window and four for a sliding one; a window divides (64 bits) only to enter a new one.
    #[inline(always)]
    pub const fn check(&self, value: u128, moment: Moment, cost: u64) -> Verdict {
        if cost == 0 {
            return Verdict::Allowed { new_value: value };
        }
        if cost > self.limit() {
            return Verdict::Never;
        }
        match self.algorithm {
            Algorithm::TokenBucket if self.is_narrow && value >> 64 == 0 => {
                // The same as below, in 64 bits.
                let (value, now) = (value as u64, moment.elapsed_ns());
                if value > now + (self.burst - cost) * self.period {
                    return Verdict::Refused;
                }
                let arrival = if value > now { value } else { now };
                Verdict::Allowed {
                    new_value: (arrival + cost * self.period) as u128,
                }
            }
            Algorithm::TokenBucket => {
                let now = self.now_units(moment);
                if value > now + wide(self.burst - cost, self.period) {
                    return Verdict::Refused;
                }
                let arrival = if value > now { value } else { now };
                Verdict::Allowed {
                    new_value: arrival + wide(cost, self.period),
                }
            }
            Algorithm::FixedWindow => {
                let (index, used) = self.window_at(value, moment);
                if used > self.burst - cost || self.is_ahead(value, moment) {
                    return Verdict::Refused;
                }
                Verdict::Allowed {
                    new_value: pack_window(index, used + cost),
                }
            }
            Algorithm::SlidingWindow => self.check_sliding(value, moment, cost),
        }
    }

    /// [`check`](Self::check) for a sliding window. By itself, so that the whole of a check stays small
    /// enough to be part of its caller.
    #[inline(never)]
    const fn check_sliding(&self, value: u128, moment: Moment, cost: u64) -> Verdict {
        let window = Sliding::at(self, value, moment);
        if window.used_times_period(self) > wide(self.burst - cost, self.period) {
            return Verdict::Refused;
        }
        Verdict::Allowed {
            new_value: window.with(cost).pack(self),
        }
    }

    /// What a caller is told about `verdict`, which [`Prepared::check`] gave for the same `value`,
    /// `moment` and `cost`. Copies; what needs a division is computed when asked for.
    #[inline]
    pub const fn decision(
        &self,
        verdict: Verdict,
        value: u128,
        moment: Moment,
        cost: u64,
    ) -> Decision {
        Decision::new(*self, verdict, value, moment, cost)
    }

    /// The state of a key at `moment`: the decision of a check with cost 0.
    #[inline]
    pub const fn peek(&self, value: u128, moment: Moment) -> Decision {
        let cost = 0;
        self.decision(self.check(value, moment, cost), value, moment, cost)
    }

    /// The most that can be admitted at once: the burst (token bucket) or the count (windows);
    /// 0 if the count is 0.
    #[inline]
    pub const fn limit(&self) -> u64 {
        if self.count == 0 { 0 } else { self.burst }
    }

    /// Whether nothing is used at `moment`: no check from `moment` on can tell the key from a fresh
    /// one, so its entry may be reclaimed. (For stamps from before `moment` see
    /// [`Prepared::advanced`].)
    ///
    /// A token bucket with a count of 0 never refills: a value that [`convert`](super::convert) carried
    /// into it stays used.
    #[inline]
    pub const fn is_full(&self, value: u128, moment: Moment) -> bool {
        match self.algorithm {
            Algorithm::TokenBucket => value <= self.now_units(moment),
            Algorithm::FixedWindow => {
                self.window_at(value, moment).1 == 0 && !self.is_ahead(value, moment)
            }
            Algorithm::SlidingWindow => {
                Sliding::at(self, value, moment).used_times_period(self) == 0
            }
        }
    }

    /// The first nanosecond since the region's base at which [`Prepared::is_full`] holds, if nothing
    /// more is admitted; 0 for a fresh key; `u64::MAX` for never, or beyond 584 years. Divides
    /// 128 bits.
    pub const fn full_at_ns(&self, value: u128, base_ns: u64) -> u64 {
        match self.algorithm {
            Algorithm::TokenBucket => match self.units_to_ns(value) {
                Some(ns) => ns,
                None => u64::MAX,
            },
            Algorithm::FixedWindow => {
                let (index, used) = unpack_window(value);
                let full_at = if used > 0 {
                    self.window_end(index)
                } else if value & AHEAD != 0 {
                    wide(index, self.period)
                } else {
                    0
                };
                saturate(full_at.saturating_sub(base_ns as u128))
            }
            Algorithm::SlidingWindow => Sliding::full_at_ns(self, value, base_ns),
        }
    }

    /// `value` as of `moment`: from then on it acts like `value`, and a stamp from before `moment` finds
    /// no less used than one of `moment` does, where `value` may know no past. Divides (64 bits) for a
    /// window that is entered.
    #[inline]
    pub const fn advanced(&self, value: u128, moment: Moment) -> u128 {
        match self.algorithm {
            Algorithm::TokenBucket => {
                let now = self.now_units(moment);
                if value > now { value } else { now }
            }
            Algorithm::FixedWindow => {
                let (index, used) = self.window_at(value, moment);
                let ahead = if self.is_ahead(value, moment) {
                    AHEAD
                } else {
                    0
                };
                pack_window(index, used) | ahead
            }
            Algorithm::SlidingWindow => Sliding::at(self, value, moment).pack(self),
        }
    }

    /// The limit that this was prepared from, exactly as it was defined.
    pub const fn definition(&self) -> Limit {
        Limit::of(self)
    }

    /// Plain words to store. The meaning of a word never changes; another form gets another tag.
    pub const fn encode(&self) -> [u64; PREPARED_WORDS] {
        let tag = match self.algorithm {
            Algorithm::TokenBucket => TAG_TOKEN_BUCKET,
            Algorithm::FixedWindow => TAG_FIXED_WINDOW,
            Algorithm::SlidingWindow => TAG_SLIDING_WINDOW,
        };
        [tag, self.count, self.period, self.divisor, self.burst]
    }

    /// Reads what [`Prepared::encode`] wrote; `None` for words out of the bounds that the arithmetic rests
    /// on, which only damage can have made. Doesn't ask whether the rate is in lowest terms: a damaged
    /// limit that still is one can't be told from another. Costs a few comparisons.
    #[must_use]
    pub const fn decode(words: [u64; PREPARED_WORDS]) -> Option<Self> {
        let [tag, count, period, divisor, burst] = words;
        if period == 0 || period > PERIOD_NS_MAX || divisor == 0 {
            return None;
        }
        let algorithm = match tag {
            TAG_TOKEN_BUCKET => {
                let room = VALUE_MAX.saturating_sub(wide(TIME_NS_MAX, count));
                if count > REDUCED_COUNT_MAX || burst as u128 > room / period as u128 {
                    return None;
                }
                Algorithm::TokenBucket
            }
            TAG_FIXED_WINDOW
                if burst <= USED_MAX && count == burst && period >= WINDOW_PERIOD_NS_MIN =>
            {
                Algorithm::FixedWindow
            }
            TAG_SLIDING_WINDOW
                if count == burst
                    && period >= WINDOW_PERIOD_NS_MIN
                    && burst <= sliding::count_max(period) =>
            {
                Algorithm::SlidingWindow
            }
            _ => return None,
        };
        if count.checked_mul(divisor).is_none() || period.checked_mul(divisor).is_none() {
            return None;
        }
        Some(Self {
            algorithm,
            count,
            period,
            divisor,
            burst,
            is_narrow: is_narrow(algorithm, count, period, burst),
        })
    }

    /// Token bucket: the time in units, below 2^85.
    #[inline]
    pub(super) const fn now_units(&self, moment: Moment) -> u128 {
        wide(moment.elapsed_ns(), self.count)
    }

    /// Token bucket: units as nanoseconds, rounded up, at most `u64::MAX`; `None` if the count is 0
    /// and so no time is enough.
    pub(super) const fn units_to_ns(&self, units: u128) -> Option<u64> {
        if units == 0 {
            Some(0)
        } else if self.count == 0 {
            None
        } else {
            Some(saturate(units.div_ceil(self.count as u128)))
        }
    }

    /// Fixed window: the window that a check at `moment` counts in, and what is used of it.
    #[inline]
    pub(super) const fn window_at(&self, value: u128, moment: Moment) -> (u64, u64) {
        let (index, used) = unpack_window(value);
        let unix_ns = moment.unix_ns();
        // Also true for a stamp from before the stored window: time never goes back.
        if (unix_ns as u128) < self.window_end(index) {
            (index, used)
        } else {
            (unix_ns / self.period, 0)
        }
    }

    /// Fixed window: whether the stored window was reserved before it begins, and has not begun. Then
    /// nothing is admitted until it does: what was used of the windows before it is not known.
    #[inline]
    pub(super) const fn is_ahead(&self, value: u128, moment: Moment) -> bool {
        value & AHEAD != 0 && (moment.unix_ns() as u128) < self.window_start(value)
    }

    /// Fixed window: the unix time in nanoseconds at which the stored window begins.
    #[inline]
    pub(super) const fn window_start(&self, value: u128) -> u128 {
        wide(unpack_window(value).0, self.period)
    }

    /// Windows: the unix time in nanoseconds at which window `index`, of at most 46 bits, is over.
    #[inline]
    pub(super) const fn window_end(&self, index: u64) -> u128 {
        wide(index + 1, self.period)
    }
}

/// Whether a reduced token bucket's checks fit 64 bits: times are below 2^59 and a burst below 2^62.
#[inline]
pub(super) const fn is_narrow(algorithm: Algorithm, count: u64, period: u64, burst: u64) -> bool {
    matches!(algorithm, Algorithm::TokenBucket) && count == 1 && wide(burst, period) < 1 << 62
}

/// Fixed window: index and used cost as a value. The index is at most 44 bits, the cost at most 40.
#[inline]
pub(super) const fn pack_window(index: u64, used: u64) -> u128 {
    (index as u128) << USED_BITS | used as u128
}

/// Fixed window: index and used cost of a value; the bits above are ignored.
#[inline]
pub(super) const fn unpack_window(value: u128) -> (u64, u64) {
    let index = (value >> USED_BITS) as u64 & ((1 << INDEX_BITS) - 1);
    (index, value as u64 & USED_MAX)
}

/// The product of two 64-bit numbers, which always fits: one machine instruction.
#[inline]
pub(super) const fn wide(a: u64, b: u64) -> u128 {
    a as u128 * b as u128
}

/// At most `u64::MAX`.
#[inline]
pub(super) const fn saturate(ns: u128) -> u64 {
    if ns > u64::MAX as u128 {
        u64::MAX
    } else {
        ns as u64
    }
}

/// Fixed window: bits of the used cost.
pub(super) const USED_BITS: u32 = 40;
/// Fixed window: the greatest used cost that a value holds.
pub(super) const USED_MAX: u64 = (1 << USED_BITS) - 1;
/// Fixed window: bits of the window's index.
pub(super) const INDEX_BITS: u32 = VALUE_BITS - 1 - USED_BITS;
/// Fixed window: in a value whose window was reserved before it began.
pub(super) const AHEAD: u128 = 1 << (VALUE_BITS - 1);
/// The latest unix time that windows tell apart, in nanoseconds: in the year 2262.
pub(super) const UNIX_NS_MAX: u64 = (1 << 63) - 1;

const TAG_TOKEN_BUCKET: u64 = 1;
const TAG_FIXED_WINDOW: u64 = 2;
const TAG_SLIDING_WINDOW: u64 = 3;

// Why no sum in `check` overflows. A definition is accepted only if
//     TIME_NS_MAX·N′ + burst·P′ ≤ VALUE_MAX < 2^85,
// and `check` adds at most (burst - cost)·P′ to a time of at most TIME_NS_MAX·N′. An admission starts
// from an arrival of at most now + (burst - cost)·P′ and adds cost·P′, so the new value is at most
// now + burst·P′ ≤ VALUE_MAX, whatever the old value was. A window's used cost grows to at most the
// count, below 2^40; its index is at most UNIX_NS_MAX / WINDOW_PERIOD_NS_MIN, below 2^44. A sliding
// window admits only what leaves `current` within the count, which its field holds; its index is at most
// UNIX_NS_MAX / period, which its field holds for that period.
// A reservation is a check at its slot, of at most TIME_NS_MAX.
const _: () = assert!(wide(TIME_NS_MAX, REDUCED_COUNT_MAX) + (PERIOD_NS_MAX as u128) <= VALUE_MAX);
// Times in use stay below 2^58, half of what the value has room for.
const _: () = assert!(TIME_NS_MAX > 1 << 58);
