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
#[derive(Debug, Default)]
pub(crate) struct Votes {
    polls: BTreeMap<(Slot, Ballot), Poll>,
    /// By slot, the lowest ballot in which something was chosen, and what.
    chosen: BTreeMap<Slot, (Ballot, Entry)>,
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
        }
    }

    /// What is chosen in `slot`, and the lowest ballot that chose it.
    pub(crate) fn chosen(&self, slot: Slot) -> Option<&(Ballot, Entry)> {
        self.chosen.get(&slot)
    }

    /// Whether something is chosen in `slot` by the votes of `ballot`.
    pub(crate) fn is_chosen_in(
        &self,
        configuration: &Configuration,
        slot: Slot,
        ballot: Ballot,
    ) -> bool {
        let poll = self.polls.get(&(slot, ballot));
        poll.is_some_and(|poll| configuration.is_quorum(Phase::Two, poll.voters))
    }
}
