//! # Joint limiters
//!
//! A joint limiter has several limits on each key, declared together: all of them admit a cost, or nothing is
//! taken. It is far cheaper than a call of several limiters. What it admitted cannot be given back or reserved, and
//! its limits cannot be changed: for those, use limiters.
//!
//! A sprag_joint_decision is what it answered: a value in the caller's own memory, which may be moved and copied,
//! and needs no freeing. Its limiter must not be closed before it is last asked.

use crate::border::{close, give, look, on, opaque, wanted};
use crate::bytes::{bytes, copy, copy_text, text, values, writable};
use crate::decision::sprag_decision;
use crate::duration::{SPRAG_NEVER, wait_ns};
use crate::error::sprag_error;
use crate::space::sprag_space;
use crate::status::sprag_status::{self, SPRAG_NONE, SPRAG_OK, SPRAG_REFUSED};
use sprag::{JointDecision, JointLimiter};
use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

opaque! {
    /// An open joint limiter. Every call on it is safe from any thread.
    sprag_joint_limiter, JointLimiter, "joint_limiter"
}

/// Opens the joint limiter of this name, and creates it with 2 to 6 limits, as texts, if there is none. Its name
/// has nothing to do with those of other limiters. A region has room for 256 of them, which stay for as long as it
/// does.
///
/// SPRAG_ERROR_LIMIT for a text that is no limit; SPRAG_ERROR_DEFINITION_DIFFERS if it has others, or these in
/// another order; SPRAG_ERROR_FULL and SPRAG_ERROR_SHARE_EXCEEDED where there is no room for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_joint_limiter_open(
    space: *const sprag_space,
    name: *const c_void,
    name_len: usize,
    limits: *const *const c_char,
    count: usize,
    joint_limiter: *mut *mut sprag_joint_limiter,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            wanted(joint_limiter, "joint_limiter")?;
            let name = bytes(name, name_len, "name")?;
            let limits = values(limits, count, "limits")?.iter();
            let limits = limits.map(|limit| text(*limit, "limit"));
            let limits = limits.collect::<Result<Vec<_>, _>>()?;
            let opened = space.joint_limiter(name, limits)?;
            give(joint_limiter, sprag_joint_limiter::give(opened));
            Ok(SPRAG_OK)
        })
    }
}

/// Closes the handle; NULL is none. The limiter stays in its space.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_joint_limiter_close(joint_limiter: *mut sprag_joint_limiter) {
    // SAFETY: by every function's contract.
    unsafe { close(joint_limiter) };
}

/// The answer of a joint limiter, and the key's state right after it.
#[repr(C)]
pub struct sprag_joint_decision {
    /// The library's own.
    pub private_state: u64,
    /// The library's own.
    pub private_words: [MaybeUninit<u64>; 22],
}

/// What tells a decision that was filled in from memory that was not.
const FILLED: u64 = 0x6a6f_696e_7421_2121;

const _: () = assert!(size_of::<JointDecision<'static>>() <= 22 * size_of::<u64>());

impl sprag_joint_decision {
    /// Fills in the decision at `to`, if that is not NULL.
    ///
    /// # Safety
    ///
    /// `to` is NULL or may be written.
    #[inline(always)]
    unsafe fn fill(to: *mut Self, decision: JointDecision<'_>) {
        if to.is_null() {
            return;
        }
        // SAFETY: it may be written, and has room enough, as asserted above. The alignment of C's struct is a
        // word's, that of the library's may be greater.
        unsafe {
            (&raw mut (*to).private_state).write(FILLED);
            (&raw mut (*to).private_words)
                .cast::<JointDecision<'_>>()
                .write_unaligned(decision);
        }
    }
}

/// What `of` tells of the decision at `from`; `otherwise` if there is none.
///
/// # Safety
///
/// `from` is NULL, or may be read, and has [`FILLED`] as its state only if this library filled it in, for a limiter
/// that is still open.
unsafe fn tell<T>(
    from: *const sprag_joint_decision,
    otherwise: T,
    of: impl FnOnce(&JointDecision<'static>) -> T,
) -> T {
    // SAFETY: by this function's contract.
    if from.is_null() || unsafe { (&raw const (*from).private_state).read() } != FILLED {
        return otherwise;
    }
    // SAFETY: it was filled in, may be copied, and its limiter is open, by this function's contract; `of` keeps
    // nothing.
    let decision = unsafe {
        (&raw const (*from).private_words)
            .cast::<JointDecision<'static>>()
            .read_unaligned()
    };
    of(&decision)
}

/// Checks a cost of a key, at most 2^26 - 1, against all limits, and takes it from all if all allow it: SPRAG_OK,
/// else SPRAG_REFUSED. A cost of 0 takes nothing. The decision is written in both cases, unless it is NULL, which
/// is quickest.
///
/// A region with no room for the key is no error: all such keys are decided by one entry, see
/// sprag_joint_decision_is_overflow(). Tens of nanoseconds; a refusal writes nothing to shared memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_joint_limiter_check(
    joint_limiter: *const sprag_joint_limiter,
    key: *const c_void,
    key_len: usize,
    cost: u64,
    decision: *mut sprag_joint_decision,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(joint_limiter, error, |joint_limiter| {
            let checked = joint_limiter.check(bytes(key, key_len, "key")?, cost)?;
            let is_allowed = checked.is_allowed();
            sprag_joint_decision::fill(decision, checked);
            Ok(if is_allowed { SPRAG_OK } else { SPRAG_REFUSED })
        })
    }
}

/// A key's state, changing nothing: the decision of a check of cost 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_joint_limiter_peek(
    joint_limiter: *const sprag_joint_limiter,
    key: *const c_void,
    key_len: usize,
    decision: *mut sprag_joint_decision,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(joint_limiter, error, |joint_limiter| {
            wanted(decision, "decision")?;
            let peeked = joint_limiter.peek(bytes(key, key_len, "key")?)?;
            sprag_joint_decision::fill(decision, peeked);
            Ok(SPRAG_OK)
        })
    }
}

/// Writes the name, as far as it fits, and its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_joint_limiter_name(
    joint_limiter: *const sprag_joint_limiter,
    name: *mut c_void,
    name_max: usize,
    name_len: *mut usize,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(joint_limiter, error, |joint_limiter| {
            writable(name, name_max, "name")?;
            copy(&joint_limiter.name(), name, name_max, name_len);
            Ok(SPRAG_OK)
        })
    }
}

/// How many limits it has; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_joint_limiter_limit_count(
    joint_limiter: *const sprag_joint_limiter,
) -> usize {
    // SAFETY: by every function's contract.
    unsafe { look(joint_limiter, 0, |of| of.limits().len()) }
}

/// Writes the limit at a place, from 0, as text, as far as it fits, and its length: SPRAG_LIMIT_BYTES_MAX are
/// enough. SPRAG_NONE, and nothing is written, past the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_joint_limiter_limit(
    joint_limiter: *const sprag_joint_limiter,
    place: usize,
    limit: *mut c_char,
    limit_max: usize,
    limit_len: *mut usize,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(joint_limiter, error, |joint_limiter| {
            writable(limit, limit_max, "limit")?;
            let limits = joint_limiter.limits();
            let Some(found) = limits.get(place) else {
                return Ok(SPRAG_NONE);
            };
            copy_text(&found.to_string(), limit, limit_max, limit_len);
            Ok(SPRAG_OK)
        })
    }
}

/// Whether the cost was admitted, by every limit; false for an empty one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_joint_decision_is_allowed(
    decision: *const sprag_joint_decision,
) -> bool {
    // SAFETY: by every function's contract.
    unsafe { tell(decision, false, JointDecision::is_allowed) }
}

/// Whether a limit refused; if so, writes which one does longest, by its place from 0, to place, unless that is
/// NULL: of two that are as long, the first. False for an empty one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_joint_decision_refused_by(
    decision: *const sprag_joint_decision,
    place: *mut usize,
) -> bool {
    // SAFETY: by every function's contract.
    unsafe {
        let Some(refuses) = tell(decision, None, JointDecision::refused_by) else {
            return false;
        };
        give(place, refuses);
        true
    }
}

/// Writes what the limit at a place, from 0, says for itself to of, and tells whether there is such a limit. Where
/// another one refused and nothing was taken, it allows what it would have admitted. It cannot be given back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_joint_decision_of(
    decision: *const sprag_joint_decision,
    place: usize,
    of: *mut sprag_decision,
) -> bool {
    // SAFETY: by every function's contract.
    unsafe {
        let Some(by_itself) = tell(decision, None, |joint| joint.of(place)) else {
            return false;
        };
        sprag_decision::fill(of, by_itself);
        true
    }
}

/// The most that can be admitted at once: the least of the limits', and at most 2^26 - 1; 0 for an empty one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_joint_decision_limit(decision: *const sprag_joint_decision) -> u64 {
    // SAFETY: by every function's contract.
    unsafe { tell(decision, 0, JointDecision::limit) }
}

/// The greatest cost that another check at the same instant would be allowed, at most 2^26 - 1; 0 for an empty one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_joint_decision_remaining(
    decision: *const sprag_joint_decision,
) -> u64 {
    // SAFETY: by every function's contract.
    unsafe { tell(decision, 0, JointDecision::remaining) }
}

/// How long to wait until the same cost would be allowed, in nanoseconds, if nobody else takes any: 0 if it was,
/// else the longest of those that refuse; SPRAG_NEVER if it never can be, and for an empty one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_joint_decision_retry_after_ns(
    decision: *const sprag_joint_decision,
) -> u64 {
    // SAFETY: by every function's contract.
    unsafe { tell(decision, SPRAG_NEVER, |of| wait_ns(of.retry_after())) }
}

/// How long until a further check of another cost would be allowed, in nanoseconds, if nobody else takes any: 0 if
/// it would be at once, SPRAG_NEVER if it never can be, and for an empty one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_joint_decision_retry_after_for_ns(
    decision: *const sprag_joint_decision,
    cost: u64,
) -> u64 {
    // SAFETY: by every function's contract.
    unsafe {
        tell(decision, SPRAG_NEVER, |of| {
            wait_ns(of.retry_after_for(cost))
        })
    }
}

/// How long until nothing is used any more under any limit, in nanoseconds, if nobody takes any; SPRAG_NEVER for
/// never, and for an empty one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_joint_decision_reset_after_ns(
    decision: *const sprag_joint_decision,
) -> u64 {
    // SAFETY: by every function's contract.
    unsafe { tell(decision, SPRAG_NEVER, |of| wait_ns(of.reset_after())) }
}

/// Whether the region had no room for the key, so that an entry shared by all such keys decided; false for an empty
/// one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_joint_decision_is_overflow(
    decision: *const sprag_joint_decision,
) -> bool {
    // SAFETY: by every function's contract.
    unsafe { tell(decision, false, JointDecision::is_overflow) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{sprag_decision_is_allowed, sprag_decision_remaining};
    use crate::duration::SPRAG_SECOND;
    use crate::limiter::SPRAG_REFUND_VOID;
    use crate::status::sprag_status::{
        SPRAG_ERROR_DEFINITION_DIFFERS, SPRAG_ERROR_LIMIT, SPRAG_ERROR_NULL,
        SPRAG_ERROR_OUT_OF_RANGE,
    };
    use crate::testing::{Scene, at, fails, limiter, outcome, told, works};
    use std::mem::zeroed;
    use std::ptr::{null, null_mut};

    /// What opening with these limits comes to.
    fn open(
        scene: &Scene,
        limits: &[*const c_char],
        to: *mut *mut sprag_joint_limiter,
        error: *mut *mut sprag_error,
    ) -> sprag_status {
        let (name, limits, count) = (b"api".as_ptr().cast(), limits.as_ptr(), limits.len());
        // SAFETY: the space is open; texts and variables of the callers'.
        unsafe { sprag_joint_limiter_open(scene.space, name, 3, limits, count, to, error) }
    }

    #[test]
    fn a_cost_is_admitted_by_all_limits_or_taken_from_none() {
        let scene = Scene::new();
        let mut api = null_mut();
        let limits = [c"2/second".as_ptr(), c"100/hour".as_ptr()];
        works(|error| open(&scene, &limits, &raw mut api, error));
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let mut decision: sprag_joint_decision = zeroed();
            let to = &raw mut decision;
            let ann = b"ann".as_ptr().cast();
            let check =
                |cost, to| outcome(|error| sprag_joint_limiter_check(api, ann, 3, cost, to, error));
            assert_eq!(check(1, null_mut()), Ok(SPRAG_OK));
            assert_eq!(check(1, to), Ok(SPRAG_OK));
            assert!(sprag_joint_decision_is_allowed(to));
            let mut place = 77;
            assert!(!sprag_joint_decision_refused_by(to, &raw mut place));
            assert_eq!(place, 77);
            assert_eq!(check(1, to), Ok(SPRAG_REFUSED));
            assert!(sprag_joint_decision_refused_by(to, &raw mut place));
            assert_eq!(place, 0);
            assert_eq!(sprag_joint_decision_limit(to), 2);
            assert_eq!(sprag_joint_decision_remaining(to), 0);
            assert_eq!(sprag_joint_decision_retry_after_ns(to), SPRAG_SECOND / 2);
            assert_eq!(sprag_joint_decision_retry_after_for_ns(to, 2), SPRAG_SECOND);
            assert_eq!(sprag_joint_decision_retry_after_for_ns(to, 3), SPRAG_NEVER);
            assert_eq!(sprag_joint_decision_reset_after_ns(to), 72 * SPRAG_SECOND);
            assert!(!sprag_joint_decision_is_overflow(to));

            // The hour by itself: nothing was taken, and nothing of it can be given back.
            let mut hour: sprag_decision = zeroed();
            assert!(sprag_joint_decision_of(to, 1, &raw mut hour));
            assert!(sprag_decision_is_allowed(&raw const hour));
            assert_eq!(sprag_decision_remaining(&raw const hour), 98);
            let (single, mut refund) = (limiter(&scene, "single", c"100/hour"), 77);
            works(|error| {
                let (hour, refund) = (&raw mut hour, &raw mut refund);
                crate::limiter::sprag_limiter_refund(single, hour, refund, null_mut(), error)
            });
            assert_eq!(refund, SPRAG_REFUND_VOID);
            crate::limiter::sprag_limiter_close(single);
            for place in [2, usize::MAX] {
                assert!(!sprag_joint_decision_of(to, place, &raw mut hour));
            }

            works(|error| sprag_joint_limiter_peek(api, ann, 3, to, error));
            assert_eq!(sprag_joint_decision_remaining(to), 0);
            let above = fails(|error| sprag_joint_limiter_check(api, ann, 3, 1 << 26, to, error));
            assert_eq!(
                above,
                at(SPRAG_ERROR_OUT_OF_RANGE, "cost of a check by joint limits")
            );
            let nowhere = fails(|error| sprag_joint_limiter_peek(api, ann, 3, null_mut(), error));
            assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "decision"));
            sprag_joint_limiter_close(api);
        }
    }

    #[test]
    fn limits_and_name_are_told() {
        let scene = Scene::new();
        let mut api = null_mut();
        let limits = [c"2/second".as_ptr(), c"100/hour;window=fixed".as_ptr()];
        works(|error| open(&scene, &limits, &raw mut api, error));
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            assert_eq!(sprag_joint_limiter_limit_count(api), 2);
            assert_eq!(sprag_joint_limiter_limit_count(null()), 0);
            let limit = |place| {
                told(|limit, max, len, error| {
                    sprag_joint_limiter_limit(api, place, limit, max, len, error)
                })
            };
            assert_eq!(
                (limit(0), limit(1)),
                (b"2/second".to_vec(), b"100/hour;window=fixed".to_vec())
            );
            let past = outcome(|error| {
                sprag_joint_limiter_limit(api, 2, null_mut(), 0, null_mut(), error)
            });
            assert_eq!(past, Ok(SPRAG_NONE));
            let name =
                told(|name, max, len, error| sprag_joint_limiter_name(api, name, max, len, error));
            assert_eq!(name, b"api");
            sprag_joint_limiter_close(api);
        }
    }

    #[test]
    fn what_is_wrong_with_its_limits_is_told() {
        let scene = Scene::new();
        let (one, other) = (c"2/second".as_ptr(), c"100/hour".as_ptr());
        let mut api = null_mut();
        let to = &raw mut api;
        let refused = |limits: &[*const c_char]| fails(|error| open(&scene, limits, to, error));
        for few_or_many in [&[one][..], &[one; 7]] {
            let number = at(
                SPRAG_ERROR_OUT_OF_RANGE,
                "number of limits declared together",
            );
            assert_eq!(refused(few_or_many), number);
        }
        assert_eq!(refused(&[one, null()]), at(SPRAG_ERROR_NULL, "limit"));
        assert_eq!(refused(&[one, c"fast".as_ptr()]), (SPRAG_ERROR_LIMIT, None));
        assert!(api.is_null());
        works(|error| open(&scene, &[one, other], &raw mut api, error));
        let differs = fails(|error| open(&scene, &[other, one], null_mut(), error));
        assert_eq!(differs, at(SPRAG_ERROR_NULL, "joint_limiter"));
        let mut second = null_mut();
        let differs = fails(|error| open(&scene, &[other, one], &raw mut second, error));
        assert_eq!(differs, (SPRAG_ERROR_DEFINITION_DIFFERS, None));
        assert!(second.is_null());
        // SAFETY: nobody uses it any more.
        unsafe { sprag_joint_limiter_close(api) };
    }

    #[test]
    fn an_empty_decision_says_nothing() {
        // SAFETY: a decision of zero bytes, or none.
        unsafe {
            let empty: sprag_joint_decision = zeroed();
            for decision in [null(), &raw const empty] {
                assert!(!sprag_joint_decision_is_allowed(decision));
                assert!(!sprag_joint_decision_refused_by(decision, null_mut()));
                assert_eq!(sprag_joint_decision_retry_after_ns(decision), SPRAG_NEVER);
                assert!(!sprag_joint_decision_of(decision, 0, null_mut()));
            }
        }
    }
}
