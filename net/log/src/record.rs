//! What is appended to a log.

use sprag_paxos::{Ballot, Entry, Slot, Vote};

use crate::cell::{Cell, Kind};

/// What is appended to a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// The node accepted this.
    Accepted {
        /// Where.
        slot: Slot,
        /// In which ballot, and what.
        vote: Vote,
    },
    /// Every slot up to this one is decided: a hint, which nobody needs to sync for.
    Decided(Slot),
}

/// A record as it is written.
#[derive(Clone, Copy)]
pub(crate) struct Draft<'a> {
    pub(crate) kind: Kind,
    pub(crate) slot: Slot,
    pub(crate) ballot: Ballot,
    pub(crate) payload: &'a [u8],
}

impl Record {
    pub(crate) fn draft(&self) -> Draft<'_> {
        match self {
            Record::Accepted { slot, vote } => {
                let (kind, payload): (Kind, &[u8]) = match &vote.entry {
                    Entry::Noop => (Kind::Noop, &[]),
                    Entry::Commands(commands) => (Kind::Commands, commands),
                };
                let (slot, ballot) = (*slot, vote.ballot);
                Draft {
                    kind,
                    slot,
                    ballot,
                    payload,
                }
            }
            Record::Decided(slot) => Draft {
                kind: Kind::Decided,
                slot: *slot,
                ballot: Ballot::NONE,
                payload: &[],
            },
        }
    }
}

impl<'a> Draft<'a> {
    /// All slots up to `slot` are in a snapshot, and no generation below `first` is needed.
    pub(crate) fn trimmed(slot: Slot, first: u64) -> Draft<'a> {
        let ballot = Ballot {
            round: first,
            ..Ballot::NONE
        };
        Draft {
            kind: Kind::Trimmed,
            slot,
            ballot,
            payload: &[],
        }
    }

    pub(crate) fn lines(&self) -> u64 {
        u64::from(Cell::lines(0)) + (self.payload.len() as u64).div_ceil(crate::cell::CELL as u64)
    }
}
