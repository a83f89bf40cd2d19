//! Concurrency limiters: at every instant at most so many of each key, each of them leased.
//!
//! Owns what a limiter is defined as, how that is changed, and the look at it by which a key's permits are had.
//! The word of a key's *slots* is that of a pool ([`crate::pool`]), and its holds are permits
//! ([`crate::permit`]), queued for and ended as a semaphore's.
//!
//! A definition is an object whose value is the capacity of each key, 0 until somebody says it. It is never
//! reclaimed, so its cell stands for the limiter for as long as the region is there: the name of a key's slots
//! is that cell, in four bytes, and then the key.
//!
//! # Changing the capacity
//!
//! It is in the definition's word alone, and a change is one exchange of that. Nobody has to go through the
//! keys, so a changer that dies leaves nothing half done.
//!
//! ```text
//!   who wants permits                            who changes the capacity
//!   ─────────────────                            ────────────────────────
//!   reads the definition: is there room by it?   exchanges the definition
//!   joins, by exchange of the key's word,        fences
//!    with that definition's serial in its permit wakes all who wait for keys of it
//!   fences
//!   reads the definition: the same serial?
//!    yes: it stands  no: leaves again, begins anew
//! ```
//!
//! A definition's serial rises with each change. So at the exchange that joined, it was the one that was read
//! before and after: a grant is decided by the capacity of that instant, whoever was stopped in between for
//! however long. Whoever would be refused for a grant that is undecided decides it first ([`Verdict`]), so that
//! nobody is refused for one that is undone. A wake that gets lost with one that is undone, the next probe makes
//! up for.
//!
//! Who holds keeps what it has when the capacity falls; nobody gets in until there is room by the new one. Who
//! waits for more than the new one is told so.

#[cfg(all(test, not(loom)))]
mod stopped;

use crate::admission::{Asker, Wants};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::key;
use crate::lock::{Grant, HoldOf};
use crate::object::{Kind, Name, Objects, Plain};
use crate::permit::{Claim, Permit, Verdict};
use crate::pool::{Pool, is_pooled};
use crate::readable::Readable;
use crate::semaphore::{CAPACITY_MAX, SemaphoreStatus, check_permits};
use crate::session::SessionId;
use crate::sync::fence;
use crate::table::{Found, LIVE, ROUNDS_MAX, phase};
use crate::waiter::Wake;
use core::sync::atomic::Ordering::{Acquire, SeqCst};
use std::collections::HashMap;

/// A concurrency limiter of a region, for as long as that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConcurrencyRef {
    /// Of its definition.
    cell: u32,
}

/// A definition as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    state: u128,
    capacity: u32,
}

impl Rule {
    fn serial(self) -> u64 {
        Plain::decode(self.state).serial
    }

    fn has_room(self, used: u32, amount: u32) -> bool {
        used.saturating_add(amount) <= self.capacity
    }
}

impl Engine {
    /// Opens the concurrency limiter `name`, made with `capacity` (1 to [`CAPACITY_MAX`] of each key) if there is
    /// none. One that has another capacity is changed if `update` says so; then all who wait for its keys
    /// are given to `wake`. Else that is an error.
    pub fn open_concurrency(
        &self,
        name: &[u8],
        capacity: u32,
        update: bool,
        by: SessionId,
        now_ns: u64,
        wake: impl FnMut(Wake),
    ) -> Result<ConcurrencyRef> {
        check_permits("permits", capacity, CAPACITY_MAX)?;
        let name = Name::new(&self.region, "limiter name", name)?;
        let object = self.object(Kind::Concurrency, &name);
        for _ in 0..ROUNDS_MAX {
            let found = match self.find_object(&object) {
                Some(found) => found,
                None => self.insert_object(&object, by, now_ns)?,
            };
            if !found.is_unchanged(&self.region) {
                continue;
            }
            let plain = Plain::decode(found.state);
            let limiter = ConcurrencyRef { cell: found.cell };
            if plain.value == u64::from(capacity) {
                return Ok(limiter);
            }
            if plain.value != 0 && !update {
                return Err(Error::ConcurrencyDiffers {
                    limiter: Readable(&name.to_vec()).to_string(),
                    existing: plain.value,
                    asked: capacity,
                });
            }
            let changed = plain.next(capacity.into()).encode();
            let word = self.region.wide(found.at);
            if word.compare_exchange(found.state, changed).is_ok() {
                self.wake_all_of(limiter, wake);
                return Ok(limiter);
            }
        }
        Err(Error::Damaged {
            what: "a concurrency limiter never settles",
        })
    }

    /// The concurrency limiter `name` as it is; `None` if there is none.
    pub fn concurrency(&self, name: &[u8]) -> Result<Option<ConcurrencyRef>> {
        let name = Name::new(&self.region, "limiter name", name)?;
        let object = self.object(Kind::Concurrency, &name);
        let found = self.find_object(&object).map(|found| found.cell);
        let limiter = found.map(|cell| ConcurrencyRef { cell });
        let limiter = limiter.filter(|limiter| self.rule(*limiter).is_ok());
        // Found again, since until somebody says its capacity it may make room, also for another one: from then on
        // it is the limiter's for good.
        let again = self.find_object(&object).map(|found| found.cell);
        Ok(limiter.filter(|limiter| again == Some(limiter.cell)))
    }

    /// How many of each key there can be at once now. One load.
    pub fn concurrency_capacity(&self, limiter: ConcurrencyRef) -> Result<u32> {
        Ok(self.rule(limiter)?.capacity)
    }

    /// The limiter's name.
    pub fn concurrency_name(&self, limiter: ConcurrencyRef) -> Vec<u8> {
        // Written before there was a reference to it, and never again.
        Objects::name(&self.region, self.objects.at(limiter.cell))
    }

    /// Prepares the name of a key's slots, of 1 to 1,024 bytes. Keys of at most 20 bytes allocate nothing.
    pub fn slots_name(&self, limiter: ConcurrencyRef, key: &[u8]) -> Result<Name> {
        key::check_name("key", key)?;
        Ok(Name::of_family(&self.region, limiter.cell, key))
    }

    fn rule(&self, limiter: ConcurrencyRef) -> Result<Rule> {
        let is_there = self.objects.is_present(&self.region, limiter.cell);
        let at = self.objects.at(limiter.cell);
        if is_there && Objects::is(&self.region, at, Kind::Concurrency) {
            // Acquire: pairs with the fence in `Table::insert`. A live state that is read now is the definition's,
            // and no earlier entry's.
            fence(Acquire);
            let state = self.region.wide(at).load();
            let value = Plain::decode(state).value;
            if phase(state) == LIVE && (1..=u64::from(CAPACITY_MAX)).contains(&value) {
                return Ok(Rule {
                    state,
                    capacity: value as u32,
                });
            }
        }
        Err(Error::Damaged {
            what: "a concurrency limiter is gone",
        })
    }

    /// Fails if so many of a key can never be had, by the capacity of now.
    pub(crate) fn check_slots(&self, limiter: ConcurrencyRef, amount: u32) -> Result<()> {
        let capacity = self.rule(limiter)?.capacity;
        if amount <= capacity {
            return Ok(());
        }
        Err(Error::AboveCapacity {
            limiter: Readable(&self.concurrency_name(limiter)).to_string(),
            capacity,
            asked: amount,
        })
    }

    /// The entry of a key's slots, made if it is not there.
    pub(crate) fn find_slots(&self, name: &Name, by: SessionId, now_ns: u64) -> Result<Found> {
        let object = self.object(Kind::Slots, name);
        match self.find_object(&object) {
            Some(found) => Ok(found),
            None => self.insert_object(&object, by, now_ns),
        }
    }

    /// Whether there is room for `amount` more, where `used` are taken; `None` if there never can be.
    pub(crate) fn has_slots(
        &self,
        limiter: ConcurrencyRef,
        used: u32,
        amount: u32,
    ) -> Option<bool> {
        let rule = self.rule(limiter).ok()?;
        (amount <= rule.capacity).then(|| rule.has_room(used, amount))
    }

    /// Makes `asker` a member of a key's pool, if there is room by the capacity of that instant. `None`: look again.
    pub(crate) fn let_join_slots(
        &self,
        found: &Found,
        wants: Wants,
        asker: &Asker,
        claim: &mut Option<Claim>,
    ) -> Result<Option<Grant>> {
        let Wants::Slots { amount, limiter } = wants else {
            return Ok(None);
        };
        let rule = self.rule(limiter)?;
        if !rule.has_room(Pool::decode(found.state).used, amount) {
            return Ok(None);
        }
        let Some(grant) = self.join_by(rule, found, amount, asker, claim)? else {
            return Ok(None);
        };
        *claim = None;
        let stands = self.stands(limiter, &grant, asker.now_ns);
        Ok(stands.then_some(grant))
    }

    /// Joins, undecided: whether that stands is to be found out.
    fn join_by(
        &self,
        rule: Rule,
        found: &Found,
        amount: u32,
        asker: &Asker,
        claim: &mut Option<Claim>,
    ) -> Result<Option<Grant>> {
        let (cell, raw) = (found.cell, found.state);
        let claim = self.claim_for(cell, amount, asker, claim)?;
        self.leave_undecided(claim, rule.serial());
        Ok(self.join(cell, raw, Pool::decode(raw), claim, amount))
    }

    /// Whether a grant stands, which is undone if it doesn't.
    fn stands(&self, limiter: ConcurrencyRef, grant: &Grant, now_ns: u64) -> bool {
        let Some(index) = grant.permit() else {
            return false;
        };
        let (member, serial) = (Permit::decode(grant.word()), || self.serial_of(limiter));
        let stands = self.verdict(index, member, serial, now_ns) == Verdict::Stands;
        if !stands {
            // Whoever is to be woken by that finds out at the next look.
            let _ = self.release(grant, || now_ns);
        }
        stands
    }

    /// What tells the limiter's definition from those before it.
    pub(crate) fn serial_of(&self, limiter: ConcurrencyRef) -> Option<u64> {
        Some(self.rule(limiter).ok()?.serial())
    }

    /// How much the members of the pool in `cell` can have together, that being no lock's.
    pub(crate) fn capacity_in(&self, cell: u32, pool: Pool) -> u32 {
        match self.limiter_of(cell) {
            Some(limiter) => self.rule(limiter).map_or(0, |rule| rule.capacity),
            None => pool.terms,
        }
    }

    /// The limiter that the slots in `cell` are of; `None` if that is not what they are.
    pub(crate) fn limiter_of(&self, cell: u32) -> Option<ConcurrencyRef> {
        let at = self.objects.at(cell);
        let is_slots = self.objects.is_present(&self.region, cell)
            && Objects::is(&self.region, at, Kind::Slots);
        is_slots.then(|| ConcurrencyRef {
            cell: Objects::family(&self.region, at),
        })
    }

    /// Whether what is in a cell of this kind is of a limiter that is there, or of none.
    pub(crate) fn has_definition(&self, cell: u32) -> bool {
        self.limiter_of(cell)
            .is_none_or(|limiter| self.rule(limiter).is_ok())
    }

    /// Raises all who wait for keys of the limiter, since its capacity is another.
    fn wake_all_of(&self, limiter: ConcurrencyRef, wake: impl FnMut(Wake)) {
        // We changed the definition, then scan: pairs with the fence in `take_place`, after which whoever
        // waits reads it. Also with the one in `verdict`: one that joined by the old capacity and stands
        // shows in the words that are read from here on.
        fence(SeqCst);
        self.raise_all(|cell| self.limiter_of(cell) == Some(limiter), wake);
    }

    /// What is known of the pool of a semaphore, or of a limiter's key; `None` if it has no entry, which means
    /// that nobody has any of it.
    pub fn permits_status(&self, of: HoldOf, name: &Name, now_ns: u64) -> Option<SemaphoreStatus> {
        let found = self.find_object(&self.object(of.kind(), name))?;
        self.pool_status(found.cell, of.kind(), now_ns)
    }

    /// The concurrency limiters whose names begin with `prefix`, with those of their keys that have an entry, in
    /// no particular order. Each key is seen as it was at one moment, different keys at different ones.
    pub fn concurrency_statuses(&self, prefix: &[u8], now_ns: u64) -> Vec<ConcurrencyStatus> {
        let mut limiters = HashMap::new();
        let mut keys = Vec::new();
        self.objects.for_each(&self.region, |cell, at, state| {
            if is_pooled(state) {
                keys.extend(self.pool_and_family(cell, Kind::Slots, now_ns));
            } else if let Ok(rule) = self.rule(ConcurrencyRef { cell }) {
                let name = Objects::name(&self.region, at);
                if name.starts_with(prefix) {
                    let status = ConcurrencyStatus {
                        name,
                        capacity: rule.capacity,
                        keys: Vec::new(),
                    };
                    limiters.insert(cell, status);
                }
            }
        });
        for (key, limiter) in keys {
            if let Some(status) = limiters.get_mut(&limiter) {
                status.keys.push(key);
            }
        }
        limiters.into_values().collect()
    }
}

/// What an inspection saw of a concurrency limiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConcurrencyStatus {
    /// The limiter's name.
    pub name: Vec<u8>,
    /// How many of each key there can be at once.
    pub capacity: u32,
    /// The keys that have an entry: those that are held or waited for, and idle ones not reclaimed yet.
    pub keys: Vec<SemaphoreStatus>,
}

impl Wants {
    /// So many of a limiter's key at once: 1 to [`CAPACITY_MAX`], and no more than the capacity is when they are
    /// asked for.
    pub fn slots(amount: u32, limiter: ConcurrencyRef) -> Result<Self> {
        check_permits("permits", amount, CAPACITY_MAX)?;
        Ok(Self::Slots { amount, limiter })
    }
}
