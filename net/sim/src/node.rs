//! A node: a voter, its disk, its clock, and what waits for it.

use std::collections::{BTreeMap, VecDeque};

use sprag_log::{SimulatedDisk, SimulatedFile, Store, SyncJob};
use sprag_paxos::{Executor, Message, Record, RoleName, Ticket, Voter};

use crate::clock::Clock;
use crate::command::CallNumber;
use crate::disk::NodeDisk;
use crate::machine::Machine;

/// What comes to a node.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// From another voter.
    Message { from: Voter, message: Message },
    /// From a client.
    Request { call: CallNumber, bytes: Vec<u8> },
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
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct Node {
    pub(crate) voter: Voter,
    pub(crate) clock: Clock,
    pub(crate) disk: NodeDisk,
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
    /// What it writes to its disk with; `None` while it is down.
    pub(crate) store: Option<Store<SimulatedDisk>>,
    /// The sync that is under way.
    pub(crate) syncing: Option<SyncJob<SimulatedFile>>,
    /// What it wrote and isn't known to be durable.
    pub(crate) unsynced: VecDeque<(Ticket, Record)>,
    /// Up to where its voter was told that it is.
    pub(crate) durable: Ticket,
    pub(crate) deaths: u32,
    /// It is dead for good.
    pub(crate) is_gone: bool,
    /// Its timer, if it is set.
    pub(crate) tick: Option<Tick>,
    /// Whose calls it was given to propose, and their numbers as proposals.
    pub(crate) waiting: BTreeMap<CallNumber, u64>,
    /// What it does with what is decided.
    pub(crate) machine: Machine,
    /// Whether it led when it was last looked at.
    pub(crate) has_led: bool,
    /// What its voter was doing then.
    pub(crate) was: Option<RoleName>,
}

impl Node {
    pub(crate) fn new(voter: Voter, clock: Clock, disk: NodeDisk, is_loser: bool) -> Self {
        Self {
            voter,
            clock,
            disk,
            is_loser,
            life: 0,
            executor: None,
            is_paused: false,
            inbox: VecDeque::new(),
            store: None,
            syncing: None,
            unsynced: VecDeque::new(),
            durable: Ticket::NONE,
            deaths: 0,
            is_gone: false,
            tick: None,
            waiting: BTreeMap::new(),
            machine: Machine::default(),
            has_led: false,
            was: None,
        }
    }

    /// What its voter is doing; `None` while it is down.
    pub(crate) fn role(&self) -> Option<RoleName> {
        let executor = self.executor.as_ref()?;
        Some(executor.replica().role())
    }
}
