//! Scenes of counters.

use crate::actor::{Actor, name_of};
use crate::journal::Op;
use crate::scene::{Cue, LONG_TTL, SMALL, Scene, Turn, scene};
use crate::scenes_lock::{KEY, all_is_well, churn};
use sprag::{Counter, Space};

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

pub(crate) const SCENES: [Scene; 4] = [
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
