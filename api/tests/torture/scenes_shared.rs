//! Scenes of what several hold at once: sharing a lock, having it alone after all, taking permits.

use crate::actor::{Actor, Held, PATIENCE, PERMITS};
use crate::journal::Op;
use crate::scene::{Cue, LONG_TTL, SHORT_TTL, SMALL, Scene, Turn, now_ns, scene};
use crate::scenes_lock::{
    KEY, all_is_well, companion_of_free, companion_of_nothing, companion_of_wait, end_of_victim,
    hold_for_victim, let_go_on, look_after, pause,
};
use sprag::Space;
use std::time::Duration;

const AT_ONCE: Duration = Duration::ZERO;

fn share<'s>(actor: &Actor, op: Op, space: &'s Space, ttl: Duration) -> Held<'s> {
    let shared = actor.share(op, space, KEY, ttl, AT_ONCE);
    shared.expect("room").expect("nobody has it alone")
}

/// Shares the lock until the victim is struck, or through.
fn companion_of_share(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let held = share(actor, Op::Share, &space, LONG_TTL);
    cue.ready();
    cue.meet();
    assert!(held.hold.is_held(), "a share is nobody else's to end");
    assert!(actor.release(Op::LeaveOthers, held));
    look_after(actor, cue, &space, KEY);
    all_is_well(actor, &space, KEY, 0);
}

fn share_free(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    let held = actor.share(Op::Share, &space, KEY, cue.case.ttl, AT_ONCE);
    end_of_victim(actor, cue, held.expect("room"));
}

fn share_beside(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    let held = actor.share(Op::ShareBeside, &space, KEY, cue.case.ttl, AT_ONCE);
    // Stopped meanwhile, it may find the lock another's alone.
    end_of_victim(actor, cue, held.expect("room"));
}

/// Has all permits but one until the victim is struck, or through.
fn companion_of_last(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let shares =
        [(); SMALL.permits as usize - 1].map(|()| share(actor, Op::Share, &space, LONG_TTL));
    cue.ready();
    cue.meet();
    for held in shares {
        assert!(actor.release(Op::LeaveOthers, held));
    }
    look_after(actor, cue, &space, KEY);
    all_is_well(actor, &space, KEY, 0);
}

fn share_last(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    let held = actor.share(Op::ShareLast, &space, KEY, cue.case.ttl, AT_ONCE);
    end_of_victim(actor, cue, held.expect("room"));
}

fn share_wait(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    let held = actor.share(Op::ShareWait, &space, KEY, cue.case.ttl, PATIENCE);
    end_of_victim(actor, cue, held.expect("room"));
}

fn release_share(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let held = share(actor, Op::Share, &space, cue.case.ttl);
    cue.strike(actor);
    actor.release(Op::ReleaseShare, held);
    cue.through();
}

fn leave_others(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let held = share(actor, Op::Share, &space, cue.case.ttl);
    cue.strike(actor);
    actor.release(Op::LeaveOthers, held);
    cue.through();
}

fn renew_share(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let mut held = share(actor, Op::Share, &space, cue.case.ttl);
    cue.strike(actor);
    actor.renew(Op::RenewShare, &mut held);
    end_of_victim(actor, cue, Some(held));
}

fn upgrade(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let mut held = share(actor, Op::Share, &space, cue.case.ttl);
    cue.strike(actor);
    actor.upgrade(Op::Upgrade, &mut held, AT_ONCE);
    end_of_victim(actor, cue, Some(held));
}

/// Shares the lock until the victim is in its operation, and a little longer.
fn companion_of_upgrade(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let held = share(actor, Op::Share, &space, LONG_TTL);
    cue.ready();
    cue.await_operation();
    pause();
    assert!(actor.release(Op::LeaveOthers, held));
    look_after(actor, cue, &space, KEY);
    all_is_well(actor, &space, KEY, 0);
}

fn upgrade_wait(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let mut held = share(actor, Op::Share, &space, cue.case.ttl);
    cue.strike(actor);
    actor.upgrade(Op::UpgradeWait, &mut held, PATIENCE);
    end_of_victim(actor, cue, Some(held));
}

fn downgrade(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let mut held = hold_for_victim(actor, cue, &space);
    cue.strike(actor);
    actor.downgrade(Op::Downgrade, &mut held);
    end_of_victim(actor, cue, Some(held));
}

fn downgrade_upgraded(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let mut held = share(actor, Op::Share, &space, cue.case.ttl);
    actor.upgrade(Op::Upgrade, &mut held, AT_ONCE);
    cue.strike(actor);
    actor.downgrade(Op::DowngradeUpgraded, &mut held);
    end_of_victim(actor, cue, Some(held));
}

fn companion_of_break(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let shares = [(); 2].map(|()| share(actor, Op::Share, &space, LONG_TTL));
    cue.ready();
    let turn = cue.meet();
    for held in shares {
        actor.release(Op::LeaveOthers, held);
    }
    // Whoever goes on with breaking breaks whoever holds it then.
    if let Some(held) = let_go_on(actor, cue, &space, KEY, turn) {
        actor.release(Op::Release, held);
    }
    all_is_well(actor, &space, KEY, 0);
}

fn break_shared(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    actor.break_lock(Op::BreakShared, &space, KEY);
    cue.through();
}

/// A semaphore's name.
const POOL: u64 = 2;

fn take<'s>(actor: &Actor, space: &'s Space, permits: u32, timeout: Duration) -> Option<Held<'s>> {
    let op = if timeout.is_zero() {
        Op::TakePermits
    } else {
        Op::WaitPermits
    };
    actor
        .permits(op, space, POOL, permits, LONG_TTL, timeout)
        .expect("room")
}

/// All permits, by trying over and over: those of the dead and the late come back.
fn must_catch_all<'s>(actor: &Actor, space: &'s Space) -> Held<'s> {
    let give_up_ns = now_ns() + PATIENCE.as_nanos() as u64;
    loop {
        if let Some(held) = take(actor, space, PERMITS, AT_ONCE) {
            return held;
        }
        actor.journal.retract(actor.role);
        assert!(now_ns() < give_up_ns, "the permits never come back");
        std::thread::yield_now();
    }
}

/// The companion's part once the victim began, for the semaphore.
fn look_after_permits(actor: &Actor, cue: &Cue, space: &Space) {
    let mut kept = None;
    match cue.meet() {
        Turn::Dead => {}
        Turn::Stopped => {
            if cue.case.ttl == SHORT_TTL {
                // Its lease ends, so all come: to one who waits, and to one who only tries.
                let held = take(actor, space, PERMITS, PATIENCE).expect("they come back");
                assert!(actor.release(Op::ReleasePermits, held));
                kept = Some(must_catch_all(actor, space));
            }
            if let Some(held) = kept.take_if(|_| cue.is_waiting_for_permits()) {
                cue.resume_only();
                pause();
                assert!(actor.release(Op::ReleasePermits, held), "nobody took them");
            }
            cue.resume();
            cue.probed();
        }
        Turn::Through => cue.probed(),
    }
    if let Some(held) = kept {
        assert!(held.hold.is_held(), "a stale step ended another's hold");
        assert!(actor.release(Op::ReleasePermits, held));
    }
    let all = must_catch_all(actor, space);
    assert!(actor.release(Op::ReleasePermits, all));
    let all = take(actor, space, PERMITS, PATIENCE).expect("they come back");
    assert!(actor.release(Op::ReleasePermits, all));
    all_is_well(actor, space, KEY, 0);
}

fn companion_of_permits(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let one = take(actor, &space, 1, AT_ONCE).expect("free");
    cue.ready();
    cue.meet();
    assert!(one.hold.is_held(), "a permit is nobody else's to end");
    assert!(actor.release(Op::ReleasePermits, one));
    look_after_permits(actor, cue, &space);
}

fn take_permits(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    let held = actor.permits(Op::TakePermits, &space, POOL, 2, cue.case.ttl, AT_ONCE);
    end_of_victim(actor, cue, held.expect("room"));
}

fn companion_of_waited_permits(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let two = take(actor, &space, 2, AT_ONCE).expect("free");
    cue.ready();
    cue.await_operation();
    pause();
    assert!(actor.release(Op::ReleasePermits, two));
    look_after_permits(actor, cue, &space);
}

fn wait_permits(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    cue.strike(actor);
    let held = actor.permits(Op::WaitPermits, &space, POOL, 2, cue.case.ttl, PATIENCE);
    end_of_victim(actor, cue, held.expect("room"));
}

fn release_permits(actor: &Actor, cue: &Cue) {
    let space = actor.open();
    let held = actor.permits(Op::TakePermits, &space, POOL, 2, cue.case.ttl, AT_ONCE);
    let held = held.expect("room").expect("free");
    cue.strike(actor);
    actor.release(Op::ReleasePermits, held);
    cue.through();
}

pub(crate) const SCENES: [Scene; 15] = [
    scene(Op::Share, share_free, companion_of_free),
    scene(Op::ShareBeside, share_beside, companion_of_share),
    scene(Op::ShareLast, share_last, companion_of_last),
    scene(Op::ShareWait, share_wait, companion_of_wait),
    scene(Op::ReleaseShare, release_share, companion_of_nothing),
    scene(Op::LeaveOthers, leave_others, companion_of_share),
    scene(Op::RenewShare, renew_share, companion_of_share),
    scene(Op::Upgrade, upgrade, companion_of_nothing),
    scene(Op::UpgradeWait, upgrade_wait, companion_of_upgrade),
    scene(Op::Downgrade, downgrade, companion_of_nothing),
    scene(
        Op::DowngradeUpgraded,
        downgrade_upgraded,
        companion_of_nothing,
    ),
    scene(Op::BreakShared, break_shared, companion_of_break),
    scene(Op::TakePermits, take_permits, companion_of_permits),
    scene(Op::WaitPermits, wait_permits, companion_of_waited_permits),
    scene(Op::ReleasePermits, release_permits, companion_of_permits),
];
