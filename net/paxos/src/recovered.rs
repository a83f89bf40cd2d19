//! What a voter starts with.

use std::collections::BTreeMap;

use crate::ballot::Ballot;
use crate::entry::{Answer, Entry, Slot};

/// What a voter's disk gave back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The last promise on record.
    pub promised: Ballot,
    /// What is known of each slot's vote.
    pub answers: BTreeMap<Slot, Answer>,
    /// What was learned last in a slot, and not accepted since.
    pub learned: BTreeMap<Slot, Entry>,
    /// Up to where everything is on record as decided, and can be read. Where more was on record, but some of it can't be
    /// read, that more is decided must be off the record, durably, before the voter starts: it may accept something there
    /// again, which would be taken for what was decided, the next time.
    pub decided: Slot,
    /// Up to where nothing is on record any more, since a snapshot holds it. All of that is decided.
    pub trimmed: Slot,
    /// What the state that the voter starts with holds: the last slot of the snapshot that it was made from, not below
    /// `trimmed`. It may be above `decided`.
    pub snapshot: Slot,
}

impl Default for Recovered {
    /// A new disk's: nothing.
    fn default() -> Self {
        Self {
            promised: Ballot::NONE,
            answers: BTreeMap::new(),
            learned: BTreeMap::new(),
            decided: Slot::NONE,
            trimmed: Slot::NONE,
            snapshot: Slot::NONE,
        }
    }
}
