//! The durable half of a consensus node.

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
#[cfg(feature = "simulation")]
mod simulated;
mod slots;
mod store;
mod sync;
mod upkeep;
mod vote;

pub use disk::{Disk, DiskError, DiskFile, Fault, Operation};
pub use error::{LogError, OpenError};
pub use identity::{ClusterId, Identity};
pub use log::{Log, Position};
pub use open::Recovered;
pub use options::{LogOptions, OptionsError};
pub use real::{RealDisk, RealFile};
#[cfg(feature = "simulation")]
pub use simulated::{Damage, DiskFaults, NoFaults, Place, SimulatedDisk, SimulatedFile};
pub use store::Store;
pub use sync::{SyncDone, SyncJob};
pub use upkeep::{Upkeep, UpkeepDone};
