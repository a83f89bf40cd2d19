//! The learner: what is decided, slot after slot.

use std::collections::BTreeMap;

use crate::acceptor::Acceptor;
use crate::entry::{Entry, Slot};

/// What a voter knows to be decided: everything up to a slot, and no more than that.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Learner {
    decided: Slot,
    /// What was learned from others and wasn't accepted here in the ballot that decided it.
    learned: BTreeMap<Slot, Entry>,
}

impl Learner {
    pub(crate) fn new(decided: Slot, learned: BTreeMap<Slot, Entry>) -> Self {
        Self { decided, learned }
    }

    /// Everything up to this slot is decided.
    pub(crate) fn decided(&self) -> Slot {
        self.decided
    }

    /// What a decided slot holds.
    pub(crate) fn entry<'a>(&'a self, acceptor: &'a Acceptor, slot: Slot) -> Option<&'a Entry> {
        if slot > self.decided {
            return None;
        }
        let learned = self.learned.get(&slot);
        learned.or_else(|| acceptor.vote(slot).map(|vote| &vote.entry))
    }

    /// The next slot is decided, to hold what was accepted there.
    pub(crate) fn advance(&mut self) {
        self.decided = self.decided.next();
    }

    /// The next slot is decided, to hold `entry`, which somebody else says.
    pub(crate) fn learn(&mut self, entry: Entry) {
        self.advance();
        self.learned.insert(self.decided, entry);
    }

    /// For a planted bug only: goes back.
    pub(crate) fn go_back_to(&mut self, slot: Slot) {
        self.decided = self.decided.min(slot);
    }
}
