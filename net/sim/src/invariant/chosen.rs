//! What a voter takes for decided, or tells others that it is, a quorum has accepted in one ballot, durably.

use sprag_paxos::{Message, Slot};

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
                message:
                    Message::Commit { decided, .. }
                    | Message::Beat { decided, .. }
                    | Message::Accept { decided, .. }
                    | Message::Promise { decided, .. },
            } if *decided > known.votes.chosen_up_to() => Err(format!(
                "{from} says that everything up to {decided} is decided; the durable votes choose up to {}",
                known.votes.chosen_up_to()
            )),
            Fact::Sent {
                from,
                message:
                    Message::Entries {
                        from: first,
                        entries,
                    },
            } => {
                let slots = (first.0..).map(Slot).zip(entries);
                let chosen = |slot| known.votes.chosen(slot).map(|(_, entry)| entry);
                match slots
                    .into_iter()
                    .find(|(slot, entry)| chosen(*slot) != Some(entry))
                {
                    None => Ok(()),
                    Some((slot, entry)) => Err(format!(
                        "{from} says that {slot} is decided to hold {}; the durable votes choose {}",
                        readable::entry(entry),
                        readable::entry_if_any(chosen(slot))
                    )),
                }
            }
            _ => Ok(()),
        }
    }
}
