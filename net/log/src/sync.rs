//! The sync of a log: one at a time, here or on another thread, for all that was appended before it began.

use sprag_paxos::simulation::{Bug, planted};

use crate::disk::{Disk, DiskError, DiskFile};
use crate::error::LogError;
use crate::log::{Log, Position};
use crate::segment::Segment;

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

impl<D: Disk> Log<D> {
    /// What makes everything durable that was appended so far; it may run on another thread, while appends go on.
    /// `None` where everything is, or one is under way: two at once could take each other's errors.
    ///
    /// # Errors
    /// [`LogError::Stopped`].
    pub fn begin_sync(&mut self) -> Result<Option<SyncJob<D::File>>, LogError> {
        self.running()?;
        if self.is_syncing || self.appended == self.synced {
            return Ok(None);
        }
        let covered = |segment: &Segment<D::File>| Covered {
            file: segment.file.clone(),
            generation: segment.generation,
            count: segment.count,
        };
        let unsynced = self
            .segments
            .iter()
            .filter(|segment| segment.synced < segment.count);
        self.is_syncing = true;
        Ok(Some(SyncJob {
            covered: unsynced.map(covered).collect(),
            position: self.appended,
        }))
    }

    /// Takes what came of a sync: everything up to the position that it returns is durable.
    ///
    /// # Errors
    /// [`LogError::Disk`] where the sync failed, with which the log has stopped; [`LogError::Stopped`] where it had.
    pub fn finish_sync(&mut self, done: SyncDone<D::File>) -> Result<Position, LogError> {
        self.is_syncing = false;
        self.running()?;
        done.result.map_err(|error| self.stop(error))?;
        for covered in &done.covered {
            let mut segments = self.segments.iter_mut();
            if let Some(segment) = segments.find(|segment| segment.generation == covered.generation)
            {
                segment.synced = covered.count;
            }
        }
        self.synced = done.position;
        if let Some((position, first)) = self.trim
            && position <= self.synced
        {
            self.trim = None;
            self.give_back(first);
        }
        Ok(self.synced)
    }

    /// Makes everything durable that was appended so far, here and now.
    ///
    /// # Errors
    /// [`LogError::Busy`] while a sync is under way elsewhere; as [`finish_sync`](Self::finish_sync).
    pub fn sync(&mut self) -> Result<Position, LogError> {
        match self.begin_sync()? {
            Some(job) => {
                let done = job.run();
                self.finish_sync(done)
            }
            None if self.is_syncing => Err(LogError::Busy("sync")),
            None => Ok(self.synced),
        }
    }
}
