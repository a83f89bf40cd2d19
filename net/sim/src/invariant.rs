//! What must hold after every step, one file each. They see everything, durable or not, of every node; what only clients
//! see is checked by [`history`](crate::history). Two of them, [`equal_states`] and [`sound_disks_keep`], need no look inside,
//! and are checked always.

mod agreement;
mod chosen;
mod decided_in_order;
mod durable_first;
pub(crate) mod equal_states;
mod one_value_per_ballot;
mod own_ballots;
mod promise_kept;
mod proposals;
mod safe_proposal;
mod saved_first;
pub(crate) mod sound_disks_keep;
mod votes;

use sprag_paxos::{Configuration, Entry, Message, Record, Replica, Slot, Voter};

use proposals::Proposals;
use votes::Votes;

/// Something that an invariant looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fact<'a> {
    /// A client asked for this.
    Wanted { command: &'a [u8] },
    /// This left a voter.
    Sent { from: Voter, message: &'a Message },
    /// A voter has this put on record.
    Written { voter: Voter, record: &'a Record },
    /// This can't be forgotten any more.
    Durable { voter: Voter, record: &'a Record },
    /// A voter takes this for decided.
    Decided {
        voter: Voter,
        slot: Slot,
        entry: &'a Entry,
    },
    /// This voter has a snapshot that can't be forgotten any more, of everything up to here.
    Saved { voter: Voter, through: Slot },
    /// A voter's state begins anew, from a snapshot of everything up to here.
    Restored { voter: Voter, through: Slot },
    /// A voter started, with what its disk kept.
    Started { replica: &'a Replica },
    /// A voter took something in.
    Stepped { replica: &'a Replica },
}

/// What all of them know together: who votes, what was voted for, durably, and what was proposed.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) configuration: Configuration,
    pub(crate) votes: Votes,
    pub(crate) proposals: Proposals,
}

impl Known {
    fn new(configuration: Configuration) -> Self {
        Self {
            configuration,
            votes: Votes::default(),
            proposals: Proposals::default(),
        }
    }
}

/// Something that must always hold.
pub(crate) trait Invariant {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// Where it comes from.
    fn source(&self) -> &'static str;

    /// Looks at what just happened; says what is wrong.
    fn look(&mut self, known: &Known, fact: &Fact<'_>) -> Result<(), String>;
}

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub invariant: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// How.
    pub what: String,
}

/// All that look inside.
pub(crate) struct Invariants {
    known: Known,
    all: Vec<Box<dyn Invariant>>,
}

impl Invariants {
    pub(crate) fn new(configuration: Configuration) -> Self {
        Self {
            known: Known::new(configuration),
            all: vec![
                Box::new(decided_in_order::DecidedInOrder::default()),
                Box::new(agreement::Agreement::default()),
                Box::new(chosen::Chosen),
                Box::new(durable_first::DurableFirst::default()),
                Box::new(one_value_per_ballot::OneValuePerBallot),
                Box::new(own_ballots::OwnBallots::default()),
                Box::new(promise_kept::PromiseKept::default()),
                Box::new(safe_proposal::SafeProposal),
                Box::new(saved_first::SavedFirst::default()),
            ],
        }
    }

    pub(crate) fn look(&mut self, fact: Fact<'_>) -> Result<(), Broken> {
        if let Fact::Durable { voter, record } = fact {
            self.known
                .votes
                .note(&self.known.configuration, voter, record);
        }
        self.known.proposals.note(&fact);
        for invariant in &mut self.all {
            invariant.look(&self.known, &fact).map_err(|what| Broken {
                invariant: invariant.name(),
                source: invariant.source(),
                what,
            })?;
        }
        Ok(())
    }
}
