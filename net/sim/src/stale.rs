//! Messages of a while ago, lost then or not. A network may hold one back for as long as it likes; the worst moment is when
//! somebody else has come to stand or to lead.

use std::collections::VecDeque;

use sprag_paxos::{Message, Voter};

use crate::chance::Chance;

/// So many of the last are kept.
const KEPT_MAX: usize = 256;

/// At most so many come at once.
const COME_MAX: u64 = 32;

/// A message, by whom and for whom.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) from: Voter,
    pub(crate) to: Voter,
    pub(crate) message: Message,
}

/// The messages that were sent last.
#[derive(Debug)]
pub(crate) struct Stale {
    /// The newest first; `None` where none of them ever comes.
    kept: Option<VecDeque<Sent>>,
}

impl Stale {
    pub(crate) fn new(is_on: bool) -> Self {
        Self {
            kept: is_on.then(VecDeque::new),
        }
    }

    pub(crate) fn keep(&mut self, from: Voter, to: Voter, message: &Message) {
        if let Some(kept) = &mut self.kept {
            kept.truncate(KEPT_MAX - 1);
            kept.push_front(Sent {
                from,
                to,
                message: message.clone(),
            });
        }
    }

    /// Some of them, or of those for `to`, each with the numbers that say when it comes. The newer the likelier.
    pub(crate) fn some(&self, to: Voter, chance: Chance) -> Vec<(Sent, Chance)> {
        let is_for_all = chance.of(COME_MAX + 1).below(2) == 0;
        let kept = self.kept.iter().flatten();
        let kept: Vec<&Sent> = kept.filter(|sent| is_for_all || sent.to == to).collect();
        let count = match kept.len() {
            0 => 0,
            _ => chance.of(0).log_uniform(1, COME_MAX),
        };
        let come = (0..count).map(|number| {
            let chance = chance.of(1 + number);
            let back = chance.of(0).log_uniform(1, kept.len() as u64);
            (kept[back as usize - 1].clone(), chance.of(1))
        });
        come.collect()
    }
}

#[cfg(test)]
mod tests {
    use sprag_paxos::{Ballot, DiskId, NodeId};

    use super::*;

    fn voter(node: u16) -> Voter {
        Voter {
            node: NodeId(node),
            disk: DiskId(1),
        }
    }

    fn aye(round: u64) -> Message {
        let ballot = Ballot {
            round,
            ..Ballot::NONE
        };
        Message::Aye { ballot }
    }

    #[test]
    fn what_was_sent_last_comes_again_and_nothing_older() {
        let mut stale = Stale::new(true);
        let last = 2 * KEPT_MAX as u64;
        for round in 0..last {
            stale.keep(voter(0), voter(1), &aye(round));
        }
        let mut rounds = Vec::new();
        for seed in 0..1000 {
            for (sent, _) in stale.some(voter(1), Chance::new(seed)) {
                let Message::Aye { ballot } = sent.message else {
                    unreachable!("none other was sent");
                };
                rounds.push(ballot.round);
            }
        }
        assert!(rounds.iter().all(|round| *round >= last - KEPT_MAX as u64));
        assert!(rounds.contains(&(last - 1)));
        assert!(
            rounds
                .iter()
                .any(|round| *round < last - KEPT_MAX as u64 / 2)
        );
    }

    #[test]
    fn where_none_comes_none_is_kept() {
        let mut stale = Stale::new(false);
        stale.keep(voter(0), voter(1), &aye(1));
        assert!(stale.some(voter(1), Chance::new(0)).is_empty());
        assert!(Stale::new(true).some(voter(1), Chance::new(0)).is_empty());
    }
}
