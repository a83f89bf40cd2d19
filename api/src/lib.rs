//! Placeholder until the crate's first module lands.

pub mod clock;
pub mod host;
