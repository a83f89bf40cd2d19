//! Overrides: whoever sets one and whoever inserts or uses its key see one another.

use sprag_core::limit::Limit;
use sprag_core::limiter::LimiterRef;
use sprag_core::region::Caps;
use sprag_core::{Engine, SessionId};
use sprag_loom_tests::{CAPS, MS, both, engine, model};
use std::sync::Arc;

/// Room for two keys.
const KEY_CAPS: Caps = Caps {
    limiter_keys: 2,
    ..CAPS
};

/// So many in a second.
fn limit(count: u64) -> Limit {
    Limit::token_bucket(count, 1_000 * MS).unwrap()
}

fn set(engine: &Engine, limiter: &LimiterRef, count: u64, by: SessionId) {
    engine
        .set_override(limiter, b"key", limit(count), by, || 0)
        .unwrap();
}

/// A limiter of 5, whose key was given 3 and is given 4 now, both of which have their slots.
fn scene(engine: &Engine, by: SessionId) -> LimiterRef {
    let limiter = engine.open_limiter(b"l", limit(5), false, by, 0).unwrap();
    set(engine, &limiter, 3, by);
    set(engine, &limiter, 4, by);
    limiter
}

/// The key is decided by `most`, of which one is used.
fn is_decided_by(engine: &Engine, limiter: &LimiterRef, most: u64) {
    let peeked = engine.peek(limiter, b"key", 0).unwrap().decision;
    assert_eq!(peeked.limit(), most, "limit: what was set decides");
    assert_eq!(
        peeked.remaining(),
        most - 1,
        "limit: what was used stays used"
    );
}

#[test]
fn a_key_that_is_inserted_while_its_override_is_set_is_under_it() {
    model("override set against an insertion").check(|| {
        let (engine, [one, two]) = engine(KEY_CAPS);
        let limiter = scene(&engine, one);
        let (engine_2, limiter_2) = (Arc::clone(&engine), limiter.clone());
        let ((), is_allowed) = both(
            &engine,
            || set(&engine, &limiter, 3, one),
            move || {
                let checked = engine_2.check(&limiter_2, b"key", 1, two, 0).unwrap();
                checked.decision.is_allowed()
            },
        );
        assert!(is_allowed);
        is_decided_by(&engine, &limiter, 3);
    });
}

#[test]
fn a_key_that_is_inserted_while_its_override_is_cleared_is_not_under_it() {
    model("override cleared against an insertion").check(|| {
        let (engine, [one, two]) = engine(KEY_CAPS);
        let limiter = scene(&engine, one);
        let (engine_2, limiter_2) = (Arc::clone(&engine), limiter.clone());
        let (was_set, is_allowed) = both(
            &engine,
            || engine.clear_override(&limiter, b"key", || 0).unwrap(),
            move || {
                let checked = engine_2.check(&limiter_2, b"key", 1, two, 0).unwrap();
                checked.decision.is_allowed()
            },
        );
        assert!(was_set && is_allowed);
        is_decided_by(&engine, &limiter, 5);
    });
}

#[test]
fn of_two_who_set_a_key_s_override_at_once_what_is_told_decides() {
    let model = model("override set against another").with_fewer_preemptions();
    model.check(|| {
        let (engine, [one, two]) = engine(KEY_CAPS);
        let limiter = scene(&engine, one);
        let checked = engine.check(&limiter, b"key", 1, one, 0).unwrap();
        assert!(checked.decision.is_allowed());
        let (engine_2, limiter_2) = (Arc::clone(&engine), limiter.clone());
        both(
            &engine,
            || engine.clear_override(&limiter, b"key", || 0).unwrap(),
            move || set(&engine_2, &limiter_2, 3, two),
        );
        let told = engine.override_of(&limiter, b"key", || 0).unwrap();
        is_decided_by(
            &engine,
            &limiter,
            told.map_or(5, |told| told.prepare().limit()),
        );
    });
}
