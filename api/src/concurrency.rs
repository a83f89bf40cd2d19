//! Concurrency limiters: at most so many at once of each key, shared by everyone who opens them.

use crate::share::Share;
use crate::{Result, Semaphore, SemaphoreInfo, Space};
use sprag_core::ConcurrencyRef;
use sprag_core::readable::Readable;
use std::fmt;

/// At every instant at most so many at once of each key, leased as a semaphore's permits are. Made by
/// [`Space::concurrency`].
///
/// ```
/// let space = sprag::Space::open("mem:")?;
/// let uploads = space.concurrency("uploads", 2)?;
/// let ann = uploads.key("ann")?;
/// let (first, _second) = (ann.acquire(1)?, ann.acquire(1)?);
/// assert!(ann.try_acquire(1)?.is_none(), "ann has two already");
/// assert!(uploads.key("bob")?.try_acquire(1)?.is_some(), "bob has two of his own");
/// drop(first);
/// assert_eq!(ann.peek()?.remaining(), 1);
/// # Ok::<(), sprag::Error>(())
/// ```
#[derive(Clone)]
pub struct Concurrency<'s> {
    space: Share<'s>,
    limiter: ConcurrencyRef,
}

impl<'s> Concurrency<'s> {
    fn open(space: &'s Space, name: &[u8], permits: u32, update: bool) -> Result<Self> {
        let inner = &*space.inner;
        inner.check_usable()?;
        let (by, now_ns) = (inner.session, inner.precise_ns());
        let wake = |wake| inner.wake(Some(wake));
        let engine = &inner.engine;
        let limiter = engine.open_concurrency(name, permits, update, by, now_ns, wake)?;
        Ok(Self::new(space, limiter))
    }

    fn new(space: &'s Space, limiter: ConcurrencyRef) -> Self {
        Self {
            space: Share::borrow(&space.inner),
            limiter,
        }
    }

    /// The same limiter, with a share of the space instead of a borrow of it, as
    /// [`Lock::into_owned`](crate::Lock::into_owned).
    pub fn into_owned(self) -> Concurrency<'static> {
        Concurrency {
            space: self.space.to_owned(),
            limiter: self.limiter,
        }
    }

    /// What `key`, 1 to 1,024 bytes, can have at once, to be acquired as a semaphore's permits are. Nothing is
    /// created before some are. Cheap to make, for a call or for good; keys of at most 20 bytes allocate
    /// nothing.
    pub fn key<K: AsRef<[u8]> + ?Sized>(&self, key: &K) -> Result<Semaphore<'s>> {
        Semaphore::of_key(self.space.clone(), self.limiter, key.as_ref())
    }

    /// The limiter's name.
    pub fn name(&self) -> Vec<u8> {
        self.space.engine.concurrency_name(self.limiter)
    }

    /// How many each key can have at once now, whatever this handle was opened with. A few loads.
    pub fn permits(&self) -> Result<u32> {
        self.space.check_process()?;
        self.space.check_in_place_to_look(self.space.now_ns())?;
        Ok(self.space.engine.concurrency_capacity(self.limiter)?)
    }
}

impl fmt::Debug for Concurrency<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Concurrency")
            .field("name", &Readable(&self.name()))
            .field("permits", &self.permits().ok())
            .finish()
    }
}

/// What is known of a concurrency limiter.
#[derive(Clone, PartialEq, Eq)]
pub struct ConcurrencyInfo {
    /// The limiter's name.
    pub name: Vec<u8>,
    /// How many each key can have at once.
    pub permits: u32,
    /// The keys that have an entry, by name: those of which some are held or waited for, and idle ones not
    /// reclaimed yet.
    pub keys: Vec<SemaphoreInfo>,
}

impl fmt::Debug for ConcurrencyInfo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ConcurrencyInfo")
            .field("name", &Readable(&self.name))
            .field("permits", &self.permits)
            .field("keys", &self.keys)
            .finish()
    }
}

impl Space {
    /// The concurrency limiter `name`, 1 to 1,024 bytes, created if there is none: of each key at most `permits`
    /// are held at once, 1 to 16,777,215. It stays for as long as the region does. A limiter of a rate, or a
    /// semaphore, of the same name is another thing.
    ///
    /// # Errors
    ///
    /// [`EngineError::ConcurrencyDiffers`](crate::EngineError::ConcurrencyDiffers) if the limiter allows another
    /// number; [`Error::Engine`](crate::Error::Engine) also for a name or a number out of bounds, and when the
    /// region has no room for it.
    pub fn concurrency<N: AsRef<[u8]> + ?Sized>(
        &self,
        name: &N,
        permits: u32,
    ) -> Result<Concurrency<'_>> {
        Concurrency::open(self, name.as_ref(), permits, false)
    }

    /// The concurrency limiter `name` with `permits` for each key, whatever it had before. Once this has
    /// returned, nobody acquires by the old number. Who holds some keeps them, also if there are more of them
    /// then than `permits`; others get some once there is room. Who waits is served at once if there is room
    /// now, and fails with [`EngineError::AboveCapacity`](crate::EngineError::AboveCapacity) if it waits for
    /// more than `permits`. One exchange, and a look at all who wait.
    pub fn concurrency_updated<N: AsRef<[u8]> + ?Sized>(
        &self,
        name: &N,
        permits: u32,
    ) -> Result<Concurrency<'_>> {
        Concurrency::open(self, name.as_ref(), permits, true)
    }

    /// The concurrency limiter `name` as it is; `None` if there is none.
    pub fn find_concurrency<N: AsRef<[u8]> + ?Sized>(
        &self,
        name: &N,
    ) -> Result<Option<Concurrency<'_>>> {
        self.inner.check_process()?;
        self.inner.check_in_place()?;
        let limiter = self.inner.engine.concurrency(name.as_ref())?;
        Ok(limiter.map(|limiter| Concurrency::new(self, limiter)))
    }

    /// The concurrency limiters whose names begin with `prefix`, by name, and what is held of their keys. Reads
    /// the whole table; stops no one.
    pub fn concurrency_limiters<N: AsRef<[u8]> + ?Sized>(
        &self,
        prefix: &N,
    ) -> Result<Vec<ConcurrencyInfo>> {
        self.inner.check_to_list()?;
        let now_ns = self.inner.precise_ns();
        let statuses = self
            .inner
            .engine
            .concurrency_statuses(prefix.as_ref(), now_ns);
        let mut limiters: Vec<_> = statuses
            .into_iter()
            .map(|status| {
                let keys = status.keys.into_iter();
                let mut keys: Vec<_> = keys.map(|key| SemaphoreInfo::new(key, now_ns)).collect();
                keys.sort_by(|a, b| a.name.cmp(&b.name));
                ConcurrencyInfo {
                    name: status.name,
                    permits: status.capacity,
                    keys,
                }
            })
            .collect();
        limiters.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(limiters)
    }
}
