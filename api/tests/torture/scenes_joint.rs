//! Scenes of limits declared together: opening them, and checking, inserting and reclaiming keys. Whatever somebody
//! died or was stopped in, each admission counts once under every limit.

use crate::actor::{Actor, PATIENCE, name_of, yes};
use crate::journal::Op;
use crate::process::now_ns;
use crate::scene::{Cue, SMALL, Scene, Turn, scene};
use crate::scenes_limiter::taken;
use crate::scenes_lock::{KEY, all_is_well, churn};
use sprag::{JointLimiter, Space};

const NAME: &str = "both";
/// Of which the second has drained of nothing by the end of a scene.
const SLOW: [&str; 2] = ["9/day", "5/day"];
/// Of which the first has soon.
const MIXED: [&str; 2] = ["1000/s;burst=2", "5/day"];
/// Which both have.
const FAST: [&str; 2] = ["1000/s;burst=2", "2000/s;burst=2"];
/// The most of [`SLOW`] and [`MIXED`].
const MOST: u64 = 5;
const WITHOUT_ROOM: u64 = 20;
const ALSO: u64 = 8;

fn open(actor: &Actor, space: &Space, limits: [&str; 2]) -> JointLimiter {
    let call = || space.joint_limiter(NAME, limits);
    let opened = actor.call(Op::OpenJoint, 0, 0, call, |r| yes(r.is_ok()));
    opened.expect("room")
}

/// Which limit refused; `None` if none did.
fn check(actor: &Actor, op: Op, limiter: &JointLimiter, key: u64) -> Option<usize> {
    let name = name_of(key);
    let call = || limiter.check(&name, 1).map(|checked| checked.refused_by());
    let refused = actor.call(op, key, 1, call, |r| yes(matches!(r, Ok(None))));
    refused.expect("a check never fails")
}

fn left(limiter: &JointLimiter, key: u64, place: usize) -> u64 {
    let peeked = limiter.peek(&name_of(key)).expect("no error");
    peeked.of(place).expect("a limit").remaining()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let until_ns = now_ns() + PATIENCE.as_nanos() as u64;
    while !is_so() {
        assert!(now_ns() < until_ns, "never: {what}");
        std::thread::yield_now();
    }
}

/// Waits until the first limit of [`MIXED`] has drained of `key`, so that the next admission is no one batch's.
fn drain(limiter: &JointLimiter, limits: [&str; 2], key: u64) {
    if limits == MIXED {
        wait_until("a limit drains", || left(limiter, key, 0) == 2);
    }
}

/// A check of `key` that must be allowed.
fn take(actor: &Actor, limiter: &JointLimiter, limits: [&str; 2], key: u64) {
    drain(limiter, limits, key);
    assert_eq!(check(actor, Op::CheckJoint, limiter, key), None);
}

/// `key` is good for exactly what the narrower limit says, less what a dead check may have taken; and the other limit
/// has counted as much.
fn is_used_up(actor: &Actor, limiter: &JointLimiter, limits: [&str; 2], key: u64) {
    for _ in 0..=MOST {
        drain(limiter, limits, key);
        if check(actor, Op::CheckJoint, limiter, key) == Some(1) {
            break;
        }
    }
    let (known, unknown) = taken(actor, key);
    assert!(
        known <= MOST && known + unknown >= MOST,
        "key {key}: {known} allowed, {unknown} unknown, of {MOST}"
    );
    assert_eq!(left(limiter, key, 1), 0);
    if limits == SLOW {
        assert_eq!(left(limiter, key, 0), 4, "both count each admission");
    }
}

fn victim(actor: &Actor, cue: &Cue, op: Op, limits: [&str; 2], key: u64) {
    let space = actor.open();
    let limiter = space.joint_limiter(NAME, limits).expect("there");
    cue.strike(actor);
    check(actor, op, &limiter, key);
    cue.through();
}

/// Looks after limits of which `used` of `KEY` was taken.
fn companion(actor: &Actor, cue: &Cue, limits: [&str; 2], used: u64) {
    let space = actor.open();
    let limiter = open(actor, &space, limits);
    // A key has been there, so that pages are.
    take(actor, &limiter, limits, 9);
    for _ in 0..used {
        take(actor, &limiter, limits, KEY);
    }
    drain(&limiter, limits, KEY);
    cue.ready();
    match cue.meet() {
        Turn::Dead => {}
        Turn::Stopped => {
            // Twice, so that the entry has been closed and opened by others.
            for key in [KEY, KEY, ALSO] {
                take(actor, &limiter, limits, key);
            }
            churn(actor, &space, 24);
            cue.resume();
            cue.probed();
        }
        Turn::Through => cue.probed(),
    }
    for key in [KEY, ALSO, 9] {
        is_used_up(actor, &limiter, limits, key);
    }
    all_is_well(actor, &space, KEY, 1);
}

/// The same where there is no room for the key.
fn companion_of_overflow(actor: &Actor, cue: &Cue, limits: [&str; 2]) {
    let space = actor.open();
    let limiter = open(actor, &space, limits);
    let keys = 100..100 + u64::from(SMALL.joint_keys);
    for key in keys {
        take(actor, &limiter, limits, key);
    }
    let is_overflow = || {
        let checked = limiter.check(&name_of(WITHOUT_ROOM), 0).expect("no error");
        checked.is_overflow()
    };
    assert!(is_overflow(), "the table is full");
    take(actor, &limiter, limits, WITHOUT_ROOM);
    drain(&limiter, limits, WITHOUT_ROOM);
    cue.ready();
    match cue.meet() {
        Turn::Dead => {}
        Turn::Stopped => {
            for _ in 0..2 {
                take(actor, &limiter, limits, WITHOUT_ROOM);
            }
            churn(actor, &space, 24);
            cue.resume();
            cue.probed();
        }
        Turn::Through => cue.probed(),
    }
    for key in [WITHOUT_ROOM, 100, 101] {
        is_used_up(actor, &limiter, limits, key);
    }
    assert!(is_overflow(), "there is no more room than before");
    all_is_well(actor, &space, KEY, 1);
}

/// A new key in a table whose keys have all drained.
fn companion_of_reclaim(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let limiter = open(actor, &space, FAST);
    let count = u64::from(SMALL.joint_keys);
    let fill = |from: u64| {
        for key in from..from + count {
            check(actor, Op::CheckJoint, &limiter, key);
        }
        for key in from..from + count {
            wait_until("both limits drain", || {
                left(&limiter, key, 0) == 2 && left(&limiter, key, 1) == 2
            });
        }
    };
    fill(100);
    cue.ready();
    match cue.meet() {
        Turn::Dead => {}
        Turn::Stopped => {
            // More keys than there is room for: each is reclaimed, again and again.
            for from in [WITHOUT_ROOM, 104, WITHOUT_ROOM] {
                fill(from);
            }
            cue.resume();
            cue.probed();
        }
        Turn::Through => cue.probed(),
    }
    // Once all have drained there is room for each by itself.
    for key in 300..300 + 2 * count {
        wait_until("a key finds room", || {
            let checked = limiter.check(&name_of(key), 1).expect("no error");
            !checked.is_overflow()
        });
    }
    all_is_well(actor, &space, KEY, 1);
}

fn open_it(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    open(actor, &space, SLOW);
    cue.through();
}

fn companion_of_open(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.ready();
    let turn = cue.meet();
    let limiter = open(actor, &space, SLOW);
    if turn == Turn::Stopped {
        take(actor, &limiter, SLOW, KEY);
        churn(actor, &space, 24);
        cue.resume();
    }
    if turn != Turn::Dead {
        cue.probed();
    }
    let again = open(actor, &space, SLOW);
    assert!(space.joint_limiter(NAME, MIXED).is_err(), "it has others");
    take(actor, &again, SLOW, KEY);
    is_used_up(actor, &limiter, SLOW, KEY);
    all_is_well(actor, &space, KEY, 1);
}

pub(crate) const SCENES: [Scene; 7] = [
    scene(Op::OpenJoint, open_it, companion_of_open),
    scene(
        Op::CheckJoint,
        |actor, cue| victim(actor, cue, Op::CheckJoint, SLOW, KEY),
        |actor, cue| companion(actor, cue, SLOW, 1),
    ),
    scene(
        Op::CheckJointClosing,
        |actor, cue| victim(actor, cue, Op::CheckJointClosing, MIXED, KEY),
        |actor, cue| companion(actor, cue, MIXED, 1),
    ),
    scene(
        Op::CheckJointInsert,
        |actor, cue| victim(actor, cue, Op::CheckJointInsert, SLOW, KEY),
        |actor, cue| companion(actor, cue, SLOW, 0),
    ),
    scene(
        Op::CheckJointOverflow,
        |actor, cue| victim(actor, cue, Op::CheckJointOverflow, SLOW, WITHOUT_ROOM),
        |actor, cue| companion_of_overflow(actor, cue, SLOW),
    ),
    scene(
        Op::CheckJointOverflow,
        |actor, cue| victim(actor, cue, Op::CheckJointOverflow, MIXED, WITHOUT_ROOM),
        |actor, cue| companion_of_overflow(actor, cue, MIXED),
    ),
    scene(
        Op::CheckJointReclaim,
        |actor, cue| victim(actor, cue, Op::CheckJointReclaim, FAST, WITHOUT_ROOM),
        companion_of_reclaim,
    ),
];
