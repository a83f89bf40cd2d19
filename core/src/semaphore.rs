//! Semaphores: a number of permits by name, each holder with as many as it asked for at once, under one
//! token and lease.
//!
//! Owns what a semaphore is defined as; its word is that of a pool ([`crate::pool`]), its holds are
//! permits ([`crate::permit`]). Waiters are served in the order in which they came, also one that wants more
//! than the one behind it.

use crate::admission::Wants;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::lock::{Attempt, HoldStatus};
use crate::object::{Kind, Name, Objects};
use crate::pool::{Pool, is_pooled};
use crate::readable::Readable;
use crate::session::SessionId;
use crate::table::{Found, ROUNDS_MAX};

/// The most permits that a semaphore can have: 16,777,215.
pub const CAPACITY_MAX: u32 = crate::pool::USED_MAX;

impl Engine {
    /// Prepares a semaphore's name. Names of at most 24 bytes allocate nothing.
    pub fn semaphore_name(&self, name: &[u8]) -> Result<Name> {
        Name::new(&self.region, "semaphore name", name)
    }

    /// Takes `amount` permits of the semaphore, which has `capacity`, if they can be had at once and nobody
    /// waits. A semaphore that is not there is made.
    pub fn try_acquire_permits(
        &self,
        name: &Name,
        amount: u32,
        capacity: u32,
        by: SessionId,
        now_ns: u64,
        lease_ns: u64,
    ) -> Result<Attempt> {
        let wants = Wants::permits(amount, capacity)?;
        self.try_get(name, wants, by, now_ns, lease_ns)
    }

    /// The semaphore's entry, made if it is not there, if its capacity is the one that is said.
    pub(crate) fn find_semaphore(
        &self,
        name: &Name,
        capacity: u32,
        by: SessionId,
        now_ns: u64,
    ) -> Result<Found> {
        let object = self.object(Kind::Semaphore, name);
        for _ in 0..ROUNDS_MAX {
            let found = match self.find_object(&object) {
                Some(found) => found,
                None => self.insert_object(&object, by, now_ns)?,
            };
            let pool = Pool::decode(found.state);
            if pool.terms == capacity {
                return Ok(found);
            }
            if pool.terms != 0 {
                if !found.is_unchanged(&self.region) {
                    continue;
                }
                return Err(Error::CapacityDiffers {
                    semaphore: Readable(&name.to_vec()).to_string(),
                    existing: pool.terms,
                    asked: capacity,
                });
            }
            let defined = Pool {
                terms: capacity,
                ..pool
            };
            // Losing means that somebody else said it.
            let word = self.region.wide(found.at);
            let _ = word.compare_exchange(found.state, defined.encode());
        }
        Err(Error::Damaged {
            what: "a semaphore never settles",
        })
    }

    /// Calls `visit` with each semaphore whose name begins with `prefix`, in no particular order. One that
    /// changes meanwhile is seen before or after, never in between.
    pub fn for_each_semaphore(
        &self,
        prefix: &[u8],
        now_ns: u64,
        mut visit: impl FnMut(SemaphoreStatus),
    ) {
        self.objects.for_each(&self.region, |cell, _, state| {
            if is_pooled(state)
                && let Some(status) = self.pool_status(cell, Kind::Semaphore, now_ns)
                && status.name.starts_with(prefix)
            {
                visit(status);
            }
        });
    }

    /// What is known of the pool in `cell`, if it is of this kind.
    pub(crate) fn pool_status(&self, cell: u32, of: Kind, now_ns: u64) -> Option<SemaphoreStatus> {
        self.pool_and_family(cell, of, now_ns)
            .map(|(status, _)| status)
    }

    /// The same, and which limiter the slots are of, if that is what they are.
    pub(crate) fn pool_and_family(
        &self,
        cell: u32,
        of: Kind,
        now_ns: u64,
    ) -> Option<(SemaphoreStatus, u32)> {
        let at = self.objects.at(cell);
        for _ in 0..ROUNDS_MAX {
            let state = self.region.wide(at).load();
            let kind = Objects::kind(&self.region, at);
            if !is_pooled(state) || kind != of as u8 {
                return None;
            }
            let family = Objects::family(&self.region, at);
            let name = Objects::told(&self.region, at, Objects::name(&self.region, at));
            let found = Found { cell, at, state };
            if !found.is_unchanged(&self.region) {
                continue;
            }
            let pool = Pool::decode(state);
            let (waiters, waiters_dead) = if pool.queue {
                self.count_waiters(cell)
            } else {
                (0, 0)
            };
            let status = SemaphoreStatus {
                name,
                capacity: self.capacity_in(cell, pool),
                used: pool.used,
                holds: self.shared_holds(cell, now_ns),
                waiters,
                waiters_dead,
            };
            return Some((status, family));
        }
        None
    }
}

/// What an inspection saw of a semaphore, or of a key of a concurrency limiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SemaphoreStatus {
    /// The semaphore's name, or the key.
    pub name: Vec<u8>,
    /// How many permits there are; 0 while nobody said.
    pub capacity: u32,
    /// How many of them are taken.
    pub used: u32,
    /// Who has some.
    pub holds: Vec<HoldStatus>,
    /// How many wait for some.
    pub waiters: u32,
    /// How many more died while they waited.
    pub waiters_dead: u32,
}

impl Wants {
    /// Some of a semaphore's permits: 1 to its capacity, which is 1 to [`CAPACITY_MAX`].
    pub fn permits(amount: u32, capacity: u32) -> Result<Self> {
        check_permits("permits", capacity, CAPACITY_MAX)?;
        check_permits("permits", amount, capacity)?;
        Ok(Self::Permits { amount, capacity })
    }
}

/// Checks a number of permits, named in the error, which is to be 1 to `max`.
pub(crate) fn check_permits(what: &'static str, value: u32, max: u32) -> Result<()> {
    if (1..=max).contains(&value) {
        return Ok(());
    }
    Err(Error::OutOfRange {
        what,
        value: value.into(),
        min: 1,
        max: max.into(),
    })
}
