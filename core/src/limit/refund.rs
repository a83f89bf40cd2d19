//! What of an admission can be given back, as a step of its key's value. Owns the argument why that
//! raises no window above the limit. Never knows whether the value is still the key's, or whether the
//! refund is the first: who asks does.
//!
//! # A token bucket
//!
//! The value V is the theoretical arrival time. An admission of cost c lay in the interval [s, e) of
//! virtual time, s = max(V, now) and e = s + c·P′, and left V = e; intervals of one key are disjoint.
//! What lies before now has drained. Let a *slot* be when an admission counts: its stamp, or for a
//! reservation the time from which its holder may act; and n what it took less what was given back.
//! What keeps the bound burst + w·rate in every interval of slots is
//!
//! ```text
//!  V ≥ a + the sum of n over all slots from a on          for each a up to the latest slot      (1)
//!  V ≤ slot + burst·P′                                    right after each admission            (2)
//! ```
//!
//! since then the admissions in [a, b] sum to at most V - a ≤ b + burst·P′ - a, V being the value right
//! after the last of them. Giving back g of an admission lowers both sides of (1) for each a up to its
//! slot. For a later a, let m be the first admission from a on. All n from m on sum to at most the V
//! before any refund less e of the one before m, so (1) goes on to hold if what has been given back of
//! the intervals below m is at most (start of m's interval) - a. It is, if refunds lie within the
//! intervals and above the slot of every admission made later. Those slots are at most now, or, for a
//! reservation that waits, V - burst·P′ by (2). So **g = e - max(s, now, V - burst·P′)** is given back at
//! most, and V falls by g.
//!
//! That needs V as the admissions left it and intervals that are disjoint. Lowered, V makes the next
//! admission lie in part where others lie already: then more than what has not drained would count as
//! such. (Bucket of 4, one a second. At 0: A takes 2, B 2, A is given back, C takes 2. B and C both have
//! \[2, 4). At 3, half of C has drained and all of B; given back one of each, of 4 left only the use since
//! is counted, and 5 pass at once.) So whoever keeps the value is told by [`Records`] what becomes of the
//! intervals that other admissions remember:
//!
//! - *kept*: the admission was the last, V = e, and now V is its s again or now. No other lies there.
//! - *marked*: they hold until the next admission, which must make them void;
//! - *void*: at once, since reservations wait and V no longer says until when.
//!
//! # Windows
//!
//! A count falls by the cost where the admission is in it. What was admitted since would have been
//! admitted all the more.

use super::definition::Algorithm;
use super::prepared::{AHEAD, Moment, Prepared, VALUE_MAX, pack_window, unpack_window, wide};
use super::sliding::Sliding;

/// What a refund does to a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Refund {
    /// Nothing: all that was taken has drained, or its window no longer counts. The value stays.
    Over,
    /// It gives back once the value becomes `new_value`.
    Given {
        /// The value after.
        new_value: u128,
        /// How much.
        amount: Amount,
        /// What becomes of what other admissions of the key remember.
        records: Records,
    },
}

/// A part of a cost, exactly; above 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    parts: u128,
    parts_per_cost: u64,
}

/// What a refund makes of what other admissions of the same key remember: see the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Records {
    /// They hold.
    Kept,
    /// They hold until the next admission.
    Marked,
    /// They are void.
    Void,
}

impl Amount {
    /// In whole units of cost, rounded down.
    pub const fn cost(self) -> u64 {
        // At most the cost of the admission.
        (self.parts / self.parts_per_cost as u128) as u64
    }

    /// With its fraction, as near as a float comes.
    pub fn as_f64(self) -> f64 {
        self.parts as f64 / self.parts_per_cost as f64
    }
}

impl Prepared {
    /// Gives back at `moment` what still counts of an admission of `cost` that left the value at `end`.
    ///
    /// The value is now `value`, marked or not; it must be that admission's key's, without a limit
    /// changed, a key reclaimed or records made void since. No admission that is in it may be stamped
    /// later than `moment`, or as much more is given back as drains in between: read the clock after the value.
    pub const fn refund(
        &self,
        value: u128,
        is_marked: bool,
        end: u128,
        cost: u64,
        moment: Moment,
    ) -> Refund {
        match self.algorithm {
            Algorithm::TokenBucket => self.refund_bucket(value, is_marked, end, cost, moment),
            Algorithm::FixedWindow => {
                let (index, used) = unpack_window(value);
                let is_over = moment.unix_ns() as u128 >= self.window_end(index);
                let given = if used < cost { used } else { cost };
                if index != unpack_window(end).0 || is_over || given == 0 {
                    return Refund::Over;
                }
                Refund::Given {
                    // Ahead as before: what was used of the windows before is still not known.
                    new_value: pack_window(index, used - given) | value & AHEAD,
                    amount: Amount {
                        parts: given as u128,
                        parts_per_cost: 1,
                    },
                    records: Records::Kept,
                }
            }
            Algorithm::SlidingWindow => {
                let Some((window, parts)) = Sliding::without(self, value, end, cost, moment) else {
                    return Refund::Over;
                };
                Refund::Given {
                    new_value: window.pack(self),
                    amount: Amount {
                        parts,
                        parts_per_cost: self.period,
                    },
                    records: Records::Kept,
                }
            }
        }
    }

    const fn refund_bucket(
        &self,
        value: u128,
        is_marked: bool,
        end: u128,
        cost: u64,
        moment: Moment,
    ) -> Refund {
        let (value, end) = (capped(value), capped(end));
        let start = end.saturating_sub(wide(cost, self.period));
        let now = self.now_units(moment);
        // The latest slot of a reservation that waits, in whole nanoseconds as slots are.
        let beyond_burst = value.saturating_sub(wide(self.burst, self.period));
        let Some(slot_ns) = self.units_to_ns(beyond_burst) else {
            // Nothing is ever admitted under a count of 0.
            return Refund::Over;
        };
        let slot = wide(slot_ns, self.count);
        let is_last = value == end && !is_marked;
        let floor = if slot > now && !is_last { slot } else { now };
        let from = if start > floor { start } else { floor };
        let undrained = value.saturating_sub(now);
        let left = end.saturating_sub(from);
        let given = if left < undrained { left } else { undrained };
        if given == 0 {
            return Refund::Over;
        }
        Refund::Given {
            new_value: value - given,
            amount: Amount {
                parts: given,
                parts_per_cost: self.period,
            },
            records: if is_last {
                Records::Kept
            } else if slot > now {
                Records::Void
            } else {
                Records::Marked
            },
        }
    }
}

const fn capped(value: u128) -> u128 {
    if value > VALUE_MAX { VALUE_MAX } else { value }
}
