//! Runs threads, and takes down what they do.

use crate::history::Event;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};

/// The operations of several threads, with the moments of their questions and answers.
pub(crate) struct Recorder<C, A> {
    clock: AtomicU64,
    events: Mutex<Vec<Event<C, A>>>,
}

impl<C, A: Clone> Recorder<C, A> {
    pub(crate) fn new() -> Self {
        Self {
            clock: AtomicU64::new(0),
            events: Mutex::new(Vec::new()),
        }
    }

    /// Does `act` and takes it down as `call`, with its answer.
    pub(crate) fn record(&self, call: C, act: impl FnOnce() -> A) -> A {
        // SeqCst: the two readings enclose the act in the one order that all threads agree on.
        let asked = self.clock.fetch_add(1, Ordering::SeqCst);
        let answer = act();
        let answered = self.clock.fetch_add(1, Ordering::SeqCst);
        self.events.lock().unwrap().push(Event {
            asked,
            answered,
            call,
            answer: answer.clone(),
        });
        answer
    }

    pub(crate) fn into_events(self) -> Vec<Event<C, A>> {
        self.events.into_inner().unwrap()
    }
}

/// How many threads a history is of.
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
