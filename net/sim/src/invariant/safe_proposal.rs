//! Once an entry is chosen in a ballot, no higher ballot proposes another.

use std::collections::BTreeMap;

use sprag_paxos::{Ballot, Entry, Message, Record, Slot};

use super::{Fact, Invariant, Known};
use crate::readable;

#[derive(Debug, Default)]
pub(super) struct SafeProposal {
    /// By slot and ballot, what was proposed last.
    proposed: BTreeMap<(Slot, Ballot), Entry>,
}

impl Invariant for SafeProposal {
    fn name(&self) -> &'static str {
        "safe proposal"
    }

    fn source(&self) -> &'static str {
        "Lamport, Paxos Made Simple, 2001, section 2.2: P2b; The Part-Time Parliament, 1998, section 2.1: B3"
    }

    fn look(&mut self, known: &Known, fact: &Fact<'_>) -> Result<(), String> {
        let slot = match *fact {
            Fact::Sent {
                message:
                    Message::Accept {
                        ballot,
                        slot,
                        entry,
                        ..
                    },
                ..
            } => {
                let proposed = self.proposed.entry((*slot, *ballot));
                let proposed = proposed.or_insert_with(|| entry.clone());
                if proposed != entry {
                    *proposed = entry.clone();
                }
                *slot
            }
            Fact::Durable {
                record: Record::Accepted { slot, .. },
                ..
            } => *slot,
            _ => return Ok(()),
        };
        let Some((ballot, chosen)) = known.votes.chosen(slot) else {
            return Ok(());
        };
        let mut proposed = self
            .proposed
            .range((slot, *ballot)..(slot.next(), Ballot::NONE));
        match proposed.find(|(_, entry)| *entry != chosen) {
            None => Ok(()),
            Some(((_, higher), entry)) => Err(format!(
                "{slot} is chosen {} in {ballot}, and {higher} proposes {}",
                readable::entry(chosen),
                readable::entry(entry)
            )),
        }
    }
}
