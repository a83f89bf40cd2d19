//! One hold in `sprag inspect`, of whatever it is, and those who wait. Owns the form of their part of a row.

use std::time::Duration;

use serde::Serialize;
use sprag::HoldInfo;

use crate::span;

#[derive(Debug, Serialize)]
pub(super) struct HoldRow {
    pub(super) token: u64,
    /// How many of a semaphore's permits; left out for a lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) permits: Option<u32>,
    /// Whether it holds, and not merely by an expired lease or by a process that died.
    pub(super) live: bool,
    /// Null if detached, or not known.
    pub(super) pid: Option<u32>,
    pub(super) detached: bool,
    pub(super) lease_left_ns: u64,
    /// Null if not known.
    pub(super) held_for_ns: Option<u64>,
}

impl HoldRow {
    pub(super) fn new(hold: &HoldInfo, has_permits: bool) -> Self {
        Self {
            token: hold.token,
            permits: has_permits.then_some(hold.permits),
            live: hold.is_live,
            pid: hold.pid,
            detached: hold.is_detached,
            lease_left_ns: span::nanoseconds(hold.lease_left),
            held_for_ns: hold.held_for.map(span::nanoseconds),
        }
    }

    pub(super) fn cells(&self, state: String, waiters: &str, name: &str) -> Vec<String> {
        let none = || "-".to_owned();
        let passed = |ns| span::passed(Duration::from_nanos(ns));
        let holder = match self.pid {
            _ if self.detached => "detached".to_owned(),
            Some(pid) => format!("pid {pid}"),
            None => none(),
        };
        vec![
            state,
            holder,
            self.token.to_string(),
            if self.live {
                passed(self.lease_left_ns)
            } else {
                none()
            },
            self.held_for_ns.map_or_else(none, passed),
            waiters.to_owned(),
            name.to_owned(),
        ]
    }
}

/// How many wait, with those that died apart.
pub(super) fn waiters(alive: u32, dead: u32) -> String {
    match dead {
        0 => alive.to_string(),
        dead => format!("{alive} + {dead} dead"),
    }
}
