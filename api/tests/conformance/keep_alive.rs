//! Holds that are kept alive in the background.

use super::tier::Tier;
use super::until;
use sprag::{Error, KeepAlive};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

fn counting() -> (KeepAlive, Arc<AtomicU32>, std::sync::mpsc::Receiver<()>) {
    let calls = Arc::new(AtomicU32::new(0));
    let (sender, receiver) = channel();
    let on_lost = {
        let calls = calls.clone();
        move || {
            calls.fetch_add(1, Ordering::SeqCst);
            // The test may be over.
            let _ = sender.send(());
        }
    };
    let options = KeepAlive {
        on_lost: Some(Arc::new(on_lost)),
        ..KeepAlive::default()
    };
    (options, calls, receiver)
}

// property 5
pub(crate) fn a_hold_that_is_kept_alive_outlives_its_ttl(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let ttl = Duration::from_millis(300);
    let mut hold = space
        .lock("a")
        .unwrap()
        .ttl(ttl)
        .unwrap()
        .acquire()
        .unwrap();
    hold.keep_alive(KeepAlive::default()).unwrap();
    // Another waits for longer than the lease was.
    assert!(
        other
            .lock("a")
            .unwrap()
            .acquire_timeout(3 * ttl)
            .unwrap()
            .is_none()
    );
    assert!(hold.is_held());
    hold.release().unwrap();
}

// property 5
pub(crate) fn losing_a_kept_hold_calls_back_once(tier: &impl Tier) {
    let space = tier.space();
    let ttl = Duration::from_millis(60);
    let mut hold = space
        .lock("a")
        .unwrap()
        .ttl(ttl)
        .unwrap()
        .acquire()
        .unwrap();
    let (options, calls, lost) = counting();
    hold.keep_alive(options).unwrap();
    assert_eq!(space.break_lock("a").unwrap(), Some(hold.token()));
    lost.recv().unwrap();
    assert!(!hold.is_valid(), "a loss that was told shows locally too");
    let next = space.lock("a").unwrap().try_acquire().unwrap().unwrap();
    assert!(matches!(hold.renew(), Err(Error::Lost { .. })));
    assert!(matches!(hold.release(), Err(Error::Lost { .. })));
    assert!(next.is_held());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

pub(crate) fn a_dropped_hold_is_renewed_no_more(tier: &impl Tier) {
    let space = tier.space();
    let ttl = Duration::from_millis(60);
    let lock = space.lock("a").unwrap().ttl(ttl).unwrap();
    let mut hold = lock.acquire().unwrap();
    let (options, calls, _lost) = counting();
    hold.keep_alive(options).unwrap();
    hold.release().unwrap();
    // The next hold of the same lock is not kept alive by what the last one asked for.
    let next = lock.acquire().unwrap();
    until(|| !next.is_valid());
    assert!(
        lock.acquire_timeout(Duration::from_hours(1))
            .unwrap()
            .is_some()
    );
    assert_eq!(calls.load(Ordering::SeqCst), 0, "a release is no loss");
}

// property 5
pub(crate) fn what_is_kept_alive_last_counts_and_a_lost_hold_is_not(tier: &impl Tier) {
    let space = tier.space();
    let mut hold = space.lock("a").unwrap().acquire().unwrap();
    let (first, first_calls, _first_lost) = counting();
    let (second, second_calls, lost) = counting();
    let (third, third_calls, _third_lost) = counting();
    hold.keep_alive(first).unwrap();
    hold.keep_alive(second).unwrap();
    space.break_lock("a").unwrap();
    lost.recv().unwrap();
    let refused = hold.keep_alive(third);
    assert!(matches!(refused, Err(Error::Lost { token, .. }) if token == hold.token()));
    drop(hold);
    for (calls, expected) in [(first_calls, 0), (second_calls, 1), (third_calls, 0)] {
        assert_eq!(calls.load(Ordering::SeqCst), expected);
    }
}
