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
//! | Algorithm | bits 84..40 | bits 39..0 |
//! |---|---|---|
//! | token bucket | theoretical arrival time, in units of 1/N′ ns since the region's base | (same number) |
//! | fixed window | index of the window since the unix epoch | cost used in that window |
//!
//! For both algorithms the greater of two values of a key is the one that admits less.
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
//! in the window already reached, where its call in truth happens. A fresh value knows no past: give a
//! key that takes the place of a reclaimed one [`Prepared::fresh_value`] of the reclaim, if stamps from
//! before it may still arrive.

mod convert;
mod decision;
mod definition;
mod error;
mod parse;
mod prepared;

pub use convert::convert;
pub use decision::Decision;
pub use definition::{Algorithm, COUNT_MAX, Limit, PERIOD_NS_MAX, WINDOW_PERIOD_NS_MIN};
pub use error::LimitError;
pub use prepared::{
    Moment, PREPARED_WORDS, Prepared, REDUCED_COUNT_MAX, TIME_NS_MAX, VALUE_BITS, VALUE_MAX,
    Verdict,
};
