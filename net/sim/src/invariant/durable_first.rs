//! A promise or an acceptance leaves only when it is durable, with all that it tells; and that slots are decided is put on
//! record only when what they hold is durable.

use std::collections::{BTreeMap, BTreeSet};

use sprag_paxos::{Answer, Ballot, Entry, Message, Record, Slot, Voter};

use super::{Fact, Invariant, Known};
use crate::readable;

/// What a voter can't forget any more.
#[derive(Debug, Default)]
struct Memory {
    promised: Option<Ballot>,
    /// By slot, the highest ballot accepted in.
    accepted: BTreeMap<Slot, Ballot>,
    /// Up to where a snapshot says what is decided: to accept there changes nothing.
    saved: Option<Slot>,
    /// By slot, what is on record there, durably.
    held: BTreeMap<Slot, Entry>,
    /// The slots in which something else is on its way there.
    written: BTreeSet<Slot>,
}

impl Memory {
    /// A record is on its way; all that it speaks of must be durable.
    fn write(&mut self, record: &Record) -> Result<(), String> {
        if let Some((slot, entry)) = held(record)
            && self.held.get(&slot) != Some(entry)
        {
            self.written.insert(slot);
        }
        match (record, self.written.first()) {
            (Record::Decided(decided), Some(first)) if first <= decided => Err(format!(
                "puts on record that everything up to {decided} is decided, and what {first} holds isn't durable"
            )),
            _ => Ok(()),
        }
    }

    /// A record can't be forgotten any more.
    fn keep(&mut self, record: &Record) {
        if let Some((slot, entry)) = held(record) {
            self.held.insert(slot, entry.clone());
            self.written.remove(&slot);
        }
        match record {
            Record::Promised(ballot) => self.promise(*ballot),
            Record::Accepted { slot, vote } => {
                self.promise(vote.ballot);
                let accepted = self.accepted.entry(*slot).or_insert(vote.ballot);
                *accepted = vote.ballot.max(*accepted);
            }
            Record::Learned { .. } | Record::Decided(_) | Record::Trimmed(_) => {}
        }
    }

    fn promise(&mut self, ballot: Ballot) {
        self.promised = self.promised.max(Some(ballot));
    }

    /// Whether all that a message tells is durable.
    fn holds(&self, message: &Message) -> bool {
        let has_promised = |ballot| self.promised.unwrap_or(Ballot::NONE) >= ballot;
        let has_accepted = |slot, ballot| {
            let accepted = self.accepted.get(&slot).copied();
            accepted.unwrap_or(Ballot::NONE) >= ballot
        };
        match message {
            Message::Prepare { ballot, .. } => has_promised(*ballot),
            Message::Promise {
                ballot, answers, ..
            } => {
                let is_durable = |(slot, answer): &(Slot, Answer)| match answer {
                    Answer::Accepted(vote) => has_accepted(*slot, vote.ballot),
                    Answer::Never | Answer::Unknown(_) => true,
                };
                has_promised(*ballot) && answers.iter().all(is_durable)
            }
            Message::Accepted { ballot, slot } => {
                let is_decided = Some(*slot) <= self.saved && has_promised(*ballot);
                is_decided || has_accepted(*slot, *ballot)
            }
            _ => true,
        }
    }
}

/// What a record says that a slot holds.
fn held(record: &Record) -> Option<(Slot, &Entry)> {
    match record {
        Record::Accepted { slot, vote } => Some((*slot, &vote.entry)),
        Record::Learned { slot, entry } => Some((*slot, entry)),
        Record::Promised(_) | Record::Decided(_) | Record::Trimmed(_) => None,
    }
}

#[derive(Debug, Default)]
pub(super) struct DurableFirst {
    memories: BTreeMap<Voter, Memory>,
}

impl DurableFirst {
    fn memory(&mut self, voter: Voter) -> &mut Memory {
        self.memories.entry(voter).or_default()
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
                memory.saved = memory.saved.max(Some(through));
                Ok(())
            }
            Fact::Written { voter, record } => {
                let written = self.memory(voter).write(record);
                written.map_err(|what| format!("{voter} {what}"))
            }
            Fact::Durable { voter, record } => {
                self.memory(voter).keep(record);
                Ok(())
            }
            // The promise may be durable without the acceptance for which it was raised.
            Fact::Started { replica } => {
                let memory = self.memory(replica.me());
                memory.promise(replica.acceptor().promised());
                memory.written.clear();
                Ok(())
            }
            Fact::Sent { from, message } => {
                if self.memory(from).holds(message) {
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

#[cfg(test)]
mod tests {
    use sprag_paxos::{Configuration, DiskId, NodeId, Options, Recovered, Replica};

    use super::*;

    #[test]
    fn what_a_voter_starts_with_is_durable_and_what_comes_later_is_not_before_it_is_said() {
        let voter = Voter {
            node: NodeId(0),
            disk: DiskId(7),
        };
        let configuration = Configuration::new(vec![voter]).unwrap();
        let known = Known::new(configuration.clone());
        let ballot = |round| Ballot { round, voter };
        let options = Options {
            me: voter,
            configuration,
            election_ns: 20,
            beat_ns: 5,
            window_slots: 1,
            batch_bytes_max: 1,
            pending_bytes_max: 1,
            page_bytes_max: 1,
            seed: 0,
        };
        let recovered = Recovered {
            promised: ballot(3),
            ..Recovered::default()
        };
        let replica = &Replica::new(0, options, recovered).unwrap();
        let mut invariant = DurableFirst::default();
        let mut sends = |round, started: bool| {
            if started {
                invariant.look(&known, &Fact::Started { replica }).unwrap();
            }
            let message = &Message::Promise {
                ballot: ballot(round),
                from: Slot(1),
                answers: Vec::new(),
                next: None,
                decided: Slot::NONE,
            };
            let from = voter;
            invariant.look(&known, &Fact::Sent { from, message })
        };
        assert!(sends(3, false).is_err());
        assert!(sends(3, true).is_ok());
        assert!(sends(4, false).is_err());
    }
}
