//! What a node's disk holds.

use std::collections::{BTreeMap, BTreeSet};

use sprag_paxos::{Answer, Ballot, Entry, Record, Recovered, Slot, Vote};

/// A record of a slot, and whether it can be read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Kept {
    what: What,
    is_readable: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum What {
    Accepted(Vote),
    Learned(Entry),
}

/// A disk: what is durable for ever, and what isn't yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Disk {
    promised: Ballot,
    decided: Slot,
    /// By slot, every record there was, in the order in which they were written.
    slots: BTreeMap<Slot, Vec<Kept>>,
    unsynced: Vec<Record>,
}

impl Disk {
    pub(crate) fn new() -> Self {
        Self {
            promised: Ballot::NONE,
            decided: Slot::NONE,
            slots: BTreeMap::new(),
            unsynced: Vec::new(),
        }
    }

    pub(crate) fn write(&mut self, record: Record) {
        self.unsynced.push(record);
    }

    pub(crate) fn unsynced(&self) -> usize {
        self.unsynced.len()
    }

    /// Makes the first `count` of what was written durable.
    pub(crate) fn sync(&mut self, count: usize) {
        for record in self.unsynced.drain(..count).collect::<Vec<_>>() {
            self.keep(record);
        }
    }

    /// Loses what isn't durable, but for what `survivors` has a bit of; and can't read the last record of `rotten` any more.
    pub(crate) fn crash(&mut self, survivors: u32, rotten: Option<Slot>) {
        let unsynced = std::mem::take(&mut self.unsynced);
        for (index, record) in unsynced.into_iter().enumerate() {
            if survivors & (1 << index) != 0 {
                self.keep(record);
            }
        }
        let records = rotten.and_then(|slot| self.slots.get_mut(&slot));
        if let Some(last) = records.and_then(|records| records.last_mut()) {
            last.is_readable = false;
        }
    }

    /// What can be read when the node starts.
    pub(crate) fn recover(&self) -> Recovered {
        let mut recovered = Recovered {
            promised: self.promised,
            ..Recovered::default()
        };
        let mut readable = BTreeSet::new();
        for (slot, records) in &self.slots {
            for kept in records {
                match &kept.what {
                    What::Accepted(vote) => {
                        let answer = if kept.is_readable {
                            Answer::Accepted(vote.clone())
                        } else {
                            Answer::Unknown(vote.ballot)
                        };
                        recovered.answers.insert(*slot, answer);
                        recovered.learned.remove(slot);
                    }
                    What::Learned(entry) => {
                        recovered.learned.insert(*slot, entry.clone());
                        if !kept.is_readable {
                            recovered.learned.remove(slot);
                        }
                    }
                }
            }
            if records.last().is_some_and(|last| last.is_readable) {
                readable.insert(*slot);
            }
        }
        let decided = (1..=self.decided.0).map(Slot);
        let last = decided.take_while(|slot| readable.contains(slot)).last();
        recovered.decided = last.unwrap_or(Slot::NONE);
        recovered
            .learned
            .retain(|slot, _| *slot <= recovered.decided);
        recovered
    }

    /// Every durable vote there ever was, readable or not.
    pub(crate) fn votes(&self) -> impl Iterator<Item = (Slot, Ballot, &Entry)> {
        self.slots.iter().flat_map(|(slot, records)| {
            records.iter().filter_map(|kept| match &kept.what {
                What::Accepted(vote) => Some((*slot, vote.ballot, &vote.entry)),
                What::Learned(_) => None,
            })
        })
    }

    /// The slots that it has records of.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.slots.keys().copied()
    }

    fn keep(&mut self, record: Record) {
        let (slot, what) = match record {
            Record::Promised(ballot) => {
                self.promised = self.promised.max(ballot);
                return;
            }
            // Nobody takes snapshots here.
            Record::Trimmed(_) => return,
            Record::Decided(slot) => {
                self.decided = self.decided.max(slot);
                return;
            }
            Record::Accepted { slot, vote } => (slot, What::Accepted(vote)),
            Record::Learned { slot, entry } => (slot, What::Learned(entry)),
        };
        let is_readable = true;
        let records = self.slots.entry(slot).or_default();
        records.push(Kept { what, is_readable });
    }
}
