//! What was proposed in each ballot, as far as an Accept or a durable acceptance shows.

use std::collections::BTreeMap;

use sprag_paxos::{Ballot, Entry, Message, Record, Slot};

use super::Fact;

/// Every entry that was ever proposed: of several in one slot and ballot, the first.
#[derive(Debug, Default)]
pub(crate) struct Proposals(BTreeMap<(Slot, Ballot), Entry>);

impl Proposals {
    pub(super) fn note(&mut self, fact: &Fact<'_>) {
        if let Some((slot, ballot, entry)) = shown(fact) {
            self.0
                .entry((slot, ballot))
                .or_insert_with(|| entry.clone());
        }
    }

    /// What was proposed first in `slot`, in `ballot`.
    pub(super) fn first(&self, slot: Slot, ballot: Ballot) -> Option<&Entry> {
        self.0.get(&(slot, ballot))
    }

    /// What was proposed in `slot`, in `ballot` and higher ones.
    pub(super) fn from(
        &self,
        slot: Slot,
        ballot: Ballot,
    ) -> impl Iterator<Item = (Ballot, &Entry)> {
        let proposed = self.0.range((slot, ballot)..(slot.next(), Ballot::NONE));
        proposed.map(|((_, ballot), entry)| (*ballot, entry))
    }
}

/// The proposal that a fact shows: where, in which ballot, and what.
pub(super) fn shown<'a>(fact: &Fact<'a>) -> Option<(Slot, Ballot, &'a Entry)> {
    match *fact {
        Fact::Sent {
            message:
                Message::Accept {
                    ballot,
                    slot,
                    entry,
                    ..
                },
            ..
        } => Some((*slot, *ballot, entry)),
        Fact::Durable {
            record: Record::Accepted { slot, vote },
            ..
        } => Some((*slot, vote.ballot, &vote.entry)),
        _ => None,
    }
}
