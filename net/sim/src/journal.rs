//! A disk as a list of records: what is synced stays; of the rest, each may be lost or not.

use std::collections::{BTreeMap, BTreeSet};

use sprag_paxos::{Answer, Ballot, Record, Recovered, Slot};

use crate::fault::{Class, Faults};

#[derive(Clone, Debug)]
enum Item {
    Good(Record),
    /// An acceptance whose entry can't be read any more.
    RottenVote {
        slot: Slot,
        ballot: Ballot,
    },
    /// A learned entry that can't be read any more.
    RottenEntry {
        slot: Slot,
    },
}

/// What a node wrote.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    items: Vec<Item>,
    synced: usize,
    /// Whether something that isn't synced is waited for.
    is_urgent: bool,
}

impl Journal {
    pub(crate) fn write(&mut self, record: Record) {
        self.is_urgent |= record.is_urgent();
        self.items.push(Item::Good(record));
    }

    /// How many records were written.
    pub(crate) fn written(&self) -> usize {
        self.items.len()
    }

    /// Whether a sync is waited for.
    pub(crate) fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    /// A sync begins: gives how many records it will make durable.
    pub(crate) fn begin_sync(&mut self) -> usize {
        self.is_urgent = false;
        self.items.len()
    }

    /// The first `count` are durable; gives those that weren't.
    pub(crate) fn sync(&mut self, count: usize) -> impl Iterator<Item = &Record> {
        let from = self.synced.min(count);
        self.synced = self.synced.max(count);
        self.items[from..count].iter().filter_map(Item::record)
    }

    /// The machine died: what wasn't synced is lost, but for what the disk wrote of its own accord.
    pub(crate) fn crash(
        &mut self,
        faults: &mut Faults,
        node: usize,
    ) -> impl Iterator<Item = &Record> {
        let from = self.synced;
        let unsynced = self.items.split_off(from);
        let survives = |_: &Item| faults.strike(Class::UnsyncedSurvives, node).is_some();
        self.items.extend(unsynced.into_iter().filter(survives));
        self.synced = self.items.len();
        self.is_urgent = false;
        self.items[from..].iter().filter_map(Item::record)
    }

    /// What can be read after a start. Where `may_rot`, some of it can't any more.
    pub(crate) fn recover(&mut self, faults: &mut Faults, node: usize, may_rot: bool) -> Recovered {
        let mut recovered = Recovered::default();
        // The slots of which what was written last can't be read.
        let mut unread = BTreeSet::new();
        let mut decided = Slot::NONE;
        for item in &mut self.items {
            if may_rot {
                item.rot(faults, node);
            }
            match item {
                Item::Good(Record::Promised(ballot)) => {
                    recovered.promised = recovered.promised.max(*ballot);
                }
                Item::Good(Record::Accepted { slot, vote }) => {
                    recovered
                        .answers
                        .insert(*slot, Answer::Accepted(vote.clone()));
                    recovered.learned.remove(slot);
                    unread.remove(slot);
                }
                Item::Good(Record::Learned { slot, entry }) => {
                    recovered.learned.insert(*slot, entry.clone());
                    unread.remove(slot);
                }
                Item::Good(Record::Decided(slot)) => decided = decided.max(*slot),
                Item::RottenVote { slot, ballot } => {
                    recovered.answers.insert(*slot, Answer::Unknown(*ballot));
                    recovered.learned.remove(slot);
                    unread.insert(*slot);
                }
                Item::RottenEntry { slot } => {
                    recovered.learned.remove(slot);
                    unread.insert(*slot);
                }
            }
        }
        recovered.decided =
            readable_up_to(decided, &unread, &recovered.answers, &recovered.learned);
        recovered
            .learned
            .retain(|slot, _| *slot <= recovered.decided);
        recovered
    }
}

/// The last slot up to `decided` before the first that can't be read.
fn readable_up_to<V, E>(
    decided: Slot,
    unread: &BTreeSet<Slot>,
    answers: &BTreeMap<Slot, V>,
    learned: &BTreeMap<Slot, E>,
) -> Slot {
    let is_readable = |slot: &u64| {
        let slot = Slot(*slot);
        !unread.contains(&slot) && (answers.contains_key(&slot) || learned.contains_key(&slot))
    };
    Slot((1..=decided.0).take_while(is_readable).last().unwrap_or(0))
}

impl Item {
    fn record(&self) -> Option<&Record> {
        match self {
            Item::Good(record) => Some(record),
            Item::RottenVote { .. } | Item::RottenEntry { .. } => None,
        }
    }

    fn rot(&mut self, faults: &mut Faults, node: usize) {
        let rotten = match self {
            Item::Good(Record::Accepted { slot, vote }) => Item::RottenVote {
                slot: *slot,
                ballot: vote.ballot,
            },
            Item::Good(Record::Learned { slot, .. }) => Item::RottenEntry { slot: *slot },
            _ => return,
        };
        if faults.strike(Class::BitRot, node).is_some() {
            *self = rotten;
        }
    }
}
