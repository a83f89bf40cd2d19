//! A whole cluster in one thread, from one seed, under every fault that it must bear; and the checks of what it did.

mod ask;
mod chance;
mod client;
mod clock;
mod command;
mod fault;
pub mod history;
mod host;
mod invariant;
mod journal;
mod machine;
mod network;
mod node;
mod plan;
mod queue;
mod run;
mod tally;
mod trace;
mod world;

pub use fault::{Class, Strike};
pub use invariant::Broken;
pub use plan::Mix;
pub use run::{Report, Setup, replay, run};
pub use tally::{Point, ROLES, Tally};
pub use world::Failure;
