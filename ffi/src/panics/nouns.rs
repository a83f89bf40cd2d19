//! The calls on everything but locks and plain limiters.

use super::scene::{ErrorOut, Scene, works};
use super::{Call, Ready, ending, keeping, on_handle};
use crate::attempt::{
    sprag_attempt, sprag_attempt_abandon, sprag_attempt_close, sprag_attempt_detach,
    sprag_attempt_extend, sprag_attempt_finish, sprag_attempt_is_held,
};
use crate::check_all::{sprag_check, sprag_space_check_all};
use crate::concurrency::{
    sprag_concurrency, sprag_concurrency_close, sprag_concurrency_key, sprag_concurrency_open,
};
use crate::counter::{
    sprag_counter, sprag_counter_add, sprag_counter_add_within, sprag_counter_close,
    sprag_counter_compare_exchange, sprag_counter_open, sprag_counter_swap,
};
use crate::decision::sprag_decision;
use crate::fence::{sprag_fence, sprag_fence_admit, sprag_fence_close, sprag_fence_open};
use crate::hold::{sprag_hold, sprag_hold_release, sprag_hold_renew};
use crate::info::sprag_lock_info;
use crate::inspect::sprag_space_each_lock;
use crate::joint::{
    sprag_joint_limiter, sprag_joint_limiter_check, sprag_joint_limiter_close,
    sprag_joint_limiter_open,
};
use crate::limiter::{
    SPRAG_UPDATE, sprag_limiter, sprag_limiter_check, sprag_limiter_refund, sprag_limiter_reserve,
};
use crate::lock::{SPRAG_MILLISECOND, SPRAG_SECOND};
use crate::once::{
    sprag_once, sprag_once_begin, sprag_once_close, sprag_once_finish_token, sprag_once_open,
    sprag_once_status,
};
use crate::overrides::{sprag_limiter_clear_override, sprag_limiter_set_override};
use crate::region::sprag_region_check;
use crate::semaphore::{
    sprag_semaphore, sprag_semaphore_acquire, sprag_semaphore_adopt_token, sprag_semaphore_close,
    sprag_semaphore_open,
};
use crate::space::sprag_space;
use crate::status::sprag_status::{
    self, SPRAG_ERROR_EMPTY, SPRAG_ERROR_PANICKED, SPRAG_ERROR_POISONED,
};
use crate::striped::{
    sprag_striped_counter, sprag_striped_counter_add, sprag_striped_counter_close,
    sprag_striped_counter_get, sprag_striped_counter_open,
};
use std::ffi::{c_char, c_void};
use std::mem::zeroed;
use std::ptr::{null, null_mut};

/// The name of everything that these calls are on.
const NAME: &str = "one";

fn name() -> (*const c_void, usize) {
    (NAME.as_ptr().cast(), NAME.len())
}

/// A handle that the scene closes.
fn opened<H: 'static>(
    scene: &Scene,
    close: unsafe extern "C" fn(*mut H),
    open: impl FnOnce(*mut *mut H, ErrorOut) -> sprag_status,
) -> *mut H {
    let mut handle = null_mut();
    works(|error| open(&raw mut handle, error));
    scene.later(move || unsafe { close(handle) });
    handle
}

fn semaphore(scene: &Scene, space: *mut sprag_space) -> *mut sprag_semaphore {
    let (at, len) = name();
    opened(scene, sprag_semaphore_close, |to, error| unsafe {
        sprag_semaphore_open(space, at, len, 3, 0, to, error)
    })
}

/// What a key of a concurrency limiter can have.
fn key_of(scene: &Scene, space: *mut sprag_space) -> *mut sprag_semaphore {
    let (at, len) = name();
    let limiter: *mut sprag_concurrency =
        opened(scene, sprag_concurrency_close, |to, error| unsafe {
            sprag_concurrency_open(space, at, len, 3, 0, to, error)
        });
    opened(scene, sprag_semaphore_close, |to, error| unsafe {
        sprag_concurrency_key(limiter, at, len, 0, to, error)
    })
}

fn permits(scene: &Scene, semaphore: *mut sprag_semaphore) -> *mut sprag_hold {
    let hold = scene.hold();
    works(|error| unsafe { sprag_semaphore_acquire(semaphore, 2, 0, hold, error) });
    hold
}

fn acquiring(scene: &Scene, semaphore: *mut sprag_semaphore, timeout_ns: u64) -> Ready {
    let hold = scene.hold();
    on_handle(move |error| unsafe {
        sprag_semaphore_acquire(semaphore, 2, timeout_ns, hold, error)
    })
}

fn counter(scene: &Scene) -> *mut sprag_counter {
    let (at, len) = name();
    opened(scene, sprag_counter_close, |to, error| unsafe {
        sprag_counter_open(scene.mine, at, len, to, error)
    })
}

fn striped(scene: &Scene) -> *mut sprag_striped_counter {
    let (at, len) = name();
    opened(scene, sprag_striped_counter_close, |to, error| unsafe {
        sprag_striped_counter_open(scene.mine, at, len, to, error)
    })
}

fn fence(scene: &Scene) -> *mut sprag_fence {
    let (at, len) = name();
    opened(scene, sprag_fence_close, |to, error| unsafe {
        sprag_fence_open(scene.mine, at, len, to, error)
    })
}

fn once(scene: &Scene) -> *mut sprag_once {
    let (at, len) = name();
    opened(scene, sprag_once_close, |to, error| unsafe {
        sprag_once_open(scene.mine, at, len, to, error)
    })
}

/// An empty attempt, which is closed in the end.
fn empty_attempt(scene: &Scene) -> *mut sprag_attempt {
    let attempt = Box::into_raw(Box::new(unsafe { zeroed::<sprag_attempt>() }));
    scene.later(move || unsafe {
        sprag_attempt_close(attempt);
        drop(Box::from_raw(attempt));
    });
    attempt
}

unsafe fn begin(
    once: *mut sprag_once,
    attempt: *mut sprag_attempt,
    error: ErrorOut,
) -> sprag_status {
    // SAFETY: the key is open, and the attempt is the caller's.
    unsafe {
        let (none, no_result, no_len) = (null_mut(), null_mut(), null_mut());
        sprag_once_begin(
            once,
            SPRAG_SECOND,
            attempt,
            none,
            no_result,
            0,
            no_len,
            error,
        )
    }
}

fn begun(scene: &Scene, once: *mut sprag_once) -> *mut sprag_attempt {
    let attempt = empty_attempt(scene);
    works(|error| unsafe { begin(once, attempt, error) });
    attempt
}

/// A call on an attempt.
fn on_attempt(
    scene: &Scene,
    after: sprag_status,
    mut act: impl FnMut(*mut sprag_attempt, ErrorOut) -> sprag_status + 'static,
) -> Ready {
    let attempt = begun(scene, once(scene));
    Ready {
        act: Box::new(move |error| {
            let status = act(attempt, error);
            let is_panicked = status == SPRAG_ERROR_PANICKED;
            assert!(!is_panicked || unsafe { !sprag_attempt_is_held(attempt) });
            status
        }),
        after,
    }
}

fn joint(scene: &Scene) -> *mut sprag_joint_limiter {
    let (at, len) = name();
    let limits = [c"5/day".as_ptr(), c"9/day".as_ptr()];
    opened(scene, sprag_joint_limiter_close, |to, error| unsafe {
        sprag_joint_limiter_open(scene.mine, at, len, limits.as_ptr(), 2, to, error)
    })
}

/// Checks of two limiters' keys, which the scene keeps.
fn checks(scene: &Scene) -> Vec<sprag_check> {
    let limiter = scene.limiter(scene.mine, c"5/day");
    let check = |key: &'static str| sprag_check {
        limiter: limiter.cast_const(),
        key: key.as_ptr().cast(),
        key_len: key.len(),
        cost: 1,
    };
    vec![check("one key"), check("another")]
}

unsafe fn take(limiter: *mut sprag_limiter, to: *mut sprag_decision) {
    let (at, len) = name();
    // SAFETY: the limiter is open, and the decision is the caller's.
    works(|error| unsafe { sprag_limiter_check(limiter, at, len, 3, to, error) });
}

extern "C" fn shown(_: *const sprag_lock_info, _: *mut c_void) -> bool {
    true
}

extern "C" fn found(_: *const c_char, _: *mut c_void) -> bool {
    true
}

pub(super) const CALLS: &[Call] = &[
    ("acquire permits", |scene| {
        acquiring(scene, semaphore(scene, scene.mine), 0)
    }),
    ("acquire permits, and wait", |scene| {
        permits(scene, semaphore(scene, scene.theirs));
        acquiring(scene, semaphore(scene, scene.mine), SPRAG_MILLISECOND)
    }),
    ("release permits", |scene| {
        let hold = permits(scene, semaphore(scene, scene.mine));
        ending(hold, |hold, error| unsafe {
            sprag_hold_release(hold, error)
        })
    }),
    ("renew permits", |scene| {
        let hold = permits(scene, semaphore(scene, scene.mine));
        keeping(hold, |hold, error| unsafe { sprag_hold_renew(hold, error) })
    }),
    ("adopt permits", |scene| {
        let token = unsafe { (*permits(scene, semaphore(scene, scene.theirs))).token };
        let (semaphore, hold) = (semaphore(scene, scene.mine), scene.hold());
        on_handle(move |error| unsafe {
            sprag_semaphore_adopt_token(semaphore, token, hold, error)
        })
    }),
    ("acquire of a key", |scene| {
        acquiring(scene, key_of(scene, scene.mine), 0)
    }),
    ("change how many of a key there are", |scene| {
        permits(scene, key_of(scene, scene.theirs));
        let space = scene.mine;
        on_handle(move |error| unsafe {
            let ((at, len), mut limiter) = (name(), null_mut());
            let to = &raw mut limiter;
            let status = sprag_concurrency_open(space, at, len, 1, SPRAG_UPDATE, to, error);
            sprag_concurrency_close(limiter);
            status
        })
    }),
    ("admit a first token", |scene| {
        let fence = fence(scene);
        on_handle(move |error| unsafe { sprag_fence_admit(fence, 7, error) })
    }),
    ("admit a token", |scene| {
        let fence = fence(scene);
        works(|error| unsafe { sprag_fence_admit(fence, 5, error) });
        on_handle(move |error| unsafe { sprag_fence_admit(fence, 7, error) })
    }),
    ("add to a new counter", |scene| {
        let counter = counter(scene);
        on_handle(move |error| unsafe { sprag_counter_add(counter, 1, null_mut(), error) })
    }),
    ("add to a counter", |scene| {
        let counter = counter(scene);
        works(|error| unsafe { sprag_counter_add(counter, 1, null_mut(), error) });
        on_handle(move |error| unsafe {
            sprag_counter_add_within(counter, 1, 0, 9, null_mut(), error)
        })
    }),
    ("empty a counter", |scene| {
        let counter = counter(scene);
        works(|error| unsafe { sprag_counter_add(counter, 1, null_mut(), error) });
        on_handle(move |error| unsafe { sprag_counter_swap(counter, 0, null_mut(), error) })
    }),
    ("compare and exchange", |scene| {
        let counter = counter(scene);
        works(|error| unsafe { sprag_counter_add(counter, 1, null_mut(), error) });
        on_handle(move |error| unsafe {
            sprag_counter_compare_exchange(counter, 1, 5, null_mut(), error)
        })
    }),
    ("stripe a counter", |scene| {
        let space = scene.mine;
        works(|error| unsafe { sprag_counter_add(counter(scene), 1, null_mut(), error) });
        on_handle(move |error| unsafe {
            let ((at, len), mut striped) = (name(), null_mut());
            let status = sprag_striped_counter_open(space, at, len, &raw mut striped, error);
            sprag_striped_counter_close(striped);
            status
        })
    }),
    ("add to a striped counter", |scene| {
        let striped = striped(scene);
        on_handle(move |error| unsafe { sprag_striped_counter_add(striped, 1, error) })
    }),
    ("gather a striped counter", |scene| {
        let striped = striped(scene);
        works(|error| unsafe { sprag_striped_counter_add(striped, 1, error) });
        on_handle(move |error| unsafe {
            let mut number = 0;
            sprag_striped_counter_get(striped, &raw mut number, error)
        })
    }),
    ("begin", |scene| {
        let (once, attempt) = (once(scene), empty_attempt(scene));
        on_handle(move |error| unsafe { begin(once, attempt, error) })
    }),
    ("begin while another is at it", |scene| {
        let once = once(scene);
        begun(scene, once);
        let attempt = empty_attempt(scene);
        on_handle(move |error| unsafe { begin(once, attempt, error) })
    }),
    ("ask for a result", |scene| {
        let once = once(scene);
        let token = unsafe { (*begun(scene, once)).token };
        let result =
            b"a result that is longer than what fits into a key's own cell, so that it has chunks";
        works(|error| unsafe {
            let (at, len) = (result.as_ptr().cast(), result.len());
            sprag_once_finish_token(once, token, at, len, SPRAG_SECOND, error)
        });
        on_handle(move |error| unsafe {
            let mut result = [0_u8; 16];
            let (to, len) = (result.as_mut_ptr().cast(), result.len());
            sprag_once_status(once, null_mut(), to, len, null_mut(), error)
        })
    }),
    ("finish", |scene| {
        on_attempt(scene, SPRAG_ERROR_POISONED, |attempt, error| unsafe {
            sprag_attempt_finish(attempt, null(), 0, SPRAG_SECOND, error)
        })
    }),
    ("finish with a long result", |scene| {
        on_attempt(scene, SPRAG_ERROR_POISONED, |attempt, error| unsafe {
            let result = [7_u8; 200];
            let (at, len) = (result.as_ptr().cast(), result.len());
            sprag_attempt_finish(attempt, at, len, SPRAG_SECOND, error)
        })
    }),
    ("extend an attempt", |scene| {
        on_attempt(scene, SPRAG_ERROR_POISONED, |attempt, error| unsafe {
            sprag_attempt_extend(attempt, 5 * SPRAG_SECOND, error)
        })
    }),
    ("abandon", |scene| {
        on_attempt(scene, SPRAG_ERROR_EMPTY, |attempt, error| unsafe {
            sprag_attempt_abandon(attempt, error)
        })
    }),
    ("detach an attempt", |scene| {
        on_attempt(scene, SPRAG_ERROR_EMPTY, |attempt, error| unsafe {
            let mut token = 0;
            sprag_attempt_detach(attempt, &raw mut token, error)
        })
    }),
    ("reserve", |scene| {
        let limiter = scene.limiter(scene.mine, c"5/day");
        on_handle(move |error| unsafe {
            let ((at, len), mut decision) = (name(), zeroed::<sprag_decision>());
            sprag_limiter_reserve(limiter, at, len, 1, 0, &raw mut decision, error)
        })
    }),
    ("refund", |scene| {
        let limiter = scene.limiter(scene.mine, c"5/day");
        let mut decision = Box::new(unsafe { zeroed::<sprag_decision>() });
        unsafe { take(limiter, &raw mut *decision) };
        on_handle(move |error| unsafe {
            sprag_limiter_refund(limiter, &raw mut *decision, null_mut(), null_mut(), error)
        })
    }),
    ("set an override", |scene| {
        let limiter = scene.limiter(scene.mine, c"5/day");
        on_handle(move |error| unsafe {
            let (at, len) = name();
            sprag_limiter_set_override(limiter, at, len, c"7/day".as_ptr(), error)
        })
    }),
    ("clear an override", |scene| {
        let limiter = scene.limiter(scene.mine, c"5/day");
        let (at, len) = name();
        works(|error| unsafe {
            sprag_limiter_set_override(limiter, at, len, c"7/day".as_ptr(), error)
        });
        on_handle(move |error| unsafe {
            let (at, len) = name();
            sprag_limiter_clear_override(limiter, at, len, error)
        })
    }),
    ("check several limiters", |scene| {
        let (space, checks) = (scene.mine, checks(scene));
        on_handle(move |error| unsafe {
            sprag_space_check_all(space, checks.as_ptr(), checks.len(), null_mut(), error)
        })
    }),
    ("open a joint limiter", |scene| {
        let space = scene.mine;
        on_handle(move |error| unsafe {
            let ((at, len), mut joint) = (name(), null_mut());
            let limits = [c"5/day".as_ptr(), c"9/day".as_ptr()];
            let to = &raw mut joint;
            let status = sprag_joint_limiter_open(space, at, len, limits.as_ptr(), 2, to, error);
            sprag_joint_limiter_close(joint);
            status
        })
    }),
    ("check several limits", |scene| {
        let joint = joint(scene);
        on_handle(move |error| unsafe {
            let (at, len) = name();
            sprag_joint_limiter_check(joint, at, len, 1, null_mut(), error)
        })
    }),
    ("look at the locks", |scene| {
        scene.acquired(scene.lock(scene.theirs, NAME));
        let space = scene.mine;
        on_handle(move |error| unsafe {
            sprag_space_each_lock(space, null(), 0, Some(shown), null_mut(), error)
        })
    }),
    ("look the region over", |scene| {
        let space = scene.mine;
        on_handle(move |error| unsafe {
            sprag_region_check(space, Some(found), null_mut(), null_mut(), error)
        })
    }),
];
