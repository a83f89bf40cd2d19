//! Several limiters checked in one call: all or none, whoever else is at their keys.

use sprag_core::limit::Limit;
use sprag_core::limiter::{Asked, LimiterRef};
use sprag_core::region::Caps;
use sprag_core::{Engine, SessionId};
use sprag_loom_tests::{CAPS, MS, both, engine, model};
use std::sync::Arc;

/// Room for two keys, and one more, so that there are charges.
const KEY_CAPS: Caps = Caps {
    limiter_keys: 3,
    ..CAPS
};
const KEYS: [&[u8]; 2] = [b"a", b"b"];

struct Scene {
    engine: Arc<Engine>,
    sessions: [SessionId; 2],
    limiter: LimiterRef,
}

/// Two keys that are there, of a limiter of `burst` in as many seconds.
fn scene(burst: u64) -> Scene {
    let (engine, sessions) = engine(KEY_CAPS);
    let limit = Limit::token_bucket(burst, burst * 1_000 * MS).unwrap();
    let limiter = engine.open_limiter(b"l", limit, false, sessions[0], 0);
    let limiter = limiter.unwrap();
    for key in KEYS {
        // Used, so that neither makes room for the other, and idle by the time of the model.
        let checked = engine.check(&limiter, key, 1, sessions[0], 0).unwrap();
        assert!(!checked.is_overflow);
    }
    Scene {
        engine,
        sessions,
        limiter,
    }
}

/// When all of the burst is there again.
const NOW: u64 = 1_000 * MS;

/// Takes so much of each key, if all can be had; what each answer says is left.
fn take(
    engine: &Engine,
    limiter: &LimiterRef,
    parts: [(&[u8], u64); 2],
    by: SessionId,
) -> (bool, [u64; 2]) {
    let asked = parts.map(|(key, cost)| Asked { limiter, key, cost });
    let mut left = [0; 2];
    let is_allowed = engine.check_all(asked, by, u32::from(by.index()), NOW, |at, checked| {
        left[at] = checked.decision.remaining();
    });
    (is_allowed.unwrap(), left)
}

fn left(scene: &Scene) -> [u64; 2] {
    KEYS.map(|key| {
        let peeked = scene.engine.peek(&scene.limiter, key, NOW).unwrap();
        peeked.decision.remaining()
    })
}

#[test]
fn of_two_calls_over_the_same_keys_in_opposite_orders_with_one_unit_left_one_has_all() {
    model("limiters: two calls")
        .with_fewer_preemptions()
        .check(|| {
            let scene = scene(1);
            let [one, two] = scene.sessions;
            let (engine, limiter) = (scene.engine.clone(), scene.limiter.clone());
            let ((first, _), (second, _)) = both(
                &scene.engine,
                || take(&scene.engine, &scene.limiter, KEYS.map(|key| (key, 1)), one),
                move || take(&engine, &limiter, [(KEYS[1], 1), (KEYS[0], 1)], two),
            );
            let allowed = u32::from(first) + u32::from(second);
            assert_eq!(allowed, 1, "all: one unit of each is one call");
            assert_eq!(left(&scene), [0; 2], "all: it has both");
            assert_eq!(scene.engine.check_region().charges, 0);
        });
}

#[test]
fn of_a_call_and_a_check_with_one_unit_left_one_has_it_and_the_other_nothing() {
    model("limiters: a call against a check").check(|| {
        let scene = scene(1);
        let [one, two] = scene.sessions;
        let (engine, limiter) = (scene.engine.clone(), scene.limiter.clone());
        let ((is_taken, _), is_allowed) = both(
            &scene.engine,
            || take(&scene.engine, &scene.limiter, KEYS.map(|key| (key, 1)), one),
            move || {
                let checked = engine.check(&limiter, KEYS[0], 1, two, NOW).unwrap();
                checked.decision.is_allowed()
            },
        );
        assert_ne!(is_taken, is_allowed, "all: one unit is one admission");
        let others = u64::from(!is_taken);
        assert_eq!(
            left(&scene),
            [0, others],
            "all: a refused call takes nothing"
        );
    });
}

#[test]
fn a_look_at_all_keys_sees_all_that_a_call_takes_or_none_of_it() {
    model("limiters: a call against a look")
        .with_fewer_preemptions()
        .check(|| {
            let scene = scene(1);
            let [one, two] = scene.sessions;
            let (engine, limiter) = (scene.engine.clone(), scene.limiter.clone());
            let ((is_taken, _), (_, seen)) = both(
                &scene.engine,
                || take(&scene.engine, &scene.limiter, KEYS.map(|key| (key, 1)), one),
                move || take(&engine, &limiter, KEYS.map(|key| (key, 0)), two),
            );
            assert!(is_taken, "all: nobody else takes any");
            assert!(
                seen == [0; 2] || seen == [1; 2],
                "all: a look sees {seen:?}"
            );
        });
}
