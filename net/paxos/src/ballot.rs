//! Ballots: the numbered rounds in which values are proposed.

use std::fmt;

use crate::voter::{DiskId, NodeId, Voter};

/// A round of voting. Ballots are totally ordered, first by round; each belongs to the one voter that may propose in
/// it, so no two voters ever share one. (Lamport, "The Part-Time Parliament", 1998, section 2.1: B1.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ballot {
    /// The round: 1 and up.
    pub round: u64,
    /// Who proposes in it.
    pub voter: Voter,
}

impl Ballot {
    /// Below every ballot: what a voter has promised before its first promise. Nobody proposes in it.
    pub const NONE: Ballot = Ballot {
        round: 0,
        voter: Voter {
            node: NodeId(0),
            disk: DiskId(0),
        },
    };

    /// The lowest ballot of `voter` above this one; `None` after the last round there is.
    pub fn next_of(self, voter: Voter) -> Option<Ballot> {
        Some(Ballot {
            round: self.round.checked_add(1)?,
            voter,
        })
    }
}

impl fmt::Display for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Ballot::NONE {
            return f.write_str("none");
        }
        write!(f, "{}@{}", self.round, self.voter)
    }
}
