//! The sliding window of two counters: the layout of its value, and how much of it is used when.
//! Owns no verdict and no text; never rounds but where a name says so.
//!
//! A value holds the index of a window since the unix epoch, the cost counted in the window before it
//! and the cost counted in it. What is used at a time is an estimate, as if the window before had been
//! used evenly:
//!
//! ```text
//!  used = previous · left / period + current          left: from now to the window's end
//! ```
//!
//! For one value, `used` never grows with time, also from one window to the next: at its end `previous`
//! weighs nothing and `current` all, and at the next one's start `current` has become the previous. So
//! a stamp that comes late is refused where any later one would be, and more. A stamp from before the
//! window counts as its start, where `used` is the most.
//!
//! # The bound
//!
//! In every interval of length w at most `count` + w·`count`/`period` is admitted, so up to twice the
//! count in one period. Let an interval begin in one window and end a time e into another, i windows
//! on. If i = 0 the one window has at most `count`. Else let m be what was counted in the last window
//! but one: the last admission of the last found `used` ≤ `count` with its own cost, hence
//! m·(1 - e/period) + current ≤ count. The interval has at most `count` in each of the i - 1 windows
//! before that one, m in it, and `current`: together (i - 1)·count + m + count - m·(1 - e/period) ≤
//! i·count + count·e/period. And w > (i - 1)·period + e.

use super::prepared::{Moment, Prepared, VALUE_BITS, saturate, wide};

/// A window's counts, as of some moment in it.
#[derive(Clone, Copy)]
pub(super) struct Sliding {
    /// The window's index since the unix epoch.
    index: u64,
    /// The cost counted in the window before.
    previous: u64,
    /// The cost counted in this one.
    current: u64,
    /// Nanoseconds from the moment to the window's end: from 1 to the period.
    left_ns: u64,
}

/// The greatest cost that a value holds for a window of `period` nanoseconds, which is at least
/// `WINDOW_PERIOD_NS_MIN`. An index has 64 - log2(period) bits, rounded up, for every window of a
/// 64-bit unix time; the two counts share the rest.
pub(super) const fn count_max(period: u64) -> u64 {
    (1 << count_bits(period)) - 1
}

const fn count_bits(period: u64) -> u32 {
    (VALUE_BITS - (64 - period.ilog2())) / 2
}

impl Sliding {
    /// What `value` says at `moment`: in the window of then, or in the stored one if that is later.
    #[inline]
    pub(super) const fn at(prepared: &Prepared, value: u128, moment: Moment) -> Self {
        let stored = Self::stored(prepared, value);
        let (period, unix_ns) = (prepared.period, moment.unix_ns());
        let end = prepared.window_end(stored.index);
        if (unix_ns as u128) < end {
            let left = end - unix_ns as u128;
            // From before the window: its start.
            let left_ns = if left > period as u128 {
                period
            } else {
                left as u64
            };
            return Self { left_ns, ..stored };
        }
        let index = unix_ns / period;
        Self {
            index,
            previous: if index == stored.index + 1 {
                stored.current
            } else {
                0
            },
            current: 0,
            left_ns: period - unix_ns % period,
        }
    }

    /// What `value` says at its window's start.
    pub(super) const fn stored(prepared: &Prepared, value: u128) -> Self {
        let (bits, count_max) = (count_bits(prepared.period), count_max(prepared.period));
        let index_max = (1 << (VALUE_BITS - 2 * bits)) - 1;
        Self {
            index: (value >> (2 * bits)) as u64 & index_max,
            previous: (value >> bits) as u64 & count_max,
            current: value as u64 & count_max,
            left_ns: prepared.period,
        }
    }

    /// The window of `moment` with nothing used but `current`; what a value does not hold is cut.
    pub(super) const fn new(prepared: &Prepared, current: u128, moment: Moment) -> Self {
        let (period, unix_ns) = (prepared.period, moment.unix_ns());
        let count_max = count_max(period);
        Self {
            index: unix_ns / period,
            previous: 0,
            current: if current > count_max as u128 {
                count_max
            } else {
                current as u64
            },
            left_ns: period - unix_ns % period,
        }
    }

    /// The window's index since the unix epoch.
    pub(super) const fn index(self) -> u64 {
        self.index
    }

    /// As a value. The counts are at most `count_max`.
    #[inline]
    pub(super) const fn pack(self, prepared: &Prepared) -> u128 {
        let bits = count_bits(prepared.period);
        (self.index as u128) << (2 * bits) | (self.previous as u128) << bits | self.current as u128
    }

    /// With `cost` more counted, which leaves it within the limit.
    #[inline]
    pub(super) const fn with(self, cost: u64) -> Self {
        Self {
            current: self.current + cost,
            ..self
        }
    }

    /// With `cost` more counted, as far as a value holds it.
    #[inline]
    pub(super) const fn filled(self, prepared: &Prepared, cost: u64) -> Self {
        let (current, count_max) = (
            self.current.saturating_add(cost),
            count_max(prepared.period),
        );
        Self {
            current: if current > count_max {
                count_max
            } else {
                current
            },
            ..self
        }
    }

    /// What `value` becomes without a `cost` that left it at `end`, and what of the cost counts at
    /// `moment`, times the period; `None` if nothing does. The window stays the stored one.
    pub(super) const fn without(
        prepared: &Prepared,
        value: u128,
        end: u128,
        cost: u64,
        moment: Moment,
    ) -> Option<(Self, u128)> {
        let taken_in = Self::stored(prepared, end).index;
        let mut window = Self::stored(prepared, value);
        let counted = if window.index == taken_in {
            &mut window.current
        } else if window.index == taken_in + 1 {
            &mut window.previous
        } else {
            return None;
        };
        let given = if *counted < cost { *counted } else { cost };
        *counted -= given;
        let now = Self::at(prepared, value, moment);
        let weight_ns = if now.index == taken_in {
            prepared.period
        } else if now.index == taken_in + 1 {
            now.left_ns
        } else {
            0
        };
        let parts = wide(given, weight_ns);
        if parts == 0 {
            None
        } else {
            Some((window, parts))
        }
    }

    /// What is used, times the period; below 2^93, counts being below 2^37 and a period below 2^55.
    #[inline]
    pub(super) const fn used_times_period(self, prepared: &Prepared) -> u128 {
        wide(self.previous, self.left_ns) + wide(self.current, prepared.period)
    }

    /// Nanoseconds from `moment` until at most `room` is used, if nothing more is counted: 0 if it is.
    pub(super) const fn wait_ns(self, prepared: &Prepared, room: u64, moment: Moment) -> u64 {
        let period = prepared.period as u128;
        let room = wide(room, prepared.period);
        if self.used_times_period(prepared) <= room {
            return 0;
        }
        let own = wide(self.current, prepared.period);
        // What may be left of a window for the count that weighs by it: rounded down, so that the wait
        // is rounded up. Neither count is 0 where it divides, else there would be room.
        let (windows, left) = if own <= room {
            (1, (room - own) / self.previous as u128)
        } else {
            (2, room / self.current as u128)
        };
        let end = wide(self.index, prepared.period) + windows * period;
        saturate((end - left).saturating_sub(moment.unix_ns() as u128))
    }

    /// The unix time in nanoseconds from which on nothing is used, if nothing more is counted; 0 if
    /// nothing is.
    pub(super) const fn full_at(self, prepared: &Prepared) -> u128 {
        if self.current > 0 {
            prepared.window_end(self.index + 1)
        } else if self.previous > 0 {
            prepared.window_end(self.index)
        } else {
            0
        }
    }

    /// The value of `full_at` seen from `moment`: nanoseconds to go.
    pub(super) const fn full_after_ns(self, prepared: &Prepared, moment: Moment) -> u64 {
        let unix_ns = moment.unix_ns() as u128;
        saturate(self.full_at(prepared).saturating_sub(unix_ns))
    }

    /// [`full_at`](Self::full_at) of a stored value, in nanoseconds since the region's base.
    pub(super) const fn full_at_ns(prepared: &Prepared, value: u128, base_ns: u64) -> u64 {
        let full_at = Self::stored(prepared, value).full_at(prepared);
        saturate(full_at.saturating_sub(base_ns as u128))
    }
}
