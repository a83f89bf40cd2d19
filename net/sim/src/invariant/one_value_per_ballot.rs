//! In one ballot, one slot is proposed one entry.

use std::collections::BTreeMap;

use sprag_paxos::{Ballot, Entry, Message, Record, Slot};

use super::{Fact, Invariant, Known};
use crate::readable;

#[derive(Debug, Default)]
pub(super) struct OneValuePerBallot {
    proposed: BTreeMap<(Slot, Ballot), Entry>,
}

impl Invariant for OneValuePerBallot {
    fn name(&self) -> &'static str {
        "one value per ballot"
    }

    fn source(&self) -> &'static str {
        "Lamport, The Paxos Algorithm (TLA+), 2012, module Voting: OneValuePerBallot"
    }

    fn look(&mut self, _known: &Known, fact: &Fact<'_>) -> Result<(), String> {
        let (ballot, slot, entry) = match *fact {
            Fact::Sent {
                message:
                    Message::Accept {
                        ballot,
                        slot,
                        entry,
                        ..
                    },
                ..
            } => (*ballot, *slot, entry),
            Fact::Durable {
                record: Record::Accepted { slot, vote },
                ..
            } => (vote.ballot, *slot, &vote.entry),
            _ => return Ok(()),
        };
        let first = self
            .proposed
            .entry((slot, ballot))
            .or_insert_with(|| entry.clone());
        if first == entry {
            return Ok(());
        }
        Err(format!(
            "{slot} is proposed both {} and {} in {ballot}",
            readable::entry(first),
            readable::entry(entry)
        ))
    }
}
