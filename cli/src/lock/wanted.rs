//! What a command or a script is to hold: a lock, alone or beside others, or permits of a semaphore.
//!
//! Owns which of the library's calls that is, and how it is named in errors.

use std::fmt;
use std::time::Duration;

use sprag::{Acquire, Hold, HoldInfo, Lock, Result, Semaphore, Space};

use crate::shown::Shown;

/// What is wanted, of a space.
pub(super) enum Wanted<'s> {
    Alone(Lock<'s>),
    Shared(Lock<'s>),
    Permits(Semaphore<'s>, u32),
}

impl<'s> Wanted<'s> {
    pub(super) fn name(&self) -> Vec<u8> {
        match self {
            Self::Alone(lock) | Self::Shared(lock) => lock.name(),
            Self::Permits(semaphore, _) => semaphore.name(),
        }
    }

    /// How errors name it.
    pub(super) fn subject(&self) -> Subject {
        let is_semaphore = matches!(self, Self::Permits(..));
        Subject::new(is_semaphore, &self.name())
    }

    pub(super) fn ttl(self, ttl: Duration) -> Result<Self> {
        Ok(match self {
            Self::Alone(lock) => Self::Alone(lock.ttl(ttl)?),
            Self::Shared(lock) => Self::Shared(lock.ttl(ttl)?),
            Self::Permits(semaphore, permits) => Self::Permits(semaphore.ttl(ttl)?, permits),
        })
    }

    pub(super) fn try_acquire(&self) -> Result<Option<Hold<'s>>> {
        match self {
            Self::Alone(lock) => lock.try_acquire(),
            Self::Shared(lock) => lock.try_acquire_shared(),
            Self::Permits(semaphore, permits) => semaphore.try_acquire(*permits),
        }
    }

    pub(super) fn acquire_async(&self) -> Result<Acquire<'s>> {
        match self {
            Self::Alone(lock) => Ok(lock.acquire_async()),
            Self::Shared(lock) => Ok(lock.acquire_shared_async()),
            Self::Permits(semaphore, permits) => semaphore.acquire_async(*permits),
        }
    }

    pub(super) fn release_token(&self, token: u64) -> Result<()> {
        match self {
            Self::Alone(lock) | Self::Shared(lock) => lock.release_token(token),
            Self::Permits(semaphore, _) => semaphore.release_token(token),
        }
    }

    pub(super) fn renew_token(&self, token: u64) -> Result<()> {
        match self {
            Self::Alone(lock) | Self::Shared(lock) => lock.renew_token(token),
            Self::Permits(semaphore, _) => semaphore.renew_token(token),
        }
    }

    /// Whether this can't be had as long as the hold under `token` lasts.
    pub(super) fn waits_for(&self, space: &Space, token: u64) -> Result<bool> {
        let name = self.name();
        let is_it = |hold: &HoldInfo| hold.is_live && hold.token == token;
        Ok(match self {
            Self::Alone(_) | Self::Shared(_) => {
                let locks = space.inspect(&name)?;
                let lock = locks.iter().find(|lock| lock.name == name);
                lock.is_some_and(|lock| lock.holds.iter().any(is_it))
            }
            Self::Permits(_, permits) => {
                let semaphores = space.semaphores(&name)?;
                let semaphore = semaphores.iter().find(|semaphore| semaphore.name == name);
                semaphore.is_some_and(|semaphore| {
                    let hold = semaphore.holds.iter().find(|hold| is_it(hold));
                    hold.is_some_and(|hold| hold.permits + permits > semaphore.permits)
                })
            }
        })
    }
}

/// What an error is about: `lock 'nightly'`.
#[derive(Debug)]
pub(crate) struct Subject {
    what: &'static str,
    name: Shown,
}

impl Subject {
    pub(super) fn new(is_semaphore: bool, name: &[u8]) -> Self {
        Self {
            what: if is_semaphore { "semaphore" } else { "lock" },
            name: Shown::of_bytes(name),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.what, self.name)
    }
}
