//! A counter that only rises.

use super::{Known, Model};

/// An issuer of tokens: 1, 2, 3 and so on, each once, none left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issuer;

/// Asks an [`Issuer`] for its next token, which is the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextToken;

impl Model for Issuer {
    /// The last token issued; 0 before the first.
    type State = u64;
    type Operation = NextToken;
    type Outcome = u64;

    fn initial() -> u64 {
        0
    }

    fn apply(last: &u64, _: &NextToken) -> (u64, u64) {
        (last + 1, last + 1)
    }

    fn is_ruled_out(last: &u64, _: &NextToken, known: &Known<Self>) -> bool {
        match known {
            Known::Outcome(token) | Known::Leaves(token) => token <= last,
            Known::Nothing => false,
        }
    }
}
