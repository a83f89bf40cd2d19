//! # Attempts
//!
//! A sprag_attempt is an attempt of one's own at an idempotency key (whose section follows): a value in the
//! caller's own memory, filled in by sprag_once_begin(). It may be moved, but only one copy of it may go on being
//! used. It ends by sprag_attempt_finish() or sprag_attempt_abandon(), or by sprag_attempt_close(), which frees
//! the key at once and has the next one told that one ended unfinished; one that is forgotten ends with its
//! deadline, and keeps its space's session for as long as the process runs. An attempt of zero bytes is empty.
//!
//! An attempt is for one thread at a time.

use crate::border::{Failure, Outcome, call, forget_payload, give, guarded, wanted};
use crate::bytes::bytes;
use crate::duration::nanoseconds;
use crate::error::sprag_error;
use crate::status::sprag_status::{self, SPRAG_OK};
use sprag::{Attempt, Error};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// An attempt. All of its fields but the token are the library's own.
#[repr(C)]
pub struct sprag_attempt {
    /// Higher than that of every earlier attempt at the key, and below 2^53: a fence admits it as it does a lock's.
    /// 0 if the attempt is empty.
    pub token: u64,
    /// The library's own.
    pub private_state: u64,
    /// The library's own.
    pub private_words: [MaybeUninit<u64>; 18],
}

/// What tells an attempt that was filled in from memory that was not, or is empty.
const FILLED: u64 = 0x6174_7465_6d70_7421;
/// The same: a call on it panicked.
const POISONED: u64 = 0x6174_7465_6d70_6f69;

const _: () = {
    assert!(size_of::<Attempt<'static>>() <= 18 * size_of::<u64>());
    assert!(align_of::<Attempt<'static>>() <= align_of::<sprag_attempt>());
};

impl sprag_attempt {
    /// Fills in the attempt at `to`.
    ///
    /// # Safety
    ///
    /// `to` may be written.
    pub(crate) unsafe fn fill(to: *mut Self, attempt: Attempt<'static>) {
        // SAFETY: it may be written, and has room enough and the alignment, as asserted above.
        unsafe {
            (&raw mut (*to).token).write(attempt.token());
            (&raw mut (*to).private_state).write(FILLED);
            Self::words(to).write(attempt);
        }
    }

    /// Where the words begin.
    ///
    /// # Safety
    ///
    /// `at` points at memory of an attempt's size.
    unsafe fn words(at: *mut Self) -> *mut Attempt<'static> {
        // SAFETY: by this function's contract.
        unsafe { (&raw mut (*at).private_words).cast() }
    }

    /// Where the attempt at `at` lies.
    ///
    /// # Safety
    ///
    /// `at` is NULL, or an attempt that may be read, with a state of the above only if this library wrote it; and
    /// what is given here is used before anything else touches it, to look only if others look.
    unsafe fn begun(at: *mut Self) -> Result<*mut Attempt<'static>, Failure> {
        if at.is_null() {
            return Err(Failure::Null("attempt"));
        }
        // SAFETY: by this function's contract.
        match unsafe { (&raw const (*at).private_state).read() } {
            // SAFETY: by this function's contract.
            FILLED => Ok(unsafe { Self::words(at) }),
            POISONED => Err(Failure::Poisoned),
            _ => Err(Failure::Empty("attempt")),
        }
    }

    /// Takes the attempt at `at` out, which is empty then.
    ///
    /// # Safety
    ///
    /// As for [`begun`](Self::begun), and it may be written.
    unsafe fn take(at: *mut Self) -> Result<Attempt<'static>, Failure> {
        // SAFETY: by this function's contract. What is there is not used again, since its state says so.
        unsafe {
            let attempt = Self::begun(at)?.read();
            (&raw mut (*at).token).write(0);
            (&raw mut (*at).private_state).write(0);
            Ok(attempt)
        }
    }

    /// A call on the attempt at `at`, which may change it; it is poisoned if it panics.
    ///
    /// # Safety
    ///
    /// As for [`take`](Self::take).
    unsafe fn on(
        at: *mut Self,
        error: *mut *mut sprag_error,
        act: impl FnOnce(&mut Attempt<'static>) -> Outcome,
    ) -> sprag_status {
        guarded(
            error,
            // SAFETY: by this function's contract: it is this call's alone.
            || act(unsafe { &mut *Self::begun(at)? }),
            || {
                // SAFETY: by this function's contract; NULL does not panic.
                unsafe { (&raw mut (*at).private_state).write(POISONED) }
            },
        )
    }

    /// What `of` tells of the attempt at `at`; `otherwise` if it is empty.
    ///
    /// # Safety
    ///
    /// As for [`begun`](Self::begun).
    unsafe fn tell<T>(at: *const Self, otherwise: T, of: impl FnOnce(&Attempt<'static>) -> T) -> T {
        // SAFETY: by this function's contract; `of` only looks.
        let told = || unsafe { Self::begun(at.cast_mut()).map(|attempt| of(&*attempt)) };
        match catch_unwind(AssertUnwindSafe(told)) {
            Ok(Ok(told)) => told,
            Ok(Err(_)) => otherwise,
            Err(payload) => {
                forget_payload(payload);
                otherwise
            }
        }
    }
}

/// Stores the result, 0 to SPRAG_RESULT_BYTES_MAX bytes, for keep_for_ns, 1 ms to 366 days: from then on it is
/// given to everybody who begins. All of it or, on an error, nothing. A longer result belongs elsewhere, and where
/// it is can be the result.
///
/// SPRAG_ERROR_LOST once the deadline has passed, whether somebody else began since or not. The attempt is left
/// empty then, as after success; with any other error it goes on: SPRAG_ERROR_OUT_OF_RANGE for a result that is too
/// long, SPRAG_ERROR_FULL and SPRAG_ERROR_SHARE_EXCEEDED where the region has no room for it. An empty result
/// always fits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_attempt_finish(
    attempt: *mut sprag_attempt,
    result: *const c_void,
    result_len: usize,
    keep_for_ns: u64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    let keep_for = Duration::from_nanos(keep_for_ns);
    // SAFETY: by every function's contract.
    unsafe {
        let mut is_over = false;
        let status = sprag_attempt::on(attempt, error, |attempt| {
            let finished = attempt.finish(bytes(result, result_len, "result")?, keep_for);
            is_over = matches!(finished, Ok(()) | Err(Error::AttemptLost { .. }));
            Ok(finished.map(|()| SPRAG_OK)?)
        });
        if is_over {
            sprag_attempt_close(attempt);
        }
        status
    }
}

/// Frees the key for the next caller at once, as if this attempt had not been: for one that did nothing, or undid
/// it. What was known of attempts before, the next one is told. The attempt is left empty, also where that fails:
/// SPRAG_ERROR_LOST if it was over already. One whose deadline has passed is abandoned all the same while nobody
/// has noticed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_attempt_abandon(
    attempt: *mut sprag_attempt,
    error: *mut *mut sprag_error,
) -> sprag_status {
    call(error, || {
        // SAFETY: by every function's contract.
        unsafe { sprag_attempt::take(attempt)? }.abandon()?;
        Ok(SPRAG_OK)
    })
}

/// Ends an attempt that is neither finished nor abandoned, and leaves it empty: the key is free at once, and the
/// next one is told that one ended unfinished. Nothing for NULL and for an empty one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_attempt_close(attempt: *mut sprag_attempt) {
    // SAFETY: by every function's contract.
    let take = || unsafe { sprag_attempt::take(attempt) };
    let ended = catch_unwind(AssertUnwindSafe(|| take().map(drop)));
    if let Err(payload) = ended {
        forget_payload(payload);
    }
}

/// Whether an attempt before this one ended unfinished, so that its work may have been done in part: its deadline
/// passed, its owner died, or it was closed. Stays so over attempts that are abandoned, until one is finished.
/// False for an empty one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_attempt_is_after_unfinished(attempt: *const sprag_attempt) -> bool {
    // SAFETY: by every function's contract.
    unsafe { sprag_attempt::tell(attempt, false, Attempt::is_after_unfinished) }
}

/// Whether the deadline is still to come, by this process's own clock: a clock reading, no shared memory. Errs
/// towards false near the end; false for an empty one. To finish may still fail.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_attempt_is_valid(attempt: *const sprag_attempt) -> bool {
    // SAFETY: by every function's contract.
    unsafe { sprag_attempt::tell(attempt, false, Attempt::is_valid) }
}

/// Whether the key is still this attempt's, by the shared word: also notices that somebody ended it by its token,
/// and that the region was removed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_attempt_is_held(attempt: *const sprag_attempt) -> bool {
    // SAFETY: by every function's contract.
    unsafe { sprag_attempt::tell(attempt, false, Attempt::is_held) }
}

/// What is left until the deadline in nanoseconds, by this process's own clock; 0 once it has passed, and for an
/// empty one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_attempt_deadline_left_ns(attempt: *const sprag_attempt) -> u64 {
    // SAFETY: by every function's contract.
    let left = unsafe { sprag_attempt::tell(attempt, Duration::ZERO, Attempt::deadline_left) };
    nanoseconds(left)
}

/// Starts the time until the deadline anew, from now, with the length it had. SPRAG_ERROR_LOST once it has passed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_attempt_renew(
    attempt: *mut sprag_attempt,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        sprag_attempt::on(attempt, error, |attempt| {
            attempt.renew()?;
            Ok(SPRAG_OK)
        })
    }
}

/// sprag_attempt_renew() with another length: 1 ms to 366 days.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_attempt_extend(
    attempt: *mut sprag_attempt,
    ttl_ns: u64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        sprag_attempt::on(attempt, error, |attempt| {
            attempt.extend(Duration::from_nanos(ttl_ns))?;
            Ok(SPRAG_OK)
        })
    }
}

/// Lets the attempt go on without this process, until its deadline, which starts anew, or until somebody finishes
/// or abandons it by its token, which is written to token. The attempt is left empty, also where that fails:
/// SPRAG_ERROR_LOST once it is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_attempt_detach(
    attempt: *mut sprag_attempt,
    token: *mut u64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    call(error, || {
        wanted(token, "token")?;
        // SAFETY: by every function's contract.
        let detached = unsafe { sprag_attempt::take(attempt)? }.detach()?;
        // SAFETY: by every function's contract.
        unsafe { give(token, detached) };
        Ok(SPRAG_OK)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::once::{sprag_once_begin, sprag_once_close, sprag_once_open};
    use crate::status::sprag_status::{SPRAG_ERROR_PANICKED, SPRAG_ERROR_POISONED};
    use crate::testing::{Scene, fails, works};
    use std::mem::zeroed;
    use std::ptr::{null, null_mut};

    #[test]
    fn an_attempt_that_a_call_panicked_on_is_not_used_again() {
        let scene = Scene::new();
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let (mut once, mut attempt): (_, sprag_attempt) = (null_mut(), zeroed());
            let (key, to) = (b"a".as_ptr().cast(), &raw mut once);
            works(|error| sprag_once_open(scene.space, key, 1, to, error));
            let attempt = &raw mut attempt;
            works(|error| {
                let none = null_mut();
                let ttl_ns = 1_000_000_000;
                sprag_once_begin(
                    once,
                    ttl_ns,
                    attempt,
                    none,
                    null_mut(),
                    0,
                    null_mut(),
                    error,
                )
            });
            let panicked = fails(|error| sprag_attempt::on(attempt, error, |_| panic!("here")));
            assert_eq!(panicked, (SPRAG_ERROR_PANICKED, None));
            let poisoned = [
                fails(|error| sprag_attempt_renew(attempt, error)),
                fails(|error| sprag_attempt_finish(attempt, null(), 0, 1_000_000_000, error)),
                fails(|error| sprag_attempt_abandon(attempt, error)),
            ];
            let all = |seen: &_| *seen == (SPRAG_ERROR_POISONED, None);
            assert!(poisoned.iter().all(all), "{poisoned:?}");
            assert!(!sprag_attempt_is_valid(attempt));
            sprag_attempt_close(attempt);
            sprag_once_close(once);
        }
    }
}
