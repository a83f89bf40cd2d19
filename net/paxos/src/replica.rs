//! A voter: acceptor, learner and now and then leader, driven by messages and by time that come in as arguments.
//!
//! ```text
//!              no leader heard of                 a quorum                    a quorum of promises,
//!              for an election timeout            says aye                    all pages, nothing missed
//!   Follower ────────────────────────► Canvasser ─────────► Candidate ──────────────────────────────► Leader
//!      ▲                                   │                    │                                        │
//!      └───────────────────────────────────┴────────────────────┴────────────────────────────────────────┘
//!            a higher ballot; nothing for an election timeout; no quorum heard; its disk stands still
//! ```
//!
//! This file has what is common: state, inputs, outputs. What is done is in `election`, `replication`, `catch_up` and
//! `transfer`; what is named `on_` is done when a message of that name comes.

use std::collections::VecDeque;

use thiserror::Error;

use crate::acceptor::Acceptor;
use crate::ballot::Ballot;
use crate::candidate::{Candidate, Page};
use crate::catch_up::Fetching;
use crate::configuration::VoterSet;
use crate::effect::{Effect, Record, Ticket};
use crate::entry::{Entry, Slot};
use crate::hint::Hint;
use crate::leader::Leader;
use crate::learner::Learner;
use crate::message::Message;
use crate::options::{Options, OptionsError};
use crate::random::Random;
use crate::recovered::Recovered;
use crate::simulation::{Bug, Mark, planted, reach};
use crate::tickets::Tickets;
use crate::transfer::Incoming;
use crate::voter::{NodeId, Voter};

/// Why nothing was proposed. Nothing will be, either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ProposeError {
    /// Another leads, or nobody that is known.
    #[error("this node doesn't lead; ask {}", .leader.map_or("the others".to_owned(), |node| format!("node {}", node.0)))]
    NotLeader {
        /// Who does, as far as is known.
        leader: Option<NodeId>,
    },
    /// Too much waits already.
    #[error(
        "{waiting} bytes of commands wait, of at most {max}; propose again when some of them are decided"
    )]
    Overloaded {
        /// How many bytes wait.
        waiting: usize,
        /// How many may.
        max: usize,
    },
    /// The command is too large ever to be taken.
    #[error("command: {bytes} bytes, of at most {max}; split it")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The most that it may have.
        max: usize,
    },
}

/// What a voter is doing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// It follows a leader, or waits for one.
    Follower,
    /// It asks whether to become a candidate, in this ballot.
    Canvasser { ballot: Ballot, ayes: VoterSet },
    /// It is in phase one.
    Candidate(Candidate),
    /// It is in phase two.
    Leader(Leader),
}

/// The same, to be seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleName {
    /// It follows a leader, or waits for one.
    Follower,
    /// It asks whether to become a candidate.
    Canvasser,
    /// It is in phase one.
    Candidate,
    /// It leads, and makes sure that what was decided before it is decided.
    Recovering,
    /// It leads, and knows everything that was decided before it.
    Leader,
}

/// An effect, and what must be durable before it happens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Output {
    pub(crate) after: Ticket,
    pub(crate) effect: Effect,
}

/// A voter's state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Replica {
    pub(crate) options: Options,
    random: Random,
    pub(crate) acceptor: Acceptor,
    pub(crate) learner: Learner,
    pub(crate) role: Role,
    /// The ballot of the leader that it follows.
    pub(crate) leader: Option<Ballot>,
    /// When it last heard of a leader, or of who may become one, or started.
    pub(crate) heard_ns: u64,
    /// When it looks for another leader, or gives up its candidacy for another.
    pub(crate) election_due_ns: u64,
    /// When it asks again whoever did not answer.
    pub(crate) resend_due_ns: u64,
    pub(crate) fetching: Option<Fetching>,
    /// The snapshot that comes.
    pub(crate) incoming: Option<Incoming>,
    /// Up to where others know what is decided.
    pub(crate) known: Slot,
    /// The highest ballot heard of.
    pub(crate) highest: Ballot,
    /// How many commands it was ever given.
    pub(crate) proposals: u64,
    pub(crate) tickets: Tickets,
    pub(crate) hint: Hint,
    pub(crate) outputs: VecDeque<Output>,
}

impl Replica {
    /// A voter that remembers what its disk gave back, at `now_ns`. An option that is out of its bounds is an error.
    pub fn new(now_ns: u64, options: Options, recovered: Recovered) -> Result<Self, OptionsError> {
        options.check()?;
        Ok(Self::started(now_ns, options, recovered))
    }

    /// One that waits for nothing: for models, in which whatever could be due is.
    #[cfg(feature = "simulation")]
    pub fn untimed(options: Options, recovered: Recovered) -> Self {
        let (election_ns, beat_ns) = (0, 0);
        let options = Options {
            election_ns,
            beat_ns,
            ..options
        };
        Self::started(0, options, recovered)
    }

    fn started(now_ns: u64, options: Options, recovered: Recovered) -> Self {
        let acceptor = Acceptor::recovered(recovered.promised, recovered.answers);
        let mut replica = Self {
            random: Random::new(options.seed),
            highest: acceptor.promised(),
            acceptor,
            learner: Learner::new(recovered.trimmed, recovered.decided, recovered.learned),
            role: Role::Follower,
            leader: None,
            heard_ns: now_ns,
            election_due_ns: 0,
            resend_due_ns: 0,
            fetching: None,
            incoming: None,
            known: recovered.decided,
            proposals: 0,
            tickets: Tickets::default(),
            hint: Hint::recorded(recovered.decided),
            outputs: VecDeque::new(),
            options,
        };
        if recovered.snapshot > recovered.decided {
            reach(Mark::StartedAheadOfTheLog);
            if !planted(Bug::SnapshotAheadOfTheLogForgotten) {
                replica.skip_to(now_ns, recovered.snapshot);
            }
        }
        replica.wait_for_leader(now_ns);
        replica
    }

    /// Who it is.
    pub fn me(&self) -> Voter {
        self.options.me
    }

    /// What it has promised and accepted, durable or on its way there.
    pub fn acceptor(&self) -> &Acceptor {
        &self.acceptor
    }

    /// Everything up to this slot is decided.
    pub fn decided(&self) -> Slot {
        self.learner.decided()
    }

    /// Up to this slot, only a snapshot holds what is decided.
    pub fn trimmed(&self) -> Slot {
        self.learner.trimmed()
    }

    /// What a decided slot after the trimmed holds.
    pub fn decided_entry(&self, slot: Slot) -> Option<&Entry> {
        self.learner.entry(&self.acceptor, slot)
    }

    /// Who leads, as far as it knows.
    pub fn leader(&self) -> Option<Voter> {
        self.leader.map(|ballot| ballot.voter)
    }

    /// What it is doing.
    pub fn role(&self) -> RoleName {
        match &self.role {
            Role::Follower => RoleName::Follower,
            Role::Canvasser { .. } => RoleName::Canvasser,
            Role::Candidate(_) => RoleName::Candidate,
            Role::Leader(leader) if self.decided() < leader.first_own => RoleName::Recovering,
            Role::Leader(_) => RoleName::Leader,
        }
    }

    /// When [`tick`](Self::tick) is due.
    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        self.index_of(self.options.me)?;
        Some(match &self.role {
            Role::Follower => self.election_due_ns,
            Role::Canvasser { .. } | Role::Candidate(_) => {
                self.election_due_ns.min(self.resend_due_ns)
            }
            Role::Leader(leader) => leader.beat_due_ns,
        })
    }

    pub(crate) fn propose(&mut self, command: &[u8]) -> Result<u64, ProposeError> {
        let leader = self.leader().map(|voter| voter.node);
        let Role::Leader(leading) = &mut self.role else {
            return Err(ProposeError::NotLeader { leader });
        };
        let max = self.options.pending_bytes_max;
        let (bytes, waiting) = (command.len(), leading.pending.bytes());
        if bytes > max {
            return Err(ProposeError::TooLarge { bytes, max });
        }
        if bytes + waiting > max {
            reach(Mark::Overloaded);
            if planted(Bug::RefusedAndProposed) {
                leading.pending.push(command);
            }
            return Err(ProposeError::Overloaded { waiting, max });
        }
        Ok(leading.pending.push(command))
    }

    /// Time has come to `now_ns`.
    pub(crate) fn tick(&mut self, now_ns: u64) {
        if self.index_of(self.options.me).is_none() {
            return;
        }
        match &self.role {
            Role::Leader(leader) => {
                if leader.beat_due_ns <= now_ns {
                    self.beat(now_ns);
                }
            }
            Role::Follower => {
                if self.election_due_ns <= now_ns {
                    self.canvass(now_ns);
                }
            }
            Role::Canvasser { .. } | Role::Candidate(_) => {
                if self.election_due_ns <= now_ns {
                    reach(Mark::CandidacyExpired);
                    self.canvass(now_ns);
                } else if self.resend_due_ns <= now_ns {
                    self.ask_again(now_ns);
                }
            }
        }
    }

    /// A message came. `sender` is who sent it, as the transport proves.
    pub(crate) fn step(&mut self, now_ns: u64, sender: Voter, message: Message) {
        let Some(index) = self.index_of(sender) else {
            reach(Mark::Stranger);
            return;
        };
        if message
            .speaks_for()
            .is_some_and(|ballot| ballot.voter != sender)
        {
            return;
        }
        match message {
            Message::Canvass { ballot } => self.on_canvass(now_ns, sender, ballot),
            Message::Aye { ballot } => self.on_aye(now_ns, index, ballot),
            Message::Prepare { ballot, from } => self.on_prepare(now_ns, sender, ballot, from),
            Message::Promise {
                ballot,
                from,
                answers,
                next,
                decided,
            } => {
                let page = Page {
                    from,
                    answers,
                    next,
                    decided,
                };
                self.on_promise(now_ns, index, ballot, page);
            }
            Message::Accept {
                ballot,
                slot,
                entry,
                decided,
            } => self.on_accept(now_ns, sender, ballot, slot, &entry, decided),
            Message::Accepted { ballot, slot } => self.on_accepted(now_ns, index, ballot, slot),
            Message::Refused { ballot, promised } => self.on_refused(now_ns, ballot, promised),
            Message::Commit { ballot, decided } => {
                self.on_commit(now_ns, sender, ballot, decided);
            }
            Message::Beat { ballot, decided } => self.on_beat(now_ns, sender, ballot, decided),
            Message::Heard { ballot } => self.on_heard(now_ns, index, ballot),
            Message::Fetch { from } => self.on_fetch(sender, from),
            Message::Entries { from, entries } => self.on_entries(now_ns, sender, from, entries),
            Message::FetchChunk { snapshot, offset } => {
                self.send_chunk(sender, Some((snapshot, offset)));
            }
            Message::Chunk {
                snapshot,
                offset,
                bytes,
            } => self.on_chunk(now_ns, sender, snapshot, offset, bytes),
        }
    }

    /// Everything up to `ticket` is durable.
    pub(crate) fn persisted(&mut self, now_ns: u64, ticket: Ticket) {
        if self.tickets.persisted(ticket)
            && let Role::Leader(leader) = &mut self.role
        {
            leader.writes_since_ns = (!self.tickets.are_settled()).then_some(now_ns);
        }
        if let Some(decided) = self.hint.take_due(self.tickets.durable()) {
            self.persist(now_ns, Record::Decided(decided));
            self.note_decided();
        }
    }

    /// Puts on record what is decided, once that is durable and nothing else is on its way there.
    pub(crate) fn note_decided(&mut self) {
        self.hint.plan(self.decided(), self.tickets.last());
    }

    pub(crate) fn index_of(&self, voter: Voter) -> Option<usize> {
        self.options.configuration.index_of(voter)
    }

    /// Between `least_ns` and twice that.
    pub(crate) fn vary(&mut self, least_ns: u64) -> u64 {
        least_ns + self.random.below(least_ns)
    }

    pub(crate) fn persist(&mut self, now_ns: u64, record: Record) {
        let ticket = self.tickets.issue(&record);
        if record.is_urgent()
            && let Role::Leader(leader) = &mut self.role
        {
            leader.writes_since_ns.get_or_insert(now_ns);
        }
        self.output(Ticket::NONE, Effect::Persist { ticket, record });
    }

    pub(crate) fn broadcast(&mut self, after: Ticket, message: &Message) {
        for index in 0..self.options.configuration.voters().len() {
            let to = self.options.configuration.voters()[index];
            if to != self.options.me {
                self.send(after, to, message.clone());
            }
        }
    }

    pub(crate) fn refuse(&mut self, to: Voter, ballot: Ballot) {
        let promised = self.acceptor.promised();
        self.send(Ticket::NONE, to, Message::Refused { ballot, promised });
    }

    pub(crate) fn send(&mut self, after: Ticket, to: Voter, message: Message) {
        self.output(after, Effect::Send { to, message });
    }

    pub(crate) fn output(&mut self, after: Ticket, effect: Effect) {
        self.outputs.push_back(Output { after, effect });
    }
}

#[cfg(test)]
mod tests;
