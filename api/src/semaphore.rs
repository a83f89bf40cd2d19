//! Semaphores: handles by which permits are acquired, also those of a key of a concurrency limiter.

use crate::lock::Acquire;
use crate::share::Share;
use crate::{Hold, HoldInfo, Lock, Result, Space};
use sprag_core::ConcurrencyRef;
use sprag_core::admission::Wants;
use sprag_core::lock::HoldOf;
use sprag_core::readable::Readable;
use sprag_core::semaphore::SemaphoreStatus;
use std::fmt;
use std::time::Duration;

/// A handle on a named number of permits. Made by [`Space::semaphore`], and for a key of a concurrency limiter by
/// [`Concurrency::key`](crate::Concurrency::key); cheap to make.
///
/// Permits are leased: those of a holder that died, or did not renew them, return. Each hold has a token,
/// and as many permits as it asked for at once; all are released together, when it is dropped.
///
/// ```
/// use sprag::Space;
///
/// let space = Space::open("mem:")?;
/// let connections = space.semaphore("connections", 3)?;
/// let two = connections.acquire(2)?;
/// let one = connections.try_acquire(1)?.expect("there are three");
/// assert!(connections.try_acquire(1)?.is_none());
/// drop(two);
/// assert!(connections.try_acquire(2)?.is_some());
/// # drop(one);
/// # Ok::<(), sprag::Error>(())
/// ```
#[derive(Clone)]
pub struct Semaphore<'s> {
    /// The ways to acquire are those of a lock.
    lock: Lock<'s>,
    of: Of,
}

/// What says how many permits there are.
#[derive(Clone, Copy)]
enum Of {
    /// Whoever made the handle.
    Handle(u32),
    /// A limiter, whose key the name is.
    Limiter(ConcurrencyRef),
}

impl<'s> Semaphore<'s> {
    pub(crate) fn new(space: &'s Space, name: &[u8], permits: u32) -> Result<Self> {
        // The number is checked here, and not only where it is first used.
        Wants::permits(1, permits)?;
        Ok(Self {
            lock: Lock::new(space, name)?,
            of: Of::Handle(permits),
        })
    }

    pub(crate) fn of_key(space: Share<'s>, limiter: ConcurrencyRef, key: &[u8]) -> Result<Self> {
        let name = space.engine.slots_name(limiter, key)?;
        Ok(Self {
            lock: Lock::named(space, name),
            of: Of::Limiter(limiter),
        })
    }

    /// The same semaphore, with a share of the space instead of a borrow of it, as
    /// [`Lock::into_owned`].
    pub fn into_owned(self) -> Semaphore<'static> {
        Semaphore {
            lock: self.lock.into_owned(),
            of: self.of,
        }
    }

    /// Sets the lease of the holds to come, as [`Lock::ttl`]: 30 s if not set.
    pub fn ttl(mut self, ttl: Duration) -> Result<Self> {
        self.lock = self.lock.ttl(ttl)?;
        Ok(self)
    }

    /// The name; of a limiter's key the key.
    pub fn name(&self) -> Vec<u8> {
        self.lock.name()
    }

    /// How many permits there are in all; of a limiter's key as many as the limiter allows now, and 0 only if
    /// the region is damaged.
    pub fn permits(&self) -> u32 {
        match self.of {
            Of::Handle(permits) => permits,
            Of::Limiter(limiter) => {
                let capacity = self.lock.inner().engine.concurrency_capacity(limiter);
                capacity.unwrap_or(0)
            }
        }
    }

    /// Who has permits and who waits for some, changing nothing. Reads all holds of the space that are by
    /// permits.
    pub fn peek(&self) -> Result<SemaphoreInfo> {
        let inner = self.lock.inner();
        inner.check_process()?;
        inner.check_in_place()?;
        let (name, now_ns) = (self.lock.engine_name(), inner.precise_ns());
        let status = inner.engine.permits_status(self.hold_of(), name, now_ns);
        let info = status.map(|status| SemaphoreInfo::new(status, now_ns));
        Ok(info.unwrap_or_else(|| SemaphoreInfo {
            name: self.name(),
            permits: self.permits(),
            taken: 0,
            holders: 0,
            holds: Vec::new(),
            waiters: 0,
            waiters_dead: 0,
        }))
    }

    /// Takes `permits` at once, 1 to all that there are, if so many are free and nobody waits; `None` if
    /// not. Costs a few hundred nanoseconds.
    ///
    /// # Errors
    ///
    /// As for every way to acquire: those of [`Lock::try_acquire`];
    /// [`EngineError::CapacityDiffers`](crate::EngineError::CapacityDiffers) if the semaphore has another number
    /// of permits; [`EngineError::AboveCapacity`](crate::EngineError::AboveCapacity) if a limiter allows fewer of
    /// its key, also to one who waits when that is changed.
    pub fn try_acquire(&self, permits: u32) -> Result<Option<Hold<'s>>> {
        self.lock.try_get(self.wants(permits)?)
    }

    /// Takes `permits` at once, waiting for as long as it takes. Those who wait are served in the order in
    /// which they came, also one who wants more than the one behind.
    pub fn acquire(&self, permits: u32) -> Result<Hold<'s>> {
        self.lock.get(self.wants(permits)?)
    }

    /// [`acquire`](Self::acquire), waiting for at most `timeout`; `None` if its turn did not come.
    pub fn acquire_timeout(&self, permits: u32, timeout: Duration) -> Result<Option<Hold<'s>>> {
        self.lock.get_timeout(self.wants(permits)?, timeout)
    }

    /// [`acquire`](Self::acquire) as a future, as [`Lock::acquire_async`].
    pub fn acquire_async(&self, permits: u32) -> Result<Acquire<'s>> {
        Ok(self.lock.get_async(self.wants(permits)?, Vec::new()))
    }

    /// Ends the hold with this token, as [`Lock::release_token`].
    pub fn release_token(&self, token: u64) -> Result<()> {
        self.lock.release_token_of(self.hold_of(), token)
    }

    /// Sets the lease of the hold with this token to this handle's, from now, as [`Lock::renew_token`].
    pub fn renew_token(&self, token: u64) -> Result<()> {
        self.lock.renew_token_of(self.hold_of(), token)
    }

    /// Takes over the hold with this token, and all its permits, as [`Lock::adopt_token`].
    pub fn adopt_token(&self, token: u64) -> Result<Hold<'s>> {
        self.lock.adopt_token_of(self.hold_of(), token)
    }

    fn wants(&self, permits: u32) -> Result<Wants> {
        Ok(match self.of {
            Of::Handle(capacity) => Wants::permits(permits, capacity)?,
            Of::Limiter(limiter) => Wants::slots(permits, limiter)?,
        })
    }

    fn hold_of(&self) -> HoldOf {
        match self.of {
            Of::Handle(_) => HoldOf::Semaphore,
            Of::Limiter(_) => HoldOf::Slots,
        }
    }
}

impl fmt::Debug for Semaphore<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Semaphore")
            .field("name", &Readable(&self.name()))
            .field("permits", &self.permits())
            .finish()
    }
}

/// What is known of a semaphore, or of a key of a concurrency limiter.
#[derive(Clone, PartialEq, Eq)]
pub struct SemaphoreInfo {
    /// The semaphore's name, or the key.
    pub name: Vec<u8>,
    /// How many permits there are.
    pub permits: u32,
    /// How many of them are taken, those of the dead and the late included until somebody needs them.
    pub taken: u32,
    /// How many hold some, and not merely by an expired lease or by a process that died.
    pub holders: u32,
    /// Each hold of some, by token, those included that are over or whose process died.
    pub holds: Vec<HoldInfo>,
    /// How many wait for some.
    pub waiters: u32,
    /// How many more died while they waited.
    pub waiters_dead: u32,
}

impl SemaphoreInfo {
    /// How many permits are held, and not merely by an expired lease or by a process that died.
    pub fn used(&self) -> u32 {
        let live = self.holds.iter().filter(|hold| hold.is_live);
        live.map(|hold| hold.permits).fold(0, u32::saturating_add)
    }

    /// The most permits that could be had beside those, if nobody waits.
    pub fn remaining(&self) -> u32 {
        self.permits.saturating_sub(self.used())
    }

    pub(crate) fn new(status: SemaphoreStatus, now_ns: u64) -> Self {
        let holds = status.holds.iter();
        let holds: Vec<_> = holds.map(|hold| HoldInfo::new(hold, now_ns)).collect();
        Self {
            holders: holds.iter().filter(|hold| hold.is_live).count() as u32,
            holds,
            name: status.name,
            permits: status.capacity,
            taken: status.used,
            waiters: status.waiters,
            waiters_dead: status.waiters_dead,
        }
    }
}

impl fmt::Debug for SemaphoreInfo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SemaphoreInfo")
            .field("name", &Readable(&self.name))
            .field("permits", &self.permits)
            .field("taken", &self.taken)
            .field("holders", &self.holders)
            .field("holds", &self.holds)
            .field("waiters", &self.waiters)
            .field("waiters_dead", &self.waiters_dead)
            .finish()
    }
}
