//! A space: the handle that users hold, and what it is asked for.
//!
//! How one is opened is in [`builder`], what its clones share in [`inner`].

mod builder;
mod inner;

pub use builder::SpaceBuilder;
#[cfg(target_os = "linux")]
pub(crate) use builder::birth;
pub(crate) use inner::Inner;

use crate::{
    CoarseLock, Counter, CounterInfo, Fence, IntoLimit, Limiter, LimiterInfo, Lock, LockInfo,
    Locks, Once, OnceInfo, Owner, Result, Semaphore, SemaphoreInfo,
};
use sprag_core::lock::{BreakRecord, Coarse};
use sprag_core::once::OnceStatus;
use std::fmt;
use std::sync::Arc;

/// A set of named objects, opened by URL. Clones share it; the last one closes the session, and what
/// it still holds is then free for others.
#[derive(Clone)]
pub struct Space {
    pub(crate) inner: Arc<Inner>,
}

impl fmt::Debug for Space {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Space")
            .field("url", &self.inner.url)
            .finish_non_exhaustive()
    }
}

impl Space {
    /// Opens the space at `url` with the defaults: see [`SpaceBuilder`].
    pub fn open(url: &str) -> Result<Self> {
        Self::builder().open(url)
    }

    /// Options for opening.
    pub fn builder() -> SpaceBuilder {
        SpaceBuilder::default()
    }

    /// A handle on the lock `name`, 1 to 1,024 bytes; nothing is created before it is acquired. Names
    /// of at most 24 bytes allocate nothing.
    #[inline]
    pub fn lock<N: AsRef<[u8]> + ?Sized>(&self, name: &N) -> Result<Lock<'_>> {
        Lock::new(self, name.as_ref())
    }

    /// An owner, whose locks are re-entrant.
    pub fn owner(&self) -> Owner {
        Owner::new(self)
    }

    /// The limiter `name`, 1 to 1,024 bytes, created with `limit` if there is none. `limit` is a
    /// [`Limit`](crate::Limit) or text such as `100/minute;burst=20`, see
    /// [`Limit::parse`](crate::Limit::parse). Open it once and keep it: a check through it costs far less than
    /// opening.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`](crate::Error::Limit) if `limit` is none;
    /// [`EngineError::LimitDiffers`](crate::EngineError::LimitDiffers) if the limiter has another limit.
    pub fn limiter<N: AsRef<[u8]> + ?Sized>(
        &self,
        name: &N,
        limit: impl IntoLimit,
    ) -> Result<Limiter> {
        Limiter::open(self, name.as_ref(), limit.into_limit()?, false)
    }

    /// The limiter `name` with `limit`, whatever it had before; what each key has used is kept. A change
    /// looks at every key of the region.
    pub fn limiter_updated<N: AsRef<[u8]> + ?Sized>(
        &self,
        name: &N,
        limit: impl IntoLimit,
    ) -> Result<Limiter> {
        Limiter::open(self, name.as_ref(), limit.into_limit()?, true)
    }

    /// A handle on several locks, which are acquired all at once or not at all: see [`Locks`]. 1 to 64 names,
    /// each 1 to 1,024 bytes; one given twice is one lock.
    ///
    /// ```
    /// # let space = sprag::Space::open("mem:")?;
    /// let accounts = space.locks(["account/17", "account/4"])?;
    /// let hold = accounts.acquire()?; // no order to keep to: such acquires can't deadlock
    /// assert_eq!(hold.tokens().len(), 2);
    /// # Ok::<(), sprag::Error>(())
    /// ```
    pub fn locks<N: AsRef<[u8]>>(&self, names: impl IntoIterator<Item = N>) -> Result<Locks<'_>> {
        Locks::new(self, names)
    }

    /// A handle on the lock of a partition, of those that [`partition_of`](Self::partition_of) counts: it
    /// excludes the locks of all keys in it.
    pub fn partition(&self, partition: u32) -> Result<CoarseLock<'_>> {
        self.inner.engine.check_partition(partition)?;
        CoarseLock::new(self, Coarse::Partition(partition))
    }

    /// A handle on the lock of the table: it excludes all locks of keys and of partitions.
    pub fn table(&self) -> Result<CoarseLock<'_>> {
        CoarseLock::new(self, Coarse::Table)
    }

    /// A handle on the semaphore `name`, 1 to 1,024 bytes, which has `permits`: 1 to 16,777,215. Nothing is
    /// created before some are acquired.
    ///
    /// # Errors
    ///
    /// [`Error::Engine`](crate::Error::Engine) for a name or a number out of bounds. That it exists with another
    /// number of permits is found out by acquiring:
    /// [`EngineError::CapacityDiffers`](crate::EngineError::CapacityDiffers).
    pub fn semaphore<N: AsRef<[u8]> + ?Sized>(
        &self,
        name: &N,
        permits: u32,
    ) -> Result<Semaphore<'_>> {
        Semaphore::new(self, name.as_ref(), permits)
    }

    /// The semaphores whose names begin with `prefix`, by name. Reads the whole table; stops no one.
    pub fn semaphores<N: AsRef<[u8]> + ?Sized>(&self, prefix: &N) -> Result<Vec<SemaphoreInfo>> {
        self.inner.check_to_list()?;
        let now_ns = self.inner.precise_ns();
        let mut semaphores = Vec::new();
        self.inner
            .engine
            .for_each_semaphore(prefix.as_ref(), now_ns, |status| {
                semaphores.push(SemaphoreInfo::new(status, now_ns));
            });
        semaphores.sort_by(|a: &SemaphoreInfo, b| a.name.cmp(&b.name));
        Ok(semaphores)
    }

    /// The fence `name`, 1 to 1,024 bytes, created when it first admits a token. Fences stay for as long
    /// as the region does.
    pub fn fence<N: AsRef<[u8]> + ?Sized>(&self, name: &N) -> Result<Fence> {
        Fence::new(self, name.as_ref())
    }

    /// The counter `name`, 1 to 1,024 bytes; nothing is created before it is changed. Names of at most 24
    /// bytes allocate nothing.
    #[inline(always)]
    pub fn counter<N: AsRef<[u8]> + ?Sized>(&self, name: &N) -> Result<Counter<'_>> {
        Counter::new(self, name.as_ref())
    }

    /// A handle on the idempotency key `name`, 1 to 1,024 bytes; nothing is created before somebody begins.
    /// Keys of at most 24 bytes allocate nothing.
    #[inline]
    pub fn once<N: AsRef<[u8]> + ?Sized>(&self, name: &N) -> Result<Once<'_>> {
        Once::new(self, name.as_ref())
    }

    /// The locks whose names begin with `prefix`, by name. Reads the whole table; stops no one.
    pub fn inspect<N: AsRef<[u8]> + ?Sized>(&self, prefix: &N) -> Result<Vec<LockInfo>> {
        self.inner.check_to_list()?;
        let now_ns = self.inner.precise_ns();
        let mut locks = Vec::new();
        self.inner
            .engine
            .for_each_lock(prefix.as_ref(), now_ns, |status| {
                locks.push(LockInfo::new(status, now_ns));
            });
        locks.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(locks)
    }

    /// The locks of partitions and of the table that are held or waited for; their names are `partition 3` and
    /// `the table`. While the table is held, so are all partitions, with a token of their own each.
    pub fn inspect_coarse(&self) -> Result<Vec<LockInfo>> {
        self.inner.check_to_list()?;
        let now_ns = self.inner.precise_ns();
        let engine = &self.inner.engine;
        let partitions = (0..self.partitions()).map(Coarse::Partition);
        Ok(partitions
            .chain([Coarse::Table])
            .map(|coarse| engine.coarse_status(coarse, now_ns))
            .filter(|status| !status.holds.is_empty() || status.waiters + status.waiters_dead > 0)
            .map(|status| LockInfo::new(status, now_ns))
            .collect())
    }

    /// The limiters whose names begin with `prefix`, by name. Reads the whole region; stops no one.
    pub fn limiters<N: AsRef<[u8]> + ?Sized>(&self, prefix: &N) -> Result<Vec<LimiterInfo>> {
        self.inner.check_to_list()?;
        let mut limiters = Vec::new();
        self.inner
            .engine
            .for_each_limiter(prefix.as_ref(), |name, limit, keys| {
                limiters.push(LimiterInfo { name, limit, keys });
            });
        limiters.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(limiters)
    }

    /// The counters that are not at 0 and whose names begin with `prefix`, by name, and their numbers.
    /// Reads the whole table; stops no one.
    pub fn counters<N: AsRef<[u8]> + ?Sized>(&self, prefix: &N) -> Result<Vec<CounterInfo>> {
        self.inner.check_to_list()?;
        let mut counters = Vec::new();
        self.inner
            .engine
            .for_each_counter(prefix.as_ref(), |name, number| {
                counters.push(CounterInfo { name, number });
            });
        counters.retain(|counter| counter.number != 0);
        counters.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(counters)
    }

    /// The idempotency keys that begin with `prefix`, by name, but for new ones. Reads the whole table; stops
    /// no one, also not an owner that is late: what is told of it here, [`Once::status`] makes sure of.
    pub fn onces<N: AsRef<[u8]> + ?Sized>(&self, prefix: &N) -> Result<Vec<OnceInfo>> {
        self.inner.check_to_list()?;
        let now_ns = self.inner.cautious_ns();
        let mut onces = Vec::new();
        let mut note = |name, status: OnceStatus| {
            if status != OnceStatus::New {
                let status = status.into();
                onces.push(OnceInfo { name, status });
            }
        };
        self.inner
            .engine
            .for_each_once(prefix.as_ref(), now_ns, &mut note);
        onces.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(onces)
    }

    /// Takes the lock `name` away from whoever holds it, and notes who did it; the token that was
    /// ended, or `None` if it was not held. What the holder still writes, a fence rejects.
    pub fn break_lock<N: AsRef<[u8]> + ?Sized>(&self, name: &N) -> Result<Option<u64>> {
        self.lock(name)?.break_hold()
    }

    /// The last forced releases, oldest first, at most 64; with region times as unix time.
    pub fn breaks(&self) -> Vec<BreakRecord> {
        let base_ns = self.inner.engine.region().base_unix_ns();
        let mut breaks = self.inner.engine.breaks();
        for record in &mut breaks {
            record.at_ns = record.at_ns.saturating_add(base_ns);
        }
        breaks
    }

    /// The partition that a key falls into, counted from 0, of [`partitions`](Self::partitions).
    pub fn partition_of<N: AsRef<[u8]> + ?Sized>(&self, key: &N) -> u32 {
        self.inner.engine.partition_of(key.as_ref())
    }

    /// How many partitions there are: a power of two, at most 64.
    pub fn partitions(&self) -> u32 {
        self.inner.engine.region().partitions()
    }

    /// The URL that it was opened by.
    pub fn url(&self) -> &str {
        &self.inner.url
    }

    /// How many keys the space's limiters have now: those with something used, and full ones not reclaimed
    /// yet. A few loads.
    pub fn limiter_key_count(&self) -> u64 {
        self.inner.engine.limiter_key_count()
    }

    /// Bytes that these keys take in the region: their cells, and the chunks of long ones. Reads the
    /// whole table.
    pub fn limiter_key_bytes(&self) -> u64 {
        self.inner.engine.limiter_key_bytes()
    }
}
