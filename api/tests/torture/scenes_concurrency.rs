//! Scenes of concurrency limiters: making one, changing how many it allows, taking permits of a key.

use crate::actor::{Actor, Held, PATIENCE, PERMITS, yes};
use crate::journal::Op;
use crate::scene::{Cue, LONG_TTL, SHORT_TTL, Scene, Turn, now_ns, scene};
use crate::scenes_lock::{KEY, all_is_well, end_of_victim, pause};
use sprag::{EngineError, Error, Space};
use std::time::Duration;

const AT_ONCE: Duration = Duration::ZERO;
/// The limiter's name. It stays, so that one name less fits the region.
const UPLOADS: &str = "uploads";
const PERMANENT: u64 = 1;

fn allow(actor: &Actor, op: Op, space: &Space, permits: u32) {
    let updated = || space.concurrency_updated(UPLOADS, permits);
    let updated = actor.call(op, 0, permits.into(), updated, |updated| {
        yes(updated.is_ok())
    });
    updated.expect("room");
}

/// How many of the key are taken.
fn taken(space: &Space) -> u32 {
    let limiter = space.find_concurrency(UPLOADS).expect("no error");
    let key = limiter.expect("the limiter").key("key").expect("a key");
    key.peek().expect("no error").taken
}

fn take<'s>(actor: &Actor, space: &'s Space, permits: u32, timeout: Duration) -> Option<Held<'s>> {
    let op = if timeout.is_zero() {
        Op::TakeSlots
    } else {
        Op::WaitSlots
    };
    let taken = actor.slots(op, space, UPLOADS, permits, LONG_TTL, timeout);
    taken.expect("room")
}

/// All that there are, by trying over and over: those of the dead and the late come back.
fn must_catch_all(actor: &Actor, space: &Space) {
    let give_up_ns = now_ns() + PATIENCE.as_nanos() as u64;
    loop {
        if let Some(held) = take(actor, space, PERMITS, AT_ONCE) {
            assert!(actor.release(Op::ReleaseSlots, held));
            return;
        }
        actor.journal.retract(actor.role);
        assert!(now_ns() < give_up_ns, "they never come back");
        std::thread::yield_now();
    }
}

/// The companion's part in the end: the victim goes on if it is stopped, and is gone then.
fn look_after(actor: &Actor, cue: &Cue, space: &Space, turn: Turn) {
    match turn {
        Turn::Dead => {}
        Turn::Stopped => {
            if cue.case.ttl == SHORT_TTL {
                allow(actor, Op::AllowSlots, space, PERMITS);
                must_catch_all(actor, space);
            }
            cue.resume();
            cue.probed();
        }
        Turn::Through => cue.probed(),
    }
    allow(actor, Op::AllowSlots, space, PERMITS);
    must_catch_all(actor, space);
    let all = take(actor, space, PERMITS, PATIENCE).expect("they come back");
    assert!(actor.release(Op::ReleaseSlots, all));
    all_is_well(actor, space, KEY, PERMANENT);
}

/// Has one of the key, and lets the limiter allow no more than that once the victim is stopped.
fn companion_of_slots(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    allow(actor, Op::AllowSlots, &space, PERMITS);
    let one = take(actor, &space, 1, AT_ONCE).expect("free");
    cue.ready();
    let turn = cue.meet();
    if turn == Turn::Stopped && cue.case.ttl == LONG_TTL {
        allow(actor, Op::AllowSlots, &space, 1);
        let before = taken(&space);
        cue.resume();
        // property 12
        assert!(
            taken(&space) <= before,
            "some were had by what was allowed before"
        );
    }
    assert!(one.hold.is_held(), "a hold is nobody else's to end");
    assert!(actor.release(Op::ReleaseSlots, one));
    look_after(actor, cue, &space, turn);
}

fn take_slots(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    let held = actor.slots(Op::TakeSlots, &space, UPLOADS, 2, cue.case.ttl, AT_ONCE);
    end_of_victim(actor, cue, held.expect("room"));
}

fn release_slots(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let held = actor.slots(Op::TakeSlots, &space, UPLOADS, 2, cue.case.ttl, AT_ONCE);
    let held = held.expect("room").expect("free");
    cue.strike(actor);
    actor.release(Op::ReleaseSlots, held);
    cue.through();
}

/// Has one of two, until the victim waits for two; then there are three.
fn companion_of_wait(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    allow(actor, Op::AllowSlots, &space, 2);
    let one = take(actor, &space, 1, AT_ONCE).expect("free");
    cue.ready();
    cue.await_operation();
    pause();
    allow(actor, Op::AllowSlots, &space, PERMITS);
    let turn = cue.meet();
    assert!(actor.release(Op::ReleaseSlots, one));
    look_after(actor, cue, &space, turn);
}

fn wait_slots(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    let held = actor.slots(Op::WaitSlots, &space, UPLOADS, 2, cue.case.ttl, PATIENCE);
    end_of_victim(actor, cue, held.expect("room"));
}

/// Has one of two while the victim allows three. Once that is stopped others allow more and less.
fn companion_of_change(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    allow(actor, Op::AllowSlots, &space, 2);
    let one = take(actor, &space, 1, AT_ONCE).expect("free");
    cue.ready();
    let turn = cue.meet();
    if turn == Turn::Stopped {
        for permits in [1, 2, 3, 2] {
            allow(actor, Op::AllowSlots, &space, permits);
            let more = take(actor, &space, 1, AT_ONCE);
            assert_eq!(more.is_some(), permits > 1, "it goes by what is allowed");
            if let Some(more) = more {
                assert!(actor.release(Op::ReleaseSlots, more));
            }
        }
    }
    if turn == Turn::Through {
        let two = take(actor, &space, 2, AT_ONCE).expect("three are allowed");
        assert!(actor.release(Op::ReleaseSlots, two));
    }
    assert!(actor.release(Op::ReleaseSlots, one));
    look_after(actor, cue, &space, turn);
}

fn change_slots(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    allow(actor, Op::AllowSlots, &space, PERMITS);
    cue.through();
}

/// Finds a limiter that nobody has said anything of, or none, and makes it.
fn companion_of_making(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.ready();
    let turn = cue.meet();
    let made = space.concurrency(UPLOADS, PERMITS);
    let made = made.expect("the victim says the same");
    assert_eq!(made.permits().ok(), Some(PERMITS));
    if turn == Turn::Stopped {
        allow(actor, Op::AllowSlots, &space, 1);
        if cue.case.ttl == LONG_TTL {
            cue.resume();
            // property 15
            let permits = made.permits().ok();
            assert_eq!(permits, Some(1), "a stale change undid a later one");
        }
    }
    look_after(actor, cue, &space, turn);
}

fn make_slots(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    let made = actor.call(
        Op::MakeSlots,
        0,
        0,
        || space.concurrency(UPLOADS, PERMITS).map(drop),
        |made| yes(made.is_ok()),
    );
    assert!(
        matches!(
            made,
            Ok(()) | Err(Error::Engine(EngineError::ConcurrencyDiffers { .. }))
        ),
        "{made:?}"
    );
    cue.through();
}

pub(crate) const SCENES: [Scene; 5] = [
    scene(Op::TakeSlots, take_slots, companion_of_slots),
    scene(Op::WaitSlots, wait_slots, companion_of_wait),
    scene(Op::ReleaseSlots, release_slots, companion_of_slots),
    scene(Op::AllowSlots, change_slots, companion_of_change),
    scene(Op::MakeSlots, make_slots, companion_of_making),
];
