//! What the tests of several files share.

use crate::configuration::Configuration;
use crate::options::Options;
use crate::voter::{DiskId, NodeId, Voter};

pub(crate) const ELECTION_NS: u64 = 1_000;
pub(crate) const BEAT_NS: u64 = 100;

/// So many voters, on nodes from 0.
pub(crate) fn voters(count: u16) -> Vec<Voter> {
    let voter = |node| Voter {
        node: NodeId(node),
        disk: DiskId(7),
    };
    (0..count).map(voter).collect()
}

/// The options of the voter at `me`.
pub(crate) fn options(voters: &[Voter], me: usize) -> Options {
    Options {
        me: voters[me],
        configuration: Configuration::new(voters.to_vec()).unwrap(),
        election_ns: ELECTION_NS,
        beat_ns: BEAT_NS,
        window_slots: 4,
        batch_bytes_max: 64,
        pending_bytes_max: 256,
        page_bytes_max: 256,
        seed: 1,
    }
}
