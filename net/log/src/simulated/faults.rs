//! What can go wrong with a simulated disk, and the hook that says when.

use crate::disk::{Fault, Operation};

/// What goes wrong, and when. As it stands, nothing does; and at a power cut, nothing unsynced survives.
pub trait DiskFaults {
    /// Whether an operation on `bytes` bytes of a file is refused, and how. A refused operation changes nothing, but
    /// for two: a write refused with [`Fault::Short`] takes its first `done` bytes, and a refused sync leaves what it
    /// should have synced in the cache, held for clean; no later sync writes it.
    fn refuses(&mut self, operation: Operation, file: &str, bytes: u64) -> Option<Fault> {
        let _ = (operation, file, bytes);
        None
    }

    /// Whether a write lands on the platter in another place than asked for. The cache shows it where it should be.
    fn misdirects(&mut self, file: &str, offset: u64, bytes: u64) -> Option<Place> {
        let _ = (file, offset, bytes);
        None
    }

    /// Whether one version of one sector, written but not synced, is on the platter when the power goes. Asked for
    /// the newest version first; the first that survives is what the sector then holds.
    fn survives(&mut self, file: &str, sector: u64) -> bool {
        let _ = (file, sector);
        false
    }

    /// Whether one creation, renaming or removal that was not synced is on the platter when the power goes.
    fn change_survives(&mut self, operation: Operation, file: &str) -> bool {
        let _ = (operation, file);
        false
    }
}

/// Nothing goes wrong.
#[derive(Clone, Copy, Debug)]
pub struct NoFaults;

impl DiskFaults for NoFaults {}

/// Where a misdirected write lands: from this offset on, rounded down to a sector. Outside of any file, it is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: String,
    /// The offset in it, in bytes.
    pub offset: u64,
}

/// How a sector that was written and synced goes bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Reading it fails, until it is written again.
    Unreadable,
    /// One bit of it, counted from the sector's start, is the other way round, and nobody says so.
    Flipped {
        /// Which bit; taken modulo the sector's bits.
        bit: u64,
    },
    /// It holds zeros, and nobody says so.
    Zeroed,
}
