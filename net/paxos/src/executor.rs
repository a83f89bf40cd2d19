//! The executor: lets nothing out before what it rests on is durable.

use std::collections::VecDeque;

use crate::effect::{Effect, Ticket};
use crate::message::Message;
use crate::replica::{ProposeError, Replica};
use crate::voter::Voter;

/// A voter and its held-back effects.
///
/// The host feeds it: [`step`](Self::step) with each message, [`tick`](Self::tick) when
/// [`deadline_ns`](Replica::deadline_ns) has come, [`propose`](Self::propose), [`persisted`](Self::persisted). After each of
/// those, or after several proposals, it takes every effect there is from [`poll`](Self::poll), in order, and carries it out.
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
    /// It leaves with the next [`poll`](Self::poll), in one slot with what was proposed just before and after it, as far as
    /// a batch goes. Copies the command; allocates only as more wait than ever before.
    pub fn propose(&mut self, now_ns: u64, command: &[u8]) -> Result<u64, ProposeError> {
        self.at(now_ns);
        self.replica.propose(command)
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
        loop {
            while let Some(output) = self.replica.outputs.pop_front() {
                if output.after <= self.durable {
                    return Some(output.effect);
                }
                self.held.push_back((output.after, output.effect));
            }
            // What was proposed since leaves together.
            self.replica.pump(self.now_ns);
            if self.replica.outputs.is_empty() {
                return None;
            }
        }
    }

    /// Clocks step back; time here doesn't.
    fn at(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }
}
