//! # Limiters
//!
//! A limiter is a rate over keys, shared by everyone who opens it in the same space, and exact to its formula. A
//! limit is written as text:
//!
//!     100/minute                    a token bucket: 100 at once, and 100 a minute from then on
//!     100/minute;burst=20           20 at once
//!     1000/day;window=fixed         at most 1,000 in each aligned day
//!     100/minute;window=sliding     two counters: an estimate, whose bound is twice
//!
//! A count is 0 to 10^12; a period is a unit (ns, us, ms, s, second, minute, hour, day) or a number of them (5s).
//! Open a limiter once and keep it: a check through it costs tens of nanoseconds.

use crate::border::{close, give, on, opaque, wanted};
use crate::bytes::{bytes, text};
use crate::decision::sprag_decision;
use crate::error::sprag_error;
use crate::options::check_flags;
use crate::space::sprag_space;
use crate::status::sprag_status::{self, SPRAG_NONE, SPRAG_OK, SPRAG_REFUSED};
use sprag::Limiter;
use std::ffi::{c_char, c_void};

opaque! {
    /// An open limiter. Every call on it is safe from any thread.
    sprag_limiter, Limiter, "limiter"
}

/// What exists by another definition gets this one; what its keys have used is kept.
pub const SPRAG_UPDATE: u32 = 1;

/// Opens the limiter of this name, and creates it with the limit if there is none. With limit NULL, opens the one that
/// there is, whatever its limit: SPRAG_NONE if there is none. flags: 0 or SPRAG_UPDATE.
///
/// SPRAG_ERROR_LIMIT for a text that is no limit; SPRAG_ERROR_DEFINITION_DIFFERS if it has another limit, without
/// SPRAG_UPDATE. An update looks at every key of the region.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_limiter_open(
    space: *const sprag_space,
    name: *const c_void,
    name_len: usize,
    limit: *const c_char,
    flags: u32,
    limiter: *mut *mut sprag_limiter,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            wanted(limiter, "limiter")?;
            check_flags(flags, SPRAG_UPDATE)?;
            let name = bytes(name, name_len, "name")?;
            let opened = if limit.is_null() {
                match space.find_limiter(name)? {
                    Some(found) => found,
                    None => return Ok(SPRAG_NONE),
                }
            } else if flags & SPRAG_UPDATE == 0 {
                space.limiter(name, text(limit, "limit")?)?
            } else {
                space.limiter_updated(name, text(limit, "limit")?)?
            };
            give(limiter, sprag_limiter::give(opened));
            Ok(SPRAG_OK)
        })
    }
}

/// Closes the handle; NULL is none. The limiter stays in its space.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_limiter_close(limiter: *mut sprag_limiter) {
    // SAFETY: by every function's contract.
    unsafe { close(limiter) };
}

/// Checks a cost of a key, and takes it if it is allowed: SPRAG_OK, else SPRAG_REFUSED. A cost of 0 takes nothing, one
/// above the limit is never allowed. The decision is written in both cases, unless it is NULL, which is quickest.
///
/// A region with no room for the key is no error: all such keys are decided by one bucket, see
/// sprag_decision_is_overflow().
///
/// Tens of nanoseconds; a refusal writes nothing to shared memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_limiter_check(
    limiter: *const sprag_limiter,
    key: *const c_void,
    key_len: usize,
    cost: u64,
    decision: *mut sprag_decision,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(limiter, error, |limiter| {
            let checked = limiter.check(bytes(key, key_len, "key")?, cost)?;
            let is_allowed = checked.is_allowed();
            sprag_decision::fill(decision, checked);
            Ok(if is_allowed { SPRAG_OK } else { SPRAG_REFUSED })
        })
    }
}
