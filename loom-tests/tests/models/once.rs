//! Onces: one owner, and a result that is whole.

use sprag_core::once::{Attempt, Begun};
use sprag_core::region::Caps;
use sprag_core::{Engine, Error, Name, SessionId};
use sprag_loom_tests::{CAPS, MS, both, engine, model};
use std::sync::Arc;

/// Room for two results of one chunk, or one of two.
const CHUNKS: Caps = Caps {
    key_chunks: 2,
    // Not one alone each, so that these are there for a sweep to look at, too.
    limiter_keys: 2,
    joint_keys: 2,
    ..CAPS
};

/// Results that a reader needs several loads for: in one chunk, and in two.
const FIRST: [u8; 16] = [1; 16];
const SECOND: [u8; 16] = [2; 16];
const LONG: [u8; 56] = [3; 56];
const OTHER: [u8; 56] = [4; 56];

fn started(engine: &Engine, name: &Name, by: SessionId, now_ns: u64) -> Option<Attempt> {
    match engine.begin(name, by, now_ns, 10 * MS).unwrap() {
        Begun::Started(attempt) => Some(attempt),
        Begun::InProgress(_) | Begun::Done(_) => None,
    }
}

fn with_attempt(caps: Caps) -> (Arc<Engine>, [SessionId; 2], Name, Attempt) {
    let (engine, sessions) = engine(caps);
    let name = engine.once_name(b"once").unwrap();
    let attempt = started(&engine, &name, sessions[0], MS).unwrap();
    (engine, sessions, name, attempt)
}

#[test]
fn two_threads_never_own_one_key() {
    model("once, one owner").check(|| {
        let (engine, [one, two]) = engine(CAPS);
        let name = engine.once_name(b"once").unwrap();

        let (a, b) = {
            let (engine_2, name_2) = (engine.clone(), name.clone());
            both(
                &engine,
                || started(&engine, &name, one, MS),
                move || started(&engine_2, &name_2, two, MS),
            )
        };
        assert!(
            a.is_some() != b.is_some(),
            "once: two threads own one key, or none does"
        );
    });
}

#[test]
fn an_attempt_that_meets_its_end_is_finished_or_taken_over_and_never_both() {
    model("once, finish against takeover").check(|| {
        let (engine, [one, two], name, attempt) = with_attempt(CHUNKS);

        let (is_finished, begun) = {
            let (engine_2, name_2) = (engine.clone(), name.clone());
            both(
                &engine,
                || {
                    let finished = engine.finish(&attempt, one, &FIRST, 10 * MS, 100 * MS);
                    finished.unwrap()
                },
                // By a clock that is ahead of the owner's.
                move || engine_2.begin(&name_2, two, 11 * MS, 10 * MS).unwrap(),
            )
        };
        match begun {
            Begun::Started(next) => assert!(
                !is_finished && next.token > attempt.token && next.is_after_unfinished,
                "once: a late owner stores nothing"
            ),
            Begun::Done(result) => assert!(
                is_finished && result == FIRST,
                "once: a result is what was stored, or nothing is"
            ),
            Begun::InProgress(_) => unreachable!("its deadline is over"),
        }
    });
}

#[test]
fn a_late_owner_writes_to_no_chunk_of_its_successor() {
    model("once, late owner").check(|| {
        let (engine, [one, two], name, attempt) = with_attempt(CHUNKS);

        // Each takes all chunks that there are, so that the two meet at them.
        let (is_finished, read) = {
            let (engine_2, name_2) = (engine.clone(), name.clone());
            both(
                &engine,
                || match engine.finish(&attempt, one, &LONG, 10 * MS, 100 * MS) {
                    Err(Error::Full { .. }) => false,
                    finished => finished.unwrap(),
                },
                move || {
                    let next = started(&engine_2, &name_2, two, 11 * MS)?;
                    match engine_2.finish(&next, two, &OTHER, 12 * MS, 100 * MS) {
                        Err(Error::Full { .. }) => return None,
                        finished => assert!(finished.unwrap(), "once: nobody ended its attempt"),
                    }
                    // While the late one may still be at it.
                    match engine_2.begin(&name_2, two, 13 * MS, MS).unwrap() {
                        Begun::Done(result) => Some(result),
                        _ => panic!("once: it was done"),
                    }
                },
            )
        };
        if let Some(result) = read {
            assert!(
                !is_finished && result == OTHER,
                "once: a result is the one that was stored"
            );
        }
    });
}

/// Reads a result while its chunks, and there are no others, become another's.
fn read_against_reuse(model_name: &'static str, read: fn(&Engine, &Name, SessionId) -> Begun) {
    model(model_name).check(move || {
        let (engine, [one, two], name, attempt) = with_attempt(CHUNKS);
        assert!(engine.finish(&attempt, one, &LONG, MS, MS).unwrap());

        let (read, ()) = {
            let (engine_2, name_2) = (engine.clone(), name.clone());
            both(
                &engine,
                || read(&engine, &name, one),
                // By a clock that is ahead, it is not kept any more, so its chunks are free; there are no others.
                move || {
                    let next = started(&engine_2, &name_2, two, 3 * MS).unwrap();
                    let finished = engine_2.finish(&next, two, &SECOND, 3 * MS, 100 * MS);
                    assert!(finished.unwrap());
                },
            )
        };
        match read {
            Begun::Done(result) => assert!(
                result == LONG || result == SECOND,
                "once: a result is torn: {result:?}"
            ),
            Begun::InProgress(_) => {}
            Begun::Started(_) => panic!("once: it began while it was kept or in progress"),
        }
    });
}

#[test]
fn a_result_that_is_read_while_another_takes_its_place_is_one_of_the_two() {
    read_against_reuse("once, read against reuse", |engine, name, by| {
        engine.begin(name, by, MS, 100 * MS).unwrap()
    });
}

#[test]
fn a_result_that_is_read_at_once_while_another_takes_its_place_is_one_of_the_two() {
    read_against_reuse(
        "once, read at once against reuse",
        |engine, name, by| match engine.result_if_done(name, MS) {
            Some(result) => Begun::Done(result),
            None => engine.begin(name, by, MS, 100 * MS).unwrap(),
        },
    );
}
