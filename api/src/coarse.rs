//! Locks of a partition and of the table.

use crate::hold::finish_release;
use crate::lock::Acquire;
use crate::space::Inner;
use crate::{Error, Hold, Lock, LockInfo, Result, Space};
use sprag_core::SessionId;
use sprag_core::admission::Wants;
use sprag_core::lock::{Coarse, Grant};
use std::fmt;
use std::time::Duration;

/// A handle on a lock that covers the locks of many keys: of a partition, or of all. Made by
/// [`Space::partition`] and [`Space::table`].
///
/// While it is held, none of the locks beneath is, and the other way round; who waits for it keeps newcomers from
/// those, so that it gets its turn. It is held alone only. Semaphores, fences and limiters are not covered.
///
/// It looks at every lock beneath, some 10 µs for a partition of the default size; so it is for what is done
/// seldom: a backup, a migration, a count of everything.
///
/// ```
/// use sprag::Space;
///
/// let space = Space::open("mem:")?;
/// let partition = space.partition(space.partition_of("orders/42"))?;
/// let hold = partition.acquire()?;
/// assert!(space.lock("orders/42")?.try_acquire()?.is_none());
/// hold.release()?;
/// assert!(space.lock("orders/42")?.try_acquire()?.is_some());
/// # Ok::<(), sprag::Error>(())
/// ```
#[derive(Clone)]
pub struct CoarseLock<'s> {
    /// The ways to acquire are those of a lock; its name is what is told of.
    lock: Lock<'s>,
    coarse: Coarse,
}

impl<'s> CoarseLock<'s> {
    pub(crate) fn new(space: &'s Space, coarse: Coarse) -> Result<Self> {
        Ok(Self {
            lock: Lock::new(space, &coarse.told())?,
            coarse,
        })
    }

    /// The same lock, with a share of the space instead of a borrow of it, as [`Lock::into_owned`].
    pub fn into_owned(self) -> CoarseLock<'static> {
        CoarseLock {
            lock: self.lock.into_owned(),
            coarse: self.coarse,
        }
    }

    /// Sets the lease of the holds to come, as [`Lock::ttl`]: 30 s if not set.
    pub fn ttl(mut self, ttl: Duration) -> Result<Self> {
        self.lock = self.lock.ttl(ttl)?;
        Ok(self)
    }

    /// Who holds the lock and who waits for it, changing nothing. Needs no session.
    pub fn peek(&self) -> Result<LockInfo> {
        let inner = self.lock.inner();
        inner.check_to_list()?;
        let now_ns = inner.precise_ns();
        let status = inner.engine.coarse_status(self.coarse, now_ns);
        Ok(LockInfo::new(status, now_ns))
    }

    /// Takes the lock if it can be had at once; `None` if not.
    pub fn try_acquire(&self) -> Result<Option<Hold<'s>>> {
        self.lock.try_get(self.wants())
    }

    /// Takes the lock, waiting its turn for as long as it takes.
    pub fn acquire(&self) -> Result<Hold<'s>> {
        self.lock.get(self.wants())
    }

    /// Takes the lock, waiting its turn for at most `timeout`; `None` if it did not come.
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<Option<Hold<'s>>> {
        self.lock.get_timeout(self.wants(), timeout)
    }

    /// [`acquire`](Self::acquire) as a future, as [`Lock::acquire_async`].
    pub fn acquire_async(&self) -> Acquire<'s> {
        self.lock.get_async(self.wants(), Vec::new())
    }

    /// Ends the hold with this token, whoever took it: the other half of [`Hold::detach`], as
    /// [`Lock::release_token`].
    pub fn release_token(&self, token: u64) -> Result<()> {
        let inner = self.lock.inner();
        inner.check_process()?;
        let now_ns = inner.precise_ns();
        let released = inner
            .engine
            .release_coarse_by_token(self.coarse, token, now_ns);
        if finish_release(inner, released) {
            Ok(())
        } else {
            Err(self.lost(token))
        }
    }

    /// Sets the lease of the hold with this token to this handle's, from now, as [`Lock::renew_token`].
    pub fn renew_token(&self, token: u64) -> Result<()> {
        let inner = self.lock.inner();
        inner.check_process()?;
        inner.check_in_place()?;
        self.renew(inner, token, None, inner.precise_ns()).map(drop)
    }

    /// Takes over the hold with this token from whoever has it, with this handle's lease, as
    /// [`Lock::adopt_token`].
    pub fn adopt_token(&self, token: u64) -> Result<Hold<'s>> {
        let inner = self.lock.inner();
        inner.check_usable()?;
        let now_ns = inner.precise_ns();
        let grant = self.renew(inner, token, Some(inner.session), now_ns)?;
        Ok(self.lock.hold(grant, now_ns))
    }

    /// Takes the lock away from whoever holds it, as [`Space::break_lock`]; the token that was ended, or
    /// `None` if it was not held. Of a partition that is held with the table, the table's hold ends.
    pub fn break_hold(&self) -> Result<Option<u64>> {
        let inner = self.lock.inner();
        inner.check_process()?;
        inner.check_in_place()?;
        let now_ns = inner.precise_ns();
        let broken = inner
            .engine
            .break_coarse(self.coarse, inner.process, now_ns)?;
        Ok(broken.map(|broken| {
            inner.wake(broken.wake);
            broken.token
        }))
    }

    fn renew(
        &self,
        inner: &Inner,
        token: u64,
        to: Option<SessionId>,
        now_ns: u64,
    ) -> Result<Grant> {
        let lease_ns = self.lock.lease_ns();
        inner
            .engine
            .renew_coarse_by_token(self.coarse, token, to, now_ns, lease_ns)?
            .ok_or_else(|| self.lost(token))
    }

    fn lost(&self, token: u64) -> Error {
        Error::lost(Some(&self.coarse.told()), token)
    }

    pub(crate) fn wants(&self) -> Wants {
        Wants::Coarse(self.coarse)
    }

    pub(crate) fn lock(&self) -> &Lock<'s> {
        &self.lock
    }
}

impl fmt::Debug for CoarseLock<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CoarseLock")
            .field("covers", &self.coarse)
            .finish()
    }
}
