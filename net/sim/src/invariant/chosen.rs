//! What a voter takes for decided, or tells others that it is, a quorum has accepted in one ballot, durably.

use sprag_paxos::{Message, Slot};

use super::{Fact, Invariant, Known};

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
                chosen => Err(format!(
                    "{voter} takes {entry:?} for decided in {slot}; the durable votes choose {chosen:?}"
                )),
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
                        "{from} says that {slot} is decided to hold {entry:?}; the durable votes choose {:?}",
                        chosen(slot)
                    )),
                }
            }
            _ => Ok(()),
        }
    }
}
