//! No two voters take different entries of one slot for decided, and what they take was asked for by somebody.

use std::collections::{BTreeMap, BTreeSet};

use sprag_paxos::{Entry, Slot, commands};

use super::{Fact, Invariant, Known};
use crate::readable;

#[derive(Debug, Default)]
pub(super) struct Agreement {
    wanted: BTreeSet<Vec<u8>>,
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
            Fact::Wanted { command } => {
                self.wanted.insert(command.to_vec());
            }
            Fact::Decided { voter, slot, entry } => {
                if let Some(first) = self.decided.get(&slot) {
                    if first == entry {
                        return Ok(());
                    }
                    return Err(format!(
                        "{voter} takes {} for decided in {slot}, others {}",
                        readable::entry(entry),
                        readable::entry(first)
                    ));
                }
                let mut commands = commands(entry);
                if let Some(command) = commands.find(|command| !self.wanted.contains(*command)) {
                    return Err(format!(
                        "{voter} takes {} for decided in {slot}, which nobody asked for",
                        readable::command(command)
                    ));
                }
                self.decided.insert(slot, entry.clone());
            }
            _ => {}
        }
        Ok(())
    }
}
