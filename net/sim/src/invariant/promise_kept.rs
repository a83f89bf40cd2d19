//! What a voter promised holds for ever, whatever it goes through: it accepts nothing below, and promises nothing lower. To
//! accept in a ballot is to promise it.

use std::collections::BTreeMap;

use sprag_paxos::{Ballot, Message, Record, Voter};

use super::{Fact, Invariant, Known};

#[derive(Debug, Default)]
pub(super) struct PromiseKept {
    /// The highest ballot that each voter told others it had promised or accepted.
    told: BTreeMap<Voter, Ballot>,
}

impl PromiseKept {
    fn told(&self, voter: Voter) -> Ballot {
        self.told.get(&voter).copied().unwrap_or(Ballot::NONE)
    }
}

impl Invariant for PromiseKept {
    fn name(&self) -> &'static str {
        "promise kept"
    }

    fn source(&self) -> &'static str {
        "Lamport, Paxos Made Simple, 2001, section 2.2: P1a"
    }

    fn look(&mut self, _known: &Known, fact: &Fact<'_>) -> Result<(), String> {
        let (voter, ballot) = match *fact {
            Fact::Sent {
                from,
                message: Message::Promise { ballot, .. } | Message::Accepted { ballot, .. },
            } => (from, *ballot),
            Fact::Durable {
                voter,
                record: Record::Accepted { vote, .. },
            } => (voter, vote.ballot),
            Fact::Started { replica } | Fact::Stepped { replica } => {
                (replica.me(), replica.acceptor().promised())
            }
            _ => return Ok(()),
        };
        let told = self.told(voter);
        if ballot < told {
            return Err(format!(
                "{voter} has promised {told}, and now takes part in {ballot}"
            ));
        }
        if matches!(fact, Fact::Sent { .. }) {
            self.told.insert(voter, ballot);
        }
        Ok(())
    }
}
