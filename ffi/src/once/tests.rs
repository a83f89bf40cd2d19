use super::*;
use crate::attempt::{
    sprag_attempt_abandon, sprag_attempt_close, sprag_attempt_deadline_left_ns,
    sprag_attempt_detach, sprag_attempt_extend, sprag_attempt_finish,
    sprag_attempt_is_after_unfinished, sprag_attempt_is_held, sprag_attempt_is_valid,
    sprag_attempt_renew,
};
use crate::duration::SPRAG_SECOND;
use crate::status::sprag_status::{
    SPRAG_ERROR_EMPTY, SPRAG_ERROR_LOST, SPRAG_ERROR_NULL, SPRAG_ERROR_OUT_OF_RANGE,
};
use crate::testing::{Failed, Scene, at, fails, outcome, told, works};
use std::mem::zeroed;
use std::ptr::{null, null_mut};

const TTL_NS: u64 = 60 * SPRAG_SECOND;
const DAY_NS: u64 = 86_400 * SPRAG_SECOND;

fn open(scene: &Scene) -> *mut sprag_once {
    let (mut once, key) = (null_mut(), b"order 42".as_ptr().cast());
    // SAFETY: the space is open; the rest are variables of this function's.
    works(|error| unsafe { sprag_once_open(scene.space, key, 8, &raw mut once, error) });
    once
}

/// Begins without wanting to know more.
///
/// # Safety
///
/// The handle is open, and the attempt may be written.
unsafe fn begin(
    once: *const sprag_once,
    attempt: *mut sprag_attempt,
) -> Result<sprag_status, Failed> {
    let none = null_mut();
    // SAFETY: as this function's caller says.
    outcome(|error| unsafe {
        sprag_once_begin(
            once,
            TTL_NS,
            attempt,
            none,
            null_mut(),
            0,
            null_mut(),
            error,
        )
    })
}

/// What is known of the key, in short.
///
/// # Safety
///
/// The handle is open.
unsafe fn status(once: *const sprag_once) -> Result<sprag_status, Failed> {
    let none = null_mut();
    // SAFETY: as this function's caller says.
    outcome(|error| unsafe { sprag_once_status(once, none, null_mut(), 0, null_mut(), error) })
}

#[test]
fn what_is_done_is_given_to_all_who_come_later() {
    let scene = Scene::new();
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let once = open(&scene);
        let (mut attempt, mut other): (sprag_attempt, sprag_attempt) = (zeroed(), zeroed());
        let (attempt, other) = (&raw mut attempt, &raw mut other);
        assert_eq!(status(once), Ok(SPRAG_NONE));
        assert_eq!(begin(once, attempt), Ok(SPRAG_OK));
        assert!((*attempt).token > 0 && sprag_attempt_is_held(attempt));
        assert!(!sprag_attempt_is_after_unfinished(attempt));

        // Another one meanwhile.
        let mut progress: sprag_progress = zeroed();
        let to = &raw mut progress;
        let mut len = 77;
        let meanwhile = outcome(|error| {
            sprag_once_begin(once, TTL_NS, other, to, null_mut(), 0, &raw mut len, error)
        });
        assert_eq!(
            (meanwhile, (*other).token, len),
            (Ok(SPRAG_IN_PROGRESS), 0, 77)
        );
        assert_eq!(
            *to,
            sprag_progress::new(Duration::from_mins(1), Some(std::process::id()))
        );
        *to = zeroed();
        let meanwhile =
            outcome(|error| sprag_once_status(once, to, null_mut(), 0, null_mut(), error));
        assert_eq!(
            (meanwhile, progress.left_ns),
            (Ok(SPRAG_IN_PROGRESS), TTL_NS)
        );

        let receipt = b"receipt\0 4711";
        works(|error| {
            let (result, len) = (receipt.as_ptr().cast(), receipt.len());
            sprag_attempt_finish(attempt, result, len, DAY_NS, error)
        });
        assert_eq!((*attempt).token, 0);
        assert!(!sprag_attempt_is_valid(attempt));

        // A buffer that is too small loses nothing.
        let (mut short, mut len) = ([b'x'; 4], 0);
        let later = outcome(|error| {
            let (result, none) = (short.as_mut_ptr().cast(), null_mut());
            sprag_once_begin(once, TTL_NS, other, none, result, 3, &raw mut len, error)
        });
        assert_eq!(
            (later, &short, len),
            (Ok(SPRAG_DONE), b"recx", receipt.len())
        );
        let (mut whole, to) = ([0; SPRAG_RESULT_BYTES_MAX], &raw mut progress);
        let again = outcome(|error| {
            let (result, max) = (whole.as_mut_ptr().cast(), whole.len());
            sprag_once_status(once, to, result, max, &raw mut len, error)
        });
        assert_eq!((again, &whole[..len]), (Ok(SPRAG_DONE), &receipt[..]));
        assert_eq!(*to, sprag_progress::new(Duration::from_hours(24), None));
        let name = told(|name, max, len, error| sprag_once_name(once, name, max, len, error));
        assert_eq!(name, b"order 42");
        sprag_once_close(once);
    }
}

#[test]
fn an_attempt_that_is_closed_is_told_of_until_one_is_finished() {
    let scene = Scene::new();
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let once = open(&scene);
        let mut attempt: sprag_attempt = zeroed();
        let attempt = &raw mut attempt;
        assert_eq!(begin(once, attempt), Ok(SPRAG_OK));
        sprag_attempt_close(attempt);
        assert_eq!(((*attempt).token, status(once)), (0, Ok(SPRAG_UNFINISHED)));
        assert_eq!(begin(once, attempt), Ok(SPRAG_OK));
        assert!(sprag_attempt_is_after_unfinished(attempt));
        works(|error| sprag_attempt_abandon(attempt, error));
        assert_eq!(begin(once, attempt), Ok(SPRAG_OK));
        assert!(sprag_attempt_is_after_unfinished(attempt));
        works(|error| sprag_attempt_finish(attempt, null(), 0, DAY_NS, error));
        assert_eq!(status(once), Ok(SPRAG_DONE));
        scene.advance(2 * DAY_NS);
        assert_eq!(begin(once, attempt), Ok(SPRAG_OK));
        assert!(!sprag_attempt_is_after_unfinished(attempt));
        works(|error| sprag_attempt_abandon(attempt, error));
        assert_eq!(status(once), Ok(SPRAG_NONE));
        // Closing what is empty is nothing.
        sprag_attempt_close(attempt);
        sprag_attempt_close(null_mut());
        sprag_once_close(once);
    }
}

#[test]
fn an_attempt_that_is_late_is_lost_and_leaves_nothing() {
    let scene = Scene::new();
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let once = open(&scene);
        let mut attempt: sprag_attempt = zeroed();
        let attempt = &raw mut attempt;
        assert_eq!(begin(once, attempt), Ok(SPRAG_OK));
        scene.advance(TTL_NS / 2);
        assert_eq!(sprag_attempt_deadline_left_ns(attempt), TTL_NS / 2);
        works(|error| sprag_attempt_renew(attempt, error));
        assert_eq!(sprag_attempt_deadline_left_ns(attempt), TTL_NS);
        works(|error| sprag_attempt_extend(attempt, 2 * TTL_NS, error));
        assert_eq!(sprag_attempt_deadline_left_ns(attempt), 2 * TTL_NS);
        let wrong = fails(|error| sprag_attempt_extend(attempt, 1, error));
        assert_eq!(wrong, at(SPRAG_ERROR_OUT_OF_RANGE, "ttl"));
        scene.advance(2 * TTL_NS);
        assert!(!sprag_attempt_is_valid(attempt) && (*attempt).token > 0);
        let lost = fails(|error| sprag_attempt_renew(attempt, error));
        assert_eq!(lost, (SPRAG_ERROR_LOST, None));
        let lost = fails(|error| sprag_attempt_finish(attempt, null(), 0, DAY_NS, error));
        assert_eq!(lost, (SPRAG_ERROR_LOST, None));
        assert_eq!((*attempt).token, 0);
        assert_eq!(status(once), Ok(SPRAG_UNFINISHED));
        sprag_once_close(once);
    }
}

#[test]
fn an_attempt_goes_on_after_a_result_that_does_not_fit() {
    let scene = Scene::new();
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let once = open(&scene);
        let mut attempt: sprag_attempt = zeroed();
        let attempt = &raw mut attempt;
        assert_eq!(begin(once, attempt), Ok(SPRAG_OK));
        let long = [b'a'; SPRAG_RESULT_BYTES_MAX + 1];
        let finish = |result: *const u8, len, keep_for_ns| {
            let result = result.cast();
            fails(|error| sprag_attempt_finish(attempt, result, len, keep_for_ns, error))
        };
        let wrong = finish(long.as_ptr(), long.len(), DAY_NS);
        assert_eq!(wrong.0, SPRAG_ERROR_OUT_OF_RANGE);
        let wrong = finish(null(), 1, DAY_NS);
        assert_eq!(wrong, at(SPRAG_ERROR_NULL, "result"));
        let wrong = finish(long.as_ptr(), 1, 0);
        assert_eq!(wrong, at(SPRAG_ERROR_OUT_OF_RANGE, "keep_for"));
        assert!(sprag_attempt_is_held(attempt));
        works(|error| {
            let (result, len) = (long.as_ptr().cast(), SPRAG_RESULT_BYTES_MAX);
            sprag_attempt_finish(attempt, result, len, DAY_NS, error)
        });
        sprag_once_close(once);
    }
}

#[test]
fn a_detached_attempt_goes_on_by_its_token() {
    let scene = Scene::new();
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let once = open(&scene);
        let (mut attempt, mut token): (sprag_attempt, u64) = (zeroed(), 0);
        let attempt = &raw mut attempt;
        assert_eq!(begin(once, attempt), Ok(SPRAG_OK));
        let nowhere = fails(|error| sprag_attempt_detach(attempt, null_mut(), error));
        assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "token"));
        works(|error| sprag_attempt_detach(attempt, &raw mut token, error));
        assert_eq!((*attempt).token, 0);
        works(|error| sprag_once_extend_token(once, token, TTL_NS, error));
        works(|error| sprag_once_abandon_token(once, token, error));
        let lost = fails(|error| sprag_once_extend_token(once, token, TTL_NS, error));
        assert_eq!(lost, (SPRAG_ERROR_LOST, None));

        assert_eq!(begin(once, attempt), Ok(SPRAG_OK));
        works(|error| sprag_attempt_detach(attempt, &raw mut token, error));
        let rows = b"1,024 rows".as_ptr().cast();
        works(|error| sprag_once_finish_token(once, token, rows, 10, DAY_NS, error));
        assert_eq!(status(once), Ok(SPRAG_DONE));
        sprag_once_close(once);
    }
}

#[test]
fn what_is_wrong_is_named_and_nothing_is_begun() {
    let scene = Scene::new();
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let once = open(&scene);
        let mut attempt: sprag_attempt = zeroed();
        let attempt = &raw mut attempt;
        let begin = |once, ttl_ns, attempt, result, max| {
            let none = null_mut();
            fails(|error| {
                sprag_once_begin(once, ttl_ns, attempt, none, result, max, null_mut(), error)
            })
        };
        let none = null_mut();
        assert_eq!(
            begin(null(), TTL_NS, attempt, none, 0),
            at(SPRAG_ERROR_NULL, "once")
        );
        assert_eq!(
            begin(once, TTL_NS, null_mut(), none, 0),
            at(SPRAG_ERROR_NULL, "attempt")
        );
        assert_eq!(
            begin(once, TTL_NS, attempt, none, 1),
            at(SPRAG_ERROR_NULL, "result")
        );
        for ttl_ns in [0, u64::MAX] {
            let wrong = begin(once, ttl_ns, attempt, none, 0);
            assert_eq!(wrong, at(SPRAG_ERROR_OUT_OF_RANGE, "ttl"));
        }
        assert_eq!(((*attempt).token, status(once)), (0, Ok(SPRAG_NONE)));
        let empty = [
            fails(|error| sprag_attempt_finish(attempt, null(), 0, DAY_NS, error)),
            fails(|error| sprag_attempt_abandon(attempt, error)),
            fails(|error| sprag_attempt_renew(attempt, error)),
        ];
        assert!(
            empty
                .iter()
                .all(|seen| *seen == at(SPRAG_ERROR_EMPTY, "attempt")),
            "{empty:?}"
        );
        let nowhere = fails(|error| sprag_attempt_renew(null_mut(), error));
        assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "attempt"));
        assert_eq!(sprag_attempt_deadline_left_ns(attempt), 0);
        sprag_once_close(once);
    }
}

#[test]
fn an_attempt_outlives_its_handle_and_its_space() {
    let scene = Scene::new();
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let once = open(&scene);
        let mut attempt: sprag_attempt = zeroed();
        assert_eq!(begin(once, &raw mut attempt), Ok(SPRAG_OK));
        sprag_once_close(once);
        drop(scene);
        // It may be moved.
        let mut moved = Box::new(attempt);
        assert!(sprag_attempt_is_held(&raw const *moved));
        works(|error| sprag_attempt_finish(&raw mut *moved, null(), 0, DAY_NS, error));
    }
}
