//! Takes down what threads do.

use crate::history::Event;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

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
