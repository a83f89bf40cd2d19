//! Scenes of onces: beginning, finishing, abandoning, taking over, reading results.

use crate::actor::{Actor, Begin, LONG, Owned};
use crate::journal::Op;
use crate::scene::{Cue, LONG_TTL, SHORT_TTL, SMALL, Scene, Turn, scene};
use crate::scenes_lock::{CHURN, KEY, all_is_well_but, churn};
use sprag::{Caps, OnceStatus, Space};

/// How long results are kept that nobody is to outlive.
const KEPT: std::time::Duration = LONG_TTL;
/// The other key that scenes are about.
const DONE: u64 = 2;

/// Room for two results, one that a stopped process is writing, and a long name.
const CAPS: Caps = Caps {
    key_chunks: 21,
    ..SMALL
};

/// Has cells and chunks change hands, as far as there are any to be had.
fn churn_all(actor: &Actor, space: &Space) {
    churn(actor, space, 24);
    for key in LONG + CHURN..LONG + CHURN + 6 {
        let held = actor.try_acquire(Op::Acquire, space, key, LONG_TTL);
        let held = held.expect("a reclaimable entry makes room");
        assert!(actor.release(Op::Release, held.expect("nobody else has this name")));
    }
}

/// What others do while the victim is stopped in an operation on `key`; the attempt that they have of it
/// when it goes on.
fn go_on<'s>(actor: &Actor, cue: &Cue, space: &'s Space, key: u64) -> Option<Owned<'s>> {
    churn_all(actor, space);
    if cue.case.ttl == SHORT_TTL {
        // Its time is over, so whoever comes gets the key, or its result.
        let owned = actor.must_begin(space, key, LONG_TTL)?;
        if cue.case.step.is_multiple_of(2) {
            return Some(owned);
        }
        assert!(actor.finish(Op::Finish, owned, KEPT), "nobody took it away");
        churn_all(actor, space);
        return None;
    }
    match actor.begin(Op::Begin, space, key, LONG_TTL).expect("room") {
        Begin::Started(owned) => Some(owned),
        Begin::InProgress | Begin::Done => None,
    }
}

/// The companion's part once the victim began: looks after `key` until the victim is gone, and then does it
/// if that is still to be done.
fn look_after_once(actor: &Actor, cue: &Cue, space: &Space, key: u64) {
    let turn = cue.meet();
    if turn != Turn::Dead {
        let mut kept = None;
        if turn == Turn::Stopped {
            kept = go_on(actor, cue, space, key);
            cue.resume();
        }
        if let Some(owned) = kept {
            assert!(
                owned.attempt.is_held(),
                "a stale step ended another's attempt"
            );
            assert!(actor.finish(Op::Finish, owned, KEPT), "nobody took it away");
        }
        actor.look(Op::LookOnce, space, key);
        cue.probed();
    }
    let was_done = matches!(
        actor.look(Op::LookOnce, space, key),
        OnceStatus::Done { .. }
    );
    churn_all(actor, space);
    let owned = actor.must_begin(space, key, LONG_TTL);
    assert!(
        !(was_done && owned.is_some()),
        "what was done is not any more"
    );
    if let Some(owned) = owned {
        assert!(actor.finish(Op::Finish, owned, KEPT), "nobody took it away");
    }
}

/// How many chunks the results of these keys take, as long names of five.
fn long_results(actor: &Actor, space: &Space, keys: &[u64]) -> u64 {
    let chunks: usize = keys
        .iter()
        .map(|key| match actor.look(Op::LookOnce, space, *key) {
            OnceStatus::Done { result, .. } => result.len().div_ceil(48),
            other => panic!("{other:?}"),
        })
        .sum();
    let left = u64::from(actor.caps.key_chunks) - chunks as u64;
    u64::from(actor.caps.key_chunks) / 5 - left / 5
}

fn end_well(actor: &Actor, space: &Space, keys: &[u64]) {
    let long = long_results(actor, space, keys);
    all_is_well_but(actor, space, KEY, keys.len() as u64, long);
}

fn begin_as(actor: &Actor, cue: &Cue, op: Op) {
    let space = actor.open();
    cue.strike(actor);
    let begun = actor.begin(op, &space, KEY, cue.case.ttl).expect("room");
    cue.through();
    if let Begin::Started(owned) = begun {
        actor.finish(Op::Finish, owned, KEPT);
    }
}

fn companion_of_begin(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    churn(actor, &space, 3);
    cue.ready();
    look_after_once(actor, cue, &space, KEY);
    end_well(actor, &space, &[KEY]);
}

fn die_in_progress(actor: &Actor) {
    let space = actor.open();
    let owned = actor.must_begin(&space, KEY, LONG_TTL).expect("it is new");
    // Its end is the process's.
    owned.give_up();
    std::mem::forget(space);
}

fn look_as(actor: &Actor, cue: &Cue, op: Op) {
    let space = actor.open();
    cue.strike(actor);
    let status = actor.look(op, &space, KEY);
    cue.through();
    assert!(
        !matches!(status, OnceStatus::New),
        "a dead attempt is forgotten"
    );
}

/// Reads a result while it ceases to be kept, and others come.
fn companion_of_done(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let owned = actor.must_begin(&space, KEY, LONG_TTL).expect("it is new");
    assert!(actor.finish(Op::Finish, owned, cue.case.ttl));
    cue.ready();
    look_after_once(actor, cue, &space, KEY);
    end_well(actor, &space, &[KEY]);
}

fn end_as(actor: &Actor, cue: &Cue, op: Op) {
    let space = actor.open();
    let begun = actor
        .begin(Op::Begin, &space, KEY, cue.case.ttl)
        .expect("room");
    let Begin::Started(owned) = begun else {
        panic!("the key is new");
    };
    cue.strike(actor);
    if op == Op::Finish {
        actor.finish(op, owned, KEPT);
    } else {
        actor.abandon(op, owned);
    }
    cue.through();
}

/// As of a beginning; a result of another key is not to be harmed either.
fn companion_of_end(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let owned = actor.must_begin(&space, DONE, LONG_TTL).expect("it is new");
    assert!(actor.finish(Op::Finish, owned, KEPT));
    cue.ready();
    look_after_once(actor, cue, &space, KEY);
    end_well(actor, &space, &[KEY, DONE]);
}

const fn once_scene(op: Op, victim: fn(&Actor, &Cue), companion: fn(&Actor, &Cue)) -> Scene {
    Scene {
        caps: CAPS,
        ..scene(op, victim, companion)
    }
}

pub(crate) const SCENES: [Scene; 6] = [
    once_scene(
        Op::Begin,
        |actor, cue| begin_as(actor, cue, Op::Begin),
        companion_of_begin,
    ),
    Scene {
        before: Some(die_in_progress),
        ..once_scene(
            Op::BeginTakeOver,
            |actor, cue| begin_as(actor, cue, Op::BeginTakeOver),
            companion_of_begin,
        )
    },
    once_scene(
        Op::BeginDone,
        |actor, cue| begin_as(actor, cue, Op::BeginDone),
        companion_of_done,
    ),
    once_scene(
        Op::Finish,
        |actor, cue| end_as(actor, cue, Op::Finish),
        companion_of_end,
    ),
    once_scene(
        Op::Abandon,
        |actor, cue| end_as(actor, cue, Op::Abandon),
        companion_of_end,
    ),
    Scene {
        before: Some(die_in_progress),
        ..once_scene(
            Op::LookOnce,
            |actor, cue| look_as(actor, cue, Op::LookOnce),
            companion_of_begin,
        )
    },
];
