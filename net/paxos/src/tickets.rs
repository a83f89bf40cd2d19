//! Tickets: what was given to the disk, and how much of it is durable.

use std::collections::VecDeque;

use crate::effect::{Record, Ticket};
use crate::entry::Slot;
use crate::options::WINDOW_SLOTS_MAX;

/// How many records wait for the disk before no more is taken on: as many slots as a leader may have under way, twice.
pub(crate) const UNSYNCED_MAX: usize = 2 * WINDOW_SLOTS_MAX as usize;

/// The tickets of one life of a voter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Tickets {
    last: Ticket,
    last_urgent: Ticket,
    durable: Ticket,
    /// What something waits for and isn't durable yet, ascending: promises, and acceptances with their slots.
    unsynced: VecDeque<(Ticket, Option<Slot>)>,
}

impl Tickets {
    /// A ticket for what is written next.
    pub(crate) fn issue(&mut self, record: &Record) -> Ticket {
        self.last.0 += 1;
        if record.is_urgent() {
            self.last_urgent = self.last;
            let slot = match record {
                Record::Accepted { slot, .. } => Some(*slot),
                _ => None,
            };
            self.unsynced.push_back((self.last, slot));
        }
        self.last
    }

    /// Everything up to `ticket` is durable; whether that is news.
    pub(crate) fn persisted(&mut self, ticket: Ticket) -> bool {
        if ticket <= self.durable {
            return false;
        }
        self.durable = ticket;
        while let Some((first, _)) = self.unsynced.front()
            && *first <= ticket
        {
            self.unsynced.pop_front();
        }
        true
    }

    /// The last that was issued.
    pub(crate) fn last(&self) -> Ticket {
        self.last
    }

    /// The last that something waits for: what leaves rests on no later one, which may never be synced.
    pub(crate) fn last_urgent(&self) -> Ticket {
        self.last_urgent
    }

    /// Everything up to this one is durable.
    pub(crate) fn durable(&self) -> Ticket {
        self.durable
    }

    /// Whether nothing waits for the disk.
    pub(crate) fn are_settled(&self) -> bool {
        self.unsynced.is_empty()
    }

    /// Whether the disk has so much to do that nothing more is taken on that would wait for it. What is sent here meanwhile is
    /// as good as lost: it is sent again.
    pub(crate) fn are_behind(&self) -> bool {
        self.unsynced.len() >= UNSYNCED_MAX
    }

    /// Whether an acceptance of `slot` still waits for the disk. Then so does the answer.
    pub(crate) fn hold_acceptance(&self, slot: Slot) -> bool {
        self.unsynced.iter().any(|(_, of)| *of == Some(slot))
    }

    /// Whether a promise still waits for the disk. Then so does the answer.
    pub(crate) fn hold_promise(&self) -> bool {
        self.unsynced.iter().any(|(_, of)| of.is_none())
    }
}
