//! Waking: how a waiter says that it sleeps, and how it is woken.
//!
//! Owns the signals and the sleepers of the waits' records, and ringing a session's doorbell. Puts no
//! thread to sleep and wakes none: that is for the caller, by the words that this file names.

use super::{Ticket, session_of};
use crate::engine::Engine;
use crate::session::{SessionId, Sessions};
use crate::sync::{Half, fence};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

/// A waiter to wake: see [`Engine::to_wake`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    index: u32,
    session: SessionId,
    sleeper: Sleeper,
    /// The coarse lock that was freed, for which more than one may have waited, and the slot to go on from.
    freed: Option<(u32, u32)>,
}

/// How a waiter waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Sleeper {
    /// It looks at its signal by itself.
    Awake = 0,
    /// A thread may be asleep on its signal.
    Thread = 1,
    /// Somebody listens to its session's doorbell for it.
    Doorbell = 2,
}

impl Engine {
    /// The 32-bit word that rises when it may be the waiter's turn. Read it, poll, then park on the
    /// value read.
    pub fn signal(&self, ticket: &Ticket) -> &Half {
        self.signal_of(ticket.slot())
    }

    /// The signal of the waiter in a [`slot`](Ticket::slot), whoever that is by now: of one past the last, the last's.
    pub fn signal_of(&self, slot: u32) -> &Half {
        let last = self.region.caps().waiters - 1;
        self.region.half(self.region.waiter_at(slot.min(last)))
    }

    /// The word to wake sleepers on, already raised; `None` if nobody sleeps.
    pub fn to_wake(&self, wake: Wake) -> Option<&Half> {
        match wake.sleeper {
            Sleeper::Awake => None,
            Sleeper::Thread => Some(self.region.half(self.region.waiter_at(wake.index))),
            Sleeper::Doorbell => Some(Sessions::doorbell(&self.region, wake.session)),
        }
    }

    /// The word that rises when a wait of `session` set to [`Sleeper::Doorbell`] may be ready.
    pub fn doorbell(&self, session: SessionId) -> &Half {
        Sessions::doorbell(&self.region, session)
    }

    /// Says how the waiter waits from now on. Unless it is [`Sleeper::Awake`], the caller must read the
    /// signal once more after, before it goes to sleep.
    pub fn set_sleeper(&self, ticket: &Ticket, sleeper: Sleeper) {
        let record = self.region.waiter_at(ticket.slot());
        self.region.half(record + 4).store(sleeper as u32, Relaxed);
        if sleeper != Sleeper::Awake {
            // Pairs with the fence in `raise`: we say how we sleep then read the signal, it raises
            // the signal then reads how we sleep.
            fence(SeqCst);
        }
    }

    /// Raises the signal of the waiter in slot `index`, and the doorbell if that is how it waits.
    pub(super) fn raise(&self, slot: u32) -> Wake {
        let first = self
            .region
            .word(self.region.waiter_at(slot) + 40)
            .load(Relaxed);
        // Who waits for several locks sleeps on one of its slots.
        let last = self.region.caps().waiters - 1;
        let index = match first {
            0 => slot,
            first => (first - 1).min(last.into()) as u32,
        };
        let record = self.region.waiter_at(index);
        let session = session_of(self.region.waiter_word(index).load(Relaxed));
        self.region.half(record).raise();
        fence(SeqCst);
        let sleeper = match self.region.half(record + 4).load(Relaxed) {
            1 => Sleeper::Thread,
            2 => Sleeper::Doorbell,
            _ => Sleeper::Awake,
        };
        if sleeper == Sleeper::Doorbell {
            Sessions::doorbell(&self.region, session).raise();
        }
        Wake {
            index,
            session,
            sleeper,
            freed: None,
        }
    }

    /// Raises all who wait for one of these cells.
    pub(crate) fn raise_all(&self, is_of: impl Fn(u32) -> bool, mut wake: impl FnMut(Wake)) {
        let mut from = 0;
        while let Some(slot) = self.next_of(&is_of, from) {
            wake(self.raise(slot));
            from = slot + 1;
        }
    }

    /// Raises the first of those who wait for what the coarse lock in `cell` kept from them, of the slots
    /// from `from` on.
    pub(crate) fn wake_beneath(&self, cell: u32, from: u32) -> Option<Wake> {
        // Pairs with the fence in `enqueue`: we freed the lock, then scan.
        fence(SeqCst);
        let slot = self.next_of(|other| self.overlap(other, cell), from)?;
        Some(Wake {
            freed: Some((cell, slot + 1)),
            ..self.raise(slot)
        })
    }

    /// The one to wake after `wake`, raised already; there is one only where several can go on.
    pub fn next_wake(&self, wake: Wake) -> Option<Wake> {
        let (cell, from) = wake.freed?;
        self.wake_beneath(cell, from)
    }
}
