//! Multi-Paxos as a state machine.

mod ballot;
mod entry;
mod voter;

pub use ballot::Ballot;
pub use entry::{Answer, Entry, Slot, Vote};
pub use voter::{DiskId, NodeId, Voter};
