//! A node that goes down at any operation of its disk, over and over, and what its log holds afterwards: nothing that was
//! acknowledged is lost or altered, nothing is invented, and no promise goes back.

mod model;
mod node;

use sprag_paxos::simulation::Bug;

use super::lives::{cut_everywhere, find_each, run_all};
use node::{Node, Trouble};

#[test]
fn wherever_the_power_goes_nothing_acknowledged_is_lost_and_nothing_is_invented() {
    let sum = run_all::<Node>(Trouble::None, 0..200);
    // What a power cut tears was never told of, and is known not to have been.
    assert!(
        sum.acknowledged > 5_000 && sum.trims > 1_000 && sum.unknown == 0,
        "{sum:?}"
    );
}

#[test]
fn after_failed_syncs_nothing_is_taken_for_durable_that_is_not() {
    run_all::<Node>(Trouble::FailedSyncs, 0..200);
}

#[test]
fn what_a_bad_sector_takes_is_unknown_and_never_never() {
    let sum = run_all::<Node>(Trouble::Damage, 0..200);
    assert!(sum.unknown > 0, "{sum:?}");
}

#[test]
fn what_a_write_gone_astray_takes_is_unknown_and_never_never() {
    run_all::<Node>(Trouble::Astray, 0..200);
}

#[test]
fn a_cut_at_each_operation_of_a_workload_is_survived() {
    cut_everywhere::<Node>(Trouble::None);
}

/// Each bug is found by one of the kinds of trouble.
#[test]
fn planted_bugs_are_found() {
    find_each::<Node>(&[
        (Bug::PromiseBeforeDurable, Trouble::None),
        (Bug::CorruptMiddleReadAsEnd, Trouble::Damage),
        (Bug::RecycledRecordTaken, Trouble::None),
        (Bug::SyncRetried, Trouble::FailedSyncs),
        (Bug::TrimBeforeSync, Trouble::None),
        (Bug::SegmentUsedBeforeItsName, Trouble::None),
        (Bug::FoundTakenForDurable, Trouble::FailedSyncs),
        (Bug::OlderVoteTaken, Trouble::Astray),
    ]);
}
