//! The queue of what is due, in the order of virtual time, and what was put in first first.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::world::Event;

#[derive(Debug)]
struct Due {
    at_ns: u64,
    number: u64,
    event: Event,
}

impl Due {
    fn order(&self) -> (u64, u64) {
        (self.at_ns, self.number)
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

/// What is due.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    due: BinaryHeap<Reverse<Due>>,
    pushed: u64,
}

impl Queue {
    pub(crate) fn push(&mut self, at_ns: u64, event: Event) {
        self.pushed += 1;
        let number = self.pushed;
        self.due.push(Reverse(Due {
            at_ns,
            number,
            event,
        }));
    }

    /// Takes the earliest, and when it is due.
    pub(crate) fn pop(&mut self) -> Option<(u64, Event)> {
        let Reverse(due) = self.due.pop()?;
        Some((due.at_ns, due.event))
    }
}
