//! What an inspection tells of locks, limiters and counters, and of one hold of whatever is held.

use crate::Limit;
use sprag_core::lock::{HoldStatus, LockStatus};
use sprag_core::readable::Readable;
use std::fmt;
use std::time::Duration;

/// What is known of one hold of a lock or a semaphore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldInfo {
    /// Its token.
    pub token: u64,
    /// How many of a semaphore's permits it has; 1 of a lock.
    pub permits: u32,
    /// Whether it holds, and not merely by an expired lease or by a process that died.
    pub is_live: bool,
    /// The holder's process id in its own namespace, also of one that died; `None` if detached, or not
    /// known any more.
    pub pid: Option<u32>,
    /// Whether it belongs to no process: a script holds it by its token.
    pub is_detached: bool,
    /// What is left of the lease; zero once it is over.
    pub lease_left: Duration,
    /// How long it has been held; `None` if not known.
    pub held_for: Option<Duration>,
}

impl HoldInfo {
    pub(crate) fn new(status: &HoldStatus, now_ns: u64) -> Self {
        let held_for = |since_ns| Duration::from_nanos(now_ns.saturating_sub(since_ns));
        Self {
            token: status.token,
            permits: status.amount,
            is_live: status.lease_left_ns > 0 && status.is_alive,
            pid: status.process.map(|process| process.pid),
            is_detached: status.detached,
            lease_left: Duration::from_nanos(status.lease_left_ns),
            held_for: status.since_ns.map(held_for),
        }
    }
}

/// What is known of a lock.
#[derive(Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an answer of its own"
)]
pub struct LockInfo {
    /// The lock's name.
    pub name: Vec<u8>,
    /// The token of the holder, or of the last one; of a lock that nobody held yet, the one below its
    /// first.
    pub token: u64,
    /// Whether it is held, and not merely by an expired lease or by a process that died.
    pub is_held: bool,
    /// Whether its holder died, or closed its space, without releasing it: the next one that comes for it
    /// gets it.
    pub is_holder_dead: bool,
    /// Whether those who hold it share it.
    pub is_shared: bool,
    /// How many hold it, and not merely by an expired lease or by a process that died: one at most, unless
    /// it is shared. What is said of the holder below is said of the one whose lease lasts longest.
    pub holders: u32,
    /// Each hold on it, by token, those included that are over or whose process died.
    pub holds: Vec<HoldInfo>,
    /// The holder's process id in its own namespace, also of one that died; `None` if not held,
    /// detached, or not known any more.
    pub holder_pid: Option<u32>,
    /// Whether the hold belongs to no process: a script holds it by its token.
    pub is_detached: bool,
    /// What is left of the lease; zero if not held, or once it is over.
    pub lease_left: Duration,
    /// How long it has been held; `None` if not held or not known.
    pub held_for: Option<Duration>,
    /// How many wait for it.
    pub waiters: u32,
    /// How many more died while they waited; whoever comes for the lock clears them away.
    pub waiters_dead: u32,
}

impl fmt::Debug for LockInfo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LockInfo")
            .field("name", &Readable(&self.name))
            .field("token", &self.token)
            .field("is_held", &self.is_held)
            .field("is_holder_dead", &self.is_holder_dead)
            .field("is_shared", &self.is_shared)
            .field("holders", &self.holders)
            .field("holds", &self.holds)
            .field("holder_pid", &self.holder_pid)
            .field("is_detached", &self.is_detached)
            .field("lease_left", &self.lease_left)
            .field("held_for", &self.held_for)
            .field("waiters", &self.waiters)
            .field("waiters_dead", &self.waiters_dead)
            .finish()
    }
}

/// What is known of a limiter.
#[derive(Clone, PartialEq, Eq)]
pub struct LimiterInfo {
    /// The limiter's name.
    pub name: Vec<u8>,
    /// Its limit.
    pub limit: Limit,
    /// How many keys have an entry: those with something used, and full ones not reclaimed yet.
    pub keys: u64,
}

impl fmt::Debug for LimiterInfo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LimiterInfo")
            .field("name", &Readable(&self.name))
            .field("limit", &format_args!("{}", self.limit))
            .field("keys", &self.keys)
            .finish()
    }
}

/// What is known of a counter.
#[derive(Clone, PartialEq, Eq)]
pub struct CounterInfo {
    /// The counter's name.
    pub name: Vec<u8>,
    /// What it is at.
    pub number: i64,
}

impl fmt::Debug for CounterInfo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CounterInfo")
            .field("name", &Readable(&self.name))
            .field("number", &self.number)
            .finish()
    }
}

impl LockInfo {
    pub(crate) fn new(status: LockStatus, now_ns: u64) -> Self {
        let is_live = |hold: &HoldStatus| hold.lease_left_ns > 0 && hold.is_alive;
        let lasting = |hold: &&HoldStatus| (is_live(hold), hold.lease_left_ns);
        let hold = status.holds.iter().max_by_key(lasting).copied();
        Self {
            name: status.name,
            token: status.token,
            is_shared: status.is_shared,
            holders: status.holds.iter().filter(|hold| is_live(hold)).count() as u32,
            holds: (status.holds.iter())
                .map(|hold| HoldInfo::new(hold, now_ns))
                .collect(),
            is_held: hold.is_some_and(|hold| is_live(&hold)),
            is_holder_dead: hold.is_some_and(|hold| hold.lease_left_ns > 0 && !hold.is_alive),
            holder_pid: hold
                .and_then(|hold| hold.process)
                .map(|process| process.pid),
            is_detached: hold.is_some_and(|hold| hold.detached),
            lease_left: Duration::from_nanos(hold.map_or(0, |hold| hold.lease_left_ns)),
            held_for: hold
                .and_then(|hold| hold.since_ns)
                .map(|since_ns| Duration::from_nanos(now_ns.saturating_sub(since_ns))),
            waiters: status.waiters,
            waiters_dead: status.waiters_dead,
        }
    }
}
