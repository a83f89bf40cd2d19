//! What the state machine asks to be remembered, as it is written. Promises are not among it: they go to the vote file.

use sprag_paxos::{Ballot, Entry, Record, Slot};

use crate::cell::{CELL, Cell, Kind};

/// A record as it is written.
#[derive(Clone, Copy)]
pub(crate) struct Draft<'a> {
    pub(crate) kind: Kind,
    pub(crate) slot: Slot,
    pub(crate) ballot: Ballot,
    pub(crate) payload: &'a [u8],
}

impl<'a> Draft<'a> {
    /// What is written to the log for `record`: nothing for a promise.
    pub(crate) fn of(record: &'a Record) -> Option<Draft<'a>> {
        let (kinds, slot, ballot, entry) = match record {
            Record::Promised(_) => return None,
            Record::Accepted { slot, vote } => (
                [Kind::AcceptedNoop, Kind::Accepted],
                *slot,
                vote.ballot,
                &vote.entry,
            ),
            Record::Learned { slot, entry } => (
                [Kind::LearnedNoop, Kind::Learned],
                *slot,
                Ballot::NONE,
                entry,
            ),
            Record::Decided(slot) => ([Kind::Decided; 2], *slot, Ballot::NONE, &Entry::Noop),
            // What it needs is found when it is written.
            Record::Trimmed(slot) => ([Kind::Trimmed; 2], *slot, Ballot::NONE, &Entry::Noop),
        };
        let (kind, payload): (Kind, &[u8]) = match entry {
            Entry::Noop => (kinds[0], &[]),
            Entry::Commands(commands) => (kinds[1], commands),
        };
        Some(Draft {
            kind,
            slot,
            ballot,
            payload,
        })
    }

    /// The lines that it takes.
    pub(crate) fn lines(&self) -> u64 {
        u64::from(Cell::lines(0)) + (self.payload.len() as u64).div_ceil(CELL as u64)
    }
}

/// The ballot that a record promises, if it does.
pub(crate) fn promised(record: &Record) -> Ballot {
    match record {
        Record::Promised(ballot) => *ballot,
        Record::Accepted { vote, .. } => vote.ballot,
        Record::Learned { .. } | Record::Decided(_) | Record::Trimmed(_) => Ballot::NONE,
    }
}

/// The slot that a record holds something of.
pub(crate) fn held_slot(record: &Record) -> Option<Slot> {
    match record {
        Record::Accepted { slot, .. } | Record::Learned { slot, .. } => Some(*slot),
        Record::Promised(_) | Record::Decided(_) | Record::Trimmed(_) => None,
    }
}

/// Up to which slot a record says that a snapshot holds everything, if it does.
pub(crate) fn trimmed_slot(record: &Record) -> Option<Slot> {
    match record {
        Record::Trimmed(slot) => Some(*slot),
        _ => None,
    }
}
