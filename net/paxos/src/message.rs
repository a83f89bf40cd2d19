//! What voters tell each other.

use crate::ballot::Ballot;
use crate::entry::{Answer, Entry, Slot};

/// A message from one voter to another. Each may be lost, doubled, late and out of order; who sent it is known to the
/// transport, which proves it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Phase one: asks for the promise to accept nothing below `ballot`, and for what was accepted in `slot`.
    Prepare {
        /// The candidate's ballot.
        ballot: Ballot,
        /// What it wants to know of.
        slot: Slot,
    },
    /// The promise, durable before it leaves.
    Promise {
        /// The ballot of the Prepare that it answers, and of no other.
        ballot: Ballot,
        /// The slot that was asked for.
        slot: Slot,
        /// What the acceptor knows of it.
        answer: Answer,
    },
    /// Phase two: asks to accept `entry`.
    Accept {
        /// The proposer's ballot.
        ballot: Ballot,
        /// Where.
        slot: Slot,
        /// What.
        entry: Entry,
    },
    /// The acceptance, durable before it leaves.
    Accepted {
        /// The ballot of the Accept that it answers, and of no other.
        ballot: Ballot,
        /// Where.
        slot: Slot,
    },
    /// A Prepare or an Accept came too late.
    Refused {
        /// The ballot that was refused.
        ballot: Ballot,
        /// Where.
        slot: Slot,
        /// What the acceptor has promised instead.
        promised: Ballot,
    },
    /// What was proposed in `ballot` for `slot` is chosen. Who accepted in that very ballot knows what it is.
    Commit {
        /// The ballot in which it was chosen.
        ballot: Ballot,
        /// Where.
        slot: Slot,
    },
    /// Asks what was decided, having missed it.
    Fetch {
        /// Where.
        slot: Slot,
    },
    /// What was decided.
    Decided {
        /// Where.
        slot: Slot,
        /// What.
        entry: Entry,
    },
}
