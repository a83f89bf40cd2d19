//! Rate limits: their definition, and the pure transitions of a limiter's value.
//!
//! Owns what a limit *means*: how one is written ([`Limit`]), the reduced form that the fast path
//! computes with ([`Prepared`]), the step from one value to the next ([`Prepared::check`]), what a
//! caller is told ([`Decision`]), and how a value is carried over when a limit changes
//! ([`convert`]). It never touches an atomic, reads a clock, allocates on the way of a check, or
//! panics: whoever keeps the value loads it, calls a function here and compare-exchanges the result.
//!
//! # The value
//!
//! One key's state is one number below 2^[`VALUE_BITS`]. Zero is a fresh key: nothing used.
//!
//! | Algorithm | high bits | low bits |
//! |---|---|---|
//! | token bucket | theoretical arrival time, in units of 1/N′ ns since the region's base | (same number) |
//! | fixed window | 84: whether it is reserved ahead; 83..40: index of the window since the unix epoch | 39..0: cost used in that window |
//! | sliding window | 84..2b: index of the window since the unix epoch | 2b-1..b: cost used in the window before; b-1..0: in that window |
//!
//! b is (21 + log2(period in ns)) / 2, both rounded down: 20 to 37.
//!
//! # Exactness
//!
//! A token bucket's rate is the reduced fraction N′/P′ per nanosecond, and its value counts 1/N′ ns,
//! so that the time of one nanosecond (N′ units) and the price of one token (P′ units) are both whole
//! numbers. Nothing is ever rounded on the way of a check. Times told to users are rounded up: at
//! that time the request passes, and one nanosecond earlier it does not.
//!
//! # Stamps out of order
//!
//! Callers on several threads may arrive with stamps out of order. A token bucket measures a late
//! stamp against the arrival time already reached, so that it can only be refused more, and
//! `burst` + w·rate holds in every interval of the stamps as given. A fixed window counts a late stamp
//! in the window already reached, where its call in truth happens. A sliding window does so too, at that
//! window's start; within a window a late stamp finds at least as much used as a later one would, so
//! that no history of stamps admits what the formula would not at the latest stamp admitted so far. A
//! fresh value knows no past: give a key that takes the place of a reclaimed one the value of
//! [`Prepared::advanced`] to the reclaim, if stamps from before it may still arrive.
//!
//! # Slots
//!
//! A reservation ([`Prepared::reserve`]) is a check at a later time that is known to pass: it counts at that
//! time, its slot, and the bounds above hold over slots. What is reserved when a limit is changed counts
//! as used from the change on, as all that is used does.

mod applied;
mod convert;
mod decision;
mod definition;
mod error;
mod parse;
mod prepared;
mod refund;
mod reserve;
mod sliding;

pub(crate) use applied::{Since, Ways};
pub use convert::convert;
pub use decision::Decision;
pub use definition::{Algorithm, COUNT_MAX, Limit, PERIOD_NS_MAX, WINDOW_PERIOD_NS_MIN};
pub use error::LimitError;
pub use prepared::{
    Moment, PREPARED_WORDS, Prepared, REDUCED_COUNT_MAX, TIME_NS_MAX, VALUE_BITS, VALUE_MAX,
    Verdict,
};
pub use refund::{Amount, Records, Refund};
pub use reserve::Reserve;
