//! Scenes of limiters: checking, inserting and reclaiming keys, overflowing, refusing.

use crate::actor::{Actor, LONG, PATIENCE, name_of};
use crate::journal::Op;
use crate::process::{Fate, fork, wait};
use crate::scene::{Cue, DAY, FAST, LIMITS, SMALL, Scene, TWO, Turn, WIDER, now_ns, scene};
use crate::scenes_lock::{KEY, all_is_well, all_is_well_but, churn};
use sprag::{Limiter, Space};

pub(crate) const API: &str = "api";

pub(crate) fn open(actor: &Actor, space: &Space, limit: u64) -> Limiter {
    let text = LIMITS[limit as usize].0;
    actor.limiter(Op::OpenLimiter, space, API, text)
}

/// Checks `key` until it is refused; how often it was allowed.
fn exhaust(actor: &Actor, limiter: &Limiter, limit: u64, key: u64) -> u64 {
    let most = LIMITS[limit as usize].1.burst;
    (0..=most)
        .take_while(|_| actor.check(Op::Check, limiter, limit, key, 1))
        .count() as u64
}

/// What a key was allowed in all, and what a check of unknown outcome may have taken besides.
pub(crate) fn taken(actor: &Actor, key: u64) -> (u64, u64) {
    let mut sums = (0, 0);
    for record in actor.journal.records() {
        if record.key == key && format!("{:?}", record.op).starts_with("Check") {
            match record.outcome {
                crate::journal::Outcome::Yes => sums.0 += record.argument,
                crate::journal::Outcome::Unknown => sums.1 += record.argument,
                crate::journal::Outcome::No => {}
            }
        }
    }
    sums
}

/// Each of `keys` is good for exactly what the limit says, less what a dead check may have taken.
pub(crate) fn all_is_used_up(actor: &Actor, limiter: &Limiter, limit: u64, keys: &[u64]) {
    let most = LIMITS[limit as usize].1.burst;
    for &key in keys {
        exhaust(actor, limiter, limit, key);
        let (known, unknown) = taken(actor, key);
        assert!(
            known <= most && known + unknown >= most,
            "key {key}: {known} allowed, {unknown} unknown, of {most}"
        );
    }
}

fn check_as(actor: &Actor, cue: &Cue, op: Op, limit: u64, key: u64) {
    let space = actor.open();
    let limiter = space.limiter(API, LIMITS[limit as usize].0).expect("there");
    cue.strike(actor);
    // Journaled under the limit that the scene ends with.
    let judged_by = if limit == DAY { WIDER } else { limit };
    actor.check(op, &limiter, judged_by, key, 1);
    cue.through();
}

/// Looks after a limiter of `DAY` with `used` of `KEY` taken; changes it to `WIDER` while the victim
/// is stopped or after.
fn companion_of_check(actor: &Actor, cue: &Cue, key: u64, used: u64) {
    let space = actor.open();
    let limiter = open(actor, &space, DAY);
    // A key of the same length has been there, so that pages and chunks are.
    let same_length = if key >= LONG { LONG + 9 } else { 9 };
    assert!(actor.check(Op::Check, &limiter, WIDER, same_length, 1));
    for _ in 0..used {
        assert!(actor.check(Op::Check, &limiter, WIDER, key, 1));
    }
    cue.ready();
    match cue.meet() {
        Turn::Dead => {}
        Turn::Stopped => {
            assert!(actor.check(Op::Check, &limiter, WIDER, key, 1));
            assert!(actor.check(Op::Check, &limiter, WIDER, 8, 1));
            if cue.case.step.is_multiple_of(2) {
                open(actor, &space, WIDER);
                change_many_times(&space, "other");
            }
            churn(actor, &space, 24);
            cue.resume();
            cue.probed();
        }
        Turn::Through => cue.probed(),
    }
    let limiter = open(actor, &space, WIDER);
    all_is_used_up(actor, &limiter, WIDER, &[key, same_length, 8]);
    let long_keys = if key >= LONG { 2 } else { 0 };
    let names = 1 + u64::from(space_has(&space, "other"));
    all_is_well_but(actor, &space, KEY, names, long_keys);
}

pub(crate) fn space_has(space: &Space, name: &str) -> bool {
    let limiters = space.limiters(name).expect("not forked");
    limiters
        .iter()
        .any(|limiter| limiter.name == name.as_bytes())
}

/// So many changes that each slot of a limit is used anew.
pub(crate) fn change_many_times(space: &Space, name: &str) {
    change_so_often(space, name, 1_100);
}

pub(crate) fn change_so_often(space: &Space, name: &str, count: u32) {
    for round in 0..count {
        let text = if round % 2 == 0 { "7/day" } else { "8/day" };
        space.limiter_updated(name, text).expect("a free slot");
    }
}

/// Keys that fill the table, each used once.
pub(crate) fn fill(actor: &Actor, limiter: &Limiter, limit: u64) {
    for key in 100..100 + u64::from(SMALL.limiter_keys) {
        assert!(actor.check(Op::Check, limiter, limit, key, 1));
    }
}

const WITHOUT_ROOM: u64 = 20;

fn companion_of_overflow(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let limiter = open(actor, &space, DAY);
    fill(actor, &limiter, DAY);
    let is_overflow = |limiter: &Limiter| {
        let decision = limiter.check(&name_of(21), 0).expect("no error");
        decision.is_overflow()
    };
    assert!(is_overflow(&limiter), "the table is full");
    cue.ready();
    match cue.meet() {
        Turn::Dead => {}
        Turn::Stopped => {
            assert!(actor.check(Op::CheckOverflow, &limiter, DAY, WITHOUT_ROOM, 1));
            change_many_times(&space, "other");
            assert!(actor.check(Op::CheckOverflow, &limiter, DAY, WITHOUT_ROOM, 1));
            churn(actor, &space, 24);
            cue.resume();
            cue.probed();
        }
        Turn::Through => cue.probed(),
    }
    all_is_used_up(actor, &limiter, DAY, &[WITHOUT_ROOM, 100, 101]);
    assert!(is_overflow(&limiter), "there is no more room than before");
    all_is_well(
        actor,
        &space,
        KEY,
        1 + u64::from(space_has(&space, "other")),
    );
}

fn companion_of_refused(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let limiter = open(actor, &space, TWO);
    assert_eq!(exhaust(actor, &limiter, TWO, KEY), 2);
    cue.ready();
    match cue.meet() {
        Turn::Dead => {}
        Turn::Stopped => {
            assert_eq!(exhaust(actor, &limiter, TWO, KEY), 0);
            assert_eq!(exhaust(actor, &limiter, TWO, 8), 2);
            churn(actor, &space, 24);
            cue.resume();
            cue.probed();
        }
        Turn::Through => cue.probed(),
    }
    assert_eq!(exhaust(actor, &limiter, TWO, KEY), 0);
    all_is_well(actor, &space, KEY, 1);
}

/// Uses keys of a fast limit up, over and over, for some milliseconds.
fn hurry(actor: &Actor, limiter: &Limiter, keys: std::ops::Range<u64>) {
    let until_ns = now_ns() + 3_000_000;
    for _ in 0..40 {
        for key in keys.clone() {
            actor.check(Op::Check, limiter, FAST, key, 1);
        }
        let next_ns = now_ns() + 75_000;
        while now_ns() < next_ns.min(until_ns) {
            std::thread::yield_now();
        }
    }
}

fn companion_of_key_reclaim(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let limiter = open(actor, &space, FAST);
    let all = 100..100 + u64::from(SMALL.limiter_keys);
    let until_ns = now_ns() + PATIENCE.as_nanos() as u64;
    fill(actor, &limiter, FAST);
    // Full again a few milliseconds later, and so idle.
    while all.clone().any(|key| {
        let peeked = limiter.peek(&name_of(key)).expect("no error");
        peeked.remaining() < 2
    }) {
        assert!(now_ns() < until_ns, "a bucket never refills");
    }
    cue.ready();
    match cue.meet() {
        Turn::Dead => {}
        Turn::Stopped => {
            // More keys than there is room for: each is reclaimed, again and again.
            hurry(actor, &limiter, WITHOUT_ROOM..WITHOUT_ROOM + 3);
            hurry(actor, &limiter, 104..112);
            cue.resume();
            hurry(actor, &limiter, WITHOUT_ROOM..WITHOUT_ROOM + 1);
            cue.probed();
        }
        Turn::Through => cue.probed(),
    }
    hurry(actor, &limiter, 98..108);
    all_is_well(actor, &space, KEY, 1);
}

const DAYS_KEYS: std::ops::Range<u64> = 100..107;
const FIRST_DEAD: u64 = 200;
const SECOND_DEAD: u64 = 201;

/// All cells but one are in use for a day; one process dies inserting a key, the victim inserting another.
/// What neither of them has taken is to be had, though the table has been said to be quiet for a day.
fn companion_of_last_cell(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let limiter = open(actor, &space, DAY);
    for key in DAYS_KEYS {
        assert!(actor.check(Op::Check, &limiter, DAY, key, 1));
    }
    let first = actor.also(3);
    let pid = fork(|| {
        let space = first.open();
        let limiter = space.limiter(API, LIMITS[DAY as usize].0).expect("there");
        // After it has counted the cell, at most of these.
        first.aim(42 + cue.case.step % 12, libc::SIGKILL);
        first.check(Op::CheckInsert, &limiter, DAY, FIRST_DEAD, 1);
    });
    assert!(matches!(wait(pid), Fate::Killed(_) | Fate::Exited(0)));
    cue.ready();
    match cue.meet() {
        Turn::Dead => {}
        Turn::Stopped => {
            for key in 300..310 {
                actor.check(Op::CheckOverflow, &limiter, DAY, key, 0);
            }
            cue.resume();
            cue.probed();
        }
        Turn::Through => cue.probed(),
    }
    let is_used = |key: u64| {
        let peeked = limiter.peek(&name_of(key)).expect("no error");
        peeked.remaining() < LIMITS[DAY as usize].1.burst
    };
    // Overflowing, a key shares what all such keys have left: then it is used, and has no cell.
    let takers = [FIRST_DEAD, SECOND_DEAD]
        .into_iter()
        .filter(|&key| is_used(key));
    if takers.count() == 0 {
        let decision = limiter.check(&name_of(500), 1).expect("no error");
        assert!(!decision.is_overflow(), "a cell of the dead is lost");
    }
    all_is_well(actor, &space, KEY, 1);
}

fn check_as_day(actor: &Actor, cue: &Cue, op: Op, key: u64) {
    let space = actor.open();
    let limiter = space.limiter(API, LIMITS[DAY as usize].0).expect("there");
    cue.strike(actor);
    actor.check(op, &limiter, DAY, key, 1);
    cue.through();
}

pub(crate) const SCENES: [Scene; 7] = [
    scene(
        Op::Check,
        |actor, cue| check_as(actor, cue, Op::Check, DAY, KEY),
        |actor, cue| companion_of_check(actor, cue, KEY, 1),
    ),
    scene(
        Op::CheckInsert,
        |actor, cue| check_as(actor, cue, Op::CheckInsert, DAY, KEY),
        |actor, cue| companion_of_check(actor, cue, KEY, 0),
    ),
    Scene {
        is_room_for_keys: false,
        ..scene(
            Op::CheckInsert,
            |actor, cue| check_as_day(actor, cue, Op::CheckInsert, SECOND_DEAD),
            companion_of_last_cell,
        )
    },
    scene(
        Op::CheckLong,
        |actor, cue| check_as(actor, cue, Op::CheckLong, DAY, LONG + 1),
        |actor, cue| companion_of_check(actor, cue, LONG + 1, 0),
    ),
    Scene {
        is_room_for_keys: false,
        ..scene(
            Op::CheckOverflow,
            |actor, cue| check_as_day(actor, cue, Op::CheckOverflow, WITHOUT_ROOM),
            companion_of_overflow,
        )
    },
    scene(
        Op::CheckRefused,
        |actor, cue| check_as(actor, cue, Op::CheckRefused, TWO, KEY),
        companion_of_refused,
    ),
    Scene {
        is_room_for_keys: false,
        ..scene(
            Op::CheckReclaim,
            |actor, cue| check_as(actor, cue, Op::CheckReclaim, FAST, WITHOUT_ROOM),
            companion_of_key_reclaim,
        )
    },
];
