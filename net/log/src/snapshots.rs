//! The snapshots of a node: made, received, kept, given to others, and found again.

use std::fmt;

use sprag_paxos::simulation::{Mark, reach};
use sprag_paxos::{Slot, Snapshot};

use crate::disk::{Disk, DiskError, Fault};
use crate::error::{OpenError, SnapshotError};
use crate::identity::ClusterId;

pub(crate) mod file;
mod job;
mod search;

use file::{Header, INCOMING, Stored};
use job::{Outcome, Work};
pub use job::{SnapshotDone, SnapshotJob};
use search::Search;

/// The snapshots in a node's directory, beside its log.
///
/// Kept are the newest two, so that one that can't be read any more costs nothing, and the one that was last asked for, so
/// that whoever is slow to fetch it need not begin anew: three at most. Of one that came from another voter, those before
/// it are of no more use.
///
/// One [`SnapshotJob`] at a time makes one durable. After any refusal of the disk, but that it has no room, nothing goes
/// on here and the node stops: what is durable is then unknown. Whoever opens them anew finds out.
///
/// ```
/// use sprag_log::{ClusterId, Finished, RealDisk, Snapshots};
/// use sprag_paxos::Slot;
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("node-1");
/// let disk = RealDisk::open(&path)?;
/// let (mut snapshots, found) = Snapshots::open(&disk, ClusterId(7), Slot::NONE, 1 << 20)?;
/// assert_eq!(found, None);
///
/// if let Some(job) = snapshots.begin_save(Slot(5), b"the state".to_vec())? {
///     // Here, or on another thread.
///     let done = job.run();
///     assert!(matches!(snapshots.finish(done)?, Finished::Saved(_)));
/// }
/// let chunk = snapshots.chunk(None, 4)?.ok_or("gone")?;
/// assert_eq!((chunk.snapshot.through, &chunk.bytes[..]), (Slot(5), &b"the "[..]));
///
/// drop(snapshots);
/// let (_, found) = Snapshots::open(&disk, ClusterId(7), Slot::NONE, 1 << 20)?;
/// assert_eq!(found.map(|found| found.content), Some(b"the state".to_vec()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Snapshots<D: Disk> {
    disk: D,
    cluster: ClusterId,
    bytes_max: u64,
    /// Durable and whole, oldest first.
    stored: Vec<Stored<D::File>>,
    /// The one that was asked for last, since the last job began.
    asked: Option<Snapshot>,
    /// Found to be bad since the last job began.
    damaged: Vec<Slot>,
    incoming: Option<Incoming<D::File>>,
    under_way: Option<UnderWay>,
    stopped: Option<DiskError>,
}

/// What is known of a [`SnapshotJob`] until it is finished.
struct UnderWay {
    is_install: bool,
    /// What may be gone by now.
    replaced: Vec<Slot>,
}

/// One that comes from another voter.
struct Incoming<F> {
    snapshot: Snapshot,
    file: F,
    /// Bytes of its content that are here.
    received: u64,
}

/// A snapshot as it was read and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Which.
    pub snapshot: Snapshot,
    /// All of its bytes.
    pub content: Vec<u8>,
}

/// A part of a snapshot, for whoever asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Of which.
    pub snapshot: Snapshot,
    /// From which of its bytes on.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// What a [`SnapshotJob`] came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finished {
    /// It is durable.
    Saved(Snapshot),
    /// It came from another voter, is whole, and is durable.
    Installed(Loaded),
    /// It came from another voter, and its bytes aren't those that its name says. Nothing is left of it.
    Damaged(Snapshot),
    /// The disk has no room for it. Nothing is left of it; free some, then begin anew.
    NoRoom(DiskError),
}

impl<D: Disk> Snapshots<D> {
    /// Finds the newest snapshot that is whole, of those not below `trimmed`, up to where the log is trimmed. Removes what
    /// is of no use: what is damaged, what was never finished, and what is older than the newest two.
    ///
    /// Of those that are made or come from now on, none has more than `bytes_max` bytes. Reads two snapshots, and takes
    /// the memory of both.
    ///
    /// # Errors
    /// [`OpenError::SnapshotLost`] where none reaches up to `trimmed`; all files are then left as they are.
    /// [`OpenError::Disk`]; a disk that refused may be opened again.
    pub fn open(
        disk: &D,
        cluster: ClusterId,
        trimmed: Slot,
        bytes_max: u64,
    ) -> Result<(Self, Option<Loaded>), OpenError> {
        let names = disk.list()?;
        let found = Search::among(&names, disk, cluster, trimmed)?;
        if found.newest.is_none() && trimmed > Slot::NONE {
            reach(Mark::SnapshotLost);
            return Err(OpenError::SnapshotLost { trimmed });
        }
        found.remove_useless(disk)?;
        let snapshots = Self {
            disk: disk.clone(),
            cluster,
            bytes_max,
            stored: found.stored,
            asked: None,
            damaged: Vec::new(),
            incoming: None,
            under_way: None,
            stopped: None,
        };
        Ok((snapshots, found.newest))
    }

    /// The newest that is durable.
    pub fn newest(&self) -> Option<Snapshot> {
        self.stored.last().map(|stored| stored.snapshot)
    }

    /// Up to where the log may be trimmed: the last snapshot but one, so that one that can't be read any more costs
    /// nothing. The last, if it came from another voter: the log doesn't lead up to it. May go back, where one turns out
    /// to be damaged.
    pub fn trimmable(&self) -> Slot {
        match &self.stored[..] {
            [.., last] if last.is_installed => last.snapshot.through,
            [.., before, _] => before.snapshot.through,
            _ => Slot::NONE,
        }
    }

    /// What makes a snapshot of `content`, the state that everything up to `through` makes; it may run on another thread.
    /// `None` while another is being made or installed, and where the newest holds as much already.
    ///
    /// # Errors
    /// [`SnapshotError::TooLarge`]; [`SnapshotError::Stopped`].
    pub fn begin_save(
        &mut self,
        through: Slot,
        content: Vec<u8>,
    ) -> Result<Option<SnapshotJob<D>>, SnapshotError> {
        self.running()?;
        self.bounded(content.len() as u64)?;
        if self.under_way.is_some() || !self.is_newer(through) {
            return Ok(None);
        }
        let asked = self.asked.take();
        let older = self.stored.split_last().map_or(&[][..], |(_, older)| older);
        let replaced = older.iter().map(|stored| stored.snapshot);
        let replaced = replaced.filter(|snapshot| Some(*snapshot) != asked);
        let replaced = replaced.map(|snapshot| snapshot.through).collect();
        Ok(Some(self.begin(Work::Save { through, content }, replaced)))
    }

    /// Takes bytes of a snapshot that comes from another voter, in order: those from `offset` on. Offset 0 begins it anew,
    /// whatever came before, of it or another. Gives the offset of the next; once that is all there are,
    /// [`begin_install`](Self::begin_install) goes on.
    ///
    /// # Errors
    /// Before anything is written: [`SnapshotError::TooLarge`], [`SnapshotError::OutOfTurn`], [`SnapshotError::TooLong`],
    /// and [`SnapshotError::Busy`] while one is being installed. [`SnapshotError::DiskFull`], after which nothing is left
    /// of it. [`SnapshotError::Disk`]; [`SnapshotError::Stopped`].
    pub fn receive(
        &mut self,
        snapshot: Snapshot,
        offset: u64,
        bytes: &[u8],
    ) -> Result<u64, SnapshotError> {
        self.running()?;
        self.bounded(snapshot.bytes)?;
        let end = offset.saturating_add(bytes.len() as u64);
        if end > snapshot.bytes {
            return Err(SnapshotError::TooLong { snapshot, end });
        }
        if self.under_way.as_ref().is_some_and(|job| job.is_install) {
            return Err(SnapshotError::Busy);
        }
        let expected = match &self.incoming {
            Some(incoming) if incoming.snapshot == snapshot => incoming.received,
            _ => 0,
        };
        if offset != 0 && offset != expected {
            return Err(SnapshotError::OutOfTurn {
                snapshot,
                offset,
                expected,
            });
        }
        match self.take(snapshot, offset, bytes) {
            Ok(()) => Ok(end),
            Err(error) if error.fault == Fault::Full => {
                self.drop_incoming()?;
                Err(SnapshotError::DiskFull(error))
            }
            Err(error) => Err(self.stop(error)),
        }
    }

    /// What checks the snapshot that came from another voter and makes it durable; it may run on another thread. `None`
    /// where not all of it is here, or while another is being made. One that isn't newer than the newest is given up.
    ///
    /// # Errors
    /// [`SnapshotError::Disk`]; [`SnapshotError::Stopped`].
    pub fn begin_install(&mut self) -> Result<Option<SnapshotJob<D>>, SnapshotError> {
        self.running()?;
        let is_complete =
            |incoming: &mut Incoming<D::File>| incoming.received == incoming.snapshot.bytes;
        if self.under_way.is_some() {
            return Ok(None);
        }
        let Some(incoming) = self.incoming.take_if(is_complete) else {
            return Ok(None);
        };
        let snapshot = incoming.snapshot;
        if !self.is_newer(snapshot.through) {
            self.drop_incoming()?;
            return Ok(None);
        }
        let file = incoming.file;
        let replaced = self.stored.iter().map(|stored| stored.snapshot.through);
        let replaced = replaced.collect();
        Ok(Some(self.begin(Work::Install { snapshot, file }, replaced)))
    }

    /// Takes what came of a job.
    ///
    /// # Errors
    /// [`SnapshotError::Disk`] where it failed; [`SnapshotError::Stopped`] where something else had.
    pub fn finish(&mut self, done: SnapshotDone<D>) -> Result<Finished, SnapshotError> {
        self.under_way = None;
        self.running()?;
        match done.outcome.map_err(|error| self.stop(error))? {
            Outcome::Durable(stored, content) => {
                let is_kept =
                    |old: &Stored<D::File>| !done.replaced.contains(&old.snapshot.through);
                self.stored.retain(is_kept);
                let snapshot = stored.snapshot;
                let is_installed = stored.is_installed;
                self.stored.push(stored);
                Ok(if is_installed {
                    Finished::Installed(Loaded { snapshot, content })
                } else {
                    Finished::Saved(snapshot)
                })
            }
            Outcome::NoRoom(error) => Ok(Finished::NoRoom(error)),
            Outcome::Damaged(snapshot) => Ok(Finished::Damaged(snapshot)),
        }
    }

    /// At most `bytes_max` bytes of the snapshot that is asked for, from the offset that is asked for, if it is still here;
    /// else of the newest, from its start. `None` where there is none, or it turned out to be damaged: what is given is
    /// checked, and one that has gone bad is given to nobody any more.
    ///
    /// # Errors
    /// [`SnapshotError::Disk`] where the disk refuses for another reason than a bad place; [`SnapshotError::Stopped`].
    pub fn chunk(
        &mut self,
        asked: Option<(Snapshot, u64)>,
        bytes_max: usize,
    ) -> Result<Option<Chunk>, SnapshotError> {
        self.running()?;
        let replaced = self.under_way.as_ref().map(|job| &job.replaced[..]);
        let replaced = replaced.unwrap_or_default();
        let is_here = |stored: &&Stored<D::File>| !replaced.contains(&stored.snapshot.through);
        let is_asked = |stored: &&Stored<D::File>| {
            asked.is_some_and(|(snapshot, offset)| {
                stored.snapshot == snapshot && offset <= snapshot.bytes
            })
        };
        let mut here = self.stored.iter().filter(is_here).rev();
        let newest = here.clone().next();
        let (stored, offset) = match (here.find(is_asked), newest) {
            (Some(stored), _) => (stored, asked.map_or(0, |(_, offset)| offset)),
            (None, Some(newest)) => (newest, 0),
            (None, None) => return Ok(None),
        };
        let snapshot = stored.snapshot;
        let length = (snapshot.bytes - offset).min(bytes_max as u64);
        let read = stored.read(offset, length);
        let Some(bytes) = read.map_err(|error| self.stop(error))? else {
            reach(Mark::SnapshotDamaged);
            self.stored.retain(|stored| stored.snapshot != snapshot);
            self.damaged.push(snapshot.through);
            return Ok(None);
        };
        self.asked = Some(snapshot);
        Ok(Some(Chunk {
            snapshot,
            offset,
            bytes,
        }))
    }

    fn begin(&mut self, work: Work<D::File>, replaced: Vec<Slot>) -> SnapshotJob<D> {
        self.under_way = Some(UnderWay {
            is_install: matches!(work, Work::Install { .. }),
            replaced: replaced.clone(),
        });
        SnapshotJob {
            disk: self.disk.clone(),
            cluster: self.cluster,
            work,
            damaged: std::mem::take(&mut self.damaged),
            replaced,
        }
    }

    fn take(&mut self, snapshot: Snapshot, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        if offset == 0 {
            self.incoming = None;
            file::remove(&self.disk, INCOMING)?;
            let header = Header {
                cluster: self.cluster,
                snapshot,
                is_installed: true,
            };
            self.incoming = Some(Incoming {
                snapshot,
                file: file::create(&self.disk, INCOMING, header)?,
                received: 0,
            });
        }
        if let Some(incoming) = &mut self.incoming {
            file::write(&incoming.file, offset, bytes)?;
            incoming.received = offset + bytes.len() as u64;
        }
        Ok(())
    }

    fn drop_incoming(&mut self) -> Result<(), SnapshotError> {
        self.incoming = None;
        file::remove(&self.disk, INCOMING).map_err(|error| self.stop(error))
    }

    fn is_newer(&self, through: Slot) -> bool {
        self.newest().is_none_or(|newest| newest.through < through)
    }

    fn bounded(&self, bytes: u64) -> Result<(), SnapshotError> {
        let bytes_max = self.bytes_max;
        if bytes > bytes_max {
            return Err(SnapshotError::TooLarge { bytes, bytes_max });
        }
        Ok(())
    }

    fn running(&self) -> Result<(), SnapshotError> {
        match &self.stopped {
            Some(error) => Err(SnapshotError::Stopped(error.clone())),
            None => Ok(()),
        }
    }

    fn stop(&mut self, error: DiskError) -> SnapshotError {
        self.stopped = Some(error.clone());
        SnapshotError::Disk(error)
    }
}

impl<D: Disk> fmt::Debug for Snapshots<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stored = self.stored.iter().map(|stored| stored.snapshot);
        f.debug_struct("Snapshots")
            .field("cluster", &self.cluster)
            .field("stored", &stored.collect::<Vec<_>>())
            .field("stopped", &self.stopped)
            .finish_non_exhaustive()
    }
}
