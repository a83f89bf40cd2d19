//! What a log does: on every disk alike, when the disk refuses, when it is damaged, and wherever the power goes.

mod conformance;
mod crash;
mod damaged;
#[path = "../support/lives.rs"]
mod lives;
mod refused;
mod torn;
#[macro_use]
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;

use sprag_log::{
    ClusterId, Damage, Disk, DiskFaults, DiskFile, Fault, Found, Identity, Log, LogError,
    LogOptions, NoFaults, OpenError, Operation, OptionsError, Position, RealDisk, SimulatedDisk,
    SimulatedFile, Store, SyncJob, UpkeepJob,
};
use sprag_paxos::{Answer, Ballot, DiskId, Entry, NodeId, Record, Slot, Ticket, Vote, Voter};

const CLUSTER: ClusterId = ClusterId(7);
const ME: Voter = Voter {
    node: NodeId(1),
    disk: DiskId(0xd15c),
};
const UNIT: u64 = 4096;
/// One unit for headers, three for records.
const SMALL: LogOptions = LogOptions {
    segment_bytes: 4 * UNIT,
    segments_max: 3,
    slots_max: 1_000,
};

on_every_disk!(
    a_new_log_remembers_nothing_but_its_voter,
    what_was_synced_is_there_after_another_start,
    a_promise_never_goes_back,
    of_a_slot_the_highest_ballot_counts,
    what_is_decided_is_what_was_accepted_or_learned_last,
    records_of_every_size_come_back_over_many_segments,
    a_batch_larger_than_a_segment_is_refused,
    slots_outside_of_the_bounds_are_refused,
    a_full_log_takes_nothing_until_it_is_trimmed,
    trimmed_segments_are_used_again,
    a_trim_counts_for_what_comes_after_it_in_its_batch,
    what_makes_room_is_taken_by_a_full_log_with_all_that_waits_beside_it,
    a_store_gives_a_trim_to_a_full_log_in_as_many_batches_as_it_takes,
    what_nobody_waits_for_is_written_once_there_is_much_of_it,
    what_is_trimmed_stays_decided,
    a_sync_covers_what_was_appended_before_it_began,
    while_the_next_segment_is_made_elsewhere_a_full_one_waits,
    a_disk_is_made_for_one_voter_and_opened_for_no_other,
    options_out_of_bounds_are_named,
);

#[test]
fn what_the_disk_does_may_run_on_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<SyncJob<sprag_log::RealFile>>();
    is_send::<UpkeepJob<RealDisk>>();
    is_send::<Log<RealDisk>>();
}

const IDENTITY: Identity = Identity {
    cluster: CLUSTER,
    voter: ME,
};

fn made<D: Disk>(disk: &D) -> (Log<D>, Found) {
    Log::create(disk, IDENTITY, &SMALL).unwrap();
    opened(disk)
}

fn opened<D: Disk>(disk: &D) -> (Log<D>, Found) {
    Log::open(disk, CLUSTER, ME.node, &SMALL).unwrap()
}

/// How many files of segments there are.
fn segments<D: Disk>(disk: &D) -> usize {
    let names = disk.list().unwrap();
    let is_segment = |name: &&String| name.starts_with("segment-");
    names.iter().filter(is_segment).count()
}

fn ballot(round: u64) -> Ballot {
    Ballot { round, voter: ME }
}

fn vote(round: u64, commands: &[u8]) -> Vote {
    Vote {
        ballot: ballot(round),
        entry: Entry::Commands(commands.into()),
    }
}

fn accepted(slot: u64, round: u64, commands: &[u8]) -> Record {
    Record::Accepted {
        slot: Slot(slot),
        vote: vote(round, commands),
    }
}

fn learned(slot: u64, entry: &[u8]) -> Record {
    let (slot, entry) = (Slot(slot), commands(entry));
    Record::Learned { slot, entry }
}

fn commands(bytes: &[u8]) -> Entry {
    Entry::Commands(bytes.into())
}

fn noop(slot: u64, round: u64) -> Record {
    let vote = Vote {
        ballot: ballot(round),
        entry: Entry::Noop,
    };
    Record::Accepted {
        slot: Slot(slot),
        vote,
    }
}
