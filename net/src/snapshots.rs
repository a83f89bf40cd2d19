//! A node's snapshots: when it takes one, what it gives of them to others, and how one that comes from another takes the
//! place of its state.

use sprag_log::{Disk, Finished, Loaded, SnapshotDone, SnapshotError, SnapshotJob, Snapshots};
use sprag_paxos::{Message, Slot, Snapshot};

/// The most that a snapshot has: more than the registers can.
pub(crate) const SNAPSHOT_BYTES_MAX: u64 = 2 << 30;

/// How much of one is sent at once.
const CHUNK_BYTES: usize = 256 << 10;

/// What was begun.
pub(crate) enum Begun<D: Disk> {
    /// Work for the disk.
    Job(Box<SnapshotJob<D>>),
    /// What came from another voter isn't wanted any more: what there is is as new.
    Useless(Snapshot),
    /// There is nothing to do.
    Nothing,
}

/// What came of a snapshot's job.
pub(crate) enum Kept {
    /// The log may be trimmed up to here.
    Trim(Slot),
    /// What came from another voter is durable; or is damaged, and nothing is left of it.
    Received(Snapshot, bool),
    /// There was no room for it, or for this one, which came from another voter. Nothing is left of it.
    NoRoom(Option<Snapshot>),
}

/// What came of a piece from another voter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Kept,
    /// The disk had no room for it, and nothing is left of those before it.
    NoRoom,
    /// It doesn't follow those before it, or is of one that is too large.
    Refused,
}

/// The snapshots, and what is under way with them.
pub(crate) struct Keeper<D: Disk> {
    snapshots: Snapshots<D>,
    /// After how many slots one is taken, at most.
    slots_max: u64,
    /// Up to where the last was begun.
    last: Slot,
    is_busy: bool,
    /// Somebody asked for one, and there is none that can be read.
    is_missed: bool,
    /// All of it came from another voter, and it waits for the disk's thread.
    whole: Option<Snapshot>,
    installing: Option<Snapshot>,
    /// It is durable, and is to take the place of the state.
    loaded: Option<Loaded>,
}

impl<D: Disk> Keeper<D> {
    /// Takes one after every `slots_max` slots, or before the log is full.
    pub(crate) fn new(snapshots: Snapshots<D>, slots_max: u64) -> Self {
        Self {
            last: snapshots
                .newest()
                .map_or(Slot::NONE, |newest| newest.through),
            snapshots,
            slots_max,
            is_busy: false,
            is_missed: false,
            whole: None,
            installing: None,
            loaded: None,
        }
    }

    /// Up to where the log may be trimmed.
    pub(crate) fn trimmable(&self) -> Slot {
        self.snapshots.trimmable()
    }

    /// Up to where the newest holds what is decided, while no newer is under way.
    pub(crate) fn newest(&self) -> Option<Slot> {
        let newest = self.snapshots.newest()?;
        (!self.is_busy).then_some(newest.through)
    }

    /// Work for the disk: the snapshot that came, or else one of the state up to `applied`, if it is time for that: at once,
    /// where the log is `crowded`.
    pub(crate) fn begin(
        &mut self,
        applied: Slot,
        crowded: bool,
        save: impl FnOnce() -> Vec<u8>,
    ) -> Result<Begun<D>, SnapshotError> {
        if self.is_busy {
            return Ok(Begun::Nothing);
        }
        let job = if let Some(whole) = self.whole.take() {
            let Some(job) = self.snapshots.begin_install()? else {
                return Ok(Begun::Useless(whole));
            };
            self.installing = Some(whole);
            Some(job)
        } else if self.is_missed
            || applied.0.saturating_sub(self.last.0) >= if crowded { 1 } else { self.slots_max }
        {
            self.is_missed = false;
            self.last = applied;
            self.snapshots.begin_save(applied, save())?
        } else {
            None
        };
        self.is_busy = job.is_some();
        Ok(job.map_or(Begun::Nothing, |job| Begun::Job(Box::new(job))))
    }

    /// Takes what came of the work.
    pub(crate) fn finish(&mut self, done: SnapshotDone<D>) -> Result<Kept, SnapshotError> {
        self.is_busy = false;
        let installing = self.installing.take();
        Ok(match (self.snapshots.finish(done)?, installing) {
            (Finished::Saved(_), _) => Kept::Trim(self.trimmable()),
            (Finished::Installed(loaded), _) => {
                let snapshot = loaded.snapshot;
                self.loaded = Some(loaded);
                Kept::Received(snapshot, true)
            }
            (Finished::Damaged(snapshot), _) => Kept::Received(snapshot, false),
            (Finished::NoRoom(_), came) => {
                // To be tried again, though nothing is applied meanwhile: it may be that nothing is taken on without it.
                self.last = self.newest().unwrap_or(Slot::NONE);
                Kept::NoRoom(came)
            }
        })
    }

    /// The state that takes the place of that which there is.
    pub(crate) fn take_loaded(&mut self, snapshot: Snapshot) -> Option<Vec<u8>> {
        let loaded = self.loaded.take_if(|loaded| loaded.snapshot == snapshot)?;
        self.last = snapshot.through;
        Some(loaded.content)
    }

    /// Nobody asks for it any more: what there is went further while it came.
    pub(crate) fn forget_loaded(&mut self) {
        self.loaded = None;
    }

    /// A piece of the snapshot that is asked for, or of the newest.
    pub(crate) fn chunk(
        &mut self,
        asked: Option<(Snapshot, u64)>,
    ) -> Result<Option<Message>, SnapshotError> {
        let chunk = self.snapshots.chunk(asked, CHUNK_BYTES)?;
        self.is_missed |= chunk.is_none();
        Ok(chunk.map(|chunk| Message::Chunk {
            snapshot: chunk.snapshot,
            offset: chunk.offset,
            bytes: chunk.bytes.into(),
        }))
    }

    /// Keeps a piece that came, if it can: else all of the snapshot is to be asked for anew.
    pub(crate) fn receive(
        &mut self,
        snapshot: Snapshot,
        offset: u64,
        bytes: &[u8],
    ) -> Result<Received, SnapshotError> {
        match self.snapshots.receive(snapshot, offset, bytes) {
            Ok(next) => {
                if next == snapshot.bytes {
                    self.whole = Some(snapshot);
                }
                Ok(Received::Kept)
            }
            Err(error @ (SnapshotError::Disk(_) | SnapshotError::Stopped(_))) => Err(error),
            Err(SnapshotError::DiskFull(_)) => Ok(Received::NoRoom),
            Err(_) => Ok(Received::Refused),
        }
    }
}
