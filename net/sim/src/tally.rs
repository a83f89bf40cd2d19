//! What a run came through: counts, and at which point of which stage nodes died.

use sprag_paxos::{Effect, Record};

use crate::node::Stage;

/// What a node was about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// To write a promise.
    WritesPromise,
    /// To write an acceptance.
    WritesVote,
    /// To send.
    Sends,
    /// To tell clients what is decided.
    Decides,
    /// Nothing: it had done everything.
    Rests,
}

impl Point {
    pub(crate) const ALL: [Point; 5] = [
        Point::WritesPromise,
        Point::WritesVote,
        Point::Sends,
        Point::Decides,
        Point::Rests,
    ];

    pub(crate) fn before(effect: Option<&Effect>) -> Self {
        match effect {
            None => Point::Rests,
            Some(Effect::Decided { .. }) => Point::Decides,
            Some(Effect::Send { .. }) => Point::Sends,
            Some(Effect::Persist { record, .. }) => match record {
                Record::Promised(_) => Point::WritesPromise,
                Record::Accepted { .. } => Point::WritesVote,
            },
        }
    }
}

/// The counts of a run.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Calls of clients.
    pub asked: u64,
    /// Those that were answered.
    pub answered: u64,
    /// Slots decided.
    pub decided: u64,
    /// Starts after a death.
    pub restarts: u64,
    /// Attempts begun.
    pub attempts: u64,
    /// By point and stage, how many nodes died there.
    pub crashes: [[u32; Stage::ALL.len()]; Point::ALL.len()],
}
