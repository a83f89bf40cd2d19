//! The durable half of a consensus node: what it promised, accepted and learned, and its snapshots, on a [`Disk`].
//!
//! A [`Log`] is made once for a new voter, and opened at each start, which gives what the voter starts with. Then records
//! are appended, and are durable once a sync that began after them has succeeded. The sync is a job, as is the making of
//! the next segment: a caller with one thread runs them where it stands, another hands them to a thread of the disk's.
//! [`Snapshots`] are kept beside it: once one is durable, a record says so, and what it holds leaves the log. The files,
//! and why what is found in them means what it does, are in the crate's `README.md`.
//!
//! ```
//! use sprag_log::{ClusterId, Identity, Log, LogOptions, RealDisk};
//! use sprag_paxos::{Answer, Ballot, DiskId, Entry, NodeId, Record, Slot, Vote, Voter};
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("node-1");
//! let disk = RealDisk::open(&path)?;
//! let options = LogOptions { segment_bytes: 1 << 20, ..LogOptions::default() };
//! let voter = Voter { node: NodeId(1), disk: DiskId(0x5eed) };
//! let cluster = ClusterId(7);
//! Log::create(&disk, Identity { cluster, voter }, &options)?;
//!
//! let (mut log, found) = Log::open(&disk, cluster, voter.node, &options)?;
//! assert_eq!(found.answer(Slot(1)), Answer::Never);
//!
//! let ballot = Ballot { round: 1, voter };
//! let vote = Vote { ballot, entry: Entry::Commands((*b"put").into()) };
//! let position = log.append(&[Record::Accepted { slot: Slot(1), vote: vote.clone() }])?;
//! if let Some(job) = log.begin_sync()? {
//!     // Here, or on another thread.
//!     let done = job.run();
//!     assert_eq!(log.finish_sync(done)?, position);
//! }
//! if let Some(job) = log.begin_upkeep()? {
//!     let done = job.run();
//!     log.finish_upkeep(done)?;
//! }
//!
//! drop(log);
//! let (_, found) = Log::open(&disk, cluster, voter.node, &options)?;
//! assert_eq!(found.state.promised, ballot);
//! assert_eq!(found.answer(Slot(1)), Answer::Accepted(vote));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bytes;
mod cell;
mod disk;
mod error;
mod identity;
mod judge;
mod log;
mod open;
mod options;
mod real;
mod record;
mod recover;
mod repair;
mod scan;
mod segment;
mod segments;
#[cfg(feature = "simulation")]
mod simulated;
mod slots;
mod snapshots;
mod store;
mod sync;
mod upkeep;
mod vote;

pub use disk::{Disk, DiskError, DiskFile, Fault, Operation};
pub use error::{LogError, OpenError, SnapshotError};
pub use identity::{ClusterId, Identity};
pub use log::{Log, Position};
pub use open::Found;
pub use options::{LogOptions, OptionsError};
pub use real::{RealDisk, RealFile};
#[cfg(feature = "simulation")]
pub use simulated::{Damage, DiskFaults, NoFaults, Place, SimulatedDisk, SimulatedFile};
pub use snapshots::{Chunk, Finished, Loaded, SnapshotDone, SnapshotJob, Snapshots};
pub use store::Store;
pub use sync::{SyncDone, SyncJob};
pub use upkeep::{UpkeepDone, UpkeepJob};
