//! What the engine is told about the host it runs on, and what it can't do for itself: who this
//! process is, whether it was forked, where regions live, and how to sleep on a word.
//!
//! Nothing here knows the engine, and nothing here starts a thread.

#[cfg(target_os = "linux")]
pub mod directory;
pub mod error;
#[cfg(target_os = "linux")]
mod filesystem;
#[cfg(unix)]
pub mod fork;
pub mod futex;
#[cfg(target_os = "linux")]
pub mod identity;
#[cfg(not(target_os = "linux"))]
#[path = "host/no_identity.rs"]
pub mod identity;
pub(crate) mod page;
pub mod place;
#[cfg(unix)]
pub mod process_fd;
#[cfg(target_os = "linux")]
pub(crate) mod procfs;

pub use error::HostError;
