//! Threads that start together, to make a history.

use std::sync::Barrier;

pub(crate) const THREADS: usize = 4;

/// Runs `act` in each of several threads that start together.
pub(crate) fn at_once(act: impl Fn(usize, &mut fastrand::Rng) + Sync, seed: u64) {
    let barrier = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (act, barrier) = (&act, &barrier);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed * THREADS as u64 + thread as u64);
                barrier.wait();
                act(thread, &mut random);
            });
        }
    });
}
