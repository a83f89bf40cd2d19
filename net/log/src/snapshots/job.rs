//! What makes a snapshot durable: its content, then its name. It may run on another thread.

use sprag_paxos::simulation::{Bug, Mark, planted, reach};
use sprag_paxos::{Slot, Snapshot};

use crate::disk::{Disk, DiskError, DiskFile};
use crate::identity::ClusterId;
use crate::snapshots::file::{self, Header, INCOMING, NEW, Stored};

/// Work for the disk, from [`begin_save`](crate::Snapshots::begin_save) or
/// [`begin_install`](crate::Snapshots::begin_install).
///
/// At the same time as an [`UpkeepJob`](crate::UpkeepJob) of the same directory only on a disk that tells both when that can't be
/// synced, as [`Disk::sync_directory`] asks for: an append does the upkeep itself where the next segment isn't ready.
pub struct SnapshotJob<D: Disk> {
    pub(crate) disk: D,
    pub(crate) cluster: ClusterId,
    pub(crate) work: Work<D::File>,
    /// Can't be read any more: they go at once.
    pub(crate) damaged: Vec<Slot>,
    /// Those that go once the new one is durable.
    pub(crate) replaced: Vec<Slot>,
}

pub(crate) enum Work<F> {
    Save { through: Slot, content: Vec<u8> },
    Install { snapshot: Snapshot, file: F },
}

/// What came of a [`SnapshotJob`]; [`Snapshots::finish`](crate::Snapshots::finish) takes it.
pub struct SnapshotDone<D: Disk> {
    pub(crate) replaced: Vec<Slot>,
    pub(crate) outcome: Result<Outcome<D::File>, DiskError>,
}

pub(crate) enum Outcome<F> {
    /// With the content.
    Durable(Stored<F>, Vec<u8>),
    /// No room; nothing is left of it.
    NoRoom(DiskError),
    /// Not what its name says; nothing is left of it.
    Damaged(Snapshot),
}

impl<D: Disk> SnapshotJob<D> {
    /// Does it. Takes as long as writing the content, or reading it, and syncing it.
    pub fn run(self) -> SnapshotDone<D> {
        let SnapshotJob {
            disk,
            cluster,
            work,
            damaged,
            replaced,
        } = self;
        let removed = remove(&disk, &damaged);
        let outcome = removed.and_then(|()| match work {
            Work::Save { through, content } => save(&disk, cluster, through, content),
            Work::Install { snapshot, file } => install(&disk, cluster, snapshot, file),
        });
        let outcome = outcome.and_then(|outcome| {
            if let Outcome::Durable(..) = outcome {
                remove(&disk, &replaced)?;
            }
            Ok(outcome)
        });
        SnapshotDone { replaced, outcome }
    }
}

fn save<D: Disk>(
    disk: &D,
    cluster: ClusterId,
    through: Slot,
    content: Vec<u8>,
) -> Result<Outcome<D::File>, DiskError> {
    let header = Header {
        cluster,
        snapshot: file::snapshot(through, &content),
        is_installed: false,
    };
    let written = file::create(disk, NEW, header).and_then(|file| {
        file::write(&file, 0, &content)?;
        Ok(file)
    });
    name(disk, NEW, header, written, content)
}

fn install<D: Disk>(
    disk: &D,
    cluster: ClusterId,
    snapshot: Snapshot,
    file: D::File,
) -> Result<Outcome<D::File>, DiskError> {
    match file::read(&file, cluster)? {
        Some((header, content)) if header.snapshot == snapshot => {
            name(disk, INCOMING, header, Ok(file), content)
        }
        _ => {
            reach(Mark::SnapshotDamaged);
            file::remove(disk, INCOMING)?;
            Ok(Outcome::Damaged(snapshot))
        }
    }
}

/// Makes what was written durable, and then its name, which counts.
fn name<D: Disk>(
    disk: &D,
    from: &str,
    header: Header,
    written: Result<D::File, DiskError>,
    content: Vec<u8>,
) -> Result<Outcome<D::File>, DiskError> {
    let named = written.and_then(|file| {
        file.sync()?;
        disk.rename(from, &file::name(header.snapshot.through))?;
        Ok(file)
    });
    match named {
        Ok(file) => {
            if !planted(Bug::SnapshotCountedBeforeItsName) {
                disk.sync_directory()?;
            }
            let stored = Stored::new(header, file, &content);
            Ok(Outcome::Durable(stored, content))
        }
        Err(error) if error.is_want_of_room() => {
            // Half a snapshot would keep what is missing elsewhere.
            file::remove(disk, from)?;
            Ok(Outcome::NoRoom(error))
        }
        Err(error) => Err(error),
    }
}

/// Removes snapshots. One that comes back after a power cut is looked at by the next start, so nothing waits for the
/// directory here.
fn remove<D: Disk>(disk: &D, snapshots: &[Slot]) -> Result<(), DiskError> {
    let mut names = snapshots.iter().map(|through| file::name(*through));
    names.try_for_each(|name| file::remove(disk, &name))
}
