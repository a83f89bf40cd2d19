//! A node: a voter, its disk, its clock, and what waits for it.

use std::collections::{BTreeMap, VecDeque};

use sprag_paxos::{Entry, Executor, Message, Phase, Slot, Ticket, Voter};

use crate::clock::Clock;
use crate::journal::Journal;

/// What comes to a node.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// From another voter.
    Message { from: Voter, message: Message },
    /// From a client.
    Request {
        client: usize,
        slot: Slot,
        entry: Entry,
    },
    /// From its disk.
    Persisted { ticket: Ticket },
    /// From its clock.
    Tick,
}

/// A timer that is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick {
    /// For when, by the node's clock.
    pub(crate) deadline_ns: u64,
    /// When, of the world's time, it fires.
    pub(crate) at_ns: u64,
}

/// A node, up or down.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) voter: Voter,
    pub(crate) clock: Clock,
    pub(crate) journal: Journal,
    /// Whether its disk may lose what it was asked to keep.
    pub(crate) is_loser: bool,
    /// How often it started. What was meant for an earlier life is void.
    pub(crate) life: u32,
    /// `None` while it is down.
    pub(crate) executor: Option<Executor>,
    /// It stands still between two effects.
    pub(crate) is_paused: bool,
    /// What came while it stood still.
    pub(crate) inbox: VecDeque<Input>,
    /// The number of records that the journal had when this life began: tickets count from there.
    pub(crate) written_before: usize,
    pub(crate) is_syncing: bool,
    /// Its timer, if it is set.
    pub(crate) tick: Option<Tick>,
    /// Who waits to hear of which slot.
    pub(crate) waiting: BTreeMap<Slot, Vec<usize>>,
}

/// What a node is busy with when it dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Idle,
    PhaseOne,
    PhaseTwo,
    /// Between attempts.
    Waiting,
}

impl Stage {
    pub(crate) const ALL: [Stage; 4] = [
        Stage::Idle,
        Stage::PhaseOne,
        Stage::PhaseTwo,
        Stage::Waiting,
    ];
}

impl Node {
    pub(crate) fn new(voter: Voter, clock: Clock, is_loser: bool) -> Self {
        Self {
            voter,
            clock,
            journal: Journal::default(),
            is_loser,
            life: 0,
            executor: None,
            is_paused: false,
            inbox: VecDeque::new(),
            written_before: 0,
            is_syncing: false,
            tick: None,
            waiting: BTreeMap::new(),
        }
    }

    pub(crate) fn stage(&self) -> Stage {
        let attempt = self
            .executor
            .as_ref()
            .and_then(|executor| executor.replica().attempt());
        match attempt {
            None => Stage::Idle,
            Some((_, None)) => Stage::Waiting,
            Some((_, Some(proposer))) => match proposer.phase() {
                Phase::One => Stage::PhaseOne,
                Phase::Two => Stage::PhaseTwo,
            },
        }
    }
}
