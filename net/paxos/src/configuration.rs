//! Who votes, and which sets of them are enough.

use thiserror::Error;

use crate::simulation::{Bug, planted};
use crate::voter::Voter;

/// The two phases of a ballot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Prepare and Promise: what may have been chosen is found out.
    One,
    /// Accept and Accepted: a value is chosen.
    Two,
}

/// A set of a configuration's voters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VoterSet(u16);

impl VoterSet {
    /// Adds the voter at `index`; whether it was missing.
    pub fn insert(&mut self, index: usize) -> bool {
        let before = self.0;
        self.0 |= 1 << index;
        self.0 != before
    }

    /// Whether the voter at `index` is in it.
    pub fn contains(self, index: usize) -> bool {
        self.0 & (1 << index) != 0
    }

    /// How many are in it.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether nobody is in it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The voters that decide together. What is enough of them is asked of it and counted nowhere else, so that other
/// quorums than majorities stay possible: all that safety needs is that each quorum of phase one meets each of phase two.
/// (Howard, Malkhi, Spiegelman, "Flexible Paxos", OPODIS 2016.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    voters: Vec<Voter>,
}

/// Why voters make no configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ConfigurationError {
    /// None, or too many.
    #[error("voters: {count} given, must be 1 to {max}; leave some of the nodes without a vote")]
    Count {
        /// How many were given.
        count: usize,
        /// The most there may be.
        max: usize,
    },
    /// One node twice: with two votes it could make a quorum by itself.
    #[error(
        "voters: {0} is of a node that is named twice; name each node once, with the disk it has now"
    )]
    NodeTwice(Voter),
}

impl Configuration {
    /// The most voters there may be: each more makes every decision slower, and seven already bear three deaths.
    pub const VOTERS_MAX: usize = 15;

    /// These voters, in any order. One is legal.
    pub fn new(mut voters: Vec<Voter>) -> Result<Self, ConfigurationError> {
        let (count, max) = (voters.len(), Self::VOTERS_MAX);
        if count == 0 || count > max {
            return Err(ConfigurationError::Count { count, max });
        }
        voters.sort_unstable();
        match voters.windows(2).find(|pair| pair[0].node == pair[1].node) {
            Some(pair) => Err(ConfigurationError::NodeTwice(pair[1])),
            None => Ok(Self { voters }),
        }
    }

    /// The voters, ascending.
    pub fn voters(&self) -> &[Voter] {
        &self.voters
    }

    /// The place of `voter` among the voters; `None` if it has no vote here, as a node with another disk has none.
    pub fn index_of(&self, voter: Voter) -> Option<usize> {
        if planted(Bug::StrangerCounted) {
            return self.voters.iter().position(|own| own.node == voter.node);
        }
        self.voters.binary_search(&voter).ok()
    }

    /// Whether `set` is enough for `phase`: a majority, in either.
    pub fn is_quorum(&self, _phase: Phase, set: VoterSet) -> bool {
        let voters = self.voters.len();
        if planted(Bug::HalfIsAQuorum) {
            return 2 * set.len() >= voters;
        }
        set.len() > voters / 2
    }
}
