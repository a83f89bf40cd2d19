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
use crate::leader::Leader;
use crate::learner::Learner;
use crate::message::Message;
use crate::options::{Options, OptionsError, WINDOW_SLOTS_MAX};
use crate::random::Random;
use crate::recovered::Recovered;
use crate::simulation::{Bug, Mark, planted, reach};
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

/// How many records wait for the disk before no more is taken on: as many slots as a leader may have under way, twice.
pub(crate) const UNSYNCED_MAX: usize = 2 * WINDOW_SLOTS_MAX as usize;

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
    last_ticket: Ticket,
    /// The last that something waits for: what leaves rests on no later one, which may never be synced.
    pub(crate) last_urgent: Ticket,
    pub(crate) durable: Ticket,
    /// What something waits for and isn't durable yet, ascending: promises, and acceptances with their slots.
    unsynced: VecDeque<(Ticket, Option<Slot>)>,
    /// What is decided, to be put on record once all of it is durable.
    hint: Option<(Ticket, Slot)>,
    /// Up to where that was done.
    recorded: Slot,
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
            last_ticket: Ticket::NONE,
            last_urgent: Ticket::NONE,
            durable: Ticket::NONE,
            unsynced: VecDeque::new(),
            hint: None,
            recorded: recovered.decided,
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

    /// A message came. `from` is who sent it, as the transport proves.
    pub(crate) fn step(&mut self, now_ns: u64, from: Voter, message: Message) {
        let Some(index) = self.index_of(from) else {
            reach(Mark::Stranger);
            return;
        };
        // What only a ballot's own voter may say, nobody else is believed.
        let is_own = |ballot: &Ballot| ballot.voter == from;
        match message {
            Message::Canvass { ballot } if is_own(&ballot) => self.on_canvass(now_ns, from, ballot),
            Message::Aye { ballot } => self.on_aye(now_ns, index, ballot),
            Message::Prepare {
                ballot,
                from: first,
            } if is_own(&ballot) => self.on_prepare(now_ns, from, ballot, first),
            Message::Promise {
                ballot,
                from: first,
                answers,
                next,
                decided,
            } => {
                let page = Page {
                    from: first,
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
            } if is_own(&ballot) => self.on_accept(now_ns, from, ballot, slot, &entry, decided),
            Message::Accepted { ballot, slot } => self.on_accepted(now_ns, index, ballot, slot),
            Message::Refused { ballot, promised } => self.on_refused(now_ns, ballot, promised),
            Message::Commit { ballot, decided } if is_own(&ballot) => {
                self.on_commit(now_ns, from, ballot, decided);
            }
            Message::Beat { ballot, decided } if is_own(&ballot) => {
                if self.on_commit(now_ns, from, ballot, decided) {
                    self.send(Ticket::NONE, from, Message::Heard { ballot });
                } else {
                    self.refuse(from, ballot);
                }
            }
            Message::Heard { ballot } => self.on_heard(now_ns, index, ballot),
            Message::Fetch { from: first } => self.on_fetch(from, first),
            Message::Entries {
                from: first,
                entries,
            } => self.on_entries(now_ns, from, first, entries),
            Message::FetchChunk { snapshot, offset } => {
                self.output(
                    Ticket::NONE,
                    Effect::SendChunk {
                        to: from,
                        asked: Some((snapshot, offset)),
                    },
                );
            }
            Message::Chunk {
                snapshot,
                offset,
                bytes,
            } => self.on_chunk(now_ns, from, snapshot, offset, bytes),
            Message::Canvass { .. }
            | Message::Prepare { .. }
            | Message::Accept { .. }
            | Message::Commit { .. }
            | Message::Beat { .. } => {}
        }
    }

    /// Everything up to `ticket` is durable.
    pub(crate) fn persisted(&mut self, now_ns: u64, ticket: Ticket) {
        if ticket > self.durable {
            self.durable = ticket;
            while let Some((first, _)) = self.unsynced.front()
                && *first <= ticket
            {
                self.unsynced.pop_front();
            }
            if let Role::Leader(leader) = &mut self.role {
                leader.writes_since_ns = (!self.unsynced.is_empty()).then_some(now_ns);
            }
        }
        if let Some((after, decided)) = self.hint
            && after <= self.durable
        {
            self.hint = None;
            self.recorded = decided;
            self.persist(now_ns, Record::Decided(decided));
            self.note_decided();
        }
    }

    /// Puts on record what is decided, once that is durable and nothing else is on its way there.
    pub(crate) fn note_decided(&mut self) {
        if self.hint.is_none() && self.recorded < self.decided() {
            self.hint = Some((self.last_ticket, self.decided()));
        }
    }

    /// That everything up to `slot` is decided is on record by other means.
    pub(crate) fn take_back_hint(&mut self, slot: Slot) {
        self.hint = None;
        self.recorded = self.recorded.max(slot);
    }

    /// Whether its disk has so much to do that nothing more is taken on that would wait for it. What is sent here meanwhile is
    /// as good as lost: it is sent again.
    pub(crate) fn is_disk_behind(&self) -> bool {
        self.unsynced.len() >= UNSYNCED_MAX
    }

    /// Whether an acceptance of `slot` still waits for the disk. Then so does the answer.
    pub(crate) fn is_acceptance_unsynced(&self, slot: Slot) -> bool {
        self.unsynced.iter().any(|(_, of)| *of == Some(slot))
    }

    /// Whether a promise still waits for the disk. Then so does the answer.
    pub(crate) fn is_promise_unsynced(&self) -> bool {
        self.unsynced.iter().any(|(_, of)| of.is_none())
    }

    pub(crate) fn index_of(&self, voter: Voter) -> Option<usize> {
        self.options.configuration.index_of(voter)
    }

    /// Between `least_ns` and twice that.
    pub(crate) fn vary(&mut self, least_ns: u64) -> u64 {
        least_ns + self.random.below(least_ns)
    }

    pub(crate) fn persist(&mut self, now_ns: u64, record: Record) {
        self.last_ticket.0 += 1;
        let ticket = self.last_ticket;
        if record.is_urgent() {
            self.last_urgent = ticket;
            let slot = match &record {
                Record::Accepted { slot, .. } => Some(*slot),
                _ => None,
            };
            self.unsynced.push_back((ticket, slot));
            if let Role::Leader(leader) = &mut self.role {
                leader.writes_since_ns.get_or_insert(now_ns);
            }
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
