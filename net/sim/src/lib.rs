//! A whole cluster in one thread, from one seed, under every fault that it must bear; and the checks of what it did.

mod ask;
mod chance;
mod client;
mod clock;
mod command;
mod failure;
mod fault;
pub mod history;
mod host;
mod invariant;
mod journal;
mod judge;
mod machine;
mod network;
mod node;
mod panics;
mod plan;
mod queue;
mod readable;
mod run;
mod script;
mod shrink;
mod site;
mod tally;
mod trace;
mod world;

pub use failure::{Failure, Kind};
pub use fault::{Class, Strike};
pub use invariant::Broken;
pub use plan::{Mix, NODES_MAX};
pub use readable::Line;
pub use run::{Report, Setup, replay, run, show};
pub use script::{Script, ScriptError, bug};
pub use shrink::shrink;
pub use tally::Tally;
