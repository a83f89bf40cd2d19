//! What snapshots do: on every disk alike, when the disk refuses, when it is damaged, and wherever the power goes.

mod conformance;
mod crash;
mod damaged;
#[path = "../support/lives.rs"]
mod lives;
mod refused;
#[macro_use]
#[path = "../support/mod.rs"]
mod support;

use sprag_log::{
    Chunk, ClusterId, Damage, Disk, DiskError, DiskFaults, DiskFile, Fault, Finished, Identity,
    Loaded, Log, LogOptions, NoFaults, OpenError, Operation, RealDisk, SimulatedDisk, SnapshotDone,
    SnapshotError, SnapshotJob, Snapshots,
};
use sprag_paxos::{DiskId, NodeId, Slot, Snapshot, Voter};

const CLUSTER: ClusterId = ClusterId(7);
const BYTES_MAX: u64 = 4 << 20;

on_every_disk!(
    what_was_saved_is_found_at_the_next_start,
    the_newest_two_are_kept,
    one_that_is_asked_for_is_kept_until_it_no_longer_is,
    the_log_may_be_trimmed_up_to_the_last_but_one_or_one_that_was_installed,
    parts_of_any_size_make_the_whole,
    one_that_comes_in_parts_is_installed_in_place_of_all,
    what_comes_out_of_turn_changes_nothing,
    one_that_begins_anew_leaves_nothing_of_what_came_before,
    one_that_is_not_what_its_name_says_is_not_installed,
    one_is_made_at_a_time_and_none_that_is_not_newer,
    one_that_is_too_large_is_neither_made_nor_taken,
    of_one_that_is_gone_the_newest_is_given_instead,
    what_was_never_finished_is_gone_after_the_next_start,
    one_of_another_cluster_or_another_name_is_never_taken,
    a_log_that_is_given_up_takes_its_snapshots_with_it,
);

#[test]
fn what_the_disk_does_may_run_on_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<SnapshotJob<RealDisk>>();
    is_send::<SnapshotDone<RealDisk>>();
    is_send::<Snapshots<RealDisk>>();
}

/// What the state is after a slot, as bytes.
fn content(through: u64) -> Vec<u8> {
    let length = 1_000 + through % 7 * 800;
    (0..length).map(|at| (at * through / 8) as u8).collect()
}

fn opened<D: Disk>(disk: &D, trimmed: u64) -> (Snapshots<D>, Option<Loaded>) {
    Snapshots::open(disk, CLUSTER, Slot(trimmed), BYTES_MAX).unwrap()
}

/// Opened on a disk without any.
fn none<D: Disk>(disk: &D) -> Snapshots<D> {
    let (snapshots, found) = opened(disk, 0);
    assert_eq!(found, None);
    snapshots
}

fn save<D: Disk>(snapshots: &mut Snapshots<D>, through: u64) -> Snapshot {
    let job = snapshots.begin_save(Slot(through), content(through));
    let done = job.unwrap().unwrap().run();
    let Finished::Saved(snapshot) = snapshots.finish(done).unwrap() else {
        panic!()
    };
    assert_eq!(
        (snapshot.through, snapshots.newest()),
        (Slot(through), Some(snapshot))
    );
    snapshot
}

/// One that another voter made.
fn foreign(through: u64) -> Loaded {
    let mut snapshots = none(&SimulatedDisk::new(512, NoFaults));
    Loaded {
        snapshot: save(&mut snapshots, through),
        content: content(through),
    }
}

fn receive<D: Disk>(snapshots: &mut Snapshots<D>, whole: &Loaded) -> Result<u64, SnapshotError> {
    let mut offset = 0;
    for part in whole.content.chunks(700) {
        offset = snapshots.receive(whole.snapshot, offset, part)?;
    }
    Ok(offset)
}

fn install<D: Disk>(snapshots: &mut Snapshots<D>, through: u64) -> Snapshot {
    let whole = foreign(through);
    receive(snapshots, &whole).unwrap();
    let done = snapshots.begin_install().unwrap().unwrap().run();
    assert_eq!(
        snapshots.finish(done),
        Ok(Finished::Installed(whole.clone()))
    );
    assert_eq!(snapshots.newest(), Some(whole.snapshot));
    whole.snapshot
}

/// The files of snapshots, and what they were before.
fn files<D: Disk>(disk: &D) -> Vec<String> {
    let mut names = disk.list().unwrap();
    names.retain(|name| name.starts_with("snapshot"));
    names
}

fn file(through: u64) -> String {
    format!("snapshot-{through:016x}")
}
