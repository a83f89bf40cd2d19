//! The disk's thread: carries out what the node's own thread has no time for.

use std::sync::mpsc;
use std::thread;

use sprag_log::{
    RealDisk, RealFile, SnapshotDone, SnapshotJob, SyncDone, SyncJob, UpkeepDone, UpkeepJob,
};
use tokio::sync::mpsc::UnboundedSender;

/// Work for the disk. Of each kind there is at most one under way.
pub(crate) enum Job {
    /// Makes what was appended durable.
    Sync(SyncJob<RealFile>),
    /// Makes the next segment ready.
    Upkeep(UpkeepJob<RealDisk>),
    /// Makes a snapshot durable. An append may make a segment on the other thread meanwhile; the disk tells both of a directory
    /// that can't be synced.
    Snapshot(SnapshotJob<RealDisk>),
}

/// What came of it.
pub(crate) enum Done {
    Sync(SyncDone<RealFile>),
    Upkeep(UpkeepDone<RealDisk>),
    Snapshot(SnapshotDone<RealDisk>),
}

/// A thread that ends when this is dropped, once it has finished what it was given.
pub(crate) struct DiskThread {
    jobs: mpsc::Sender<Job>,
}

impl DiskThread {
    /// Starts it. What comes of each job goes to `done`.
    pub(crate) fn start(done: UnboundedSender<Done>) -> std::io::Result<Self> {
        let (jobs, given) = mpsc::channel::<Job>();
        thread::Builder::new()
            .name("sprag-disk".to_owned())
            .spawn(move || {
                while let Ok(job) = given.recv() {
                    let result = match job {
                        Job::Sync(job) => Done::Sync(job.run()),
                        Job::Upkeep(job) => Done::Upkeep(job.run()),
                        Job::Snapshot(job) => Done::Snapshot(job.run()),
                    };
                    if done.send(result).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self { jobs })
    }

    /// Gives it a job. False if it is gone, which it is only after a panic.
    pub(crate) fn give(&self, job: Job) -> bool {
        self.jobs.send(job).is_ok()
    }
}
