//! Makes loom explore what it would leave out: for models only.
//!
//! loom runs a store (or exchange) before an earlier access of another thread only if that was the
//! *last* access of the word. So a thread that loads a word before it exchanges it hides every load
//! that others did before its own, and most of the engine's loops do just that. Here each word has,
//! for each thread of a model, one more atomic: a thread's load touches its own, a store those of
//! all others. Every touch is an exchange, so none hides another, and loads still do not depend on
//! loads. The touches are relaxed and add no ordering between threads.

use loom::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::cell::Cell;

std::thread_local! {
    // loom runs all threads of a model on the thread that checks it.
    static THREADS: Cell<usize> = const { Cell::new(2) };
}

/// Says how many threads the models checked by this thread have, the main one included.
pub fn set_threads(threads: usize) {
    THREADS.set(threads);
}

pub(super) struct Turns(Vec<AtomicU8>);

impl Turns {
    pub(super) fn new() -> Self {
        Self((0..THREADS.get()).map(|_| AtomicU8::new(0)).collect())
    }

    /// Comes before a load of the word.
    pub(super) fn before_load(&self) {
        self.0[this_thread()].fetch_add(0, Relaxed);
    }

    /// Makes a store to the word, or an exchange of it, by `act`. Others have their chance to go first
    /// at the touches, so the store itself is no more a place to look for one: that halves a model.
    pub(super) fn store<R>(&self, act: impl FnOnce() -> R) -> R {
        let this = this_thread();
        for (thread, turn) in self.0.iter().enumerate() {
            if thread != this {
                turn.fetch_add(0, Relaxed);
            }
        }
        loom::stop_exploring();
        let result = act();
        loom::explore();
        result
    }
}

/// The number of the calling thread: 0 is the main one.
fn this_thread() -> usize {
    loom::thread_local! {
        static NUMBER: usize = {
            // The identifier's own text is the only way to its number.
            let id = format!("{:?}", loom::thread::current().id());
            id.chars().filter_map(|c| c.to_digit(10)).fold(0, |n, digit| n * 10 + digit as usize)
        };
    }
    NUMBER.with(|number| *number)
}
