//! Scenes of several limits in one call, and of checks that meet a call whose process died in it. What the keys have
//! used in the end is the same for all keys of the struck call: all of it or none.

use crate::actor::{Actor, name_of, yes};
use crate::journal::{Op, Outcome};
use crate::process::{Fate, fork, wait};
use crate::scene::{Cue, DAY, LIMITS, Scene, Turn, WIDER, scene};
use crate::scenes_limiter::{API, change_many_times, fill, open, space_has};
use crate::scenes_lock::{KEY, all_is_well, churn};
use sprag::{Limiter, Space};

/// No limit of the oracle's: it knows of no calls of several, and these scenes add up for themselves.
const APART: u64 = LIMITS.len() as u64;
const SECOND: u64 = 8;
const KEYS: [u64; 2] = [KEY, SECOND];
const WITHOUT_ROOM: [u64; 2] = [20, 21];
/// The step of a call before which it claims a charge, at most, and how many come from there on.
const CHARGED_FROM: u64 = 10;
const CHARGED_STEPS: u64 = 22;

/// Takes one of each key, if all can be had.
fn take_all(actor: &Actor, op: Op, space: &Space, limiter: &Limiter, keys: [u64; 2]) -> bool {
    let names = keys.map(name_of);
    let call = || space.check_all(&[(limiter, &names[0], 1), (limiter, &names[1], 1)]);
    let decisions = actor.call(op, keys[0], 1, call, |decisions| {
        yes(decisions.as_ref().is_ok_and(sprag::Decisions::is_allowed))
    });
    decisions.expect("a call never fails").is_allowed()
}

fn take(actor: &Actor, limiter: &Limiter, key: u64) {
    assert!(actor.check(Op::Check, limiter, APART, key, 1));
}

/// What of `key` is used, under a limit of which nothing comes back while a scene lasts.
fn used(limiter: &Limiter, key: u64) -> u64 {
    let peeked = limiter.peek(&name_of(key)).expect("no error");
    peeked.limit() - peeked.remaining()
}

/// How often the struck operation counts: once, not at all, or, where it is not known, either.
fn times(actor: &Actor, op: Op) -> std::ops::RangeInclusive<u64> {
    let records = actor.journal.records();
    let struck = records.iter().find(|record| record.op == op);
    match struck.expect("it began").outcome {
        Outcome::Yes => 1..=1,
        Outcome::No => 0..=0,
        Outcome::Unknown => 0..=1,
    }
}

fn victim(actor: &Actor, cue: &Cue, keys: [u64; 2]) {
    let space = actor.open();
    let limiter = space.limiter(API, LIMITS[DAY as usize].0).expect("there");
    cue.strike(actor);
    take_all(actor, cue.op(), &space, &limiter, keys);
    cue.through();
}

/// While the victim is stopped: one key is checked, both are, or the limit is changed and the slots of limits go
/// round. What each key is charged meanwhile.
fn meanwhile(actor: &Actor, cue: &Cue, space: &Space, limiter: &Limiter) -> [u64; 2] {
    match cue.case.step % 3 {
        0 => {
            open(actor, space, WIDER);
            change_many_times(space, "other");
            [0, 0]
        }
        1 => {
            take(actor, limiter, SECOND);
            [0, 1]
        }
        _ => {
            let keys = [SECOND, KEY];
            assert!(take_all(actor, Op::Check, space, limiter, keys));
            [1, 1]
        }
    }
}

/// Meets the victim, and goes on; what each key is charged meanwhile.
fn take_turn(actor: &Actor, cue: &Cue, space: &Space, limiter: &Limiter) -> [u64; 2] {
    match cue.meet() {
        Turn::Dead => [0, 0],
        Turn::Stopped => {
            let charged = meanwhile(actor, cue, space, limiter);
            churn(actor, space, 24);
            cue.resume();
            cue.probed();
            charged
        }
        Turn::Through => {
            cue.probed();
            [0, 0]
        }
    }
}

/// `others`: what each key is charged beforehand.
fn companion(actor: &Actor, cue: &Cue, others: [u64; 2]) {
    let space = actor.open();
    let limiter = open(actor, &space, DAY);
    for (key, times) in KEYS.into_iter().zip(others) {
        for _ in 0..times {
            take(actor, &limiter, key);
        }
    }
    cue.ready();
    let more = take_turn(actor, cue, &space, &limiter);
    let others = [others[0] + more[0], others[1] + more[1]];
    let limiter = open(actor, &space, WIDER);
    let found = KEYS.map(|key| used(&limiter, key));
    assert!(
        times(actor, cue.op()).any(|times| found == others.map(|other| other + times)),
        "{found:?} used, {others:?} by others"
    );
    assert!(take_all(actor, Op::Check, &space, &limiter, KEYS));
    let names = 1 + u64::from(space_has(&space, "other"));
    all_is_well(actor, &space, KEY, names);
}

/// The table is full, so that both keys are decided by the bucket that they share; and one of each is charged with
/// one that has room.
fn companion_of_overflow(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let limiter = open(actor, &space, DAY);
    fill(actor, &limiter, DAY);
    cue.ready();
    let mut others = 0;
    match cue.meet() {
        Turn::Dead => {}
        Turn::Stopped => {
            others += 1;
            assert!(actor.check(Op::CheckOverflow, &limiter, APART, WITHOUT_ROOM[1], 1));
            change_many_times(&space, "other");
            churn(actor, &space, 24);
            cue.resume();
            cue.probed();
        }
        Turn::Through => cue.probed(),
    }
    // The first key is in the table, the second is not.
    let found = [used(&limiter, 100), used(&limiter, WITHOUT_ROOM[1])];
    assert!(
        times(actor, cue.op()).any(|times| found == [1 + times, others + times]),
        "{found:?} used, {others} by others"
    );
    let names = 1 + u64::from(space_has(&space, "other"));
    all_is_well(actor, &space, KEY, names);
}

/// A process dies in the middle of a call; then the victim checks one of its keys.
fn companion_of_met(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let limiter = open(actor, &space, DAY);
    for key in KEYS {
        take(actor, &limiter, key);
    }
    let dead = actor.also(3);
    let pid = fork(|| {
        let space = dead.open();
        let limiter = space.limiter(API, LIMITS[DAY as usize].0).expect("there");
        dead.aim(CHARGED_FROM + cue.case.step % CHARGED_STEPS, libc::SIGKILL);
        take_all(&dead, Op::ChargeDead, &space, &limiter, KEYS);
    });
    assert!(matches!(wait(pid), Fate::Killed(_) | Fate::Exited(0)));
    cue.ready();
    let others = take_turn(actor, cue, &space, &limiter).map(|more| 1 + more);
    let limiter = open(actor, &space, WIDER);
    let found = KEYS.map(|key| used(&limiter, key));
    let explains = |dead: u64, met: u64| found == [others[0] + dead + met, others[1] + dead];
    assert!(
        times(actor, Op::ChargeDead)
            .any(|dead| times(actor, cue.op()).any(|met| explains(dead, met))),
        "{found:?} used, {others:?} by others"
    );
    let names = 1 + u64::from(space_has(&space, "other"));
    all_is_well(actor, &space, KEY, names);
}

fn meet(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let limiter = space.limiter(API, LIMITS[DAY as usize].0).expect("there");
    cue.strike(actor);
    actor.check(cue.op(), &limiter, APART, KEY, 1);
    cue.through();
}

pub(crate) const SCENES: [Scene; 4] = [
    scene(
        Op::Charge,
        |actor, cue| victim(actor, cue, KEYS),
        |actor, cue| companion(actor, cue, [1, 2]),
    ),
    scene(
        Op::ChargeInsert,
        |actor, cue| victim(actor, cue, KEYS),
        |actor, cue| companion(actor, cue, [0, 1]),
    ),
    Scene {
        is_room_for_keys: false,
        ..scene(
            Op::ChargeOverflow,
            |actor, cue| victim(actor, cue, [100, WITHOUT_ROOM[0]]),
            companion_of_overflow,
        )
    },
    scene(Op::ChargeMet, meet, companion_of_met),
];
