//! A node: a voter, its disk, its clock, and what waits for it.

use std::collections::{BTreeMap, VecDeque};

use sprag_log::{
    Loaded, SimulatedDisk, SimulatedFile, SnapshotJob, Snapshots, Store, SyncJob, UpkeepJob,
};
use sprag_paxos::{Executor, Message, Record, RoleName, Slot, Snapshot, Ticket, Voter};

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
    /// From its disk: snapshots hold everything up to here.
    Saved { trimmable: Slot },
    /// From its disk: all of a snapshot has come from another node.
    Received {
        snapshot: Snapshot,
        is_durable: bool,
    },
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
pub(crate) struct Node {
    pub(crate) voter: Voter,
    pub(crate) clock: Clock,
    pub(crate) disk: NodeDisk,
    /// Whether its disk may lose what it was asked to keep.
    pub(crate) is_loser: bool,
    /// How often it started. What was meant for an earlier life is void.
    pub(crate) lives: u32,
    /// `None` while it is down.
    pub(crate) life: Option<Life>,
    /// What it wrote and isn't known to be durable.
    pub(crate) unsynced: VecDeque<(Ticket, Record)>,
    pub(crate) deaths: u32,
    /// It is dead for good.
    pub(crate) is_gone: bool,
}

impl Node {
    pub(crate) fn new(voter: Voter, clock: Clock, disk: NodeDisk, is_loser: bool) -> Self {
        Self {
            voter,
            clock,
            disk,
            is_loser,
            lives: 0,
            life: None,
            unsynced: VecDeque::new(),
            deaths: 0,
            is_gone: false,
        }
    }
}

/// What a node has while it is up, and loses when it dies.
pub(crate) struct Life {
    pub(crate) executor: Executor,
    /// What it does with what is decided.
    pub(crate) machine: Machine,
    /// What it writes to its disk with.
    pub(crate) store: Store<SimulatedDisk>,
    pub(crate) snapshots: Snapshots<SimulatedDisk>,
    /// What came and was not taken in yet.
    pub(crate) inbox: VecDeque<Input>,
    /// It stands still between two effects.
    pub(crate) is_paused: bool,
    /// Its timer, if it is set.
    pub(crate) tick: Option<Tick>,
    /// Whose calls it was given to propose, and their numbers as proposals.
    pub(crate) waiting: BTreeMap<CallNumber, u64>,
    /// The sync that is under way.
    pub(crate) syncing: Option<SyncJob<SimulatedFile>>,
    /// What is done to its segments beside writing to them.
    pub(crate) upkeep: Option<UpkeepJob<SimulatedDisk>>,
    /// Its disk had no room, and will be asked again.
    pub(crate) tries_again: bool,
    /// The snapshot that is made durable, its own or another's.
    pub(crate) saving: Option<SnapshotJob<SimulatedDisk>>,
    /// The snapshot of another node all of which came last.
    pub(crate) arrival: Option<Arrival>,
    /// Up to where its voter was told that what it wrote is durable.
    pub(crate) durable: Ticket,
    /// What its voter was doing when it was last looked at.
    pub(crate) role: RoleName,
}

/// A snapshot that came from another node, in all its pieces.
pub(crate) enum Arrival {
    /// It waits to be made durable.
    Whole(Snapshot),
    /// It is made durable.
    Installing(Snapshot),
    /// It is durable, and the voter is to say whether it takes the place of the state.
    Installed(Loaded),
}

impl Life {
    /// A life that begins with what was found.
    pub(crate) fn new(
        executor: Executor,
        machine: Machine,
        store: Store<SimulatedDisk>,
        snapshots: Snapshots<SimulatedDisk>,
    ) -> Self {
        Self {
            role: executor.replica().role(),
            executor,
            machine,
            store,
            snapshots,
            inbox: VecDeque::new(),
            is_paused: false,
            tick: None,
            waiting: BTreeMap::new(),
            syncing: None,
            upkeep: None,
            tries_again: false,
            saving: None,
            arrival: None,
            durable: Ticket::NONE,
        }
    }

    /// What its voter is doing.
    pub(crate) fn role(&self) -> RoleName {
        self.executor.replica().role()
    }

    /// All of a snapshot came, or it can't be kept.
    pub(crate) fn received(&mut self, snapshot: Snapshot, is_durable: bool) {
        self.inbox.push_back(Input::Received {
            snapshot,
            is_durable,
        });
    }
}
