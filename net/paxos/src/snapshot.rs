//! Which snapshot is meant: what it holds, and what tells its bytes from another's.

use std::fmt;

use crate::entry::Slot;

/// Names a snapshot: the state that everything up to a slot makes, as bytes. Two of one name are the same bytes, so one can
/// be had in part from one voter and in part from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Snapshot {
    /// The last slot that it holds.
    pub through: Slot,
    /// How many bytes it has.
    pub bytes: u64,
    /// Their checksum.
    pub checksum: u64,
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}#{:x}", self.through, self.bytes, self.checksum)
    }
}
