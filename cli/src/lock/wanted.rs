//! What a command or a script is to hold: a lock, alone or beside others, that of a partition or of the table, or
//! permits of a semaphore or of a key of a limiter.
//!
//! Owns which of the library's calls that is, and how it is named in errors.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use sprag::{
    CoarseLock, Hold, HoldAll, HoldInfo, KeepAlive, Lock, LockInfo, Locks, Result, Semaphore, Space,
};

use crate::shown::Shown;

/// What is wanted, of a space.
pub(super) enum Wanted<'s> {
    Alone(Lock<'s>),
    Shared(Lock<'s>),
    Permits(Semaphore<'s>, u32),
    /// So many of a key of the limiter of this name.
    Key(Vec<u8>, Semaphore<'s>, u32),
    /// The lock of the partition that this name is in.
    Partition(CoarseLock<'s>, Vec<u8>),
    Table(CoarseLock<'s>),
    Several(Locks<'s>),
}

/// What is held: one lock or so many permits, or several locks under one lease.
pub(super) enum Held<'s> {
    One(Hold<'s>),
    All(HoldAll<'s>),
}

/// What a command that this one is part of holds, by its environment.
pub(super) struct Parent {
    /// [`Kind::word`], or another subcommand's word.
    pub(super) kind: String,
    /// Its name, the first of several, or the key; empty for the table.
    pub(super) name: Vec<u8>,
    /// The limiter that it is a key of.
    pub(super) limiter: Vec<u8>,
    /// The token, of several locks that of the first.
    pub(super) token: u64,
}

/// The future of one who waits.
pub(super) type Turn<'s> = Pin<Box<dyn Future<Output = Result<Held<'s>>> + 's>>;

impl Held<'_> {
    /// The token of each lock, in the order in which they were named.
    pub(super) fn tokens(&self) -> Vec<u64> {
        match self {
            Self::One(hold) => vec![hold.token()],
            Self::All(hold) => hold.tokens().to_vec(),
        }
    }

    pub(super) fn keep_alive(&mut self, options: KeepAlive) -> Result<()> {
        match self {
            Self::One(hold) => hold.keep_alive(options),
            Self::All(hold) => hold.keep_alive(options),
        }
    }

    pub(super) fn release(self) -> Result<()> {
        match self {
            Self::One(hold) => hold.release(),
            Self::All(hold) => hold.release(),
        }
    }

    /// What is left of the lease, if it is still held.
    pub(super) fn left(&self) -> Option<Duration> {
        match self {
            Self::One(hold) => hold.is_held().then(|| hold.lease_left()),
            Self::All(hold) => hold.is_held().then(|| hold.lease_left()),
        }
    }
}

/// What a name is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Lock,
    Semaphore,
    Key,
    Partition,
    Table,
    Several,
}

impl Kind {
    /// How a command is told what it holds.
    pub(super) fn word(self) -> &'static str {
        match self {
            // The names are those of locks.
            Self::Lock | Self::Several => "lock",
            Self::Semaphore => "semaphore",
            Self::Key => "key",
            Self::Partition => "partition",
            Self::Table => "table",
        }
    }
}

impl<'s> Wanted<'s> {
    /// The names that were given, in their order; none for the table.
    pub(super) fn names(&self) -> Vec<Vec<u8>> {
        match self {
            Self::Alone(lock) | Self::Shared(lock) => vec![lock.name()],
            Self::Permits(semaphore, _) => vec![semaphore.name()],
            Self::Partition(_, name) | Self::Key(name, ..) => vec![name.clone()],
            Self::Table(_) => Vec::new(),
            Self::Several(locks) => locks.names(),
        }
    }

    /// The first of them.
    pub(super) fn name(&self) -> Vec<u8> {
        self.names().into_iter().next().unwrap_or_default()
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Alone(_) | Self::Shared(_) => Kind::Lock,
            Self::Permits(..) => Kind::Semaphore,
            Self::Key(..) => Kind::Key,
            Self::Partition(..) => Kind::Partition,
            Self::Table(_) => Kind::Table,
            Self::Several(_) => Kind::Several,
        }
    }

    /// How errors name it.
    pub(super) fn subject(&self) -> Subject {
        match self.key() {
            Some(key) => Subject::of_key(&key, &self.name()),
            None => Subject::new(self.kind(), &self.name()),
        }
    }

    /// The key, of a limiter's.
    pub(super) fn key(&self) -> Option<Vec<u8>> {
        match self {
            Self::Key(_, key, _) => Some(key.name()),
            _ => None,
        }
    }

    pub(super) fn ttl(self, ttl: Duration) -> Result<Self> {
        Ok(match self {
            Self::Alone(lock) => Self::Alone(lock.ttl(ttl)?),
            Self::Shared(lock) => Self::Shared(lock.ttl(ttl)?),
            Self::Permits(semaphore, permits) => Self::Permits(semaphore.ttl(ttl)?, permits),
            Self::Key(limiter, key, permits) => Self::Key(limiter, key.ttl(ttl)?, permits),
            Self::Partition(lock, name) => Self::Partition(lock.ttl(ttl)?, name),
            Self::Table(lock) => Self::Table(lock.ttl(ttl)?),
            Self::Several(locks) => Self::Several(locks.ttl(ttl)?),
        })
    }

    pub(super) fn try_acquire(&self) -> Result<Option<Held<'s>>> {
        let hold = match self {
            Self::Alone(lock) => lock.try_acquire(),
            Self::Shared(lock) => lock.try_acquire_shared(),
            Self::Permits(semaphore, permits) | Self::Key(_, semaphore, permits) => {
                semaphore.try_acquire(*permits)
            }
            Self::Partition(lock, _) | Self::Table(lock) => lock.try_acquire(),
            Self::Several(locks) => return Ok(locks.try_acquire()?.map(Held::All)),
        };
        Ok(hold?.map(Held::One))
    }

    pub(super) fn acquire_async(&self) -> Result<Turn<'s>> {
        let acquire = match self {
            Self::Alone(lock) => lock.acquire_async(),
            Self::Shared(lock) => lock.acquire_shared_async(),
            Self::Permits(semaphore, permits) | Self::Key(_, semaphore, permits) => {
                semaphore.acquire_async(*permits)?
            }
            Self::Partition(lock, _) | Self::Table(lock) => lock.acquire_async(),
            Self::Several(locks) => {
                let acquire = locks.acquire_async();
                return Ok(Box::pin(async { acquire.await.map(Held::All) }));
            }
        };
        Ok(Box::pin(async { acquire.await.map(Held::One) }))
    }

    pub(super) fn release_token(&self, token: u64) -> Result<()> {
        match self {
            Self::Alone(lock) | Self::Shared(lock) => lock.release_token(token),
            Self::Permits(semaphore, _) | Self::Key(_, semaphore, _) => {
                semaphore.release_token(token)
            }
            Self::Partition(lock, _) | Self::Table(lock) => lock.release_token(token),
            // Said no to before.
            Self::Several(_) => Ok(()),
        }
    }

    pub(super) fn renew_token(&self, token: u64) -> Result<()> {
        match self {
            Self::Alone(lock) | Self::Shared(lock) => lock.renew_token(token),
            Self::Permits(semaphore, _) | Self::Key(_, semaphore, _) => {
                semaphore.renew_token(token)
            }
            Self::Partition(lock, _) | Self::Table(lock) => lock.renew_token(token),
            Self::Several(_) => Ok(()),
        }
    }

    /// Whether this can't be had as long as what `parent` holds is held.
    pub(super) fn waits_for(&self, space: &Space, parent: &Parent) -> Result<bool> {
        let is_it = |hold: &HoldInfo| hold.is_live && hold.token == parent.token;
        let is_held = |locks: &[LockInfo], name: &[u8]| {
            let lock = locks.iter().find(|lock| lock.name == name);
            lock.is_some_and(|lock| lock.holds.iter().any(is_it))
        };
        // Other kinds of things have names and tokens of their own, which may be the same ones.
        let parent_is = |kind: Kind| parent.kind == kind.word();
        match self {
            Self::Permits(semaphore, permits) | Self::Key(_, semaphore, permits) => {
                let is_of_it = match self.key() {
                    Some(key) => key == parent.name && self.name() == parent.limiter,
                    None => self.name() == parent.name,
                };
                if !parent_is(self.kind()) || !is_of_it {
                    return Ok(false);
                }
                let semaphore = semaphore.peek()?;
                let hold = semaphore.holds.iter().find(|hold| is_it(hold));
                Ok(hold.is_some_and(|hold| hold.permits + permits > semaphore.permits))
            }
            Self::Alone(_)
            | Self::Shared(_)
            | Self::Partition(..)
            | Self::Table(_)
            | Self::Several(_) => {
                if parent_is(Kind::Table) {
                    return Ok(is_held(&space.inspect_coarse()?, b"the table"));
                }
                let partition = space.partition_of(&parent.name);
                let is_in_it = |name: &Vec<u8>| space.partition_of(name) == partition;
                let names = self.names();
                let is_around = match self {
                    Self::Table(_) => true,
                    Self::Partition(..) => names.iter().any(is_in_it),
                    _ => false,
                };
                if parent_is(Kind::Partition) && (is_around || names.iter().any(is_in_it)) {
                    let name = format!("partition {partition}").into_bytes();
                    return Ok(is_held(&space.inspect_coarse()?, &name));
                }
                Ok(parent_is(Kind::Lock)
                    && (is_around || names.contains(&parent.name))
                    && is_held(&space.inspect(&parent.name)?, &parent.name))
            }
        }
    }
}

/// What an error is about: `lock 'nightly'`, `partition of 'nightly'`, `table`, `key 'ann' of 'uploads'`.
#[derive(Debug)]
pub(crate) struct Subject {
    kind: Kind,
    name: Option<Shown>,
}

impl Subject {
    pub(super) fn new(kind: Kind, name: &[u8]) -> Self {
        Self {
            kind,
            name: (kind != Kind::Table).then(|| Shown::of_bytes(name)),
        }
    }

    /// What else may be wrong with a token of it: most are taken for a plain lock's where nothing else is said.
    pub(super) fn or_of_another_kind(&self) -> &'static str {
        match self.kind {
            Kind::Lock => {
                ", or it was acquired with --of, --key, --partition or --table, which is to be said here too"
            }
            _ => "",
        }
    }

    pub(super) fn of_key(key: &[u8], limiter: &[u8]) -> Self {
        Self {
            name: Some(Shown::of_bytes(key).of_limiter(limiter)),
            ..Self::new(Kind::Key, key)
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            Kind::Lock => "lock",
            Kind::Semaphore => "semaphore",
            Kind::Key => "key",
            Kind::Partition => "partition of",
            Kind::Table => "table",
            Kind::Several => "lock of several with",
        };
        match &self.name {
            Some(name) => write!(formatter, "{what} {name}"),
            None => formatter.write_str(what),
        }
    }
}
