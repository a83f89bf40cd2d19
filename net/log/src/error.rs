//! What a log and its snapshots refuse, and why.

use sprag_paxos::{Ballot, NodeId, Slot, Snapshot};

use crate::disk::DiskError;
use crate::identity::ClusterId;
use crate::options::OptionsError;

/// Why a log could not be opened or made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no log here, or it was never finished: make one, for a new voter.
    #[error("there is no log in this directory; make one, with a disk id that was never used")]
    Missing,
    /// There is a log here already.
    #[error(
        "there is a log in this directory, of disk {disk:x}; open it, or wipe it to give up its vote"
    )]
    Exists {
        /// Its disk id.
        disk: u64,
    },
    /// Both copies of the vote are bad: what was promised is forgotten, so this disk must never vote again under its
    /// old id. Wipe it and make a log under a new one; it votes once a configuration names that.
    #[error(
        "both copies of the vote are unreadable, so this disk cannot vote any more; wipe it and give it a new id"
    )]
    VoteLost,
    /// The log is trimmed, and no snapshot that can be read reaches up to there: what was decided is not all here, but its
    /// vote holds. Wipe it and make a log under a new id, as for a lost vote; or put back a snapshot of this disk's.
    #[error(
        "no snapshot reaches up to slot {trimmed}, where the log begins; wipe the disk and give it a new id"
    )]
    SnapshotLost {
        /// Up to where the log is trimmed.
        trimmed: Slot,
    },
    /// It belongs to another cluster.
    #[error(
        "the log in this directory is of cluster {found}, not of {expected}; it is another cluster's disk"
    )]
    OtherCluster {
        /// Whose it is.
        found: ClusterId,
        /// Whose it should be.
        expected: ClusterId,
    },
    /// It belongs to another node.
    #[error("the log in this directory is of node {}, not of {}; it is another node's disk", found.0, expected.0)]
    OtherNode {
        /// Whose it is.
        found: NodeId,
        /// Whose it should be.
        expected: NodeId,
    },
    /// An option is out of its bounds.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The disk refused.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// Why a log did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The disk refused a write or a sync. The log has stopped: what was written since the last sync that succeeded is
    /// unknown. Open it anew to go on.
    #[error("the log stops, since the disk failed: {0}")]
    Disk(DiskError),
    /// It has stopped before, for this reason. Open it anew to go on.
    #[error("the log has stopped, since the disk failed: {0}")]
    Stopped(DiskError),
    /// No room, but for what a snapshot would hold. Nothing was written and the log goes on: trim it, then try again.
    #[error(
        "the log is full: {segments_max} segments hold what isn't trimmed; take a snapshot and trim"
    )]
    Full {
        /// The bound.
        segments_max: usize,
    },
    /// The disk has no room for another segment. Nothing was written and the log goes on: free some, then try again.
    #[error("the disk has no room for another segment: {0}")]
    DiskFull(DiskError),
    /// The batch can't fit into a segment.
    #[error(
        "a batch of {records} records takes {bytes} bytes; a segment has room for {records_max} and {bytes_max}"
    )]
    TooLarge {
        /// Its records.
        records: u64,
        /// Its bytes as stored.
        bytes: u64,
        /// How many records fit.
        records_max: u64,
        /// How many bytes fit.
        bytes_max: u64,
    },
    /// The slot is at or below what was trimmed.
    #[error("slot {slot} is trimmed: a snapshot holds everything up to {trimmed}")]
    Trimmed {
        /// Which.
        slot: Slot,
        /// The last that was trimmed.
        trimmed: Slot,
    },
    /// The slot is too far above what was trimmed.
    #[error(
        "slot {slot} is more than {slots_max} slots above {trimmed}, the last that was trimmed; trim first"
    )]
    TooFar {
        /// Which.
        slot: Slot,
        /// The last that was trimmed.
        trimmed: Slot,
        /// The bound.
        slots_max: usize,
    },
    /// A promise below the one that was given.
    #[error("ballot {asked} is below {promised}, which is promised; a promise never goes back")]
    Backwards {
        /// What was asked.
        asked: Ballot,
        /// What is promised.
        promised: Ballot,
    },
    /// A job of the kind is under way: finish it first. Nothing was written and the log goes on.
    #[error("a {0} is under way; finish it, then try again")]
    Busy(&'static str),
}

/// Why something was not done with a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The disk refused. The snapshots have stopped: which of them are durable is unknown. Open them anew to go on.
    #[error("the snapshots stop, since the disk failed: {0}")]
    Disk(DiskError),
    /// They have stopped before, for this reason. Open them anew to go on.
    #[error("the snapshots have stopped, since the disk failed: {0}")]
    Stopped(DiskError),
    /// The disk has no room for one that comes from another voter. Nothing is left of it: free some, then begin anew.
    #[error("the disk has no room for the snapshot that comes: {0}")]
    DiskFull(DiskError),
    /// It is larger than any may be.
    #[error("a snapshot of {bytes} bytes is too large; raise bytes_max, which is {bytes_max}")]
    TooLarge {
        /// Its bytes.
        bytes: u64,
        /// The bound.
        bytes_max: u64,
    },
    /// What came is not what comes next.
    #[error("of snapshot {snapshot} came bytes from {offset} on; the next are from {expected} on")]
    OutOfTurn {
        /// Of which.
        snapshot: Snapshot,
        /// From where on.
        offset: u64,
        /// From where on instead.
        expected: u64,
    },
    /// More came than it has.
    #[error("of snapshot {snapshot} came bytes up to {end}, which it doesn't have")]
    TooLong {
        /// Of which.
        snapshot: Snapshot,
        /// Up to where.
        end: u64,
    },
    /// One that came is being installed: finish that first.
    #[error("a snapshot is being installed; finish it, then try again")]
    Busy,
}
