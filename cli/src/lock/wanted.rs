//! What a command or a script is to hold: a lock, alone or beside others, that of a partition or of the table, or
//! permits of a semaphore.
//!
//! Owns which of the library's calls that is, and how it is named in errors.

use std::fmt;
use std::time::Duration;

use sprag::{Acquire, CoarseLock, Hold, HoldInfo, Lock, LockInfo, Result, Semaphore, Space};

use crate::shown::Shown;

/// What is wanted, of a space.
pub(super) enum Wanted<'s> {
    Alone(Lock<'s>),
    Shared(Lock<'s>),
    Permits(Semaphore<'s>, u32),
    /// The lock of the partition that this name is in.
    Partition(CoarseLock<'s>, Vec<u8>),
    Table(CoarseLock<'s>),
}

/// What a name is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Lock,
    Semaphore,
    Partition,
    Table,
}

impl<'s> Wanted<'s> {
    pub(super) fn name(&self) -> Vec<u8> {
        match self {
            Self::Alone(lock) | Self::Shared(lock) => lock.name(),
            Self::Permits(semaphore, _) => semaphore.name(),
            Self::Partition(_, name) => name.clone(),
            Self::Table(_) => Vec::new(),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Alone(_) | Self::Shared(_) => Kind::Lock,
            Self::Permits(..) => Kind::Semaphore,
            Self::Partition(..) => Kind::Partition,
            Self::Table(_) => Kind::Table,
        }
    }

    /// How errors name it.
    pub(super) fn subject(&self) -> Subject {
        Subject::new(self.kind(), &self.name())
    }

    pub(super) fn ttl(self, ttl: Duration) -> Result<Self> {
        Ok(match self {
            Self::Alone(lock) => Self::Alone(lock.ttl(ttl)?),
            Self::Shared(lock) => Self::Shared(lock.ttl(ttl)?),
            Self::Permits(semaphore, permits) => Self::Permits(semaphore.ttl(ttl)?, permits),
            Self::Partition(lock, name) => Self::Partition(lock.ttl(ttl)?, name),
            Self::Table(lock) => Self::Table(lock.ttl(ttl)?),
        })
    }

    pub(super) fn try_acquire(&self) -> Result<Option<Hold<'s>>> {
        match self {
            Self::Alone(lock) => lock.try_acquire(),
            Self::Shared(lock) => lock.try_acquire_shared(),
            Self::Permits(semaphore, permits) => semaphore.try_acquire(*permits),
            Self::Partition(lock, _) | Self::Table(lock) => lock.try_acquire(),
        }
    }

    pub(super) fn acquire_async(&self) -> Result<Acquire<'s>> {
        match self {
            Self::Alone(lock) => Ok(lock.acquire_async()),
            Self::Shared(lock) => Ok(lock.acquire_shared_async()),
            Self::Permits(semaphore, permits) => semaphore.acquire_async(*permits),
            Self::Partition(lock, _) | Self::Table(lock) => Ok(lock.acquire_async()),
        }
    }

    pub(super) fn release_token(&self, token: u64) -> Result<()> {
        match self {
            Self::Alone(lock) | Self::Shared(lock) => lock.release_token(token),
            Self::Permits(semaphore, _) => semaphore.release_token(token),
            Self::Partition(lock, _) | Self::Table(lock) => lock.release_token(token),
        }
    }

    pub(super) fn renew_token(&self, token: u64) -> Result<()> {
        match self {
            Self::Alone(lock) | Self::Shared(lock) => lock.renew_token(token),
            Self::Permits(semaphore, _) => semaphore.renew_token(token),
            Self::Partition(lock, _) | Self::Table(lock) => lock.renew_token(token),
        }
    }

    /// Whether this can't be had as long as the hold under `token` lasts.
    pub(super) fn waits_for(&self, space: &Space, token: u64) -> Result<bool> {
        let name = self.name();
        let is_it = |hold: &HoldInfo| hold.is_live && hold.token == token;
        let is_held = |lock: &LockInfo| lock.holds.iter().any(is_it);
        Ok(match self {
            Self::Alone(_) | Self::Shared(_) | Self::Partition(..) => {
                let partition = format!("partition {}", space.partition_of(&name)).into_bytes();
                let (locks, coarse) = (space.inspect(&name)?, space.inspect_coarse()?);
                locks.iter().any(|lock| lock.name == name && is_held(lock))
                    || coarse
                        .iter()
                        .any(|lock| lock.name == partition && is_held(lock))
            }
            Self::Table(_) => space.inspect_coarse()?.iter().any(is_held),
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

/// What an error is about: `lock 'nightly'`, `partition of 'nightly'`, `table`.
#[derive(Debug)]
pub(crate) struct Subject {
    what: &'static str,
    name: Option<Shown>,
}

impl Subject {
    pub(super) fn new(kind: Kind, name: &[u8]) -> Self {
        let what = match kind {
            Kind::Lock => "lock",
            Kind::Semaphore => "semaphore",
            Kind::Partition => "partition of",
            Kind::Table => "table",
        };
        Self {
            what,
            name: (kind != Kind::Table).then(|| Shown::of_bytes(name)),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(formatter, "{} {name}", self.what),
            None => formatter.write_str(self.what),
        }
    }
}
