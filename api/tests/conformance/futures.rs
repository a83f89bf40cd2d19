//! The future form of waiting.

use super::block_on::{block_on, poll_once, waker};
use super::tier::Tier;
use super::{until, waiters};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

pub(crate) fn a_future_is_ready_at_once_when_the_lock_is_free(tier: &impl Tier) {
    let space = tier.space();
    let lock = space.lock("a").unwrap();
    let Poll::Ready(Ok(hold)) = poll_once(&mut lock.acquire_async()) else {
        panic!("the lock is free")
    };
    assert!(hold.is_held());
}

pub(crate) fn a_future_is_woken_by_a_release(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let hold = space.lock("a").unwrap().acquire().unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let lock = other.lock("a").unwrap();
            block_on(lock.acquire_async()).unwrap().token()
        });
        until(|| waiters(&space, "a") == 1);
        let token = hold.token();
        hold.release().unwrap();
        assert_eq!(waiter.join().unwrap(), token + 1);
    });
    assert_eq!(waiters(&space, "a"), 0);
}

// property 6
pub(crate) fn a_dropped_future_leaves_nothing(tier: &impl Tier) {
    let space = tier.space();
    let lock = space.lock("a").unwrap();
    // Never polled.
    drop(lock.acquire_async());
    let hold = lock.acquire().unwrap();
    let token = hold.token();
    let mut future = lock.acquire_async();
    assert!(poll_once(&mut future).is_pending());
    assert_eq!(waiters(&space, "a"), 1);
    drop(future);
    assert_eq!(waiters(&space, "a"), 0);
    // Dropped after the lock was freed for it: the next in the queue is served.
    let mut first = lock.acquire_async();
    let mut second = lock.acquire_async();
    assert!(poll_once(&mut first).is_pending());
    assert!(poll_once(&mut second).is_pending());
    hold.release().unwrap();
    drop(first);
    assert_eq!(block_on(second).unwrap().token(), token + 1);
    assert_eq!(waiters(&space, "a"), 0);
    assert_eq!(lock.try_acquire().unwrap().unwrap().token(), token + 2);
}

/// Polls `futures` until all are done, each again whenever this thread is woken; and moves them all
/// between any two rounds.
fn join_moving<F: Future + Unpin>(mut futures: Vec<F>) -> Vec<F::Output> {
    let waker = waker();
    let mut done = Vec::new();
    loop {
        let mut left = Vec::new();
        for mut future in futures {
            match Pin::new(&mut future).poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(output) => done.push(output),
                Poll::Pending => left.push(future),
            }
        }
        if left.is_empty() {
            return done;
        }
        left.reverse();
        futures = left;
        std::thread::park();
    }
}

pub(crate) fn futures_that_move_between_polls_are_all_woken(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let hold = space.lock("a").unwrap().acquire().unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let lock = other.lock("a").unwrap();
            let futures = (0..20).map(|_| {
                let future = lock.acquire_async();
                Box::pin(async move { future.await.unwrap().token() })
            });
            join_moving(futures.collect())
        });
        until(|| waiters(&space, "a") == 20);
        drop(hold);
        let mut tokens = waiter.join().unwrap();
        tokens.sort_unstable();
        assert!(
            tokens.windows(2).all(|pair| pair[1] == pair[0] + 1),
            "{tokens:?}"
        );
    });
    // The same with futures that are not boxed: their addresses are reused by one another.
    let lock = space.lock("b").unwrap();
    let hold = lock.acquire().unwrap();
    let mut first = lock.acquire_async();
    let wakes = std::sync::Arc::new(Count::default());
    let counting = wakes.clone().into();
    assert!(
        Pin::new(&mut first)
            .poll(&mut Context::from_waker(&counting))
            .is_pending()
    );
    let mut moved = [Some(first), None];
    // Another future where the first one was.
    moved[1] = moved[0].take();
    moved[0] = Some(lock.acquire_async());
    assert!(poll_once(moved[0].as_mut().unwrap()).is_pending());
    drop(hold);
    until(|| wakes.0.load(std::sync::atomic::Ordering::SeqCst) > 0);
    let Poll::Ready(Ok(_)) = poll_once(moved[1].as_mut().unwrap()) else {
        panic!("woken, and first in the queue")
    };
}

#[derive(Default)]
struct Count(std::sync::atomic::AtomicU32);

impl std::task::Wake for Count {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

pub(crate) fn threads_and_futures_are_served_in_one_order(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let hold = space.lock("a").unwrap().acquire().unwrap();
    let first = hold.token();
    let tokens: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6_u32)
            .map(|i| {
                let space = if i % 3 == 0 { &space } else { &other };
                let thread = scope.spawn(move || {
                    let lock = space.lock("a").unwrap();
                    let hold = if i % 2 == 0 {
                        block_on(lock.acquire_async()).unwrap()
                    } else {
                        lock.acquire().unwrap()
                    };
                    hold.token()
                });
                until(|| waiters(space, "a") == i + 1);
                thread
            })
            .collect();
        drop(hold);
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let in_order: Vec<u64> = (first + 1..=first + 6).collect();
    assert_eq!(tokens, in_order);
}

pub(crate) fn a_granted_future_hands_out_a_hold_that_releases(tier: &impl Tier) {
    let space = tier.space();
    let lock = space
        .lock("a")
        .unwrap()
        .ttl(Duration::from_mins(1))
        .unwrap();
    let hold = block_on(lock.acquire_async()).unwrap();
    assert!(hold.lease_left() > Duration::from_secs(30));
    drop(hold);
    assert!(lock.try_acquire().unwrap().is_some());
}

// property 5
pub(crate) fn a_future_gets_the_lock_of_a_holder_whose_lease_ran_out(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let short = space
        .lock("a")
        .unwrap()
        .ttl(Duration::from_millis(20))
        .unwrap();
    let old = short.acquire().unwrap();
    let lock = other.lock("a").unwrap();
    let new = block_on(lock.acquire_async()).unwrap();
    assert_eq!(new.token(), old.token() + 1);
    assert!(!old.is_valid());
}
