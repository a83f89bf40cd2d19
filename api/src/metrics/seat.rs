//! Where a thread counts: a line that no other thread writes to meanwhile, so that counting takes no atomic
//! addition, and is exact all the same.
//!
//! Owns who has which line, over all spaces of this process. Never counts.
//!
//! A thread takes a *seat* when it first counts, and leaves it when it ends; the next one goes on from what it
//! left. Those who come while all seats are taken, and those who count while they end, *stand*: several at one line,
//! where they add atomically.
//!
//! A forked child begins with the seats of its parent's threads taken, but for the one that forked: fewer seats, and
//! nothing counted wrong.

use std::cell::Cell;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// Threads that can have a line of their own at one time.
pub(super) const SEATS: usize = 128;

/// Lines that those who stand share.
pub(super) const STANDING: usize = 16;

/// Of a thread that has not counted yet.
const NOWHERE: usize = usize::MAX;

/// One bit for each seat: whether it is taken.
static TAKEN: [AtomicU64; SEATS / 64] = [const { AtomicU64::new(0) }; SEATS / 64];

thread_local! {
    /// This thread's seat; from [`SEATS`] on none.
    static SEAT: Cell<usize> = const { Cell::new(NOWHERE) };
    /// Leaves the seat when the thread ends. Apart, since what is dropped costs more to look at.
    static LEAVES: Leaves = const { Leaves };
}

struct Leaves;

impl Drop for Leaves {
    fn drop(&mut self) {
        // What else is dropped with the thread may still count.
        let seat = SEAT.replace(stand());
        if let Some(word) = TAKEN.get(seat / 64) {
            // Release: whoever has the seat next goes on from what this thread wrote. Pairs with the acquire in
            // `take`.
            word.fetch_and(!(1 << (seat % 64)), Release);
        }
    }
}

/// This thread's seat once it has counted, if it has one; else a number past all seats.
#[inline(always)]
pub(super) fn known() -> usize {
    SEAT.get()
}

/// This thread's seat; or else, past all seats, the line that it stands at.
pub(super) fn find() -> usize {
    if SEAT.get() == NOWHERE {
        // Not while the thread ends: nothing would leave the seat again.
        let seat = LEAVES.try_with(|_| take()).ok().flatten();
        SEAT.set(seat.unwrap_or_else(stand));
    }
    SEAT.get()
}

/// A free seat, if there is one.
fn take() -> Option<usize> {
    TAKEN.iter().enumerate().find_map(|(at, word)| {
        // Acquire: what the thread before counted is there. Pairs with the release in `Leaves::drop`.
        let before = word.fetch_update(Acquire, Relaxed, |taken| {
            (taken != u64::MAX).then(|| taken | (taken + 1))
        });
        before
            .ok()
            .map(|taken| at * 64 + taken.trailing_ones() as usize)
    })
}

/// A line to stand at, as a number past all seats. Those who stand take turns.
fn stand() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: a number.
    SEATS + NEXT.fetch_add(1, Relaxed) % STANDING
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Barrier;
    use std::thread;

    // In one test, since a second would find the seats taken. Others have few of them.
    #[test]
    fn a_seat_is_one_threads_at_a_time_and_free_when_that_has_ended() {
        // More than there are seats.
        let barrier = Barrier::new(SEATS + 20);
        let seats: Vec<usize> = thread::scope(|scope| {
            let sit = || {
                let seat = find();
                barrier.wait();
                assert_eq!(find(), seat);
                seat
            };
            let threads: Vec<_> = (0..SEATS + 20).map(|_| scope.spawn(sit)).collect();
            threads.into_iter().map(|it| it.join().unwrap()).collect()
        });
        let own: Vec<_> = seats.iter().filter(|seat| **seat < SEATS).collect();
        let different: BTreeSet<_> = own.iter().collect();
        assert_eq!(different.len(), own.len(), "taken twice");
        assert!(own.len() > SEATS / 2, "{}", own.len());
        assert!(seats.iter().all(|seat| *seat < SEATS + STANDING));
        // Joined by their handles, which wait for what ends with a thread.
        for _ in 0..3 * SEATS {
            assert!(thread::spawn(find).join().unwrap() < SEATS, "not left");
        }
    }
}
