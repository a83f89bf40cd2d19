//! A node of the model, and the steps it can take by itself. This is where the core is driven.

use std::collections::BTreeSet;

use sprag_paxos::{Ballot, Effect, Executor, Options, Replica, Slot, Ticket};

use crate::bounds::Bounds;
use crate::disk::Disk;
use crate::invariant::{self, Broken, Claim};
use crate::letter::{Letter, Letters};

/// Time stands still.
const NOW_NS: u64 = 0;

/// What a node does next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// It takes the letter of this number.
    Takes(u32),
    /// It is asked for the proposal of this index.
    Proposes(usize),
    Ticks,
    /// So many records become durable.
    Syncs(usize),
    /// It dies and starts again, with the records that `survivors` has a bit of.
    Crashes {
        survivors: u32,
        rotten: Option<Slot>,
    },
}

/// A node's state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    executor: Executor,
    disk: Disk,
    /// The number of the last record that the executor wants durable.
    written: Ticket,
    /// The numbers of all letters that it ever sent.
    sent: BTreeSet<u32>,
    /// Which proposals it was asked for, as bits.
    proposed: u32,
    ticks: u8,
    crashes: u8,
}

impl Node {
    pub(crate) fn new(index: usize, bounds: &Bounds) -> Self {
        let disk = Disk::new();
        Self {
            executor: start(index, bounds, &disk),
            disk,
            written: Ticket::NONE,
            sent: BTreeSet::new(),
            proposed: 0,
            ticks: 0,
            crashes: 0,
        }
    }

    pub(crate) fn disk(&self) -> &Disk {
        &self.disk
    }

    pub(crate) fn sent(&self) -> &BTreeSet<u32> {
        &self.sent
    }

    /// Up to where it takes everything for decided.
    pub(crate) fn decided(&self) -> Slot {
        self.executor.replica().decided()
    }

    /// The steps that it can take without a letter and without a crash. Those that change nothing may be among them.
    pub(crate) fn steps(&self, index: usize, bounds: &Bounds) -> Vec<Step> {
        let unsynced = self.disk.unsynced();
        let mut steps: Vec<_> = (1..=unsynced).map(Step::Syncs).collect();
        for (number, proposal) in bounds.proposals.iter().enumerate() {
            if proposal.node == index && self.proposed & (1 << number) == 0 {
                steps.push(Step::Proposes(number));
            }
        }
        if self.ticks < bounds.ticks[index] {
            steps.push(Step::Ticks);
        }
        steps
    }

    /// The ways in which it can crash.
    pub(crate) fn ways_to_crash(&self, index: usize, bounds: &Bounds) -> Vec<Step> {
        let mut ways = Vec::new();
        if self.crashes == bounds.crashes[index] {
            return ways;
        }
        for survivors in 0..1 << self.disk.unsynced() {
            let rotten = None;
            ways.push(Step::Crashes { survivors, rotten });
            if bounds.rots {
                let rotten = self.disk.slots().map(Some);
                ways.extend(rotten.map(|rotten| Step::Crashes { survivors, rotten }));
            }
        }
        ways
    }

    /// Takes `step`, and carries out all effects there are. Gives what it claims by that.
    pub(crate) fn take(
        &mut self,
        index: usize,
        bounds: &Bounds,
        letters: &mut Letters,
        step: Step,
    ) -> Result<Vec<Claim>, Broken> {
        match step {
            Step::Takes(number) => {
                let letter = letters.get(number);
                let from = bounds.configuration.voters()[letter.from];
                self.executor.step(NOW_NS, from, letter.message.clone());
            }
            Step::Proposes(number) => {
                let proposal = bounds.proposals[number];
                let before = self.executor.clone();
                let command = proposal.command.as_bytes();
                // What is refused changes nothing, and what changes nothing can be asked for again.
                if self.executor.propose(NOW_NS, command).is_ok() && self.executor != before {
                    self.proposed |= 1 << number;
                }
            }
            Step::Ticks => {
                let before = self.executor.clone();
                self.executor.tick(NOW_NS);
                if self.executor != before {
                    self.ticks += 1;
                }
            }
            Step::Syncs(count) => {
                let left = (self.disk.unsynced() - count) as u64;
                self.disk.sync(count);
                let ticket = Ticket(self.written.0 - left);
                self.executor.persisted(NOW_NS, ticket);
            }
            Step::Crashes { survivors, rotten } => {
                self.crashes += 1;
                self.disk.crash(survivors, rotten);
                self.written = Ticket::NONE;
                self.executor = start(index, bounds, &self.disk);
            }
        }
        let mut claims = Vec::new();
        loop {
            while let Some(effect) = self.executor.poll() {
                self.carry_out(index, bounds, letters, effect, &mut claims)?;
            }
            let unsynced = self.disk.unsynced();
            if unsynced == 0 || self.crashes < bounds.crashes[index] {
                break;
            }
            self.disk.sync(unsynced);
            self.executor.persisted(NOW_NS, self.written);
        }
        invariant::promise_kept(self, letters)?;
        Ok(claims)
    }

    fn carry_out(
        &mut self,
        index: usize,
        bounds: &Bounds,
        letters: &mut Letters,
        effect: Effect,
        claims: &mut Vec<Claim>,
    ) -> Result<(), Broken> {
        match effect {
            Effect::Persist { ticket, record } => {
                self.written = ticket;
                self.disk.write(record);
            }
            // To whom has no vote, nothing of interest is sent.
            Effect::Send { to, message } => {
                let me = bounds.configuration.voters()[index];
                invariant::own_word(self, letters, me, &message)?;
                if let Some(to) = bounds.configuration.index_of(to) {
                    let letter = Letter {
                        from: index,
                        to,
                        message,
                    };
                    let claim = Claim::of(&letter.message);
                    if self.sent.insert(letters.number(letter)) {
                        claims.extend(claim);
                    }
                }
            }
            Effect::Decided { slot, entry } => claims.push(Claim::Decided { slot, entry }),
            // Nobody takes snapshots here.
            Effect::SteppedDown { .. }
            | Effect::SendChunk { .. }
            | Effect::Receive { .. }
            | Effect::Restore { .. } => {}
        }
        Ok(())
    }

    /// Whether `other` is the same, but for what it sent.
    pub(crate) fn differs_in_letters_only(&self, other: &Node) -> bool {
        let rest = |node: &Node| (node.proposed, node.ticks, node.crashes, node.written);
        rest(self) == rest(other) && self.disk == other.disk && self.executor == other.executor
    }

    /// The ballot below which it takes part in nothing any more.
    pub(crate) fn promised(&self) -> Ballot {
        self.executor.replica().acceptor().promised()
    }
}

fn start(index: usize, bounds: &Bounds, disk: &Disk) -> Executor {
    let options = Options {
        me: bounds.configuration.voters()[index],
        configuration: bounds.configuration.clone(),
        // Not waited for.
        election_ns: 2,
        beat_ns: 1,
        window_slots: 2,
        batch_bytes_max: 1,
        pending_bytes_max: 16,
        page_bytes_max: 1 << 10,
        seed: 0,
    };
    Executor::new(NOW_NS, Replica::untimed(options, disk.recover()))
}
