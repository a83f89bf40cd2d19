//! The queue of a lock, step by step: turns, and those who let theirs lie.
#![cfg(not(loom))]

mod support;

use sprag_core::lock::{Attempt, Grant, Released};
use sprag_core::region::Caps;
use sprag_core::waiter::{PATIENCE_NS, Poll, Ticket, Wake};
use sprag_core::{Engine, Name, SessionId};
use support::engine_with_session;

const LEASE_NS: u64 = 3_600_000_000_000;

struct Queue {
    engine: Engine,
    by: SessionId,
    name: Name,
}

impl Queue {
    fn new() -> Self {
        let (engine, by) = engine_with_session(Caps::default());
        let name = engine.lock_name(b"lock").unwrap();
        Self { engine, by, name }
    }

    fn hold(&self, now_ns: u64) -> Option<Grant> {
        let attempt = self
            .engine
            .try_acquire(&self.name, self.by, now_ns, LEASE_NS);
        match attempt.unwrap() {
            Attempt::Granted(grant) => Some(grant),
            Attempt::Busy => None,
        }
    }

    fn enqueue(&self, now_ns: u64) -> Ticket {
        let ticket = self.engine.enqueue(&self.name, self.by, now_ns, u64::MAX);
        ticket.unwrap()
    }

    /// Looks without and with a probe alike, but for the wake that a probe passes on.
    fn poll(&self, ticket: &Ticket, now_ns: u64, probe: bool) -> Result<Grant, Option<Wake>> {
        let poll = self
            .engine
            .poll(ticket, &self.name, self.by, now_ns, LEASE_NS, probe);
        match poll.unwrap() {
            Poll::Granted { grant, .. } => Ok(grant),
            Poll::Waiting { wake, .. } => Err(wake),
            Poll::Moved | Poll::Lost | Poll::Deadlock(_) => {
                panic!("a lock with a queue was reclaimed")
            }
        }
    }

    /// Frees the lock; the word of whom to wake, asleep or not.
    fn release(&self, grant: Grant, now_ns: u64) -> Option<Wake> {
        match self.engine.release(&grant, || now_ns) {
            Released::Done { wake } => wake,
            Released::NotHeld => panic!("only the holder"),
        }
    }

    fn signal(&self, ticket: &Ticket) -> u32 {
        self.engine.signal(ticket).get()
    }
}

#[test]
fn a_stopped_head_costs_those_behind_it_their_patience_once_and_has_its_place_back_after() {
    let queue = Queue::new();
    let holder = queue.hold(1).unwrap();
    let [stopped, second, third] = [(); 3].map(|()| queue.enqueue(1));
    let signalled = queue.signal(&stopped);
    assert!(queue.release(holder, 2_000).is_some());
    assert_ne!(queue.signal(&stopped), signalled, "it is the head's turn");

    // property 15: the head lets the lock lie, and the next one has it after the stated bound.
    let early_ns = 2_000 + PATIENCE_NS - 1_000;
    assert!(queue.poll(&second, early_ns, false).is_err(), "too early");
    assert!(queue.poll(&third, early_ns, false).is_err(), "it looks");
    let late_ns = 2_000 + PATIENCE_NS;
    let grant = queue.poll(&second, late_ns, false).unwrap();

    // The one after it, and a newcomer, wait for nothing.
    let signalled = queue.signal(&third);
    assert!(queue.release(grant, late_ns).is_some());
    assert_ne!(queue.signal(&third), signalled, "it is the next one's turn");
    let grant = queue.poll(&third, late_ns, false).unwrap();
    assert_eq!(
        queue.release(grant, late_ns),
        None,
        "nobody is there to wake"
    );
    let grant = queue.hold(late_ns).expect("nobody is there to wait for");

    // It goes on, and is first in the queue again.
    let fourth = queue.enqueue(late_ns);
    assert!(queue.poll(&stopped, late_ns, true).is_err(), "held");
    queue.release(grant, late_ns);
    assert!(queue.poll(&fourth, late_ns, false).is_err(), "not its turn");
    let grant = queue.poll(&stopped, late_ns, false).unwrap();
    assert!(queue.release(grant, late_ns).is_some());
    assert!(queue.poll(&fourth, late_ns, false).is_ok());
}

#[test]
fn one_who_joins_the_queue_of_a_lock_that_lies_free_has_its_own_time() {
    let queue = Queue::new();
    let holder = queue.hold(1).unwrap();
    // It gives up, and nobody clears up after it.
    let _gone = queue
        .engine
        .enqueue(&queue.name, queue.by, 1, 1_000)
        .unwrap();
    queue.release(holder, 2);
    let joined = queue.enqueue(10 * PATIENCE_NS);
    assert_eq!(
        queue.hold(10 * PATIENCE_NS),
        None,
        "it has been there for no time"
    );
    assert!(queue.poll(&joined, 10 * PATIENCE_NS, false).is_ok());
}

// property 15
#[test]
fn all_who_are_stopped_are_passed_over_at_once_and_nobody_who_looks() {
    let queue = Queue::new();
    let holder = queue.hold(1).unwrap();
    let [_one, _two, three, last] = [(); 4].map(|()| queue.enqueue(1));
    queue.release(holder, 2_000);
    assert!(queue.poll(&three, 2_000 + PATIENCE_NS / 2, true).is_err());

    let late_ns = 2_000 + PATIENCE_NS;
    let signalled = queue.signal(&three);
    let wake = queue.poll(&last, late_ns, false).unwrap_err();
    assert!(wake.is_some(), "the third is told of its turn");
    assert_ne!(queue.signal(&three), signalled);
    // A newcomer doesn't come before it either.
    assert_eq!(queue.hold(late_ns), None);
    assert!(queue.poll(&three, late_ns, true).is_ok());
}

#[test]
fn one_who_was_passed_over_and_gives_up_leaves_nothing_behind() {
    let queue = Queue::new();
    let holder = queue.hold(1).unwrap();
    let stopped = queue.enqueue(1);
    queue.release(holder, 2_000);
    let grant = queue
        .hold(2_000 + PATIENCE_NS)
        .expect("its patience is over");
    // property 6
    queue.engine.cancel(stopped, 2_000 + PATIENCE_NS, |_| {});
    assert_eq!(queue.release(grant, 2_000 + PATIENCE_NS), None);
    let cap = queue.engine.region().caps().waiters;
    let all: Vec<Ticket> = (0..cap).map(|_| queue.enqueue(2_000)).collect();
    assert_eq!(all.len(), cap as usize, "every slot is free again");
}
