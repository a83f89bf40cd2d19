//! How a cluster is founded: its nodes learn each other's disks, bind themselves to deciding together, and vote only once
//! all have.
//!
//! ```text
//!                every node's disk is known             every one of them says that it is bound to the same
//!    unbound ────────────────────────────────► bound ──────────────────────────────────────────────────────► founded
//! ```
//!
//! Which nodes those are is in the certificates, and a node that is told of fewer or of more doesn't start: so no two sets of
//! nodes found the same cluster, each without the other. Both steps are durable before anything is said of them. A disk binds itself
//! once, so of two sets of voters that share a disk at most one is ever founded: each voter of that one is bound to it. What
//! isn't told apart are two machines with the certificate of the same node, for each node, of which neither knows the others.
//! A node whose disk was lost has another disk, to which nobody is bound, and so no vote. From then on who votes is the log's
//! business.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use prost::Message;
use rapidhash::v3::rapidhash_v3;
use sprag_log::{ClusterId, Disk, DiskError, DiskFile, Fault};
use sprag_paxos::{Configuration, NodeId, Voter};

use crate::options::Nodes;
use crate::peer_message::decode_voters;
use crate::wire;

pub(crate) const VOTERS: &str = "voters";
const VOTERS_NEW: &str = "voters.new";

/// The most that the file can have: a checksum, and the voters.
const VOTERS_BYTES_MAX: u64 = 4_096;
const CHECKSUM_BYTES: usize = 8;

/// The file's content, after its checksum.
#[derive(Clone, PartialEq, Eq, Message)]
struct Content {
    #[prost(fixed64, tag = "1")]
    cluster: u64,
    #[prost(message, required, tag = "2")]
    me: wire::Voter,
    #[prost(message, repeated, tag = "3")]
    voters: Vec<wire::Voter>,
    #[prost(bool, tag = "4")]
    is_founded: bool,
}

/// Why a node can't take part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FoundingError {
    /// The disk refused.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The file with the voters can't be read, or is of another disk.
    #[error("the file `voters` in the data directory {0}; restore it, or give the node's disk up")]
    File(&'static str),
    /// The others decide with another disk of this node.
    #[error(
        "node {node} is known to node {of} by disk {known:x}, and has disk {own:x}: what was promised on a lost disk is forgotten, so another has no vote; restore the disk"
    )]
    Stranger {
        /// This node.
        node: u16,
        /// Who knows it.
        of: u16,
        /// By which disk; 0 if by none.
        known: u64,
        /// The disk that it has.
        own: u64,
    },
    /// Another node is bound to other nodes than this one is told of.
    #[error(
        "node {of} founds a cluster of {theirs}, and this node is told of one of {own}; start both with the same nodes"
    )]
    OtherNodes {
        /// The other.
        of: u16,
        /// Whom it founds with.
        theirs: Nodes,
        /// Whom this one would found with.
        own: Nodes,
    },
    /// Two nodes bound themselves to deciding with different voters, so the cluster can never be founded.
    #[error(
        "node {of} is bound to the voters {theirs}, and this one to {own}, so this cluster can never be founded; nothing was decided yet: empty the data directory of every node, then start them"
    )]
    Torn {
        /// The other.
        of: u16,
        /// What it is bound to.
        theirs: Voters,
        /// What this one is bound to.
        own: Voters,
    },
}

/// Some voters, to be named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Voters(pub Vec<Voter>);

impl fmt::Display for Voters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let voters: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&voters.join(", "))
    }
}

/// How far a node has come.
#[derive(Debug)]
pub(crate) struct Founding {
    cluster: ClusterId,
    me: Voter,
    /// Who founds: each node, and its disk once that is known.
    nodes: BTreeMap<NodeId, Option<Voter>>,
    /// The voters that this node is bound to, ascending; none yet.
    bound: Vec<Voter>,
    /// Which of those have said that they are bound to the same.
    agreed: BTreeSet<NodeId>,
    is_founded: bool,
}

impl Founding {
    /// As the disk has it.
    pub(crate) fn open<D: Disk>(
        disk: &D,
        cluster: ClusterId,
        me: Voter,
        others: impl Iterator<Item = NodeId>,
    ) -> Result<Self, FoundingError> {
        let mut nodes: BTreeMap<_, _> = others.map(|node| (node, None)).collect();
        nodes.insert(me.node, Some(me));
        let mut founding = Self {
            cluster,
            me,
            nodes,
            bound: Vec::new(),
            agreed: BTreeSet::new(),
            is_founded: false,
        };
        match disk.open(VOTERS) {
            Err(error) if error.fault == Fault::NotFound => {}
            Err(error) => return Err(error.into()),
            Ok(file) => founding.read(&file)?,
        }
        Ok(founding)
    }

    /// Goes as far as what is known allows; whether there is something new to tell.
    pub(crate) fn go_on<D: Disk>(&mut self, disk: &D) -> Result<bool, FoundingError> {
        let mut is_news = false;
        if self.bound.is_empty() {
            let known: Option<Vec<Voter>> = self.nodes.values().copied().collect();
            let Some(voters) = known else {
                return Ok(false);
            };
            self.bound = voters;
            self.write(disk)?;
            is_news = true;
        }
        let has_agreed = |voter: &Voter| *voter == self.me || self.agreed.contains(&voter.node);
        if !self.is_founded && self.bound.iter().all(has_agreed) {
            self.is_founded = true;
            self.write(disk)?;
            is_news = true;
        }
        Ok(is_news)
    }

    /// Another node told who it is and what it is bound to.
    pub(crate) fn heard(&mut self, voter: Voter, bound: &[Voter]) -> Result<(), FoundingError> {
        let of = voter.node;
        if bound.is_empty() {
            if self.bound.is_empty()
                && let Some(known) = self.nodes.get_mut(&of)
            {
                *known = Some(voter);
            }
            return Ok(());
        }
        let known = bound.iter().find(|other| other.node == self.me.node);
        if known != Some(&self.me) {
            // Whoever came with another founding: this one's is for good.
            if self.is_founded {
                return Ok(());
            }
            return Err(FoundingError::Stranger {
                node: self.me.node.0,
                of: of.0,
                known: known.map_or(0, |voter| voter.disk.0),
                own: self.me.disk.0,
            });
        }
        if self.bound.is_empty() {
            let theirs: Vec<NodeId> = bound.iter().map(|voter| voter.node).collect();
            let own: Vec<NodeId> = self.nodes.keys().copied().collect();
            if theirs != own {
                let (of, theirs, own) = (of.0, Nodes(theirs), Nodes(own));
                return Err(FoundingError::OtherNodes { of, theirs, own });
            }
            // Whom that one has heard of, this one need not hear.
            for voter in bound {
                if let Some(known) = self.nodes.get_mut(&voter.node) {
                    *known = Some(*voter);
                }
            }
            return Ok(());
        }
        // What a voter that this node isn't bound to says is no vote, and nothing that is kept.
        if !self.bound.contains(&voter) {
            return Ok(());
        }
        if self.bound == bound {
            self.agreed.insert(of);
        } else if !self.is_founded {
            let (of, theirs) = (of.0, Voters(bound.to_vec()));
            let own = Voters(self.bound.clone());
            return Err(FoundingError::Torn { of, theirs, own });
        }
        Ok(())
    }

    /// What this node tells of itself.
    pub(crate) fn hello(&self) -> wire::PeerFrame {
        let hello = wire::PeerHello {
            version: wire::VERSION,
            cluster: self.cluster.0,
            voter: self.me.into(),
            bound: self.bound.iter().copied().map(Into::into).collect(),
        };
        wire::PeerFrame {
            kind: Some(wire::PeerKind::Hello(hello)),
        }
    }

    /// For whom it waits: to be heard of, and then to be bound to the same.
    pub(crate) fn awaited(&self) -> Nodes {
        let unknown = self.nodes.iter().filter(|(_, voter)| voter.is_none());
        let unknown = unknown.map(|(node, _)| *node);
        let others = self.bound.iter().map(|voter| voter.node);
        let has_not_agreed = |node: &NodeId| *node != self.me.node && !self.agreed.contains(node);
        Nodes(if self.bound.is_empty() {
            unknown.collect()
        } else {
            others.filter(has_not_agreed).collect()
        })
    }

    /// Who votes, once that is founded.
    pub(crate) fn voters(&self) -> Option<&[Voter]> {
        self.is_founded.then_some(&self.bound)
    }

    fn read(&mut self, file: &impl DiskFile) -> Result<(), FoundingError> {
        let length = file.length()?;
        if length < CHECKSUM_BYTES as u64 || length > VOTERS_BYTES_MAX {
            return Err(FoundingError::File("has no length of such a file"));
        }
        let mut bytes = vec![0; length as usize];
        file.read(0, &mut bytes)?;
        let (sum, content) = bytes.split_at(CHECKSUM_BYTES);
        if sum != rapidhash_v3(content).to_le_bytes() {
            return Err(FoundingError::File("is damaged"));
        }
        let damaged = FoundingError::File("is of another version");
        let Ok(content) = Content::decode(content) else {
            return Err(damaged);
        };
        let Ok(voters) = decode_voters(&content.voters) else {
            return Err(damaged);
        };
        if content.cluster != self.cluster.0
            || content.me != self.me.into()
            || voters.is_empty()
            || Configuration::new(voters.clone()).is_err()
        {
            return Err(FoundingError::File("is of another disk"));
        }
        self.bound = voters;
        self.is_founded = content.is_founded;
        Ok(())
    }

    fn write<D: Disk>(&self, disk: &D) -> Result<(), DiskError> {
        let content = Content {
            cluster: self.cluster.0,
            me: self.me.into(),
            voters: self.bound.iter().copied().map(Into::into).collect(),
            is_founded: self.is_founded,
        };
        let content = content.encode_to_vec();
        let mut bytes = rapidhash_v3(&content).to_le_bytes().to_vec();
        bytes.extend(content);
        match disk.remove(VOTERS_NEW) {
            Err(error) if error.fault != Fault::NotFound => return Err(error),
            _ => {}
        }
        let file = disk.create(VOTERS_NEW, bytes.len() as u64)?;
        file.write(0, &bytes)?;
        file.sync()?;
        disk.rename(VOTERS_NEW, VOTERS)?;
        disk.sync_directory()
    }
}

#[cfg(test)]
mod tests;
