//! What the state machine asks of the world.

use crate::ballot::Ballot;
use crate::entry::{Entry, Slot, Vote};
use crate::message::Message;
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
    /// The slot is decided, for good.
    Decided {
        /// Which.
        slot: Slot,
        /// What it holds.
        entry: Entry,
    },
}
