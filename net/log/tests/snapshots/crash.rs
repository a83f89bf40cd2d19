//! A node that goes down at any operation of its disk, over and over, while it appends, snapshots, installs and trims: some
//! snapshot reaches up to what is trimmed, it is what was saved, and with the log it makes all that was acknowledged.

mod node;

use sprag_paxos::simulation::Bug;

use super::lives::{cut_everywhere, find_each, run_all};
use node::{Node, Trouble};

#[test]
fn wherever_the_power_goes_a_snapshot_and_the_log_make_all_that_was_acknowledged() {
    let sum = run_all::<Node>(Trouble::None, 0..100);
    let least = [
        sum.acknowledged,
        sum.saved,
        sum.installed,
        sum.trims,
        sum.full,
    ];
    assert!(least.iter().all(|count| *count > 500), "{sum:?}");
}

#[test]
fn after_failed_syncs_no_snapshot_is_taken_for_durable_that_is_not() {
    run_all::<Node>(Trouble::FailedSyncs, 0..100);
}

#[test]
fn without_room_for_a_snapshot_all_else_goes_on() {
    let sum = run_all::<Node>(Trouble::NoRoom, 0..100);
    assert!(sum.no_room > 500 && sum.trims > 500, "{sum:?}");
}

#[test]
fn a_snapshot_that_goes_bad_costs_nothing_that_was_acknowledged() {
    let sum = run_all::<Node>(Trouble::Damage, 0..100);
    assert!(sum.damaged > 200 && sum.trims > 500, "{sum:?}");
}

#[test]
fn a_cut_at_each_operation_of_a_workload_is_survived() {
    cut_everywhere::<Node>(Trouble::None);
}

/// Each bug is found by one of the kinds of trouble.
#[test]
fn planted_bugs_are_found() {
    find_each::<Node>(&[
        (Bug::SnapshotCountedBeforeItsName, Trouble::None),
        (Bug::SnapshotNotChecked, Trouble::None),
        (Bug::SnapshotNotChecked, Trouble::Damage),
        (Bug::TrimBeforeSync, Trouble::None),
    ]);
}
