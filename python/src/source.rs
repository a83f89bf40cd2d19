//! What can be acquired, in one type: a lock, several, permits, a coarse lock, and those of an owner. What comes of it
//! is an `AnyHold`.

use pyo3::prelude::*;
use sprag::{
    CoarseLock, Hold, HoldAll, HoldOf, KeepAlive, LockInfo, Locks, Owner, OwnerHold, OwnerLock,
    Result, Semaphore,
};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// What is acquired, and how.
#[derive(Clone)]
pub(crate) enum Source {
    Lock {
        lock: sprag::Lock<'static>,
        is_shared: bool,
    },
    Several(Locks<'static>),
    Coarse(CoarseLock<'static>),
    Permits {
        semaphore: Semaphore<'static>,
        permits: u32,
    },
    Owner {
        lock: OwnerLock<'static>,
        is_shared: bool,
    },
    SeveralOf(Locks<'static>, Owner),
    CoarseOf(CoarseLock<'static>, Owner),
}

/// A wait that is polled.
pub(crate) type Acquiring = Pin<Box<dyn Future<Output = Result<AnyHold>> + Send>>;

impl Source {
    /// Takes it if it can be had at once. Waits for nobody.
    #[inline]
    pub(crate) fn try_acquire(&self) -> Result<Option<AnyHold>> {
        match self {
            Self::Lock {
                lock,
                is_shared: false,
            } => Ok(lock.try_acquire()?.map(AnyHold::One)),
            Self::Lock { lock, .. } => Ok(lock.try_acquire_shared()?.map(AnyHold::One)),
            Self::Several(locks) => Ok(locks.try_acquire()?.map(Box::new).map(AnyHold::All)),
            Self::Coarse(lock) => Ok(lock.try_acquire()?.map(AnyHold::One)),
            Self::Permits { semaphore, permits } => {
                Ok(semaphore.try_acquire(*permits)?.map(AnyHold::One))
            }
            Self::Owner { .. } | Self::SeveralOf(..) | Self::CoarseOf(..) => {
                self.acquire(Some(Duration::ZERO))
            }
        }
    }

    /// Takes it, waiting for at most `timeout`, or for as long as it takes.
    pub(crate) fn acquire(&self, timeout: Option<Duration>) -> Result<Option<AnyHold>> {
        let at_most = timeout.unwrap_or(Duration::MAX);
        loop {
            let hold = self.acquire_within(at_most)?;
            // The longest time never ends, but the type does not say so.
            if hold.is_some() || timeout.is_some() {
                return Ok(hold);
            }
        }
    }

    fn acquire_within(&self, timeout: Duration) -> Result<Option<AnyHold>> {
        match self {
            Self::Lock {
                lock,
                is_shared: false,
            } => Ok(lock.acquire_timeout(timeout)?.map(AnyHold::One)),
            Self::Lock { lock, .. } => Ok(lock.acquire_shared_timeout(timeout)?.map(AnyHold::One)),
            Self::Several(locks) => Ok(locks
                .acquire_timeout(timeout)?
                .map(Box::new)
                .map(AnyHold::All)),
            Self::Coarse(lock) => Ok(lock.acquire_timeout(timeout)?.map(AnyHold::One)),
            Self::Permits { semaphore, permits } => Ok(semaphore
                .acquire_timeout(*permits, timeout)?
                .map(AnyHold::One)),
            Self::Owner {
                lock,
                is_shared: false,
            } => Ok(lock
                .acquire_timeout(timeout)?
                .map(Box::new)
                .map(AnyHold::Owner)),
            Self::Owner { lock, .. } => Ok(lock
                .acquire_shared_timeout(timeout)?
                .map(Box::new)
                .map(AnyHold::Owner)),
            Self::SeveralOf(locks, owner) => Ok(locks
                .acquire_for(owner, timeout)?
                .map(Box::new)
                .map(AnyHold::AllOf)),
            Self::CoarseOf(lock, owner) => Ok(lock
                .acquire_for(owner, timeout)?
                .map(Box::new)
                .map(AnyHold::OneOf)),
        }
    }

    /// Takes it as a future.
    pub(crate) fn acquire_async(&self) -> Result<Acquiring> {
        Ok(match self {
            Self::Lock {
                lock,
                is_shared: false,
            } => one(lock.acquire_async()),
            Self::Lock { lock, .. } => one(lock.acquire_shared_async()),
            Self::Several(locks) => {
                let all = locks.acquire_async();
                Box::pin(async { Ok(AnyHold::All(Box::new(all.await?))) })
            }
            Self::Coarse(lock) => one(lock.acquire_async()),
            Self::Permits { semaphore, permits } => one(semaphore.acquire_async(*permits)?),
            Self::Owner { lock, is_shared } => {
                let owner = if *is_shared {
                    lock.acquire_shared_async()
                } else {
                    lock.acquire_async()
                };
                Box::pin(async { Ok(AnyHold::Owner(Box::new(owner.await?))) })
            }
            Self::SeveralOf(locks, owner) => {
                let all = locks.acquire_for_async(owner);
                Box::pin(async { Ok(AnyHold::AllOf(Box::new(all.await?))) })
            }
            Self::CoarseOf(lock, owner) => {
                let one = lock.acquire_for_async(owner);
                Box::pin(async { Ok(AnyHold::OneOf(Box::new(one.await?))) })
            }
        })
    }

    /// Who holds it and who waits for it: of several locks, what is known of each. `None` for what is asked in
    /// another way.
    pub(crate) fn peek(&self) -> Result<Option<Vec<LockInfo>>> {
        Ok(match self {
            Self::Lock { lock, .. } => Some(lock.peek()?.into_iter().collect()),
            Self::Several(locks) | Self::SeveralOf(locks, _) => {
                Some(locks.peek()?.into_iter().flatten().collect())
            }
            Self::Coarse(lock) | Self::CoarseOf(lock, _) => Some(vec![lock.peek()?]),
            Self::Permits { .. } | Self::Owner { .. } => None,
        })
    }
}

fn one(acquiring: sprag::Acquire<'static>) -> Acquiring {
    Box::pin(async { Ok(AnyHold::One(acquiring.await?)) })
}

/// What was acquired.
pub(crate) enum AnyHold {
    One(Hold<'static>),
    // In boxes, so that the common one is not moved as if it were as large as they are.
    All(Box<HoldAll<'static>>),
    Owner(Box<OwnerHold<'static>>),
    OneOf(Box<HoldOf<Hold<'static>>>),
    AllOf(Box<HoldOf<HoldAll<'static>>>),
}

/// Asks the hold beneath, whichever it is.
macro_rules! ask {
    ($hold:expr, $beneath:ident => $answer:expr) => {
        match $hold {
            AnyHold::One($beneath) => $answer,
            AnyHold::All($beneath) => $answer,
            AnyHold::Owner($beneath) => $answer,
            AnyHold::OneOf($beneath) => $answer,
            AnyHold::AllOf($beneath) => $answer,
        }
    };
}

impl AnyHold {
    /// The tokens: one, or each of several locks'.
    pub(crate) fn tokens(&self) -> Vec<u64> {
        match self {
            Self::All(all) => all.tokens().to_vec(),
            Self::AllOf(all) => all.tokens().to_vec(),
            one => vec![one.token()],
        }
    }

    /// The token of one lock; of several the first's.
    #[inline]
    pub(crate) fn token(&self) -> u64 {
        match self {
            Self::One(hold) => hold.token(),
            Self::OneOf(hold) => hold.token(),
            Self::Owner(hold) => hold.token(),
            Self::All(all) => all.tokens().first().copied().unwrap_or(0),
            Self::AllOf(all) => all.tokens().first().copied().unwrap_or(0),
        }
    }

    /// Whether it is of several locks.
    pub(crate) fn is_of_several(&self) -> bool {
        matches!(self, Self::All(_) | Self::AllOf(_))
    }

    /// Whether asking it may wait for another thread of its owner.
    pub(crate) fn may_wait(&self) -> bool {
        matches!(self, Self::Owner(_))
    }

    pub(crate) fn is_valid(&self) -> bool {
        ask!(self, hold => hold.is_valid())
    }

    pub(crate) fn is_held(&self) -> bool {
        ask!(self, hold => hold.is_held())
    }

    pub(crate) fn lease_left(&self) -> Duration {
        ask!(self, hold => hold.lease_left())
    }

    pub(crate) fn renew(&mut self) -> Result<()> {
        ask!(self, hold => hold.renew())
    }

    pub(crate) fn extend(&mut self, ttl: Duration) -> Result<()> {
        ask!(self, hold => hold.extend(ttl))
    }

    pub(crate) fn keep_alive(&mut self, options: KeepAlive) -> Result<()> {
        ask!(self, hold => hold.keep_alive(options))
    }

    pub(crate) fn is_shared(&self) -> bool {
        match self {
            Self::One(hold) => hold.is_shared(),
            Self::OneOf(hold) => hold.is_shared(),
            Self::Owner(hold) => hold.is_shared(),
            Self::All(_) | Self::AllOf(_) => false,
        }
    }

    /// Has alone what it shares; `None` for what cannot be shared.
    pub(crate) fn upgrade(&mut self, timeout: Option<Duration>) -> Result<Option<bool>> {
        let upgraded = match (self, timeout) {
            (Self::One(hold), None) => hold.upgrade().map(|()| true),
            (Self::One(hold), Some(timeout)) => hold.upgrade_timeout(timeout),
            (Self::Owner(hold), None) => hold.upgrade().map(|()| true),
            (Self::Owner(hold), Some(timeout)) => hold.upgrade_timeout(timeout),
            (Self::All(_) | Self::AllOf(_) | Self::OneOf(_), _) => return Ok(None),
        };
        upgraded.map(Some)
    }

    /// Shares what it has alone; `false` for what cannot be shared.
    pub(crate) fn downgrade(&mut self) -> Result<bool> {
        match self {
            Self::One(hold) => hold.downgrade()?,
            Self::Owner(hold) => hold.downgrade()?,
            Self::All(_) | Self::AllOf(_) | Self::OneOf(_) => return Ok(false),
        }
        Ok(true)
    }

    #[inline]
    pub(crate) fn release(self) -> Result<()> {
        match self {
            Self::One(hold) => hold.release(),
            Self::All(all) => all.release(),
            Self::Owner(hold) => hold.release(),
            Self::OneOf(hold) => hold.into_inner().release(),
            Self::AllOf(all) => all.into_inner().release(),
        }
    }

    /// Releases it, whatever comes of that: how a hold is dropped.
    #[inline]
    pub(crate) fn give_up(self) {
        if self.may_wait() {
            // Another thread of its owner may be in a wait whose end needs the interpreter.
            Python::attach(|py| py.detach(|| drop(self)));
        }
    }

    /// Lives on without this process; `None`, and it is released, for what cannot.
    pub(crate) fn detach(self) -> Option<Result<u64>> {
        match self {
            Self::One(hold) => Some(hold.detach()),
            Self::All(_) | Self::Owner(_) | Self::OneOf(_) | Self::AllOf(_) => None,
        }
    }

    /// Whether its owner had it before, so that an earlier hold has asked for what is to be of the lease.
    #[inline]
    pub(crate) fn is_reentry(&self) -> bool {
        matches!(self, Self::Owner(hold) if hold.is_reentry())
    }

    /// Whether it can live on without this process.
    pub(crate) fn can_detach(&self) -> bool {
        matches!(self, Self::One(_))
    }
}
