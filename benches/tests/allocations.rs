//! How often consensus and its log ask for memory: counted, so that it is the same on every machine.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use sprag_benches::consensus::{BATCH, Cluster, batch};
use sprag_log::{ClusterId, Identity, Log, LogOptions, RealDisk};
use sprag_paxos::{Ballot, DiskId, Entry, NodeId, Record, Slot, Vote, Voter};

const BATCHES: usize = 1024;

/// The system's allocator, which counts what this thread asks of it.
struct Counting;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // What a thread asks for while it ends is of no interest.
    let _ = ASKED.try_with(|asked| asked.set(asked.get() + 1));
}

// SAFETY: everything is handed on to the system's allocator as it came; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: by this function's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: by this function's contract.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: by this function's contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn three_replicas_allocate_once_for_a_batch_of_64_commands() {
    let mut cluster = Cluster::elected().expect("the first replica leads");
    let batch = batch();
    for _ in 0..BATCHES {
        cluster.commit(&batch).expect("it still leads");
    }
    let before = ASKED.get();
    for _ in 0..BATCHES {
        cluster.commit(&batch).expect("it still leads");
    }
    let allocations = ASKED.get() - before;
    assert_eq!(cluster.decided(), 2 * BATCHES * BATCH);
    // The bytes of each entry, once for all three replicas; and now and then more room in one of their logs.
    let batches = BATCHES as u64;
    assert!(
        (batches..=batches + 3).contains(&allocations),
        "{allocations} allocations for {batches} batches: {} per command, of at most 0.2",
        allocations as f64 / (BATCHES * BATCH) as f64
    );
}

#[test]
fn a_batch_of_the_log_asks_for_memory_once_to_be_synced_and_never_to_be_appended() {
    let directory = tempfile::tempdir().unwrap();
    let disk = RealDisk::open(directory.path()).unwrap();
    let options = LogOptions {
        segment_bytes: 4 << 20,
        ..LogOptions::default()
    };
    let (cluster, node) = (ClusterId(1), NodeId(1));
    let voter = Voter {
        node,
        disk: DiskId(1),
    };
    Log::create(&disk, Identity { cluster, voter }, &options).unwrap();
    let (mut log, _) = Log::open(&disk, cluster, node, &options).unwrap();
    let entry = Entry::Commands([7; 200].into());
    let batch = |first: u64| {
        let accepted = |slot| Record::Accepted {
            slot: Slot(slot),
            vote: Vote {
                ballot: Ballot { round: 1, voter },
                entry: entry.clone(),
            },
        };
        (first..first + 64).map(accepted).collect::<Vec<_>>()
    };
    // What grows has grown.
    log.append(&batch(1)).unwrap();
    log.append(&batch(4_000)).unwrap();
    log.sync().unwrap();
    for round in 0..20 {
        let batch = batch(65 + round * 64);
        let before = ASKED.get();
        log.append(&batch).unwrap();
        let after_append = ASKED.get();
        log.sync().unwrap();
        assert_eq!((after_append - before, ASKED.get() - after_append), (0, 1));
    }
}
