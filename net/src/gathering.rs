//! Requests that come while others are under way gather, and are proposed together once those are decided: one slot, one
//! packet for each peer and one sync for each disk, instead of many. Who comes alone never waits; nor does who comes when
//! much has gathered, or when what is under way takes long, as it does between distant nodes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::session::Session;

/// Bytes of operations that don't wait for more.
const ENOUGH_BYTES: usize = 64 << 10;

/// How long the first waits, at most.
const WAIT: Duration = Duration::from_millis(1);

/// A client's request.
pub(crate) struct Gathered {
    pub(crate) session: Arc<Session>,
    pub(crate) id: u64,
    pub(crate) operation: Bytes,
}

/// Those that wait, in the order in which they came.
#[derive(Default)]
pub(crate) struct Gathering {
    gathered: Vec<Gathered>,
    bytes: usize,
    since: Option<Instant>,
}

impl Gathering {
    /// Adds one.
    pub(crate) fn push(&mut self, request: Gathered) {
        self.bytes += request.operation.len();
        self.gathered.push(request);
        self.since.get_or_insert_with(Instant::now);
    }

    /// Whether they are to be proposed now, where others are under way or not.
    pub(crate) fn is_due(&self, others_are_under_way: bool) -> bool {
        self.since.is_some_and(|since| {
            !others_are_under_way || self.bytes >= ENOUGH_BYTES || since.elapsed() >= WAIT
        })
    }

    /// When they are at the latest.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.since.map(|since| since + WAIT)
    }

    /// Takes all, in place of `emptied`, which is kept for the next.
    pub(crate) fn take(&mut self, emptied: Vec<Gathered>) -> Vec<Gathered> {
        self.bytes = 0;
        self.since = None;
        std::mem::replace(&mut self.gathered, emptied)
    }
}
