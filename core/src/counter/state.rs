//! The state words of counters and their stripes, decoded and encoded, and what they allow. Owns the bits;
//! exchanges no word.
//!
//! A counter's word:
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0..3 | phase | LIVE |
//! | 3..5 | mode | 0 plain; 1 closed: striped, and all of it is here; 2 open: stripes may be added to; 3 sealing: they are being closed |
//! | 5..8 | lower | while not plain or closed: how far below 0 a stripe may go, a place in [`ALLOWANCES`] |
//! | 8..11 | upper | the same above 0 |
//! | 11..64 | serial | of the entry; once striped also the *epoch*, which rises at each closing |
//! | 64..128 | number | all of it, or while open or sealing what it was at the opening |
//!
//! A stripe's word:
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0..3 | phase | LIVE |
//! | 3 | open | whether it may be added to |
//! | 5..8, 8..11 | lower, upper | the counter's of its epoch |
//! | 11..64 | epoch | the counter's when it was opened or closed last; counts only in that epoch |
//! | 64..88 | changes | since it was opened, so that no word comes back |
//! | 88..128 | number | signed: what was added since it was opened |

use crate::object::{Plain, TOKEN_MAX};
use crate::table::{LIVE, field};
use core::ops::RangeInclusive;

/// Stripes of a striped counter: enough for the cores that one counter is hot on, at a line each. Models get by
/// with fewer words.
pub(super) const STRIPES: usize = if cfg!(loom) { 2 } else { 8 };

/// How far from 0 a stripe may go. The last one fits a stripe's number with room for the sign.
const ALLOWANCES: [i64; 8] = [
    0,
    1 << 3,
    1 << 7,
    1 << 12,
    1 << 18,
    1 << 24,
    1 << 31,
    1 << 38,
];

/// An opening must allow for so many additions like the one that asks for it, or it is not worth its closing.
const ADDITIONS_MIN: i128 = 8;

/// The most changes of a stripe in one epoch.
const CHANGES_MAX: u32 = (1 << 24) - 1;

/// How a counter's number is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Plain,
    Closed,
    Open,
    Sealing,
}

/// A decoded counter's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) mode: Mode,
    lower: u8,
    upper: u8,
    pub(super) epoch: u64,
    pub(super) number: i64,
}

/// Set in the word of a counter whose number is partly in its stripes.
const SPREAD: u128 = 1 << 4;

/// Whether a counter's number is not all in this word of it.
#[inline(always)]
pub(super) fn is_spread(state: u128) -> bool {
    state & SPREAD != 0
}

/// The number in a counter's word.
#[inline(always)]
pub(super) fn number(state: u128) -> i64 {
    ((state >> 64) as u64).cast_signed()
}

/// The same word with another number.
#[inline(always)]
pub(super) fn with_number(state: u128, number: i64) -> u128 {
    state & u128::from(u64::MAX) | u128::from(number.cast_unsigned()) << 64
}

fn place(lower: u8, upper: u8) -> u128 {
    u128::from(lower) << 5 | u128::from(upper) << 8
}

fn allowance(place: u8) -> i64 {
    ALLOWANCES[usize::from(place) % ALLOWANCES.len()]
}

/// The greatest allowance of every stripe that `room` has room for.
fn place_within(room: i128) -> u8 {
    let fits = |allowance: &&i64| i128::from(**allowance) * STRIPES as i128 <= room;
    ALLOWANCES.iter().take_while(fits).count().saturating_sub(1) as u8
}

impl State {
    pub(super) fn decode(state: u128) -> Self {
        Self {
            mode: match field(state, 3, 2) {
                0 => Mode::Plain,
                1 => Mode::Closed,
                2 => Mode::Open,
                _ => Mode::Sealing,
            },
            lower: field(state, 5, 3) as u8,
            upper: field(state, 8, 3) as u8,
            epoch: Plain::decode(state).serial,
            number: number(state),
        }
    }

    pub(super) fn encode(self) -> u128 {
        let plain = Plain {
            serial: self.epoch,
            value: self.number.cast_unsigned(),
        };
        plain.encode() | (self.mode as u128) << 3 | place(self.lower, self.upper)
    }

    /// Closed with `number`, in an epoch after this one and `epoch`.
    pub(super) fn closed(self, epoch: u64, number: i64) -> Self {
        Self {
            mode: Mode::Closed,
            lower: 0,
            upper: 0,
            epoch: self.epoch.max(epoch) + 1,
            number,
        }
    }

    /// Open as wide as `bounds` allow, whatever the stripes then do; `None` if that is too narrow for additions of
    /// `delta`, or there are no epochs left, of which there are enough for a century.
    pub(super) fn opened(self, bounds: &RangeInclusive<i64>, delta: i64) -> Option<Self> {
        let number = i128::from(self.number);
        let lower = place_within(number - i128::from(*bounds.start()));
        let upper = place_within(i128::from(*bounds.end()) - number);
        let way = allowance(if delta < 0 { lower } else { upper });
        let is_worth_it = i128::from(way) >= i128::from(delta).abs() * ADDITIONS_MIN;
        (way > 0 && is_worth_it && self.epoch + 1 < TOKEN_MAX).then_some(Self {
            mode: Mode::Open,
            lower,
            upper,
            ..self
        })
    }

    pub(super) fn sealing(self) -> Self {
        Self {
            mode: Mode::Sealing,
            ..self
        }
    }

    /// Whether the whole lies within `bounds`, whatever the stripes do in this epoch.
    pub(super) fn is_within(self, bounds: &RangeInclusive<i64>) -> bool {
        let reach = |place| i128::from(allowance(place)) * STRIPES as i128;
        let number = i128::from(self.number);
        number - reach(self.lower) >= i128::from(*bounds.start())
            && number + reach(self.upper) <= i128::from(*bounds.end())
    }

    /// The word of a stripe that is opened in this epoch.
    pub(super) fn fresh_stripe(self) -> Stripe {
        Stripe {
            is_open: true,
            lower: self.lower,
            upper: self.upper,
            epoch: self.epoch,
            changes: 0,
            number: 0,
        }
    }
}

/// A decoded stripe's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stripe {
    pub(super) is_open: bool,
    pub(super) lower: u8,
    pub(super) upper: u8,
    pub(super) epoch: u64,
    pub(super) changes: u32,
    pub(super) number: i64,
}

impl Stripe {
    #[inline(always)]
    pub(super) fn decode(state: u128) -> Self {
        Self {
            is_open: state & (1 << 3) != 0,
            lower: field(state, 5, 3) as u8,
            upper: field(state, 8, 3) as u8,
            epoch: field(state, 11, 53),
            changes: field(state, 64, 24) as u32,
            number: ((state >> 64) as u64).cast_signed() >> 24,
        }
    }

    pub(super) fn encode(self) -> u128 {
        let open = if self.is_open { 1 << 3 } else { 0 };
        // The sign goes with the bits that are shifted out.
        let high = self.number.cast_unsigned() << 24 | u64::from(self.changes);
        LIVE | open
            | place(self.lower, self.upper)
            | u128::from(self.epoch.min(TOKEN_MAX)) << 11
            | u128::from(high) << 64
    }

    /// What it adds to the counter in `epoch`.
    pub(super) fn number_in(self, epoch: u64) -> i64 {
        if self.epoch == epoch { self.number } else { 0 }
    }

    /// Closed in `epoch`, with what it has added in it.
    pub(super) fn sealed(self, epoch: u64) -> Self {
        Self {
            is_open: false,
            epoch,
            number: self.number_in(epoch),
            ..self
        }
    }

    /// The word after `state` when `delta` is added to the stripe; `None` if it is not open or has no room.
    #[inline(always)]
    pub(super) fn added(state: u128, delta: i64) -> Option<u128> {
        let stripe = Self::decode(state);
        let number = stripe.number.checked_add(delta)?;
        let is_room = number >= -allowance(stripe.lower)
            && number <= allowance(stripe.upper)
            && stripe.changes < CHANGES_MAX;
        let high = number.cast_unsigned() << 24 | u64::from(stripe.changes + 1);
        (stripe.is_open && is_room).then_some(state & u128::from(u64::MAX) | u128::from(high) << 64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_what_they_are_made_of() {
        let number = -(1 << 38);
        let stripe = Stripe {
            is_open: true,
            lower: 7,
            upper: 5,
            epoch: TOKEN_MAX,
            changes: CHANGES_MAX - 1,
            number,
        };
        assert_eq!(Stripe::decode(stripe.encode()), stripe);
        let added = Stripe::added(stripe.encode(), 3).unwrap();
        assert_eq!(
            Stripe::decode(added),
            Stripe {
                changes: CHANGES_MAX,
                number: number + 3,
                ..stripe
            }
        );
        assert_eq!(Stripe::added(added, 1), None, "no changes are left");
        assert_eq!(Stripe::added(stripe.encode(), -1), None, "no room is left");
        for mode in [Mode::Plain, Mode::Closed, Mode::Open, Mode::Sealing] {
            let state = State {
                mode,
                lower: 3,
                upper: 7,
                epoch: 12,
                number: i64::MIN,
            };
            let word = state.encode();
            assert_eq!(State::decode(word), state);
            assert_eq!(is_spread(word), matches!(mode, Mode::Open | Mode::Sealing));
            assert_eq!(number_of(with_number(word, 7)), 7);
        }
    }

    fn number_of(word: u128) -> i64 {
        State::decode(word).number
    }

    #[test]
    fn an_opening_never_reaches_past_its_bounds() {
        let state = |number| State {
            mode: Mode::Closed,
            lower: 0,
            upper: 0,
            epoch: 5,
            number,
        };
        for (number, min, max, delta, is_open) in [
            (0, i64::MIN, i64::MAX, 1, true),
            (i64::MAX, i64::MIN, i64::MAX, 1, false),
            (i64::MAX, i64::MIN, i64::MAX, -1, true),
            (64, 0, 64, -1, true),
            (63, 0, 64, -1, false),
            (64, 0, 64, 1, false),
            (64, 0, 64, -2, false),
            (100, 0, 50, -1, true),
            (-100, 0, 50, -1, false),
            (0, i64::MIN, i64::MAX, i64::MIN, false),
        ] {
            let bounds = min..=max;
            let opened = state(number).opened(&bounds, delta);
            assert_eq!(opened.is_some(), is_open, "{number} {bounds:?} {delta}");
            let is_inside = bounds.contains(&number);
            assert!(opened.is_none_or(|opened| opened.is_within(&bounds) == is_inside));
        }
        let used_up = State {
            epoch: TOKEN_MAX - 1,
            ..state(0)
        };
        assert_eq!(used_up.opened(&(i64::MIN..=i64::MAX), 1), None);
    }
}
