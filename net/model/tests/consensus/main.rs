//! Small clusters, gone through from end to end.
//!
//! Each model tells how many states it has; see them with `--nocapture`. `SPRAG_SOAK=1` takes the long forms, which want
//! some minutes and several gigabytes.

mod laws;
mod planted;

use sprag_model::{Bounds, Proposal, Report, explore};
use sprag_paxos::{Configuration, DiskId, NodeId, Voter};

/// Bounds of `nodes` nodes, each of which sees as many ticks as `ticks` has for it. A proposal is a node, a slot, a value.
fn bounds(ticks: &[u8], crashes: u8, proposals: &[(usize, u64, &'static str)]) -> Bounds {
    let voter = |index| Voter {
        node: NodeId(index),
        disk: DiskId(1),
    };
    let voters = (0..ticks.len() as u16).map(voter).collect();
    let proposals = proposals
        .iter()
        .map(|&(node, slot, value)| Proposal { node, slot, value });
    Bounds {
        configuration: Configuration::new(voters).unwrap(),
        proposals: proposals.collect(),
        ticks: ticks.to_vec(),
        crashes,
        rots: false,
    }
}

/// Goes through the model of that name, and tells its size.
fn go<const NODES: usize>(name: &str, bounds: &Bounds) -> Report {
    let report = explore::<NODES>(bounds);
    println!(
        "model: {name} {} states, {} steps, {} states of nodes, {} messages",
        report.states, report.steps, report.node_states, report.messages
    );
    report
}

/// Whether the long forms are wanted.
fn is_long() -> bool {
    std::env::var("SPRAG_SOAK").is_ok_and(|value| value == "1")
}
