//! In one ballot, one slot is proposed one entry.

use super::{Fact, Invariant, Known, proposals};
use crate::readable;

#[derive(Debug)]
pub(super) struct OneValuePerBallot;

impl Invariant for OneValuePerBallot {
    fn name(&self) -> &'static str {
        "one value per ballot"
    }

    fn source(&self) -> &'static str {
        "Lamport, The Paxos Algorithm (TLA+), 2012, module Voting: OneValuePerBallot"
    }

    fn look(&mut self, known: &Known, fact: &Fact<'_>) -> Result<(), String> {
        let Some((slot, ballot, entry)) = proposals::shown(fact) else {
            return Ok(());
        };
        match known.proposals.first(slot, ballot) {
            Some(first) if first != entry => Err(format!(
                "{slot} is proposed both {} and {} in {ballot}",
                readable::entry(first),
                readable::entry(entry)
            )),
            _ => Ok(()),
        }
    }
}
