//! Calls of several limits whose process died in them, in a region that another boot, a resize or a check finds.

use crate::support::*;
use sprag_core::region::Caps;
use sprag_core::region::file;
use sprag_core::{Engine, Finding, Limit, LimiterRef, SessionId};
use std::path::Path;

const KEYS: [&[u8]; 2] = [b"ann", b"all"];

fn limiter(engine: &Engine, by: SessionId) -> LimiterRef {
    let limit: Limit = "10/h".parse().unwrap();
    engine.open_limiter(b"api", limit, false, by, 0).unwrap()
}

/// A region with a call of 3 in it that was left so far, of keys that have 2 used.
fn left(path: &Path, phase: u64) -> Engine {
    let engine = open(path);
    let me = session(&engine);
    let limiter = limiter(&engine, me);
    for key in KEYS {
        let checked = engine.check(&limiter, key, 2, me, SECOND).unwrap();
        assert!(checked.decision.is_allowed());
    }
    leave_call(&engine, path, &limiter, KEYS, 3, me, phase);
    let check = engine.check_region();
    assert_eq!((check.charges, check.findings), (1, vec![]));
    engine
}

fn remaining(engine: &Engine, now_ns: u64) -> [u64; 2] {
    let limiter = engine.limiter(b"api").unwrap().unwrap();
    KEYS.map(|key| {
        let peeked = engine.peek(&limiter, key, now_ns).unwrap();
        peeked.decision.remaining()
    })
}

const CASES: [(u64, u64); 3] = [(UNDECIDED, 8), (DECIDED, 5), (CALLED_OFF, 8)];

// property 10, property 15
#[test]
fn a_call_that_was_left_is_so_or_not_for_whoever_comes_to_its_keys() {
    for (phase, left_of_each) in CASES {
        let (_directory, path) = place();
        let engine = left(&path, phase);
        assert_eq!(remaining(&engine, SECOND), [left_of_each; 2]);
    }
}

// property 10
#[test]
fn after_another_boot_calls_that_were_left_are_over() {
    for (phase, left_of_each) in CASES {
        let (_directory, path) = place();
        drop(left(&path, phase));
        let mut options = OPTIONS;
        options.birth.boot_id = [3, 4];
        let after = try_open(&path, &options).unwrap();
        assert_eq!(remaining(&after, SECOND), [left_of_each; 2]);
        assert_eq!(after.check_region().charges, 0);
    }
}

#[test]
fn after_another_boot_a_key_whose_call_was_not_written_back_starts_anew() {
    let (_directory, path) = place();
    drop(left(&path, DECIDED));
    // The charge is of another call by now.
    let bytes = std::fs::read(&path).unwrap();
    let cell = bytes.chunks(16).position(|chunk| chunk[..4] == *b"ann\0");
    let cell = (cell.unwrap() - 1) * 16;
    let at = (0..bytes.len() / 8).find(|i| bytes[i * 8..i * 8 + 8] == (cell as u64).to_le_bytes());
    scribble(&path, at.unwrap() as u64 * 8, &[0; 8]);
    let mut options = OPTIONS;
    options.birth.boot_id = [3, 4];
    let after = try_open(&path, &options).unwrap();
    assert_eq!(remaining(&after, SECOND), [10, 5]);
    assert_eq!(after.check_region().findings, []);
}

// property 10
#[test]
fn resizing_carries_over_what_calls_that_were_left_had_decided() {
    for (phase, left_of_each) in CASES {
        let (_directory, path) = place();
        drop(left(&path, phase));
        let caps = Caps {
            limiter_keys: 200,
            ..CAPS
        };
        file::resize(&path, caps, BIRTH).unwrap();
        let after = open(&path);
        assert_eq!(remaining(&after, SECOND), [left_of_each; 2]);
        assert_eq!(after.check_region().charges, 0);
    }
}

// property 11
#[test]
fn an_engaged_word_that_its_charge_does_not_name_is_a_finding_and_an_error() {
    let (_directory, path) = place();
    let engine = left(&path, UNDECIDED);
    let bytes = std::fs::read(&path).unwrap();
    let cell = bytes.chunks(16).position(|chunk| chunk[..4] == *b"ann\0");
    let cell = (cell.unwrap() - 1) * 16;
    // Engaged by another number.
    scribble(&path, cell as u64 + 8, &[0xff; 4]);
    let findings = engine.check_region().findings;
    assert!(
        matches!(
            findings[..],
            [Finding::Charge {
                is_bucket: false,
                ..
            }]
        ),
        "{findings:?}"
    );
    assert!(findings[0].to_string().contains("limiter key"));
    let me = SessionId::DETACHED;
    let checked = engine.check(&limiter(&engine, me), KEYS[0], 1, me, SECOND);
    assert!(matches!(checked, Err(sprag_core::Error::Damaged { .. })));
}
