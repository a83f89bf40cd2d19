//! The executor: lets nothing out before what it rests on is durable.

use std::collections::VecDeque;
#[cfg(feature = "simulation")]
use std::hash::{Hash, Hasher};

use crate::ballot::Ballot;
use crate::effect::{Effect, Ticket};
use crate::entry::Slot;
use crate::message::Message;
use crate::replica::{ProposeError, Replica};
use crate::snapshot::Snapshot;
use crate::voter::Voter;

/// A voter and its held-back effects.
///
/// The host feeds it: [`step`](Self::step) with each message, [`tick`](Self::tick) when
/// [`deadline_ns`](Self::deadline_ns) has come, [`propose`](Self::propose), [`persisted`](Self::persisted). After each of
/// those, or after several proposals, it takes every effect there is from [`poll`](Self::poll), in order, and carries it out.
///
/// Times are nanoseconds of a clock that should only go forward. One that steps back all the same loses the voter what time
/// it steps, and no more: what had passed has passed, and time goes on from there.
#[derive(Clone, Debug)]
pub struct Executor {
    replica: Replica,
    /// What waits for the disk, in the order of what it waits for.
    held: VecDeque<(Ticket, Effect)>,
    /// The voter's time.
    now_ns: u64,
    /// What the host's clock showed last.
    shown_ns: u64,
    /// What was promised and decided when something last came: neither ever goes back.
    promised: Ballot,
    decided: Slot,
}

/// How far time goes on at once, at most: a day, after which every wait is over.
const LEAP_NS_MAX: u64 = 86_400_000_000_000;

impl Executor {
    /// Around a voter at `now_ns`.
    pub fn new(now_ns: u64, replica: Replica) -> Self {
        Self {
            replica,
            held: VecDeque::new(),
            now_ns,
            shown_ns: now_ns,
            promised: Ballot::NONE,
            decided: Slot::NONE,
        }
    }

    /// The voter.
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// When, by the host's clock, [`tick`](Self::tick) is due; `None` while the voter waits for nothing. Each input may
    /// change it.
    pub fn deadline_ns(&self) -> Option<u64> {
        let in_ns = self.replica.deadline_ns()?.saturating_sub(self.now_ns);
        Some(self.shown_ns.saturating_add(in_ns))
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
        self.replica.persisted(self.now_ns, ticket);
    }

    /// A snapshot that is durable here holds everything up to `slot`: what is remembered of those slots is forgotten, soon
    /// on disk too. What isn't decided yet stays.
    pub fn trim(&mut self, now_ns: u64, slot: Slot) {
        self.at(now_ns);
        self.replica.trim(self.now_ns, slot);
    }

    /// All of a snapshot has come that was to be [received](Effect::Receive), or it can't be kept. Whether it is whole and, with
    /// its name, durable; if not, nothing is left of it.
    pub fn received(&mut self, now_ns: u64, snapshot: Snapshot, is_durable: bool) {
        self.at(now_ns);
        self.replica.received(self.now_ns, snapshot, is_durable);
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
        let durable = self.replica.tickets.durable();
        if let Some((_, effect)) = self.held.pop_front_if(|(after, _)| *after <= durable) {
            return Some(effect);
        }
        loop {
            while let Some(output) = self.replica.outputs.pop_front() {
                if output.after <= durable {
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

    /// The host's clock shows `shown_ns`.
    fn at(&mut self, shown_ns: u64) {
        let passed_ns = shown_ns.saturating_sub(self.shown_ns).min(LEAP_NS_MAX);
        self.shown_ns = shown_ns;
        self.now_ns = self.now_ns.saturating_add(passed_ns);
        self.check();
    }

    /// Ends the process rather than go on with a memory that went back. The simulator has invariants for that, which are to
    /// find it themselves.
    fn check(&mut self) {
        let (promised, decided) = (self.replica.acceptor().promised(), self.replica.decided());
        assert!(
            cfg!(feature = "simulation") || (promised >= self.promised && decided >= self.decided),
            "this voter had promised {} and decided up to {}, and now {promised} and {decided}",
            self.promised,
            self.decided
        );
        (self.promised, self.decided) = (promised, decided);
    }
}

/// Two are the same when nothing that may happen tells them apart. What is held back twice is sent twice, and the network may
/// do that to everything: so what is held is compared by where each first occurs. Else a message that comes again and again
/// while the disk is busy would make ever new states.
#[cfg(feature = "simulation")]
impl Executor {
    fn identity(&self) -> (&Replica, Vec<&(Ticket, Effect)>, u64) {
        let mut held = Vec::with_capacity(self.held.len());
        for effect in &self.held {
            if !held.contains(&effect) {
                held.push(effect);
            }
        }
        (&self.replica, held, self.now_ns)
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

#[cfg(test)]
mod tests {
    use crate::replica::RoleName;
    use crate::testing::{ELECTION_NS, Hand, options, voters};

    #[test]
    fn a_clock_that_steps_back_or_leaps_ahead_costs_no_more_than_it_steps() {
        let cases = [
            ("stays", 0, 2 * ELECTION_NS),
            ("steps back to its start", 0, 2 * ELECTION_NS),
            ("leaps to the end", u64::MAX, u64::MAX),
            ("comes back from the end", 5, 5 + 2 * ELECTION_NS),
        ];
        let mut hand = Hand::new(options(&voters(3), 0));
        hand.pass(3 * ELECTION_NS);
        for (what, steps_to_ns, shown_ns) in cases {
            hand.executor.tick(steps_to_ns);
            hand.effects();
            let promised = hand.replica().highest;
            let due_ns = hand.executor.deadline_ns().unwrap();
            assert!(
                due_ns >= steps_to_ns && due_ns <= steps_to_ns.saturating_add(ELECTION_NS),
                "{what}"
            );
            hand.executor.tick(shown_ns);
            hand.effects();
            assert_eq!(hand.replica().role(), RoleName::Canvasser, "{what}");
            assert!(
                hand.replica().highest > promised || shown_ns == u64::MAX,
                "{what}"
            );
        }
    }

    #[test]
    #[cfg(not(feature = "simulation"))]
    #[should_panic(expected = "decided up to s1, and now")]
    fn a_voter_whose_memory_goes_back_ends() {
        let mut hand = Hand::new(options(&voters(1), 0));
        hand.pass(2 * ELECTION_NS);
        hand.pass(2 * ELECTION_NS);
        hand.executor
            .replica
            .learner
            .go_back_to(crate::entry::Slot::NONE);
        hand.pass(2 * ELECTION_NS);
    }
}
