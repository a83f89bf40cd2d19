//! A node that goes down at any operation of its disk, over and over, while it appends, snapshots, installs and trims: some
//! snapshot reaches up to what is trimmed, it is what was saved, and with the log it makes all that was acknowledged.

mod node;

use fastrand::Rng;
use sprag_paxos::simulation::{Bug, plant};

use node::{Counts, Node, Trouble};

fn run(seed: u64, trouble: Trouble) -> Result<Counts, String> {
    let mut node = Node::new(seed, trouble);
    for _ in 0..12 {
        let until_cut = if node.rng.u8(..) < 200 {
            node.rng.u64(..200)
        } else {
            u64::MAX
        };
        node.live(until_cut, 100)
            .map_err(|error| format!("seed {seed}, {trouble:?}: {error}"))?;
    }
    Ok(node.model.counts)
}

fn run_all(trouble: Trouble) -> Counts {
    let mut sum = Counts::default();
    for seed in 0..100 {
        let counts = run(seed, trouble).unwrap_or_else(|error| panic!("{error}"));
        sum.acknowledged += counts.acknowledged;
        sum.saved += counts.saved;
        sum.installed += counts.installed;
        sum.trims += counts.trims;
        sum.damaged += counts.damaged;
        sum.full += counts.full;
        sum.no_room += counts.no_room;
    }
    println!("{trouble:?}: {sum:?}");
    sum
}

#[test]
fn wherever_the_power_goes_a_snapshot_and_the_log_make_all_that_was_acknowledged() {
    let sum = run_all(Trouble::None);
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
    run_all(Trouble::FailedSyncs);
}

#[test]
fn without_room_for_a_snapshot_all_else_goes_on() {
    let sum = run_all(Trouble::NoRoom);
    assert!(sum.no_room > 500 && sum.trims > 500, "{sum:?}");
}

#[test]
fn a_snapshot_that_goes_bad_costs_nothing_that_was_acknowledged() {
    let sum = run_all(Trouble::Damage);
    assert!(sum.damaged > 200 && sum.trims > 500, "{sum:?}");
}

/// Workloads, cut at each of their operations; what survives of the unsynced differs from cut to cut.
#[test]
fn a_cut_at_each_operation_of_a_workload_is_survived() {
    for workload in 0..2 {
        for cut in 0.. {
            let mut node = Node::new(workload, Trouble::None);
            let lived = node.live(cut, 100);
            let is_over = !node.world.borrow().is_off;
            node.rng = Rng::with_seed(cut);
            lived
                .and_then(|()| node.live(u64::MAX, 100))
                .and_then(|()| node.live(u64::MAX, 0))
                .unwrap_or_else(|error| panic!("workload {workload}, cut {cut}: {error}"));
            if is_over {
                assert!(cut > 100, "a short workload: {cut}");
                break;
            }
        }
    }
}

/// Each bug is found by one of the kinds of trouble.
#[test]
fn planted_bugs_are_found() {
    for (bug, trouble) in [
        (Bug::SnapshotCountedBeforeItsName, Trouble::None),
        (Bug::SnapshotNotChecked, Trouble::None),
        (Bug::SnapshotNotChecked, Trouble::Damage),
        (Bug::TrimBeforeSync, Trouble::None),
    ] {
        plant(Some(bug));
        let mut found = (0..600)
            .map(|seed| run(seed, trouble))
            .filter_map(Result::err);
        let first = found.next();
        plant(None);
        println!("{bug:?} under {trouble:?}: {first:?}");
        assert!(first.is_some(), "{bug:?} was not found under {trouble:?}");
    }
}
