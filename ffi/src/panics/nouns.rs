//! Calls on what is not a lock: each is made ready with handles of the scene's.
//!
//! In all of them handles are open while calls on them are made, and are closed by the scene in the end; holds and
//! attempts are the scene's as well; what else is pointed at is a variable of the function. The notes on safety
//! say so for short.

use super::scene::*;
use super::{Call, Ready, ending, on_handle};
use crate::attempt::{
    sprag_attempt, sprag_attempt_abandon, sprag_attempt_close, sprag_attempt_detach,
    sprag_attempt_extend, sprag_attempt_finish,
};
use crate::bytes::sprag_bytes;
use crate::check_all::{sprag_check, sprag_space_check_all};
use crate::concurrency::{
    sprag_concurrency, sprag_concurrency_close, sprag_concurrency_key, sprag_concurrency_open,
};
use crate::counter::{
    sprag_counter, sprag_counter_add, sprag_counter_add_within, sprag_counter_close,
    sprag_counter_compare_exchange, sprag_counter_open, sprag_counter_swap,
};
use crate::decision::sprag_decision;
use crate::duration::{SPRAG_MILLISECOND, SPRAG_SECOND};
use crate::fence::{sprag_fence_admit, sprag_fence_close, sprag_fence_open};
use crate::hold::sprag_hold_release;
use crate::joint::{
    sprag_joint_limiter_check, sprag_joint_limiter_close, sprag_joint_limiter_open,
};
use crate::limiter::{
    SPRAG_UPDATE, sprag_limiter_check, sprag_limiter_check_batch, sprag_limiter_refund,
    sprag_limiter_reserve,
};
use crate::once::{
    sprag_once, sprag_once_begin, sprag_once_close, sprag_once_finish_token, sprag_once_open,
};
use crate::overrides::{sprag_limiter_clear_override, sprag_limiter_set_override};
use crate::semaphore::{
    sprag_semaphore, sprag_semaphore_acquire, sprag_semaphore_close, sprag_semaphore_open,
};
use crate::space::sprag_space;
use crate::status::sprag_status::{self, SPRAG_ERROR_EMPTY, SPRAG_ERROR_POISONED};
use crate::striped::{
    sprag_striped_counter_add, sprag_striped_counter_close, sprag_striped_counter_open,
};
use std::ffi::c_void;
use std::mem::zeroed;
use std::ptr::null_mut;

/// A handle that the scene closes.
fn opened<H: 'static>(
    scene: &Scene,
    open: impl FnOnce(*mut *mut H, ErrorOut) -> sprag_status,
    close: unsafe extern "C" fn(*mut H),
) -> *mut H {
    let mut handle = null_mut();
    works(|error| open(&raw mut handle, error));
    // SAFETY: as the file says.
    scene.later(move || unsafe { close(handle) });
    handle
}

/// The name that all these have.
const NAME: (*const c_void, usize) = (c"noun".as_ptr().cast(), 4);
const KEY: (*const c_void, usize) = (c"key".as_ptr().cast(), 3);

fn semaphore(scene: &Scene, space: *mut sprag_space) -> *mut sprag_semaphore {
    // SAFETY: as the file says.
    let open = |to, error| unsafe { sprag_semaphore_open(space, NAME.0, NAME.1, 2, 0, to, error) };
    opened(scene, open, sprag_semaphore_close)
}

fn concurrency(scene: &Scene, space: *mut sprag_space) -> *mut sprag_concurrency {
    let open =
        // SAFETY: as the file says.
        |to, error| unsafe { sprag_concurrency_open(space, NAME.0, NAME.1, 2, 0, to, error) };
    opened(scene, open, sprag_concurrency_close)
}

fn counter(scene: &Scene) -> *mut sprag_counter {
    let space = scene.mine;
    // SAFETY: as the file says.
    let open = |to, error| unsafe { sprag_counter_open(space, NAME.0, NAME.1, to, error) };
    opened(scene, open, sprag_counter_close)
}

fn counting(
    scene: &Scene,
    before: i64,
    act: impl Fn(*mut sprag_counter, ErrorOut) -> sprag_status + 'static,
) -> Ready {
    let counter = counter(scene);
    // SAFETY: as the file says.
    works(|error| unsafe { sprag_counter_swap(counter, before, null_mut(), error) });
    on_handle(move |error| act(counter, error))
}

fn once(scene: &Scene) -> *mut sprag_once {
    // SAFETY: as the file says.
    let open = |to, error| unsafe { sprag_once_open(scene.mine, KEY.0, KEY.1, to, error) };
    opened(scene, open, sprag_once_close)
}

/// Begins without wanting to know more.
///
/// # Safety
///
/// The handle is open, and the attempt may be written.
unsafe fn begin(
    once: *const sprag_once,
    attempt: *mut sprag_attempt,
    error: ErrorOut,
) -> sprag_status {
    let none = null_mut();
    // SAFETY: the handle is open, and the attempt is the caller's.
    unsafe {
        sprag_once_begin(
            once,
            SPRAG_SECOND,
            attempt,
            none,
            null_mut(),
            0,
            null_mut(),
            error,
        )
    }
}

/// An empty attempt, which is closed in the end if it is one by then.
fn attempt(scene: &Scene) -> *mut sprag_attempt {
    // SAFETY: as the file says.
    let attempt = Box::into_raw(Box::new(unsafe { zeroed::<sprag_attempt>() }));
    scene.later(move || unsafe {
        sprag_attempt_close(attempt);
        drop(Box::from_raw(attempt));
    });
    attempt
}

fn begun(scene: &Scene) -> *mut sprag_attempt {
    let (once, attempt) = (once(scene), attempt(scene));
    // SAFETY: as the file says.
    works(|error| unsafe { begin(once, attempt, error) });
    attempt
}

fn attempting(
    scene: &Scene,
    after: sprag_status,
    act: impl Fn(*mut sprag_attempt, ErrorOut) -> sprag_status + 'static,
) -> Ready {
    let attempt = begun(scene);
    Ready {
        act: Box::new(move |error| act(attempt, error)),
        after,
    }
}

const RESULT: &[u8; 100] = &[7; 100];

pub(super) const CALLS: &[Call] = &[
    ("acquire permits", |scene| {
        let (semaphore, hold) = (semaphore(scene, scene.mine), scene.hold());
        // SAFETY: as the file says.
        on_handle(move |error| unsafe { sprag_semaphore_acquire(semaphore, 2, 0, hold, error) })
    }),
    ("acquire permits, and wait", |scene| {
        let theirs = semaphore(scene, scene.theirs);
        let hold = scene.hold();
        // SAFETY: as the file says.
        works(|error| unsafe { sprag_semaphore_acquire(theirs, 1, 0, hold, error) });
        let (semaphore, hold) = (semaphore(scene, scene.mine), scene.hold());
        on_handle(move |error| unsafe {
            sprag_semaphore_acquire(semaphore, 2, SPRAG_MILLISECOND, hold, error)
        })
    }),
    ("release permits", |scene| {
        let (semaphore, hold) = (semaphore(scene, scene.mine), scene.hold());
        // SAFETY: as the file says.
        works(|error| unsafe { sprag_semaphore_acquire(semaphore, 2, 0, hold, error) });
        ending(hold, |hold, error| unsafe {
            sprag_hold_release(hold, error)
        })
    }),
    ("acquire of a key", |scene| {
        let uploads = concurrency(scene, scene.mine);
        let open =
            // SAFETY: as the file says.
            |to, error| unsafe { sprag_concurrency_key(uploads, KEY.0, KEY.1, 0, to, error) };
        let (semaphore, hold) = (opened(scene, open, sprag_semaphore_close), scene.hold());
        on_handle(move |error| unsafe { sprag_semaphore_acquire(semaphore, 1, 0, hold, error) })
    }),
    ("open a concurrency limiter with another number", |scene| {
        concurrency(scene, scene.theirs);
        let space = scene.mine;
        // SAFETY: as the file says.
        on_handle(move |error| unsafe {
            let mut opened = null_mut();
            let (to, flags) = (&raw mut opened, SPRAG_UPDATE);
            let status = sprag_concurrency_open(space, NAME.0, NAME.1, 3, flags, to, error);
            sprag_concurrency_close(opened);
            status
        })
    }),
    ("admit", |scene| {
        // SAFETY: as the file says.
        let open = |to, error| unsafe { sprag_fence_open(scene.mine, NAME.0, NAME.1, to, error) };
        let fence = opened(scene, open, sprag_fence_close);
        on_handle(move |error| unsafe { sprag_fence_admit(fence, 7, error) })
    }),
    ("add to a new counter", |scene| {
        // SAFETY: as the file says.
        counting(scene, 0, |counter, error| unsafe {
            sprag_counter_add(counter, 1, null_mut(), error)
        })
    }),
    ("add within bounds", |scene| {
        // SAFETY: as the file says.
        counting(scene, 1, |counter, error| unsafe {
            sprag_counter_add_within(counter, 1, 0, 2, null_mut(), error)
        })
    }),
    ("swap for nothing", |scene| {
        // SAFETY: as the file says.
        counting(scene, 1, |counter, error| unsafe {
            sprag_counter_swap(counter, 0, null_mut(), error)
        })
    }),
    ("compare and exchange", |scene| {
        // SAFETY: as the file says.
        counting(scene, 1, |counter, error| unsafe {
            sprag_counter_compare_exchange(counter, 1, 2, null_mut(), error)
        })
    }),
    ("stripe a counter", |scene| {
        let (space, counter) = (scene.mine, counter(scene));
        // SAFETY: as the file says.
        works(|error| unsafe { sprag_counter_add(counter, 1, null_mut(), error) });
        on_handle(move |error| unsafe {
            let mut opened = null_mut();
            let to = &raw mut opened;
            let status = sprag_striped_counter_open(space, NAME.0, NAME.1, to, error);
            sprag_striped_counter_close(opened);
            status
        })
    }),
    ("add to a striped counter", |scene| {
        let (space, name, len) = (scene.mine, NAME.0, NAME.1);
        // SAFETY: as the file says.
        let open = |to, error| unsafe { sprag_striped_counter_open(space, name, len, to, error) };
        let counter = opened(scene, open, sprag_striped_counter_close);
        on_handle(move |error| unsafe { sprag_striped_counter_add(counter, 1, error) })
    }),
    ("begin", |scene| {
        let (once, attempt) = (once(scene), attempt(scene));
        // SAFETY: as the file says.
        on_handle(move |error| unsafe { begin(once, attempt, error) })
    }),
    ("finish", |scene| {
        attempting(scene, SPRAG_ERROR_POISONED, |attempt, error| unsafe {
            let (result, len) = (RESULT.as_ptr().cast(), RESULT.len());
            sprag_attempt_finish(attempt, result, len, SPRAG_SECOND, error)
        })
    }),
    ("abandon", |scene| {
        // SAFETY: as the file says.
        attempting(scene, SPRAG_ERROR_EMPTY, |attempt, error| unsafe {
            sprag_attempt_abandon(attempt, error)
        })
    }),
    ("extend an attempt", |scene| {
        // SAFETY: as the file says.
        attempting(scene, SPRAG_ERROR_POISONED, |attempt, error| unsafe {
            sprag_attempt_extend(attempt, 5 * SPRAG_SECOND, error)
        })
    }),
    ("detach an attempt", |scene| {
        // SAFETY: as the file says.
        attempting(scene, SPRAG_ERROR_EMPTY, |attempt, error| unsafe {
            let mut token = 0;
            sprag_attempt_detach(attempt, &raw mut token, error)
        })
    }),
    ("finish by token", |scene| {
        let (attempt, once) = (begun(scene), once(scene));
        // SAFETY: as the file says.
        let token = unsafe { (*attempt).token };
        on_handle(move |error| unsafe {
            let (result, len) = (RESULT.as_ptr().cast(), RESULT.len());
            sprag_once_finish_token(once, token, result, len, SPRAG_SECOND, error)
        })
    }),
    ("check many keys", |scene| {
        let limiter = scene.limiter(scene.mine, c"5/day");
        // SAFETY: as the file says.
        on_handle(move |error| unsafe {
            let keys = ["a", "b", "a"].map(|key| sprag_bytes::of(key.as_bytes()));
            let (keys, none) = (keys.as_ptr(), null_mut());
            sprag_limiter_check_batch(limiter, keys, 3, 1, null_mut(), none, null_mut(), error)
        })
    }),
    ("reserve", |scene| {
        let limiter = scene.limiter(scene.mine, c"5/day");
        // SAFETY: as the file says.
        on_handle(move |error| unsafe {
            let mut decision: sprag_decision = zeroed();
            let to = &raw mut decision;
            sprag_limiter_reserve(limiter, KEY.0, KEY.1, 1, u64::MAX, to, error)
        })
    }),
    ("refund", |scene| {
        let limiter = scene.limiter(scene.mine, c"5/day");
        // SAFETY: as the file says.
        let mut decision: sprag_decision = unsafe { zeroed() };
        works(|error| unsafe {
            sprag_limiter_check(limiter, KEY.0, KEY.1, 2, &raw mut decision, error)
        });
        // SAFETY: as the file says.
        on_handle(move |error| unsafe {
            sprag_limiter_refund(limiter, &raw mut decision, null_mut(), null_mut(), error)
        })
    }),
    ("set an override", |scene| {
        let limiter = scene.limiter(scene.mine, c"5/day");
        // SAFETY: as the file says.
        works(|error| unsafe { check(limiter, "key", 1, error) });
        on_handle(move |error| unsafe {
            sprag_limiter_set_override(limiter, KEY.0, KEY.1, c"7/day".as_ptr(), error)
        })
    }),
    ("clear an override", |scene| {
        let limiter = scene.limiter(scene.mine, c"5/day");
        // SAFETY: as the file says.
        works(|error| unsafe {
            sprag_limiter_set_override(limiter, KEY.0, KEY.1, c"7/day".as_ptr(), error)
        });
        on_handle(move |error| unsafe {
            sprag_limiter_clear_override(limiter, KEY.0, KEY.1, error)
        })
    }),
    ("check several limiters", |scene| {
        let (space, limiter) = (scene.mine, scene.limiter(scene.mine, c"5/day"));
        // SAFETY: as the file says.
        on_handle(move |error| unsafe {
            let check = |key: &'static str| sprag_check {
                limiter,
                key: key.as_ptr().cast(),
                key_len: key.len(),
                cost: 1,
            };
            let checks = ["a", "b"].map(check);
            sprag_space_check_all(space, checks.as_ptr(), 2, null_mut(), error)
        })
    }),
    ("check a joint limiter", |scene| {
        let limits = [c"5/day".as_ptr(), c"50/year".as_ptr()];
        // SAFETY: as the file says.
        let open = |to, error| unsafe {
            sprag_joint_limiter_open(scene.mine, NAME.0, NAME.1, limits.as_ptr(), 2, to, error)
        };
        let limiter = opened(scene, open, sprag_joint_limiter_close);
        // SAFETY: as the file says.
        on_handle(move |error| unsafe {
            sprag_joint_limiter_check(limiter, KEY.0, KEY.1, 1, null_mut(), error)
        })
    }),
];

/// Whoever comes next has what there is, and puts right what was left in the middle.
pub(super) fn come_again(space: &sprag::Space, when: &str) {
    all_can_be_had(&space.semaphore("noun", 2).unwrap(), when);
    if let Some(limiter) = space.find_concurrency("noun").unwrap() {
        all_can_be_had(&limiter.key("key").unwrap(), when);
    }
}

fn all_can_be_had(semaphore: &sprag::Semaphore<'_>, when: &str) {
    // A hold that was poisoned lives on.
    for hold in semaphore.peek().unwrap().holds {
        semaphore.release_token(hold.token).unwrap();
    }
    let all = semaphore.try_acquire(semaphore.permits()).unwrap();
    assert!(all.is_some(), "{when}: permits");
}
