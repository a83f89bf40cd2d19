//! The sync of a log: one at a time, here or on another thread, for all that was appended before it began.

use sprag_paxos::simulation::{Bug, planted};

use crate::disk::{Disk, DiskError, DiskFile};
use crate::error::LogError;
use crate::log::{Log, Position};
use crate::segment::Segment;

/// How far what was appended is durable.
#[derive(Default)]
pub(crate) struct Progress {
    appended: Position,
    synced: Position,
    is_syncing: bool,
    /// The last trim, until its record is durable: where that is, and the oldest generation that it needs.
    trim: Option<(Position, u64)>,
}

impl Progress {
    pub(crate) fn appended(&self) -> Position {
        self.appended
    }

    pub(crate) fn synced(&self) -> Position {
        self.synced
    }

    pub(crate) fn is_syncing(&self) -> bool {
        self.is_syncing
    }

    /// So many records were appended.
    pub(crate) fn advance(&mut self, records: u32) {
        self.appended.0 += u64::from(records);
    }

    /// Once all that was appended is durable, segments older than generation `oldest` aren't needed.
    pub(crate) fn await_trim(&mut self, oldest: u64) {
        self.trim = Some((self.appended, oldest));
    }
}

/// Work for the disk, from [`Log::begin_sync`](crate::Log::begin_sync): makes durable what was appended before.
pub struct SyncJob<F> {
    /// Oldest first.
    covered: Vec<Covered<F>>,
    position: Position,
}

/// A segment and how many of its records a sync covers.
struct Covered<F> {
    file: F,
    generation: u64,
    count: u32,
}

/// What came of a [`SyncJob`]; [`Log::finish_sync`](crate::Log::finish_sync) takes it.
pub struct SyncDone<F> {
    covered: Vec<Covered<F>>,
    position: Position,
    result: Result<(), DiskError>,
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
        let several = self.covered.len().saturating_sub(1);
        let skipped = if several > 0 && planted(Bug::OnlyTheLastSegmentSynced) {
            several
        } else {
            0
        };
        SyncDone {
            result: self.covered.iter().skip(skipped).try_for_each(sync),
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
        let Progress {
            appended,
            synced,
            is_syncing,
            ..
        } = self.progress;
        if is_syncing || appended == synced {
            return Ok(None);
        }
        let covered = |segment: &Segment<D::File>| Covered {
            file: segment.file.clone(),
            generation: segment.generation,
            count: segment.count,
        };
        let unsynced = self
            .segments
            .all()
            .filter(|segment| segment.synced < segment.count);
        self.progress.is_syncing = true;
        Ok(Some(SyncJob {
            covered: unsynced.map(covered).collect(),
            position: appended,
        }))
    }

    /// Takes what came of a sync: everything up to the position that it returns is durable.
    ///
    /// # Errors
    /// [`LogError::Disk`] where the sync failed, with which the log has stopped; [`LogError::Stopped`] where it had.
    pub fn finish_sync(&mut self, done: SyncDone<D::File>) -> Result<Position, LogError> {
        self.progress.is_syncing = false;
        self.running()?;
        done.result.map_err(|error| self.stop(error))?;
        for covered in &done.covered {
            self.segments.note_synced(covered.generation, covered.count);
        }
        let synced = done.position;
        self.progress.synced = synced;
        let is_durable = |(position, _): &mut (Position, u64)| *position <= synced;
        if let Some((_, oldest)) = self.progress.trim.take_if(is_durable) {
            self.give_back(oldest);
        }
        Ok(synced)
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
            None if self.progress.is_syncing => Err(LogError::Busy("sync")),
            None => Ok(self.synced()),
        }
    }
}
