//! A voter takes slots for decided one after the other, none twice and none left out, for as long as it lives; and only what
//! is readable and decided when it starts again.

use std::collections::BTreeMap;

use sprag_paxos::{Slot, Voter};

use super::{Fact, Invariant, Known};
use crate::readable;

#[derive(Debug, Default)]
pub(super) struct DecidedInOrder {
    last: BTreeMap<Voter, Slot>,
}

impl Invariant for DecidedInOrder {
    fn name(&self) -> &'static str {
        "decided in order"
    }

    fn source(&self) -> &'static str {
        "Lamport, Paxos Made Simple, 2001, section 3: commands are executed in the order of their numbers"
    }

    fn look(&mut self, known: &Known, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Started { replica } => {
                let decided = replica.decided();
                for slot in (replica.trimmed().0 + 1..=decided.0).map(Slot) {
                    let entry = replica.decided_entry(slot);
                    let chosen = known.votes.chosen(slot).map(|(_, entry)| entry);
                    if entry.is_none() || entry != chosen {
                        return Err(format!(
                            "{} starts with {slot} decided to hold {}; chosen is {}",
                            replica.me(),
                            readable::entry_if_any(entry),
                            readable::entry_if_any(chosen)
                        ));
                    }
                }
                self.last.insert(replica.me(), decided);
            }
            Fact::Restored { voter, through } => {
                let last = self.last.entry(voter).or_insert(Slot::NONE);
                if through <= *last {
                    return Err(format!(
                        "{voter} begins anew from a snapshot up to {through} after {last}"
                    ));
                }
                *last = through;
            }
            Fact::Stepped { replica } => {
                let last = self.last.get(&replica.me()).copied().unwrap_or(Slot::NONE);
                if replica.decided() < last {
                    return Err(format!(
                        "{} goes back from {last} to {}",
                        replica.me(),
                        replica.decided()
                    ));
                }
            }
            Fact::Decided { voter, slot, .. } => {
                let last = self.last.entry(voter).or_insert(Slot::NONE);
                if slot != last.next() {
                    return Err(format!("{voter} takes {slot} for decided after {last}"));
                }
                *last = slot;
            }
            _ => {}
        }
        Ok(())
    }
}
