//! Multi-Paxos as a state machine: no I/O, no clock, no thread, no randomness of its own and no order that depends on
//! hashes. What comes in (messages, time, what is proposed, what has become durable) gives effects, in order.

mod acceptor;
mod ballot;
mod configuration;
mod effect;
mod entry;
mod executor;
mod message;
mod proposer;
mod random;
mod replica;
pub mod simulation;
mod voter;

pub use acceptor::{Acceptor, TooLate};
pub use ballot::Ballot;
pub use configuration::{Configuration, ConfigurationError, Phase, VoterSet};
pub use effect::{Effect, Record, Ticket};
pub use entry::{Answer, Entry, Slot, Vote};
pub use executor::Executor;
pub use message::Message;
pub use proposer::{Choice, Proposer, choose};
pub use replica::{Options, ProposeError, Recovered, Replica};
pub use voter::{DiskId, NodeId, Voter};
