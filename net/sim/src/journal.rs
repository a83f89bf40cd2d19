//! A disk as a list of records: what is synced stays; of the rest, each may be lost or not.

use std::collections::BTreeMap;

use sprag_paxos::{Answer, Ballot, Record, Recovered, Slot};

use crate::fault::{Class, Faults};

#[derive(Clone, Debug)]
enum Item {
    Good(Record),
    /// An acceptance whose entry can't be read any more.
    Rotten {
        slot: Slot,
        ballot: Ballot,
    },
}

/// What a node wrote.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    items: Vec<Item>,
    synced: usize,
}

impl Journal {
    pub(crate) fn write(&mut self, record: Record) {
        self.items.push(Item::Good(record));
    }

    /// How many records were written.
    pub(crate) fn written(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.synced == self.items.len()
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
        self.items[from..].iter().filter_map(Item::record)
    }

    /// What can be read after a start. Where `may_rot`, some of it can't any more.
    pub(crate) fn recover(&mut self, faults: &mut Faults, node: usize, may_rot: bool) -> Recovered {
        let mut promised = Ballot::NONE;
        let mut answers = BTreeMap::new();
        for item in &mut self.items {
            if may_rot
                && let Item::Good(Record::Accepted { slot, vote }) = item
                && faults.strike(Class::BitRot, node).is_some()
            {
                *item = Item::Rotten {
                    slot: *slot,
                    ballot: vote.ballot,
                };
            }
            match item {
                Item::Good(Record::Promised(ballot)) => promised = promised.max(*ballot),
                Item::Good(Record::Accepted { slot, vote }) => {
                    answers.insert(*slot, Answer::Accepted(vote.clone()));
                }
                Item::Rotten { slot, ballot } => {
                    answers.insert(*slot, Answer::Unknown(*ballot));
                }
            }
        }
        Recovered { promised, answers }
    }
}

impl Item {
    fn record(&self) -> Option<&Record> {
        match self {
            Item::Good(record) => Some(record),
            Item::Rotten { .. } => None,
        }
    }
}
