//! How often three replicas ask for memory: counted, so that it is the same on every machine.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use sprag_benches::consensus::{BATCH, Cluster, batch};

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
