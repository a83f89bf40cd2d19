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
#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
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
    /// What is done to its segments beside writing to them.
    pub(crate) upkeep: Option<UpkeepJob<SimulatedDisk>>,
    /// Its disk had no room, and will be asked again.
    pub(crate) tries_again: bool,
    /// Its snapshots; `None` while it is down.
    pub(crate) snapshots: Option<Snapshots<SimulatedDisk>>,
    /// The snapshot that is made durable, its own or another's.
    pub(crate) saving: Option<SnapshotJob<SimulatedDisk>>,
    /// A snapshot all of which came, to be made durable next.
    pub(crate) whole: Option<Snapshot>,
    /// Which that is, if it is another's.
    pub(crate) installing: Option<Snapshot>,
    /// What it holds, now that it is durable.
    pub(crate) loaded: Option<Loaded>,
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
            upkeep: None,
            tries_again: false,
            snapshots: None,
            saving: None,
            whole: None,
            installing: None,
            loaded: None,
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

    /// All of a snapshot came, or it can't be kept.
    pub(crate) fn received(&mut self, snapshot: Snapshot, is_durable: bool) {
        self.inbox.push_back(Input::Received {
            snapshot,
            is_durable,
        });
    }

    /// What its voter is doing; `None` while it is down.
    pub(crate) fn role(&self) -> Option<RoleName> {
        let executor = self.executor.as_ref()?;
        Some(executor.replica().role())
    }
}
