//! Once an entry is chosen in a ballot, no higher ballot proposes another.

use super::{Fact, Invariant, Known, proposals};
use crate::readable;

#[derive(Debug)]
pub(super) struct SafeProposal;

impl Invariant for SafeProposal {
    fn name(&self) -> &'static str {
        "safe proposal"
    }

    fn source(&self) -> &'static str {
        "Lamport, Paxos Made Simple, 2001, section 2.2: P2b; The Part-Time Parliament, 1998, section 2.1: B3"
    }

    fn look(&mut self, known: &Known, fact: &Fact<'_>) -> Result<(), String> {
        // Either may come first: the proposal, or the vote by which something is chosen in a lower ballot.
        let Some((slot, ..)) = proposals::shown(fact) else {
            return Ok(());
        };
        let Some((ballot, chosen)) = known.votes.chosen(slot) else {
            return Ok(());
        };
        let mut proposed = known.proposals.from(slot, *ballot);
        match proposed.find(|(_, entry)| *entry != chosen) {
            None => Ok(()),
            Some((higher, entry)) => Err(format!(
                "{slot} is chosen {} in {ballot}, and {higher} proposes {}",
                readable::entry(chosen),
                readable::entry(entry)
            )),
        }
    }
}
