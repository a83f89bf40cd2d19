//! Queueing: how a wait gets its places, and leaves them.
//!
//! Owns the queue bit as those who wait set it, and the entries that they wait for. Whose turn it is, is in
//! [`super::turn`].

use super::{Place, Places, Ticket, WAITING, Wake, word_of};
use crate::admission::{Wants, is_queued};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::lock::coarse::Coarse;
use crate::lock::engaged::{Engaged, is_engaged};
use crate::lock::{State, check_number};
use crate::object::Name;
use crate::pool::{Pool, is_pooled};
use crate::region::header;
use crate::session::SessionId;
use crate::sync::fence;
use crate::table::{Entry as _, Found, LIVE, ROUNDS_MAX, phase};
use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

impl Engine {
    /// Queues for a lock, until `until_ns` of region time. The caller then polls.
    pub fn enqueue(
        &self,
        name: &Name,
        by: SessionId,
        now_ns: u64,
        until_ns: u64,
    ) -> Result<Ticket> {
        let names = core::slice::from_ref(name);
        self.enqueue_for(names, Wants::Exclusive, by, now_ns, until_ns)
    }

    /// [`enqueue`](Self::enqueue) for whatever is wanted: several locks, or what one name says. One who is to
    /// be upgraded goes before all who wait, since they wait for it; [`Engine::try_upgrade`] must have said
    /// that nobody else is.
    pub fn enqueue_for(
        &self,
        names: &[Name],
        wants: Wants,
        by: SessionId,
        now_ns: u64,
        until_ns: u64,
    ) -> Result<Ticket> {
        check_number(names.len())?;
        let age = self.region.word(header::TICKETS).fetch_add(1, Relaxed);
        let number = match wants {
            // Before all.
            Wants::Upgrade(_) => 0,
            _ => age.saturating_add(1),
        };
        let mut ticket = Ticket {
            places: Places::default(),
            number,
            wants,
            holds: Vec::new(),
        };
        for name in names {
            match self.take_place(&ticket, age, name, by, now_ns, until_ns) {
                Ok(place) => ticket.places.push(place),
                Err(error) => {
                    self.leave(&ticket);
                    return Err(error);
                }
            }
        }
        self.shut_gates(wants);
        Ok(ticket)
    }

    /// Queues for one lock under the ticket's number.
    pub(super) fn take_place(
        &self,
        ticket: &Ticket,
        age: u64,
        name: &Name,
        by: SessionId,
        now_ns: u64,
        until_ns: u64,
    ) -> Result<Place> {
        let (index, claimed) = self.claim_waiter(by)?;
        let record = self.region.waiter_at(index);
        let put = |offset, value| self.region.word(record + offset).store(value, Relaxed);
        let mut failed = Error::Damaged {
            what: "a lock never settles",
        };
        for _ in 0..ROUNDS_MAX {
            let found = match self.find_wanted(name, ticket.wants, by, now_ns) {
                Ok(found) => found,
                Err(error) => {
                    failed = error;
                    break;
                }
            };
            self.region.half(record + 4).store(0, Relaxed);
            put(8, ticket.number);
            put(16, until_ns);
            put(24, now_ns);
            put(32, ticket.wants.code().into());
            put(48, age);
            put(
                40,
                ticket
                    .places
                    .first
                    .map_or(0, |first| u64::from(first.index) + 1),
            );
            let word = word_of(WAITING, by, found.cell, claimed >> 52);
            // Release: the record comes before. Only this thread writes a claimed slot.
            self.region.waiter_word(index).store(word, Release);
            // Pairs with the fence in `hand_on`: we publish then read the lock, it clears *queue*
            // then scans.
            fence(SeqCst);
            let place = Place {
                index,
                word,
                cell: found.cell,
            };
            if self.set_queue(&place, name, ticket.wants, now_ns) {
                return Ok(place);
            }
            self.region.waiter_word(index).store(claimed, Release);
        }
        self.free_waiter(index, claimed);
        self.count_out_wait();
        Err(failed)
    }

    /// The word of one lock that is waited for, its queue bit set; `None` if the entry is gone.
    pub(crate) fn found_of_place(
        &self,
        place: &Place,
        name: &Name,
        wants: Wants,
        now_ns: u64,
    ) -> Option<Found> {
        let (cell, at) = (place.cell, self.lock_at(place.cell));
        for _ in 0..ROUNDS_MAX {
            let state = self.region.wide(at).load();
            if !self.is_entry(cell, name, wants, state) {
                return None;
            }
            if is_queued(state) {
                return Some(Found { cell, at, state });
            }
            if !self.set_queue(place, name, wants, now_ns) {
                return None;
            }
        }
        None
    }

    /// Whether a word that was read in `cell` is that of what is wanted.
    pub(super) fn is_entry(&self, cell: u32, name: &Name, wants: Wants, state: u128) -> bool {
        if let Wants::Coarse(_) = wants {
            return phase(state) == LIVE;
        }
        let line = self.region.line(self.lock_at(cell));
        let object = self.object(wants.kind(), name);
        object.matches(&self.region, line, state)
    }

    /// Sets the lock's queue bit; `false` if its entry is gone.
    pub(super) fn set_queue(&self, place: &Place, name: &Name, wants: Wants, now_ns: u64) -> bool {
        let line = self.region.line(self.lock_at(place.cell));
        for _ in 0..ROUNDS_MAX {
            let raw = line.state().load();
            if !self.is_entry(place.cell, name, wants, raw) {
                return false;
            }
            let after = if is_engaged(raw) {
                let engaged = Engaged::decode(raw);
                Engaged {
                    queue: true,
                    ..engaged
                }
                .encode()
            } else if is_pooled(raw) {
                let pool = Pool::decode(raw);
                Pool {
                    queue: true,
                    ..pool
                }
                .encode()
            } else {
                let state = State::decode(raw);
                // A lock found free counts as freed now: its head has `PATIENCE_NS` from here.
                let time_us = if state.is_idle() {
                    now_ns / 1_000
                } else {
                    state.time_us
                };
                State {
                    queue: true,
                    time_us,
                    ..state
                }
                .encode()
            };
            if line.state().compare_exchange(raw, after).is_ok() {
                return true;
            }
        }
        false
    }

    /// Shuts the gates of all partitions if the table is wanted. At each look: while one who waits is passed
    /// over, whoever finds a gate shut for nobody opens it.
    pub(super) fn shut_gates(&self, wants: Wants) {
        if wants == Wants::Coarse(Coarse::Table) {
            for found in self.words_of(Coarse::Table) {
                self.shut_gate(found.cell);
            }
        }
    }

    /// Leaves the queue. If the lock is free, its wake may have been meant for this waiter: whose turn it is
    /// now is given to `wake`.
    #[expect(clippy::needless_pass_by_value, reason = "a ticket is left once")]
    pub fn cancel(&self, ticket: Ticket, now_ns: u64, mut wake: impl FnMut(Wake)) {
        self.leave(&ticket);
        if let Wants::Upgrade(grant) = ticket.wants {
            self.end_upgrade(&grant, now_ns).map(&mut wake);
        }
        // We left, then read the lock: whoever freed it before saw us, whoever frees it after does not.
        fence(SeqCst);
        for place in ticket.places() {
            self.hand_on_now(place.cell, now_ns).map(&mut wake);
            // It kept out those who came after it for what lies beneath.
            if self.coarse_of(place.cell).is_some() {
                self.wake_beneath(place.cell, 0).map(&mut wake);
            }
        }
    }
}
