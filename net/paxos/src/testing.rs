//! What the tests of several files share: voters, options, and a voter driven by hand.

use crate::ballot::Ballot;
use crate::batch::Pending;
use crate::configuration::Configuration;
use crate::effect::{Effect, Ticket};
use crate::entry::{Entry, Slot};
use crate::executor::Executor;
use crate::message::Message;
use crate::options::Options;
use crate::recovered::Recovered;
use crate::replica::{Replica, RoleName};
use crate::voter::{DiskId, NodeId, Voter};

pub(crate) const ELECTION_NS: u64 = 1_000;
pub(crate) const BEAT_NS: u64 = 100;

/// So many voters, on nodes from 0.
pub(crate) fn voters(count: u16) -> Vec<Voter> {
    let voter = |node| Voter {
        node: NodeId(node),
        disk: DiskId(7),
    };
    (0..count).map(voter).collect()
}

/// The options of the voter at `me`.
pub(crate) fn options(voters: &[Voter], me: usize) -> Options {
    Options {
        me: voters[me],
        configuration: Configuration::new(voters.to_vec()).unwrap(),
        election_ns: ELECTION_NS,
        beat_ns: BEAT_NS,
        window_slots: 4,
        batch_bytes_max: 64,
        pending_bytes_max: 256,
        page_bytes_max: 256,
        seed: 1,
    }
}

/// A voter, and what it did.
pub(crate) struct Hand {
    pub(crate) executor: Executor,
    /// Whether its disk makes durable at once what it is given.
    pub(crate) syncs: bool,
    pub(crate) ticket: Ticket,
    pub(crate) now_ns: u64,
}

impl Hand {
    pub(crate) fn new(options: Options) -> Self {
        Self::recovered(options, Recovered::default())
    }

    pub(crate) fn recovered(options: Options, recovered: Recovered) -> Self {
        let replica = Replica::new(0, options, recovered).unwrap();
        Self {
            executor: Executor::new(0, replica),
            syncs: true,
            ticket: Ticket::NONE,
            now_ns: 0,
        }
    }

    pub(crate) fn replica(&self) -> &Replica {
        self.executor.replica()
    }

    /// A message comes; gives what is done.
    pub(crate) fn step(&mut self, from: Voter, message: Message) -> Vec<Effect> {
        self.executor.step(self.now_ns, from, message);
        self.effects()
    }

    /// So much time passes; gives what is done then.
    pub(crate) fn pass(&mut self, for_ns: u64) -> Vec<Effect> {
        self.now_ns += for_ns;
        self.executor.tick(self.now_ns);
        self.effects()
    }

    /// The disk has done all that it was given.
    pub(crate) fn sync(&mut self) -> Vec<Effect> {
        self.executor.persisted(self.now_ns, self.ticket);
        self.effects()
    }

    pub(crate) fn effects(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        while let Some(effect) = self.executor.poll() {
            if let Effect::Persist { ticket, .. } = effect {
                self.ticket = ticket;
                if self.syncs {
                    self.executor.persisted(self.now_ns, ticket);
                }
            }
            effects.push(effect);
        }
        effects
    }
}

/// The messages of `effects`, and to whom each goes.
pub(crate) fn sent(effects: &[Effect]) -> Vec<(Voter, &Message)> {
    let sends = effects.iter().filter_map(|effect| match effect {
        Effect::Send { to, message } => Some((*to, message)),
        _ => None,
    });
    sends.collect()
}

/// The ballot of `round` that belongs to `voter`.
pub(crate) fn ballot(round: u64, voter: Voter) -> Ballot {
    Ballot { round, voter }
}

/// A batch of one command.
pub(crate) fn entry(command: &[u8]) -> Entry {
    let mut pending = Pending::default();
    pending.push(command);
    pending.take(usize::MAX).unwrap()
}

impl Hand {
    /// Has it elected, with a promise of `other`, which accepted nothing.
    pub(crate) fn lead(&mut self, other: Voter) -> Ballot {
        self.pass(2 * ELECTION_NS);
        let ballot = ballot(1, self.replica().me());
        self.step(other, Message::Aye { ballot });
        let promise = Message::Promise {
            ballot,
            from: Slot(1),
            answers: Vec::new(),
            next: None,
            decided: Slot::NONE,
        };
        self.step(other, promise);
        assert_eq!(self.replica().role(), RoleName::Recovering);
        ballot
    }
}
