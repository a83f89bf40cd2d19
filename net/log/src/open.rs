//! How a log is made, opened and given up.

use sprag_paxos::{Answer, Ballot, NodeId, Recovered, Slot, Voter};

use crate::cell::Origin;
use crate::disk::{Disk, DiskError, DiskFile};
use crate::error::OpenError;
use crate::identity::{ClusterId, Identity};
use crate::log::Log;
use crate::options::LogOptions;
use crate::recover::Opening;
use crate::scan::Scan;
use crate::segment::{self, Layout};
use crate::snapshots::file;
use crate::upkeep::{SPARE, prepare};
use crate::vote::{self, VOTE, VOTE_NEW, VoteFile};

/// What a disk remembers. All of it is durable by the time it is returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Who votes on this disk.
    pub voter: Voter,
    /// Set where the disk has lost acceptances and even their slots: each slot above the trimmed may have had one in a
    /// ballot up to this. Such a disk has no vote in a slot until it accepts there in a higher ballot, and doesn't know
    /// what is decided; it is best given up for a new one.
    pub lost: Option<Ballot>,
    /// What the voter starts with; of which snapshot is for the caller to say. Its answers are for slots above the trimmed
    /// only; where nothing is lost, those that it doesn't name are never.
    pub state: Recovered,
}

impl Found {
    /// What is known of the vote in any slot above the trimmed.
    pub fn answer(&self, slot: Slot) -> Answer {
        let unnamed = || self.lost.map_or(Answer::Never, Answer::Unknown);
        self.state
            .answers
            .get(&slot)
            .cloned()
            .unwrap_or_else(unnamed)
    }
}

impl<D: Disk> Log<D> {
    /// Makes a log in a directory without one. What an interrupted making left there is removed.
    ///
    /// The disk id in `identity` must be drawn anew for each call: what a disk of that id promised before is not known
    /// to this one.
    ///
    /// # Errors
    /// [`OpenError::Exists`] and [`OpenError::VoteLost`] where there is a log; [`OpenError::Options`];
    /// [`OpenError::Disk`], after which there is none yet.
    pub fn create(disk: &D, identity: Identity, options: &LogOptions) -> Result<(), OpenError> {
        let layout = options.layout()?;
        match VoteFile::open(disk)? {
            vote::Opened::Missing => {}
            vote::Opened::Bad => return Err(OpenError::VoteLost),
            vote::Opened::Good(vote) => {
                let disk = vote.record().identity.voter.disk.0;
                return Err(OpenError::Exists { disk });
            }
        }
        Self::wipe(disk)?;
        let origin = Origin {
            identity,
            generation: 1,
        };
        prepare(disk, origin, layout)?;
        VoteFile::create(disk, identity)?;
        Ok(())
    }

    /// Gives up the log in a directory, with its snapshots, and with it its vote, for good. Files that are none of theirs
    /// stay.
    ///
    /// # Errors
    /// Whatever the disk says; to be called again.
    pub fn wipe(disk: &D) -> Result<(), DiskError> {
        let names = disk.list()?;
        // The vote goes first, durably: a vote without its log would pass for a voter that accepted nothing.
        if names.iter().any(|name| name == VOTE) {
            disk.remove(VOTE)?;
            disk.sync_directory()?;
        }
        let is_own = |name: &&String| {
            let is_snapshot = file::is_leftover(name) || file::through(name).is_some();
            is_leftover(name) || segment::generation(name).is_some() || is_snapshot
        };
        for name in names.iter().filter(is_own) {
            disk.remove(name)?;
        }
        disk.sync_directory()
    }

    /// Opens a log, finds what it holds, and makes that durable: what is found may be in the system's cache only, from
    /// before a sync that failed.
    ///
    /// Reads all segments once, and what is accepted above the trimmed slots twice; writes the last segment; takes the
    /// memory of two segments, and of all that is accepted.
    ///
    /// # Errors
    /// See [`OpenError`]. A disk that refused may be opened again.
    pub fn open(
        disk: &D,
        cluster: ClusterId,
        node: NodeId,
        options: &LogOptions,
    ) -> Result<(Log<D>, Found), OpenError> {
        let layout = options.layout()?;
        let vote = match VoteFile::open(disk)? {
            vote::Opened::Good(vote) => vote,
            vote::Opened::Bad => return Err(OpenError::VoteLost),
            vote::Opened::Missing => return Err(OpenError::Missing),
        };
        let identity = vote.record().identity;
        if identity.cluster != cluster {
            let (found, expected) = (identity.cluster, cluster);
            return Err(OpenError::OtherCluster { found, expected });
        }
        if identity.voter.node != node {
            let (found, expected) = (identity.voter.node, node);
            return Err(OpenError::OtherNode { found, expected });
        }
        let names = disk.list()?;
        for name in names.iter().filter(|name| is_leftover(name)) {
            disk.remove(name)?;
        }
        let generations = names.iter().filter_map(|name| segment::generation(name));
        let mut scans = Vec::new();
        // Of the wrong length: as good as gone.
        let mut misshapen = Vec::new();
        for generation in generations {
            let file = disk.open(&segment::name(generation))?;
            match Layout::of(file.length()?) {
                Some(layout) => scans.push(Scan::read(
                    file,
                    layout,
                    Origin {
                        identity,
                        generation,
                    },
                )?),
                None => misshapen.push(generation),
            }
        }
        let log = Opening {
            disk: disk.clone(),
            vote,
            options: *options,
            layout,
        };
        log.finish(scans, &misshapen)
    }
}

/// Whether a file is what an interrupted change left behind.
fn is_leftover(name: &str) -> bool {
    name == VOTE_NEW || name == SPARE
}
