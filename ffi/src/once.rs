//! # Idempotency keys
//!
//! The first to begin at a key owns it until a deadline, and may store a small result. Those who come meanwhile are
//! told that it is in progress; those who come later are given the result, for as long as it is kept.
//!
//!     switch (sprag_once_begin(once, 60 * SPRAG_SECOND, &attempt, NULL, result, sizeof result, &len, NULL)) {
//!     case SPRAG_OK:
//!         len = charge(sprag_attempt_is_after_unfinished(&attempt), result);
//!         sprag_attempt_finish(&attempt, result, len, 86400 * SPRAG_SECOND, NULL);
//!         break;
//!     case SPRAG_DONE:
//!         break;
//!     case SPRAG_IN_PROGRESS:
//!         return COME_BACK_LATER;
//!     }

use crate::attempt::sprag_attempt;
use crate::border::{close, give, on, opaque, wanted};
use crate::bytes::{bytes, copy, writable};
use crate::duration::nanoseconds;
use crate::error::sprag_error;
use crate::space::sprag_space;
use crate::status::sprag_status::{
    self, SPRAG_DONE, SPRAG_IN_PROGRESS, SPRAG_NONE, SPRAG_OK, SPRAG_UNFINISHED,
};
use sprag::{Begun, Once, OnceStatus};
use std::ffi::c_void;
use std::time::Duration;

opaque! {
    /// A handle on an idempotency key. Every call on it is safe from any thread.
    sprag_once, Once<'static>, "once"
}

/// Opens a handle on the idempotency key of this name. Nothing is created before somebody begins.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_once_open(
    space: *const sprag_space,
    name: *const c_void,
    name_len: usize,
    once: *mut *mut sprag_once,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            wanted(once, "once")?;
            let opened = space.once(bytes(name, name_len, "name")?)?;
            give(once, sprag_once::give(opened.into_owned()));
            Ok(SPRAG_OK)
        })
    }
}

/// Closes the handle; NULL is none. Its attempts go on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_once_close(once: *mut sprag_once) {
    // SAFETY: by every function's contract.
    unsafe { close(once) };
}

/// The most bytes that a result may have.
pub const SPRAG_RESULT_BYTES_MAX: usize = 1024;

const _: () = assert!(SPRAG_RESULT_BYTES_MAX == sprag::RESULT_BYTES_MAX);

/// Who is at a key, and for how long.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct sprag_progress {
    /// What is left until the attempt's deadline, in nanoseconds; of a key that is done, for how much longer its
    /// result is kept at least.
    pub left_ns: u64,
    /// The owner's process id in its own namespace; 0 if the attempt is detached, or the owner is not known any
    /// more.
    pub holder_pid: u32,
    /// Zero.
    pub reserved: u32,
}

impl sprag_progress {
    fn new(left: Duration, holder_pid: Option<u32>) -> Self {
        Self {
            left_ns: nanoseconds(left),
            holder_pid: holder_pid.unwrap_or(0),
            reserved: 0,
        }
    }
}

/// Begins at the key, if it is new or its last attempt is over: the caller owns it for ttl_ns, 1 ms to 366 days. An
/// attempt is over when it is finished, abandoned or closed, when its deadline has passed, and when its process
/// ended.
///
/// SPRAG_OK: the attempt is written. SPRAG_IN_PROGRESS: another is under way, and who and for how long is written
/// to progress, unless that is NULL. SPRAG_DONE: it was done before; the result is written as far as it fits, and
/// how long it is in all, to result_len, unless that is NULL. SPRAG_RESULT_BYTES_MAX are always enough; with fewer,
/// nothing is lost: ask again, by sprag_once_status().
///
/// A few dozen nanoseconds where the key is known. SPRAG_ERROR_FULL and SPRAG_ERROR_SHARE_EXCEEDED where the region
/// has no room for another key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_once_begin(
    once: *const sprag_once,
    ttl_ns: u64,
    attempt: *mut sprag_attempt,
    progress: *mut sprag_progress,
    result: *mut c_void,
    result_max: usize,
    result_len: *mut usize,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(once, error, |once| {
            wanted(attempt, "attempt")?;
            writable(result, result_max, "result")?;
            Ok(match once.begin(Duration::from_nanos(ttl_ns))? {
                Begun::Started(started) => {
                    sprag_attempt::fill(attempt, started);
                    SPRAG_OK
                }
                Begun::InProgress {
                    holder_pid,
                    deadline_left,
                } => {
                    give(progress, sprag_progress::new(deadline_left, holder_pid));
                    SPRAG_IN_PROGRESS
                }
                Begun::Done(stored) => {
                    copy(&stored, result, result_max, result_len);
                    SPRAG_DONE
                }
            })
        })
    }
}

/// What is known of the key; needs no session, and creates nothing. SPRAG_NONE: nobody began, or whoever did
/// abandoned it, or the result is no longer kept. SPRAG_IN_PROGRESS, and progress is written. SPRAG_DONE, and
/// progress and the result are written, as by sprag_once_begin(). SPRAG_UNFINISHED: the last attempt ended
/// unfinished, since its deadline passed, its owner died, or it was closed; that is remembered for an hour at
/// least, and then until its room is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_once_status(
    once: *const sprag_once,
    progress: *mut sprag_progress,
    result: *mut c_void,
    result_max: usize,
    result_len: *mut usize,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(once, error, |once| {
            writable(result, result_max, "result")?;
            Ok(match once.status()? {
                OnceStatus::New => SPRAG_NONE,
                OnceStatus::InProgress {
                    holder_pid,
                    deadline_left,
                } => {
                    give(progress, sprag_progress::new(deadline_left, holder_pid));
                    SPRAG_IN_PROGRESS
                }
                OnceStatus::Done {
                    result: stored,
                    kept_left,
                } => {
                    give(progress, sprag_progress::new(kept_left, None));
                    copy(&stored, result, result_max, result_len);
                    SPRAG_DONE
                }
                OnceStatus::Unfinished => SPRAG_UNFINISHED,
            })
        })
    }
}

/// sprag_attempt_finish() by the attempt's token, whoever began it: the other half of sprag_attempt_detach().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_once_finish_token(
    once: *const sprag_once,
    token: u64,
    result: *const c_void,
    result_len: usize,
    keep_for_ns: u64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    let keep_for = Duration::from_nanos(keep_for_ns);
    // SAFETY: by every function's contract.
    unsafe {
        on(once, error, |once| {
            once.finish_token(token, bytes(result, result_len, "result")?, keep_for)?;
            Ok(SPRAG_OK)
        })
    }
}

/// sprag_attempt_abandon() by the attempt's token, whoever began it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_once_abandon_token(
    once: *const sprag_once,
    token: u64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(once, error, |once| {
            once.abandon_token(token)?;
            Ok(SPRAG_OK)
        })
    }
}

/// sprag_attempt_extend() by the attempt's token, whoever began it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_once_extend_token(
    once: *const sprag_once,
    token: u64,
    ttl_ns: u64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(once, error, |once| {
            once.extend_token(token, Duration::from_nanos(ttl_ns))?;
            Ok(SPRAG_OK)
        })
    }
}

/// Writes the key, as far as it fits, and its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_once_name(
    once: *const sprag_once,
    name: *mut c_void,
    name_max: usize,
    name_len: *mut usize,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(once, error, |once| {
            writable(name, name_max, "name")?;
            copy(&once.name(), name, name_max, name_len);
            Ok(SPRAG_OK)
        })
    }
}

#[cfg(test)]
mod tests;
