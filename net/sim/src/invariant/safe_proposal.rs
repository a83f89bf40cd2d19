//! Once an entry is chosen in a ballot, no higher ballot proposes another.

use std::collections::BTreeMap;

use sprag_paxos::{Ballot, Entry, Message, Record, Slot};

use super::{Fact, Invariant, Known};

#[derive(Debug, Default)]
pub(super) struct SafeProposal {
    /// By slot, what was proposed, in the order of ballots.
    proposed: BTreeMap<Slot, BTreeMap<Ballot, Entry>>,
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
                let proposed = self.proposed.entry(*slot).or_default();
                proposed.insert(*ballot, entry.clone());
                *slot
            }
            Fact::Durable {
                record: Record::Accepted { slot, .. },
                ..
            } => *slot,
            _ => return Ok(()),
        };
        let (Some((ballot, chosen)), Some(proposed)) =
            (known.votes.chosen(slot), self.proposed.get(&slot))
        else {
            return Ok(());
        };
        match proposed
            .range(*ballot..)
            .find(|(_, entry)| *entry != chosen)
        {
            None => Ok(()),
            Some((higher, entry)) => Err(format!(
                "{slot} is chosen {chosen:?} in {ballot}, and {higher} proposes {entry:?}"
            )),
        }
    }
}
