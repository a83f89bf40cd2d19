//! Who votes: a node together with the disk on which it remembers its votes.

use std::fmt;

/// A node of the cluster: its place and its address, whatever disk it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u16);

/// What a voter remembers its promises on: drawn at random when a disk is made ready, never given twice.
///
/// Where promises live in memory only, it is drawn anew at each start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskId(pub u64);

/// Who promises and accepts. A node that lost its disk has lost its promises, so it comes back as another voter, and
/// has no vote until a configuration names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Voter {
    /// The node.
    pub node: NodeId,
    /// The disk that remembers for it.
    pub disk: DiskId,
}

impl fmt::Display for Voter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}/{:x}", self.node.0, self.disk.0)
    }
}
