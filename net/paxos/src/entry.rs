//! What is agreed on: an entry for each slot of the log.

use std::fmt;
use std::sync::Arc;

use crate::ballot::Ballot;

/// A place in the log: 1 and up. Each slot is one decision, made once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u64);

impl Slot {
    /// Before the first slot.
    pub const NONE: Slot = Slot(0);

    /// The slot after this one.
    #[must_use]
    pub fn next(self) -> Slot {
        Slot(self.0 + 1)
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

/// What a slot may be decided to hold. Its bytes are shared, never copied from peer to peer.
#[derive(Clone, Debug, Eq, PartialOrd, Ord, Hash)]
#[expect(
    clippy::derived_hash_with_manual_eq,
    reason = "equal is what would be derived, only found out sooner"
)]
pub enum Entry {
    /// Nothing: fills a slot that nobody may have a value for.
    Noop,
    /// What clients asked for: [`commands`](crate::commands) parts it.
    Commands(Arc<[u8]>),
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Entry::Noop, Entry::Noop) => true,
            // Where bytes are shared, they need not be read.
            (Entry::Commands(one), Entry::Commands(another)) => {
                Arc::ptr_eq(one, another) || one == another
            }
            (Entry::Noop, Entry::Commands(_)) | (Entry::Commands(_), Entry::Noop) => false,
        }
    }
}

impl Entry {
    /// How many bytes of commands it holds.
    pub fn bytes(&self) -> usize {
        match self {
            Entry::Noop => 0,
            Entry::Commands(bytes) => bytes.len(),
        }
    }
}

/// An entry accepted in a ballot: what an acceptor remembers of a slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Vote {
    /// The ballot that proposed it.
    pub ballot: Ballot,
    /// What it proposed.
    pub entry: Entry,
}

/// What an acceptor knows of a slot when it answers a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// It accepted nothing there.
    Never,
    /// The last that it accepted.
    Accepted(Vote),
    /// It may have accepted something in a ballot up to this one, and cannot read it any more: neither of the above.
    Unknown(Ballot),
}
