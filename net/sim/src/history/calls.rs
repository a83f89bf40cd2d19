//! The record of what clients asked and were told, and the verdict on it.

use std::collections::{BTreeMap, BTreeSet};

use super::Model;
use super::problem::{Observed, Problem};
use super::search::{Found, search};
use super::violation::{Violation, explain};

/// Every operation of every client, in the order of their events.
#[derive(Clone, Debug)]
pub struct History<M: Model> {
    calls: Vec<Call<M>>,
    /// How many events there are; the next one's place in their order.
    events: usize,
    /// When the last of them happened.
    latest_at: u64,
    /// What operations store, by key: each value once.
    values: BTreeSet<(u64, u64)>,
}

/// One operation of one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call<M: Model> {
    /// Who asked; names the row in a table and orders nothing.
    pub client: u64,
    /// What it was about; keys are independent objects.
    pub key: u64,
    /// What was asked.
    pub operation: M::Operation,
    /// When, in virtual time.
    pub invoked_at: u64,
    /// How it ended.
    pub fate: Fate<M>,
    /// The invocation's place in the order of events.
    pub(super) invoked: usize,
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate<M: Model> {
    /// Nobody was told. It took effect at any time after its invocation, or never.
    Unknown,
    /// The client was told.
    Returned {
        /// What.
        outcome: M::Outcome,
        /// When, in virtual time.
        at: u64,
        /// The response's place in the order of events.
        order: usize,
    },
    /// It certainly had no effect and will have none.
    NeverRan,
}

/// Names a call in the history that recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(usize);

/// Whether a history is linearizable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict<M: Model> {
    /// Each key is.
    Linearizable,
    /// This key isn't.
    Violation(Box<Violation<M>>),
    /// This key's search took more steps than it was allowed, and no other key is known to be in violation. A failure: nothing was shown.
    GaveUp {
        /// The key.
        key: u64,
    },
}

impl<M: Model> Default for History<M> {
    fn default() -> Self {
        Self {
            calls: Vec::new(),
            events: 0,
            latest_at: 0,
            values: BTreeSet::new(),
        }
    }
}

impl<M: Model> History<M> {
    /// Records that a client asks for an operation. Until it is told otherwise, its fate is [`Fate::Unknown`].
    ///
    /// # Panics
    /// If time went back, or if an earlier operation on the key stores the same value: the checker reasons from a value to
    /// the one operation that wrote it.
    pub fn invoke(&mut self, at: u64, client: u64, key: u64, operation: M::Operation) -> CallId {
        if let Some(value) = M::writes(&operation) {
            assert!(
                self.values.insert((key, value)),
                "{value} is stored twice under key {key}"
            );
        }
        let invoked = self.next_event(at);
        let fate = Fate::Unknown;
        self.calls.push(Call {
            client,
            key,
            operation,
            invoked_at: at,
            fate,
            invoked,
        });
        CallId(self.calls.len() - 1)
    }

    /// Records what a client is told.
    ///
    /// # Panics
    /// If time went back, or if the operation has ended.
    pub fn respond(&mut self, at: u64, id: CallId, outcome: M::Outcome) {
        let order = self.next_event(at);
        self.end(id, Fate::Returned { outcome, at, order });
    }

    /// Records that an operation certainly had no effect and will have none. Its value may be stored by another.
    ///
    /// # Panics
    /// If the operation has ended.
    pub fn never_ran(&mut self, id: CallId) {
        self.end(id, Fate::NeverRan);
        let call = &self.calls[id.0];
        if let Some(value) = M::writes(&call.operation) {
            self.values.remove(&(call.key, value));
        }
    }

    /// All operations, by invocation.
    pub fn calls(&self) -> &[Call<M>] {
        &self.calls
    }

    /// Whether every key's operations are linearizable.
    ///
    /// Each key's search takes at most `steps_max` steps, the explanation of a violation about as many again for each
    /// halving of the history. A step costs time and memory in proportion to the operations open at one time; searching
    /// is exponential in those at worst (Gibbons & Korach, "Testing shared memories", 1997) and near one step per
    /// operation where outcomes carry versions. Keys in order; the first violation ends it.
    pub fn check(&self, steps_max: u64) -> Verdict<M> {
        let mut keys: BTreeMap<u64, Vec<Observed<M>>> = BTreeMap::new();
        for (index, call) in self.calls.iter().enumerate() {
            if let Some(observed) = Observed::new(index, call) {
                keys.entry(call.key).or_default().push(observed);
            }
        }
        let mut gave_up = None;
        for (key, observed) in keys {
            let mut steps = steps_max;
            match search(&Problem::new(&observed), &mut steps) {
                Found::Order(_) => {}
                Found::Nothing => {
                    let violation = explain(key, &self.calls, &observed, steps_max);
                    return Verdict::Violation(Box::new(violation));
                }
                Found::GaveUp => gave_up = gave_up.or(Some(key)),
            }
        }
        gave_up.map_or(Verdict::Linearizable, |key| Verdict::GaveUp { key })
    }

    fn next_event(&mut self, at: u64) -> usize {
        assert!(
            at >= self.latest_at,
            "an event at {at} after one at {}",
            self.latest_at
        );
        self.latest_at = at;
        self.events += 1;
        self.events - 1
    }

    fn end(&mut self, id: CallId, fate: Fate<M>) {
        let call = &mut self.calls[id.0];
        assert!(call.fate == Fate::Unknown, "{call:?} ends twice");
        call.fate = fate;
    }
}
