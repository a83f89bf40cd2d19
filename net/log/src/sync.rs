//! A sync of the log, which may run on another thread.

use sprag_paxos::simulation::{Bug, planted};

use crate::disk::{DiskError, DiskFile};
use crate::log::Position;

/// Work for the disk, from [`Log::begin_sync`](crate::Log::begin_sync): makes durable what was appended before.
pub struct SyncJob<F> {
    /// Oldest first.
    pub(crate) covered: Vec<Covered<F>>,
    pub(crate) position: Position,
}

/// A segment and how many of its records a sync covers.
pub(crate) struct Covered<F> {
    pub(crate) file: F,
    pub(crate) generation: u64,
    pub(crate) count: u32,
}

/// What came of a [`SyncJob`]; [`Log::finish_sync`](crate::Log::finish_sync) takes it.
pub struct SyncDone<F> {
    pub(crate) covered: Vec<Covered<F>>,
    pub(crate) position: Position,
    pub(crate) result: Result<(), DiskError>,
}

impl<F: DiskFile> SyncJob<F> {
    /// Syncs. Once: after an error the system may hold for clean what it never wrote.
    pub fn run(self) -> SyncDone<F> {
        let sync = |covered: &Covered<F>| {
            let once = covered.file.sync();
            if planted(Bug::SyncRetried) {
                once.or_else(|_| covered.file.sync())
            } else {
                once
            }
        };
        SyncDone {
            result: self.covered.iter().try_for_each(sync),
            covered: self.covered,
            position: self.position,
        }
    }
}
