//! Changing one limit of a limiter for another, while its keys are in use.
//!
//! Owns the sweep that moves every key, and the overflow bucket, from the old limit to the new.
//! Names no limit: [`super::definition`] does, and a change begins with it.
//!
//! ```text
//!  name: (a, -) ──exchange──▶ (b, a) ── every key under a is exchanged to the same under b, ──▶ (b, -)
//!        slot b is complete            by whoever meets it or by the changer's sweep      slot a free
//! ```
//!
//! Limit and value are in one word, so that converting a key is one exchange that keeps what was used.
//! A changer that dies leaves (b, a): checks go on converting, the next change finishes the sweep.
//!
//! A changer that is stopped may go on when the change is long over and slot a is another limiter's.
//! So each exchange of the sweep reads its word first, and then that the name's word is still the one
//! that the change began with. That word never repeats: its serial rises with each exchange.
//!
//! Once b is named, a's control word says *replaced*, so that references to a look again.

use super::definition::{Slots, name_cell, overflow, overflow_at, prepared};
use super::{LimiterRef, settle};
use crate::engine::Engine;
use crate::limit::{Prepared, convert};
use crate::limiter_key::{KeyState, claimed_limit, with_claimed_limit};
use crate::object::{Kind, Plain};
use crate::slot::Control;
use crate::sync::fence;
use crate::table::{CLAIMED, Found, LIVE, ROUNDS_MAX, phase};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};

/// A change of a limiter's limit that is under way.
pub(super) struct Change {
    /// Byte offset of the name's state word, and what it says for as long as the change lasts.
    at: usize,
    state: u128,
    slots: Slots,
    current: u32,
    pub(super) previous: u32,
    /// The previous limit and the current one; `None` if the region is damaged there.
    pub(super) limits: Option<(Prepared, Prepared)>,
}

impl Engine {
    /// Moves the overflow level and every key from the previous limit to the current one, then frees
    /// the previous slot. Any number of processes may be at it, and any of them may be late.
    pub(super) fn finish_change(&self, name: &Found, now_ns: &dyn Fn() -> u64) {
        if let Some(change) = self.change_under_way(name.at) {
            self.sweep(&change, now_ns);
        }
    }

    /// The change of the limiter whose name's state word lies at `at`; `None` if none is under way.
    pub(super) fn change_under_way(&self, at: usize) -> Option<Change> {
        let state = self.region.wide(at).load();
        if phase(state) != LIVE {
            return None;
        }
        let slots = Slots::decode(Plain::decode(state).value);
        let (current, previous) = (slots.current?, slots.previous?);
        let change = Change {
            at,
            state,
            slots,
            current,
            previous,
            limits: prepared(&self.region, previous).zip(prepared(&self.region, current)),
        };
        // If so, both limits were this change's when they were read.
        self.is_under_way(&change).then_some(change)
    }

    /// The change to the limit of `limiter` from the one in slot `previous`.
    pub(super) fn change_to(&self, limiter: &LimiterRef, previous: u32) -> Option<Change> {
        let object = self.object(Kind::Limiter, &limiter.name);
        let found = self.find_object(&object)?;
        let change = self.change_under_way(found.at)?;
        // The same use of the slot as when the reference was opened, and so the same change.
        let is_same = change.current == limiter.id
            && self.limit_control(limiter.id).load(Acquire) == limiter.control
            && limiter.previous == Some(previous);
        (is_same && change.previous == previous).then_some(change)
    }

    /// Whether a change still lasts. Ask between reading a word that is under either of its slots and
    /// exchanging it: the word is then this change's, whoever had the slots before or has them after.
    pub(super) fn is_under_way(&self, change: &Change) -> bool {
        self.region.wide(change.at).load() == change.state
    }

    pub(super) fn sweep(&self, change: &Change, now_ns: &dyn Fn() -> u64) {
        self.mark_replaced(change);
        self.move_overflow(change, now_ns());
        // Pairs with the fences in `LimiterKey::write` and in `move_key`: we named the new limit, then look for cells
        // under the old one.
        fence(SeqCst);
        self.limiter_keys.for_each(&self.region, |cell, _, _| {
            self.convert_cell(cell, change, now_ns);
        });
        self.drop_previous(change);
    }

    /// Makes references to the previous limit look again.
    pub(super) fn mark_replaced(&self, change: &Change) {
        let control = self.limit_control(change.previous);
        let word = Control(control.load(Acquire));
        if word.is_in_use() && self.is_under_way(change) {
            // Losing means that somebody else did it, or that the change is over.
            let _ = control.compare_exchange(word.0, word.replaced().0, AcqRel, Relaxed);
        }
    }

    fn drop_previous(&self, change: &Change) {
        let control = self.limit_control(change.previous);
        // Read while the change lasts, if the exchange below says so.
        let before = Control(control.load(Acquire));
        let plain = Plain::decode(change.state);
        let slots = Slots {
            previous: None,
            ..change.slots
        };
        // What was converted may be idle sooner than was said. Before the change is over: whoever dies
        // right after has stirred.
        self.limiter_keys.stir(&self.region);
        let word = self.region.wide(change.at);
        if word
            .compare_exchange(change.state, plain.next(slots.encode()).encode())
            .is_ok()
            && before.is_in_use()
        {
            let _ = control.compare_exchange(before.0, before.freed().0, AcqRel, Relaxed);
        }
    }

    /// Exchanges one key from the previous to the current limit, or the claim of one that is just being
    /// inserted: whoever inserts it may stand still for as long as it likes.
    fn convert_cell(&self, cell: u32, change: &Change, now_ns: &dyn Fn() -> u64) {
        let word = self.limiter_keys.state(&self.region, cell);
        for _ in 0..ROUNDS_MAX {
            let Ok(state) = settle(&self.region, self.limiter_keys.at(cell)) else {
                return;
            };
            let is_claim = match phase(state) {
                CLAIMED => claimed_limit(state) == change.previous,
                LIVE => KeyState(state).limit() == change.previous,
                _ => false,
            };
            // Asked after the word was read: it is under the limit that is meant.
            if !self.is_under_way(change) {
                return;
            }
            if !is_claim {
                // Losing means that it may have been brought back under the limit before, or just been engaged.
                let next = KeyState(state).next_generation();
                if !self.is_kept_from(change, state) || word.compare_exchange(state, next.0).is_ok()
                {
                    return;
                }
            } else if phase(state) == CLAIMED {
                let after = with_claimed_limit(state, change.current);
                let _ = word.compare_exchange(state, after);
            } else {
                self.convert_key(cell, state, change, now_ns());
            }
        }
    }

    /// Whether an override keeps a key from the change. It has to be put in another word: then whoever brings it back
    /// under the limiter's own limit, and read which that is before the change, fails.
    fn is_kept_from(&self, change: &Change, state: u128) -> bool {
        if phase(state) != LIVE || !self.has_overrides() {
            return false;
        }
        let limit = KeyState(state).limit();
        let cell = name_cell(&self.region, change.current);
        self.is_of_overrides(limit) && name_cell(&self.region, limit) == cell
    }

    /// Exchanges a key whose state was `state` while the change lasted. `now_ns` is best read after the
    /// state: from before, it takes for used what was refilled in between.
    pub(super) fn convert_key(&self, cell: u32, state: u128, change: &Change, now_ns: u64) {
        let state = KeyState(state);
        // In a damaged region, what was used is not known.
        let value = change.limits.map_or(0, |(old, new)| {
            convert(&old, state.value(), &new, self.region.moment(now_ns))
        });
        // In another generation, so that it is no word that was there before should the limit change
        // back.
        let after = state.with_limit(change.current, value).next_generation();
        let word = self.limiter_keys.state(&self.region, cell);
        let _ = word.compare_exchange(state.0, after.0);
    }

    /// Closes the previous limit's overflow bucket and opens the current one's at its level. Any
    /// number of processes may do it at once: what it starts from no longer changes once closed.
    pub(super) fn move_overflow(&self, change: &Change, now_ns: u64) {
        let from = overflow(&self.region, change.previous);
        let to = overflow(&self.region, change.current);
        for _ in 0..ROUNDS_MAX {
            let Ok(state) = settle(&self.region, overflow_at(&self.region, change.previous)) else {
                break;
            };
            if phase(state) != LIVE
                || !self.is_under_way(change)
                || from.compare_exchange(state, state & !7 | CLAIMED).is_ok()
            {
                break;
            }
        }
        let (closed, before) = (from.load(), to.load());
        if phase(before) == CLAIMED && self.is_under_way(change) {
            let level = change.limits.map_or(0, |(old, new)| {
                convert(
                    &old,
                    KeyState(closed).value(),
                    &new,
                    self.region.moment(now_ns),
                )
            });
            let open = KeyState(before & !7 | LIVE).with_value(level);
            let _ = to.compare_exchange(before, open.0);
        }
    }
}
