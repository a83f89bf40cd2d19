//! What the state machine asks to be remembered, as it is written. Promises are not among it: they go to the vote file.

use sprag_paxos::{Ballot, Entry, Record, Slot};

use crate::cell::{CELL, Cell, Kind};
use crate::segment::Layout;

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

/// What a batch takes of a segment.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) records: u64,
    pub(crate) lines: u64,
}

impl Size {
    pub(crate) fn of<'a>(drafts: impl Iterator<Item = Draft<'a>>) -> Size {
        let nothing = Size {
            records: 0,
            lines: 0,
        };
        drafts.fold(nothing, |size, draft| Size {
            records: size.records + 1,
            lines: size.lines + draft.lines(),
        })
    }

    /// Whether there is room for it after `count` records, from `line` on.
    pub(crate) fn fits(self, layout: Layout, count: u32, line: u32) -> bool {
        self.records <= u64::from(layout.records_max() - count)
            && self.lines <= u64::from(layout.end() - line)
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
