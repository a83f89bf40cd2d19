//! Charges: by which the words of several keys are exchanged together, all or none.
//!
//! This file owns the charges and what an engaged word stands for. Which words are exchanged for what is for
//! [`super::several`] to say. Decides on no key, and reads no clock.
//!
//! Only the *initiator*, who claimed a charge, engages words under it: it exchanges each for the same with the
//! *engaged* bit set and, where the value was, which entry of which charge says the rest. One exchange of the
//! charge's control word then decides for all. Whoever meets an engaged word before that looks again for a
//! moment and then calls the charge off; whoever meets one after puts the word where the decision says.
//!
//! ```text
//!          claim          all engaged: the step that decides
//!   FREE ─────────▶ OPEN ─────────────────────────────────────▶ TAKEN        each word: engaged ─▶ new, by anyone
//!    ▲  ▲            │ └──────────────────────────────────────▶ CALLED_OFF   each word: engaged ─▶ old, by anyone
//!    │  └────────────┘    by whoever met an engaged word for         │
//!    │   given up by its  too long, or ends what the dead left       │
//!    │   initiator                                                   │
//!    └───────────────────────────────────────────────────────────────┘
//!      by the initiator, once none of its words is engaged; of a dead one, by whoever put all of them back
//! ```
//!
//! Since nobody else engages words, a helper that is late has only exchanges prepared that expect an engaged word,
//! and each such word has the charge's *number* in it, which is never used again. An initiator that was called off
//! while it was stopped may engage one word more when it goes on: anyone puts that one back, and the charge is not
//! free before it has looked.
//!
//! # A charge
//!
//! | bytes | field | written by |
//! |---|---|---|
//! | 0..8 | *control*: bits 0..2 phase, 2..20 the initiator's session, 20..64 number, one higher for each claim | exchange |
//! | 64 + 40·i .. | *entry* i: byte offset of its word, the value before, the value after | the initiator, before it engages that word |
//!
//! The value of an engaged word: bits 0..10 charge, 10..13 entry, 13..57 number.
//!
//! An entry is read only between the load of an engaged word and its exchange. It stays as long as that word does:
//! until then its charge is not free, and so nobody writes to its entries.

#[cfg(all(test, not(loom)))]
mod stopped;

use crate::engine::Engine;
use crate::error::{CALL_OF_SEVERAL, Error, Result};
use crate::limiter_key::KeyState;
use crate::region::{CHARGES, Region};
use crate::session::SessionId;
use crate::sync::Word;
use crate::table::{ROUNDS_MAX, field};
#[cfg(all(not(loom), target_os = "linux"))]
use crate::{limiter::overflow, region::LIMITS};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// Words that one call can exchange.
pub const CHARGED_MAX: usize = 8;

const FREE: u64 = 0;
const OPEN: u64 = 1;
const TAKEN: u64 = 2;
const CALLED_OFF: u64 = 3;

const NUMBER: u32 = 20;
const NUMBER_BITS: u32 = 44;
/// Offset of the first entry in a charge, and what each takes.
const ENTRIES: usize = 64;
const ENTRY_BYTES: usize = 40;

/// How often the word of a charge that is neither decided nor called off is looked at before it is called off. One
/// that is running needs a tenth of that time. Few where each look is a case of a test.
const LOOKS: u32 = if cfg!(loom) {
    0
} else if cfg!(feature = "steps") {
    2
} else {
    100
};
/// How often a word is looked at that says what cannot be, before it is called damaged.
const DOUBTS: u32 = 100;

/// A control word, decoded.
#[derive(Clone, Copy)]
struct Control(u64);

impl Control {
    fn new(phase: u64, by: SessionId, number: u64) -> Self {
        Self(phase | (by.bits() as u64) << 2 | number << NUMBER)
    }

    fn phase(self) -> u64 {
        self.0 & 3
    }

    fn by(self) -> SessionId {
        SessionId::from_bits(self.0 >> 2)
    }

    fn number(self) -> u64 {
        self.0 >> NUMBER
    }

    fn called_off(self) -> Self {
        Self(self.0 & !3 | CALLED_OFF)
    }

    fn freed(self) -> Self {
        Self(self.number() << NUMBER | FREE)
    }
}

/// Which entry an engaged word stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    charge: u32,
    entry: u32,
    number: u64,
}

impl Mark {
    fn of(state: KeyState) -> Self {
        let value = state.value();
        Self {
            charge: field(value, 0, 10) as u32 % CHARGES,
            entry: field(value, 10, 3) as u32,
            number: field(value, 13, NUMBER_BITS),
        }
    }

    fn value(self) -> u128 {
        u128::from(self.charge) | u128::from(self.entry) << 10 | u128::from(self.number) << 13
    }

    fn entry_at(self, region: &Region) -> usize {
        entry_at(region, self.charge, self.entry)
    }

    /// One of the two values of its entry.
    fn entry_value(self, region: &Region, offset: usize) -> u128 {
        // Relaxed: written before the word was engaged, which the caller acquired.
        let word = |i| {
            u128::from(
                region
                    .word(self.entry_at(region) + offset + i)
                    .load(Relaxed),
            )
        };
        word(0) | word(8) << 64
    }
}

const BEFORE: usize = 8;
const AFTER: usize = 24;

fn control(region: &Region, charge: u32) -> &Word {
    region.word(region.charge_at(charge))
}

fn entry_at(region: &Region, charge: u32, entry: u32) -> usize {
    region.charge_at(charge) + ENTRIES + entry as usize * ENTRY_BYTES
}

/// The word at `at`, of a limiter key or of a bucket, once it is not engaged: finishes, or calls off, what others
/// began. A few microseconds at most are spent on one charge that stands still.
#[cold]
#[inline(never)]
pub(crate) fn settle(region: &Region, at: usize) -> Result<u128> {
    let word = region.wide(at);
    let (mut last, mut looks_left, mut doubts) = (None, 0, 0);
    for _ in 0..ROUNDS_MAX {
        let state = KeyState(word.load());
        if !state.is_engaged() {
            return Ok(state.0);
        }
        let mark = Mark::of(state);
        if last != Some(mark) {
            (last, looks_left, doubts) = (Some(mark), LOOKS, 0);
        }
        let word_of_charge = control(region, mark.charge);
        // Acquire: after the engaged word, so that it is of that claim or a later one; and pairs with the exchange
        // that decides.
        let now = Control(word_of_charge.load(Acquire));
        // Relaxed: see `entry_value`.
        let is_its = now.number() == mark.number
            && region.word(mark.entry_at(region)).load(Relaxed) == at as u64;
        let after = match now.phase() {
            OPEN if is_its => {
                if looks_left > 0 {
                    looks_left -= 1;
                    core::hint::spin_loop();
                } else {
                    // Losing means that it is decided.
                    let off = now.called_off().0;
                    let _ = word_of_charge.compare_exchange(now.0, off, AcqRel, Relaxed);
                }
                continue;
            }
            TAKEN if is_its => state.released().admitted(mark.entry_value(region, AFTER)),
            CALLED_OFF if is_its => state
                .released()
                .with_value(mark.entry_value(region, BEFORE)),
            // The charge is over, and so the word is another by now.
            _ => {
                doubts += 1;
                if doubts > DOUBTS {
                    break;
                }
                core::hint::spin_loop();
                continue;
            }
        };
        if word.compare_exchange(state.0, after.0).is_ok() {
            return Ok(after.0);
        }
    }
    Err(Error::Damaged {
        what: "several limits at once never settle",
    })
}

/// A charge that this caller claimed.
pub(super) struct Charge<'e> {
    region: &'e Region,
    index: u32,
    open: Control,
}

impl Charge<'_> {
    /// Writes an entry: the word at `at` is to go from `before` to one with `after`'s value. The engaged form of it.
    pub(super) fn enter(
        &self,
        entry: usize,
        at: usize,
        before: KeyState,
        after: KeyState,
    ) -> KeyState {
        let mark = Mark {
            charge: self.index,
            entry: entry as u32,
            number: self.open.number(),
        };
        let entry_at = mark.entry_at(self.region);
        let put = |offset, value| self.region.word(entry_at + offset).store(value, Relaxed);
        // Relaxed: published by the exchange that engages the word. Nobody reads an entry of this claim before.
        put(0, at as u64);
        for (offset, value) in [(BEFORE, before.value()), (AFTER, after.value())] {
            put(offset, value as u64);
            put(offset + 8, (value >> 64) as u64);
        }
        before.engaged(mark.value())
    }

    /// Decides that all of it is so, unless it was called off.
    pub(super) fn decide(&self) -> bool {
        let taken = Control(self.open.0 & !3 | TAKEN);
        // Release: the words that are engaged come before. Acquire: and what is done about them after.
        control(self.region, self.index)
            .compare_exchange(self.open.0, taken.0, AcqRel, Acquire)
            .is_ok()
    }

    /// Gives it back. None of its words is engaged any more.
    pub(super) fn free(&self) {
        let word = control(self.region, self.index);
        // Relaxed: exchanged below.
        let mut now = Control(word.load(Relaxed));
        // It may be called off meanwhile, once. If this session was taken for dead it may even be another's.
        for _ in 0..4 {
            if now.number() != self.open.number() || now.phase() == FREE {
                return;
            }
            // Release: that no word is engaged comes before; pairs with the claim.
            match word.compare_exchange(now.0, now.freed().0, AcqRel, Relaxed) {
                Ok(_) => return,
                Err(found) => now = Control(found),
            }
        }
    }
}

impl Engine {
    /// Claims a free charge, one that nobody `near` uses if there is; where all are in use, one of the dead.
    pub(super) fn claim_charge(&self, by: SessionId, near: u32) -> Result<Charge<'_>> {
        let share = self.share_of(CHARGES).min(CHARGES);
        // Each session looks through as many as it may have, so that it need not count them.
        let first = u32::from(by.index()).wrapping_mul(16);
        for i in 0..share {
            let index = first.wrapping_add(near.wrapping_add(i) % share) % CHARGES;
            if let Some(charge) = self.try_claim(index, by) {
                return Ok(charge);
            }
        }
        self.claim_scarce_charge(by, share)
    }

    fn try_claim(&self, index: u32, by: SessionId) -> Option<Charge<'_>> {
        let word = control(&self.region, index);
        let now = Control(word.load(Relaxed));
        if now.phase() != FREE {
            return None;
        }
        let number = now.number().wrapping_add(1) & ((1 << NUMBER_BITS) - 1);
        let open = Control::new(OPEN, by, number);
        // Acquire: whoever freed it had no word engaged. Pairs with the releases in `free` and `end_charge`.
        word.compare_exchange(now.0, open.0, AcqRel, Relaxed)
            .is_ok()
            .then_some(Charge {
                region: &self.region,
                index,
                open,
            })
    }

    #[cold]
    fn claim_scarce_charge(&self, by: SessionId, share: u32) -> Result<Charge<'_>> {
        let mut used = 0;
        for index in 0..CHARGES {
            let now = Control(control(&self.region, index).load(Acquire));
            if now.phase() == FREE {
                continue;
            }
            if now.by() == by {
                used += 1;
            } else if !self.is_alive(now.by()) {
                end_charge(&self.region, index, now);
            }
        }
        if used >= u64::from(share) && self.has_share() {
            return Err(Error::ShareExceeded {
                what: CALL_OF_SEVERAL,
                used,
            });
        }
        (0..CHARGES)
            .find_map(|index| self.try_claim(index, by))
            .ok_or(Error::Full {
                what: CALL_OF_SEVERAL,
                cap: CHARGES.into(),
            })
    }

    /// Ends the charges of sessions that had this line.
    pub(crate) fn end_charges_of(&self, index: u16) {
        for charge in 0..CHARGES {
            let now = Control(control(&self.region, charge).load(Acquire));
            if now.phase() != FREE && now.by().index() == index {
                end_charge(&self.region, charge, now);
            }
        }
    }

    /// Charges in use.
    pub(crate) fn charges_in_use(&self) -> u32 {
        let is_in_use =
            |index: &u32| Control(control(&self.region, *index).load(Relaxed)).phase() != FREE;
        (0..CHARGES).filter(is_in_use).count() as u32
    }

    /// Whether what the word at `at` says is so, that is, if it is engaged, whether its charge knows of it.
    pub(crate) fn is_charged(&self, at: usize) -> bool {
        let state = KeyState(self.region.wide(at).load());
        let mark = Mark::of(state);
        let now = Control(control(&self.region, mark.charge).load(Acquire));
        let entry = self.region.word(mark.entry_at(&self.region)).load(Relaxed);
        !state.is_engaged()
            || now.phase() != FREE && now.number() == mark.number && entry == at as u64
    }
}

/// Ends a charge whose initiator is dead and whose control word was `now`: as it was decided, or else not at all.
fn end_charge(region: &Region, index: u32, now: Control) {
    let word = control(region, index);
    let mut decided = now;
    if now.phase() == OPEN {
        decided = now.called_off();
        if let Err(other) = word.compare_exchange(now.0, decided.0, AcqRel, Acquire) {
            decided = Control(other);
            if decided.number() != now.number() || decided.phase() == FREE {
                return;
            }
        }
    }
    for entry in 0..CHARGED_MAX as u32 {
        // Relaxed: what the dead wrote. Entries that it did not come to are of a claim before, whose words are not
        // engaged.
        let at = region.word(entry_at(region, index, entry)).load(Relaxed) as usize;
        if !region.is_limiter_word(at) {
            continue;
        }
        let state = KeyState(region.wide(at).load());
        let mark = Mark::of(state);
        if state.is_engaged() && mark.charge == index && mark.number == decided.number() {
            // In a damaged region it stays as it is.
            let _ = settle(region, at);
        }
    }
    // Release: pairs with the claim. Losing means that somebody else did it.
    let _ = word.compare_exchange(decided.0, decided.freed().0, AcqRel, Relaxed);
}

/// Ends all charges of a region that nobody uses. Its words may be of different times: the bucket that still says
/// that it is engaged then starts anew; a key is the caller's to end.
#[cfg(all(not(loom), target_os = "linux"))]
pub(crate) fn settle_all(region: &Region) {
    for index in 0..CHARGES {
        let now = Control(control(region, index).load(Acquire));
        if now.phase() != FREE {
            end_charge(region, index, now);
        }
    }
    for limit in 0..LIMITS {
        let word = overflow(region, limit);
        let state = KeyState(word.load());
        if state.is_engaged() {
            let fresh = state.released().with_value(0).next_generation();
            let _ = word.compare_exchange(state.0, fresh.0);
        }
    }
}
