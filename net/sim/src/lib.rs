//! A whole cluster in one thread, from one seed, under every fault that it must bear; and the checks of what it did.

mod chance;
mod client;
mod clock;
mod fault;
mod host;
mod invariant;
mod journal;
mod judge;
mod network;
mod node;
mod plan;
mod run;
mod tally;
mod trace;
mod world;

pub use fault::{Class, Strike};
pub use invariant::Broken;
pub use plan::Mix;
pub use run::{Report, Setup, replay, run};
pub use tally::Tally;
pub use world::Failure;
