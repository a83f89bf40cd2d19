//! Scenes of changing a limit: creating a limiter, changing its limit, finishing a change that somebody died
//! in, and checking in the middle of one.

use crate::actor::{Actor, LONG, PATIENCE, name_of};
use crate::journal::Op;
use crate::process::{Fate, fork, wait};
use crate::scene::{Cue, DAY, FAST, LIMITS, SMALL, Scene, Turn, WIDER, now_ns, scene};
use crate::scenes_limiter::{
    API, all_is_used_up, change_many_times, change_so_often, fill, open, space_has,
};
use crate::scenes_lock::{KEY, all_is_well, all_is_well_but};
use sprag::{Caps, Limiter, Space};

const NEIGHBOURS: usize = 12;

/// Changes another limiter until the slots come round to those that `API` had when the victim began, then
/// makes limiters that take these slots, each with a key that is used up.
fn take_old_slots(space: &Space) -> Vec<Limiter> {
    change_so_often(space, "other", 1_024 - 10);
    (0..NEIGHBOURS)
        .map(|number| {
            let limiter = space.limiter(&format!("n{number}"), "1/day").expect("room");
            assert!(limiter.check("used up", 1).expect("room").is_allowed());
            limiter
        })
        .collect()
}

/// No stale step of a change of `API` has touched them: neither their keys nor what keys share when there
/// is no room.
fn are_untouched(actor: &Actor, space: &Space, neighbours: &[Limiter]) {
    for limiter in neighbours {
        let again = limiter.check("used up", 1).expect("no error");
        assert!(!again.is_allowed(), "a key lost what it had used");
    }
    let full = space.limiter("full", "1/day").expect("room");
    for key in 0..actor.caps.limiter_keys {
        full.check(&format!("key {key}"), 1)
            .map(drop)
            .expect("no error");
    }
    for limiter in neighbours {
        let decision = limiter.check("without room", 1).expect("a bucket to share");
        assert!(decision.is_overflow() && decision.is_allowed());
    }
}

fn open_limiter(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    let text = LIMITS[DAY as usize].0;
    let limiter = actor.call(
        Op::OpenLimiter,
        0,
        0,
        || space.limiter(API, text),
        |opened| crate::actor::yes(opened.is_ok()),
    );
    if let Ok(limiter) = limiter {
        actor.check(Op::Check, &limiter, WIDER, KEY, 1);
    }
    cue.through();
}

fn update(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    actor.limiter(Op::UpdateLimit, &space, API, LIMITS[WIDER as usize].0);
    cue.through();
}

/// Every slot of a limit but the limiter's own is to be had.
fn no_slot_is_lost(actor: &Actor, space: &Space, others: usize) {
    let mut count = 0;
    loop {
        match space.limiter(&format!("l{count}"), "1/day") {
            Ok(_) => count += 1,
            Err(sprag::Error::Engine(sprag_core::Error::Full { .. })) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(count + others, 1_024, "slots of limits ({})", actor.url);
}

fn companion_of_update(actor: &Actor, cue: &Cue, exists: bool) {
    let space = actor.open();
    let keys = [KEY, 8, LONG + 9];
    if exists {
        let limiter = open(actor, &space, DAY);
        for key in keys {
            assert!(actor.check(Op::Check, &limiter, WIDER, key, 2));
        }
    }
    cue.ready();
    let mut others = 1;
    let mut neighbours = Vec::new();
    match cue.meet() {
        Turn::Dead => {}
        Turn::Stopped => {
            let limiter = open(actor, &space, DAY);
            assert!(actor.check(Op::Check, &limiter, WIDER, 8, 1));
            assert!(actor.check(Op::Check, &limiter, WIDER, 7, 1));
            for limit in [WIDER, DAY, WIDER] {
                let limiter = open(actor, &space, limit);
                assert!(actor.check(Op::Check, &limiter, WIDER, KEY, 1));
            }
            if cue.case.step.is_multiple_of(2) {
                neighbours = take_old_slots(&space);
                others = 2 + NEIGHBOURS;
            } else {
                // The limiter's own slots come round as well.
                change_many_times(&space, API);
                open(actor, &space, DAY);
            }
            cue.resume();
            cue.probed();
        }
        Turn::Through => cue.probed(),
    }
    let limiter = open(actor, &space, WIDER);
    all_is_used_up(actor, &limiter, WIDER, &keys);
    all_is_used_up(actor, &limiter, WIDER, &[7]);
    if !neighbours.is_empty() {
        are_untouched(actor, &space, &neighbours);
        others += 1;
    }
    if actor.caps.objects > 1_024 {
        all_is_well(actor, &space, KEY, 0);
        no_slot_is_lost(actor, &space, others);
    } else {
        all_is_well_but(actor, &space, KEY, others as u64, 1);
    }
}

/// Uses keys under `DAY`, then has a process of its own die in the middle of a change to `WIDER`: at one
/// step or another of the sweep, so that some of the keys are under either limit.
fn begin_change(actor: &Actor, cue: &Cue, space: &Space) {
    let limiter = open(actor, space, DAY);
    for key in [KEY, 8, LONG + 9] {
        assert!(actor.check(Op::Check, &limiter, WIDER, key, 2));
    }
    let changer = actor.also(3);
    let pid = fork(|| {
        let space = changer.open();
        let text = LIMITS[WIDER as usize].0;
        changer.aim(37 + cue.case.step % 8 * 6, libc::SIGKILL);
        changer.limiter(Op::UpdateLimit, &space, API, text);
    });
    assert_eq!(wait(pid), Fate::Killed(libc::SIGKILL), "the changer");
}

const IS_OPEN: u64 = 1;
const IS_CHANGING: u64 = 2;

fn companion_of_unfinished(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    actor.limiter(Op::OpenLimiter, &space, API, "4/day");
    cue.ready();
    cue.await_note(IS_OPEN);
    begin_change(actor, cue, &space);
    cue.note(IS_CHANGING);
    match cue.meet() {
        Turn::Dead => {}
        Turn::Stopped => {
            let limiter = open(actor, &space, WIDER);
            assert!(actor.check(Op::Check, &limiter, WIDER, KEY, 1));
            open(actor, &space, DAY);
            change_many_times(&space, "other");
            cue.resume();
            cue.probed();
        }
        Turn::Through => cue.probed(),
    }
    let limiter = open(actor, &space, WIDER);
    all_is_used_up(actor, &limiter, WIDER, &[KEY, 8, LONG + 9]);
    let names = 1 + u64::from(space_has(&space, "other"));
    all_is_well_but(actor, &space, KEY, names, 1);
}

/// Has a reference from two changes before, so that it finds keys under the limit that is replaced.
fn convert(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let limiter = space.limiter(API, "4/day").expect("there");
    cue.note(IS_OPEN);
    cue.await_note(IS_CHANGING);
    cue.strike(actor);
    actor.check(Op::CheckConvert, &limiter, WIDER, KEY, 1);
    cue.through();
}

fn finish(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.note(IS_OPEN);
    cue.await_note(IS_CHANGING);
    cue.strike(actor);
    actor.limiter(Op::FinishUpdate, &space, API, LIMITS[WIDER as usize].0);
    cue.through();
}

/// The table is full and quiet for a day; then the limit becomes a fast one, and the keys are idle soon.
fn companion_of_quiet(actor: &Actor, cue: &Cue) {
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
            open(actor, &space, FAST);
            is_overflow(&limiter);
            cue.resume();
            cue.probed();
        }
        Turn::Through => cue.probed(),
    }
    let limiter = open(actor, &space, FAST);
    let until_ns = now_ns() + PATIENCE.as_nanos() as u64;
    while is_overflow(&limiter) {
        assert!(now_ns() < until_ns, "idle keys never make room");
    }
    all_is_well(actor, &space, KEY, 1);
}

fn quicken(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    actor.limiter(Op::UpdateLimit, &space, API, LIMITS[FAST as usize].0);
    cue.through();
}

/// Room for a change's neighbours.
const SOME_NAMES: Caps = Caps {
    objects: 32,
    limiter_keys: 24,
    key_chunks: 64,
    ..SMALL
};

/// Room for as many limiters as there are slots of limits.
const MANY_NAMES: Caps = Caps {
    objects: 1_100,
    limiter_keys: 24,
    key_chunks: 64,
    ..SMALL
};

pub(crate) const SCENES: [Scene; 7] = [
    scene(Op::CheckConvert, convert, companion_of_unfinished),
    Scene {
        caps: SOME_NAMES,
        ..scene(Op::OpenLimiter, open_limiter, |actor, cue| {
            companion_of_update(actor, cue, false);
        })
    },
    Scene {
        caps: MANY_NAMES,
        is_for_kills_only: true,
        ..scene(Op::OpenLimiter, open_limiter, |actor, cue| {
            companion_of_update(actor, cue, false);
        })
    },
    Scene {
        is_room_for_keys: false,
        ..scene(Op::UpdateLimit, quicken, companion_of_quiet)
    },
    Scene {
        caps: SOME_NAMES,
        ..scene(Op::UpdateLimit, update, |actor, cue| {
            companion_of_update(actor, cue, true);
        })
    },
    Scene {
        caps: MANY_NAMES,
        is_for_kills_only: true,
        ..scene(Op::UpdateLimit, update, |actor, cue| {
            companion_of_update(actor, cue, true);
        })
    },
    scene(Op::FinishUpdate, finish, companion_of_unfinished),
];
