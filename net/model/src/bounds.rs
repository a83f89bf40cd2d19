//! How far a model goes. Within its bounds everything is tried.

use sprag_paxos::Configuration;

/// What somebody asks a node for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The node, from 0.
    pub node: usize,
    /// The command; different ones can be told apart.
    pub command: &'static str,
}

/// The bounds of a model.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Who votes, and by which quorums. A node's number is its voter's place there.
    pub configuration: Configuration,
    /// What is asked for: each at most once, in any order, at any time or never.
    pub proposals: Vec<Proposal>,
    /// By node, how many ticks it sees at most. A tick that does nothing doesn't count.
    pub ticks: Vec<u8>,
    /// By node, how often it crashes at most. The disk of a node that can't crash any more is done at once.
    pub crashes: Vec<u8>,
    /// How many states are left at most: what is further away isn't looked at.
    pub states_max: usize,
    /// Whether a crash may make a vote unreadable.
    pub rots: bool,
}
