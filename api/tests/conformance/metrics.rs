//! Metrics: what is counted once, what is not, and what is told of a region that fills up.

use super::block_on::{block_on, poll_once};
use super::tier::{Tier, small};
use super::{until, waiters};
use sprag::{
    AcquireCounts, Begun, Caps, CheckCounts, Error, Fill, Metrics, OnceCounts, Space, WaitTimes,
};
use std::sync::Barrier;
use std::task::Poll;
use std::time::Duration;

const HOUR: Duration = Duration::from_hours(1);

fn checks(space: &Space) -> (u64, u64, u64) {
    let CheckCounts {
        allowed,
        refused,
        overflow,
        ..
    } = space.metrics().unwrap().checks;
    (allowed, refused, overflow)
}

fn acquires(space: &Space) -> (u64, u64, u64, u64, u64) {
    let AcquireCounts {
        at_once,
        after_wait,
        busy,
        timed_out,
        cancelled,
        ..
    } = space.metrics().unwrap().acquires;
    (at_once, after_wait, busy, timed_out, cancelled)
}

fn lost(space: &Space) -> u64 {
    space.metrics().unwrap().holds_lost
}

pub(crate) fn nothing_is_counted_before_anything_is_done(tier: &impl Tier) {
    let Metrics {
        checks,
        acquires,
        waits,
        renewals,
        holds_lost,
        onces,
        ..
    } = tier.space().metrics().unwrap();
    assert_eq!(checks, CheckCounts::default());
    assert_eq!(acquires, AcquireCounts::default());
    assert_eq!(waits, WaitTimes::default());
    assert_eq!((renewals, holds_lost), (0, 0));
    assert_eq!(onces, OnceCounts::default());
}

// property 8
pub(crate) fn each_answer_of_a_limiter_is_counted(tier: &impl Tier) {
    let space = tier.space();
    let limiter = space.limiter("l", "3/366d").unwrap();
    for _ in 0..5 {
        let _ = limiter.check("k", 1).unwrap();
    }
    assert_eq!(checks(&space), (3, 2, 0));
    let _ = limiter.peek("k").unwrap();
    assert!(limiter.check("", 1).is_err());
    assert_eq!(checks(&space), (3, 2, 0), "neither decides anything");

    let reserved = limiter.reserve("r", 3, Duration::ZERO).unwrap();
    let _ = limiter.reserve("r", 1, Duration::ZERO).unwrap();
    assert_eq!(checks(&space), (4, 3, 0));
    let _ = limiter.refund(reserved).unwrap();
    assert_eq!(checks(&space), (4, 3, 0));

    limiter
        .check_batch(&["a", "b", "k", "a", "k"], 1, |_, _| {})
        .unwrap();
    assert_eq!(checks(&space), (7, 5, 0), "of a batch each key");
}

pub(crate) fn a_call_of_several_limits_is_counted_as_one_check(tier: &impl Tier) {
    let space = tier.space();
    let joint = space.joint_limiter("j", ["2/366d", "9/366d"]).unwrap();
    for _ in 0..3 {
        let _ = joint.check("k", 1).unwrap();
    }
    let _ = joint.peek("k").unwrap();
    assert_eq!(checks(&space), (2, 1, 0));

    let (few, many) = (
        space.limiter("few", "1/366d").unwrap(),
        space.limiter("many", "9/366d").unwrap(),
    );
    for _ in 0..2 {
        let _ = space.check_all(&[(&few, "k", 1), (&many, "k", 1)]).unwrap();
    }
    assert_eq!(checks(&space), (3, 2, 0));
}

// property 11
pub(crate) fn what_a_shared_bucket_decides_is_counted_besides(tier: &impl Tier) {
    let caps = Caps {
        limiter_keys: 1,
        joint_keys: 1,
        ..Caps::default()
    };
    let space = tier.open(small().caps(caps).share_percent(100)).unwrap();
    let limiter = space.limiter("l", "1/366d").unwrap();
    let _ = limiter.check("a", 1).unwrap();
    for _ in 0..2 {
        assert!(limiter.check("late", 1).unwrap().is_overflow());
    }
    assert_eq!(checks(&space), (2, 1, 2));
    let _ = space
        .check_all(&[(&limiter, "later", 1), (&limiter, "latest", 1)])
        .unwrap();
    assert_eq!(checks(&space), (2, 2, 3), "one call");
    let joint = space.joint_limiter("j", ["1/366d", "9/366d"]).unwrap();
    let _ = joint.check("a", 1).unwrap();
    assert!(joint.check("late", 1).unwrap().is_overflow());
    assert_eq!(checks(&space), (4, 2, 4));
}

// property 8
pub(crate) fn counts_are_exact_however_many_threads_count(tier: &impl Tier) {
    // At the same time more than have a line of their own, and one after another more than those.
    const THREADS: usize = 200;
    const CHECKS: usize = 50;
    let space = tier.space();
    let limiter = space.limiter("l", "1000000/366d").unwrap();
    let barrier = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let _ = limiter.check("k", 1).unwrap();
                barrier.wait();
                for _ in 1..CHECKS {
                    let _ = limiter.check("k", 1).unwrap();
                }
            });
        }
    });
    let together = (THREADS * CHECKS) as u64;
    assert_eq!(checks(&space), (together, 0, 0));
    for _ in 0..THREADS {
        std::thread::scope(|scope| {
            scope.spawn(|| limiter.check("k", 1).map(drop));
        });
    }
    assert_eq!(checks(&space), (together + THREADS as u64, 0, 0));
}

// property 6
pub(crate) fn each_way_an_acquire_can_go_is_counted(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let lock = space.lock("a").unwrap();
    let hold = lock.acquire().unwrap();
    assert_eq!(acquires(&space), (1, 0, 0, 0, 0));
    assert!(lock.try_acquire().unwrap().is_none());
    assert!(lock.try_acquire_shared().unwrap().is_none());
    assert!(lock.acquire_timeout(Duration::ZERO).unwrap().is_none());
    assert_eq!(acquires(&space), (1, 0, 3, 0, 0));
    let timeout = Duration::from_millis(1);
    assert!(lock.acquire_timeout(timeout).unwrap().is_none());
    assert_eq!(acquires(&space), (1, 0, 3, 1, 0));
    let mut future = lock.acquire_async();
    assert!(poll_once(&mut future).is_pending());
    drop(future);
    drop(lock.acquire_async());
    assert_eq!(acquires(&space), (1, 0, 3, 1, 1), "one was never polled");

    std::thread::scope(|scope| {
        let blocking = scope.spawn(|| lock.acquire().map(drop).unwrap());
        until(|| waiters(&space, "a") == 1);
        let waiting = scope.spawn(|| block_on(lock.acquire_async()).map(drop).unwrap());
        until(|| waiters(&space, "a") == 2);
        drop(hold);
        blocking.join().unwrap();
        waiting.join().unwrap();
    });
    assert_eq!(acquires(&space), (1, 2, 3, 1, 1));
    let waits = space.metrics().unwrap().waits;
    assert_eq!(waits.count(), 2);
    assert!(waits.sum > Duration::ZERO);

    if tier.has_sessions() {
        assert_eq!(acquires(&other), (0, 0, 0, 0, 0), "its own only");
    }
}

// property 6
pub(crate) fn a_wait_that_fails_was_neither_granted_nor_cancelled(tier: &impl Tier) {
    let space = tier.space();
    let limiter = space.concurrency("c", 2).unwrap();
    let key = limiter.key("k").unwrap();
    let _one = key.acquire(1).unwrap();
    let mut future = key.acquire_async(2).unwrap();
    assert!(poll_once(&mut future).is_pending());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| key.acquire(2).map(drop));
        until(|| key.peek().unwrap().waiters == 2);
        space.concurrency_updated("c", 1).unwrap();
        assert!(waiter.join().unwrap().is_err());
    });
    assert!(matches!(poll_once(&mut future), Poll::Ready(Err(_))));
    drop(future);
    assert_eq!(acquires(&space), (1, 0, 0, 0, 0));
}

pub(crate) fn permits_several_locks_and_upgrades_are_acquires_too(tier: &impl Tier) {
    let space = tier.space();
    let semaphore = space.semaphore("s", 2).unwrap();
    let both = semaphore.acquire(2).unwrap();
    assert!(semaphore.try_acquire(1).unwrap().is_none());
    drop(both);
    assert_eq!(acquires(&space), (1, 0, 1, 0, 0));

    let locks = space.locks(["a", "b"]).unwrap();
    let all = locks.acquire().unwrap();
    assert!(locks.try_acquire().unwrap().is_none());
    let mut future = locks.acquire_async();
    assert!(poll_once(&mut future).is_pending());
    drop(future);
    drop(all);
    assert_eq!(acquires(&space), (2, 0, 2, 0, 1));

    let mut hold = space.lock("c").unwrap().acquire_shared().unwrap();
    let beside = space.lock("c").unwrap().acquire_shared().unwrap();
    assert!(!hold.try_upgrade().unwrap());
    drop(beside);
    hold.upgrade().unwrap();
    assert_eq!(acquires(&space), (5, 0, 3, 0, 1));

    // One acquire, however often it is entered.
    let owner = space.owner();
    let lock = owner.lock("d").unwrap();
    let (_first, _again) = (lock.acquire().unwrap(), lock.acquire().unwrap());
    assert_eq!(acquires(&space), (6, 0, 3, 0, 1));
}

// property 14
pub(crate) fn a_deadlock_is_counted_by_the_one_who_is_told(tier: &impl Tier) {
    let space = tier.space();
    let (first, second) = (space.owner(), space.owner());
    let _a = first.lock("a").unwrap().acquire().unwrap();
    let b = second.lock("b").unwrap().acquire().unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| first.lock("b").unwrap().acquire().map(drop));
        until(|| waiters(&space, "b") == 1);
        let error = second.lock("a").unwrap().acquire().err().unwrap();
        assert!(matches!(error, Error::Deadlock { .. }), "{error}");
        drop(b);
        waiter.join().unwrap().unwrap();
    });
    let acquires = space.metrics().unwrap().acquires;
    assert_eq!(acquires.deadlocks, 1);
    assert_eq!((acquires.at_once, acquires.after_wait), (2, 1));
    assert_eq!((acquires.timed_out, acquires.cancelled), (0, 0));
}

// property 5
pub(crate) fn a_hold_is_counted_as_lost_once_however_often_it_is_told(tier: &impl Tier) {
    let space = tier.space();
    let lock = space.lock("a").unwrap();
    let broken = || {
        let hold = lock.acquire().unwrap();
        space.break_lock("a").unwrap();
        hold
    };
    // By a call, and then by others.
    let mut hold = broken();
    assert_eq!(lost(&space), 0);
    assert!(hold.renew().is_err());
    assert!(!hold.is_valid(), "it was told");
    assert!(hold.renew().is_err());
    assert!(hold.downgrade().is_err());
    assert_eq!(lost(&space), 1);
    assert!(hold.release().is_err());
    assert_eq!(lost(&space), 1);
    // By a drop alone, by a release alone, and when it was to be handed on.
    drop(broken());
    assert_eq!(lost(&space), 2);
    assert!(broken().release().is_err());
    assert_eq!(lost(&space), 3);
    assert!(broken().detach().is_err());
    assert_eq!(lost(&space), 4);
    // By an owner, all depths together.
    let owner = space.owner();
    let owned = owner.lock("a").unwrap();
    let (first, again) = (owned.acquire().unwrap(), owned.acquire().unwrap());
    space.break_lock("a").unwrap();
    assert!(owned.acquire().is_err());
    assert!(first.release().is_err() && again.release().is_err());
    assert_eq!(lost(&space), 5);
    // Released in time, and by a token that is of no hold here.
    lock.acquire().unwrap().release().unwrap();
    assert!(lock.release_token(1).is_err());
    assert_eq!(lost(&space), 5);
}

pub(crate) fn renewals_are_counted(tier: &impl Tier) {
    let space = tier.space();
    let mut hold = space.lock("a").unwrap().acquire().unwrap();
    hold.renew().unwrap();
    hold.extend(HOUR).unwrap();
    assert_eq!(space.metrics().unwrap().renewals, 2);
    space.break_lock("a").unwrap();
    assert!(hold.renew().is_err());
    assert_eq!(space.metrics().unwrap().renewals, 2);
}

pub(crate) fn what_comes_of_an_idempotency_key_is_counted(tier: &impl Tier) {
    let space = tier.space();
    let once = space.once("k").unwrap();
    let begin = || match once.begin(HOUR).unwrap() {
        Begun::Started(attempt) => Some(attempt),
        _ => None,
    };
    let counts = || {
        let OnceCounts {
            started,
            in_progress,
            done,
            finished,
            unfinished,
            ..
        } = space.metrics().unwrap().onces;
        [started, in_progress, done, finished, unfinished]
    };
    let attempt = begin().unwrap();
    assert!(begin().is_none());
    assert_eq!(counts(), [1, 1, 0, 0, 0]);
    drop(attempt);
    assert_eq!(counts(), [1, 1, 0, 0, 1]);
    begin().unwrap().abandon().unwrap();
    assert_eq!(counts(), [2, 1, 0, 0, 1]);
    // Ended by another, each way that its own end can be tried.
    for end in 0..3 {
        let mut attempt = begin().unwrap();
        once.abandon_token(attempt.token()).unwrap();
        let ended = match end {
            0 => attempt.finish(b"", HOUR),
            1 => attempt.abandon(),
            _ => attempt.detach().map(drop),
        };
        assert!(ended.is_err());
    }
    assert_eq!(counts(), [5, 1, 0, 0, 4]);
    begin().unwrap().finish(b"done", HOUR).unwrap();
    assert!(begin().is_none() && begin().is_none());
    assert_eq!(counts(), [6, 1, 2, 1, 4]);
}

// property 11
pub(crate) fn a_region_tells_how_full_it_is(tier: &impl Tier) {
    let space = tier.space();
    let usage = |space: &Space| space.metrics().unwrap().region;
    let before = usage(&space);
    let used = [
        before.objects,
        before.limiter_keys,
        before.joint_keys,
        before.waiters,
        before.permits,
        before.limits,
        before.joint_limiters,
    ]
    .map(|fill| fill.used);
    assert_eq!(used, [0; 7]);
    assert_eq!(before.sessions.used, 1);
    let caps = [
        before.objects,
        before.limiter_keys,
        before.joint_keys,
        before.sessions,
        before.waiters,
        before.permits,
        before.limits,
        before.joint_limiters,
    ]
    .map(|fill| fill.cap);
    assert_eq!(caps, [2_048, 2_048, 2_048, 64, 256, 256, 1_024, 256]);

    // Another session fills it as well.
    let other = tier.another(&space);
    let lock = other.lock("a").unwrap();
    let _shares = (
        lock.acquire_shared().unwrap(),
        lock.acquire_shared().unwrap(),
    );
    let mut future = lock.acquire_async();
    assert!(poll_once(&mut future).is_pending());
    let limiter = other.limiter("l", "9/hour").unwrap();
    for key in ["a", "b", "c"] {
        let _ = limiter.check(key, 1).unwrap();
    }
    let joint = other.joint_limiter("j", ["9/hour", "99/day"]).unwrap();
    let _ = joint.check("a", 1).unwrap();
    let after = usage(&space);
    let used = [
        after.limiter_keys,
        after.joint_keys,
        after.waiters,
        after.permits,
        after.limits,
        after.joint_limiters,
    ]
    .map(|fill| fill.used);
    assert_eq!(used, [3, 1, 1, 2, 1, 1]);
    assert_eq!(after.objects.used, 3, "the lock and two limiters");
    let sessions = if tier.has_sessions() { 2 } else { 1 };
    assert_eq!(after.sessions.used, sessions);
    assert_eq!(after, usage(&other), "the region's, whoever asks");

    let chunks = |used| Fill { used, cap: 32_768 };
    assert_eq!(space.key_chunk_usage().unwrap(), chunks(0));
    let long = "a key that does not fit in its cell, nor in the first chunk of it";
    let _ = limiter.check(long, 1).unwrap();
    assert_eq!(space.key_chunk_usage().unwrap(), chunks(2));

    drop(future);
    assert_eq!(usage(&space).waiters.used, 0);
}
