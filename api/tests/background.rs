//! What the one thread behind a space owes to those who wait and to those who hold.

use sprag::{KeepAlive, Lock, ManualClock, Space};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Far less than a renewal of [`LONG`] is away, far more than a probe.
const SOON: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_mins(1);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls the lock's future until it is ready, or until `SOON` is over.
fn acquires_soon(lock: &Lock<'_>) -> bool {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(lock.acquire_async());
    let end = Instant::now() + SOON;
    while Instant::now() < end {
        if let Poll::Ready(hold) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            hold.unwrap().release().unwrap();
            return true;
        }
        std::thread::park_timeout(end.saturating_duration_since(Instant::now()));
    }
    false
}

// property 4
#[test]
fn a_future_behind_a_holder_that_is_late_is_woken_though_no_renewal_is_due_for_long() {
    let space = Space::open("mem:").unwrap();
    let mut kept = space
        .lock("kept")
        .unwrap()
        .ttl(LONG)
        .unwrap()
        .acquire()
        .unwrap();
    kept.keep_alive(KeepAlive::default()).unwrap();
    // Meanwhile the thread falls asleep until the renewal.
    let busy = space.lock("kept").unwrap();
    assert!(
        busy.acquire_timeout(Duration::from_millis(200))
            .unwrap()
            .is_none()
    );
    let late = space.lock("late").unwrap();
    let ttl = Duration::from_millis(50);
    std::mem::forget(late.clone().ttl(ttl).unwrap().acquire().unwrap());
    assert!(acquires_soon(&late));
}

// property 5
#[test]
fn a_broken_lock_is_told_of_though_no_renewal_is_due_for_long() {
    let space = Space::open("mem:").unwrap();
    let lock = space.lock("kept").unwrap().ttl(LONG).unwrap();
    let mut kept = lock.acquire().unwrap();
    let (sender, receiver) = channel();
    kept.keep_alive(KeepAlive {
        on_lost: Some(Arc::new(move || sender.send(()).unwrap())),
        ..KeepAlive::default()
    })
    .unwrap();
    space.break_lock("kept").unwrap();
    receiver.recv_timeout(SOON).unwrap();
    assert!(!kept.is_valid());
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        std::panic::resume_unwind(Box::new("a waker that panics"));
    }
}

// property 5
#[test]
fn a_waker_that_panics_does_not_end_the_renewal_of_holds() {
    let clock = ManualClock::new();
    let space = Space::builder().clock(&clock).open("mem:").unwrap();
    let lock = space.lock("kept").unwrap().ttl(LONG).unwrap();
    let mut kept = lock.acquire().unwrap();
    kept.keep_alive(KeepAlive::default()).unwrap();
    let mut future = pin!(lock.acquire_async());
    let waker = Waker::from(Arc::new(Panics));
    let mut context = Context::from_waker(&waker);
    assert!(future.as_mut().poll(&mut context).is_pending());
    let end = Instant::now() + SOON;
    for _ in 0..10 {
        clock.advance(LONG / 2);
        while kept.lease_left() < LONG {
            assert!(Instant::now() < end, "it is renewed no more");
            std::thread::yield_now();
        }
    }
}
