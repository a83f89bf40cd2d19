//! The durable half of a consensus node.

mod bytes;
mod disk;
mod identity;
mod real;
#[cfg(feature = "simulation")]
mod simulated;
mod vote;

pub use disk::{Disk, DiskError, DiskFile, Fault, Operation};
pub use identity::{ClusterId, Identity};
pub use real::{RealDisk, RealFile};
#[cfg(feature = "simulation")]
pub use simulated::{Damage, DiskFaults, NoFaults, Place, SimulatedDisk, SimulatedFile};
