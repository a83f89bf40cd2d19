//! Multi-Paxos as a state machine: no I/O, no clock, no thread, no randomness of its own and no order that depends on
//! hashes. What comes in (messages, time, what is proposed, what has become durable) gives effects, in order.

mod acceptor;
mod ballot;
mod batch;
mod by_slot;
mod candidate;
mod catch_up;
mod choice;
mod configuration;
mod effect;
mod election;
mod entry;
mod executor;
mod hint;
mod leader;
mod learner;
mod message;
mod options;
mod random;
mod recovered;
mod replica;
mod replication;
pub mod simulation;
mod snapshot;
#[cfg(test)]
mod testing;
mod tickets;
mod transfer;
mod voter;

pub use acceptor::{Acceptor, TooLate};
pub use ballot::Ballot;
pub use batch::commands;
pub use choice::{Choice, choose};
pub use configuration::{Configuration, ConfigurationError, Phase, VoterSet};
pub use effect::{Effect, Record, Ticket};
pub use entry::{Answer, Entry, Slot, Vote};
pub use executor::Executor;
pub use message::Message;
pub use options::{Options, OptionsError};
pub use recovered::Recovered;
pub use replica::{ProposeError, Replica, RoleName};
pub use snapshot::Snapshot;
pub use voter::{DiskId, NodeId, Voter};
