//! What the log holds of each slot: where its last acceptance lies and what was learned since, and how high an acceptance
//! may have been that can't be read; and which slots are trimmed and decided.

use std::collections::VecDeque;

use sprag_paxos::{Ballot, Slot};

use crate::cell::Cell;

/// The slots above the last that was trimmed.
pub(crate) struct Slots {
    trimmed: Slot,
    /// All slots up to this one are decided, as far as records say.
    decided: Slot,
    /// The slot of the first that is held.
    first: Slot,
    held: VecDeque<Held>,
}

/// What is held of a slot. Records are named by the generation of their segment and their cell.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    /// The acceptance in the highest ballot.
    pub(crate) accepted: Option<(u64, Cell)>,
    /// What was learned last, and not accepted since.
    pub(crate) learned: Option<(u64, Cell)>,
    /// The highest ballot of an acceptance that can't be read.
    pub(crate) unreadable: Ballot,
    /// Whether what came last can't be read.
    pub(crate) is_unread: bool,
}

impl Held {
    const NOTHING: Held = Held {
        accepted: None,
        learned: None,
        unreadable: Ballot::NONE,
        is_unread: false,
    };
}

impl Slots {
    pub(crate) fn new(trimmed: Slot, decided: Slot) -> Slots {
        Slots {
            trimmed,
            decided,
            first: Slot(trimmed.0.saturating_add(1)),
            held: VecDeque::new(),
        }
    }

    pub(crate) fn trimmed(&self) -> Slot {
        self.trimmed
    }

    pub(crate) fn decided(&self) -> Slot {
        self.decided
    }

    /// A record says that what is decided is what is held up to `slot`: it may take back what an earlier one said, but for
    /// what is trimmed.
    pub(crate) fn decide(&mut self, slot: Slot) {
        self.decided = slot.max(self.trimmed);
    }

    /// A record that is whole says what was accepted or learned.
    pub(crate) fn note(&mut self, generation: u64, cell: Cell) {
        let is_accepted = cell.is_accepted();
        if !(is_accepted || cell.is_learned()) {
            return;
        }
        if let Some(held) = self.at(cell.slot) {
            let record = Some((generation, cell));
            held.is_unread = false;
            if !is_accepted {
                held.learned = record;
                return;
            }
            held.learned = None;
            let is_newer = |(_, last): (u64, Cell)| last.ballot <= cell.ballot;
            if held.accepted.is_none_or(is_newer) {
                held.accepted = record;
            }
        }
    }

    /// A record of an acceptance, or of what was learned, can't be read.
    pub(crate) fn note_unreadable(&mut self, cell: &Cell) {
        if let Some(held) = self.at(cell.slot) {
            held.learned = None;
            // A ballot has one entry for a slot: what was accepted before in this one is the same.
            let is_same = |(_, last): (u64, Cell)| cell.is_accepted() && last.ballot == cell.ballot;
            held.is_unread = !held.accepted.is_some_and(is_same);
            if held.is_unread {
                held.unreadable = held.unreadable.max(cell.ballot);
            }
        }
    }

    /// What is held of a slot above the last that was trimmed.
    pub(crate) fn get(&self, slot: Slot) -> Held {
        let index = slot.0.checked_sub(self.first.0);
        let held = index.and_then(|index| self.held.get(index as usize));
        held.copied().unwrap_or(Held::NOTHING)
    }

    /// The slots of which something is held, in order, and perhaps some of which nothing is.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Slot, Held)> {
        (self.first.0..).map(Slot).zip(self.held.iter().copied())
    }

    /// Forgets every slot up to `slot`; all of them are decided.
    pub(crate) fn trim(&mut self, slot: Slot) {
        if slot <= self.trimmed {
            return;
        }
        self.trimmed = slot;
        self.decided = self.decided.max(slot);
        let gone = slot.0.checked_sub(self.first.0);
        let gone = gone.map_or(0, |before| before.saturating_add(1));
        let gone = gone.min(self.held.len() as u64);
        self.held.drain(..gone as usize);
        self.first = Slot(self.first.0 + gone);
    }

    fn at(&mut self, slot: Slot) -> Option<&mut Held> {
        if slot <= self.trimmed {
            return None;
        }
        if self.held.is_empty() {
            self.first = slot;
        }
        while slot < self.first {
            self.held.push_front(Held::NOTHING);
            self.first = Slot(self.first.0 - 1);
        }
        let index = (slot.0 - self.first.0) as usize;
        if index >= self.held.len() {
            self.held.resize(index + 1, Held::NOTHING);
        }
        self.held.get_mut(index)
    }
}
