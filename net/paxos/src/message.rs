//! What voters tell each other.

use std::sync::Arc;

use crate::ballot::Ballot;
use crate::entry::{Answer, Entry, Slot};
use crate::snapshot::Snapshot;

/// A message from one voter to another. Each may be lost, doubled, late and out of order; who sent it is known to the
/// transport, which proves it. An answer names the ballot of what it answers, and counts for no other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Before phase one: would a Prepare in this ballot be welcome? Changes nothing.
    Canvass {
        /// The ballot that it would be.
        ballot: Ballot,
    },
    /// It would: no leader has been heard of for an election timeout.
    Aye {
        /// The ballot that was asked about.
        ballot: Ballot,
    },
    /// Phase one: asks for the promise to accept nothing below `ballot`, and for what was accepted from a slot on.
    Prepare {
        /// The candidate's ballot.
        ballot: Ballot,
        /// Where it wants to know from.
        from: Slot,
    },
    /// The promise, durable before it leaves, and a page of what was accepted.
    Promise {
        /// The ballot of the Prepare that it answers.
        ballot: Ballot,
        /// The slot that was asked from.
        from: Slot,
        /// What the acceptor knows of slots after `decided`, ascending; never, of those in between.
        answers: Vec<(Slot, Answer)>,
        /// Where the next page begins; `None` if it knows of nothing after these.
        next: Option<Slot>,
        /// Up to where the acceptor knows what is decided. Of those slots it answers nothing: they can be fetched.
        decided: Slot,
    },
    /// Phase two: asks to accept `entry`.
    Accept {
        /// The leader's ballot.
        ballot: Ballot,
        /// Where.
        slot: Slot,
        /// What.
        entry: Entry,
        /// As in Commit.
        decided: Slot,
    },
    /// The acceptance, durable before it leaves.
    Accepted {
        /// The ballot of the Accept that it answers.
        ballot: Ballot,
        /// Where.
        slot: Slot,
    },
    /// A Canvass, a Prepare, an Accept or a Beat came too late.
    Refused {
        /// The ballot that was refused.
        ballot: Ballot,
        /// What the acceptor has promised instead.
        promised: Ballot,
    },
    /// Everything up to `decided` is decided. Where a voter accepted a slot in this very ballot it knows what that is.
    Commit {
        /// The leader's ballot.
        ballot: Ballot,
        /// Up to where.
        decided: Slot,
    },
    /// The leader is there: a Commit that is answered.
    Beat {
        /// The leader's ballot.
        ballot: Ballot,
        /// As in Commit.
        decided: Slot,
    },
    /// A Beat was heard.
    Heard {
        /// Its ballot.
        ballot: Ballot,
    },
    /// Asks what was decided from a slot on, having missed it.
    Fetch {
        /// From where.
        from: Slot,
    },
    /// What was decided: some of it, as much as goes into a page.
    Entries {
        /// The slot of the first.
        from: Slot,
        /// What each holds, slot after slot.
        entries: Vec<Entry>,
    },
    /// Asks for a piece of a snapshot: what was missed is so long ago that it isn't kept entry by entry any more.
    FetchChunk {
        /// Of which.
        snapshot: Snapshot,
        /// From which of its bytes on.
        offset: u64,
    },
    /// A piece of a snapshot: of the one that was asked for, or the first of another where that isn't there any more.
    Chunk {
        /// Of which.
        snapshot: Snapshot,
        /// Where in it.
        offset: u64,
        /// The piece.
        bytes: Arc<[u8]>,
    },
}

impl Message {
    /// The ballot of which only its own voter may say this. Nobody else is believed.
    pub(crate) fn speaks_for(&self) -> Option<Ballot> {
        match self {
            Message::Canvass { ballot }
            | Message::Prepare { ballot, .. }
            | Message::Accept { ballot, .. }
            | Message::Commit { ballot, .. }
            | Message::Beat { ballot, .. } => Some(*ballot),
            Message::Aye { .. }
            | Message::Promise { .. }
            | Message::Accepted { .. }
            | Message::Refused { .. }
            | Message::Heard { .. }
            | Message::Fetch { .. }
            | Message::Entries { .. }
            | Message::FetchChunk { .. }
            | Message::Chunk { .. } => None,
        }
    }
}
