//! What the log holds of each slot: where its last acceptance lies, and how high one may have been that can't be read.

use std::collections::VecDeque;

use sprag_paxos::{Ballot, Slot};

use crate::cell::Cell;

/// The slots above the last that was trimmed.
pub(crate) struct Slots {
    trimmed: Slot,
    /// The slot of the first that is held.
    first: Slot,
    held: VecDeque<Held>,
}

/// What is held of a slot.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    /// The generation of the segment, and the record's cell, of the acceptance in the highest ballot.
    pub(crate) accepted: Option<(u64, Cell)>,
    /// The highest ballot of an acceptance that can't be read.
    pub(crate) unreadable: Ballot,
}

impl Held {
    const NOTHING: Held = Held {
        accepted: None,
        unreadable: Ballot::NONE,
    };
}

impl Slots {
    pub(crate) fn new(trimmed: Slot) -> Slots {
        Slots {
            trimmed,
            first: trimmed.next(),
            held: VecDeque::new(),
        }
    }

    pub(crate) fn trimmed(&self) -> Slot {
        self.trimmed
    }

    /// A record says that something was accepted.
    pub(crate) fn accept(&mut self, generation: u64, cell: Cell) {
        if let Some(held) = self.at(cell.slot) {
            let newer = |(_, held): (u64, Cell)| held.ballot <= cell.ballot;
            if held.accepted.is_none_or(newer) {
                held.accepted = Some((generation, cell));
            }
        }
    }

    /// A record says that something was accepted, and can't be read.
    pub(crate) fn cannot_read(&mut self, slot: Slot, ballot: Ballot) {
        if let Some(held) = self.at(slot) {
            held.unreadable = held.unreadable.max(ballot);
        }
    }

    /// What is held of a slot above the last that was trimmed.
    pub(crate) fn get(&self, slot: Slot) -> Held {
        let index = slot.0.checked_sub(self.first.0);
        let held = index.and_then(|index| self.held.get(index as usize));
        held.copied().unwrap_or(Held::NOTHING)
    }

    /// The slots of which something is held, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Slot, Held)> {
        let slots = (self.first.0..).map(Slot).zip(self.held.iter().copied());
        slots.filter(|(_, held)| held.accepted.is_some() || held.unreadable > Ballot::NONE)
    }

    /// Forgets every slot up to `slot`.
    pub(crate) fn trim(&mut self, slot: Slot) {
        if slot <= self.trimmed {
            return;
        }
        self.trimmed = slot;
        let gone = slot
            .next()
            .0
            .saturating_sub(self.first.0)
            .min(self.held.len() as u64);
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
