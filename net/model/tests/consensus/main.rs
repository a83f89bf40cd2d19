//! Small clusters, gone through from end to end.
//!
//! Each model tells how many states it has; see them with `--nocapture`.

mod invariants;
mod planted;

use sprag_model::{Bounds, Proposal, Report, explore};
use sprag_paxos::{Configuration, DiskId, NodeId, Voter};

/// Bounds of three nodes: how many ticks and crashes each may see, and what each is asked for.
fn bounds(ticks: [u8; 3], crashes: [u8; 3], proposals: &[(usize, &'static str)]) -> Bounds {
    let voter = |index| Voter {
        node: NodeId(index),
        disk: DiskId(1),
    };
    let proposals = proposals
        .iter()
        .map(|&(node, command)| Proposal { node, command });
    Bounds {
        configuration: Configuration::new((0..3).map(voter).collect()).unwrap(),
        proposals: proposals.collect(),
        ticks: ticks.to_vec(),
        crashes: crashes.to_vec(),
        states_max: usize::MAX,
        rots: false,
    }
}

/// Goes through the model of that name, and tells its size.
fn go(name: &str, bounds: &Bounds) -> Report {
    let report = explore::<3>(bounds);
    println!(
        "model: {name} {} states, {} steps, {} states of nodes, {} messages",
        report.states, report.steps, report.node_states, report.messages
    );
    report
}
