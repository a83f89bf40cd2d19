//! Scenes of tables, fences, sessions and the region itself: inserting, reclaiming, growing, opening.

use crate::actor::{Actor, Held, LONG, name_of};
use crate::journal::Op;
use crate::scene::{Cue, LONG_TTL, SMALL, Scene, Turn, scene};
use crate::scenes_lock::{CHURN, KEY, OTHER, all_is_well, churn, look_after};
use sprag::{Caps, Space};

/// The name that victims insert.
const NEW: u64 = 2;

fn use_once(actor: &Actor, space: &Space, key: u64) {
    let held = actor.must_acquire(space, key, LONG_TTL);
    assert!(actor.release(Op::Release, held));
}

fn insert_as(actor: &Actor, cue: &Cue, op: Op, key: u64) {
    let space = actor.open();
    cue.strike(actor);
    let held = actor.try_acquire(op, &space, key, cue.case.ttl);
    cue.through();
    // Refused where the table is full.
    if let Ok(Some(held)) = held {
        actor.release(Op::Release, held);
    }
}

fn companion_of_insert(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    use_once(actor, &space, KEY);
    cue.ready();
    look_after(actor, cue, &space, NEW);
    all_is_well(actor, &space, NEW, 0);
}

fn companion_of_long(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    use_once(actor, &space, LONG + KEY);
    cue.ready();
    look_after(actor, cue, &space, LONG + NEW);
    all_is_well(actor, &space, LONG + NEW, 0);
}

fn companion_of_growth(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.ready();
    look_after(actor, cue, &space, LONG + NEW);
    all_is_well(actor, &space, LONG + NEW, 0);
}

fn companion_of_reclaim(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    churn(actor, &space, SMALL.objects.into());
    cue.ready();
    look_after(actor, cue, &space, NEW);
    all_is_well(actor, &space, NEW, 0);
}

fn companion_of_reclaim_long(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    for key in LONG + CHURN..LONG + CHURN + 3 {
        use_once(actor, &space, key);
    }
    cue.ready();
    look_after(actor, cue, &space, LONG + NEW);
    all_is_well(actor, &space, LONG + NEW, 0);
}

fn die_holding_all(actor: &Actor) {
    let space = actor.open();
    for key in CHURN..CHURN + u64::from(SMALL.objects) {
        std::mem::forget(actor.must_acquire(&space, key, LONG_TTL));
    }
    std::mem::forget(space);
}

fn companion_of_new(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.ready();
    look_after(actor, cue, &space, NEW);
    all_is_well(actor, &space, NEW, 0);
}

fn companion_of_refusal(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let held: Vec<Held<'_>> = (CHURN..CHURN + u64::from(SMALL.objects))
        .map(|key| actor.must_acquire(&space, key, LONG_TTL))
        .collect();
    cue.ready();
    let turn = cue.meet();
    for held in held {
        assert!(actor.release(Op::Release, held));
    }
    if turn != Turn::Dead {
        look_after(actor, cue, &space, NEW);
    }
    all_is_well(actor, &space, NEW, 0);
}

const FENCE: u64 = 30;

fn admit_as(actor: &Actor, cue: &Cue, op: Op) {
    let space = actor.open();
    let fence = space.fence(&name_of(FENCE)).expect("a name");
    cue.strike(actor);
    actor.admit(op, &fence, FENCE, 7);
    cue.through();
}

fn companion_of_fence(actor: &Actor, cue: &Cue, before: Option<u64>) {
    let space = actor.open();
    let fence = space.fence(&name_of(FENCE)).expect("a name");
    if let Some(token) = before {
        assert!(actor.admit(Op::Admit, &fence, FENCE, token));
    } else {
        use_once(actor, &space, KEY);
    }
    cue.ready();
    match cue.meet() {
        Turn::Dead => {}
        Turn::Stopped => {
            churn(actor, &space, 24);
            // The stopped one's token is then stale, or was admitted before.
            assert!(actor.admit(Op::Admit, &fence, FENCE, 8 + cue.case.step % 2));
            use_once(actor, &space, OTHER);
            cue.resume();
            cue.probed();
        }
        Turn::Through => cue.probed(),
    }
    actor.admit(Op::Admit, &fence, FENCE, 6);
    assert!(actor.admit(Op::Admit, &fence, FENCE, 10));
    assert!(!actor.admit(Op::Admit, &fence, FENCE, 9));
    all_is_well(actor, &space, KEY, 1);
}

fn open_session(actor: &Actor, cue: &Cue) {
    cue.strike(actor);
    let space = actor.open_as(Op::OpenSession).expect("the region opens");
    let held = actor
        .try_acquire(Op::Acquire, &space, KEY, cue.case.ttl)
        .expect("room");
    cue.through();
    if let Some(held) = held {
        actor.release(Op::Release, held);
    }
}

fn close_session(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let held = actor
        .try_acquire(Op::Acquire, &space, KEY, cue.case.ttl)
        .expect("room")
        .expect("free");
    // Closing ends the hold, whose holder no longer counts on it.
    held.give_up();
    cue.strike(actor);
    actor.close(Op::CloseSession, space);
    cue.through();
}

fn companion_of_session(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    use_once(actor, &space, KEY);
    cue.ready();
    look_after(actor, cue, &space, KEY);
    all_is_well(actor, &space, KEY, 0);
}

fn create(actor: &Actor, cue: &Cue) {
    cue.strike(actor);
    let space = actor.open_as(Op::Create).expect("the region opens");
    let held = actor
        .try_acquire(Op::Acquire, &space, KEY, LONG_TTL)
        .expect("room");
    cue.through();
    if let Some(held) = held {
        actor.release(Op::Release, held);
    }
}

/// There is no half region, and nothing beside it: whoever comes next has a whole one.
fn companion_of_creation(actor: &Actor, cue: &Cue) {
    cue.ready();
    let turn = cue.meet();
    let path = std::path::Path::new(actor.url.strip_prefix("shm:").expect("a path"));
    let directory = path.parent().expect("a directory");
    for file in std::fs::read_dir(directory).expect("a directory") {
        assert_eq!(file.expect("an entry").path(), path, "a stray file");
    }
    let space = actor.open();
    match turn {
        Turn::Dead => {}
        Turn::Stopped | Turn::Through => {
            use_once(actor, &space, OTHER);
            if turn == Turn::Stopped {
                churn(actor, &space, 24);
                cue.resume();
            }
            let probe = actor.try_acquire(Op::Acquire, &space, KEY, LONG_TTL);
            assert!(
                probe.expect("room").is_none(),
                "two processes have a region each"
            );
            cue.probed();
        }
    }
    all_is_well(actor, &space, KEY, 0);
}

/// Caps with several extents of each table.
const WIDE: Caps = Caps {
    objects: 1_024,
    key_chunks: 2_048,
    ..SMALL
};

pub(crate) const SCENES: [Scene; 12] = [
    scene(
        Op::Insert,
        |actor, cue| insert_as(actor, cue, Op::Insert, NEW),
        companion_of_insert,
    ),
    scene(
        Op::InsertLong,
        |actor, cue| insert_as(actor, cue, Op::InsertLong, LONG + NEW),
        companion_of_long,
    ),
    Scene {
        caps: WIDE,
        ..scene(
            Op::Grow,
            |actor, cue| insert_as(actor, cue, Op::Grow, LONG + NEW),
            companion_of_growth,
        )
    },
    scene(
        Op::Reclaim,
        |actor, cue| insert_as(actor, cue, Op::Reclaim, NEW),
        companion_of_reclaim,
    ),
    scene(
        Op::ReclaimLong,
        |actor, cue| insert_as(actor, cue, Op::ReclaimLong, LONG + NEW),
        companion_of_reclaim_long,
    ),
    Scene {
        before: Some(die_holding_all),
        ..scene(
            Op::ReclaimHeld,
            |actor, cue| insert_as(actor, cue, Op::ReclaimHeld, NEW),
            companion_of_new,
        )
    },
    scene(
        Op::Refuse,
        |actor, cue| insert_as(actor, cue, Op::Refuse, NEW),
        companion_of_refusal,
    ),
    scene(
        Op::Admit,
        |actor, cue| admit_as(actor, cue, Op::Admit),
        |actor, cue| companion_of_fence(actor, cue, Some(5)),
    ),
    scene(
        Op::AdmitInsert,
        |actor, cue| admit_as(actor, cue, Op::AdmitInsert),
        |actor, cue| companion_of_fence(actor, cue, None),
    ),
    scene(Op::OpenSession, open_session, companion_of_session),
    scene(Op::CloseSession, close_session, companion_of_session),
    scene(Op::Create, create, companion_of_creation),
];
