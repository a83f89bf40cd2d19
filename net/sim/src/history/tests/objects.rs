//! Objects of the literature, which know nothing of values and little of what makes a search fast.

use super::super::Model;

/// A register of one number, with neither versions nor unique values; as in Knossos, with compare-and-set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plain;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlainOperation {
    Read,
    Write(u64),
    CompareAndSet(u64, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlainOutcome {
    Value(u64),
    Done,
    Differs,
}

impl Model for Plain {
    type State = u64;
    type Operation = PlainOperation;
    type Outcome = PlainOutcome;

    fn initial() -> u64 {
        0
    }

    fn apply(state: &u64, operation: &PlainOperation) -> (u64, PlainOutcome) {
        match *operation {
            PlainOperation::Read => (*state, PlainOutcome::Value(*state)),
            PlainOperation::Write(value) => (value, PlainOutcome::Done),
            PlainOperation::CompareAndSet(old, _) if old != *state => {
                (*state, PlainOutcome::Differs)
            }
            PlainOperation::CompareAndSet(_, new) => (new, PlainOutcome::Done),
        }
    }

    fn only_reads(_: &PlainOperation, outcome: &PlainOutcome) -> bool {
        *outcome != PlainOutcome::Done
    }
}

/// A first-in first-out queue, as in Herlihy & Wing; taking from an empty one returns `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Queue;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueOperation {
    Add(char),
    Take,
}

impl Model for Queue {
    type State = Vec<char>;
    type Operation = QueueOperation;
    type Outcome = Option<char>;

    fn initial() -> Vec<char> {
        Vec::new()
    }

    fn apply(state: &Vec<char>, operation: &QueueOperation) -> (Vec<char>, Option<char>) {
        match (operation, state.split_first()) {
            (QueueOperation::Add(item), _) => ([state.as_slice(), &[*item]].concat(), None),
            (QueueOperation::Take, Some((first, rest))) => (rest.to_vec(), Some(*first)),
            (QueueOperation::Take, None) => (Vec::new(), None),
        }
    }

    fn only_reads(operation: &QueueOperation, outcome: &Option<char>) -> bool {
        *operation == QueueOperation::Take && outcome.is_none()
    }
}
