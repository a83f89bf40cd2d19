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
//! A count is 0 to 10^12; a period is a unit (ns, us, ms; second, minute, hour, day, week, year, or
//! their first letters) or a number of them (5s).
//! Open a limiter once and keep it: a check through it costs tens of nanoseconds.

use crate::border::{Failure, close, give, on, opaque, wanted};
use crate::bytes::{bytes, copy, copy_text, sprag_bytes, text, values, writable};
use crate::decision::sprag_decision;
use crate::error::sprag_error;
use crate::options::check_flags;
use crate::space::sprag_space;
use crate::status::sprag_status::{self, SPRAG_NONE, SPRAG_OK, SPRAG_REFUSED};
use sprag::{Limiter, Refunded};
use std::ffi::{c_char, c_void};
use std::time::Duration;

opaque! {
    /// An open limiter. Every call on it is safe from any thread.
    sprag_limiter, Limiter, "limiter"
}

/// Bytes that are enough for any limit as text, its zero byte included.
pub const SPRAG_LIMIT_BYTES_MAX: usize = 64;

/// What exists by another definition gets this one; what its keys have used is kept.
pub const SPRAG_UPDATE: u32 = 1;

/// Opens the limiter of this name, and creates it with the limit if there is none. With limit NULL, opens the one
/// that there is, whatever its limit: SPRAG_NONE if there is none. flags: 0 or SPRAG_UPDATE.
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

/// Checks a cost of a key, and takes it if it is allowed: SPRAG_OK, else SPRAG_REFUSED. A cost of 0 takes nothing,
/// one above the limit is never allowed. The decision is written in both cases, unless it is NULL, which is
/// quickest.
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

/// A key's state, changing nothing: the decision of a check of cost 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_limiter_peek(
    limiter: *const sprag_limiter,
    key: *const c_void,
    key_len: usize,
    decision: *mut sprag_decision,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(limiter, error, |limiter| {
            wanted(decision, "decision")?;
            let peeked = limiter.peek(bytes(key, key_len, "key")?)?;
            sprag_decision::fill(decision, peeked);
            Ok(SPRAG_OK)
        })
    }
}

/// A key of many, which [`given`] has looked at.
#[repr(transparent)]
struct Given(sprag_bytes);

impl AsRef<[u8]> for Given {
    fn as_ref(&self) -> &[u8] {
        if self.0.len == 0 {
            return &[];
        }
        // SAFETY: by every function's contract these bytes may be read; that they are a slice's was looked at
        // before.
        unsafe { std::slice::from_raw_parts(self.0.data.cast(), self.0.len) }
    }
}

/// The keys, each of which is bytes that may be read.
///
/// # Safety
///
/// As every function's: they may be read for `'a`.
unsafe fn given<'a>(keys: *const sprag_bytes, count: usize) -> Result<&'a [Given], Failure> {
    // SAFETY: by this function's contract; the one is the other, by another name.
    let keys = unsafe { values(keys.cast::<Given>(), count, "keys")? };
    for Given(key) in keys {
        // SAFETY: by this function's contract.
        unsafe { bytes(key.data, key.len, "key")? };
    }
    Ok(keys)
}

/// Checks many keys, each by itself and in order, for the same cost. Whether each was allowed is written to the
/// array allowed, each decision to the array decisions, both of count elements, and how many were allowed, to
/// allowed_count; each may be NULL. SPRAG_OK, however many were refused.
///
/// One clock reading, and the memory of the next keys fetched ahead: in a large table about half the time of as
/// many single checks. Quickest without the decisions.
///
/// A key out of its bounds is found before any is decided. SPRAG_ERROR_GONE and SPRAG_ERROR_DAMAGED can come in the
/// middle: then the keys before were decided, and their elements were written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_limiter_check_batch(
    limiter: *const sprag_limiter,
    keys: *const sprag_bytes,
    count: usize,
    cost: u64,
    allowed: *mut bool,
    decisions: *mut sprag_decision,
    allowed_count: *mut usize,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract; there are as many elements as keys.
    unsafe {
        on(limiter, error, |limiter| {
            let mut were_allowed = 0;
            limiter.check_batch(given(keys, count)?, cost, |at, decision| {
                let is_allowed = decision.is_allowed();
                were_allowed += usize::from(is_allowed);
                if !allowed.is_null() {
                    allowed.add(at).write(is_allowed);
                }
                if !decisions.is_null() {
                    sprag_decision::fill(decisions.add(at), decision);
                }
            })?;
            give(allowed_count, were_allowed);
            Ok(SPRAG_OK)
        })
    }
}

/// Takes a cost of a key now, to be acted on later: after sprag_decision_act_after_ns(), which is at most
/// wait_max_ns. That is when a check would be allowed if nobody else came; whoever comes later waits behind it.
/// SPRAG_OK; or SPRAG_REFUSED, and nothing is taken, if the wait would be longer, or the cost can never be had. The
/// decision is written in both cases. Who does not want the place any more gives it back: sprag_limiter_refund().
///
/// Under a fixed window, a cost that the rest of a window has no room for closes that window.
/// SPRAG_ERROR_UNSUPPORTED for a sliding window. Well below a microsecond.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_limiter_reserve(
    limiter: *const sprag_limiter,
    key: *const c_void,
    key_len: usize,
    cost: u64,
    wait_max_ns: u64,
    decision: *mut sprag_decision,
    error: *mut *mut sprag_error,
) -> sprag_status {
    let wait_max = Duration::from_nanos(wait_max_ns);
    // SAFETY: by every function's contract.
    unsafe {
        on(limiter, error, |limiter| {
            wanted(decision, "decision")?;
            let reserved = limiter.reserve(bytes(key, key_len, "key")?, cost, wait_max)?;
            let is_allowed = reserved.is_allowed();
            sprag_decision::fill(decision, reserved);
            Ok(if is_allowed { SPRAG_OK } else { SPRAG_REFUSED })
        })
    }
}

/// Some was given back.
pub const SPRAG_REFUND_GIVEN: u32 = 0;
/// Nothing was: nothing was taken, or all of it has drained, or its window no longer counts.
pub const SPRAG_REFUND_OVER: u32 = 1;
/// Nothing was, since it is not known how much of it still counts: the limit was changed, the key made room for
/// another, or something of the key was given back and something else taken since. Also for what another limiter
/// admitted.
pub const SPRAG_REFUND_VOID: u32 = 2;

/// Gives back what a check or a reservation took, for what did not take place after all, as far as that raises no
/// interval above the limit: SPRAG_OK, and SPRAG_REFUND_GIVEN, SPRAG_REFUND_OVER or SPRAG_REFUND_VOID is written
/// to refund, and how much came back, in units of cost with their fraction, to amount; each may be NULL. Works
/// once: the decision is left empty, also where that fails.
///
/// A token bucket gives back what has not drained since, so the more the sooner; a window gives back the cost while
/// it counts. Give back before the key's next check where that can be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_limiter_refund(
    limiter: *const sprag_limiter,
    decision: *mut sprag_decision,
    refund: *mut u32,
    amount: *mut f64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(limiter, error, |limiter| {
            let refunded = limiter.refund(sprag_decision::take(decision)?)?;
            let (is, given) = match refunded {
                Refunded::Given(amount) => (SPRAG_REFUND_GIVEN, amount.as_f64()),
                Refunded::Over => (SPRAG_REFUND_OVER, 0.0),
                _ => (SPRAG_REFUND_VOID, 0.0),
            };
            give(refund, is);
            give(amount, given);
            Ok(SPRAG_OK)
        })
    }
}

/// Writes the name, as far as it fits, and its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_limiter_name(
    limiter: *const sprag_limiter,
    name: *mut c_void,
    name_max: usize,
    name_len: *mut usize,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(limiter, error, |limiter| {
            writable(name, name_max, "name")?;
            copy(&limiter.name(), name, name_max, name_len);
            Ok(SPRAG_OK)
        })
    }
}

/// Writes the limit that it was opened with, as text, as far as it fits, and its length: SPRAG_LIMIT_BYTES_MAX are
/// enough. Checks are by the limit of now, if that was changed since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_limiter_limit(
    limiter: *const sprag_limiter,
    limit: *mut c_char,
    limit_max: usize,
    limit_len: *mut usize,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(limiter, error, |limiter| {
            writable(limit, limit_max, "limit")?;
            copy_text(&limiter.limit().to_string(), limit, limit_max, limit_len);
            Ok(SPRAG_OK)
        })
    }
}

#[cfg(test)]
mod tests;
