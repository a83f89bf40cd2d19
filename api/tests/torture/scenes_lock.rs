//! Scenes of locks: granting, waiting, releasing, renewing, taking over, handing on.

use crate::actor::{Actor, Held, PATIENCE};
use crate::journal::Op;
use crate::scene::{Cue, LONG_TTL, SHORT_TTL, Scene, Turn, now_ns, scene};
use sprag::{Error, Space};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The lock that scenes are about.
pub(crate) const KEY: u64 = 1;
/// A name that nobody else uses.
pub(crate) const OTHER: u64 = 50;
/// Names of which each is used once or twice, to have cells change hands.
pub(crate) const CHURN: u64 = 100;

/// Takes and releases so many names; each must be had at once.
pub(crate) fn churn(actor: &Actor, space: &Space, count: u64) {
    for key in CHURN..CHURN + count {
        let held = actor
            .try_acquire(Op::Acquire, space, key, LONG_TTL)
            .expect("a reclaimable entry makes room")
            .expect("nobody else has this name");
        assert!(actor.release(Op::Release, held), "a release of one's own");
    }
}

/// How many names can be held at once.
fn names_at_once(actor: &Actor, space: &Space, from: u64, most: u64) -> u64 {
    let mut held = Vec::new();
    for key in from..from + most {
        match actor.try_acquire(Op::Acquire, space, key, LONG_TTL) {
            Ok(hold) => held.push(hold.expect("nobody else has this name")),
            Err(Error::Engine(sprag_core::Error::Full { .. })) => break,
            Err(error) => panic!("{error}"),
        }
    }
    let count = held.len() as u64;
    for hold in held {
        assert!(actor.release(Op::Release, hold), "a release of one's own");
    }
    count
}

/// How many can wait at once.
fn waits_at_once(space: &Space) -> u32 {
    let lock = space.lock("waited for").expect("a name");
    let held = lock.try_acquire().expect("room").expect("free");
    let mut waits: Vec<Pin<Box<_>>> = Vec::new();
    let mut context = Context::from_waker(Waker::noop());
    loop {
        let mut wait = Box::pin(lock.acquire_async());
        match Future::poll(wait.as_mut(), &mut context) {
            Poll::Pending => waits.push(wait),
            Poll::Ready(Err(Error::Engine(sprag_core::Error::Full { .. }))) => break,
            Poll::Ready(other) => panic!("{:?}", other.map(|hold| hold.token())),
        }
    }
    let count = waits.len() as u32;
    drop(waits);
    held.release().expect("held");
    count
}

/// How many can share locks, or have permits, at once.
fn shares_at_once(space: &Space) -> u32 {
    let lock = space.lock("shared").expect("a name");
    let mut shares = Vec::new();
    loop {
        match lock.try_acquire_shared() {
            Ok(share) => shares.push(share.expect("shared")),
            Err(Error::Engine(sprag_core::Error::Full { .. })) => return shares.len() as u32,
            Err(error) => panic!("{error}"),
        }
    }
}

/// How many more sessions can open.
fn sessions_at_once(actor: &Actor) -> u32 {
    let mut spaces = Vec::new();
    loop {
        match actor.open_as(Op::OpenSession) {
            Ok(space) => spaces.push(space),
            Err(Error::Engine(sprag_core::Error::Full { .. })) => return spaces.len() as u32,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Everything that one may want of the region is to be had, `permanent` fences and limiters apart:
/// the lock, each cell, each chunk, each place in a queue, each session. Nothing has leaked.
pub(crate) fn all_is_well(actor: &Actor, space: &Space, key: u64, permanent: u64) {
    all_is_well_but(actor, space, key, permanent, 0);
}

/// As `all_is_well`, with so many long keys of limiters in use.
pub(crate) fn all_is_well_but(
    actor: &Actor,
    space: &Space,
    key: u64,
    permanent: u64,
    long_keys: u64,
) {
    let caught = actor.must_catch(space, key, LONG_TTL);
    assert!(actor.release(Op::Release, caught));
    let waited = actor.must_acquire(space, key, LONG_TTL);
    assert!(actor.release(Op::Release, waited));
    let caps = actor.caps;
    if caps.objects <= 64 {
        let names = names_at_once(actor, space, CHURN, 100);
        assert_eq!(names, u64::from(caps.objects) - permanent, "names at once");
        let long = names_at_once(actor, space, crate::actor::LONG + CHURN, 100);
        let most = u64::from(caps.key_chunks) / 5 - long_keys;
        assert_eq!(long, most, "long names at once");
    }
    assert_eq!(waits_at_once(space), caps.waiters, "waits at once");
    assert_eq!(shares_at_once(space), caps.permits, "shares at once");
    assert_eq!(
        sessions_at_once(actor),
        caps.sessions - 1,
        "sessions at once"
    );
    let check = sprag::region::check(space);
    for finding in &check.findings {
        assert!(
            matches!(finding, sprag_core::Finding::Count { .. }),
            "{finding}"
        );
    }
    assert_eq!((check.retired, check.waits), (0, 0));
    // What a dead process claimed is found once its room is wanted.
    assert!(check.claimed == 0 || caps.objects > 64);
}

/// What others do while the victim is stopped in an operation on `key`; the hold that they have of it
/// when it goes on.
fn go_on<'s>(actor: &Actor, cue: &Cue, space: &'s Space, key: u64) -> Option<Held<'s>> {
    let other = actor
        .try_acquire(Op::Acquire, space, OTHER, LONG_TTL)
        .expect("room")
        .expect("nobody else has this name");
    assert!(actor.release(Op::Release, other));
    if cue.case.ttl == SHORT_TTL {
        // Its lease ends, so the lock comes: to one who waits, and to one who only tries.
        for _ in 0..2 {
            let held = if cue.case.step.is_multiple_of(2) {
                actor.must_acquire(space, key, LONG_TTL)
            } else {
                actor.must_catch(space, key, LONG_TTL)
            };
            assert!(actor.release(Op::Release, held));
            churn(actor, space, u64::from(actor.caps.objects).min(32) * 2);
        }
        return Some(actor.must_catch(space, key, LONG_TTL));
    }
    churn(actor, space, u64::from(actor.caps.objects).min(32) * 3);
    // Whether it comes depends on where the victim is; if it does, it is not the victim's any more.
    actor
        .try_acquire(Op::Acquire, space, key, LONG_TTL)
        .expect("room")
}

/// The companion's part once the victim began: looks after `key` until the victim is gone.
pub(crate) fn look_after(actor: &Actor, cue: &Cue, space: &Space, key: u64) {
    let turn = cue.meet();
    look_after_from(actor, cue, space, key, turn);
}

pub(crate) fn look_after_from(actor: &Actor, cue: &Cue, space: &Space, key: u64, turn: Turn) {
    if let Some(held) = let_go_on(actor, cue, space, key, turn) {
        assert!(held.hold.is_held(), "a stale step ended another's hold");
        assert!(actor.release(Op::Release, held));
    }
}

/// Looks after `key` until the victim is gone; the hold that was taken while it was stopped, if any.
pub(crate) fn let_go_on<'s>(
    actor: &Actor,
    cue: &Cue,
    space: &'s Space,
    key: u64,
    turn: Turn,
) -> Option<Held<'s>> {
    let mut kept = None;
    match turn {
        Turn::Dead => return None,
        Turn::Stopped => {
            kept = go_on(actor, cue, space, key);
            if cue.is_waiting() {
                // It goes on waiting until it is its turn.
                cue.resume_only();
                if let Some(held) = kept.take() {
                    pause();
                    assert!(actor.release(Op::HandOn, held), "nobody took it away");
                }
            }
            cue.resume();
        }
        Turn::Through => {}
    }
    if let Some(held) = actor
        .try_acquire(Op::Acquire, space, key, LONG_TTL)
        .expect("room")
    {
        assert!(actor.release(Op::Release, held));
    }
    cue.probed();
    kept
}

pub(crate) fn companion_of_free(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let held = actor.must_acquire(&space, KEY, LONG_TTL);
    assert!(actor.release(Op::Release, held));
    cue.ready();
    look_after(actor, cue, &space, KEY);
    all_is_well(actor, &space, KEY, 0);
}

pub(crate) fn end_of_victim(actor: &Actor, cue: &Cue, held: Option<Held<'_>>) {
    cue.through();
    if let Some(held) = held {
        actor.release(Op::Release, held);
    }
}

fn acquire(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    let held = actor
        .try_acquire(Op::Acquire, &space, KEY, cue.case.ttl)
        .expect("room");
    end_of_victim(actor, cue, held);
}

/// Gives another process a millisecond to get further. Nothing hangs on whether it does.
pub(crate) fn pause() {
    let until_ns = now_ns() + 1_000_000;
    while now_ns() < until_ns {
        std::thread::yield_now();
    }
}

/// Holds the lock until the victim is in its operation, and a little longer.
pub(crate) fn companion_of_wait(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let held = actor.must_acquire(&space, KEY, LONG_TTL);
    cue.ready();
    cue.await_operation();
    pause();
    assert!(actor.release(Op::HandOn, held));
    look_after(actor, cue, &space, KEY);
    all_is_well(actor, &space, KEY, 0);
}

fn wait(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    let held = actor
        .acquire(Op::Wait, &space, KEY, cue.case.ttl, PATIENCE)
        .expect("room");
    end_of_victim(actor, cue, held);
}

const QUEUES: u64 = 1;
const RELEASED: u64 = 2;

/// Holds the lock until the victim has queued, or is struck.
fn companion_of_future(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let held = actor.must_acquire(&space, KEY, LONG_TTL);
    cue.ready();
    cue.await_note_or_strike(QUEUES);
    assert!(actor.release(Op::HandOn, held));
    cue.note(RELEASED);
    look_after(actor, cue, &space, KEY);
    all_is_well(actor, &space, KEY, 0);
}

fn future(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    let pending = || {
        if cue.noted() < RELEASED {
            cue.note(QUEUES);
        }
        cue.await_note(RELEASED);
        pause();
    };
    let held = actor
        .acquire_as_future(Op::Future, &space, KEY, cue.case.ttl, pending)
        .expect("room");
    end_of_victim(actor, cue, held);
}

/// Holds the lock for as long as the victim waits.
fn companion_of_cancel(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let held = actor.must_acquire(&space, KEY, LONG_TTL);
    cue.ready();
    let turn = cue.meet();
    assert!(actor.release(Op::HandOn, held));
    look_after_from(actor, cue, &space, KEY, turn);
    all_is_well(actor, &space, KEY, 0);
}

fn cancel(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    let timeout = Duration::from_millis(1);
    let held = actor
        .acquire(Op::Cancel, &space, KEY, cue.case.ttl, timeout)
        .expect("room");
    end_of_victim(actor, cue, held);
}

pub(crate) fn hold_for_victim<'s>(actor: &Actor, cue: &Cue, space: &'s Space) -> Held<'s> {
    actor
        .try_acquire(Op::Acquire, space, KEY, cue.case.ttl)
        .expect("room")
        .expect("free")
}

fn release(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let held = hold_for_victim(actor, cue, &space);
    cue.strike(actor);
    actor.release(Op::Release, held);
    cue.through();
}

const HOLDS: u64 = 1;
const WAITS: u64 = 2;

fn companion_of_hand_on(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.ready();
    cue.await_note(HOLDS);
    let (second, space) = (actor.also(3), &space);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            let waiter = second;
            let held = waiter.must_acquire(space, KEY, LONG_TTL);
            waiter.release(Op::Release, held)
        });
        let is_waiting = || {
            let locks = space.inspect("k1").expect("an inspection");
            // Granted already, if the victim's lease was over by the time it waited.
            waiter.is_finished() || locks.iter().any(|lock| lock.waiters > 0)
        };
        while !is_waiting() {
            std::thread::yield_now();
        }
        cue.note(WAITS);
        look_after(actor, cue, space, KEY);
        assert!(waiter.join().expect("the waiter"), "its own hold");
    });
    all_is_well(actor, space, KEY, 0);
}

fn hand_on(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let held = hold_for_victim(actor, cue, &space);
    cue.note(HOLDS);
    cue.await_note(WAITS);
    cue.strike(actor);
    actor.release(Op::HandOn, held);
    cue.through();
}

fn renew(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let mut held = hold_for_victim(actor, cue, &space);
    cue.strike(actor);
    actor.renew(Op::Renew, &mut held);
    end_of_victim(actor, cue, Some(held));
}

/// Holds the lock by a lease that ends, and tries to renew it after.
fn companion_of_steal(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let ttl = Duration::from_millis(2);
    let mut held = actor.must_acquire(&space, KEY, ttl);
    cue.note(now_ns() + 2_000_000);
    cue.ready();
    let turn = cue.meet();
    assert!(!actor.renew(Op::Renew, &mut held), "its lease is over");
    drop(held);
    look_after_from(actor, cue, &space, KEY, turn);
    all_is_well(actor, &space, KEY, 0);
}

fn steal(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let over_ns = cue.noted();
    while now_ns() < over_ns {
        std::thread::yield_now();
    }
    cue.strike(actor);
    let held = actor
        .try_acquire(Op::Steal, &space, KEY, cue.case.ttl)
        .expect("room");
    end_of_victim(actor, cue, held);
}

fn die_holding(actor: &Actor) {
    let space = actor.open();
    let held = actor
        .try_acquire(Op::Acquire, &space, KEY, LONG_TTL)
        .expect("room")
        .expect("free");
    std::mem::forget(held);
    std::mem::forget(space);
}

pub(crate) fn companion_of_nothing(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.ready();
    look_after(actor, cue, &space, KEY);
    all_is_well(actor, &space, KEY, 0);
}

fn take_over(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    let held = actor
        .try_acquire(Op::TakeOver, &space, KEY, cue.case.ttl)
        .expect("room");
    end_of_victim(actor, cue, held);
}

/// As `companion_of_nothing`, and ends what may be left of a detached hold.
fn companion_of_detach(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.ready();
    look_after(actor, cue, &space, KEY);
    actor.break_lock(Op::Break, &space, KEY);
    all_is_well(actor, &space, KEY, 0);
}

fn detach(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let held = hold_for_victim(actor, cue, &space);
    cue.strike(actor);
    actor.detach(Op::Detach, held);
    cue.through();
}

fn companion_of_detached(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let held = actor.must_acquire(&space, KEY, cue.case.ttl);
    let token = actor.detach(Op::Detach, held).expect("held");
    cue.note(token);
    cue.ready();
    look_after(actor, cue, &space, KEY);
    actor.break_lock(Op::Break, &space, KEY);
    all_is_well(actor, &space, KEY, 0);
}

fn adopt(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    let held = actor.adopt(Op::Adopt, &space, KEY, cue.noted(), cue.case.ttl);
    end_of_victim(actor, cue, held);
}

fn release_token(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    actor.release_token(Op::ReleaseToken, &space, KEY, cue.noted());
    cue.through();
}

pub(crate) fn companion_of_break(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let held = actor.must_acquire(&space, KEY, LONG_TTL);
    cue.ready();
    let turn = cue.meet();
    actor.release(Op::Release, held);
    // Whoever goes on with breaking breaks whoever holds it then.
    if let Some(held) = let_go_on(actor, cue, &space, KEY, turn) {
        actor.release(Op::Release, held);
    }
    all_is_well(actor, &space, KEY, 0);
}

fn break_lock(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    actor.break_lock(Op::Break, &space, KEY);
    cue.through();
}

pub(crate) const SCENES: [Scene; 13] = [
    scene(Op::Acquire, acquire, companion_of_free),
    scene(Op::Wait, wait, companion_of_wait),
    scene(Op::Future, future, companion_of_future),
    scene(Op::Cancel, cancel, companion_of_cancel),
    scene(Op::Release, release, companion_of_nothing),
    scene(Op::HandOn, hand_on, companion_of_hand_on),
    scene(Op::Renew, renew, companion_of_nothing),
    scene(Op::Steal, steal, companion_of_steal),
    Scene {
        before: Some(die_holding),
        ..scene(Op::TakeOver, take_over, companion_of_nothing)
    },
    scene(Op::Detach, detach, companion_of_detach),
    scene(Op::Adopt, adopt, companion_of_detached),
    scene(Op::ReleaseToken, release_token, companion_of_detached),
    scene(Op::Break, break_lock, companion_of_break),
];
