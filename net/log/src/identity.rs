//! Whose a disk is.

use std::fmt;

use sprag_paxos::Voter;

/// A cluster: drawn at random when it is founded, and again when it is restored from a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId(pub u64);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What a disk is of. Every checksum on it covers all of this, so that nothing written for another cluster, node or
/// disk is ever taken for its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The cluster.
    pub cluster: ClusterId,
    /// The node and its disk: who votes.
    pub voter: Voter,
}
