//! What the comparison and the benches share: cases, the keys they draw, and the contestants.
//!
//! A [`Case`] says what is done to which keys by how many threads. A [`Side`] is one contestant
//! set up for it: a space ([`ours`]) or another library ([`peers`]). Replicas are set up by [`consensus`].
//! Nothing here judges a number.

pub mod case;
pub mod consensus;
pub mod draw;
mod once;
pub mod ours;
pub mod peers;
pub mod side;

pub use case::{Case, Effort};
pub use side::{Side, Timed};

/// Why a case could not be run.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What fallible functions of this crate return.
pub type Result<T> = std::result::Result<T, Failure>;
