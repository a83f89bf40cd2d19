//! The learner: what is decided, slot after slot.

use std::collections::BTreeMap;

use crate::acceptor::Acceptor;
use crate::entry::{Entry, Slot};

/// What a voter knows to be decided: everything up to a slot, and no more than that.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Learner {
    /// Up to here, only a snapshot holds what is decided.
    trimmed: Slot,
    decided: Slot,
    /// What was learned from others and wasn't accepted here in the ballot that decided it.
    learned: BTreeMap<Slot, Entry>,
}

impl Learner {
    pub(crate) fn new(trimmed: Slot, decided: Slot, learned: BTreeMap<Slot, Entry>) -> Self {
        Self {
            trimmed,
            decided,
            learned,
        }
    }

    /// Up to this slot, only a snapshot holds what is decided.
    pub(crate) fn trimmed(&self) -> Slot {
        self.trimmed
    }

    /// Forgets what the slots up to `slot` hold.
    pub(crate) fn trim(&mut self, slot: Slot) {
        self.trimmed = self.trimmed.max(slot);
        self.learned = self.learned.split_off(&slot.next());
    }

    /// Everything up to `slot` is decided, and in a snapshot.
    pub(crate) fn skip_to(&mut self, slot: Slot) {
        self.decided = self.decided.max(slot);
        self.trim(slot);
    }

    /// Everything up to this slot is decided.
    pub(crate) fn decided(&self) -> Slot {
        self.decided
    }

    /// What a decided slot holds, unless only a snapshot does.
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

    /// For a planted bug only: everything up to `slot` is decided, and is what was accepted there.
    pub(crate) fn pass_over(&mut self, slot: Slot) {
        self.decided = self.decided.max(slot);
    }

    /// For a planted bug only: goes back.
    pub(crate) fn go_back_to(&mut self, slot: Slot) {
        self.decided = self.decided.min(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ballot, entry, voters};

    #[test]
    fn a_decided_slot_holds_what_was_learned_else_what_was_accepted_and_an_undecided_one_nothing() {
        let mut acceptor = Acceptor::recovered(crate::ballot::Ballot::NONE, BTreeMap::new());
        for slot in [1, 2, 4] {
            let accepted =
                acceptor.accept(ballot(1, voters(3)[0]), Slot(slot), &entry(b"accepted"));
            assert_eq!(accepted, Ok(true));
        }
        let mut learner = Learner::new(Slot::NONE, Slot::NONE, BTreeMap::new());
        learner.advance();
        learner.learn(entry(b"learned"));
        learner.learn(Entry::Noop);
        assert_eq!(learner.decided(), Slot(3));
        let expected = [
            (0, None),
            (1, Some(entry(b"accepted"))),
            (2, Some(entry(b"learned"))),
            (3, Some(Entry::Noop)),
            (4, None),
        ];
        for (slot, entry) in expected {
            assert_eq!(
                learner.entry(&acceptor, Slot(slot)),
                entry.as_ref(),
                "slot {slot}"
            );
        }
        learner.trim(Slot(2));
        acceptor.trim(Slot(2));
        assert_eq!((learner.trimmed(), learner.decided()), (Slot(2), Slot(3)));
        assert_eq!(learner.entry(&acceptor, Slot(2)), None);
        assert_eq!(learner.entry(&acceptor, Slot(3)), Some(&Entry::Noop));
        learner.skip_to(Slot(5));
        assert_eq!((learner.trimmed(), learner.decided()), (Slot(5), Slot(5)));
    }
}
