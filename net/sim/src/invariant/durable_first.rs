//! A promise or an acceptance leaves only when it is durable, with all that it tells.

use std::collections::BTreeMap;

use sprag_paxos::{Answer, Ballot, Message, Record, Slot, Voter};

use super::{Fact, Invariant, Known};
use crate::readable;

/// What a voter can't forget any more.
#[derive(Debug)]
struct Memory {
    promised: Ballot,
    /// By slot, the highest ballot accepted in.
    accepted: BTreeMap<Slot, Ballot>,
    /// Up to where a snapshot says what is decided: to accept there changes nothing.
    saved: Slot,
}

#[derive(Debug, Default)]
pub(super) struct DurableFirst {
    memories: BTreeMap<Voter, Memory>,
}

impl DurableFirst {
    fn memory(&mut self, voter: Voter) -> &mut Memory {
        self.memories.entry(voter).or_insert_with(|| Memory {
            promised: Ballot::NONE,
            accepted: BTreeMap::new(),
            saved: Slot::NONE,
        })
    }
}

impl Invariant for DurableFirst {
    fn name(&self) -> &'static str {
        "durable first"
    }

    fn source(&self) -> &'static str {
        "Lamport, Paxos Made Simple, 2001, section 2.5: an acceptor records its response in stable storage before sending it"
    }

    fn look(&mut self, _known: &Known, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Saved { voter, through } => {
                let memory = self.memory(voter);
                memory.saved = memory.saved.max(through);
                Ok(())
            }
            Fact::Durable { voter, record } => {
                let memory = self.memory(voter);
                match record {
                    Record::Promised(ballot) => memory.promised = memory.promised.max(*ballot),
                    Record::Accepted { slot, vote } => {
                        memory.promised = memory.promised.max(vote.ballot);
                        let accepted = memory.accepted.entry(*slot).or_insert(vote.ballot);
                        *accepted = vote.ballot.max(*accepted);
                    }
                    Record::Learned { .. } | Record::Decided(_) | Record::Trimmed(_) => {}
                }
                Ok(())
            }
            Fact::Sent { from, message } => {
                let memory = self.memories.get(&from);
                let promised = memory.map_or(Ballot::NONE, |memory| memory.promised);
                let accepted = |slot| {
                    let accepted = memory.and_then(|memory| memory.accepted.get(&slot));
                    accepted.copied().unwrap_or(Ballot::NONE)
                };
                let is_durable = match message {
                    Message::Prepare { ballot, .. } => promised >= *ballot,
                    Message::Promise {
                        ballot, answers, ..
                    } => {
                        let is_durable = |(slot, answer): &(Slot, Answer)| match answer {
                            Answer::Accepted(vote) => accepted(*slot) >= vote.ballot,
                            Answer::Never | Answer::Unknown(_) => true,
                        };
                        promised >= *ballot && answers.iter().all(is_durable)
                    }
                    Message::Accepted { ballot, slot } => {
                        let saved = memory.map_or(Slot::NONE, |memory| memory.saved);
                        let is_decided = *slot <= saved && promised >= *ballot;
                        is_decided || accepted(*slot) >= *ballot
                    }
                    _ => true,
                };
                if is_durable {
                    return Ok(());
                }
                Err(format!(
                    "{from} sends `{}`, of which not everything is durable",
                    readable::message(message)
                ))
            }
            _ => Ok(()),
        }
    }
}
