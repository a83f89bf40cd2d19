//! Refunds and reservations through the engine, one step after another: what of an admission is still
//! known, and what is void. How much comes back has its own oracle (`limit_arithmetic`).

mod support;

use sprag_core::region::Caps;
use sprag_core::{Checked, Engine, Error, LimiterRef, Refunded, SessionId};
use support::{SMALL, engine_with_session};

const SECOND: u64 = 1_000_000_000;

struct World {
    engine: Engine,
    me: SessionId,
}

impl World {
    fn new(limiter_keys: u32) -> Self {
        let (engine, me) = engine_with_session(Caps {
            limiter_keys,
            ..SMALL
        });
        Self { engine, me }
    }

    fn limiter(&self, name: &str, limit: &str) -> LimiterRef {
        let limit = limit.parse().unwrap();
        let opened = self
            .engine
            .open_limiter(name.as_bytes(), limit, true, self.me, 0);
        opened.unwrap()
    }

    fn take(&self, limiter: &LimiterRef, key: &str, cost: u64, now_ns: u64) -> Checked {
        let checked = self
            .engine
            .check(limiter, key.as_bytes(), cost, self.me, now_ns)
            .unwrap();
        assert!(checked.decision.is_allowed(), "{cost} of {key}");
        checked
    }

    fn reserve(&self, limiter: &LimiterRef, key: &str, cost: u64, wait_ns_max: u64) -> Checked {
        self.engine
            .reserve(limiter, key.as_bytes(), cost, wait_ns_max, self.me, 0)
            .unwrap()
    }

    fn give(&self, limiter: &LimiterRef, checked: Checked, now_ns: u64) -> Refunded {
        self.engine.refund(limiter, checked, || now_ns).unwrap()
    }

    fn left(&self, limiter: &LimiterRef, key: &str, now_ns: u64) -> u64 {
        let peeked = self.engine.peek(limiter, key.as_bytes(), now_ns).unwrap();
        peeked.decision.remaining()
    }
}

const LIMITS: [&str; 3] = ["9/day", "9/day;window=fixed", "9/day;window=sliding"];

// property 12
#[test]
fn a_refund_gives_back_what_was_taken_of_the_key_that_it_was_taken_of() {
    let world = World::new(64);
    for limit in LIMITS {
        let limiter = world.limiter(limit, limit);
        let long = "a key that is much too long to fit in its cell";
        for key in ["k", long] {
            let taken = [2, 3].map(|cost| world.take(&limiter, key, cost, 0));
            let other = world.take(&limiter, "other", 1, 0);
            assert_eq!(world.left(&limiter, key, 0), 4, "{limit}");
            let [two, three] = taken;
            assert_eq!(world.give(&limiter, two, 0).cost(), 2, "{limit}");
            assert_eq!(world.left(&limiter, key, 0), 6, "{limit}");
            assert_eq!(world.give(&limiter, three, 0).cost(), 3, "{limit}");
            assert_eq!(world.left(&limiter, key, 0), 9, "{limit}");
            assert_eq!(world.give(&limiter, other, 0).cost(), 1, "{limit}");
        }
    }
}

#[test]
fn what_took_nothing_gives_nothing() {
    let world = World::new(64);
    let limiter = world.limiter("l", "2/day");
    let by = |cost| {
        let checked = world.engine.check(&limiter, b"k", cost, world.me, 0);
        world.give(&limiter, checked.unwrap(), 0)
    };
    assert_eq!(by(0), Refunded::Over);
    assert_eq!(by(3), Refunded::Over);
    let peeked = world.engine.peek(&limiter, b"k", 0).unwrap();
    assert_eq!(world.give(&limiter, peeked, 0), Refunded::Over);
    // Two days later it has drained.
    let taken = world.take(&limiter, "k", 2, 0);
    let now_ns = 2 * 86_400 * SECOND;
    assert_eq!(world.give(&limiter, taken, now_ns), Refunded::Over);
}

// property 12
#[test]
fn nothing_comes_back_once_the_limit_was_changed_though_it_was_changed_back() {
    for limit in LIMITS {
        let world = World::new(64);
        let limiter = world.limiter("l", limit);
        let taken = world.take(&limiter, "k", 5, 0);
        for other in ["8/day", limit] {
            world.limiter("l", other);
        }
        let left = world.left(&limiter, "k", 0);
        assert_eq!(world.give(&limiter, taken, 0), Refunded::Void, "{limit}");
        assert_eq!(world.left(&limiter, "k", 0), left, "{limit}");
    }
}

// property 12
#[test]
fn nothing_comes_back_of_a_key_that_made_room_for_another() {
    let world = World::new(1);
    let limiter = world.limiter("l", "1/second;burst=9");
    let taken = world.take(&limiter, "first", 1, 0);
    // Full again two seconds later, and so reclaimed.
    let checked = world.take(&limiter, "second", 9, 2 * SECOND);
    assert!(!checked.is_overflow);
    assert_eq!(world.give(&limiter, taken, 2 * SECOND), Refunded::Void);
    assert_eq!(world.left(&limiter, "second", 2 * SECOND), 0);
}

// property 12
#[test]
fn nothing_comes_back_to_another_limiter() {
    let world = World::new(64);
    let [one, two] = ["one", "two"].map(|name| world.limiter(name, "9/day"));
    let taken = world.take(&one, "k", 5, 0);
    let _ = world.take(&two, "k", 5, 0);
    assert_eq!(world.give(&two, taken, 0), Refunded::Void);
    assert_eq!(world.left(&two, "k", 0), 4);
    assert_eq!(world.left(&one, "k", 0), 4);
}

// property 12
#[test]
fn a_refund_between_others_voids_what_was_taken_before_the_next_admission() {
    let world = World::new(64);
    let limiter = world.limiter("l", "1/second;burst=4");
    let [first, second, third] = [1, 1, 1].map(|cost| world.take(&limiter, "k", cost, 0));
    assert_eq!(world.give(&limiter, first, 0).cost(), 1);
    // Nothing was taken since.
    assert_eq!(world.give(&limiter, second, 0).cost(), 1);
    let fourth = world.take(&limiter, "k", 1, 0);
    assert_eq!(world.give(&limiter, third, 0), Refunded::Void);
    assert_eq!(world.give(&limiter, fourth, 0).cost(), 1);
    assert_eq!(world.left(&limiter, "k", 0), 3);
}

#[test]
fn a_refund_of_the_last_leaves_those_before_it_as_they_are() {
    let world = World::new(64);
    let limiter = world.limiter("l", "1/second;burst=4");
    let first = world.take(&limiter, "k", 1, 0);
    for _ in 0..10 {
        let last = world.take(&limiter, "k", 2, 0);
        assert_eq!(world.give(&limiter, last, 0).cost(), 2);
    }
    assert_eq!(world.give(&limiter, first, 0).cost(), 1);
    assert_eq!(world.left(&limiter, "k", 0), 4);
}

// property 12
#[test]
fn the_bucket_of_keys_without_room_gives_back_until_a_key_is_inserted() {
    let world = World::new(1);
    let limiter = world.limiter("l", "1/second;burst=9");
    let holder = world.take(&limiter, "holder", 9, 0);
    let [one, two] = [2, 3].map(|cost| world.take(&limiter, "without room", cost, 0));
    assert!(one.is_overflow && two.is_overflow);
    assert_eq!(world.give(&limiter, one, 0).cost(), 2);
    let after = world.take(&limiter, "without room", 1, 0);
    assert!(after.is_overflow);
    // The one key is full, and makes room for another, which starts from where the bucket is.
    assert_eq!(world.give(&limiter, holder, 0).cost(), 9);
    let inserted = world.take(&limiter, "without room", 1, 0);
    assert!(!inserted.is_overflow);
    assert_eq!(world.give(&limiter, after, 0), Refunded::Void);
}

// property 11
#[test]
fn a_key_that_is_full_by_a_refund_makes_room_though_the_table_was_said_to_have_none() {
    let world = World::new(1);
    let limiter = world.limiter("l", "9/day");
    let first = world.take(&limiter, "first", 9, 0);
    // The table is looked through, and said to have no room for a day.
    assert!(world.take(&limiter, "second", 1, 0).is_overflow);
    assert_eq!(world.give(&limiter, first, 0).cost(), 9);
    assert!(!world.take(&limiter, "third", 1, 0).is_overflow);
}

// property 10, property 12
#[test]
fn a_reservation_is_to_be_acted_on_when_a_check_would_be_allowed_or_writes_nothing() {
    let world = World::new(64);
    for limit in ["2/second;burst=1", "1/second;window=fixed"] {
        let limiter = world.limiter(limit, limit);
        let now = world.reserve(&limiter, "k", 1, 0);
        assert_eq!((now.decision.is_allowed(), now.wait_ns), (true, 0));
        let refused = world.reserve(&limiter, "k", 1, 1);
        let wait_ns = refused.decision.retry_after_ns().unwrap();
        assert!(!refused.decision.is_allowed() && wait_ns > 1, "{limit}");
        assert_eq!(world.give(&limiter, refused, 0), Refunded::Over);
        let next = world.reserve(&limiter, "k", 1, wait_ns);
        assert_eq!((next.decision.is_allowed(), next.wait_ns), (true, wait_ns));
        let checked = world.engine.check(&limiter, b"k", 1, world.me, wait_ns);
        assert!(!checked.unwrap().decision.is_allowed(), "it is taken");
        assert_eq!(world.give(&limiter, next, 0).cost(), 1, "{limit}");
        let _ = world.take(&limiter, "k", 1, wait_ns);
        let never = world.reserve(&limiter, "k", 2, u64::MAX);
        assert_eq!(never.decision.retry_after_ns(), None);
    }
}

#[test]
fn a_sliding_window_says_that_it_has_no_reservations_and_what_to_do() {
    let world = World::new(64);
    let limiter = world.limiter("l", "2/second");
    // Also through a reference from before the limit was changed.
    world.limiter("l", "2/second;window=sliding");
    let error = world
        .engine
        .reserve(&limiter, b"k", 1, 0, world.me, 0)
        .unwrap_err();
    assert!(matches!(error, Error::NoReservations { .. }));
    assert!(error.to_string().contains("use a token bucket"));
    assert_eq!(world.engine.limiter_key_count(), 0);
}
