//! The host of a voter: it feeds it, and carries out its effects in order, on the log, the links and the machine. It has no
//! thread and never waits, but for promises, which are synced where they are made.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message as _;
use sprag_log::{LogError, LogOptions, RealDisk, RealFile, Store, SyncDone, SyncJob};
use sprag_log::{Upkeep, UpkeepDone};
use sprag_paxos::{
    Effect, Entry, Executor, Message, NodeId, ProposeError, Replica, Slot, Ticket, Voter, commands,
};

use crate::gathering::Gathering;
use crate::links::Links;
use crate::machine::{OPERATION_BYTES_MAX, Registers};
use crate::session::Session;
use crate::wire::{Command, NotDone, Outcome, Unknown};

/// Which part of the log is kept for what is under way when it is nearly full: an eighth.
const LOG_RESERVE: usize = 8;

/// A client's request.
pub(crate) struct Asked {
    pub(crate) session: Arc<Session>,
    pub(crate) id: u64,
    pub(crate) operation: Bytes,
}

/// Somebody waits for a command.
struct Waiting {
    /// The number of the command as a proposal.
    proposal: u64,
    session: Arc<Session>,
    id: u64,
}

/// A voter, its log, and what it decides over.
pub(crate) struct Host {
    executor: Executor,
    store: Store<RealDisk>,
    log_options: LogOptions,
    /// Up to where the voter was told that its records are durable.
    durable: Ticket,
    /// Something that waits for the disk was written since the last sync began.
    wants_sync: bool,
    /// Something left since that was last asked.
    has_sent: bool,
    machine: Registers,
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

impl Host {
    /// Around a voter and its log. What the voter knows to be decided is applied.
    pub(crate) fn new(
        start: Instant,
        life: u64,
        replica: Replica,
        store: Store<RealDisk>,
        log_options: LogOptions,
    ) -> Self {
        let mut machine = Registers::default();
        for slot in 1..=replica.decided().0 {
            if let Some(entry) = replica.decided_entry(Slot(slot)) {
                for command in commands(entry).filter_map(|bytes| Command::decode(bytes).ok()) {
                    machine.apply(&command.operation);
                }
            }
        }
        Self {
            executor: Executor::new(since(start), replica),
            store,
            log_options,
            durable: Ticket::NONE,
            wants_sync: false,
            has_sent: false,
            machine,
            life,
            commands: 0,
            waiting: BTreeMap::new(),
            gathering: Gathering::default(),
            emptied: Vec::new(),
            command: Vec::new(),
            is_stopping: false,
            start,
        }
    }

    /// A message came from another voter.
    pub(crate) fn step(&mut self, from: Voter, message: Message) {
        self.executor.step(since(self.start), from, message);
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
            let Asked {
                session,
                id,
                operation,
            } = request;
            match self.propose(operation) {
                Ok(proposal) => {
                    let waiting = Waiting {
                        proposal,
                        session,
                        id,
                    };
                    self.waiting.insert(self.commands, waiting);
                }
                Err(not_done) => session.answer(id, Outcome::NotDone(not_done)),
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
        if self.is_log_nearly_full() {
            let words = "the log is nearly full; start the nodes with more segments and slots";
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

    /// Nothing trims the log yet. So before it is full no more is taken on, and what was taken on finds room.
    fn is_log_nearly_full(&self) -> bool {
        let LogOptions {
            segments_max,
            slots_max,
            ..
        } = self.log_options;
        let log = self.store.log();
        let slots = self.executor.replica().decided().0 - log.trimmed().0;
        log.segments() + (segments_max / LOG_RESERVE).max(1) >= segments_max
            || slots + (slots_max / LOG_RESERVE) as u64 >= slots_max as u64
    }

    /// Carries out all effects there are, and what follows from them.
    ///
    /// # Errors
    /// The log's, after which the node must stop.
    pub(crate) fn carry_out(&mut self, links: &Links) -> Result<(), LogError> {
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

    fn perform(&mut self, effect: Effect, links: &Links) -> Result<(), LogError> {
        match effect {
            Effect::Persist { ticket, record } => {
                self.wants_sync |= record.is_urgent();
                self.store.persist(ticket, record)?;
            }
            Effect::Send { to, message } => {
                links.send(to, &message);
                self.has_sent = true;
            }
            Effect::Decided { entry, .. } => self.apply(&entry),
            Effect::SteppedDown { unproposed } => {
                for waiting in std::mem::take(&mut self.waiting).into_values() {
                    let outcome = if waiting.proposal >= unproposed {
                        Outcome::NotDone(not_done(None, String::new(), false))
                    } else {
                        Outcome::Unknown(Unknown {})
                    };
                    waiting.session.answer(waiting.id, outcome);
                }
            }
        }
        Ok(())
    }

    fn apply(&mut self, entry: &Entry) {
        // What is no command was decided all the same, and does nothing, on every node.
        for command in commands(entry).filter_map(|bytes| Command::decode(bytes).ok()) {
            let answer = self.machine.apply(&command.operation);
            if command.life == self.life
                && let Some(waiting) = self.waiting.remove(&command.number)
            {
                let outcome = Outcome::Done(answer.into());
                waiting.session.answer(waiting.id, outcome);
            }
        }
    }

    /// Whether something left since this was last asked.
    pub(crate) fn take_has_sent(&mut self) -> bool {
        std::mem::take(&mut self.has_sent)
    }

    /// Whether something waits for a sync that hasn't begun.
    pub(crate) fn wants_sync(&self) -> bool {
        self.wants_sync
    }

    /// Writes what is to be made durable; gives the sync that does, if none is under way.
    pub(crate) fn begin_sync(&mut self) -> Result<Option<SyncJob<RealFile>>, LogError> {
        let job = self.store.begin_sync()?;
        self.wants_sync &= job.is_none();
        Ok(job)
    }

    /// Takes what came of it. [`carry_out`](Self::carry_out) is to follow.
    pub(crate) fn finish_sync(&mut self, done: SyncDone<RealFile>) -> Result<(), LogError> {
        self.store.finish_sync(done)
    }

    /// What makes the next segment ready, if that is wanted.
    pub(crate) fn begin_upkeep(&mut self) -> Result<Option<Upkeep<RealDisk>>, LogError> {
        self.store.begin_upkeep()
    }

    /// Takes what came of it.
    pub(crate) fn finish_upkeep(&mut self, done: UpkeepDone<RealDisk>) -> Result<(), LogError> {
        self.store.finish_upkeep(done)
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
