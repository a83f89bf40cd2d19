//! What the state machine asks of the world.

use std::sync::Arc;

use crate::ballot::Ballot;
use crate::entry::{Entry, Slot, Vote};
use crate::message::Message;
use crate::snapshot::Snapshot;
use crate::voter::Voter;

/// Numbers what is made durable: 1 and up, in the order in which it was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

impl Ticket {
    /// Rests on nothing.
    pub const NONE: Ticket = Ticket(0);
}

/// What a voter must not forget.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    /// It accepts nothing below this ballot. Round and voter are one record: half of it would be another promise.
    Promised(Ballot),
    /// It accepted this in `slot`, and with that promised the ballot.
    Accepted {
        /// Where.
        slot: Slot,
        /// In which ballot, and what.
        vote: Vote,
    },
    /// It was told that `slot` is decided to hold this, which it may never have accepted.
    Learned {
        /// Where.
        slot: Slot,
        /// What.
        entry: Entry,
    },
    /// Everything up to this slot is decided, and is what was last accepted or learned there. Those records are durable
    /// before this one is written.
    Decided(Slot),
    /// A snapshot that is durable here holds everything up to this slot: what is on record of those slots isn't needed any
    /// more. They are all decided.
    Trimmed(Slot),
}

impl Record {
    /// Whether something waits for it to be durable. What doesn't wait may be written along with what does.
    pub fn is_urgent(&self) -> bool {
        match self {
            Record::Promised(_) | Record::Accepted { .. } => true,
            Record::Learned { .. } | Record::Decided(_) | Record::Trimmed(_) => false,
        }
    }
}

/// What is to be done next. Effects are taken one by one, in order; the world may end between any two.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Write this, and say [`persisted`](crate::Executor::persisted) once it and all before it are durable. Nothing
    /// waits for the write itself.
    Persist {
        /// Its number.
        ticket: Ticket,
        /// What to write.
        record: Record,
    },
    /// Send this. What it rests on is durable by now.
    Send {
        /// To whom; never to itself.
        to: Voter,
        /// What.
        message: Message,
    },
    /// The slot is decided, for good. Slots come in order, each once in a voter's life, but for those that a snapshot skips.
    Decided {
        /// Which.
        slot: Slot,
        /// What it holds.
        entry: Entry,
    },
    /// Send a [`Chunk`](Message::Chunk): of the snapshot that was asked for, from that byte on; where that isn't here any
    /// more, or none was asked for, of the newest, from its start.
    SendChunk {
        /// To whom.
        to: Voter,
        /// What was asked for.
        asked: Option<(Snapshot, u64)>,
    },
    /// Keep this piece of a snapshot that another voter sends. Pieces come in order; one at 0 makes void what came before it.
    /// After the last, check the whole, make it durable, and say [`received`](crate::Executor::received).
    Receive {
        /// Of which.
        snapshot: Snapshot,
        /// Where in it.
        offset: u64,
        /// The piece.
        bytes: Arc<[u8]>,
    },
    /// What was decided up to here is skipped: the state that this snapshot holds, durable here, takes the place of the
    /// state there is.
    Restore {
        /// Which.
        snapshot: Snapshot,
    },
    /// This voter leads no longer. Of what it was given to propose, the outcome of what isn't decided yet is unknown; but
    /// what came from `unproposed` on has never been proposed.
    SteppedDown {
        /// The number, as [`propose`](crate::Executor::propose) gave it, of the first that was never proposed.
        unproposed: u64,
    },
}
