//! Scenes of counters.

use crate::actor::{Actor, name_of};
use crate::journal::Op;
use crate::scene::{Cue, LONG_TTL, SMALL, Scene, Turn, scene};
use crate::scenes_lock::{KEY, all_is_well, churn};
use sprag::{Caps, Counter, Space, StripedCounter};

/// The counter.
const NUMBER: u64 = 31;
/// Others, that are at 0.
const OTHERS: u64 = 400;

fn counter(space: &Space) -> Counter<'_> {
    space.counter(&name_of(NUMBER)).expect("a name")
}

/// Adds while it is struck; `before`, something has been added by this handle already.
fn add_as(actor: &Actor, cue: &Cue, op: Op, before: Option<i64>) {
    let space = actor.open();
    let counter = counter(&space);
    if let Some(delta) = before {
        assert!(actor.add(Op::Add, &counter, NUMBER, delta));
    }
    cue.strike(actor);
    if op == Op::AddWithin {
        actor.add_within(op, &counter, NUMBER, 2);
    } else {
        actor.add(op, &counter, NUMBER, 2);
    }
    cue.through();
}

fn companion(actor: &Actor, cue: &Cue, prepare: impl Fn(&Space)) {
    let space = actor.open();
    prepare(&space);
    let counter = counter(&space);
    cue.ready();
    match cue.meet() {
        Turn::Dead => {}
        Turn::Stopped => {
            churn(actor, &space, 24);
            actor.get(&counter, NUMBER);
            // Back to where it was, so that the word may be the one that the stopped one knows.
            if cue.case.step.is_multiple_of(2) {
                assert!(actor.add(Op::Add, &counter, NUMBER, 3));
                assert!(actor.add(Op::Add, &counter, NUMBER, -3));
            } else {
                assert!(actor.add(Op::Add, &counter, NUMBER, 1));
            }
            cue.resume();
            cue.probed();
        }
        Turn::Through => cue.probed(),
    }
    let number = actor.get(&counter, NUMBER);
    // At 0 it gives its cell back.
    assert!(actor.add(Op::Add, &counter, NUMBER, -number));
    all_is_well(actor, &space, KEY, 0);
}

fn with_one(actor: &Actor, space: &Space) {
    assert!(actor.add(Op::Add, &counter(space), NUMBER, 1));
}

/// Fills the table with counters that are at 0.
fn with_zeros(actor: &Actor, space: &Space) {
    for key in OTHERS..OTHERS + u64::from(SMALL.objects) {
        let other = space.counter(&name_of(key)).expect("a name");
        for delta in [1, -1] {
            assert!(actor.add(Op::Add, &other, key, delta));
        }
    }
}

/// Fills the table with locks that nobody holds.
fn with_locks(actor: &Actor, space: &Space) {
    for key in OTHERS..OTHERS + u64::from(SMALL.objects) {
        let held = actor.must_acquire(space, key, LONG_TTL);
        assert!(actor.release(Op::Release, held));
    }
}

/// Room for a striped counter beside the names of others.
const STRIPED: Caps = Caps {
    objects: 32,
    ..SMALL
};
/// The objects of a striped counter.
const PARTS: u64 = 9;

fn striped<'s>(actor: &Actor, space: &'s Space) -> StripedCounter<'s> {
    actor.stripe(Op::Stripe, counter(space))
}

/// Additions enough to open the counter, and a few to its stripe.
fn open(actor: &Actor, striped: &StripedCounter<'_>) {
    for delta in [1, -1].into_iter().cycle().take(20) {
        actor.striped_add(Op::StripedAdd, striped, NUMBER, delta);
    }
}

fn stripe_as(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    let striped = actor.stripe(Op::Stripe, counter(&space));
    cue.through();
    actor.striped_add(Op::StripedAdd, &striped, NUMBER, 2);
}

fn striped_as(actor: &Actor, cue: &Cue, op: Op) {
    let space = actor.open();
    let striped = striped(actor, &space);
    cue.strike(actor);
    match op {
        Op::StripedAdd => actor.striped_add(op, &striped, NUMBER, 2),
        // Near a bound, so that it is decided on the whole.
        Op::StripedWithin => actor.striped_within(op, &striped, NUMBER, 2),
        _ => assert!(actor.add(op, &counter(&space), NUMBER, 2)),
    }
    cue.through();
}

fn striped_companion(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let plain = counter(&space);
    assert!(actor.add(Op::Add, &plain, NUMBER, 1));
    if cue.is_of(Op::Stripe) {
        cue.ready();
    } else {
        open(actor, &striped(actor, &space));
        cue.ready();
    }
    let turn = cue.meet();
    let striped = striped(actor, &space);
    match turn {
        Turn::Dead => {}
        Turn::Stopped => {
            // What the stopped one began is finished, or goes on without it; then epochs pass.
            for _ in 0..2 {
                actor.get(&plain, NUMBER);
                actor.striped_within(Op::StripedWithin, &striped, NUMBER, 1);
                open(actor, &striped);
            }
            if cue.case.step.is_multiple_of(2) {
                assert!(actor.add(Op::Gather, &plain, NUMBER, 1));
            }
            cue.resume();
            cue.probed();
        }
        Turn::Through => cue.probed(),
    }
    actor.get(&plain, NUMBER);
    open(actor, &striped);
    actor.striped_within(Op::StripedWithin, &striped, NUMBER, 1);
    let number = actor.get(&plain, NUMBER);
    assert!(actor.add(Op::Gather, &plain, NUMBER, -number));
    assert_eq!(actor.get(&plain, NUMBER), 0);
    all_is_well(actor, &space, KEY, PARTS);
}

const fn striped_scene(op: Op, victim: fn(&Actor, &Cue)) -> Scene {
    Scene {
        caps: STRIPED,
        ..scene(op, victim, striped_companion)
    }
}

pub(crate) const SCENES: [Scene; 8] = [
    striped_scene(Op::Stripe, stripe_as),
    striped_scene(Op::StripedAdd, |actor, cue| {
        striped_as(actor, cue, Op::StripedAdd);
    }),
    striped_scene(Op::StripedWithin, |actor, cue| {
        striped_as(actor, cue, Op::StripedWithin);
    }),
    striped_scene(Op::Gather, |actor, cue| {
        striped_as(actor, cue, Op::Gather);
    }),
    scene(
        Op::Add,
        |actor, cue| add_as(actor, cue, Op::Add, Some(1)),
        |actor, cue| companion(actor, cue, |space| with_one(actor, space)),
    ),
    scene(
        Op::AddInsert,
        |actor, cue| add_as(actor, cue, Op::AddInsert, None),
        |actor, cue| companion(actor, cue, |space| with_locks(actor, space)),
    ),
    scene(
        Op::AddReclaim,
        |actor, cue| add_as(actor, cue, Op::AddReclaim, None),
        |actor, cue| companion(actor, cue, |space| with_zeros(actor, space)),
    ),
    scene(
        Op::AddWithin,
        |actor, cue| add_as(actor, cue, Op::AddWithin, None),
        |actor, cue| companion(actor, cue, |space| with_one(actor, space)),
    ),
];
