//! One stored value with its version.

use std::fmt::{self, Debug, Formatter};

use super::{Known, Model};

/// A versioned register. Each write raises the version by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register;

/// What a [`Register`] holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cell {
    /// How many writes there have been; 0 before the first.
    pub version: u64,
    /// What the last of them stored; `None` before the first.
    pub value: Option<u64>,
}

/// What a client asks of a [`Register`]. Each value is stored by one operation at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterOperation {
    /// Reads.
    Get,
    /// Stores the value.
    Put(u64),
    /// Stores the value if the version is the expected one.
    CompareAndPut {
        /// The version that it must find; 0 to be the first to write.
        expected: u64,
        /// What it stores.
        value: u64,
    },
    /// Stores the value and returns what it replaces.
    Swap(u64),
}

/// What a [`Register`] answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterOutcome {
    /// What a get read.
    Found(Cell),
    /// The version that a put or a compare-and-put gave its value.
    Written(u64),
    /// What a compare-and-put found in place of the expected version.
    Refused(Cell),
    /// What a swap replaced; its own value has the version after that.
    Swapped(Cell),
}

/// As tables show it.
impl Debug for Cell {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self.value {
            Some(value) => write!(f, "{value} version {}", self.version),
            None => write!(f, "nothing"),
        }
    }
}

impl Model for Register {
    type State = Cell;
    type Operation = RegisterOperation;
    type Outcome = RegisterOutcome;

    fn initial() -> Cell {
        Cell {
            version: 0,
            value: None,
        }
    }

    fn apply(cell: &Cell, operation: &RegisterOperation) -> (Cell, RegisterOutcome) {
        let version = cell.version + 1;
        let written = |value| Cell {
            version,
            value: Some(value),
        };
        match *operation {
            RegisterOperation::Get => (*cell, RegisterOutcome::Found(*cell)),
            RegisterOperation::CompareAndPut { expected, .. } if expected != cell.version => {
                (*cell, RegisterOutcome::Refused(*cell))
            }
            RegisterOperation::Put(value) | RegisterOperation::CompareAndPut { value, .. } => {
                (written(value), RegisterOutcome::Written(version))
            }
            RegisterOperation::Swap(value) => (written(value), RegisterOutcome::Swapped(*cell)),
        }
    }

    fn only_reads(_: &RegisterOperation, outcome: &RegisterOutcome) -> bool {
        matches!(
            outcome,
            RegisterOutcome::Found(_) | RegisterOutcome::Refused(_)
        )
    }

    fn writes(operation: &RegisterOperation) -> Option<u64> {
        match *operation {
            RegisterOperation::Get => None,
            RegisterOperation::Put(value)
            | RegisterOperation::CompareAndPut { value, .. }
            | RegisterOperation::Swap(value) => Some(value),
        }
    }

    fn storing(operation: &RegisterOperation, value: u64) -> RegisterOperation {
        match *operation {
            RegisterOperation::Get => RegisterOperation::Get,
            // Nobody knows the outcome, and but for that a swap is a put.
            RegisterOperation::Put(_) | RegisterOperation::Swap(_) => RegisterOperation::Put(value),
            RegisterOperation::CompareAndPut { expected, .. } => {
                RegisterOperation::CompareAndPut { expected, value }
            }
        }
    }

    fn shows(outcome: &RegisterOutcome) -> Option<(u64, Cell)> {
        match outcome {
            RegisterOutcome::Found(cell)
            | RegisterOutcome::Refused(cell)
            | RegisterOutcome::Swapped(cell) => cell.value.map(|value| (value, *cell)),
            RegisterOutcome::Written(_) => None,
        }
    }

    // Versions only rise, and a version has one value.
    fn is_ruled_out(cell: &Cell, operation: &RegisterOperation, known: &Known<Self>) -> bool {
        match (known, operation) {
            (
                Known::Outcome(
                    RegisterOutcome::Found(found)
                    | RegisterOutcome::Refused(found)
                    | RegisterOutcome::Swapped(found),
                ),
                _,
            ) => found != cell && found.version <= cell.version,
            (
                Known::Outcome(RegisterOutcome::Written(version))
                | Known::Leaves(Cell { version, .. }),
                _,
            ) => *version <= cell.version,
            (Known::Nothing, RegisterOperation::Get) => true,
            (Known::Nothing, RegisterOperation::CompareAndPut { expected, .. }) => {
                *expected < cell.version
            }
            (Known::Nothing, _) => false,
        }
    }
}
