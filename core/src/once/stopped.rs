//! An owner that is stopped between two steps of storing its result, while everything moves on: what it does
//! when it goes on must fail or be harmless.

use super::*;
use crate::region::Caps;
use crate::session::Process;
use crate::stopped::engine;

const SECOND: u64 = 1_000_000_000;
const EARLY: [u8; 60] = [1; 60];
const LATE: [u8; 60] = [2; 60];

/// Room for two results.
const CAPS: Caps = Caps {
    objects: 16,
    limiter_keys: 16,
    joint_keys: 16,
    sessions: 8,
    waiters: 16,
    permits: 2,
    key_chunks: 4,
};

impl Engine {
    fn start(&self, name: &Name, by: SessionId, now_ns: u64) -> Attempt {
        match self.begin(name, by, now_ns, SECOND).unwrap() {
            Begun::Started(attempt) => attempt,
            other => panic!("{other:?}"),
        }
    }

    fn store(&self, name: &Name, by: SessionId, now_ns: u64, result: &[u8]) {
        let attempt = self.start(name, by, now_ns);
        let stored = self.finish(&attempt, by, result, now_ns, 100 * SECOND);
        assert!(stored.unwrap());
    }
}

#[test]
fn property_15_chunks_of_an_attempt_that_is_over_are_free_and_are_given_back_to_nobody_else() {
    let (engine, me) = engine(CAPS);
    let [a, b] = [b"a", b"b"].map(|name| engine.once_name(name).unwrap());
    let slow = engine.start(&a, me, 0);
    let written = engine
        .write_result(slow.cell, slow.token, me, &LATE)
        .unwrap();
    // Stopped: its result is handed over to the attempt, and not yet published. The attempt ends.
    engine.store(&a, me, 2 * SECOND, &EARLY);
    engine.store(&b, me, 2 * SECOND, &EARLY);
    // It goes on: too late, and what it gives back is two others' by now.
    let late = engine.change_attempt(slow.cell, slow.token, Some(SECOND / 2), |state| state);
    assert_eq!(late, None);
    engine.give_back(slow.cell, slow.token, &written);
    let third = engine.start(&engine.once_name(b"c").unwrap(), me, 2 * SECOND);
    let full = engine.finish(&third, me, &LATE, 2 * SECOND, SECOND);
    assert!(matches!(full, Err(Error::Full { .. })), "{full:?}");
    for name in [&a, &b] {
        let begun = engine.begin(name, me, 2 * SECOND, SECOND).unwrap();
        assert_eq!(begun, Begun::Done(EARLY.to_vec()));
    }
}

#[test]
fn property_15_a_session_that_died_writing_a_result_leaves_its_chunks_free() {
    let (engine, me) = engine(CAPS);
    let name = engine.once_name(b"a").unwrap();
    let dead = engine.open_session(Process::default(), 0).unwrap();
    let slow = engine.start(&name, dead, 0);
    let writer = chunk::Owner::Writer {
        line: dead.index(),
        generation: crate::session::Sessions::generation(&engine.region, dead),
    };
    let mut taker = chunk::Taker::new(&engine.region, |owner| engine.is_current(owner));
    for _ in 0..4 {
        taker.take(writer, &LATE[..48], 0).unwrap();
    }
    // Stopped while it fills chunks, which nobody takes from it.
    let other = engine.start(&engine.once_name(b"b").unwrap(), me, 0);
    let full = engine.finish(&other, me, &EARLY, 0, SECOND);
    assert!(matches!(full, Err(Error::Full { .. })), "{full:?}");
    engine.close_session(dead);
    assert!(engine.finish(&other, me, &EARLY, 0, SECOND).unwrap());
    engine.store(&name, me, 0, &EARLY);
    assert!(!engine.finish(&slow, dead, b"", 0, SECOND).unwrap());
}

#[test]
fn property_5_who_is_told_that_an_attempt_ended_unfinished_was_told_for_good() {
    let (engine, me) = engine(CAPS);
    let name = engine.once_name(b"a").unwrap();
    let slow = engine.start(&name, me, 0);
    // Its owner looked at the clock before its deadline, and is stopped; another looks after.
    let told = engine.once_status(&name, SECOND).unwrap();
    assert_eq!(told, OnceStatus::Unfinished);
    assert!(
        !engine
            .finish(&slow, me, &LATE, SECOND - 1_000, SECOND)
            .unwrap()
    );
    assert_eq!(engine.extend(&slow, SECOND - 1_000, SECOND).unwrap(), None);
    assert_eq!(engine.once_status(&name, SECOND).unwrap(), told);
}

#[test]
fn property_11_a_sweep_that_finds_an_attempt_over_knows_from_when_on_it_is_idle() {
    let caps = Caps { objects: 1, ..CAPS };
    let (engine, me) = engine(caps);
    let dead = engine.open_session(Process::default(), 0).unwrap();
    let [a, b] = [b"a", b"b"].map(|name| engine.once_name(name).unwrap());
    let Begun::Started(_) = engine.begin(&a, dead, 0, TTL_NS_MAX).unwrap() else {
        panic!("it is new");
    };
    engine.close_session(dead);
    let is_full = |now_ns| {
        matches!(
            engine.begin(&b, me, now_ns, SECOND),
            Err(Error::Full { .. })
        )
    };
    assert!(is_full(SECOND), "it is remembered that a's owner died");
    assert!(is_full(UNFINISHED_KEPT_NS));
    assert_eq!(
        engine.once_status(&a, UNFINISHED_KEPT_NS).unwrap(),
        OnceStatus::Unfinished
    );
    assert!(
        !is_full(SECOND + UNFINISHED_KEPT_NS),
        "and not for the year that it had"
    );
}

#[test]
fn property_11_what_was_to_be_remembered_may_be_done_and_idle_before() {
    let caps = Caps { objects: 1, ..CAPS };
    let (engine, me) = engine(caps);
    let [a, b] = [b"a", b"b"].map(|name| engine.once_name(name).unwrap());
    let attempt = engine.start(&a, me, 0);
    assert!(engine.abandon(&attempt, 0, false));
    let full = engine.begin(&b, me, SECOND, SECOND);
    assert!(matches!(full, Err(Error::Full { .. })), "{full:?}");
    let again = engine.start(&a, me, SECOND);
    assert!(engine.finish(&again, me, b"", SECOND, TTL_NS_MIN).unwrap());
    engine.start(&b, me, 2 * SECOND);
}
