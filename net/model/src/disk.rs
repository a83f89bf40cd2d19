//! What a node's disk holds.

use std::collections::BTreeMap;

use sprag_paxos::{Answer, Ballot, Entry, Record, Recovered, Slot, Vote};

/// A vote, and whether it can be read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Kept {
    vote: Vote,
    is_readable: bool,
}

/// A disk: what is durable for ever, and what isn't yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Disk {
    promised: Ballot,
    /// By slot, every vote there was, in the order in which they were written.
    votes: BTreeMap<Slot, Vec<Kept>>,
    unsynced: Vec<Record>,
}

impl Disk {
    pub(crate) fn new() -> Self {
        Self {
            promised: Ballot::NONE,
            votes: BTreeMap::new(),
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

    /// Loses what isn't durable, but for what `survivors` has a bit of; and can't read the last vote of `rotten` any more.
    pub(crate) fn crash(&mut self, survivors: u32, rotten: Option<Slot>) {
        let unsynced = std::mem::take(&mut self.unsynced);
        for (index, record) in unsynced.into_iter().enumerate() {
            if survivors & (1 << index) != 0 {
                self.keep(record);
            }
        }
        let votes = rotten.and_then(|slot| self.votes.get_mut(&slot));
        if let Some(last) = votes.and_then(|votes| votes.last_mut()) {
            last.is_readable = false;
        }
    }

    /// What can be read when the node starts.
    pub(crate) fn recover(&self) -> Recovered {
        let answers = self.votes.iter().filter_map(|(slot, votes)| {
            let last = votes.last()?;
            let answer = if last.is_readable {
                Answer::Accepted(last.vote.clone())
            } else {
                Answer::Unknown(last.vote.ballot)
            };
            Some((*slot, answer))
        });
        Recovered {
            promised: self.promised,
            answers: answers.collect(),
        }
    }

    /// Every durable vote there ever was, readable or not.
    pub(crate) fn votes(&self) -> impl Iterator<Item = (Slot, Ballot, &Entry)> {
        self.votes.iter().flat_map(|(slot, votes)| {
            let votes = votes.iter().map(|kept| &kept.vote);
            votes.map(|vote| (*slot, vote.ballot, &vote.entry))
        })
    }

    /// The slots that it has votes in.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.votes.keys().copied()
    }

    fn keep(&mut self, record: Record) {
        match record {
            Record::Promised(ballot) => self.promised = self.promised.max(ballot),
            Record::Accepted { slot, vote } => {
                let is_readable = true;
                let votes = self.votes.entry(slot).or_default();
                votes.push(Kept { vote, is_readable });
            }
        }
    }
}
