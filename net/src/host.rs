//! The host of a voter: it feeds it, and carries out its effects in order, on the log, the links and the machine. It has no
//! thread and never waits, but for promises, which are synced where they are made.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message as _;
use sprag_log::{
    Disk, Loaded, Log, LogError, LogOptions, SnapshotDone, SnapshotError, SnapshotJob, Snapshots,
    Store, SyncDone, SyncJob, UpkeepDone, UpkeepJob,
};
use sprag_paxos::{
    Effect, Entry, Executor, Message, NodeId, Options, ProposeError, Recovered, Replica, Slot,
    Ticket, Voter, commands,
};

use crate::frame::FrameError;
use crate::gathering::Gathering;
use crate::links::Links;
use crate::machine::{OPERATION_BYTES_MAX, Registers};
use crate::options::NodeError;
use crate::session::Asker;
use crate::snapshots::{Begun, Keeper, Kept, Received};
use crate::wire::{Command, NotDone, Outcome, Unknown};

/// Which part of the log is kept for what is under way when it is nearly full: an eighth.
const LOG_RESERVE: usize = 8;

/// A client's request.
pub(crate) struct Asked {
    pub(crate) asker: Asker,
    pub(crate) operation: Bytes,
}

/// Somebody waits for a command.
struct Waiting {
    /// The number of the command as a proposal.
    proposal: u64,
    asker: Asker,
}

/// A voter, its log, and what it decides over.
pub(crate) struct Host<D: Disk> {
    executor: Executor,
    store: Store<D>,
    log_options: LogOptions,
    /// Up to where the voter was told that its records are durable.
    durable: Ticket,
    /// Something left since that was last asked.
    has_sent: bool,
    machine: Registers,
    /// Up to where its state is made.
    applied: Slot,
    keeper: Keeper<D>,
    /// What there was no room in for what is to be written.
    full: Option<Full>,
    /// There was no room for a piece of a snapshot since that was last asked.
    has_refused: bool,
    /// Tells the commands of this life from those of another.
    life: u64,
    /// How many commands it was given in this life.
    commands: u64,
    waiting: BTreeMap<u64, Waiting>,
    /// What was asked for and isn't proposed yet.
    gathering: Gathering<Asked>,
    /// Kept, so that gathering allocates nothing.
    emptied: Vec<Asked>,
    /// Kept, so that a command allocates nothing on its way in.
    command: Vec<u8>,
    /// No more is taken on.
    is_stopping: bool,
    start: Instant,
}

/// What a node starts with, from its disk.
pub(crate) struct Opened<D: Disk> {
    pub(crate) log: Log<D>,
    pub(crate) recovered: Recovered,
    pub(crate) snapshots: Snapshots<D>,
    pub(crate) loaded: Option<Loaded>,
}

/// What may have no room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Full {
    /// The log, until more of it is trimmed.
    Log,
    /// The disk, until somebody frees some of it.
    Disk,
}

/// What came of writing what is to be made durable.
pub(crate) enum Wrote<D: Disk> {
    /// All of it; the sync is to be carried out.
    All(SyncJob<D::File>),
    /// There was nothing, or it waits: for a sync or a segment under way, or in a full log for a snapshot.
    Nothing,
    /// The log was full, and some of it is to be trimmed. [`Host::carry_out`] is to follow, then another try.
    MadeRoom,
    /// The disk has no room for another segment. All is kept, and to be tried again later.
    NoRoom,
}

/// Why a node stops by itself. What was acknowledged is durable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Stopped {
    /// The log failed, or is full.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The snapshots failed.
    #[error(transparent)]
    Snapshots(#[from] SnapshotError),
    /// A snapshot whose checksum is right is none of this version's.
    #[error("a snapshot can't be read: {0}; start the node with the version that wrote it")]
    Snapshot(#[from] FrameError),
}

impl<D: Disk> Host<D> {
    /// Around a voter and its disk. What is known to be decided is applied.
    pub(crate) fn new(
        start: Instant,
        life: u64,
        options: Options,
        opened: Opened<D>,
        snapshot_slots: u64,
        log_options: LogOptions,
    ) -> Result<Self, NodeError> {
        let Opened {
            log,
            mut recovered,
            snapshots,
            loaded,
        } = opened;
        let mut machine = Registers::default();
        let mut applied = Slot::NONE;
        if let Some(loaded) = loaded {
            applied = loaded.snapshot.through;
            recovered.snapshot = applied;
            machine = Registers::restore(&loaded.content).map_err(Stopped::from)?;
        }
        let replica = Replica::new(since(start), options, recovered)?;
        let keeper = Keeper::new(snapshots, snapshot_slots);
        let mut host = Self {
            executor: Executor::new(since(start), replica),
            store: Store::new(log),
            log_options,
            durable: Ticket::NONE,
            has_sent: false,
            machine,
            applied,
            keeper,
            full: None,
            has_refused: false,
            life,
            commands: 0,
            waiting: BTreeMap::new(),
            gathering: Gathering::default(),
            emptied: Vec::new(),
            command: Vec::new(),
            is_stopping: false,
            start,
        };
        while let Some(entry) = host.executor.replica().decided_entry(host.applied.next()) {
            let entry = entry.clone();
            host.apply(host.applied.next(), &entry);
        }
        // It may have died before it could trim.
        let trimmable = host.keeper.trimmable();
        host.executor.trim(since(start), trimmable);
        Ok(host)
    }

    /// A message came from another voter. What there is no place for is as good as lost: an acceptance that the log can't hold
    /// yet, and a piece of a snapshot unless the disk `may_have_room` for that.
    pub(crate) fn step(&mut self, from: Voter, message: Message, may_have_room: bool) {
        let has_place = match &message {
            Message::Accept { slot, .. } => self.has_place(*slot),
            Message::Chunk { .. } => may_have_room,
            _ => true,
        };
        if has_place {
            self.executor.step(since(self.start), from, message);
        }
    }

    /// Whether what comes for `slot` can be written, now or soon. What can't is neither taken nor asked for: it would wait in
    /// memory, and more of it for as long as there is no room.
    fn has_place(&self, slot: Slot) -> bool {
        let trimmed = self.executor.replica().trimmed();
        self.full.is_none() && slot.0 <= trimmed.0 + self.log_options.slots_max as u64
    }

    /// Time has passed, if the voter waits for that.
    pub(crate) fn tick(&mut self) {
        let now_ns = since(self.start);
        if self
            .executor
            .deadline_ns()
            .is_some_and(|due_ns| due_ns <= now_ns)
        {
            self.executor.tick(now_ns);
        }
    }

    /// When time is waited for next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let of_voter = self.executor.deadline_ns();
        let of_voter = of_voter.map(|due_ns| self.start + Duration::from_nanos(due_ns));
        [of_voter, self.gathering.due()].into_iter().flatten().min()
    }

    /// A client asks for an operation.
    pub(crate) fn request(&mut self, request: Asked) {
        let bytes = request.operation.len();
        self.gathering.push(request, bytes);
    }

    /// Proposes what has gathered, if that is due.
    fn propose_gathered(&mut self) {
        if !self.is_proposing_due() {
            return;
        }
        let mut gathered = self.gathering.take(std::mem::take(&mut self.emptied));
        for request in gathered.drain(..) {
            let Asked { asker, operation } = request;
            match self.propose(operation) {
                Ok(proposal) => {
                    let waiting = Waiting { proposal, asker };
                    self.waiting.insert(self.commands, waiting);
                }
                Err(not_done) => asker.answer(Outcome::NotDone(not_done)),
            }
        }
        self.emptied = gathered;
    }

    fn is_proposing_due(&self) -> bool {
        self.gathering.is_due(!self.waiting.is_empty())
    }

    fn propose(&mut self, operation: Bytes) -> Result<u64, NotDone> {
        let me = self.executor.replica().me().node;
        if operation.len() > OPERATION_BYTES_MAX {
            let words = format!("an operation has at most {OPERATION_BYTES_MAX} bytes; split it");
            return Err(not_done(None, words, true));
        }
        if self.is_stopping {
            return Err(not_done(None, "the node stops".to_owned(), false));
        }
        let leads = self.executor.replica().leader().map(|leader| leader.node) == Some(me);
        if leads && self.is_log_nearly_full() {
            let words = "the log is nearly full, since no snapshot was made; free room on the disk, or start the nodes with more segments and slots, or fewer slots to a snapshot";
            return Err(not_done(Some(me), words.to_owned(), true));
        }
        let command = Command {
            life: self.life,
            number: self.commands + 1,
            operation,
        };
        self.command.clear();
        command.encode_raw(&mut self.command);
        let proposed = self.executor.propose(since(self.start), &self.command);
        match proposed {
            Ok(proposal) => {
                self.commands += 1;
                Ok(proposal)
            }
            Err(ProposeError::NotLeader { leader }) => Err(not_done(leader, String::new(), false)),
            Err(error @ ProposeError::Overloaded { .. }) => {
                Err(not_done(Some(me), error.to_string(), false))
            }
            Err(error @ ProposeError::TooLarge { .. }) => {
                Err(not_done(None, error.to_string(), true))
            }
        }
    }

    /// Where no snapshot can be made, nothing trims the log. Before it is full no more is taken on, so that what was taken on
    /// finds room.
    fn is_log_nearly_full(&self) -> bool {
        let LogOptions {
            segments_max,
            slots_max,
            ..
        } = self.log_options;
        if self.executor.replica().trimmed() > self.store.log().trimmed() {
            // What is trimmed makes room, once something is written with which that goes on record.
            return false;
        }
        let (segments, slots) = self.in_use();
        segments + (segments_max / LOG_RESERVE).max(1) >= segments_max
            || slots + slots_max / LOG_RESERVE >= slots_max
    }

    /// Whether snapshots are to be taken as often as can be.
    fn is_log_crowded(&self) -> bool {
        let (segments, slots) = self.in_use();
        let options = &self.log_options;
        self.full == Some(Full::Log)
            || segments > options.segments_max / 2
            || slots > options.slots_max / 2
    }

    /// How many segments and slots hold what isn't trimmed.
    fn in_use(&self) -> (usize, usize) {
        let replica = self.executor.replica();
        let slots = replica.decided().0 - replica.trimmed().0;
        (self.store.log().segments(), slots as usize)
    }

    /// In a log that takes nothing more, trims up to the newest snapshot, though there is none before it then, if it has nothing
    /// to add to that: there will be no other that could make room. Whether it did.
    fn make_room(&mut self) -> bool {
        let trimmed = self.executor.replica().trimmed();
        match self.keeper.newest() {
            Some(newest) if newest == self.applied && newest > trimmed => {
                self.executor.trim(since(self.start), newest);
                true
            }
            _ => false,
        }
    }

    /// Carries out all effects there are, and what follows from them.
    ///
    /// # Errors
    /// The log's, after which the node must stop.
    pub(crate) fn carry_out(&mut self, links: &Links) -> Result<(), Stopped> {
        loop {
            self.propose_gathered();
            while let Some(effect) = self.executor.poll() {
                self.perform(effect, links)?;
            }
            let durable = self.store.durable();
            if durable != self.durable {
                self.durable = durable;
                self.executor.persisted(since(self.start), durable);
            } else if !self.is_proposing_due() {
                return Ok(());
            }
        }
    }

    fn perform(&mut self, effect: Effect, links: &Links) -> Result<(), Stopped> {
        match effect {
            Effect::Persist { ticket, record } => {
                self.store.persist(ticket, record)?;
            }
            Effect::Send {
                message: Message::Fetch { from },
                ..
            } if !self.has_place(from) => {}
            Effect::Send { to, message } => {
                links.send(to, &message);
                self.has_sent = true;
            }
            Effect::Decided { slot, entry } => self.apply(slot, &entry),
            Effect::SendChunk { to, asked } => {
                if let Some(message) = self.keeper.chunk(asked)? {
                    links.send(to, &message);
                    self.has_sent = true;
                }
            }
            Effect::Receive {
                snapshot,
                offset,
                bytes,
            } => {
                let received = self.keeper.receive(snapshot, offset, &bytes)?;
                self.has_refused |= received == Received::NoRoom;
                if received != Received::Kept {
                    self.executor.received(since(self.start), snapshot, false);
                }
            }
            Effect::Restore { snapshot } => {
                if let Some(content) = self.keeper.take_loaded(snapshot) {
                    self.machine = Registers::restore(&content)?;
                    self.applied = snapshot.through;
                }
            }
            Effect::SteppedDown { unproposed } => {
                for waiting in std::mem::take(&mut self.waiting).into_values() {
                    let outcome = if waiting.proposal >= unproposed {
                        Outcome::NotDone(not_done(None, String::new(), false))
                    } else {
                        Outcome::Unknown(Unknown {})
                    };
                    waiting.asker.answer(outcome);
                }
            }
        }
        Ok(())
    }

    fn apply(&mut self, slot: Slot, entry: &Entry) {
        self.applied = slot;
        // What is no command was decided all the same, and does nothing, on every node.
        for command in commands(entry).filter_map(|bytes| Command::decode(bytes).ok()) {
            let answer = self.machine.apply(&command.operation);
            if command.life == self.life
                && let Some(waiting) = self.waiting.remove(&command.number)
            {
                let outcome = Outcome::Done(answer.into());
                waiting.asker.answer(outcome);
            }
        }
    }

    /// Whether something left since this was last asked.
    pub(crate) fn take_has_sent(&mut self) -> bool {
        std::mem::take(&mut self.has_sent)
    }

    /// Whether there was no room for a piece of a snapshot since this was last asked.
    pub(crate) fn take_has_refused(&mut self) -> bool {
        std::mem::take(&mut self.has_refused)
    }

    /// Whether something waits for a sync that hasn't begun; where the disk had no room for it, whether that is to be tried again
    /// if the disk `may_have_room`.
    pub(crate) fn wants_sync(&self, may_have_room: bool) -> bool {
        self.store.wants_sync() && (may_have_room || self.full != Some(Full::Disk))
    }

    /// Writes what is to be made durable; gives the sync that does, if none is under way.
    ///
    /// # Errors
    /// The log's, but for want of room, after which the node must stop.
    pub(crate) fn begin_sync(&mut self) -> Result<Wrote<D>, LogError> {
        self.full = None;
        match self.store.begin_sync() {
            Ok(job) => Ok(job.map_or(Wrote::Nothing, Wrote::All)),
            Err(LogError::Full { .. } | LogError::TooFar { .. }) => {
                self.full = Some(Full::Log);
                let made = self.make_room();
                Ok(if made {
                    Wrote::MadeRoom
                } else {
                    Wrote::Nothing
                })
            }
            Err(LogError::DiskFull(_)) => {
                self.full = Some(Full::Disk);
                Ok(Wrote::NoRoom)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes what came of it. [`carry_out`](Self::carry_out) is to follow.
    pub(crate) fn finish_sync(&mut self, done: SyncDone<D::File>) -> Result<(), LogError> {
        self.store.finish_sync(done)
    }

    /// What makes the next segment ready, if that is wanted.
    pub(crate) fn begin_upkeep(&mut self) -> Result<Option<UpkeepJob<D>>, LogError> {
        self.store.begin_upkeep()
    }

    /// Takes what came of it.
    pub(crate) fn finish_upkeep(&mut self, done: UpkeepDone<D>) -> Result<(), LogError> {
        self.store.finish_upkeep(done)
    }

    /// A snapshot to be made durable, if it is time for one, or one has come. [`carry_out`](Self::carry_out) is to follow.
    pub(crate) fn begin_snapshot(&mut self) -> Result<Option<Box<SnapshotJob<D>>>, Stopped> {
        let is_crowded = self.is_log_crowded();
        let save = || self.machine.save();
        Ok(match self.keeper.begin(self.applied, is_crowded, save)? {
            Begun::Job(job) => Some(job),
            Begun::Useless(snapshot) => {
                self.executor.received(since(self.start), snapshot, false);
                None
            }
            Begun::Nothing => {
                if self.is_log_nearly_full() {
                    self.make_room();
                }
                None
            }
        })
    }

    /// Takes what came of it, and carries out what follows; whether there was room for it.
    pub(crate) fn finish_snapshot(
        &mut self,
        done: SnapshotDone<D>,
        links: &Links,
    ) -> Result<bool, Stopped> {
        let now_ns = since(self.start);
        let mut has_room = true;
        match self.keeper.finish(done)? {
            Kept::Trim(slot) => self.executor.trim(now_ns, slot),
            Kept::Received(snapshot, is_durable) => {
                self.executor.received(now_ns, snapshot, is_durable);
            }
            Kept::NoRoom(came) => {
                has_room = false;
                if let Some(snapshot) = came {
                    self.executor.received(now_ns, snapshot, false);
                }
            }
        }
        self.carry_out(links)?;
        // If it wasn't asked for by then it never is.
        self.keeper.forget_loaded();
        Ok(has_room)
    }

    /// Takes nothing more on.
    pub(crate) fn stop_taking(&mut self) {
        self.is_stopping = true;
    }

    /// Whether nobody waits for anything.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.gathering.due().is_none()
    }
}

fn not_done(leader: Option<NodeId>, reason: String, is_final: bool) -> NotDone {
    NotDone {
        leader: leader.map(|node| node.0.into()),
        reason,
        is_final,
    }
}

fn since(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}

#[cfg(test)]
pub(crate) mod tests;
