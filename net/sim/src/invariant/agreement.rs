//! No two voters take different entries of one slot for decided, and what they take was asked for by somebody.

use std::collections::{BTreeMap, BTreeSet};

use sprag_paxos::{Entry, Slot};

use super::{Fact, Invariant, Known};
use crate::readable;

#[derive(Debug, Default)]
pub(super) struct Agreement {
    wanted: BTreeSet<Entry>,
    decided: BTreeMap<Slot, Entry>,
}

impl Invariant for Agreement {
    fn name(&self) -> &'static str {
        "agreement"
    }

    fn source(&self) -> &'static str {
        "Lamport, Paxos Made Simple, 2001, section 2.1: only a single value is chosen, of those proposed"
    }

    fn look(&mut self, _known: &Known, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Wanted { entry } => {
                self.wanted.insert(entry.clone());
            }
            Fact::Decided { voter, slot, entry } => {
                if *entry != Entry::Noop && !self.wanted.contains(entry) {
                    return Err(format!(
                        "{voter} takes {} for decided, which nobody asked for",
                        readable::entry(entry)
                    ));
                }
                let first = self.decided.entry(slot).or_insert_with(|| entry.clone());
                if first != entry {
                    return Err(format!(
                        "{voter} takes {} for decided in {slot}, others {}",
                        readable::entry(entry),
                        readable::entry(first)
                    ));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
