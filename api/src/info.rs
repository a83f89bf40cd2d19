//! What an inspection tells of one hold.

use sprag_core::lock::HoldStatus;
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
