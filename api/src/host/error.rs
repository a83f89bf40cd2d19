//! What can go wrong between this process and its host.

use std::io;

/// The host refused something, or this process is in a state in which it can't be asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Boot time can't be read.
    #[error(
        "cannot read CLOCK_BOOTTIME: {source}; leases need it, so allow clock_gettime in the sandbox of this process"
    )]
    ClockUnavailable {
        /// What the kernel said.
        source: io::Error,
    },

    /// The process has unshared its time namespace, and which of the two offsets is its own can't be told.
    #[error(
        "this process is in time namespace {ours} and has prepared {childrens} for its children, so its own offset cannot be told; \
         open the space in a child of it, or before it calls unshare(CLONE_NEWTIME)"
    )]
    TimeNamespaceUnsettled {
        /// Inode of the time namespace of this process.
        ours: u64,
        /// Inode of the time namespace of its future children.
        childrens: u64,
    },

    /// No memory for the one page that every process using the library has.
    #[error(
        "cannot map one page of memory to notice forks with: {source}; raise the memory limit (RLIMIT_AS)"
    )]
    MapPage {
        /// What the kernel said.
        source: io::Error,
    },

    /// The fork handlers can't be registered.
    #[error(
        "pthread_atfork failed: {source}; without it a forked child would keep the locks of its parent alive"
    )]
    ForkHandlers {
        /// What the C library said.
        source: io::Error,
    },

    /// Another thread is forking, and has been for too long.
    #[error(
        "another thread has been forking for {waited_ms} ms, and a descriptor opened now could leak into its child; \
         try again when the fork is done"
    )]
    ForkInFlight {
        /// How long the caller waited.
        waited_ms: u64,
    },

    /// Too many descriptors to close in forked children.
    #[error(
        "{descriptors_max} descriptors are open already, which is the most one process may have; close spaces that are no longer used"
    )]
    DescriptorsFull {
        /// The cap.
        descriptors_max: usize,
    },

    /// A descriptor couldn't be opened.
    #[error("cannot open a file for this process alone: {source}")]
    OpenDescriptor {
        /// What the kernel said.
        source: io::Error,
    },

    /// The kernel gave no random numbers.
    #[error(
        "getrandom failed: {source}; allow it in the sandbox of this process, or mount /dev/urandom"
    )]
    Random {
        /// What the kernel said.
        source: io::Error,
    },
}
