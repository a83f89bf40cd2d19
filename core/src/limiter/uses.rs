//! Limit slots that overrides share: how one comes to be named, and when it is free again.
//!
//! Owns a slot's *uses* word, and the sweep that frees what no override names any more. Says nothing of which
//! override names what: [`super::overrides`] does.
//!
//! | bits of *uses* | field |
//! |---|---|
//! | 0..2 | 0: the slot is a limiter's own; 1: of overrides, open; 2: of overrides, closed |
//! | 2..64 | a count that rises with each change |
//!
//! ```text
//!  to name a slot:   the override says "next: slot" ── uses exchanged, open to open ──▶ the override says "current: slot"
//!  to free it:       uses read, open ── no override names it ── uses exchanged to closed ── keys driven out ──▶ free
//! ```
//!
//! Of the two exchanges of *uses* one fails: whoever names the slot said so before its own, and whoever frees it
//! looked after it had read the word. Once closed, a slot only becomes free, and anybody may make it so.
//!
//! Nobody can bring a key under a closed slot who finds out only now what the key is to be under. Whoever found
//! out before holds an exchange prepared from the key's word, so each word of the limiter's keys is changed.

use super::definition::{Role, USES, name_cell};
use super::overrides::Chosen;
use super::{LimiterRef, prepared, settle};
use crate::cell_key;
use crate::engine::Engine;
use crate::error::Result;
use crate::limit::Prepared;
use crate::limiter_key::{KeyState, claimed_limit, next_claim};
use crate::object::{Kind, Name, Objects};
use crate::region::{LIMITS, Region, header};
use crate::session::SessionId;
use crate::slot::Control;
use crate::sync::{Word, fence};
use crate::table::{CLAIMED, Found, LIVE, ROUNDS_MAX, phase};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use std::collections::HashSet;

const OWN: u64 = 0;
const OPEN: u64 = 1;
const CLOSED: u64 = 2;
const ONE_CHANGE: u64 = 1 << 2;

fn role(uses: u64) -> u64 {
    uses & 3
}

fn uses(region: &Region, slot: u32) -> &Word {
    region.word(region.limit_at(slot % LIMITS) + USES)
}

/// Slots below this one may be of overrides; 0 if no limiter ever had one.
pub(crate) fn slots_end(region: &Region) -> u32 {
    // Relaxed: raised before a slot is named, and whoever must not miss that has fenced.
    let end = region.word(header::OVERRIDES).load(Relaxed);
    end.min(LIMITS.into()) as u32
}

/// Whether a slot is of overrides.
pub(super) fn is_of_overrides(region: &Region, slot: u32) -> bool {
    role(uses(region, slot).load(Acquire)) != OWN
}

impl Engine {
    pub(super) fn is_of_overrides(&self, slot: u32) -> bool {
        is_of_overrides(&self.region, slot)
    }

    /// Says who a slot is for, whose claimant calls this.
    pub(super) fn begin_uses(&self, slot: u32, of_overrides: bool) {
        if of_overrides {
            // Before anybody can name the slot.
            self.region
                .word(header::OVERRIDES)
                .fetch_max(u64::from(slot) + 1, AcqRel);
        }
        let role = if of_overrides { OPEN } else { OWN };
        let word = uses(&self.region, slot);
        let mut before = word.load(Acquire);
        for _ in 0..ROUNDS_MAX {
            let next = (before & !3).wrapping_add(ONE_CHANGE) | role;
            match word.compare_exchange(before, next, AcqRel, Acquire) {
                Ok(_) => return,
                Err(found) => before = found,
            }
        }
    }

    /// `limiter` with the limit in `slot` in place of its own, if that is one of its overrides'.
    pub(super) fn overriding(&self, limiter: &LimiterRef, slot: u32) -> Option<LimiterRef> {
        let control = self.limit_control(slot).load(Acquire);
        if !self.is_of_overrides(slot) || name_cell(&self.region, slot) != limiter.cell {
            return None;
        }
        let prepared = prepared(&self.region, slot)?;
        // Acquire: all of the above comes before the load below. Unchanged means that it is of one use.
        fence(Acquire);
        (self.limit_control(slot).load(Acquire) == control).then(|| LimiterRef {
            id: slot,
            previous: None,
            control,
            control_at: self.region.limit_at(slot % LIMITS),
            prepared,
            ..limiter.clone()
        })
    }

    /// A slot of the limiter's overrides that has this limit, with its control word; a new one if there is none.
    pub(super) fn slot_of_overrides(
        &self,
        limiter: &LimiterRef,
        name: &Name,
        limit: Prepared,
        by: SessionId,
    ) -> Result<(u32, u64)> {
        let existing = (0..slots_end(&self.region))
            .filter(|slot| role(uses(&self.region, *slot).load(Acquire)) == OPEN)
            .filter_map(|slot| self.overriding(limiter, slot))
            .find(|existing| existing.prepared == limit);
        match existing {
            Some(existing) => Ok((existing.id, existing.control)),
            None => self.new_limit(limit, name, limiter.cell, Role::Override, by),
        }
    }

    /// Keeps a slot that an override names as its next from being freed; `false` if it was, or is being.
    pub(super) fn join_slot(&self, slot: u32, control: u64) -> bool {
        let word = uses(&self.region, slot);
        let mut before = word.load(Acquire);
        for _ in 0..ROUNDS_MAX {
            if role(before) != OPEN {
                return false;
            }
            let next = before.wrapping_add(ONE_CHANGE);
            // Release: the override names the slot before; pairs with the acquire in
            // `free_unnamed_overrides`.
            match word.compare_exchange(before, next, AcqRel, Acquire) {
                Ok(_) => return self.limit_control(slot).load(Acquire) == control,
                Err(found) => before = found,
            }
        }
        false
    }

    /// Frees every slot of overrides that no override names. Costs a pass over the objects, and one over the
    /// limiter keys if there is any such slot.
    #[cold]
    pub(super) fn free_unnamed_overrides(&self) {
        let words = |slot| {
            let control = self.limit_control(slot).load(Acquire);
            // Acquire: whoever joined before has named the slot; pairs with the release in `join_slot`.
            (slot, control, uses(&self.region, slot).load(Acquire))
        };
        let slots: Vec<_> = (0..slots_end(&self.region)).map(words).collect();
        if slots.is_empty() {
            return;
        }
        let named = self.named_by_overrides();
        let closed: Vec<_> = slots
            .into_iter()
            .filter(|(slot, control, before)| {
                let word = uses(&self.region, *slot);
                let closed = (before & !3).wrapping_add(ONE_CHANGE) | CLOSED;
                Control(*control).is_in_use()
                    && (role(*before) == CLOSED
                        || role(*before) == OPEN
                            && !named.contains(slot)
                            && word
                                .compare_exchange(*before, closed, AcqRel, Relaxed)
                                .is_ok())
            })
            .collect();
        if closed.is_empty() {
            return;
        }
        self.drive_out(&closed.iter().map(|(slot, ..)| *slot).collect());
        for (slot, control, _) in closed {
            let free = Control(control).freed().0;
            let _ = self
                .limit_control(slot)
                .compare_exchange(control, free, AcqRel, Relaxed);
        }
    }

    /// The slots that overrides name.
    fn named_by_overrides(&self) -> HashSet<u32> {
        let mut named = HashSet::new();
        self.objects.for_each(&self.region, |_, at, state| {
            if phase(state) == LIVE && Objects::is(&self.region, at, Kind::Override) {
                let chosen = Chosen::decode(state);
                named.extend(chosen.current.into_iter().chain(chosen.next));
            }
        });
        named
    }

    /// Brings keys from under `closed` slots to where they belong, and changes the word of every other key of the
    /// limiters whose these are, and of every claim of one.
    fn drive_out(&self, closed: &HashSet<u32>) {
        // Pairs with the fence in `move_key`, and with that in `limit_of_new`: the slot is closed, and then we
        // look for keys; whoever finds one that we did not see looks after that what it is to be under.
        fence(SeqCst);
        let region = &self.region;
        let cells: HashSet<u32> = closed.iter().map(|slot| name_cell(region, *slot)).collect();
        self.limiter_keys.for_each(region, |cell, at, state| {
            match phase(state) {
                CLAIMED if cells.contains(&name_cell(region, claimed_limit(state))) => {
                    // Losing means that it changed.
                    let word = self.limiter_keys.state(region, cell);
                    let _ = word.compare_exchange(state, next_claim(state));
                }
                LIVE if cells.contains(&name_cell(region, KeyState(state).limit())) => {
                    // In a damaged region it stays engaged.
                    let _ = settle(region, at).and_then(|state| match phase(state) {
                        LIVE => self.outdate(at, state),
                        _ => Ok(false),
                    });
                }
                _ => {}
            }
            // It may have been under one, or have come under one by an exchange that was prepared before.
            self.drive_out_key(cell, at, closed);
        });
    }

    fn drive_out_key(&self, cell: u32, at: usize, closed: &HashSet<u32>) {
        for _ in 0..ROUNDS_MAX {
            let Ok(state) = settle(&self.region, at) else {
                return;
            };
            let limit = KeyState(state).limit();
            if phase(state) != LIVE || !closed.contains(&limit) {
                return;
            }
            let name_at = self.objects.at(name_cell(&self.region, limit));
            let name = Name::new(
                &self.region,
                "limiter name",
                &Objects::name(&self.region, name_at),
            );
            let limiter = name.ok().and_then(|name| self.limiter_ref(&name));
            let key = cell_key::read(&self.region, at, state);
            let Some(limiter) = limiter else {
                return;
            };
            // As of when the region was last seen: it has no clock here, and what was refilled since counts as
            // used.
            let now_ns = self.region.latest_ns();
            let found = Found { cell, at, state };
            if !self.move_key(&limiter, &key, &found, now_ns) {
                // We are late: somebody else freed the slot, and it is another limit's by now.
                return;
            }
        }
    }
}
