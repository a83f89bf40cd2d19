//! Locks in `sprag inspect`, those of partitions and of the table too. Owns the form of their rows.

use serde::Serialize;
use sprag::LockInfo;

use super::hold::{HoldRow, waiters};
use crate::printable::{self, Name};
use crate::span;

#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of its own")]
pub(super) struct LockRow {
    #[serde(flatten)]
    name: Name,
    held: bool,
    /// Whether those who hold it share it.
    shared: bool,
    /// Each hold: one at most, unless it is shared. What is said of the holder is said of the one whose lease
    /// lasts longest.
    holds: Vec<HoldRow>,
    /// Whether the holder died, or ended, without releasing it.
    holder_dead: bool,
    /// Null if free, detached, or not known.
    holder_pid: Option<u32>,
    detached: bool,
    /// Of the holder, or of the last one.
    token: u64,
    lease_left_ns: u64,
    /// Null if free or not known.
    held_for_ns: Option<u64>,
    waiters: u32,
    /// Those that died while they waited, and are not among the others.
    waiters_dead: u32,
    #[serde(skip)]
    shown: String,
}

impl LockRow {
    pub(super) fn new(lock: &LockInfo) -> Self {
        Self {
            shown: printable::name(&lock.name),
            name: Name::new(&lock.name),
            held: lock.is_held,
            shared: lock.is_shared,
            holds: lock
                .holds
                .iter()
                .map(|hold| HoldRow::new(hold, false))
                .collect(),
            holder_dead: lock.is_holder_dead,
            holder_pid: lock
                .holder_pid
                .filter(|_| lock.is_held || lock.is_holder_dead),
            detached: lock.is_detached && lock.is_held,
            token: lock.token,
            lease_left_ns: if lock.is_held {
                span::nanoseconds(lock.lease_left)
            } else {
                0
            },
            held_for_ns: lock
                .held_for
                .filter(|_| lock.is_held)
                .map(span::nanoseconds),
            waiters: lock.waiters,
            waiters_dead: lock.waiters_dead,
        }
    }

    /// A line for each who shares it; else one.
    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        if !self.shared || self.holds.is_empty() {
            return vec![self.cells()];
        }
        let waiters = waiters(self.waiters, self.waiters_dead);
        let row = |hold: &HoldRow| {
            let state = if hold.live { "shared" } else { "dead" };
            hold.cells(state.to_owned(), &waiters, &self.shown)
        };
        self.holds.iter().map(row).collect()
    }

    fn cells(&self) -> Vec<String> {
        let state = match (self.held, self.holder_dead) {
            (true, _) => "held",
            (false, true) => "dead",
            (false, false) => "free",
        };
        let hold = HoldRow {
            token: self.token,
            permits: None,
            live: self.held,
            pid: self.holder_pid,
            detached: self.detached,
            lease_left_ns: self.lease_left_ns,
            held_for_ns: self.held_for_ns,
        };
        let waiters = waiters(self.waiters, self.waiters_dead);
        hold.cells(state.to_owned(), &waiters, &self.shown)
    }
}
