//! Outside Linux, where `mem:` is all there is and asks for little: a process id to show, a seed.

use super::HostError;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A process, as far as it is known.
pub struct ProcessIdentity {
    /// The process id.
    pub pid: u32,
    /// Unknown: 0.
    pub start_ns: u64,
    /// Unknown: 0.
    pub pid_namespace: u64,
    /// Unknown: 0.
    pub boot_id: [u64; 2],
}

impl ProcessIdentity {
    /// This process.
    pub fn of_this_process() -> Result<Self, HostError> {
        Ok(Self {
            pid: std::process::id(),
            start_ns: 0,
            pid_namespace: 0,
            boot_id: [0; 2],
        })
    }
}

/// A random number from the keys that the standard library draws for its hash maps.
pub fn random_u64() -> Result<u64, HostError> {
    Ok(RandomState::new().build_hasher().finish())
}
