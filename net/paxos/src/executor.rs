//! The executor: lets nothing out before what it rests on is durable.

use std::collections::VecDeque;
#[cfg(feature = "simulation")]
use std::hash::{Hash, Hasher};

use crate::effect::{Effect, Ticket};
use crate::message::Message;
use crate::replica::{ProposeError, Replica};
use crate::voter::Voter;

/// A voter and its held-back effects.
///
/// The host feeds it: [`step`](Self::step) with each message, [`tick`](Self::tick) when
/// [`deadline_ns`](Replica::deadline_ns) has come, [`propose`](Self::propose), [`persisted`](Self::persisted). After each of
/// those it takes every effect there is from [`poll`](Self::poll), in order, and carries it out.
#[derive(Clone, Debug)]
pub struct Executor {
    replica: Replica,
    /// What waits for the disk, in the order of what it waits for.
    held: VecDeque<(Ticket, Effect)>,
    durable: Ticket,
    now_ns: u64,
}

impl Executor {
    /// Around a voter at `now_ns`.
    pub fn new(now_ns: u64, replica: Replica) -> Self {
        Self {
            replica,
            held: VecDeque::new(),
            durable: Ticket::NONE,
            now_ns,
        }
    }

    /// The voter.
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// A message came from `from`.
    pub fn step(&mut self, now_ns: u64, from: Voter, message: Message) {
        self.at(now_ns);
        self.replica.step(self.now_ns, from, message);
    }

    /// Time has passed.
    pub fn tick(&mut self, now_ns: u64) {
        self.at(now_ns);
        self.replica.tick(self.now_ns);
    }

    /// Takes a command to be decided, in some slot, after those given before, if this voter leads; gives its number, from
    /// 0 in each life of the voter. When the command is decided, the slot's entry has it; until then its outcome is
    /// unknown, but where [`Effect::SteppedDown`] says that it was never proposed.
    ///
    /// Copies the command; allocates only as more wait than ever before.
    pub fn propose(&mut self, now_ns: u64, command: &[u8]) -> Result<u64, ProposeError> {
        self.at(now_ns);
        self.replica.propose(self.now_ns, command)
    }

    /// Everything up to `ticket` is durable.
    pub fn persisted(&mut self, now_ns: u64, ticket: Ticket) {
        self.at(now_ns);
        self.durable = self.durable.max(ticket);
        self.replica.persisted(self.now_ns, ticket);
    }

    /// The next effect to carry out. What the voter tells itself takes the same way as what it tells others, and is told
    /// here.
    pub fn poll(&mut self) -> Option<Effect> {
        loop {
            let effect = self.next()?;
            match effect {
                Effect::Send { to, message } if to == self.replica.me() => {
                    self.replica.step(self.now_ns, to, message);
                }
                effect => return Some(effect),
            }
        }
    }

    fn next(&mut self) -> Option<Effect> {
        if self
            .held
            .front()
            .is_some_and(|(after, _)| *after <= self.durable)
        {
            return self.held.pop_front().map(|(_, effect)| effect);
        }
        while let Some(output) = self.replica.outputs.pop_front() {
            if output.after <= self.durable {
                return Some(output.effect);
            }
            self.held.push_back((output.after, output.effect));
        }
        None
    }

    /// Clocks step back; time here doesn't.
    fn at(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }
}

/// Two are the same when nothing that may happen tells them apart. What is held back twice is sent twice, and the network may
/// do that to everything: so what is held is compared by where each first occurs. Else a message that comes again and again
/// while the disk is busy would make ever new states.
#[cfg(feature = "simulation")]
impl Executor {
    fn identity(&self) -> (&Replica, Vec<&(Ticket, Effect)>, Ticket, u64) {
        let mut held = Vec::with_capacity(self.held.len());
        for effect in &self.held {
            if !held.contains(&effect) {
                held.push(effect);
            }
        }
        (&self.replica, held, self.durable, self.now_ns)
    }
}

#[cfg(feature = "simulation")]
impl PartialEq for Executor {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

#[cfg(feature = "simulation")]
impl Eq for Executor {}

#[cfg(feature = "simulation")]
impl Hash for Executor {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}
