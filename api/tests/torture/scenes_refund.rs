//! Scenes of reservations and refunds. What a key has used in the end is what was taken less what came back,
//! the struck operation counting as done or not where it is not known.

use crate::actor::{Actor, name_of};
use crate::journal::{Op, Outcome};
use crate::scene::{Cue, DAY, LIMITS, Scene, TWO, Turn, WIDER, scene};
use crate::scenes_limiter::{API, change_many_times, fill, open, space_has};
use crate::scenes_lock::{KEY, all_is_well, churn};
use sprag::Limiter;

/// No limit of the oracle's: it knows of no refunds, and these scenes add up for themselves.
const APART: u64 = LIMITS.len() as u64;

/// What of `key` is used under `limit`, of which nothing comes back while a scene lasts.
fn used(limiter: &Limiter, limit: u64, key: u64) -> u64 {
    let peeked = limiter.peek(&name_of(key)).expect("no error");
    LIMITS[limit as usize].1.burst - peeked.remaining()
}

/// Whether `found` is what was used without the struck operation, or with it, as far as is known.
fn adds_up(actor: &Actor, op: Op, found: u64, undone: u64, done: u64) -> bool {
    let records = actor.journal.records();
    let struck = records.iter().find(|record| record.op == op);
    match struck.expect("it began").outcome {
        Outcome::Yes => found == done,
        Outcome::No => found == undone,
        Outcome::Unknown => found == done || found == undone,
    }
}

fn take(actor: &Actor, limiter: &Limiter, key: u64, cost: u64) {
    assert!(actor.check(Op::Check, limiter, APART, key, cost));
}

/// While the victim is stopped: the limit is changed and the slots of limits go round, or the key's word
/// goes to another value and comes back, or other admissions come and go between.
fn meanwhile(actor: &Actor, cue: &Cue, limiter: &Limiter) -> u64 {
    let space = actor.open();
    match cue.case.step % 3 {
        0 => {
            open(actor, &space, WIDER);
            change_many_times(&space, "other");
            0
        }
        1 => {
            let decision = limiter.check(&name_of(KEY), 1).expect("no error");
            if decision.is_allowed() {
                assert!(matches!(
                    limiter.refund(decision),
                    Ok(sprag::Refunded::Given(_))
                ));
            }
            0
        }
        _ => {
            let decision = limiter.check(&name_of(KEY), 1).expect("no error");
            let taken = limiter.check(&name_of(KEY), 1).expect("no error");
            // Refused where nothing is left: then it gives nothing back.
            let _ = limiter.refund(decision).expect("no error");
            u64::from(taken.is_allowed())
        }
    }
}

fn companion(actor: &Actor, cue: &Cue, op: Op, before: u64, [undone, done]: [u64; 2]) {
    let space = actor.open();
    let limiter = open(actor, &space, DAY);
    take(actor, &limiter, KEY, before);
    cue.ready();
    let mut others = before;
    match cue.meet() {
        Turn::Dead => {}
        Turn::Stopped => {
            others += meanwhile(actor, cue, &limiter);
            churn(actor, &space, 24);
            cue.resume();
            cue.probed();
        }
        Turn::Through => cue.probed(),
    }
    let limiter = open(actor, &space, WIDER);
    let found = used(&limiter, WIDER, KEY);
    assert!(
        adds_up(actor, op, found, others + undone, others + done),
        "{found} used, {others} by others"
    );
    let names = 1 + u64::from(space_has(&space, "other"));
    all_is_well(actor, &space, KEY, names);
}

fn refund(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let limiter = space.limiter(API, LIMITS[DAY as usize].0).expect("there");
    let decision = limiter.check(&name_of(KEY), 2).expect("no error");
    assert!(decision.is_allowed());
    cue.strike(actor);
    actor.refund(Op::Refund, &limiter, KEY, decision);
    cue.through();
}

fn reserve(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let limiter = space.limiter(API, LIMITS[DAY as usize].0).expect("there");
    cue.strike(actor);
    // All of the day is used, so that it is for later.
    actor.reserve(Op::Reserve, &limiter, KEY, 1);
    cue.through();
}

const WITHOUT_ROOM: u64 = 20;

fn refund_overflow(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let limiter = space.limiter(API, LIMITS[TWO as usize].0).expect("there");
    let decision = limiter.check(&name_of(WITHOUT_ROOM), 1).expect("no error");
    assert!(decision.is_allowed() && decision.is_overflow());
    cue.strike(actor);
    actor.refund(Op::RefundOverflow, &limiter, WITHOUT_ROOM, decision);
    cue.through();
}

/// The table is full, so that the shared bucket of two decides.
fn companion_of_overflow(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let limiter = open(actor, &space, TWO);
    fill(actor, &limiter, TWO);
    cue.ready();
    match cue.meet() {
        Turn::Dead => {}
        Turn::Stopped => {
            change_many_times(&space, "other");
            churn(actor, &space, 24);
            cue.resume();
            cue.probed();
        }
        Turn::Through => cue.probed(),
    }
    let found = used(&limiter, TWO, WITHOUT_ROOM);
    assert!(
        adds_up(actor, Op::RefundOverflow, found, 1, 0),
        "{found} used of the shared bucket"
    );
    let names = 1 + u64::from(space_has(&space, "other"));
    all_is_well(actor, &space, KEY, names);
}

pub(crate) const SCENES: [Scene; 3] = [
    scene(Op::Reserve, reserve, |actor, cue| {
        companion(actor, cue, Op::Reserve, 5, [0, 1]);
    }),
    scene(Op::Refund, refund, |actor, cue| {
        companion(actor, cue, Op::Refund, 1, [2, 0]);
    }),
    Scene {
        is_room_for_keys: false,
        ..scene(Op::RefundOverflow, refund_overflow, companion_of_overflow)
    },
];
