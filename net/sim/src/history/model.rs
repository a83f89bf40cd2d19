//! What an object does when one operation runs at a time.

use std::fmt::Debug;
use std::hash::Hash;

/// A sequential object, of which each key of a history is one.
///
/// `initial` and `apply` say what it does. The rest only makes the search fast; each has a default that claims
/// nothing, and each claim is part of the verdict's truth.
pub trait Model: Copy + Debug + Eq {
    /// All that the object remembers.
    type State: Clone + Eq + Hash + Debug;
    /// What a client asks for.
    type Operation: Clone + Eq + Debug;
    /// What it is told.
    type Outcome: Clone + Eq + Debug;

    /// The state before the first operation.
    fn initial() -> Self::State;

    /// The state after the operation, and its outcome.
    fn apply(state: &Self::State, operation: &Self::Operation) -> (Self::State, Self::Outcome);

    /// Whether an operation with this outcome changes nothing, in whatever state it gave it. `false` claims nothing.
    fn only_reads(_operation: &Self::Operation, _outcome: &Self::Outcome) -> bool {
        false
    }

    /// The value that the operation may store, if it is one that no other operation on the key stores, and if what
    /// any operation does to the rest of the state depends on no stored value. `None` claims nothing.
    fn writes(_operation: &Self::Operation) -> Option<u64> {
        None
    }

    /// The same operation, but storing `value`; asked only of those that [`writes`](Self::writes) names, and only
    /// where the outcome is unknown, so that any operation with that effect will do.
    #[must_use]
    fn storing(operation: &Self::Operation, _value: u64) -> Self::Operation {
        operation.clone()
    }

    /// A stored value that the outcome shows, with the one state that the object can have been in when it held that
    /// value. Whatever stored value an outcome depends on must be named.
    fn shows(_outcome: &Self::Outcome) -> Option<(u64, Self::State)> {
        None
    }

    /// Whether neither in this state nor in any that can follow it the operation can do what is known of it; with
    /// [`Known::Nothing`], whether it can change nothing any more. `false` claims nothing.
    fn is_ruled_out(
        _state: &Self::State,
        _operation: &Self::Operation,
        _known: &Known<Self>,
    ) -> bool {
        false
    }
}

/// What is known of an operation's effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known<M: Model> {
    /// It returned this.
    Outcome(M::Outcome),
    /// It had no response, but others saw what it stored: it ran, and left this state.
    Leaves(M::State),
    /// It had no response, and may never have run.
    Nothing,
}

impl<M: Model> Known<M> {
    /// Whether an operation that gave `outcome` and left `after` is one of which this is known.
    pub(super) fn fits(&self, outcome: &M::Outcome, after: &M::State) -> bool {
        match self {
            Self::Outcome(known) => known == outcome,
            Self::Leaves(known) => known == after,
            Self::Nothing => true,
        }
    }

    /// Whether it is known that the operation changes nothing, wherever it stands.
    pub(super) fn only_reads(&self, operation: &M::Operation) -> bool {
        match self {
            Self::Outcome(outcome) => M::only_reads(operation, outcome),
            Self::Leaves(_) | Self::Nothing => false,
        }
    }
}
