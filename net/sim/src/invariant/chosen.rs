//! What a voter takes for decided, or tells others that it is, a quorum has accepted in one ballot, durably.

use sprag_paxos::Message;

use super::{Fact, Invariant, Known};
use crate::readable;

#[derive(Debug)]
pub(super) struct Chosen;

impl Invariant for Chosen {
    fn name(&self) -> &'static str {
        "decided is chosen"
    }

    fn source(&self) -> &'static str {
        "Lamport, Paxos Made Simple, 2001, section 2.1: nobody learns that a value is chosen unless it is"
    }

    fn look(&mut self, known: &Known, fact: &Fact<'_>) -> Result<(), String> {
        match *fact {
            Fact::Decided { voter, slot, entry } => match known.votes.chosen(slot) {
                Some((_, chosen)) if chosen == entry => Ok(()),
                chosen => {
                    let chosen = chosen.map_or_else(
                        || "nothing".to_owned(),
                        |(ballot, entry)| format!("{} in {ballot}", readable::entry(entry)),
                    );
                    Err(format!(
                        "{voter} takes {} for decided in {slot}; the durable votes choose {chosen}",
                        readable::entry(entry)
                    ))
                }
            },
            Fact::Sent {
                from,
                message: Message::Commit { ballot, slot },
            } if !known
                .votes
                .is_chosen_in(&known.configuration, *slot, *ballot) =>
            {
                Err(format!(
                    "{from} says that {slot} is chosen in {ballot}; its durable votes are no quorum"
                ))
            }
            _ => Ok(()),
        }
    }
}
