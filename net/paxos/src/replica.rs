//! A voter: acceptor, proposer and learner in one, driven by messages and by time that come in as arguments.

use std::collections::{BTreeMap, VecDeque};

use thiserror::Error;

use crate::acceptor::{Acceptor, TooLate};
use crate::ballot::Ballot;
use crate::configuration::Configuration;
use crate::effect::{Effect, Record, Ticket};
use crate::entry::{Answer, Entry, Slot};
use crate::message::Message;
use crate::proposer::Proposer;
use crate::random::Random;
use crate::simulation::{Bug, Mark, planted, reach};
use crate::voter::Voter;

/// How a voter is set up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Who it is.
    pub me: Voter,
    /// Who votes.
    pub configuration: Configuration,
    /// How long an attempt may take before another is begun, in nanoseconds; waits grow from there, and vary.
    pub attempt_ns: u64,
    /// Where its variations come from: another number for each start of each voter.
    pub seed: u64,
}

/// What a voter's disk gave back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The last promise on record.
    pub promised: Ballot,
    /// What is known of each slot.
    pub answers: BTreeMap<Slot, Answer>,
}

impl Default for Recovered {
    /// A new disk's: nothing.
    fn default() -> Self {
        Self {
            promised: Ballot::NONE,
            answers: BTreeMap::new(),
        }
    }
}

/// Why nothing was proposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ProposeError {
    /// The voter works on another slot.
    #[error("slot {0} is being proposed for already; propose again once it is decided")]
    Busy(Slot),
    /// The configuration doesn't name the voter.
    #[error("voter {0} has no vote in this configuration; propose through one that has")]
    NoVote(Voter),
}

/// An effect, and what must be durable before it happens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Output {
    pub(crate) after: Ticket,
    pub(crate) effect: Effect,
}

/// A slot that this voter wants decided.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Attempt {
    slot: Slot,
    wanted: Entry,
    /// `None` once given up: another one is due.
    proposer: Option<Proposer>,
    failures: u32,
    deadline_ns: u64,
}

/// A voter's state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Replica {
    options: Options,
    random: Random,
    acceptor: Acceptor,
    decided: BTreeMap<Slot, Entry>,
    attempt: Option<Attempt>,
    /// The highest ballot heard of.
    highest: Ballot,
    last_ticket: Ticket,
    pub(crate) outputs: VecDeque<Output>,
}

impl Replica {
    /// A voter that remembers what its disk gave back.
    pub fn new(options: Options, recovered: Recovered) -> Self {
        let acceptor = Acceptor::recovered(recovered.promised, recovered.answers);
        Self {
            random: Random::new(options.seed),
            highest: acceptor.promised(),
            acceptor,
            options,
            decided: BTreeMap::new(),
            attempt: None,
            last_ticket: Ticket::NONE,
            outputs: VecDeque::new(),
        }
    }

    /// Who it is.
    pub fn me(&self) -> Voter {
        self.options.me
    }

    /// What it has promised and accepted, durable or on its way there.
    pub fn acceptor(&self) -> &Acceptor {
        &self.acceptor
    }

    /// What it knows to be decided.
    pub fn decided(&self) -> &BTreeMap<Slot, Entry> {
        &self.decided
    }

    /// The slot it works on, and its attempt at it, if one is under way.
    pub fn attempt(&self) -> Option<(Slot, Option<&Proposer>)> {
        let attempt = self.attempt.as_ref()?;
        Some((attempt.slot, attempt.proposer.as_ref()))
    }

    /// When [`tick`](Self::tick) is due.
    pub fn deadline_ns(&self) -> Option<u64> {
        Some(self.attempt.as_ref()?.deadline_ns)
    }

    /// Wants `slot` decided, with `entry` if nothing else is. What it is decided to hold is told as an effect, in any case
    /// and more than once.
    pub fn propose(&mut self, now_ns: u64, slot: Slot, entry: Entry) -> Result<(), ProposeError> {
        if self.index_of(self.options.me).is_none() {
            return Err(ProposeError::NoVote(self.options.me));
        }
        if let Some(decided) = self.decided.get(&slot) {
            let entry = decided.clone();
            self.output(Ticket::NONE, Effect::Decided { slot, entry });
            return Ok(());
        }
        match &self.attempt {
            Some(attempt) if attempt.slot == slot => return Ok(()),
            Some(attempt) => return Err(ProposeError::Busy(attempt.slot)),
            None => {}
        }
        self.attempt = Some(Attempt {
            slot,
            wanted: entry,
            proposer: None,
            failures: 0,
            deadline_ns: now_ns,
        });
        self.begin(now_ns);
        Ok(())
    }

    /// Time has come to `now_ns`.
    pub fn tick(&mut self, now_ns: u64) {
        if let Some(attempt) = &self.attempt
            && attempt.deadline_ns <= now_ns
        {
            if attempt.proposer.is_some() {
                reach(Mark::AttemptExpired);
            }
            self.begin(now_ns);
        }
    }

    /// A message came. `from` is who sent it, as the transport proves.
    pub fn step(&mut self, now_ns: u64, from: Voter, message: Message) {
        let Some(index) = self.index_of(from) else {
            reach(Mark::Stranger);
            return;
        };
        match message {
            Message::Prepare { ballot, slot } => self.prepare(from, ballot, slot),
            Message::Accept {
                ballot,
                slot,
                entry,
            } => self.accept(from, ballot, slot, &entry),
            Message::Promise {
                ballot,
                slot,
                answer,
            } => self.promised(index, ballot, slot, answer),
            Message::Accepted { ballot, slot } => self.accepted(index, ballot, slot),
            Message::Refused {
                ballot,
                slot,
                promised,
            } => self.refused(now_ns, ballot, slot, promised),
            Message::Commit { ballot, slot } => self.commit(from, ballot, slot),
            Message::Fetch { slot } => {
                self.tell_decided(from, slot);
            }
            Message::Decided { slot, entry } => {
                reach(Mark::Fetched);
                self.decide(slot, entry);
            }
        }
    }

    /// Begins an attempt in a ballot of its own, above all it has heard of.
    fn begin(&mut self, now_ns: u64) {
        let me = self.options.me;
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        // After the last round there is no other: whoever wrote that number has ended the cluster.
        let Some(ballot) = self.highest.max(self.acceptor.promised()).next_of(me) else {
            return;
        };
        let wait_ns = self.options.attempt_ns << attempt.failures.min(4);
        attempt.deadline_ns = now_ns + wait_ns + self.random.below(wait_ns);
        attempt.failures += 1;
        attempt.proposer = Some(Proposer::new(ballot, &self.options.configuration));
        let slot = attempt.slot;
        self.highest = ballot;
        // Its own promise, and so the ballot, is durable before anyone hears of it: or the same ballot, begun anew after a
        // crash, could propose something else.
        if self.acceptor.promise(ballot).is_ok() {
            self.persist(Record::Promised(ballot));
        }
        let after = if planted(Bug::BallotReusedAfterRestart) {
            Ticket::NONE
        } else {
            self.last_ticket
        };
        self.broadcast(after, &Message::Prepare { ballot, slot });
        let answer = self.acceptor.answer(slot);
        let promise = Message::Promise {
            ballot,
            slot,
            answer,
        };
        self.send(after, me, promise);
    }

    fn prepare(&mut self, from: Voter, ballot: Ballot, slot: Slot) {
        self.highest = self.highest.max(ballot);
        if self.tell_decided(from, slot) {
            reach(Mark::PrepareOfDecided);
            return;
        }
        match self.acceptor.promise(ballot) {
            Err(TooLate(promised)) => {
                reach(Mark::PrepareRefused);
                self.refuse(from, ballot, slot, promised);
            }
            Ok(is_new) => {
                if is_new {
                    self.persist(Record::Promised(ballot));
                } else {
                    reach(Mark::PrepareTwice);
                }
                let answer = self.acceptor.answer(slot);
                let promise = Message::Promise {
                    ballot,
                    slot,
                    answer,
                };
                // What it answers rests on the promise and on every vote that it tells.
                let after = if planted(Bug::PromiseBeforeDurable) {
                    Ticket::NONE
                } else {
                    self.last_ticket
                };
                self.send(after, from, promise);
            }
        }
    }

    fn accept(&mut self, from: Voter, ballot: Ballot, slot: Slot, entry: &Entry) {
        self.highest = self.highest.max(ballot);
        if self.tell_decided(from, slot) {
            return;
        }
        if ballot > self.acceptor.promised() {
            reach(Mark::AcceptAboveThePromise);
        }
        match self.acceptor.accept(ballot, slot, entry) {
            Err(TooLate(promised)) => {
                reach(Mark::AcceptRefused);
                self.refuse(from, ballot, slot, promised);
            }
            Ok(is_new) => {
                if is_new {
                    let vote = crate::Vote {
                        ballot,
                        entry: entry.clone(),
                    };
                    self.persist(Record::Accepted { slot, vote });
                } else {
                    reach(Mark::AcceptTwice);
                }
                let is_early = if from == self.options.me {
                    planted(Bug::OwnVoteBeforeDurable)
                } else {
                    planted(Bug::AcceptedBeforeDurable)
                };
                let after = if is_early {
                    Ticket::NONE
                } else {
                    self.last_ticket
                };
                self.send(after, from, Message::Accepted { ballot, slot });
            }
        }
    }

    fn promised(&mut self, index: usize, ballot: Ballot, slot: Slot, answer: Answer) {
        let Some(attempt) = self.attempt.as_mut().filter(|attempt| attempt.slot == slot) else {
            return;
        };
        let Some(proposer) = &mut attempt.proposer else {
            return;
        };
        let configuration = &self.options.configuration;
        let Some(entry) = proposer.promised(configuration, index, ballot, answer, &attempt.wanted)
        else {
            return;
        };
        let ballot = proposer.ballot();
        let accept = Message::Accept {
            ballot,
            slot,
            entry,
        };
        self.broadcast(Ticket::NONE, &accept);
        // Its own acceptance goes the way of all others: through the disk.
        self.send(Ticket::NONE, self.options.me, accept);
    }

    fn accepted(&mut self, index: usize, ballot: Ballot, slot: Slot) {
        let Some(attempt) = self.attempt.as_mut().filter(|attempt| attempt.slot == slot) else {
            return;
        };
        let Some(proposer) = &mut attempt.proposer else {
            return;
        };
        if let Some(entry) = proposer.accepted(&self.options.configuration, index, ballot) {
            let ballot = proposer.ballot();
            self.broadcast(Ticket::NONE, &Message::Commit { ballot, slot });
            self.decide(slot, entry);
        }
    }

    fn refused(&mut self, now_ns: u64, ballot: Ballot, slot: Slot, promised: Ballot) {
        self.highest = self.highest.max(promised);
        let Some(attempt) = self.attempt.as_mut().filter(|attempt| attempt.slot == slot) else {
            return;
        };
        if attempt
            .proposer
            .as_ref()
            .is_some_and(|proposer| proposer.ballot() == ballot)
        {
            attempt.proposer = None;
            // Two that go on at once refuse each other for ever.
            let wait_ns = self.options.attempt_ns << attempt.failures.min(4);
            attempt.deadline_ns = now_ns + self.random.below(wait_ns);
        }
    }

    fn commit(&mut self, from: Voter, ballot: Ballot, slot: Slot) {
        if self.decided.contains_key(&slot) {
            return;
        }
        match self.acceptor.vote(slot) {
            Some(vote) if vote.ballot == ballot || planted(Bug::CommitBlessesAStaleVote) => {
                reach(Mark::CommitOfOwnVote);
                let entry = vote.entry.clone();
                self.decide(slot, entry);
                return;
            }
            Some(_) => reach(Mark::CommitOfAnotherVote),
            None => reach(Mark::CommitWithoutVote),
        }
        self.send(Ticket::NONE, from, Message::Fetch { slot });
    }

    fn decide(&mut self, slot: Slot, entry: Entry) {
        if self.decided.contains_key(&slot) {
            return;
        }
        self.decided.insert(slot, entry.clone());
        self.attempt.take_if(|attempt| attempt.slot == slot);
        self.output(Ticket::NONE, Effect::Decided { slot, entry });
    }

    /// Answers with what is decided, if anything is; whether it did.
    fn tell_decided(&mut self, to: Voter, slot: Slot) -> bool {
        let Some(entry) = self.decided.get(&slot).cloned() else {
            return false;
        };
        self.send(Ticket::NONE, to, Message::Decided { slot, entry });
        true
    }

    fn refuse(&mut self, to: Voter, ballot: Ballot, slot: Slot, promised: Ballot) {
        let refused = Message::Refused {
            ballot,
            slot,
            promised,
        };
        self.send(Ticket::NONE, to, refused);
    }

    fn index_of(&self, voter: Voter) -> Option<usize> {
        self.options.configuration.index_of(voter)
    }

    fn persist(&mut self, record: Record) {
        self.last_ticket.0 += 1;
        let ticket = self.last_ticket;
        self.output(Ticket::NONE, Effect::Persist { ticket, record });
    }

    fn broadcast(&mut self, after: Ticket, message: &Message) {
        for index in 0..self.options.configuration.voters().len() {
            let to = self.options.configuration.voters()[index];
            if to != self.options.me {
                self.send(after, to, message.clone());
            }
        }
    }

    fn send(&mut self, after: Ticket, to: Voter, message: Message) {
        self.output(after, Effect::Send { to, message });
    }

    fn output(&mut self, after: Ticket, effect: Effect) {
        self.outputs.push_back(Output { after, effect });
    }
}
