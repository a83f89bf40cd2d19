//! The queue of what is due, in the order of virtual time, and what was put in first first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::world::Event;

/// When something is due, its number in the order of being put in, and its place among the events.
type Due = (u64, u64, usize);

/// What is due. The events lie apart: a heap moves what it holds again and again.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    due: BinaryHeap<Reverse<Due>>,
    events: Vec<Option<Event>>,
    /// Places without an event.
    free: Vec<usize>,
    pushed: u64,
}

impl Queue {
    pub(crate) fn push(&mut self, at_ns: u64, event: Event) {
        self.pushed += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() - 1
        });
        self.events[place] = Some(event);
        self.due.push(Reverse((at_ns, self.pushed, place)));
    }

    /// Takes the earliest, and when it is due.
    pub(crate) fn pop(&mut self) -> Option<(u64, Event)> {
        let Reverse((at_ns, _, place)) = self.due.pop()?;
        self.free.push(place);
        self.events[place].take().map(|event| (at_ns, event))
    }
}
