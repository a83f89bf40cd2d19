//! The definitions of limiters: the slots that limits lie in, and opening.
//!
//! Owns which limit a name has and what a key under it starts from. Decides on no key, and moves none
//! from one limit to another: [`super::change`] does.
//!
//! A limiter's name is an object whose value says which *limit slot* is current (bits 0..16, plus 1)
//! and which one it replaced, if keys under that may remain (bits 16..32, plus 1). A slot never
//! changes while it is in use: changing a limit fills another slot and exchanges the name's value.
//!
//! # A limit slot
//!
//! | bytes | field | written by |
//! |---|---|---|
//! | 0..8 | *control* ([`crate::slot`]) | exchange |
//! | 8..48 | the limit, as [`Prepared::encode`] gives it | its claimant |
//! | 48..56 | hash of the limiter's name, which seeds its keys' hash | its claimant |
//! | 56..60 | the limiter name's cell | its claimant |
//! | 60..64 | generation of the claimant's line, in full: whose share it counts against | its claimant |
//! | 64..80 | *overflow bucket*: a state word as a key's ([`crate::limiter_key`]) | exchange |
//! | 80..88 | *uses* ([`super::uses`]) | exchange |

use super::{LimiterRef, settle};
use crate::engine::Engine;
use crate::error::{Error, LIMIT_DEFINITION, Result};
use crate::key::{self, Hasher};
use crate::limit::{Limit, PREPARED_WORDS, Prepared};
use crate::limiter_key::{KeyState, claimed_limit, reclaimed_at_ns};
use crate::object::{Kind, Name, Objects, Plain};
use crate::readable::Readable;
use crate::region::{LIMITS, Region, header};
use crate::session::{SessionId, Sessions};
use crate::slot::Control;
use crate::sync::{Wide, Word, fence};
use crate::table::{CLAIMED, Found, LIVE, ROUNDS_MAX, phase};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::collections::HashMap;

const LIMIT: usize = 8;
const FAMILY: usize = 48;
pub(crate) const CELL: usize = 56;
const CREATOR: usize = 60;
const OVERFLOW: usize = 64;
pub(crate) const USES: usize = 80;

/// What a limit is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The first that a limiter has.
    First,
    /// Another in place of the one that it has.
    Next,
    /// Keys that have it instead of the limiter's.
    Override,
}

/// The hash function of the keys under `limit`.
pub(crate) fn hasher(region: &Region, limit: u32) -> Hasher {
    let family = region.word(region.limit_at(limit % LIMITS) + FAMILY);
    region.family_hasher(family.load(Acquire))
}

/// The overflow bucket of the limit in a slot.
pub(crate) fn overflow(region: &Region, limit: u32) -> &Wide {
    region.wide(overflow_at(region, limit))
}

/// Its byte offset.
pub(crate) fn overflow_at(region: &Region, limit: u32) -> usize {
    region.limit_at(limit % LIMITS) + OVERFLOW
}

/// The cell of the name of the limiter whose limit is in a slot.
pub(crate) fn name_cell(region: &Region, limit: u32) -> u32 {
    // Acquire: as the name's hash. Only a word that is under the slot, unchanged after, says that it is in use.
    region
        .half(region.limit_at(limit % LIMITS) + CELL)
        .load(Acquire)
}

/// The limit in a slot; `None` if the slot is free or its words are none that a limit has.
pub(crate) fn prepared(region: &Region, limit: u32) -> Option<Prepared> {
    let at = region.limit_at(limit % LIMITS);
    for _ in 0..ROUNDS_MAX {
        let control = region.word(at).load(Acquire);
        if !Control(control).is_in_use() {
            return None;
        }
        let mut words = [0; PREPARED_WORDS];
        for (i, word) in words.iter_mut().enumerate() {
            *word = region.word(at + LIMIT + i * 8).load(Relaxed);
        }
        // Acquire: the loads above come before the one below; pairs with the fence in `fill_limit`.
        fence(Acquire);
        // Otherwise it was replaced, which changes nothing here, or freed.
        if region.word(at).load(Relaxed) == control {
            return Prepared::decode(words);
        }
    }
    None
}

/// What a key inserted now under `limit` starts from: the overflow bucket's level, and never a time
/// before the last reclaim.
pub(crate) fn first_value(region: &Region, limit: u32) -> u128 {
    let bucket = overflow(region, limit);
    let mut level = 0;
    for _ in 0..ROUNDS_MAX {
        let Ok(state) = settle(region, overflow_at(region, limit)) else {
            break;
        };
        if phase(state) != LIVE {
            // Closed, and so final: the limit was changed after the insertion began.
            level = KeyState(state).value();
            break;
        }
        let state = KeyState(state);
        if bucket
            .compare_exchange(state.0, state.next_generation().0)
            .is_ok()
        {
            level = state.value();
            break;
        }
    }
    let now_ns = reclaimed_at_ns(region);
    if now_ns == 0 {
        return level;
    }
    let moment = region.moment(now_ns);
    prepared(region, limit).map_or(level, |limit| limit.advanced(level, moment))
}

/// What a limiter's name says: the slots of its limit, and of the one that this replaced.
#[derive(Clone, Copy)]
pub(super) struct Slots {
    pub(super) current: Option<u32>,
    pub(super) previous: Option<u32>,
}

impl Slots {
    pub(super) fn decode(value: u64) -> Self {
        let slot = |bits: u64| {
            (bits & 0xffff)
                .checked_sub(1)
                .map(|slot| slot as u32 % LIMITS)
        };
        Self {
            current: slot(value),
            previous: slot(value >> 16),
        }
    }

    pub(super) fn encode(self) -> u64 {
        let slot = |slot: Option<u32>| slot.map_or(0, |slot| u64::from(slot) + 1);
        slot(self.current) | slot(self.previous) << 16
    }
}

impl Engine {
    /// Opens the limiter `name`, creating it with `limit` if there is none. If there is one with
    /// another limit it is changed when `update` says so, keeping what each key has used; else that
    /// is an error. The overflow bucket's level is kept too.
    pub fn open_limiter(
        &self,
        name: &[u8],
        limit: Limit,
        update: bool,
        by: SessionId,
        now_ns: u64,
    ) -> Result<LimiterRef> {
        self.open_limiter_by_clock(name, limit, update, by, || now_ns)
    }

    /// [`open_limiter`](Self::open_limiter) with a clock, which a change reads for each key: keys may be
    /// in use while it goes through them.
    pub fn open_limiter_by_clock(
        &self,
        name: &[u8],
        limit: Limit,
        update: bool,
        by: SessionId,
        now_ns: impl Fn() -> u64,
    ) -> Result<LimiterRef> {
        let name = Name::new(&self.region, "limiter name", name)?;
        let object = self.object(Kind::Limiter, &name);
        let asked = limit.prepare();
        for _ in 0..ROUNDS_MAX {
            let found = self.insert_object(&object, by, now_ns())?;
            if !found.is_unchanged(&self.region) {
                continue;
            }
            let slots = Slots::decode(Plain::decode(found.state).value);
            let existing = slots.current.and_then(|id| prepared(&self.region, id));
            match existing {
                Some(existing) if existing == asked => {
                    if slots.previous.is_some() {
                        self.finish_change(&found, &now_ns);
                    }
                    if let Some(limiter) = self.limiter_ref(&name) {
                        return Ok(limiter);
                    }
                    continue;
                }
                Some(existing) if !update => {
                    return Err(Error::LimitDiffers {
                        limiter: Readable(&name.to_vec()).to_string(),
                        existing: existing.definition().to_string(),
                        asked: limit.to_string(),
                    });
                }
                _ => {}
            }
            if slots.previous.is_some() {
                self.finish_change(&found, &now_ns);
                continue;
            }
            if !self.name_limit(&name, &found, asked, by)? {
                continue;
            }
            if let Ok(found) = self.insert_object(&object, by, now_ns()) {
                self.finish_change(&found, &now_ns);
            }
        }
        Err(Error::Damaged {
            what: "a limiter never settles",
        })
    }

    /// Writes a limit to a slot and makes it the current one of the limiter whose name was found;
    /// `false` if the name's word changed since.
    pub(super) fn name_limit(
        &self,
        name: &Name,
        found: &Found,
        limit: Prepared,
        by: SessionId,
    ) -> Result<bool> {
        let plain = Plain::decode(found.state);
        let current = Slots::decode(plain.value).current;
        let role = if current.is_none() {
            Role::First
        } else {
            Role::Next
        };
        let (id, in_use) = self.new_limit(limit, name, found.cell, role, by)?;
        let slot = self.limit_control(id);
        let next = Slots {
            current: Some(id),
            previous: current,
        };
        let word = self.region.wide(found.at);
        let is_named = word
            .compare_exchange(found.state, plain.next(next.encode()).encode())
            .is_ok();
        if !is_named {
            let _ = slot.compare_exchange(in_use, Control(in_use).freed().0, AcqRel, Relaxed);
        }
        Ok(is_named)
    }

    /// Writes a limit to a slot: which one, and its control word.
    pub(super) fn new_limit(
        &self,
        limit: Prepared,
        name: &Name,
        cell: u32,
        role: Role,
        by: SessionId,
    ) -> Result<(u32, u64)> {
        let (id, control) = self.claim_limit(role, by)?;
        self.fill_limit(id, limit, name, cell, role);
        let in_use = Control(control).in_use().0;
        // Release: the slot's words come before it is in use.
        let _ = self
            .limit_control(id)
            .compare_exchange(control, in_use, AcqRel, Relaxed);
        Ok((id, in_use))
    }

    /// The limiter `name` as it is; `None` if there is none.
    pub fn limiter(&self, name: &[u8]) -> Result<Option<LimiterRef>> {
        let name = Name::new(&self.region, "limiter name", name)?;
        Ok(self.limiter_ref(&name))
    }

    pub(super) fn limiter_ref(&self, name: &Name) -> Option<LimiterRef> {
        let object = self.object(Kind::Limiter, name);
        for _ in 0..ROUNDS_MAX {
            let found = self.find_object(&object)?;
            if !found.is_unchanged(&self.region) {
                continue;
            }
            let slots = Slots::decode(Plain::decode(found.state).value);
            let id = slots.current?;
            let control = self.limit_control(id).load(Acquire);
            let prepared = prepared(&self.region, id);
            // Unchanged: the slot was this limiter's while it was read.
            if self.region.wide(found.at).load() == found.state {
                return Some(LimiterRef {
                    name: name.clone(),
                    id,
                    cell: found.cell,
                    previous: slots.previous,
                    control,
                    control_at: self.region.limit_at(id),
                    prepared: prepared?,
                    family: key::mix(name.raw_hash(), self.region.hash_seed()),
                    hasher: self.region.family_hasher(name.raw_hash()),
                });
            }
        }
        None
    }

    /// Fails with [`Error::LimiterGone`] if `limiter` is no longer the limiter of its name: its limit was
    /// changed, or it is gone.
    pub(crate) fn check_current(&self, limiter: &LimiterRef) -> Result<()> {
        if self.is_current_limit(limiter) {
            Ok(())
        } else {
            Err(limiter.gone())
        }
    }

    pub(super) fn is_current_limit(&self, limiter: &LimiterRef) -> bool {
        let object = self.object(Kind::Limiter, &limiter.name);
        self.find_object(&object).is_some_and(|found| {
            let slots = Slots::decode(Plain::decode(found.state).value);
            // Under the previous slot there may be another limiter's keys once the change is over.
            slots.current == Some(limiter.id)
                && (limiter.previous.is_none() || limiter.previous == slots.previous)
                && self.limit_control(limiter.id).load(Acquire) == limiter.control
        })
    }

    pub(super) fn limit_control(&self, id: u32) -> &Word {
        self.region.word(self.region.limit_at(id % LIMITS))
    }

    fn claim_limit(&self, role: Role, by: SessionId) -> Result<(u32, u64)> {
        let generation = Sessions::generation(&self.region, by);
        if self.has_share() {
            let is_its = |id: &u32| {
                let word = Control(self.limit_control(*id).load(Acquire));
                // Relaxed here and below: for counting.
                let creator = self.region.half(self.region.limit_at(*id) + CREATOR);
                !word.is_free() && word.claimant() == by && creator.load(Relaxed) == generation
            };
            let used = || (0..LIMITS).filter(is_its).count() as u64;
            let share = self.share_of(LIMITS).into();
            if used() >= share {
                self.free_unnamed_overrides();
            }
            let used = used();
            if used >= share {
                return Err(Error::ShareExceeded {
                    what: LIMIT_DEFINITION,
                    used,
                });
            }
        }
        let hint = match role {
            // Close together: whoever looks for one goes through all that there may be.
            Role::Override => 0,
            _ => self.region.word(header::LIMITS_HINT).fetch_add(1, Relaxed) as u32,
        };
        for recover in [false, true] {
            if recover {
                self.free_unnamed_overrides();
            }
            for i in 0..LIMITS {
                let id = hint.wrapping_add(i) % LIMITS;
                let control = self.limit_control(id);
                let word = Control(control.load(Acquire));
                let is_left = || {
                    word.is_claimed() && !self.sessions.is_alive(&self.region, word.claimant())
                        || word.is_in_use() && self.is_orphan(id)
                };
                if !(word.is_free() || recover && is_left()) {
                    continue;
                }
                let claimed = word.claimed(by).0;
                if control
                    .compare_exchange(word.0, claimed, AcqRel, Relaxed)
                    .is_ok()
                {
                    self.region
                        .half(self.region.limit_at(id) + CREATOR)
                        .store(generation, Relaxed);
                    return Ok((id, claimed));
                }
            }
        }
        Err(Error::Full {
            what: LIMIT_DEFINITION,
            cap: LIMITS.into(),
        })
    }

    /// Frees the slots that sessions that had this line claimed and did not fill.
    pub(crate) fn end_limit_claims_of(&self, index: u16) {
        for id in 0..LIMITS {
            let control = self.limit_control(id);
            let word = Control(control.load(Acquire));
            if word.is_claimed() && word.claimant().index() == index {
                let _ = control.compare_exchange(word.0, word.freed().0, AcqRel, Relaxed);
            }
        }
    }

    /// Whether no limiter's name points to a slot in use: its changer died before or after it did.
    fn is_orphan(&self, id: u32) -> bool {
        if self.is_of_overrides(id) {
            return false;
        }
        let at = self.region.limit_at(id);
        let cell = self.region.half(at + CELL).load(Acquire);
        let state = self.objects.state(&self.region, cell).load();
        let slots = Slots::decode(Plain::decode(state).value);
        // The cell may be another object's by now, whose value says nothing of slots.
        let is_limiter =
            phase(state) == LIVE && Objects::is(&self.region, self.objects.at(cell), Kind::Limiter);
        let is_named = is_limiter && (slots.current == Some(id) || slots.previous == Some(id));
        let control = Control(self.limit_control(id).load(Acquire));
        // Between filling the slot and naming it its claimant lives; a slot that was replaced had its
        // name, and whoever took that away may have died before it freed the slot.
        let is_left =
            control.is_replaced() || !self.sessions.is_alive(&self.region, control.claimant());
        !is_named && is_left && self.is_unused(id)
    }

    fn fill_limit(&self, id: u32, limit: Prepared, name: &Name, cell: u32, role: Role) {
        let at = self.region.limit_at(id);
        // Release: whoever still reads the slot as it was, and sees a word written below, finds its
        // control changed. Pairs with the fence in `prepared`.
        fence(Release);
        for (i, word) in limit.encode().into_iter().enumerate() {
            self.region.word(at + LIMIT + i * 8).store(word, Relaxed);
        }
        self.region
            .word(at + FAMILY)
            .store(name.raw_hash(), Relaxed);
        self.region.half(at + CELL).store(cell, Relaxed);
        // The bucket of a changed limit is not LIVE until `finish_change` moved the old one's level.
        let bucket = overflow(&self.region, id);
        for _ in 0..ROUNDS_MAX {
            let before = bucket.load();
            // A late call of several limits may have engaged it, that found it under the limit before.
            let next = KeyState(before)
                .released()
                .next_generation()
                .with_value(0)
                .with_limit(id, 0)
                .0
                & !7;
            let state = next | if role == Role::Next { CLAIMED } else { LIVE };
            if bucket.compare_exchange(before, state).is_ok() {
                break;
            }
        }
        self.begin_uses(id, role == Role::Override);
    }

    /// Whether no cell names the slot.
    fn is_unused(&self, id: u32) -> bool {
        fence(SeqCst);
        let mut is_unused = true;
        self.limiter_keys.for_each(&self.region, |_, _, state| {
            let limit = match phase(state) {
                LIVE => KeyState(state).limit(),
                CLAIMED => claimed_limit(state),
                _ => return,
            };
            is_unused &= limit != id;
        });
        is_unused
    }

    /// The names of the limiters that begin with `prefix`, with their limits and how many keys each
    /// has now. Reads both tables whole; stops no one.
    pub fn for_each_limiter(&self, prefix: &[u8], mut visit: impl FnMut(Vec<u8>, Limit, u64)) {
        let mut keys: HashMap<u32, u64> = HashMap::new();
        self.limiter_keys.for_each(&self.region, |_, _, state| {
            if phase(state) == LIVE {
                let cell = name_cell(&self.region, KeyState(state).limit());
                *keys.entry(cell).or_default() += 1;
            }
        });
        self.objects.for_each(&self.region, |cell, at, state| {
            if phase(state) != LIVE || !Objects::is(&self.region, at, Kind::Limiter) {
                return;
            }
            let name = Objects::name(&self.region, at);
            let slots = Slots::decode(Plain::decode(state).value);
            if let Some(limit) = slots.current.and_then(|id| prepared(&self.region, id))
                && name.starts_with(prefix)
            {
                let keys = keys.get(&cell).copied().unwrap_or_default();
                visit(name, limit.definition(), keys);
            }
        });
    }
}
