//! A voter proposes in ballots of its own, and begins none twice.

use std::collections::BTreeMap;

use sprag_paxos::{Ballot, Message, Voter};

use super::{Fact, Invariant, Known};

#[derive(Debug, Default)]
pub(super) struct OwnBallots {
    /// How often each voter started.
    starts: BTreeMap<Voter, u32>,
    /// By ballot, in which of its voter's lives it was begun.
    begun: BTreeMap<Ballot, u32>,
}

impl Invariant for OwnBallots {
    fn name(&self) -> &'static str {
        "own ballots"
    }

    fn source(&self) -> &'static str {
        "Lamport, The Part-Time Parliament, 1998, section 2.1: each ballot in B has a unique ballot number (B1)"
    }

    fn look(&mut self, _known: &Known, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Started { replica } => *self.starts.entry(replica.me()).or_default() += 1,
            Fact::Sent { from, message } => {
                let (Message::Prepare { ballot, .. } | Message::Accept { ballot, .. }) = message
                else {
                    return Ok(());
                };
                if ballot.voter != from {
                    return Err(format!("{from} proposes in {ballot}, which is not its own"));
                }
                let now = self.starts.get(&from).copied().unwrap_or_default();
                let begun = *self.begun.entry(*ballot).or_insert(now);
                if begun != now {
                    return Err(format!(
                        "{from} begins {ballot} in life {now:?}, and did before in {begun:?}"
                    ));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
