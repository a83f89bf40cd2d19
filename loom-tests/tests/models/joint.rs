//! Limits declared together: what is left of each goes to one, and each admission counts once under all.

use sprag_core::joint::JointRef;
use sprag_core::limit::Limit;
use sprag_core::region::Caps;
use sprag_core::{Engine, SessionId};
use sprag_loom_tests::{CAPS, MS, both, engine, model};
use std::sync::Arc;

/// Room for two keys.
const KEY_CAPS: Caps = Caps {
    joint_keys: 2,
    ..CAPS
};

const SECOND: u64 = 1_000 * MS;
const KEY: &[u8] = b"key";

/// Two at once, in a millisecond each; and so many a day.
fn open(engine: &Engine, a_day: u64, by: SessionId) -> JointRef {
    let quick = Limit::token_bucket_with_burst(1, MS, 2).unwrap();
    let slow = Limit::token_bucket(a_day, 86_400 * SECOND).unwrap();
    engine.open_joint(b"j", &[quick, slow], by, 0).unwrap()
}

fn is_allowed(engine: &Engine, joint: &JointRef, by: SessionId, now: u64) -> bool {
    engine
        .check_joint(joint, KEY, 1, by, now)
        .unwrap()
        .is_allowed()
}

fn left(engine: &Engine, joint: &JointRef, now: u64) -> Vec<u64> {
    let peeked = engine.peek_joint(joint, KEY, now).unwrap();
    peeked
        .decisions()
        .map(|decision| decision.remaining())
        .collect()
}

/// How many of two threads are allowed that check the key at once.
fn allowed_of_two(
    engine: &Arc<Engine>,
    joint: &JointRef,
    [one, two]: [SessionId; 2],
    now: u64,
) -> u32 {
    let (engine_2, joint_2) = (engine.clone(), joint.clone());
    let (first, second) = both(
        engine,
        || is_allowed(engine, joint, one, now),
        move || is_allowed(&engine_2, &joint_2, two, now),
    );
    u32::from(first) + u32::from(second)
}

#[test]
fn of_two_threads_for_the_last_unit_of_one_limit_where_the_other_has_drained_one_is_allowed() {
    model("joint check").check(|| {
        let (engine, sessions) = engine(KEY_CAPS);
        let joint = open(&engine, 2, sessions[0]);
        // Not at time 0, where a bucket that was never used has not drained.
        assert!(is_allowed(&engine, &joint, sessions[0], MS));
        let allowed = allowed_of_two(&engine, &joint, sessions, SECOND);
        assert_eq!(allowed, 1, "limit: one unit is one admission");
        assert_eq!(
            left(&engine, &joint, SECOND),
            [1, 0],
            "limits: all of them count it, once"
        );
    });
}

#[test]
fn two_threads_that_are_both_allowed_where_one_limit_has_drained_count_once_each() {
    model("joint check of two").check(|| {
        let (engine, sessions) = engine(KEY_CAPS);
        let joint = open(&engine, 4, sessions[0]);
        // Not at time 0, where a bucket that was never used has not drained.
        assert!(is_allowed(&engine, &joint, sessions[0], MS));
        let allowed = allowed_of_two(&engine, &joint, sessions, SECOND);
        assert_eq!(allowed, 2, "limits: there is room for both");
        assert_eq!(
            left(&engine, &joint, SECOND),
            [0, 1],
            "limits: all of them count it, once"
        );
    });
}
