//! What was accepted durably, by whom, and what is chosen by that.

use std::collections::BTreeMap;

use sprag_paxos::{Ballot, Configuration, Entry, Phase, Record, Slot, Voter, VoterSet};

/// The votes of one slot in one ballot.
#[derive(Debug)]
struct Poll {
    entry: Entry,
    voters: VoterSet,
}

/// Every durable vote there ever was.
#[derive(Debug)]
pub(crate) struct Votes {
    polls: BTreeMap<(Slot, Ballot), Poll>,
    /// By slot, the lowest ballot in which something was chosen, and what.
    chosen: BTreeMap<Slot, (Ballot, Entry)>,
    chosen_up_to: Slot,
}

impl Default for Votes {
    fn default() -> Self {
        Self {
            polls: BTreeMap::new(),
            chosen: BTreeMap::new(),
            chosen_up_to: Slot::NONE,
        }
    }
}

impl Votes {
    pub(super) fn note(&mut self, configuration: &Configuration, voter: Voter, record: &Record) {
        let Record::Accepted { slot, vote } = record else {
            return;
        };
        let Some(index) = configuration.index_of(voter) else {
            return;
        };
        let poll = self
            .polls
            .entry((*slot, vote.ballot))
            .or_insert_with(|| Poll {
                entry: vote.entry.clone(),
                voters: VoterSet::default(),
            });
        poll.voters.insert(index);
        if configuration.is_quorum(Phase::Two, poll.voters) {
            let chosen = self.chosen.entry(*slot);
            let lowest = chosen.or_insert_with(|| (vote.ballot, poll.entry.clone()));
            if vote.ballot < lowest.0 {
                *lowest = (vote.ballot, poll.entry.clone());
            }
            while self.chosen.contains_key(&self.chosen_up_to.next()) {
                self.chosen_up_to = self.chosen_up_to.next();
            }
        }
    }

    /// What is chosen in `slot`, and the lowest ballot that chose it.
    pub(crate) fn chosen(&self, slot: Slot) -> Option<&(Ballot, Entry)> {
        self.chosen.get(&slot)
    }

    /// Everything up to this slot is chosen.
    pub(crate) fn chosen_up_to(&self) -> Slot {
        self.chosen_up_to
    }
}
