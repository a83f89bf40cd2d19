//! The log of a consensus node, beside bare writes to files of full length with a data sync each.
//!
//! Everything is on one file system, that of the program itself: a directory in memory would sync nothing.

use crate::Plan;
use crate::contest::{self, Outcome};
use sprag_benches::{Result, Side};
use sprag_log::{ClusterId, Identity, Log, LogOptions, RealDisk};
use sprag_paxos::{Ballot, DiskId, Entry, NodeId, Record, Slot, Vote, Voter};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;

/// Bytes of a record.
const COMMANDS: usize = 128;
/// What a bare write writes: a page, since less is read and written as one anyway, and takes longer.
const PAGE: usize = 4096;
const WRITERS: usize = 64;
const VOTER: Voter = Voter {
    node: NodeId(1),
    disk: DiskId(1),
};

/// One writer, who waits for each record.
pub(crate) fn compare_one(plan: Plan) -> Result<Outcome> {
    let operations = 1_024 / plan.effort.divisor;
    let (home, mut log) = open()?;
    let record = Arc::from([7; COMMANDS]);
    let ours = Mutex::new(move || -> Result<u64> {
        let _home = &home;
        for _ in 0..operations {
            let slot = log.appended().0 + 1;
            log.append(&[accepted(slot, &record)])?;
            log.sync()?;
        }
        Ok(operations as u64)
    });
    let ours = Side::new(1, operations, move |_| locked(&ours)());
    contest::between(&ours, &bare(1, operations)?, plan)
}

/// Many writers who each wait for their record, served by one thread as a node serves its clients: what all of them have
/// appended is synced at once. Beside as many threads with a file each.
pub(crate) fn compare_many(plan: Plan) -> Result<Outcome> {
    let operations = 512 / plan.effort.divisor;
    let (home, mut log) = open()?;
    let record = Arc::from([7; COMMANDS]);
    let mut records = Vec::new();
    let ours = Mutex::new(move || -> Result<u64> {
        let _home = &home;
        for _ in 0..operations {
            let first = log.appended().0 + 1;
            records.clear();
            records.extend((first..).take(WRITERS).map(|slot| accepted(slot, &record)));
            log.append(&records)?;
            log.sync()?;
        }
        Ok((operations * WRITERS) as u64)
    });
    // Each operation is one of every writer.
    let ours = Side::new(1, operations, move |_| locked(&ours)());
    contest::between(&ours, &bare(WRITERS, operations)?, plan)
}

/// As many writers as `threads`, each with a file of its own that is written over, page by page.
fn bare(threads: usize, operations: usize) -> Result<Side> {
    let home = home()?;
    let files = (0..threads).map(|thread| overwritten(home.path(), thread, operations));
    let files = files.collect::<Result<Vec<File>>>()?;
    Ok(Side::new(threads, operations, move |thread| {
        let _home = &home;
        let page = [7; PAGE];
        for operation in 0..operations {
            files[thread].write_all_at(&page, (operation * PAGE) as u64)?;
            files[thread].sync_data()?;
        }
        Ok(operations as u64)
    }))
}

fn overwritten(home: &Path, thread: usize, operations: usize) -> Result<File> {
    let path = home.join(thread.to_string());
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all_at(&vec![1; operations * PAGE], 0)?;
    file.sync_all()?;
    Ok(file)
}

/// A log with room for all that is measured, its first two segments ready.
fn open() -> Result<(TempDir, Log<RealDisk>)> {
    let home = home()?;
    let disk = RealDisk::open(home.path())?;
    let options = LogOptions {
        segment_bytes: 64 << 20,
        segments_max: 64,
        slots_max: 1 << 24,
    };
    let cluster = ClusterId(1);
    let voter = VOTER;
    Log::create(&disk, Identity { cluster, voter }, &options)?;
    let (mut log, _) = Log::open(&disk, cluster, voter.node, &options)?;
    log.upkeep()?;
    Ok((home, log))
}

fn accepted(slot: u64, record: &Arc<[u8]>) -> Record {
    let ballot = Ballot {
        round: 1,
        voter: VOTER,
    };
    let entry = Entry::Commands(Arc::clone(record));
    Record::Accepted {
        slot: Slot(slot),
        vote: Vote { ballot, entry },
    }
}

fn home() -> Result<TempDir> {
    let program = std::env::current_exe()?;
    let beside = program.parent().unwrap_or(Path::new("."));
    Ok(tempfile::tempdir_in(beside)?)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
