//! What must hold in every state. They rest on what left the nodes and on what is durable, not on what a node thinks.

use std::fmt;

use sprag_paxos::{Ballot, Configuration, Entry, Message, Phase, Slot, Voter, VoterSet};

use crate::letter::Letters;
use crate::node::Node;

/// An invariant that is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub invariant: &'static str,
    /// How.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.what)
    }
}

/// What a node says by a step, for all to rely on.
#[derive(Clone, Debug)]
pub(crate) enum Claim {
    /// The slot is decided to hold this.
    Decided { slot: Slot, entry: Entry },
    /// Something is chosen in every slot up to this one.
    ChosenUpTo(Slot),
    /// Nothing but this may have been chosen in the slot in a lower ballot.
    Proposed {
        slot: Slot,
        ballot: Ballot,
        entry: Entry,
    },
}

impl Claim {
    pub(crate) fn of(message: &Message) -> Vec<Claim> {
        match message {
            Message::Commit { decided, .. } | Message::Beat { decided, .. } => {
                vec![Claim::ChosenUpTo(*decided)]
            }
            Message::Accept {
                ballot,
                slot,
                entry,
                decided,
            } => {
                let proposed = Claim::Proposed {
                    slot: *slot,
                    ballot: *ballot,
                    entry: entry.clone(),
                };
                vec![proposed, Claim::ChosenUpTo(*decided)]
            }
            Message::Entries { from, entries } => {
                let slots = (from.0..).map(Slot);
                let decided = slots.zip(entries.iter().cloned());
                decided
                    .map(|(slot, entry)| Claim::Decided { slot, entry })
                    .collect()
            }
            _ => Vec::new(),
        }
    }
}

/// What a voter told others that it promised holds for ever, after a crash too: it takes part in nothing below. To accept in
/// a ballot is to promise it. (Lamport, Paxos Made Simple, 2001, section 2.2: P1a.)
pub(crate) fn promise_kept(node: &Node, letters: &Letters) -> Result<(), Broken> {
    let told = told(node, letters);
    if node.promised() >= told {
        return Ok(());
    }
    Err(Broken {
        invariant: "promise kept",
        what: format!("{told} was promised, now it is {}", node.promised()),
    })
}

/// What a voter may say next, by what it said before. It promises and accepts nothing below what it promised before; it
/// proposes in its own ballots, and for each slot one entry in each. (Lamport, The Part-Time Parliament, 1998, section
/// 2.1: B1; The Paxos Algorithm (TLA+), 2012, module Voting: `OneValuePerBallot`.)
pub(crate) fn own_word(
    node: &Node,
    letters: &Letters,
    me: Voter,
    message: &Message,
) -> Result<(), Broken> {
    match message {
        Message::Promise { ballot, .. } | Message::Accepted { ballot, .. } => {
            let told = told(node, letters);
            if *ballot < told {
                return Err(Broken {
                    invariant: "promise kept",
                    what: format!("{me} promised {told}, and sends {message:?}"),
                });
            }
        }
        Message::Accept {
            ballot,
            slot,
            entry,
            ..
        } => {
            let is_other = |sent: &Message| match sent {
                Message::Accept {
                    ballot: b,
                    slot: s,
                    entry: e,
                    ..
                } => (b, s) == (ballot, slot) && e != entry,
                _ => false,
            };
            let mut sent = node
                .sent()
                .iter()
                .map(|number| &letters.get(*number).message);
            if ballot.voter != me || sent.any(is_other) {
                return Err(Broken {
                    invariant: "one value per ballot",
                    what: format!("{me} sends {message:?}, which isn't the ballot's only value"),
                });
            }
        }
        _ => {}
    }
    Ok(())
}

/// The highest ballot that a node told others it had promised or accepted.
fn told(node: &Node, letters: &Letters) -> Ballot {
    let told = node
        .sent()
        .iter()
        .map(|number| match &letters.get(*number).message {
            Message::Promise { ballot, .. } | Message::Accepted { ballot, .. } => *ballot,
            _ => Ballot::NONE,
        });
    told.max().unwrap_or(Ballot::NONE)
}

/// What the durable votes of all nodes have chosen: by slot, and with the lowest ballot that did.
#[derive(Debug, Default)]
pub(crate) struct Chosen<'a>(Vec<(Slot, Ballot, &'a Entry)>);

impl<'a> Chosen<'a> {
    pub(crate) fn by(configuration: &Configuration, nodes: &[&'a Node]) -> Self {
        // Few nodes with few votes: a search is faster than a map.
        let mut polls: Vec<(Slot, Ballot, &Entry, VoterSet)> = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            for (slot, ballot, entry) in node.disk().votes() {
                let place = polls
                    .iter()
                    .position(|poll| (poll.0, poll.1, poll.2) == (slot, ballot, entry));
                let place = place.unwrap_or_else(|| {
                    polls.push((slot, ballot, entry, VoterSet::default()));
                    polls.len() - 1
                });
                polls[place].3.insert(index);
            }
        }
        polls.retain(|poll| configuration.is_quorum(Phase::Two, poll.3));
        polls.sort_unstable_by_key(|poll| (poll.0, poll.1));
        Self(
            polls
                .into_iter()
                .map(|(slot, ballot, entry, _)| (slot, ballot, entry))
                .collect(),
        )
    }

    /// One entry is chosen for a slot, in whatever ballots. (Lamport, Paxos Made Simple, 2001, section 2.1.)
    pub(crate) fn is_one(&self) -> Result<(), Broken> {
        let other = self
            .0
            .windows(2)
            .find(|pair| pair[0].0 == pair[1].0 && pair[0].2 != pair[1].2);
        other.map_or(Ok(()), |pair| {
            let what = format!("{:?} is chosen, and {:?} too", pair[0], pair[1]);
            Err(Broken {
                invariant: "agreement",
                what,
            })
        })
    }

    /// What is said to be decided is chosen; what is proposed leaves what is chosen in a lower ballot as it is. (The same,
    /// section 2.2: P2b.)
    pub(crate) fn allows(&self, claim: &Claim) -> Result<(), Broken> {
        let (invariant, is_true) = match claim {
            Claim::Decided { slot, entry } => (
                "decided is chosen",
                self.0
                    .iter()
                    .any(|(s, _, chosen)| s == slot && *chosen == entry),
            ),
            Claim::ChosenUpTo(last) => (
                "decided is chosen",
                (1..=last.0).all(|slot| self.0.iter().any(|(s, _, _)| s.0 == slot)),
            ),
            Claim::Proposed {
                slot,
                ballot,
                entry,
            } => (
                "safe proposal",
                self.0
                    .iter()
                    .all(|(s, b, chosen)| s != slot || b >= ballot || *chosen == entry),
            ),
        };
        if is_true {
            return Ok(());
        }
        let what = format!("{claim:?}, where what is chosen is {:?}", self.0);
        Err(Broken { invariant, what })
    }
}
