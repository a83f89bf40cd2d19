//! Scenes of overrides: setting and clearing them, and inserting a key that has one. Whatever was told of a key's
//! limit decides on it, and what it has used stays used.

use crate::actor::{Actor, name_of};
use crate::journal::{Op, Outcome};
use crate::scene::{Cue, DAY, LIMITS, Scene, TWO, Turn, WIDER, scene};
use crate::scenes_limiter::{API, change_many_times, open, space_has};
use crate::scenes_lock::{KEY, all_is_well_but, churn};
use sprag::{Limit, Limiter};

/// No limit of the oracle's: these scenes add up for themselves.
const APART: u64 = LIMITS.len() as u64;
/// What the key has used before.
const USED: u64 = 2;

fn limit(number: u64) -> Limit {
    LIMITS[number as usize].0.parse().expect("a limit")
}

fn set(actor: &Actor, op: Op, limiter: &Limiter, number: u64) {
    let call = || limiter.set_override(&name_of(KEY), limit(number));
    actor
        .call(op, KEY, number, call, |r| crate::actor::yes(r.is_ok()))
        .expect("room");
}

fn clear(actor: &Actor, op: Op, limiter: &Limiter) {
    let call = || limiter.clear_override(&name_of(KEY));
    actor
        .call(op, KEY, 0, call, |r| crate::actor::yes(r.is_ok()))
        .expect("no error");
}

/// The number of the limit that decides on the key, which has used so much.
fn decides(limiter: &Limiter, number: u64, used: u64) {
    let bucket = LIMITS[number as usize].1;
    for decision in [
        limiter.check(&name_of(KEY), 0).expect("no error"),
        limiter.peek(&name_of(KEY)).expect("no error"),
    ] {
        assert!(!decision.is_overflow());
        assert_eq!(decision.limit(), bucket.burst, "by another limit");
        let left = bucket.burst.saturating_sub(used);
        assert_eq!(decision.remaining(), left, "of {}", bucket.burst);
    }
}

/// Which limit the key has by what is told of it: one of its own, or `own`.
fn told(limiter: &Limiter, own: u64) -> u64 {
    let told = limiter.override_of(&name_of(KEY)).expect("no error");
    told.map_or(own, |told| {
        let mut numbers = 0..APART;
        numbers
            .find(|n| limit(*n) == told)
            .expect("one that was set")
    })
}

/// Sets it to the wider limit.
fn set_wider(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let limiter = space.limiter(API, limit(DAY)).expect("there");
    cue.strike(actor);
    set(actor, Op::SetOverride, &limiter, WIDER);
    cue.through();
}

fn clear_it(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let limiter = space.limiter(API, limit(DAY)).expect("there");
    cue.strike(actor);
    clear(actor, Op::ClearOverride, &limiter);
    cue.through();
}

fn insert(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let limiter = space.limiter(API, limit(DAY)).expect("there");
    cue.strike(actor);
    actor.check(Op::CheckOverridden, &limiter, APART, KEY, 1);
    cue.through();
}

/// While the victim is stopped everything else happens to the key: each step is in force at once, and the victim
/// is in no step's way.
fn meanwhile(actor: &Actor, cue: &Cue, limiter: &Limiter, used: u64) {
    let space = actor.open();
    for turn in 0..3 {
        match (cue.case.step + turn) % 3 {
            0 => {
                set(actor, Op::SetOverride, limiter, TWO);
                decides(limiter, TWO, used);
            }
            1 => {
                clear(actor, Op::ClearOverride, limiter);
                decides(limiter, DAY, used);
            }
            _ => {
                set(actor, Op::SetOverride, limiter, WIDER);
                decides(limiter, WIDER, used);
                if cue.case.step.is_multiple_of(2) {
                    // It spares a key with a limit of its own.
                    let changed = open(actor, &space, TWO);
                    decides(limiter, WIDER, used);
                    open(actor, &space, DAY);
                    decides(&changed, WIDER, used);
                    change_many_times(&space, "other");
                }
            }
        }
    }
    churn(actor, &space, 24);
}

fn companion(actor: &Actor, cue: &Cue, op: Op, first: Option<u64>) {
    let space = actor.open();
    let limiter = open(actor, &space, DAY);
    // Where the key is to be inserted there is none yet.
    let before = if op == Op::CheckOverridden { 0 } else { USED };
    if before > 0 {
        assert!(actor.check(Op::Check, &limiter, APART, KEY, before));
    }
    if let Some(first) = first {
        set(actor, Op::SetOverride, &limiter, first);
    }
    cue.ready();
    let turn = cue.meet();
    let used = || {
        let records = actor.journal.records();
        let check = records.iter().find(|r| r.op == Op::CheckOverridden);
        match check.map(|check| check.outcome) {
            Some(Outcome::Yes) => before + 1,
            Some(Outcome::Unknown) => {
                let peeked = limiter.peek(&name_of(KEY)).expect("no error");
                let used = peeked.limit() - peeked.remaining();
                assert!(used <= before + 1, "{used} used");
                used
            }
            _ => before,
        }
    };
    match turn {
        Turn::Dead => {}
        Turn::Stopped => {
            meanwhile(actor, cue, &limiter, used());
            cue.resume();
            cue.probed();
        }
        Turn::Through => cue.probed(),
    }
    let now = told(&limiter, DAY);
    decides(&limiter, now, used());
    if turn == Turn::Through {
        let last = [(Op::SetOverride, WIDER), (Op::ClearOverride, DAY)];
        let last = last.iter().find(|(of, _)| *of == op);
        assert_eq!(now, last.map_or(TWO, |(_, number)| *number));
    } else if turn == Turn::Dead {
        assert!(
            now == first.unwrap_or(DAY) || op == Op::ClearOverride && now == DAY || now == WIDER
        );
    }
    // What somebody died in is in nobody's way.
    for number in [TWO, WIDER] {
        set(actor, Op::SetOverride, &limiter, number);
        assert_eq!(told(&limiter, DAY), number);
        decides(&limiter, number, used());
    }
    clear(actor, Op::ClearOverride, &limiter);
    assert_eq!(told(&limiter, DAY), DAY);
    decides(&limiter, DAY, used());
    let names = 1 + u64::from(space_has(&space, "other"));
    all_is_well_but(actor, &space, KEY, names, 0);
}

pub(crate) const SCENES: [Scene; 4] = [
    scene(Op::SetOverride, set_wider, |actor, cue| {
        companion(actor, cue, Op::SetOverride, None);
    }),
    scene(Op::SetOverride, set_wider, |actor, cue| {
        companion(actor, cue, Op::SetOverride, Some(TWO));
    }),
    scene(Op::ClearOverride, clear_it, |actor, cue| {
        companion(actor, cue, Op::ClearOverride, Some(WIDER));
    }),
    scene(Op::CheckOverridden, insert, |actor, cue| {
        companion(actor, cue, Op::CheckOverridden, Some(TWO));
    }),
];
