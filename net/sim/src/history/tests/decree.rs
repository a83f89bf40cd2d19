//! One decree: decided once. An object with every claim of a [`Model`] that makes a search fast.

use super::super::{Known, Model};

/// A single-decree consensus object: the first value proposed is decided, and everyone is told that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decree;

/// What a client asks of a [`Decree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecreeOperation {
    /// Decides this value unless one is decided; the outcome is the decided one. Each value is proposed once.
    Propose(u64),
    /// The outcome is the decided value, or `None`.
    Learn,
}

impl Model for Decree {
    type State = Option<u64>;
    type Operation = DecreeOperation;
    /// The decided value; `None` only for a [`DecreeOperation::Learn`].
    type Outcome = Option<u64>;

    fn initial() -> Option<u64> {
        None
    }

    fn apply(state: &Option<u64>, operation: &DecreeOperation) -> (Option<u64>, Option<u64>) {
        let after = match operation {
            DecreeOperation::Propose(value) => state.or(Some(*value)),
            DecreeOperation::Learn => *state,
        };
        (after, after)
    }

    // Told of another value than its own, a proposal came after that one.
    fn only_reads(operation: &DecreeOperation, outcome: &Option<u64>) -> bool {
        match operation {
            DecreeOperation::Propose(value) => *outcome != Some(*value),
            DecreeOperation::Learn => true,
        }
    }

    fn writes(operation: &DecreeOperation) -> Option<u64> {
        match operation {
            DecreeOperation::Propose(value) => Some(*value),
            DecreeOperation::Learn => None,
        }
    }

    fn storing(_: &DecreeOperation, value: u64) -> DecreeOperation {
        DecreeOperation::Propose(value)
    }

    fn shows(outcome: &Option<u64>) -> Option<(u64, Option<u64>)> {
        outcome.map(|value| (value, Some(value)))
    }

    // A decree never changes once it is decided.
    fn is_ruled_out(state: &Option<u64>, operation: &DecreeOperation, known: &Known<Self>) -> bool {
        match known {
            Known::Outcome(outcome) => state.is_some() && state != outcome,
            Known::Leaves(_) => state.is_some(),
            Known::Nothing => state.is_some() || *operation == DecreeOperation::Learn,
        }
    }
}
