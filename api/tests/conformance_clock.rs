//! What a space does as time goes by, on a clock that the test moves.

use sprag::{Error, Hold, KeepAlive, ManualClock, Refunded, Space, WaitTimes};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const NANOSECOND: Duration = Duration::from_nanos(1);
/// 2026-01-01T00:00:00Z, which the clock starts at.
const START_UNIX_NS: u64 = 1_767_225_600_000_000_000;

fn space() -> (Space, ManualClock) {
    let clock = ManualClock::new();
    let space = Space::builder().clock(&clock).open("mem:").unwrap();
    (space, clock)
}

/// Waits until the background has done its part; nothing tells us when.
fn until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

fn kept(hold: &mut Hold<'_>, at_most: Duration) -> Receiver<()> {
    let (sender, receiver) = channel();
    let options = KeepAlive {
        at_most,
        on_lost: Some(Arc::new(move || {
            // The test may be over.
            let _ = sender.send(());
        })),
    };
    hold.keep_alive(options).unwrap();
    receiver
}

// property 5
#[test]
fn a_hold_is_valid_until_the_last_nanosecond_of_its_lease_and_others_wait_no_less() {
    let (space, clock) = space();
    // Not a whole microsecond: the engine's end of the lease is rounded up, never the holder's.
    clock.advance(Duration::from_nanos(123));
    let lock = space.lock("a").unwrap().ttl(SECOND).unwrap();
    let hold = lock.acquire().unwrap();
    assert_eq!(hold.lease_left(), SECOND);
    clock.advance(Duration::from_nanos(999_999_999));
    assert!(hold.is_valid() && hold.is_held());
    assert_eq!(hold.lease_left(), NANOSECOND);
    assert!(lock.try_acquire().unwrap().is_none());
    clock.advance(NANOSECOND);
    assert!(!hold.is_valid() && !hold.is_held());
    assert_eq!(hold.lease_left(), Duration::ZERO);
    assert!(
        lock.try_acquire().unwrap().is_none(),
        "the engine's own end comes later"
    );
    clock.advance(Duration::from_micros(1));
    let next = lock.try_acquire().unwrap().unwrap();
    assert_eq!(next.token(), hold.token() + 1);
    assert!(matches!(hold.release(), Err(Error::Lost { .. })));
}

// property 5
#[test]
fn a_renewal_after_the_end_fails_though_nobody_took_the_lock() {
    let (space, clock) = space();
    let mut hold = space
        .lock("a")
        .unwrap()
        .ttl(SECOND)
        .unwrap()
        .acquire()
        .unwrap();
    clock.advance(SECOND);
    assert!(matches!(hold.renew(), Err(Error::Lost { .. })));
    assert!(matches!(hold.extend(SECOND), Err(Error::Lost { .. })));
    assert!(!hold.is_valid());
    let lock = space.lock("a").unwrap();
    assert!(matches!(
        lock.renew_token(hold.token()),
        Err(Error::Lost { .. })
    ));
    assert!(matches!(
        lock.adopt_token(hold.token()),
        Err(Error::Lost { .. })
    ));
}

// property 6
#[test]
fn a_timed_wait_ends_by_the_spaces_own_clock() {
    let (space, clock) = space();
    let hold = space.lock("a").unwrap().acquire().unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let lock = space.lock("a").unwrap();
            lock.acquire_timeout(SECOND).unwrap().is_none()
        });
        until(|| space.inspect("a").unwrap()[0].waiters == 1);
        clock.advance(SECOND);
        assert!(waiter.join().unwrap());
    });
    assert_eq!(space.inspect("a").unwrap()[0].waiters, 0);
    drop(hold);
}

#[test]
fn an_inspection_and_an_audit_tell_the_times() {
    let (space, clock) = space();
    clock.advance(SECOND);
    let hold = space
        .lock("a")
        .unwrap()
        .ttl(10 * SECOND)
        .unwrap()
        .acquire()
        .unwrap();
    clock.advance(3 * SECOND);
    let info = &space.inspect("a").unwrap()[0];
    assert_eq!(info.lease_left, 7 * SECOND);
    // Kept to a few microseconds.
    let held_for = info.held_for.unwrap();
    assert!(held_for >= 3 * SECOND && held_for < 3 * SECOND + Duration::from_micros(10));
    assert_eq!(space.break_lock("a").unwrap(), Some(hold.token()));
    assert_eq!(space.breaks()[0].at_ns, START_UNIX_NS + 4_000_000_000);
}

// property 5
#[test]
fn a_kept_hold_is_renewed_in_time_until_its_maximum_and_its_end_is_told() {
    let (space, clock) = space();
    clock.advance(Duration::from_nanos(123));
    let mut hold = space
        .lock("a")
        .unwrap()
        .ttl(3 * SECOND)
        .unwrap()
        .acquire()
        .unwrap();
    let lost = kept(&mut hold, 10 * SECOND);
    for _ in 0..9 {
        clock.advance(SECOND);
        until(|| hold.lease_left() == 3 * SECOND);
    }
    // The maximum is over: what is left of the lease is the last.
    clock.advance(2 * SECOND);
    assert!(hold.is_valid() && lost.try_recv().is_err());
    // The end by the holder's clock; the engine's own is a little later.
    clock.advance(SECOND);
    lost.recv().unwrap();
    assert!(!hold.is_valid());
    clock.advance(Duration::from_micros(1));
    assert!(space.lock("a").unwrap().try_acquire().unwrap().is_some());
}

// property 5
#[test]
fn a_kept_hold_can_be_extended_and_shortened_and_both_sides_agree() {
    let (space, clock) = space();
    let lock = space.lock("a").unwrap();
    let mut hold = space
        .lock("a")
        .unwrap()
        .ttl(30 * SECOND)
        .unwrap()
        .acquire()
        .unwrap();
    let lost = kept(&mut hold, 3_600 * SECOND);
    hold.extend(3 * SECOND).unwrap();
    assert_eq!(hold.lease_left(), 3 * SECOND);
    assert_eq!(space.inspect("a").unwrap()[0].lease_left, 3 * SECOND);
    // And it is kept alive with its new length.
    for _ in 0..5 {
        clock.advance(SECOND);
        until(|| hold.lease_left() == 3 * SECOND);
        assert!(lock.try_acquire().unwrap().is_none());
    }
    hold.extend(60 * SECOND).unwrap();
    clock.advance(19 * SECOND);
    assert!(hold.is_held() && lost.try_recv().is_err());
    hold.renew().unwrap();
    assert_eq!(hold.lease_left(), 60 * SECOND);
    hold.release().unwrap();
    assert!(lost.try_recv().is_err());
}

// property 5
#[test]
fn a_kept_hold_that_overslept_is_lost_and_told_so() {
    let (space, clock) = space();
    let mut hold = space
        .lock("a")
        .unwrap()
        .ttl(3 * SECOND)
        .unwrap()
        .acquire()
        .unwrap();
    let lost = kept(&mut hold, 3_600 * SECOND);
    // The whole process stood still for longer than the lease.
    clock.advance(4 * SECOND);
    lost.recv().unwrap();
    assert!(!hold.is_valid());
    assert!(matches!(hold.release(), Ok(()) | Err(Error::Lost { .. })));
}

// property 7
#[test]
fn a_clock_moved_to_the_end_of_time_breaks_nothing() {
    let (space, clock) = space();
    let limiter = space.limiter("l", "1/second").unwrap();
    assert!(limiter.check("k", 1).unwrap().is_allowed());
    // About 36 years on: past what a limiter tells apart, short of what a lease can be added to.
    clock.advance(Duration::from_nanos(1 << 60));
    assert!(limiter.check("k", 1).unwrap().is_allowed());
    assert!(!limiter.check("k", 1).unwrap().is_allowed());
    let hold = space.lock("a").unwrap().acquire().unwrap();
    assert!(hold.is_valid() && hold.is_held());
}

// property 8
#[test]
fn a_clock_moved_by_hand_goes_with_mem_only() {
    let clock = ManualClock::new();
    let error = Space::builder()
        .clock(&clock)
        .open("shm:/tmp/never")
        .err()
        .unwrap();
    assert!(matches!(error, Error::NotHere { .. }), "{error}");
}

// property 12
#[test]
fn a_refund_gives_back_what_has_not_drained_and_a_reservation_all_until_its_time() {
    let (space, clock) = space();
    let limiter = space.limiter("l", "10/second;burst=20").unwrap();
    let first = limiter.check("k", 10).unwrap();
    let second = limiter.check("k", 10).unwrap();
    clock.advance(SECOND / 2);
    // Half of the first has drained; nothing of the second, whose turn comes after.
    assert_eq!(limiter.peek("k").unwrap().remaining(), 5);
    assert_eq!(limiter.refund(second).unwrap().cost(), 10);
    assert_eq!(limiter.peek("k").unwrap().remaining(), 15);
    assert_eq!(limiter.refund(first).unwrap().cost(), 5);
    assert_eq!(limiter.peek("k").unwrap().remaining(), 20);

    let _ = limiter.check("k", 20).unwrap();
    let reserved = limiter.reserve("k", 5, SECOND).unwrap();
    assert_eq!(reserved.act_after(), SECOND / 2);
    clock.advance(Duration::from_nanos(499_999_999));
    let early = limiter.check("k", 1).unwrap();
    assert!(!early.is_allowed());
    assert_eq!(limiter.refund(reserved).unwrap().cost(), 5);
    clock.advance(NANOSECOND);
    assert_eq!(limiter.peek("k").unwrap().remaining(), 5);

    let gone = limiter.check("k", 5).unwrap();
    clock.advance(2 * SECOND);
    assert_eq!(limiter.refund(gone).unwrap(), Refunded::Over);
}

// property 12
#[test]
fn a_window_gives_back_while_it_counts_and_a_sliding_one_its_share_after() {
    let (space, clock) = space();
    let minute = 60 * SECOND;
    for (window, later) in [("fixed", Refunded::Over.cost()), ("sliding", 4)] {
        let limit = format!("10/minute;window={window}");
        let limiter = space.limiter(window, limit.as_str()).unwrap();
        let [at_once, next_minute, at_last] =
            [1, 8, 1].map(|cost| limiter.check("k", cost).unwrap());
        assert_eq!(limiter.refund(at_once).unwrap().cost(), 1, "{window}");
        assert_eq!(limiter.peek("k").unwrap().remaining(), 1, "{window}");
        clock.advance(minute * 3 / 2);
        assert_eq!(
            limiter.refund(next_minute).unwrap().cost(),
            later,
            "{window}"
        );
        clock.advance(minute / 2);
        assert_eq!(limiter.refund(at_last).unwrap(), Refunded::Over, "{window}");
    }
}

#[test]
fn a_wait_is_counted_by_how_long_it_took() {
    let (space, clock) = space();
    let lock = space.lock("a").unwrap();
    let waiters = || {
        let locks = space.inspect("a").unwrap();
        locks.first().map_or(0, |lock| lock.waiters)
    };
    // A power of two of microseconds, a nanosecond more, and one of more than all bounds.
    let longest = WaitTimes::bound(WaitTimes::BUCKETS - 2).unwrap();
    let waits = [
        (Duration::ZERO, 0),
        (Duration::from_micros(1), 0),
        (Duration::from_micros(1) + NANOSECOND, 1),
        (Duration::from_micros(1_024), 10),
        (Duration::from_micros(1_024) + NANOSECOND, 11),
        (3 * SECOND, 22),
        (longest, WaitTimes::BUCKETS - 2),
        (longest + NANOSECOND, WaitTimes::BUCKETS - 1),
    ];
    let (mut sum, mut buckets) = (Duration::ZERO, [0; WaitTimes::BUCKETS]);
    for (wait, bucket) in waits {
        let hold = lock.clone().ttl(24 * 3_600 * SECOND).unwrap();
        let hold = hold.acquire().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| lock.acquire().map(drop).unwrap());
            until(|| waiters() == 1);
            clock.advance(wait);
            drop(hold);
        });
        sum += wait;
        buckets[bucket] += 1;
        let metrics = space.metrics().unwrap();
        assert_eq!(metrics.waits.buckets, buckets, "{wait:?}");
        assert_eq!(metrics.waits.sum, sum);
        assert_eq!(metrics.acquires.after_wait, metrics.waits.count());
        assert!(WaitTimes::bound(bucket).is_none_or(|bound| wait <= bound));
    }
    assert_eq!(longest, Duration::from_micros(1 << 30));
    assert_eq!(WaitTimes::bound(WaitTimes::BUCKETS), None);
}

// property 5
#[test]
fn what_the_background_renews_and_finds_lost_is_counted_once() {
    let (space, clock) = space();
    let lock = space.lock("a").unwrap().ttl(3 * SECOND).unwrap();
    let mut hold = lock.acquire().unwrap();
    let is_lost = kept(&mut hold, 3_600 * SECOND);
    for renewals in 1..=3 {
        clock.advance(SECOND);
        until(|| space.metrics().unwrap().renewals == renewals);
    }
    space.break_lock("a").unwrap();
    is_lost.recv().unwrap();
    assert_eq!(space.metrics().unwrap().holds_lost, 1);
    assert!(hold.renew().is_err());
    assert!(hold.release().is_err());
    assert_eq!(space.metrics().unwrap().holds_lost, 1);

    // Found by the holder first.
    let mut hold = lock.acquire().unwrap();
    let is_lost = kept(&mut hold, 3_600 * SECOND);
    space.break_lock("a").unwrap();
    assert!(hold.renew().is_err());
    assert!(!hold.is_valid());
    is_lost.recv().unwrap();
    drop(hold);
    assert_eq!(space.metrics().unwrap().holds_lost, 2);
}
