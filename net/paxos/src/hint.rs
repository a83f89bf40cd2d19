//! The hint that a voter leaves on its disk for its next start: up to where everything is decided. It is written only when
//! all that it speaks of is durable, and not while another is on its way.

use crate::effect::Ticket;
use crate::entry::Slot;

/// What was written of it, and what comes next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Hint {
    /// Up to where it was written.
    recorded: Slot,
    /// What is to be written next, once this ticket is durable.
    next: Option<(Ticket, Slot)>,
}

impl Hint {
    /// Everything up to `slot` is on record.
    pub(crate) fn recorded(slot: Slot) -> Self {
        Self {
            recorded: slot,
            next: None,
        }
    }

    /// Everything up to `decided` is decided, which is durable once `after` is.
    pub(crate) fn plan(&mut self, decided: Slot, after: Ticket) {
        if self.next.is_none() && self.recorded < decided {
            self.next = Some((after, decided));
        }
    }

    /// What is to be written now that everything up to `durable` is durable.
    pub(crate) fn take_due(&mut self, durable: Ticket) -> Option<Slot> {
        let (_, decided) = self.next.take_if(|(after, _)| *after <= durable)?;
        self.recorded = decided;
        Some(decided)
    }

    /// That everything up to `slot` is decided is on record by other means.
    pub(crate) fn take_back(&mut self, slot: Slot) {
        self.next = None;
        self.recorded = self.recorded.max(slot);
    }
}
