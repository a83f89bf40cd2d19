//! What a voter takes off its log, a snapshot of its own holds, durably.

use std::collections::BTreeMap;

use sprag_paxos::{Record, Slot, Voter};

use super::{Fact, Invariant, Known};

#[derive(Debug, Default)]
pub(super) struct SavedFirst {
    saved: BTreeMap<Voter, Slot>,
}

impl SavedFirst {
    fn saved(&mut self, voter: Voter) -> &mut Slot {
        self.saved.entry(voter).or_insert(Slot::NONE)
    }
}

impl Invariant for SavedFirst {
    fn name(&self) -> &'static str {
        "saved first"
    }

    fn source(&self) -> &'static str {
        "Chandra, Griesemer and Redstone, Paxos Made Live, 2007, section 5.5: the log is truncated once the snapshot is persisted"
    }

    fn look(&mut self, _known: &Known, fact: &Fact<'_>) -> Result<(), String> {
        let (voter, slot) = match *fact {
            Fact::Saved { voter, through } => {
                let saved = self.saved(voter);
                *saved = through.max(*saved);
                return Ok(());
            }
            Fact::Durable {
                voter,
                record: Record::Trimmed(slot),
            } => (voter, *slot),
            Fact::Stepped { replica } => (replica.me(), replica.trimmed()),
            _ => return Ok(()),
        };
        let saved = *self.saved(voter);
        if slot <= saved {
            return Ok(());
        }
        Err(format!(
            "{voter} has trimmed up to {slot}, and its snapshot holds everything up to {saved}"
        ))
    }
}
