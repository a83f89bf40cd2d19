//! How a node is set up, within which bounds, and why it doesn't start, or stops.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use sprag_log::{DiskError, LogOptions, OpenError};
use sprag_paxos::{Configuration, ConfigurationError, NodeId, Options, OptionsError, Voter};

use crate::certificates::{CertificatesError, random};
use crate::founding::FoundingError;
use crate::host::Stopped;
use crate::machine::OPERATION_BYTES_MAX;
use crate::peer_message::SLOTS_MAX;
use crate::transport::TransportError;

/// With fewer segments the log is as good as full from the start.
const SEGMENTS_MIN: usize = 4;

/// How many intervals between snapshots the log has room for, at least: it keeps two, a third is decided while the next
/// snapshot is made, and no more than half of the log should be in use without haste.
const INTERVALS_MIN: u64 = 4;

/// The longest operation fits into a segment of that many bytes, of which an eighth is for headers.
const SEGMENT_BYTES_MIN: u64 = 2 << 20;

const _: () = assert!(OPERATION_BYTES_MAX as u64 + RECORD_BYTES <= SEGMENT_BYTES_MIN / 8 * 7);

/// More than a record of one operation has beside that.
const RECORD_BYTES: u64 = 8 << 10;

/// How many slots a leader has under way.
const WINDOW_SLOTS: u64 = 64;
/// Bytes of commands in a slot.
const BATCH_BYTES_MAX: usize = 256 << 10;
/// Bytes of commands that wait for a slot.
const PENDING_BYTES_MAX: usize = 16 << 20;
/// Bytes of entries in a page: with one more entry they fit into a frame.
const PAGE_BYTES_MAX: usize = 2 << 20;

/// How a node is set up.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Which node it is: 1 and up.
    pub node: NodeId,
    /// Where it listens.
    pub listen: SocketAddr,
    /// The other nodes, and where each is: an address, or a name and a port.
    pub peers: BTreeMap<NodeId, String>,
    /// The directory of its log.
    pub data: PathBuf,
    /// The directory of its certificates.
    pub certificates: PathBuf,
    /// How long no leader must have been heard of before another is elected: each node waits that long, and up to twice.
    pub election: Duration,
    /// How often a leader is heard of, at least.
    pub beat: Duration,
    /// The bounds of its log. A segment must have [room](Self::check) for the longest operation: at least 2 MiB.
    pub log: LogOptions,
    /// After how many slots it takes a snapshot, at most: 1 and up. The log must have [room](Self::check) for four such intervals;
    /// while more than half of its segments or slots are in use, it takes one as often as it can.
    pub snapshot_slots: u64,
}

/// Why a node doesn't start, or stops.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// Its certificates can't be read.
    #[error(transparent)]
    Certificates(#[from] CertificatesError),
    /// It can't listen.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// There can't be a directory there.
    #[error("data: {}: {what}", path.display())]
    Data {
        /// Where its data should be.
        path: PathBuf,
        /// Why not, and the way out.
        what: &'static str,
    },
    /// Its data directory can't be used.
    #[error("data: {0}")]
    Disk(#[from] DiskError),
    /// Its log can't be opened.
    #[error("data: {0}")]
    Open(#[from] OpenError),
    /// Its log has lost what it had accepted.
    #[error(
        "data: the log has lost some of what it had accepted, so this disk has no vote any more; restore it, or empty the directory to give its vote up"
    )]
    Lost,
    /// The cluster can't be founded with it.
    #[error(transparent)]
    Founding(#[from] FoundingError),
    /// The voters make no configuration.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// An option is out of its bounds.
    #[error("{0} (election_ns and beat_ns are --election-ms and --beat-ms, times a million)")]
    Options(#[from] OptionsError),
    /// A node of the cluster has no address.
    #[error(
        "peer: node {0} decides too, and its address isn't given; give it as --peer {0}=HOST:PORT"
    )]
    NoAddress(u16),
    /// The nodes that it is told of aren't those that found the cluster, as the certificates have it.
    #[error(
        "peer: this node and its peers are {given}, and the cluster of these certificates is founded by {founders}; name each of the others once, as --peer NODE=HOST:PORT"
    )]
    OtherPeers {
        /// The node and its peers.
        given: Nodes,
        /// Who founds the cluster.
        founders: Nodes,
    },
    /// The log has room for too few slots.
    #[error(
        "slots: {given}, must be {least} to {most}: from four times snapshot-slots, which is {snapshot_slots}; give more --slots, or fewer --snapshot-slots"
    )]
    Slots {
        /// How many it may have.
        given: usize,
        /// The fewest that will do.
        least: u64,
        /// The most there may be.
        most: u64,
        /// After how many a snapshot is taken.
        snapshot_slots: u64,
    },
    /// The log has too few segments.
    #[error(
        "segments: {given}, must be at least {least}: one is written to, one waits for its snapshot, and one is kept for what is under way; give more --segments"
    )]
    Segments {
        /// How many it may have.
        given: usize,
        /// The fewest that will do.
        least: usize,
    },
    /// A segment has no room for the longest operation.
    #[error(
        "segment_bytes: {given}, must be at least {least}: a segment has to have room for the longest operation; give more segment_bytes"
    )]
    SegmentBytes {
        /// How many it would have.
        given: u64,
        /// The fewest that will do.
        least: u64,
    },
    /// No snapshot would ever be due.
    #[error("snapshot-slots: 0, must be at least 1; take one after some slots")]
    SnapshotSlots,
    /// A node is its own peer.
    #[error("peer: node {0} is this node itself; leave it out")]
    OwnPeer(u16),
    /// Its disk failed, or is full.
    #[error("the node stops: {0}")]
    Stopped(#[from] Stopped),
    /// The disk's thread couldn't be started.
    #[error("the disk's thread can't be started: {0}")]
    DiskThread(io::Error),
    /// Something that goes on as long as the node does has ended, by a mistake of this program. What was acknowledged is durable.
    #[error(
        "the node stops, since {0} has ended; what it said is above, and is a mistake of this program: report it, and start the node again"
    )]
    Ended(&'static str),
}

/// Some nodes, to be named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes(pub Vec<NodeId>);

impl fmt::Display for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(|node| node.0.to_string()).collect();
        let nodes = if numbers.len() == 1 { "node" } else { "nodes" };
        write!(f, "{nodes} {}", numbers.join(", "))
    }
}

impl NodeOptions {
    /// Whether each bound of the log leaves room for what the others need.
    ///
    /// # Errors
    /// [`NodeError::Slots`], [`NodeError::Segments`], [`NodeError::SegmentBytes`], [`NodeError::SnapshotSlots`].
    pub fn check(&self) -> Result<(), NodeError> {
        let LogOptions {
            slots_max,
            segments_max,
            segment_bytes,
        } = self.log;
        let snapshot_slots = self.snapshot_slots;
        if snapshot_slots == 0 {
            return Err(NodeError::SnapshotSlots);
        }
        let (least, most) = (snapshot_slots.saturating_mul(INTERVALS_MIN), SLOTS_MAX);
        if !(least..=most).contains(&(slots_max as u64)) {
            return Err(NodeError::Slots {
                given: slots_max,
                least,
                most,
                snapshot_slots,
            });
        }
        if segments_max < SEGMENTS_MIN {
            return Err(NodeError::Segments {
                given: segments_max,
                least: SEGMENTS_MIN,
            });
        }
        if segment_bytes < SEGMENT_BYTES_MIN {
            return Err(NodeError::SegmentBytes {
                given: segment_bytes,
                least: SEGMENT_BYTES_MIN,
            });
        }
        Ok(())
    }

    /// Whether its data can be where it is told.
    pub(crate) fn check_data(&self) -> Result<(), NodeError> {
        let parent = self.data.parent();
        let has_parent =
            parent.is_none_or(|parent| parent.as_os_str().is_empty() || parent.is_dir());
        let what = if self.data.exists() && !self.data.is_dir() {
            "this is no directory; name one, or one that is to be made"
        } else if !has_parent {
            "the directory that this would be made in doesn't exist; make that, or name another"
        } else {
            return Ok(());
        };
        let path = self.data.clone();
        Err(NodeError::Data { path, what })
    }

    /// Whether it is told of all that found the cluster, and of no other. Two sets of nodes that don't know of each other could
    /// else found it twice.
    pub(crate) fn check_peers(&self, founders: u16) -> Result<(), NodeError> {
        if self.peers.contains_key(&self.node) {
            return Err(NodeError::OwnPeer(self.node.0));
        }
        let mut given: Vec<NodeId> = self.peers.keys().copied().chain([self.node]).collect();
        given.sort_unstable();
        let founders: Vec<NodeId> = (1..=founders).map(NodeId).collect();
        if given == founders {
            return Ok(());
        }
        let (given, founders) = (Nodes(given), Nodes(founders));
        Err(NodeError::OtherPeers { given, founders })
    }
}

/// How this node votes.
pub(crate) fn voting(
    options: &NodeOptions,
    me: Voter,
    configuration: Configuration,
) -> Result<Options, NodeError> {
    Ok(Options {
        me,
        configuration,
        election_ns: nanoseconds(options.election),
        beat_ns: nanoseconds(options.beat),
        window_slots: WINDOW_SLOTS,
        batch_bytes_max: BATCH_BYTES_MAX,
        pending_bytes_max: PENDING_BYTES_MAX,
        page_bytes_max: PAGE_BYTES_MAX,
        seed: random()?,
    })
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
