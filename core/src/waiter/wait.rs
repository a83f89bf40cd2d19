//! Waits as a search for deadlocks sees them: see [`crate::lock::deadlock`]. Owns reading them.

use super::{PASSED, Ticket, WAITING, cell_of, session_of};
use crate::admission::ALONE;
use crate::engine::Engine;
use crate::region::header;
use crate::session::SessionId;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

/// A wait as a search for deadlocks sees it.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    pub(crate) slot: u32,
    pub(crate) word: u64,
    pub(crate) cell: u32,
    pub(crate) session: SessionId,
    pub(crate) number: u64,
    pub(crate) wants: u32,
    primary: u32,
    pub(crate) age: u64,
}

impl Wait {
    /// Whether it is served before those who came after it: it was not passed over.
    pub(crate) fn is_in_turn(&self) -> bool {
        self.word & 3 == WAITING
    }
}

impl Engine {
    /// The wait in a slot, as it is now; `None` if there is none, or it has given up, or is of a dead session.
    pub(crate) fn wait_in(&self, slot: u32, now_ns: u64) -> Option<Wait> {
        let slot = slot.min(self.region.caps().waiters - 1);
        // Acquire: pairs with the publishing store, so that the record is complete.
        let word = self.region.waiter_word(slot).load(Acquire);
        let session = session_of(word);
        if word & WAITING == 0 || !self.is_alive(session) {
            return None;
        }
        let record = self.region.waiter_at(slot);
        let get = |offset| self.region.word(record + offset).load(Relaxed);
        (get(16) > now_ns).then(|| Wait {
            slot,
            word,
            cell: cell_of(word),
            session,
            number: get(8),
            wants: get(32) as u32,
            primary: get(40)
                .checked_sub(1)
                .map_or(slot, |primary| primary as u32),
            age: get(48),
        })
    }

    /// All waits, each slot of those for several locks.
    pub(crate) fn waits(&self, now_ns: u64) -> impl Iterator<Item = Wait> {
        let high = self.region.word(header::WAITERS_HIGH).load(Acquire);
        let slots = 0..high.min(self.region.caps().waiters.into()) as u32;
        slots.filter_map(move |slot| self.wait_in(slot, now_ns))
    }

    /// The first slot of the wait that a slot is of.
    pub(crate) fn primary_of(&self, wait: &Wait) -> Option<Wait> {
        if wait.primary == wait.slot {
            return Some(*wait);
        }
        self.wait_in(wait.primary, 0)
    }

    /// All slots of a wait.
    pub(crate) fn places_of(&self, wait: &Wait) -> Vec<Wait> {
        let slot = wait.slot;
        let is_its = |other: &Wait| other.primary == slot && other.slot != slot;
        let mut places = vec![*wait];
        if wait.wants == ALONE {
            places.extend(self.waits(0).filter(is_its));
        }
        places
    }

    pub(crate) fn wait_of(&self, ticket: &Ticket) -> Option<Wait> {
        self.wait_in(ticket.slot(), 0)
    }

    /// Whether a wait goes on as it was seen, be it passed over, if that is all the same.
    pub(crate) fn is_waiting_still(&self, wait: &Wait, may_be_passed: bool) -> bool {
        let word = self.region.waiter_word(wait.slot).load(Acquire);
        word == wait.word || (may_be_passed && word | PASSED == wait.word | PASSED)
    }
}
