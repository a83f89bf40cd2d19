//! Histories of concurrent operations, and whether some order of one after another explains them.
//!
//! The search is that of Wing and Gong (1993) with Lowe's memory of configurations (2017): take any
//! operation that began before every operation still open had ended, ask the sequential specification
//! whether it allows the answer seen, go on; come back to no configuration (set of operations done,
//! state) twice.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

/// What operations do when each runs alone.
pub(crate) trait Specification {
    /// Everything that an operation's answer depends on.
    type State: Clone + Eq + Hash + Debug;
    /// An operation with its arguments.
    type Call: Clone + Debug;
    /// Its answer.
    type Answer: Clone + Debug;

    /// The state after `call` was answered so; `None` if it can't be, from `state`.
    fn step(state: &Self::State, call: &Self::Call, answer: &Self::Answer) -> Option<Self::State>;
}

/// One operation: when it was asked, when it was answered, by a clock that all threads share.
#[derive(Clone, Debug)]
pub(crate) struct Event<C, A> {
    pub(crate) asked: u64,
    pub(crate) answered: u64,
    pub(crate) call: C,
    pub(crate) answer: A,
}

/// At most this many events to a history: a set of them is one word.
pub(crate) const EVENTS_MAX: usize = 64;

/// Whether `events` has an explanation from `initial`.
pub(crate) fn is_linearizable<S: Specification>(
    initial: &S::State,
    events: &[Event<S::Call, S::Answer>],
) -> bool {
    assert!(events.len() <= EVENTS_MAX);
    let all = (1_u128 << events.len()) - 1;
    let mut seen = HashSet::new();
    let mut open = vec![(0_u64, initial.clone())];
    while let Some((done, state)) = open.pop() {
        if u128::from(done) == all {
            return true;
        }
        let left = || (0..events.len()).filter(move |i| done >> i & 1 == 0);
        let first_answer = left().map(|i| events[i].answered).min().unwrap_or(u64::MAX);
        for i in left().filter(|i| events[*i].asked < first_answer) {
            let after = S::step(&state, &events[i].call, &events[i].answer);
            if let Some(next) = after.map(|after| (done | 1 << i, after))
                && seen.insert(next.clone())
            {
                open.push(next);
            }
        }
    }
    false
}
