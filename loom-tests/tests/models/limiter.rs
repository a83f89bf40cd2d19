//! Limiters: what is left of a limit goes to one.

use sprag_core::limit::Limit;
use sprag_core::limiter::LimiterRef;
use sprag_core::region::Caps;
use sprag_core::{Engine, SessionId};
use sprag_loom_tests::{CAPS, MS, both, both_from, engine, model};
use std::sync::Arc;

/// Room for two keys.
const KEY_CAPS: Caps = Caps {
    limiter_keys: 2,
    ..CAPS
};

/// One in a second.
fn open(engine: &Engine, by: SessionId) -> LimiterRef {
    let limit = Limit::token_bucket(1, 1_000 * MS).unwrap();
    engine.open_limiter(b"l", limit, false, by, 0).unwrap()
}

fn is_allowed(engine: &Engine, limiter: &LimiterRef, key: &[u8], by: SessionId, now: u64) -> bool {
    let checked = engine.check(limiter, key, 1, by, now).unwrap();
    checked.decision.is_allowed()
}

/// How many of two threads are allowed that check `key` at once.
fn allowed_of_two(
    engine: &Arc<Engine>,
    limiter: &LimiterRef,
    key: &'static [u8],
    [one, two]: [SessionId; 2],
    now: u64,
) -> u32 {
    let (engine_2, limiter_2) = (engine.clone(), limiter.clone());
    let (first, second) = both(
        engine,
        || is_allowed(engine, limiter, key, one, now),
        move || is_allowed(&engine_2, &limiter_2, key, two, now),
    );
    u32::from(first) + u32::from(second)
}

#[test]
fn of_two_threads_that_check_a_key_with_one_unit_left_one_is_allowed() {
    model("limiter check").check(|| {
        let (engine, sessions) = engine(KEY_CAPS);
        let limiter = open(&engine, sessions[0]);
        assert!(is_allowed(&engine, &limiter, b"key", sessions[0], 0));
        let allowed = allowed_of_two(&engine, &limiter, b"key", sessions, 1_000 * MS);
        assert_eq!(allowed, 1, "limit: one unit is one admission");
    });
}

#[test]
fn of_two_threads_that_bring_a_new_key_to_a_limit_of_one_one_is_allowed() {
    model("limiter check of a new key").check(|| {
        let (engine, sessions) = engine(KEY_CAPS);
        let limiter = open(&engine, sessions[0]);
        let allowed = allowed_of_two(&engine, &limiter, b"key", sessions, 0);
        assert_eq!(allowed, 1, "limit: one unit is one admission");
    });
}

#[test]
fn a_new_key_and_the_bucket_of_those_without_room_admit_no_more_together_than_the_limit() {
    model("limiter check at the cap").check(|| {
        let (engine, [one, two]) = engine(KEY_CAPS);
        let limit = Limit::token_bucket(4, 1_000 * MS).unwrap();
        let limiter = engine.open_limiter(b"l", limit, false, one, 0).unwrap();
        // Of two places one is idle in time, and of the bucket two units are left then: a key that comes
        // starts from there, so that nobody can reclaim it as idle.
        for (key, cost) in [(b"a", 1), (b"b", 4), (b"c", 3)] {
            let checked = engine.check(&limiter, key, cost, one, 0).unwrap();
            assert!(checked.decision.is_allowed());
            assert_eq!(checked.is_overflow, key == b"c");
        }
        let now = 250 * MS;

        let (engine_2, limiter_2) = (engine.clone(), limiter.clone());
        let takes_two = move |engine: &Engine, limiter: &LimiterRef, by| {
            let checked = engine.check(limiter, b"key", 2, by, now).unwrap();
            checked.decision.is_allowed()
        };
        // Both bring the key, and one counts it in and claims the last place, the other finds none. All
        // that the other did before was to look, and it saw nothing that it would not see later.
        // If it makes its own place before the first claims one, both insert: a model above.
        let mut is_free = false;
        let is_claimed = move |engine: &Engine| {
            is_free |= engine.limiter_key_count() == 1;
            is_free && engine.check_region().limiter_keys == 2
        };
        let (first, second) = both_from(
            &engine,
            is_claimed,
            || takes_two(&engine, &limiter, one),
            move || takes_two(&engine_2, &limiter_2, two),
        );
        let allowed = u32::from(first) + u32::from(second);
        assert_eq!(allowed, 1, "limit: one unit is one admission");
    });
}

/// Two in two seconds, both of them at once.
fn open_two(engine: &Engine, by: SessionId) -> LimiterRef {
    let limit = Limit::token_bucket(2, 2_000 * MS).unwrap();
    engine.open_limiter(b"l", limit, false, by, 0).unwrap()
}

fn used_of_two(engine: &Engine, limiter: &LimiterRef) -> u64 {
    2 - engine
        .peek(limiter, b"key", 0)
        .unwrap()
        .decision
        .remaining()
}

#[test]
fn a_refund_and_a_check_at_once_leave_used_what_was_taken_less_what_came_back() {
    model("limiter refund against a check").check(|| {
        let (engine, [one, two]) = engine(KEY_CAPS);
        let limiter = open_two(&engine, one);
        let first = engine.check(&limiter, b"key", 1, one, 0).unwrap();
        let (engine_2, limiter_2) = (engine.clone(), limiter.clone());
        let (given, is_allowed) = both(
            &engine,
            || engine.refund(&limiter, first, || 0).unwrap().cost(),
            move || is_allowed(&engine_2, &limiter_2, b"key", two, 0),
        );
        assert!(is_allowed, "limit: there is room for one more");
        assert_eq!(given, 1, "limit: nothing has drained");
        assert_eq!(
            used_of_two(&engine, &limiter),
            1,
            "limit: what came back is what was left"
        );
    });
}

#[test]
fn of_two_refunds_at_once_with_a_check_after_one_no_more_comes_back_than_was_taken() {
    model("limiter refunds with a check between").check(|| {
        let (engine, [one, two]) = engine(KEY_CAPS);
        let limiter = open_two(&engine, one);
        let [first, second] =
            [1, 1].map(|cost| engine.check(&limiter, b"key", cost, one, 0).unwrap());
        let (engine_2, limiter_2) = (engine.clone(), limiter.clone());
        let (given, (given_2, is_allowed)) = both(
            &engine,
            || engine.refund(&limiter, second, || 0).unwrap().cost(),
            move || {
                let given = engine_2.refund(&limiter_2, first, || 0).unwrap().cost();
                (given, is_allowed(&engine_2, &limiter_2, b"key", two, 0))
            },
        );
        assert!(is_allowed, "limit: what came back can be taken");
        assert_eq!(
            used_of_two(&engine, &limiter),
            2 - given - given_2 + 1,
            "limit: what came back is what was left"
        );
    });
}

#[test]
fn of_a_reservation_and_a_check_for_the_last_unit_one_has_it_now() {
    model("limiter reserve against a check").check(|| {
        let (engine, [one, two]) = engine(KEY_CAPS);
        let limiter = open(&engine, one);
        assert!(is_allowed(&engine, &limiter, b"key", one, 0));
        let now = 1_000 * MS;
        let (engine_2, limiter_2) = (engine.clone(), limiter.clone());
        let (wait_ns, is_allowed) = both(
            &engine,
            || {
                let reserved = engine.reserve(&limiter, b"key", 1, u64::MAX, one, now);
                reserved.unwrap().wait_ns
            },
            move || is_allowed(&engine_2, &limiter_2, b"key", two, now),
        );
        let wait_ms = if is_allowed { 1_000 } else { 0 };
        assert_eq!(wait_ns, wait_ms * MS, "limit: one unit is one admission");
    });
}
