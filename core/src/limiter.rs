//! Limiters: named limits, and the check of a key against one.
//!
//! A limiter's name is an object whose value says which *limit slot* is current (bits 0..16, plus 1)
//! and which one it replaced, if keys under that may remain (bits 16..32, plus 1). A slot never
//! changes while it is in use: changing a limit fills another slot and exchanges the name's value.
//!
//! # A limit slot
//!
//! | bytes | field | written by |
//! |---|---|---|
//! | 0..8 | *control*: bits 0..2 phase (0 free, 1 claimed, 2 in use), 2..8 and 8..20 the claimant's session, 32..64 generation, one higher for each use | exchange |
//! | 8..48 | the limit, as [`Prepared::encode`] gives it | its claimant |
//! | 48..56 | hash of the limiter's name, which seeds its keys' hash | its claimant |
//! | 56..60 | the limiter name's cell | its claimant |
//! | 64..80 | *overflow bucket*: a state word as a key's ([`crate::limiter_key`]) | exchange |
//!
//! # A check
//!
//! Load the key's state word, ask the pure function, exchange the word. Refused: nothing is written.
//! A key that is not there yet is inserted; if there is no room for it, the limiter's shared overflow
//! bucket decides, and the decision says so. A key inserted later starts at that bucket's level:
//! inserting moves the bucket to its next generation, so that a check that found no room before
//! cannot charge the bucket after.
//!
//! # Changing a limit
//!
//! ```text
//!  name: (a, -) ──exchange──▶ (b, a) ── every key under a is exchanged to the same under b, ──▶ (b, -)
//!        slot b is complete            by whoever meets it or by the changer's sweep      slot a free
//! ```
//!
//! Limit and value are in one word, so that converting a key is one exchange that keeps what was used.
//! A changer that dies leaves (b, a): checks go on converting, the next change finishes the sweep.

use crate::chunk;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::key::{self, Hasher, NAME_BYTES_MAX};
use crate::limit::{Decision, Limit, Moment, PREPARED_WORDS, Prepared, Verdict, convert};
use crate::limiter_key::{KeyState, LimiterKey, LimiterKeys, reclaimed_at_ns};
use crate::object::{Kind, Name, Object, Plain};
use crate::region::memory::Line;
use crate::region::{LIMITS, Region, header};
use crate::session::{GENERATION_BITS, SessionId};
use crate::sync::fence;
use crate::table::{CLAIMED, Found, LIVE, ROUNDS_MAX, phase};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};

const FREE: u64 = 0;
const CLAIMED_SLOT: u64 = 1;
const IN_USE: u64 = 2;
pub(crate) const OVERFLOW: usize = 64;

/// A limiter opened for use: its limit, read once.
///
/// When the limit is changed by somebody else, checks through an old reference still decide by the
/// new one, at the price of looking it up each time; open it again to be fast.
#[derive(Clone)]
pub struct LimiterRef {
    name: Name,
    pub(crate) id: u32,
    /// The slot that it replaced, whose keys count as this one's.
    pub(crate) previous: Option<u32>,
    control: u64,
    /// Byte offset of the slot's control word.
    control_at: usize,
    prepared: Prepared,
    pub(crate) hasher: Hasher,
}

impl LimiterRef {
    /// The limit that it was opened with.
    pub fn limit(&self) -> Limit {
        self.prepared.definition()
    }
}

/// The answer to a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Checked {
    /// The decision and the key's state right after.
    pub decision: Decision,
    /// Whether the region had no room for the key, so that the bucket that such keys share decided.
    pub is_overflow: bool,
}

/// The hash function of the keys of the limiter whose name hashes to `family`.
fn family_hasher(region: &Region, family: u64) -> Hasher {
    Hasher::new(key::mix(family, region.hash_seed()))
}

/// The hash function of the keys under `limit`.
pub(crate) fn hasher(region: &Region, limit: u32) -> Hasher {
    family_hasher(
        region,
        region
            .word(region.limit_at(limit % LIMITS) + 48)
            .load(Acquire),
    )
}

/// The limit in a slot; `None` if the slot is free or its words are none that a limit has.
pub(crate) fn prepared(region: &Region, limit: u32) -> Option<Prepared> {
    let at = region.limit_at(limit % LIMITS);
    let control = region.word(at).load(Acquire);
    let mut words = [0; PREPARED_WORDS];
    for (i, word) in words.iter_mut().enumerate() {
        *word = region.word(at + 8 + i * 8).load(Relaxed);
    }
    let prepared = (control & 3 == IN_USE)
        .then(|| Prepared::decode_trusted(words))
        .flatten();
    // Acquire: the loads above come before this one.
    fence(Acquire);
    (region.word(at).load(Relaxed) == control)
        .then_some(prepared)
        .flatten()
}

/// What a key inserted now under `limit` starts from: the overflow bucket's level, and never a time
/// before the last reclaim.
pub(crate) fn first_value(region: &Region, limit: u32) -> u128 {
    let bucket = region.wide(region.limit_at(limit % LIMITS) + OVERFLOW);
    let mut level = 0;
    for _ in 0..ROUNDS_MAX {
        let state = bucket.load();
        if phase(state) != LIVE {
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
    let moment = Moment {
        now_ns,
        base_ns: region.base_unix_ns(),
    };
    prepared(region, limit).map_or(level, |limit| level.max(limit.fresh_value(moment)))
}

#[derive(Clone, Copy)]
struct Slots {
    current: Option<u32>,
    previous: Option<u32>,
}

impl Slots {
    fn decode(value: u64) -> Self {
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

    fn encode(self) -> u64 {
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
        let name = Name::new(&self.region, "limiter name", name)?;
        let object = Object {
            engine: self,
            kind: Kind::Limiter,
            name: &name,
        };
        let asked = limit.prepare();
        for _ in 0..ROUNDS_MAX {
            let found = self.insert_object(&object, by, now_ns)?;
            if !self.objects.is_unchanged(&self.region, &found) {
                continue;
            }
            let plain = Plain::decode(found.state);
            let slots = Slots::decode(plain.value);
            let existing = slots.current.and_then(|id| prepared(&self.region, id));
            match existing {
                Some(existing) if existing == asked => {
                    if slots.previous.is_some() {
                        self.finish_change(&found, now_ns);
                    }
                    if let Some(limiter) = self.limiter_ref(&name) {
                        return Ok(limiter);
                    }
                    continue;
                }
                Some(existing) if !update => {
                    return Err(Error::LimitDiffers {
                        existing: existing.definition().to_string(),
                        asked: limit.to_string(),
                    });
                }
                _ => {}
            }
            if slots.previous.is_some() && !self.finish_change(&found, now_ns) {
                // A key under the limit before last is just being inserted by somebody else.
                core::hint::spin_loop();
                continue;
            }
            let (id, control) = self.claim_limit(by)?;
            self.fill_limit(id, asked, &name, found.cell, slots.current.is_none());
            // Release: the slot's words come before it is in use.
            let in_use = control & !3 | IN_USE;
            let _ = self
                .limit_control(id)
                .compare_exchange(control, in_use, AcqRel, Relaxed);
            let next = Slots {
                current: Some(id),
                previous: slots.current,
            };
            let before = Plain {
                value: Slots {
                    previous: None,
                    ..slots
                }
                .encode(),
                ..plain
            };
            let after = Plain {
                value: next.encode(),
                ..plain
            };
            let word = self.region.wide(found.at);
            if word
                .compare_exchange(before.encode(), after.encode())
                .is_err()
            {
                let _ = self.limit_control(id).compare_exchange(
                    in_use,
                    in_use & !3 | FREE,
                    AcqRel,
                    Relaxed,
                );
                continue;
            }
            if let Ok(found) = self.insert_object(&object, by, now_ns) {
                self.finish_change(&found, now_ns);
            }
        }
        Err(Error::Damaged {
            what: "a limiter never settles",
        })
    }

    /// The limiter `name` as it is; `None` if there is none.
    pub fn limiter(&self, name: &[u8]) -> Result<Option<LimiterRef>> {
        let name = Name::new(&self.region, "limiter name", name)?;
        Ok(self.limiter_ref(&name))
    }

    fn limiter_ref(&self, name: &Name) -> Option<LimiterRef> {
        let object = Object {
            engine: self,
            kind: Kind::Limiter,
            name,
        };
        for _ in 0..ROUNDS_MAX {
            let found = self.objects.find(&self.region, object.hash(), &object)?;
            if !self.objects.is_unchanged(&self.region, &found) {
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
                    previous: slots.previous,
                    control,
                    control_at: self.region.limit_at(id),
                    prepared: prepared?,
                    hasher: family_hasher(&self.region, name.raw_hash()),
                });
            }
        }
        None
    }

    fn limit_control(&self, id: u32) -> &crate::sync::Word {
        self.region.word(self.region.limit_at(id % LIMITS))
    }

    fn claim_limit(&self, by: SessionId) -> Result<(u32, u64)> {
        let hint = self.region.word(header::LIMITS_HINT).fetch_add(1, Relaxed) as u32;
        for recover in [false, true] {
            for i in 0..LIMITS {
                let id = hint.wrapping_add(i) % LIMITS;
                let control = self.limit_control(id);
                let word = control.load(Acquire);
                let claimant =
                    SessionId::from_bits(word >> 2 & ((1 << (GENERATION_BITS + 12)) - 1));
                let is_abandoned = recover
                    && match word & 3 {
                        CLAIMED_SLOT => !self.sessions.is_alive(&self.region, claimant),
                        IN_USE => self.is_orphan(id),
                        _ => false,
                    };
                if word & 3 != FREE && !is_abandoned {
                    continue;
                }
                let claimed = CLAIMED_SLOT
                    | (by.bits() as u64) << 2
                    | ((word >> 32).wrapping_add(1) & 0xffff_ffff) << 32;
                if control
                    .compare_exchange(word, claimed, AcqRel, Relaxed)
                    .is_ok()
                {
                    return Ok((id, claimed));
                }
            }
        }
        Err(Error::Full {
            what: "limit definition",
            cap: LIMITS.into(),
        })
    }

    /// Whether no limiter's name points to a slot in use: its changer died before or after it did.
    fn is_orphan(&self, id: u32) -> bool {
        let at = self.region.limit_at(id);
        let cell = self.region.half(at + 56).load(Acquire);
        let state = self.objects.state(&self.region, cell).load();
        let slots = Slots::decode(Plain::decode(state).value);
        let is_named =
            phase(state) == LIVE && (slots.current == Some(id) || slots.previous == Some(id));
        let claimant = SessionId::from_bits(
            self.limit_control(id).load(Acquire) >> 2 & ((1 << (GENERATION_BITS + 12)) - 1),
        );
        // Between filling the slot and naming it its claimant lives.
        !is_named && !self.sessions.is_alive(&self.region, claimant) && self.is_unused(id)
    }

    fn fill_limit(&self, id: u32, limit: Prepared, name: &Name, cell: u32, is_first: bool) {
        let at = self.region.limit_at(id);
        for (i, word) in limit.encode().into_iter().enumerate() {
            self.region.word(at + 8 + i * 8).store(word, Relaxed);
        }
        self.region.word(at + 48).store(name.raw_hash(), Relaxed);
        self.region.half(at + 56).store(cell, Relaxed);
        // The bucket of a changed limit is not LIVE until `finish_change` moved the old one's level.
        let bucket = self.region.wide(at + OVERFLOW);
        for _ in 0..ROUNDS_MAX {
            let before = bucket.load();
            let next = KeyState(before)
                .next_generation()
                .with_value(0)
                .with_limit(id, 0)
                .0
                & !7;
            let state = next | if is_first { LIVE } else { CLAIMED };
            if bucket.compare_exchange(before, state).is_ok() {
                break;
            }
        }
    }

    /// Moves the overflow level and every key from the previous limit to the current one, then frees
    /// the previous slot. `false` if a key under the previous limit is being inserted right now.
    fn finish_change(&self, name: &Found, now_ns: u64) -> bool {
        let word = self.region.wide(name.at);
        let state = word.load();
        let plain = Plain::decode(state);
        let slots = Slots::decode(plain.value);
        let (Some(current), Some(previous)) = (slots.current, slots.previous) else {
            return true;
        };
        if phase(state) != LIVE {
            return true;
        }
        let (Some(new), Some(old)) = (
            prepared(&self.region, current),
            prepared(&self.region, previous),
        ) else {
            return self.drop_previous(word, plain, slots, previous);
        };
        let moment = self.moment(now_ns);
        self.move_overflow(previous, current, &old, &new, moment);
        // Pairs with the fence in `LimiterKey::write`: we named the new limit, then look for cells
        // under the old one.
        fence(SeqCst);
        let mut is_clear = true;
        self.limiter_keys.for_each(&self.region, |_, at, _| {
            is_clear &= self.convert_cell(at, previous, current, &old, &new, moment);
        });
        is_clear && self.drop_previous(word, plain, slots, previous)
    }

    fn drop_previous(
        &self,
        word: &crate::sync::Wide,
        plain: Plain,
        slots: Slots,
        previous: u32,
    ) -> bool {
        let control = self.limit_control(previous);
        let in_use = control.load(Acquire);
        let done = Plain {
            value: Slots {
                previous: None,
                ..slots
            }
            .encode(),
            ..plain
        };
        if word.compare_exchange(plain.encode(), done.encode()).is_ok() && in_use & 3 == IN_USE {
            let _ = control.compare_exchange(in_use, in_use & !3 | FREE, AcqRel, Relaxed);
            self.limiter_keys.stir(&self.region);
        }
        true
    }

    /// Whether no cell names the slot.
    fn is_unused(&self, id: u32) -> bool {
        fence(SeqCst);
        let mut is_unused = true;
        self.limiter_keys.for_each(&self.region, |_, _, state| {
            let limit = match phase(state) {
                LIVE => KeyState(state).limit(),
                CLAIMED => crate::table::field(state, 75, 12) as u32,
                _ => return,
            };
            is_unused &= limit != id;
        });
        is_unused
    }

    /// Exchanges one key from the previous to the current limit; `false` if it is just being
    /// inserted under the previous one.
    fn convert_cell(
        &self,
        at: usize,
        previous: u32,
        current: u32,
        old: &Prepared,
        new: &Prepared,
        moment: Moment,
    ) -> bool {
        let word = self.region.wide(at);
        for _ in 0..ROUNDS_MAX {
            let state = word.load();
            match phase(state) {
                CLAIMED => return crate::table::field(state, 75, 12) as u32 != previous,
                LIVE if KeyState(state).limit() == previous => {
                    let value = convert(old, KeyState(state).value(), new, moment);
                    let after = KeyState(state).with_limit(current, value);
                    if word.compare_exchange(state, after.0).is_ok() {
                        return true;
                    }
                }
                _ => return true,
            }
        }
        false
    }

    /// Closes the previous limit's overflow bucket and opens the current one's at its level. Any
    /// number of processes may do it at once: what it starts from no longer changes once closed.
    fn move_overflow(
        &self,
        previous: u32,
        current: u32,
        old: &Prepared,
        new: &Prepared,
        moment: Moment,
    ) {
        let from = self.region.wide(self.region.limit_at(previous) + OVERFLOW);
        let to = self.region.wide(self.region.limit_at(current) + OVERFLOW);
        for _ in 0..ROUNDS_MAX {
            let state = from.load();
            if phase(state) != LIVE || from.compare_exchange(state, state & !7 | CLAIMED).is_ok() {
                break;
            }
        }
        let before = to.load();
        if phase(before) == CLAIMED {
            let level = convert(old, KeyState(from.load()).value(), new, moment);
            let open = KeyState(before & !7 | LIVE).with_value(level);
            let _ = to.compare_exchange(before, open.0);
        }
    }

    #[inline(always)]
    fn moment(&self, now_ns: u64) -> Moment {
        Moment {
            now_ns,
            base_ns: self.region.base_unix_ns(),
        }
    }

    /// Fails with [`Error::Damaged`]-free [`Stale`](Error::StaleLimit) if the limiter's limit was
    /// changed since `limiter` was opened.
    pub(crate) fn check_current(&self, limiter: &LimiterRef) -> Result<()> {
        if self.is_current_limit(limiter) {
            Ok(())
        } else {
            Err(Error::StaleLimit)
        }
    }

    fn is_current_limit(&self, limiter: &LimiterRef) -> bool {
        let object = Object {
            engine: self,
            kind: Kind::Limiter,
            name: &limiter.name,
        };
        self.objects
            .find(&self.region, object.hash(), &object)
            .is_some_and(|found| {
                let slots = Slots::decode(Plain::decode(found.state).value);
                slots.current == Some(limiter.id)
                    && self.limit_control(limiter.id).load(Acquire) == limiter.control
            })
    }

    /// Checks `cost` of `key` against the limiter, and takes it if allowed. One load and one exchange
    /// on one line when the key is there; no write when refused.
    #[inline]
    pub fn check(
        &self,
        limiter: &LimiterRef,
        key: &[u8],
        cost: u64,
        by: SessionId,
        now_ns: u64,
    ) -> Result<Checked> {
        match self.check_known(limiter, key, cost, now_ns) {
            Some(checked) => Ok(checked),
            None => self.check_elsewhere(limiter, key, cost, by, now_ns),
        }
    }

    /// The common case of [`check`](Self::check) alone: a key in the first cell that it may be in,
    /// undisturbed. `None` says only that this was not the case.
    #[inline(always)]
    pub fn check_known(
        &self,
        limiter: &LimiterRef,
        key: &[u8],
        cost: u64,
        now_ns: u64,
    ) -> Option<Checked> {
        if key.is_empty() || key.len() > NAME_BYTES_MAX {
            return None;
        }
        self.check_first(&LimiterKey::new(self, limiter, key), cost, now_ns)
    }

    #[inline(always)]
    fn check_first(&self, entry: &LimiterKey<'_>, cost: u64, now_ns: u64) -> Option<Checked> {
        let (line, _, state) = self
            .limiter_keys
            .find_first(&self.region, entry.hash, entry)?;
        self.check_line(entry.limiter, line, state, cost, now_ns)
    }

    /// Not in its first cell: in another, or nowhere yet.
    #[inline(never)]
    fn check_elsewhere(
        &self,
        limiter: &LimiterRef,
        key: &[u8],
        cost: u64,
        by: SessionId,
        now_ns: u64,
    ) -> Result<Checked> {
        key::check_name("key", key)?;
        let entry = LimiterKey::new(self, limiter, key);
        if let Some(found) = self.limiter_keys.find(&self.region, entry.hash, &entry)
            && KeyState(found.state).limit() == limiter.id
        {
            let line = self.region.line(found.at);
            if let Some(checked) = self.check_line(limiter, line, found.state, cost, now_ns) {
                return Ok(checked);
            }
        }
        self.check_slowly(&entry, cost, by, now_ns)
    }

    /// Decides on a key found in `line` with `state`, under the limiter's own limit; `None` if the key or its limit changed meanwhile.
    #[inline(always)]
    fn check_line(
        &self,
        limiter: &LimiterRef,
        line: Line<'_>,
        state: u128,
        cost: u64,
        now_ns: u64,
    ) -> Option<Checked> {
        let state = KeyState(state);
        // Acquire: after the state. A slot still the limiter's own means that the state was, too.
        if self.region.word(limiter.control_at).load(Acquire) != limiter.control {
            return None;
        }
        let moment = self.moment(now_ns);
        let value = state.value();
        let verdict = limiter.prepared.check(value, moment, cost);
        match verdict {
            Verdict::Allowed { new_value } if cost != 0 => {
                // Release: nothing but itself. Acquire: the caller goes on after its admission.
                let after = state.with_value(new_value);
                line.state().compare_exchange(state.0, after.0).ok()?;
            }
            _ => {
                // Nothing to write; but the key that was compared must have been this state's.
                fence(Acquire);
                if line.state().load() != state.0 {
                    return None;
                }
            }
        }
        let decision = limiter.prepared.decision(verdict, value, moment, cost);
        Some(Checked {
            decision,
            is_overflow: false,
        })
    }

    #[cold]
    fn check_slowly(
        &self,
        entry: &LimiterKey<'_>,
        cost: u64,
        by: SessionId,
        now_ns: u64,
    ) -> Result<Checked> {
        let mut limiter = entry.limiter.clone();
        for round in 0..ROUNDS_MAX {
            let slot = self.region.limit_at(limiter.id);
            // Before the search: an insertion after this moves the bucket on, and the charge fails.
            let bucket = self.region.wide(slot + OVERFLOW).load();
            if (round > 0 || !self.is_current_limit(&limiter)) && !self.is_current_limit(&limiter) {
                limiter = self.limiter_ref(&limiter.name).ok_or(Error::LimiterGone)?;
                continue;
            }
            let entry = entry.of(&limiter);
            let actor = self.actor(by, self.region.caps().limiter_keys);
            let found =
                self.limiter_keys
                    .find_or_insert(&self.region, &actor, entry.hash, &entry, now_ns);
            match found {
                Ok(found) if KeyState(found.state).limit() != limiter.id => {
                    let previous = KeyState(found.state).limit();
                    if let Some(old) = prepared(&self.region, previous) {
                        let moment = self.moment(now_ns);
                        let (id, new) = (limiter.id, &limiter.prepared);
                        self.convert_cell(found.at, previous, id, &old, new, moment);
                    }
                }
                Ok(found) => {
                    let now_ns = now_ns.max(reclaimed_at_ns(&self.region));
                    if let Some(checked) = self.check_line(
                        &limiter,
                        self.region.line(found.at),
                        found.state,
                        cost,
                        now_ns,
                    ) {
                        return Ok(checked);
                    }
                }
                Err(Error::StaleLimit) => {}
                Err(Error::Full {
                    what: chunk::WHAT, ..
                }) if self.reclaim_long_names(now_ns) => {}
                // No room is not the key's fault: the bucket that such keys share decides.
                Err(Error::Full { .. } | Error::ShareExceeded { .. } | Error::NoSpace { .. }) => {
                    if let Some(checked) = self.check_overflow(&limiter, bucket, cost, now_ns) {
                        return Ok(checked);
                    }
                    if phase(bucket) != LIVE {
                        self.finish_change_of(&limiter.name, now_ns);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::Damaged {
            what: "a limiter key never settles",
        })
    }

    fn finish_change_of(&self, name: &Name, now_ns: u64) {
        let object = Object {
            engine: self,
            kind: Kind::Limiter,
            name,
        };
        if let Some(found) = self.objects.find(&self.region, object.hash(), &object) {
            self.finish_change(&found, now_ns);
        }
    }

    fn check_overflow(
        &self,
        limiter: &LimiterRef,
        bucket: u128,
        cost: u64,
        now_ns: u64,
    ) -> Option<Checked> {
        if phase(bucket) != LIVE {
            return None;
        }
        let state = KeyState(bucket);
        let moment = self.moment(now_ns);
        let verdict = limiter.prepared.check(state.value(), moment, cost);
        let after = match verdict {
            Verdict::Allowed { new_value } => state.with_value(new_value),
            Verdict::Refused | Verdict::Never => state,
        };
        let word = self
            .region
            .wide(self.region.limit_at(limiter.id) + OVERFLOW);
        word.compare_exchange(bucket, after.0).ok()?;
        let decision = limiter
            .prepared
            .decision(verdict, state.value(), moment, cost);
        Some(Checked {
            decision,
            is_overflow: true,
        })
    }

    /// What a check of `key` would see, changing nothing: a key that is not there is full, or at the
    /// overflow bucket's level.
    pub fn peek(&self, limiter: &LimiterRef, key: &[u8], now_ns: u64) -> Result<Checked> {
        key::check_name("key", key)?;
        let mut limiter = limiter.clone();
        for _ in 0..ROUNDS_MAX {
            if !self.is_current_limit(&limiter) {
                limiter = self.limiter_ref(&limiter.name).ok_or(Error::LimiterGone)?;
                continue;
            }
            let moment = self.moment(now_ns);
            let entry = LimiterKey::new(self, &limiter, key);
            let Some(found) = self.limiter_keys.find(&self.region, entry.hash, &entry) else {
                let bucket = self
                    .region
                    .wide(self.region.limit_at(limiter.id) + OVERFLOW)
                    .load();
                let decision = limiter.prepared.peek(KeyState(bucket).value(), moment);
                return Ok(Checked {
                    decision,
                    is_overflow: false,
                });
            };
            let state = KeyState(found.state);
            if state.limit() != limiter.id {
                let old = prepared(&self.region, state.limit());
                let value = old.map_or(0, |old| {
                    convert(&old, state.value(), &limiter.prepared, moment)
                });
                let decision = limiter.prepared.peek(value, moment);
                return Ok(Checked {
                    decision,
                    is_overflow: false,
                });
            }
            if let Some(checked) =
                self.check_line(&limiter, self.region.line(found.at), found.state, 0, now_ns)
            {
                return Ok(checked);
            }
        }
        Err(Error::Damaged {
            what: "a limiter key never settles",
        })
    }

    /// Checks each key, in order, for the same cost: as [`check`](Self::check) one by one, with the
    /// memory of the next ones fetched ahead. `each` gets the index of a key and its answer.
    pub fn check_batch<K: AsRef<[u8]>>(
        &self,
        limiter: &LimiterRef,
        keys: &[K],
        cost: u64,
        by: SessionId,
        now_ns: u64,
        mut each: impl FnMut(usize, Checked),
    ) -> Result<()> {
        // As many misses in flight as a core keeps apart, and few enough to stay in the first cache.
        const AHEAD: usize = 32;
        for key in keys {
            key::check_name("key", key.as_ref())?;
        }
        for (group, keys) in keys.chunks(AHEAD).enumerate() {
            let mut entries: [Option<LimiterKey<'_>>; AHEAD] = [const { None }; AHEAD];
            for (entry, key) in entries.iter_mut().zip(keys) {
                let ahead = LimiterKey::new(self, limiter, key.as_ref());
                self.limiter_keys.prefetch(&self.region, ahead.hash);
                *entry = Some(ahead);
            }
            for (i, entry) in entries.iter().flatten().enumerate() {
                let checked = match self.check_first(entry, cost, now_ns) {
                    Some(checked) => checked,
                    None => self.check_elsewhere(limiter, entry.key, cost, by, now_ns)?,
                };
                each(group * AHEAD + i, checked);
            }
        }
        Ok(())
    }

    /// How many keys the region's limiters have now.
    pub fn limiter_key_count(&self) -> u64 {
        self.limiter_keys.live_count(&self.region)
    }

    /// Bytes that these keys take in the region: each its cell, its share of the block's header line,
    /// and the chunks of a key too long for its cell. A region is sized so that the table is three
    /// quarters full at the cap. Reads the whole table.
    pub fn limiter_key_bytes(&self) -> u64 {
        let mut bytes = 0;
        self.limiter_keys.for_each(&self.region, |_, at, state| {
            if phase(state) == LIVE {
                bytes += LimiterKeys::bytes(&self.region, at, state);
            }
        });
        bytes
    }

    /// The names of the limiters that begin with `prefix`, with their limits and how many keys each
    /// has now. Reads both tables whole; stops no one.
    pub fn for_each_limiter(&self, prefix: &[u8], mut visit: impl FnMut(Vec<u8>, Limit, u64)) {
        let mut keys = vec![0; LIMITS as usize];
        self.limiter_keys.for_each(&self.region, |_, _, state| {
            if phase(state) == LIVE {
                keys[(KeyState(state).limit() % LIMITS) as usize] += 1;
            }
        });
        let keys_under = |slot: Option<u32>| slot.map_or(0, |id| keys[(id % LIMITS) as usize]);
        self.objects.for_each(&self.region, |_, at, state| {
            if phase(state) != LIVE
                || crate::object::Objects::kind(&self.region, at) != Kind::Limiter as u8
            {
                return;
            }
            let name = crate::object::Objects::name(&self.region, at);
            let slots = Slots::decode(Plain::decode(state).value);
            if let Some(limit) = slots.current.and_then(|id| prepared(&self.region, id))
                && name.starts_with(prefix)
            {
                let keys = keys_under(slots.current) + keys_under(slots.previous);
                visit(name, limit.definition(), keys);
            }
        });
    }
}
