//! Turns: who is the head of a queue, who is passed over, and to whom a lock is handed on.
//!
//! Owns looking through those who wait, and clearing the queue bit once nobody does. Takes no lock.

use super::{PASSED, WAITING, Waiter, Wake, for_each};
use crate::admission::{ALONE, UPGRADE, is_queued};
use crate::engine::Engine;
use crate::lock::State;
use crate::lock::engaged::{Engaged, is_engaged};
use crate::object::{OWN, Objects};
use crate::pool::{Mode, Pool, is_pooled};
use crate::sync::fence;
use crate::table::{Found, LIVE, phase};
use core::sync::atomic::Ordering::{AcqRel, Relaxed, SeqCst};

impl Engine {
    /// Takes the turns of all waits that let what was found lie for [`PATIENCE_NS`].
    pub(crate) fn pass_over(&self, found: &Found, now_ns: u64) {
        let since_ns = self.free_since_ns(found);
        // The next one's time counts from now: said before the others are passed over, so that nobody
        // takes the time before for the next one's. Who dies in between costs those who wait the same
        // time once more.
        let is_first = if is_pooled(found.state) {
            let since = self.region.word(found.at + OWN);
            since
                .compare_exchange(since_ns, now_ns, Relaxed, Relaxed)
                .is_ok()
        } else {
            let freed = State::decode(found.state).freed(now_ns / 1_000);
            let word = self.region.wide(found.at);
            word.compare_exchange(found.state, freed.encode()).is_ok()
        };
        if !is_first {
            return;
        }
        let is_of = |cell| self.overlap(cell, found.cell);
        for_each(&self.region, is_of, |index, word| {
            if word & 3 == WAITING && self.waiter_at(index).has_let_lie(since_ns, now_ns) {
                // Losing means that it was served, or left.
                let slot = self.region.waiter_word(index);
                let _ = slot.compare_exchange(word, word | PASSED, AcqRel, Relaxed);
            }
            true
        });
    }

    /// The first slot from `from` on that waits for one of these cells.
    pub(super) fn next_of(&self, is_of: impl Fn(u32) -> bool, from: u32) -> Option<u32> {
        let mut found = None;
        for_each(&self.region, is_of, |index, _| {
            if index >= from {
                found = Some(index);
            }
            found.is_none()
        });
        found
    }

    /// The lowest ticket among the waits for these cells that are wanted, and have neither given up nor been
    /// passed over; with `probe` also not of a dead session, for the price of a system call each.
    pub(crate) fn first_of(
        &self,
        is_of: impl Fn(u32) -> bool,
        now_ns: u64,
        probe: bool,
        is_wanted: impl Fn(&Waiter) -> bool,
    ) -> Option<Waiter> {
        let mut first: Option<Waiter> = None;
        for_each(&self.region, is_of, |index, word| {
            let waiter = self.waiter_at(index);
            let is_first = word & 3 == WAITING
                && waiter.until_ns > now_ns
                && is_wanted(&waiter)
                && first.is_none_or(|first| waiter.number < first.number);
            // The dead who were passed over are in nobody's way, but it is here that they are met.
            if (is_first || word & 3 == PASSED) && probe && self.drop_if_dead(index, word) {
                return true;
            }
            if is_first {
                first = Some(waiter);
            }
            true
        });
        first
    }

    /// After there came to be room, by an exchange that left the word `raw`: finds whose turn it is, or
    /// clears the queue bit when nobody waits.
    pub(crate) fn hand_on(&self, cell: u32, raw: u128, now_ns: u64) -> Option<Wake> {
        if !is_queued(raw) {
            return None;
        }
        // Pairs with the fence in `enqueue`: we freed the lock, then scan.
        fence(SeqCst);
        // Those who wait for what is above as well: a lock that is free may be all that they lack.
        let is_of = |other| other == cell || self.is_above(other, cell);
        if let Some(mut first) = self.first_of(is_of, now_ns, false, |_| true) {
            if first.wants == UPGRADE && !self.is_room_for(cell, raw, UPGRADE) {
                let is_other = |waiter: &Waiter| waiter.wants != UPGRADE;
                first = self.first_of(is_of, now_ns, false, is_other)?;
            }
            return self
                .is_room_for(cell, raw, first.wants)
                .then(|| self.raise(first.index));
        }
        let word = self.lock_word(cell);
        let cleared = if is_engaged(raw) {
            let engaged = Engaged::decode(raw);
            Engaged {
                queue: false,
                ..engaged
            }
            .encode()
        } else if is_pooled(raw) {
            let pool = Pool::decode(raw);
            Pool {
                queue: false,
                ..pool
            }
            .encode()
        } else {
            State {
                queue: false,
                time_us: 0,
                ..State::decode(raw)
            }
            .encode()
        };
        if word.compare_exchange(raw, cleared).is_ok() {
            // Pairs with the fence in `enqueue`: we cleared *queue*, then scan again.
            fence(SeqCst);
            if let Some(first) = self.first_of(is_of, now_ns, false, |_| true) {
                return Some(self.raise(first.index));
            }
        }
        None
    }

    /// Whether one who `wants` what its record says can have it by the word `raw`, for all it says.
    pub(super) fn is_room_for(&self, cell: u32, raw: u128, wants: u32) -> bool {
        if !is_pooled(raw) {
            return is_engaged(raw) || State::decode(raw).holder.is_none();
        }
        let pool = Pool::decode(raw);
        match wants {
            ALONE => pool.used == 0,
            // Not if its hold is gone, which it finds out by itself.
            UPGRADE => pool.used == 1 && pool.mode() != Mode::Shared,
            amount if Objects::is_lock(&self.region, self.objects.at(cell)) => {
                amount == 1 && pool.mode() == Mode::Shared
            }
            amount => pool.used.saturating_add(amount) <= self.capacity_in(cell, pool),
        }
    }

    /// Hands on to whoever can have the word as it is now.
    pub(crate) fn hand_on_now(&self, cell: u32, now_ns: u64) -> Option<Wake> {
        let raw = self.lock_word(cell).load();
        // Asked after the word was read: a cell that was reused since may be of a kind without a queue.
        let has_queue = self.coarse_of(cell).is_some()
            || Objects::has_queue(&self.region, self.objects.at(cell));
        let is_plain = !is_pooled(raw) && !is_engaged(raw);
        if phase(raw) != LIVE || !has_queue || (is_plain && State::decode(raw).holder.is_some()) {
            return None;
        }
        self.hand_on(cell, raw, now_ns)
    }
}
