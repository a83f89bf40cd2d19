//! Overrides: a limit of its own for one key of a limiter.
//!
//! Owns what overrides say, and the moves of a key that is not under what its override says. Which slot a limit
//! has, and when that is free again, is for [`super::uses`] to say.
//!
//! An override is an object named by the pair of the limiter's name and the key. Its value:
//!
//! | bits | field |
//! |---|---|
//! | 0..16 | *current*: the slot of the key's limit, plus 1; 0: the limiter's own |
//! | 16..32 | *next*: the slot that it is about to be, plus 1 |
//! | 32 | *settled*: the key's cell, if it has one, was brought under it |
//!
//! # A key's cell says what decides
//!
//! A check goes by the limit that the cell is under and asks no override, so that keys without one pay nothing.
//! Only who inserts a key, finds none, or finds it where it was not looked for, asks.
//!
//! ```text
//!  set:    current ──exchange──▶ slot ── fence ── the key's insertion is finished, its cell brought under ──▶ settled
//!  clear:  current ──exchange──▶ 0    ── fence ── the same ── the object is freed
//!  insert: the insertion is decided ── fence ── what is the key under? ── CLAIMED becomes LIVE under that
//! ```
//!
//! So either the one who sets sees the insertion decided, and finishes it, or the one who finishes it sees what was
//! set. A cell is brought under another limit by one exchange, prepared from its word; what the key is to be
//! under is read *after* that word. Whoever sets, having set, exchanges the word even if the key is where it
//! belongs: so an exchange prepared by one who read what was said before fails, however late.
//!
//! One who sets and dies before the cell is brought over has set nothing yet: the next one who asks finishes it,
//! be it with a question for the override, or because the key has to be inserted anew.

#[cfg(all(test, not(loom)))]
mod stopped;

use super::definition::{Slots, name_cell};
use super::reserve::Ask;
use super::uses::{is_of_overrides, slots_end};
use super::{Checked, LimiterRef, prepared, settle};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::key;
use crate::limit::{Limit, convert};
use crate::limiter_key::{KeyState, LimiterKey, reclaimed_at_ns};
use crate::object::{Kind, Name, Objects, Plain, Wanted, parts_of_pair};
use crate::region::{LIMITS, Region};
use crate::session::SessionId;
use crate::slot::Control;
use crate::sync::fence;
use crate::table::{Found, Idle, LIVE, ROUNDS_MAX, Table, phase};
use core::sync::atomic::Ordering::{Acquire, SeqCst};

/// What an override's value says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) current: Option<u32>,
    pub(super) next: Option<u32>,
    is_settled: bool,
}

const SETTLED: u64 = 1 << 32;

impl Chosen {
    pub(super) fn decode(state: u128) -> Self {
        let value = Plain::decode(state).value;
        // The same form as a limiter's name.
        let slots = Slots::decode(value);
        Self {
            current: slots.current,
            next: slots.previous,
            is_settled: value & SETTLED != 0,
        }
    }

    fn encode(self) -> u64 {
        let slots = Slots {
            current: self.current,
            previous: self.next,
        };
        slots.encode() | if self.is_settled { SETTLED } else { 0 }
    }
}

/// An override that says nothing makes room.
pub(crate) fn idle_override(live: u128) -> Idle {
    match Chosen::decode(live).current {
        None => Idle::Now,
        Some(_) => Idle::Never,
    }
}

/// Has an override of a region that nobody uses be settled anew: it may be newer than its key's cell.
#[cfg(all(not(loom), target_os = "linux"))]
pub(crate) fn unsettle(region: &Region, at: usize, state: u128) {
    let chosen = Chosen {
        is_settled: false,
        ..Chosen::decode(state)
    };
    // It can only fail if something scribbles.
    let next = Plain::decode(state).next(chosen.encode()).encode();
    let _ = region.wide(at).compare_exchange(state, next);
}

/// The slot that the override of `pair` says; `None` for the limiter's own.
fn chosen_slot(region: &Region, objects: &Table<Objects>, pair: &Name) -> Option<u32> {
    let wanted = Wanted {
        kind: Kind::Override,
        part: 0,
        name: pair,
    };
    for _ in 0..ROUNDS_MAX {
        let found = objects.find_by(region, wanted.hash(), |line, state| {
            wanted.is_in(region, line, state)
        })?;
        if found.is_unchanged(region) {
            return Chosen::decode(found.state).current;
        }
    }
    None
}

/// The limit under which a key is inserted that was claimed under `own`, one of its limiter. Called once the
/// insertion is decided.
pub(crate) fn limit_of_new(region: &Region, own: u32, key: impl FnOnce() -> Vec<u8>) -> u32 {
    // Pairs with the fence in `settle_key`: see the file.
    fence(SeqCst);
    if slots_end(region) == 0 {
        return own;
    }
    let objects = Table::<Objects>::new(region);
    let name = Objects::name(region, objects.at(name_cell(region, own)));
    let pair = Name::pair(region, &name, &key());
    let is_its = |slot: &u32| {
        let control = region.word(region.limit_at(*slot % LIMITS)).load(Acquire);
        // False only in a damaged region.
        Control(control).is_in_use()
            && is_of_overrides(region, *slot)
            && name_cell(region, *slot) == name_cell(region, own)
    };
    chosen_slot(region, &objects, &pair)
        .filter(is_its)
        .unwrap_or(own)
}

impl Engine {
    /// Whether any limiter ever had an override.
    pub(super) fn has_overrides(&self) -> bool {
        slots_end(&self.region) > 0
    }

    fn pair(&self, limiter: &LimiterRef, key: &[u8]) -> Name {
        Name::pair(&self.region, &limiter.name.to_vec(), key)
    }

    /// The limit that an override gives `key`, as `limiter` with that one; `None` for the limiter's own.
    pub(crate) fn override_for(&self, limiter: &LimiterRef, key: &[u8]) -> Option<LimiterRef> {
        if !self.has_overrides() {
            return None;
        }
        let pair = self.pair(limiter, key);
        let slot = chosen_slot(&self.region, &self.objects, &pair)?;
        self.overriding(limiter, slot)
    }

    /// A key whose cell is under an override's limit and not engaged, and the limiter by that.
    pub(super) fn find_overridden(&self, entry: &LimiterKey<'_>) -> Option<(LimiterRef, Found)> {
        if !self.has_overrides() {
            return None;
        }
        let found = self.limiter_keys.find(&self.region, entry.hash, entry)?;
        let state = KeyState(found.state);
        if state.is_engaged() {
            return None;
        }
        Some((self.overriding(entry.limiter, state.limit())?, found))
    }

    /// Decides on a key whose cell is under an override's limit.
    pub(super) fn check_overridden(
        &self,
        entry: &LimiterKey<'_>,
        ask: Ask,
        now_ns: u64,
    ) -> Option<Checked> {
        let (limiter, found) = self.find_overridden(entry)?;
        let line = self.region.line(found.at);
        let now_ns = now_ns.max(reclaimed_at_ns(&self.region));
        limiter.can_decide(ask).then(|| {
            self.check_line(&limiter, line, found.state, ask, now_ns, KeyState::admitted)
        })?
    }

    /// Gives `key` a limit of its own, in place of the limiter's and of any that it was given before. What it
    /// has used stays used. Once this returns, no check that begins after is decided by another limit. `now_ns` reads
    /// the clock by which checks are stamped.
    ///
    /// Costs an object, which stays until the override is cleared, and a limit definition, which all overrides of
    /// the limiter with the same limit share.
    ///
    /// # Errors
    ///
    /// [`Error::NameLength`], and [`Error::Full`] or [`Error::ShareExceeded`] where there is no room for either.
    pub fn set_override(
        &self,
        limiter: &LimiterRef,
        key: &[u8],
        limit: Limit,
        by: SessionId,
        now_ns: impl Fn() -> u64,
    ) -> Result<()> {
        key::check_name("key", key)?;
        let pair = self.pair(limiter, key);
        let object = self.object(Kind::Override, &pair);
        let limit = limit.prepare();
        for _ in 0..ROUNDS_MAX {
            let found = self.insert_object(&object, by, now_ns())?;
            if !found.is_unchanged(&self.region) {
                continue;
            }
            let chosen = Chosen::decode(found.state);
            let current = chosen
                .current
                .and_then(|slot| self.overriding(limiter, slot));
            if current.is_some_and(|current| current.prepared == limit) {
                if chosen.is_settled || self.settle_chosen(&found, limiter, key, &now_ns)? {
                    return Ok(());
                }
                continue;
            }
            let slot = match self.slot_of_overrides(limiter, &limiter.name, limit, by) {
                Ok(slot) => slot,
                Err(error) => {
                    self.free_if_idle(&found);
                    return Err(error);
                }
            };
            self.choose(&found, slot);
        }
        Err(Error::Damaged {
            what: "an override never settles",
        })
    }

    /// Makes a slot the current one of the override that was found, in two steps; `None` if it changed meanwhile or
    /// the slot is not to be had any more.
    fn choose(&self, found: &Found, (slot, control): (u32, u64)) -> Option<()> {
        let next = Chosen {
            next: Some(slot),
            ..Chosen::decode(found.state)
        };
        let found = self.say(found, next)?;
        if !self.join_slot(slot, control) {
            return None;
        }
        let current = Chosen {
            current: Some(slot),
            next: None,
            is_settled: false,
        };
        self.say(&found, current).map(drop)
    }

    /// Exchanges an override's value: what is found then; `None` if the word changed meanwhile.
    fn say(&self, found: &Found, chosen: Chosen) -> Option<Found> {
        let state = Plain::decode(found.state).next(chosen.encode()).encode();
        let word = self.region.wide(found.at);
        word.compare_exchange(found.state, state).ok()?;
        Some(Found { state, ..*found })
    }

    /// Settles a key, and says that it is, of an override that was found; `false` if that changed meanwhile.
    fn settle_chosen(
        &self,
        found: &Found,
        limiter: &LimiterRef,
        key: &[u8],
        now_ns: &dyn Fn() -> u64,
    ) -> Result<bool> {
        self.settle_key(limiter, key, now_ns)?;
        let settled = Chosen {
            is_settled: true,
            ..Chosen::decode(found.state)
        };
        Ok(self.say(found, settled).is_some())
    }

    /// Takes `key`'s override away, if it has one: whether it did. What it has used stays used. Once this returns,
    /// no check that begins after is decided by that limit.
    pub fn clear_override(
        &self,
        limiter: &LimiterRef,
        key: &[u8],
        now_ns: impl Fn() -> u64,
    ) -> Result<bool> {
        key::check_name("key", key)?;
        if !self.has_overrides() {
            return Ok(false);
        }
        let pair = self.pair(limiter, key);
        let object = self.object(Kind::Override, &pair);
        for _ in 0..ROUNDS_MAX {
            let Some(found) = self.find_object(&object) else {
                // Somebody may have cleared it and died before the key was brought back.
                self.settle_key(limiter, key, &now_ns)?;
                return Ok(false);
            };
            if !found.is_unchanged(&self.region) {
                continue;
            }
            let chosen = Chosen::decode(found.state);
            let nothing = Chosen {
                current: None,
                next: None,
                is_settled: false,
            };
            // Its room is to be had sooner than was said. Before: whoever dies right after has stirred. And after:
            // somebody may have said it anew in between.
            self.objects.stir(&self.region);
            let said = self.say(&found, nothing);
            self.objects.stir(&self.region);
            if let Some(found) = said {
                self.settle_key(limiter, key, &now_ns)?;
                self.free_if_idle(&found);
                self.look_for_long_names();
                return Ok(chosen.current.is_some());
            }
        }
        Err(Error::Damaged {
            what: "an override never settles",
        })
    }

    /// Frees an override that was found, if it says nothing and is still so.
    fn free_if_idle(&self, found: &Found) {
        if Chosen::decode(found.state).current.is_none() {
            self.objects.reclaim(&self.region, found.cell, found.state);
        }
    }

    /// The limit that `key` was given; `None` if it has the limiter's. Finishes what somebody died in who set or
    /// cleared it.
    pub fn override_of(
        &self,
        limiter: &LimiterRef,
        key: &[u8],
        now_ns: impl Fn() -> u64,
    ) -> Result<Option<Limit>> {
        key::check_name("key", key)?;
        if !self.has_overrides() {
            return Ok(None);
        }
        let pair = self.pair(limiter, key);
        let object = self.object(Kind::Override, &pair);
        for _ in 0..ROUNDS_MAX {
            let found = self.find_object(&object);
            let chosen = found.map(|found| Chosen::decode(found.state));
            let Some((found, slot)) = found.zip(chosen.and_then(|chosen| chosen.current)) else {
                let cell = self.find_key(limiter, key)?;
                if cell.is_some_and(|(_, cell)| self.is_of_overrides(KeyState(cell.state).limit()))
                {
                    self.settle_key(limiter, key, &now_ns)?;
                }
                return Ok(None);
            };
            let limit = self.overriding(limiter, slot);
            if !found.is_unchanged(&self.region) {
                continue;
            }
            let is_settled = chosen.is_some_and(|chosen| chosen.is_settled);
            if is_settled || self.settle_chosen(&found, limiter, key, &now_ns)? {
                return Ok(limit.map(|limit| limit.limit()));
            }
        }
        Err(Error::Damaged {
            what: "an override never settles",
        })
    }

    /// Every override whose limiter's name begins with `prefix`: that name, the key and the limit. One that is just
    /// being set or cleared may be among them. Reads the objects table whole; stops no one, changes nothing.
    pub fn for_each_override(&self, prefix: &[u8], mut visit: impl FnMut(&[u8], &[u8], Limit)) {
        self.objects.for_each(&self.region, |_, at, state| {
            if phase(state) != LIVE || !Objects::is(&self.region, at, Kind::Override) {
                return;
            }
            let name = Objects::name(&self.region, at);
            let limit = Chosen::decode(state)
                .current
                .and_then(|slot| prepared(&self.region, slot));
            if let Some((limiter, key)) = parts_of_pair(&name)
                && let Some(limit) = limit
                && limiter.starts_with(prefix)
                && self.region.wide(at).load() == state
            {
                visit(limiter, key, limit.definition());
            }
        });
    }

    /// Brings `key` under what is said of it now, so that whoever read what was said before can bring it nowhere
    /// else: see the file.
    fn settle_key(&self, limiter: &LimiterRef, key: &[u8], now_ns: &dyn Fn() -> u64) -> Result<()> {
        // Pairs with the fence in `limit_of_new`, and with that in `move_key`.
        fence(SeqCst);
        let hash = LimiterKey::new(self, limiter, key).hash;
        self.limiter_keys.finish_at(&self.region, hash);
        for _ in 0..ROUNDS_MAX {
            let Some((limiter, found)) = self.find_key(limiter, key)? else {
                return Ok(());
            };
            if KeyState(found.state).is_engaged() {
                settle(&self.region, found.at)?;
            } else if self.move_key(&limiter, key, &found, now_ns()) {
                // Look where it is now.
            } else if self.outdate(found.at, found.state)? {
                return Ok(());
            }
        }
        Err(Error::Damaged {
            what: "a limiter key never settles",
        })
    }

    /// The cell of a key of the limiter, engaged or not, and the limiter by its limit of now; `None` if it has none.
    fn find_key(&self, limiter: &LimiterRef, key: &[u8]) -> Result<Option<(LimiterRef, Found)>> {
        let mut limiter = limiter.clone();
        for _ in 0..ROUNDS_MAX {
            let entry = LimiterKey::new(self, &limiter, key);
            let Some(found) = self.limiter_keys.find(&self.region, entry.hash, &entry) else {
                return Ok(None);
            };
            // Asked after the key's word was read: the slots were the limiter's then. A slot that it had before may
            // be another's by now, and a cell under that of the other's.
            if self.is_current_limit(&limiter) {
                return Ok(Some((limiter, found)));
            }
            limiter = self.reopened(&limiter)?;
        }
        Err(Error::Damaged {
            what: "a limiter never settles",
        })
    }

    /// Puts the key at `at`, which was in the word `state`, not engaged, in its next generation: exchanges prepared from
    /// any word before fail from here on. `false` if it is in another already, or gone.
    pub(super) fn outdate(&self, at: usize, state: u128) -> Result<bool> {
        let (mut now, tag) = (KeyState(state), KeyState(state).tag());
        for _ in 0..ROUNDS_MAX {
            let next = now.next_generation();
            if self.region.wide(at).compare_exchange(now.0, next.0).is_ok() {
                return Ok(true);
            }
            // Losing may mean but a check, or a call of several limits: given back, or called off, the word is the same
            // again.
            now = KeyState(settle(&self.region, at)?);
            if now.tag() != tag {
                return Ok(false);
            }
        }
        Err(Error::Damaged {
            what: "a limiter key never settles",
        })
    }

    /// Brings a key that was found under the limit that it is to be under, if it is under another one on account of
    /// an override. `false` if it is where it belongs; else look for it again.
    pub(super) fn move_key(
        &self,
        limiter: &LimiterRef,
        key: &[u8],
        found: &Found,
        now_ns: u64,
    ) -> bool {
        // Pairs with the fence in `settle_key`, with that in `sweep` and that in `drive_out`: the key's word comes
        // first, what is said of it after.
        fence(SeqCst);
        let state = KeyState(found.state);
        debug_assert!(!state.is_engaged(), "whoever found it settles it first");
        if name_cell(&self.region, state.limit()) != limiter.cell {
            // It was found under a slot that is another limiter's by now, and so may be the key.
            return true;
        }
        let to = match self.override_for(limiter, key) {
            Some(to) if to.id != state.limit() => to,
            None if self.is_of_overrides(state.limit()) => {
                let Some(own) = self.limiter_ref(&limiter.name) else {
                    return false;
                };
                own
            }
            _ => return false,
        };
        let moment = self.region.moment(now_ns);
        // In a damaged region, what was used is not known.
        let value = prepared(&self.region, state.limit()).map_or(0, |from| {
            convert(&from, state.value(), &to.prepared, moment)
        });
        let after = state.with_limit(to.id, value).next_generation();
        // It may be idle sooner than was said: as in `refund`.
        self.limiter_keys.stir(&self.region);
        let word = self.region.wide(found.at);
        let _ = word.compare_exchange(state.0, after.0);
        self.limiter_keys.stir(&self.region);
        true
    }
}
