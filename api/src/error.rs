//! What a call can fail with; each says what to do about it.

use crate::host::HostError;
use crate::host::place::PlaceError;
use std::time::Duration;

/// An error of a space.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// From the engine: a full region, a bad name, a damaged file.
    #[error(transparent)]
    Engine(#[from] sprag_core::Error),
    /// The URL is not one of a space, or its place is not usable.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The host lacks something: a clock, memory, descriptors.
    #[error(transparent)]
    Host(#[from] HostError),
    /// What was given as a limit is none: not its text, or outside its bounds.
    #[error(transparent)]
    Limit(#[from] sprag_core::limit::LimitError),
    /// A token that the fence has seen a higher one than.
    #[error(transparent)]
    Stale(#[from] sprag_core::Stale),
    /// This process was forked after the space was opened.
    #[error(
        "this process was forked after the space was opened and owns nothing in it; open the space again"
    )]
    Forked,
    /// The hold is no longer the caller's: its lease ended, it was broken, or it was transferred.
    #[error(
        "hold with token {token} is lost: its lease ended or it was taken away; stop what it protects"
    )]
    Lost {
        /// The token of the lost hold.
        token: u64,
    },
    /// A duration lies outside its bounds.
    #[error("{what} is {value:?}; it must be {min:?} to {max:?}")]
    Duration {
        /// Which argument.
        what: &'static str,
        /// What was given.
        value: Duration,
        /// The shortest allowed.
        min: Duration,
        /// The longest allowed.
        max: Duration,
    },
    /// An owner has acquired this lock again and again, more often than can be counted.
    #[error("this owner holds the lock {depth} times, the most that are counted")]
    TooDeep {
        /// How many times.
        depth: u32,
    },
    /// An option does not go with the space's reach.
    #[error("{what} does not go with {url}; {way_out}")]
    NotHere {
        /// Which option or operation.
        what: &'static str,
        /// The space's URL.
        url: String,
        /// What to do instead.
        way_out: &'static str,
    },
    /// The background thread could not be started.
    #[error("cannot start the thread that renews leases and wakes futures: {source}")]
    Thread {
        /// What the system said.
        source: std::io::Error,
    },
}
