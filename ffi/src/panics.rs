//! Panics in the middle of calls, forced before each atomic step of each: none leaves, each poisons what it was on
//! and nothing else, and the region is as sound as after a process that died there.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "one note serves a call and what makes it ready"
)]

mod nouns;
mod scene;

use crate::duration::{SPRAG_FOREVER, SPRAG_MILLISECOND, SPRAG_SECOND};
use crate::hold::{
    sprag_hold, sprag_hold_detach, sprag_hold_downgrade, sprag_hold_extend, sprag_hold_is_held,
    sprag_hold_is_valid, sprag_hold_release, sprag_hold_renew, sprag_hold_upgrade,
};
use crate::limiter::{SPRAG_UPDATE, sprag_limiter_close};
use crate::lock::{
    SPRAG_EXCLUSIVE, sprag_acquire_options, sprag_lock, sprag_lock_acquire,
    sprag_lock_acquire_with, sprag_lock_adopt_token, sprag_lock_break, sprag_lock_close,
    sprag_lock_open_partition, sprag_lock_open_table, sprag_lock_release_token,
    sprag_lock_renew_token,
};
use crate::owner::{sprag_owner, sprag_owner_close, sprag_owner_open};
use crate::space::{sprag_space, sprag_space_close, sprag_space_open};
use crate::status::sprag_status::{
    self, SPRAG_BUSY, SPRAG_ERROR_EMPTY, SPRAG_ERROR_PANICKED, SPRAG_ERROR_POISONED, SPRAG_OK,
    SPRAG_REFUSED,
};
use sprag_core::sync::steps;
use std::ffi::{CStr, CString};
use std::mem::zeroed;
use std::ptr::{null, null_mut};

use scene::*;

/// A call that is made ready, and made once or twice.
struct Ready {
    act: Box<dyn FnMut(ErrorOut) -> sprag_status>,
    /// What the same call says after a panic.
    after: sprag_status,
}

/// A call: what it is called, and what makes it ready.
type Call = (&'static str, fn(&Scene) -> Ready);

/// A call on a handle, which a panic poisons.
fn on_handle(act: impl FnMut(ErrorOut) -> sprag_status + 'static) -> Ready {
    Ready {
        act: Box::new(act),
        after: SPRAG_ERROR_POISONED,
    }
}

fn acquiring(scene: &Scene, lock: *mut sprag_lock, timeout_ns: u64) -> Ready {
    let hold = scene.hold();
    // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
    on_handle(move |error| unsafe { sprag_lock_acquire(lock, timeout_ns, hold, error) })
}

/// A call on a hold.
fn on_hold(
    hold: *mut sprag_hold,
    after: sprag_status,
    mut act: impl FnMut(*mut sprag_hold, ErrorOut) -> sprag_status + 'static,
) -> Ready {
    Ready {
        act: Box::new(move |error| {
            let status = act(hold, error);
            if status == SPRAG_ERROR_PANICKED {
                // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
                assert!(unsafe { !sprag_hold_is_valid(hold) && !sprag_hold_is_held(hold) });
            }
            status
        }),
        after,
    }
}

/// A call that leaves its hold empty.
fn ending(
    hold: *mut sprag_hold,
    act: impl FnMut(*mut sprag_hold, ErrorOut) -> sprag_status + 'static,
) -> Ready {
    on_hold(hold, SPRAG_ERROR_EMPTY, act)
}

/// A call that leaves its hold as it is.
fn keeping(
    hold: *mut sprag_hold,
    act: impl FnMut(*mut sprag_hold, ErrorOut) -> sprag_status + 'static,
) -> Ready {
    on_hold(hold, SPRAG_ERROR_POISONED, act)
}

fn checking(scene: &Scene, key: &'static str, cost: u64) -> Ready {
    let limiter = scene.limiter(scene.mine, c"5/day");
    // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
    on_handle(move |error| unsafe { check(limiter, key, cost, error) })
}

fn opening(scene: &Scene, limit: &'static CStr, flags: u32) -> Ready {
    let space = scene.mine;
    on_handle(move |error| unsafe {
        let mut opened = null_mut();
        let status = open_limiter(space, limit, flags, &raw mut opened, error);
        sprag_limiter_close(opened);
        status
    })
}

/// Has somebody else acquire `one` once it is free, and comes back when they wait.
fn somebody_waits(scene: &Scene) {
    let theirs = scene.theirs as usize;
    let waiting = std::thread::spawn(move || {
        let lock = lock(theirs as *mut sprag_space, "one");
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        unsafe {
            let mut hold = zeroed::<sprag_hold>();
            works(|error| sprag_lock_acquire(lock, SPRAG_FOREVER, &raw mut hold, error));
            works(|error| sprag_hold_release(&raw mut hold, error));
            sprag_lock_close(lock);
        }
    });
    let watched = sprag::Space::open(&scene.url).unwrap();
    while watched.inspect("one").unwrap()[0].waiters == 0 {
        std::thread::yield_now();
    }
    let lock = scene.lock(scene.theirs, "one");
    scene.later(move || {
        // The release may not have come to it.
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        outcome(|error| unsafe { sprag_lock_break(lock, null_mut(), error) });
        waiting.join().unwrap();
    });
}

const CALLS: &[Call] = &[
    ("acquire", |scene| {
        acquiring(scene, scene.lock(scene.mine, "one"), 0)
    }),
    ("acquire, and wait", |scene| {
        scene.acquired(scene.lock(scene.theirs, "one"));
        acquiring(scene, scene.lock(scene.mine, "one"), SPRAG_MILLISECOND)
    }),
    ("acquire several", |scene| acquiring(scene, scene.both(), 0)),
    ("acquire a partition", |scene| {
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        let lock = scene.opened(|lock, error| unsafe {
            sprag_lock_open_partition(scene.mine, 0, 0, lock, error)
        });
        acquiring(scene, lock, 0)
    }),
    ("acquire the table", |scene| {
        let lock = scene
            // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
            .opened(|lock, error| unsafe { sprag_lock_open_table(scene.mine, 0, lock, error) });
        acquiring(scene, lock, 0)
    }),
    ("share", |scene| {
        let (lock, hold) = (scene.lock(scene.mine, "one"), scene.hold());
        on_handle(move |error| unsafe { sprag_lock_acquire_with(lock, &sharing(), hold, error) })
    }),
    ("acquire for an owner", |scene| {
        let mut owner: *mut sprag_owner = null_mut();
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        works(|error| unsafe { sprag_owner_open(scene.mine, &raw mut owner, error) });
        scene.later(move || unsafe { sprag_owner_close(owner) });
        let (lock, hold) = (scene.lock(scene.mine, "one"), scene.hold());
        on_handle(move |error| unsafe {
            let options = sprag_acquire_options {
                owner,
                mode: SPRAG_EXCLUSIVE,
                ..sharing()
            };
            sprag_lock_acquire_with(lock, &raw const options, hold, error)
        })
    }),
    ("release", |scene| {
        let hold = scene.acquired(scene.lock(scene.mine, "one"));
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        ending(hold, |hold, error| unsafe {
            sprag_hold_release(hold, error)
        })
    }),
    ("release to one who waits", |scene| {
        let hold = scene.acquired(scene.lock(scene.mine, "one"));
        somebody_waits(scene);
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        ending(hold, |hold, error| unsafe {
            sprag_hold_release(hold, error)
        })
    }),
    ("release several", |scene| {
        let hold = scene.acquired(scene.both());
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        ending(hold, |hold, error| unsafe {
            sprag_hold_release(hold, error)
        })
    }),
    ("release a share", |scene| {
        let hold = scene.shared(scene.lock(scene.mine, "one"));
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        ending(hold, |hold, error| unsafe {
            sprag_hold_release(hold, error)
        })
    }),
    ("detach", |scene| {
        let hold = scene.acquired(scene.lock(scene.mine, "one"));
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        ending(hold, |hold, error| unsafe {
            let mut token = 0;
            sprag_hold_detach(hold, &raw mut token, error)
        })
    }),
    ("renew", |scene| {
        let hold = scene.acquired(scene.lock(scene.mine, "one"));
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        keeping(hold, |hold, error| unsafe { sprag_hold_renew(hold, error) })
    }),
    ("extend several", |scene| {
        let hold = scene.acquired(scene.both());
        keeping(hold, |hold, error| unsafe {
            sprag_hold_extend(hold, 5 * SPRAG_SECOND, error)
        })
    }),
    ("upgrade", |scene| {
        let hold = scene.shared(scene.lock(scene.mine, "one"));
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        keeping(hold, |hold, error| unsafe {
            sprag_hold_upgrade(hold, 0, error)
        })
    }),
    ("upgrade, and wait", |scene| {
        scene.shared(scene.lock(scene.theirs, "one"));
        let hold = scene.shared(scene.lock(scene.mine, "one"));
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        keeping(hold, |hold, error| unsafe {
            sprag_hold_upgrade(hold, SPRAG_MILLISECOND, error)
        })
    }),
    ("downgrade", |scene| {
        let hold = scene.acquired(scene.lock(scene.mine, "one"));
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        keeping(hold, |hold, error| unsafe {
            sprag_hold_downgrade(hold, error)
        })
    }),
    ("release by token", |scene| {
        let lock = scene.lock(scene.mine, "one");
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        let token = unsafe { (*scene.acquired(lock)).token };
        on_handle(move |error| unsafe { sprag_lock_release_token(lock, token, error) })
    }),
    ("renew by token", |scene| {
        let lock = scene.lock(scene.mine, "one");
        let token = unsafe { (*scene.acquired(lock)).token };
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        on_handle(move |error| unsafe { sprag_lock_renew_token(lock, token, error) })
    }),
    ("adopt", |scene| {
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        let token = unsafe { (*scene.acquired(scene.lock(scene.theirs, "one"))).token };
        let (lock, hold) = (scene.lock(scene.mine, "one"), scene.hold());
        on_handle(move |error| unsafe { sprag_lock_adopt_token(lock, token, hold, error) })
    }),
    ("break", |scene| {
        scene.acquired(scene.lock(scene.theirs, "one"));
        let lock = scene.lock(scene.mine, "one");
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        on_handle(move |error| unsafe { sprag_lock_break(lock, null_mut(), error) })
    }),
    ("open a new limiter", |scene| opening(scene, c"5/day", 0)),
    ("open a limiter with another limit", |scene| {
        let limiter = scene.limiter(scene.theirs, c"5/day");
        works(|error| unsafe { check(limiter, "key", 1, error) });
        opening(scene, c"7/day", SPRAG_UPDATE)
    }),
    ("check a new key", |scene| checking(scene, "key", 1)),
    ("check a new long key", |scene| {
        const LONG: &str =
            "a key that is longer than what fits into its cell, so that chunks are needed for it";
        checking(scene, LONG, 1)
    }),
    ("check beyond the limit", |scene| checking(scene, "key", 6)),
];

/// No more plays of a call than about so many: the longest go through tables, where many steps are alike.
const PLAYS_MAX: u64 = 100;

/// Makes a call that panics before step `at`, if it gets there; how many steps it took.
fn play((name, ready): &Call, at: u64) -> u64 {
    let scene = Scene::new();
    let mut ready = ready(&scene);
    steps::arm_panic(at);
    let (status, message) = outcome(&mut ready.act);
    let taken = steps::disarm();
    if status == SPRAG_ERROR_PANICKED {
        let told = format!(
            "the call met a fault of the library (as armed, before step {at}); close the handle, and report it"
        );
        assert_eq!(message, told, "{name}");
        let again = outcome(&mut ready.act).0;
        assert_eq!(again, ready.after, "{name}, again, after step {at}");
    } else {
        assert!(taken < at, "{name}: {taken} steps, and no panic at {at}");
        let is_ordinary = [SPRAG_OK, SPRAG_BUSY, SPRAG_REFUSED].contains(&status);
        assert!(is_ordinary, "{name}: {message}");
    }
    others_go_on(&scene, &format!("{name}, step {at}"));
    scene.end();
    close(&scene);
    check_region(&scene.url, &format!("{name}, step {at}"));
    taken
}

fn close(scene: &Scene) {
    // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
    unsafe {
        sprag_space_close(scene.mine);
        sprag_space_close(scene.theirs);
    }
}

fn others_go_on(scene: &Scene, when: &str) {
    others_go_on_in(scene.theirs, when);
}

fn others_go_on_in(theirs: *mut sprag_space, when: &str) {
    let theirs = theirs as usize;
    let others = std::thread::spawn(move || go_on(theirs as *mut sprag_space));
    assert!(others.join().is_ok(), "{when}");
}

/// Other handles, of another session and in another thread, are not poisoned, and nothing hangs.
fn go_on(space: *mut sprag_space) {
    for name in [NAMES[0], NAMES[1], "three"] {
        let lock = lock(space, name);
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        unsafe {
            let mut hold = zeroed::<sprag_hold>();
            // Who panicked may hold it still, as may one that was made ready.
            let acquire = |error| sprag_lock_acquire(lock, 0, &raw mut hold, error);
            let (status, message) = outcome(acquire);
            assert!([SPRAG_OK, SPRAG_BUSY].contains(&status), "{message}");
            if status == SPRAG_OK {
                works(|error| sprag_hold_release(&raw mut hold, error));
            }
            sprag_lock_close(lock);
        }
    }
    let limiter = limiter(space, c"9/day", SPRAG_UPDATE);
    // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
    unsafe {
        works(|error| check(limiter, "another", 1, error));
        sprag_limiter_close(limiter);
    }
}

/// Once all sessions are over, everything can be had, and the region does not contradict itself.
fn check_region(url: &str, when: &str) {
    let space = sprag::Space::open(url).unwrap();
    for name in NAMES {
        // A hold that was detached, or poisoned, lives on.
        space.break_lock(name).unwrap();
        let held = space.lock(name).unwrap().try_acquire().unwrap();
        assert!(held.is_some(), "{when}: {name}");
    }
    let held = space.table().unwrap().try_acquire().unwrap();
    assert!(held.is_some(), "{when}: the table");
    drop(held);
    nouns::come_again(&space, when);
    for finding in sprag::region::check(&space).findings {
        // A counter that is one off is counted anew once room is short, as after a process that died.
        let is_count = matches!(finding, sprag_core::Finding::Count { .. });
        assert!(is_count, "{when}: {finding}");
    }
}

/// Makes each of these calls, and has it panic at each of its steps.
fn play_all(calls: &[Call]) {
    for call in calls {
        let length = play(call, u64::MAX);
        assert!(length > 0, "{} takes no step", call.0);
        let stride = length / PLAYS_MAX + 1;
        (1..=length).step_by(stride as usize).for_each(|at| {
            play(call, at);
        });
        println!("{}: {} of {length} steps", call.0, length.div_ceil(stride));
    }
}

// property 15, property 16
#[test]
fn a_panic_at_any_step_of_a_call_is_a_status_that_poisons_its_handle_alone() {
    play_all(CALLS);
}

// property 15, property 16
#[test]
fn a_panic_at_any_step_of_a_call_on_another_noun_is_no_other() {
    play_all(nouns::CALLS);
}

// property 15, property 16
#[test]
fn a_panic_at_any_step_of_a_close_stays_inside() {
    let close_at = |at| {
        let scene = Scene::new();
        let lock = lock(scene.mine, "one");
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        unsafe {
            let mut hold = zeroed::<sprag_hold>();
            works(|error| sprag_lock_acquire(lock, 0, &raw mut hold, error));
            works(|error| sprag_hold_release(&raw mut hold, error));
            sprag_lock_close(lock);
            steps::arm_panic(at);
            sprag_space_close(scene.mine);
        }
        let taken = steps::disarm();
        others_go_on(&scene, &format!("close, step {at}"));
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        unsafe { sprag_space_close(scene.theirs) };
        check_region(&scene.url, &format!("close, step {at}"));
        taken
    };
    let length = close_at(u64::MAX);
    assert!(length > 0);
    for at in (1..=length).step_by((length / PLAYS_MAX + 1) as usize) {
        close_at(at);
    }
}

// property 15, property 16
#[test]
fn a_panic_at_any_step_of_an_open_leaves_a_region_that_others_open() {
    let open_at = |at, is_new: bool| {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("shm:{}/region", directory.path().display());
        let others = (!is_new).then(|| scene::open(&url));
        let c_url = CString::new(url.clone()).unwrap();
        let mut space = null_mut();
        let to = &raw mut space;
        steps::arm_panic(at);
        // SAFETY: what is pointed at is a variable here.
        let opens = |error| unsafe { sprag_space_open(c_url.as_ptr(), null(), to, error) };
        let (status, message) = outcome(opens);
        let taken = steps::disarm();
        if status == SPRAG_ERROR_PANICKED {
            assert!(space.is_null(), "{message}");
        } else {
            assert_eq!((status, taken < at), (SPRAG_OK, true), "{message}");
        }
        // SAFETY: NULL, or open and used by nobody any more.
        unsafe { sprag_space_close(space) };
        let when = format!("open, step {at}");
        check_region(&url, &when);
        if let Some(others) = others {
            others_go_on_in(others, &when);
            // SAFETY: it is open, and used by nobody any more.
            unsafe { sprag_space_close(others) };
        }
        taken
    };
    for is_new in [true, false] {
        let length = open_at(u64::MAX, is_new);
        assert!(length > 0);
        for at in (1..=length).step_by((length / PLAYS_MAX + 1) as usize) {
            open_at(at, is_new);
        }
    }
}
