//! # Several limiters in one call
//!
//! A request is often under several limits at once: the user's, the tenant's, everybody's. One call checks them
//! all, and either all are allowed and all is taken, or nothing is taken anywhere.

use crate::border::{Failure, Opaque, on};
use crate::bytes::{bytes, values};
use crate::decision::sprag_decision;
use crate::error::sprag_error;
use crate::limiter::sprag_limiter;
use crate::space::sprag_space;
use crate::status::sprag_status::{self, SPRAG_OK, SPRAG_REFUSED};
use sprag::Limiter;
use std::ffi::c_void;

/// One check of several.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sprag_check {
    /// The limiter, of the space that is asked.
    pub limiter: *const sprag_limiter,
    /// The key.
    pub key: *const c_void,
    /// The key's length.
    pub key_len: usize,
    /// The cost, as for sprag_limiter_check().
    pub cost: u64,
}

/// The most checks in one call.
pub const SPRAG_CHECKS_MAX: usize = 8;

/// Checks 1 to SPRAG_CHECKS_MAX limiters in one call: SPRAG_OK, and all is taken, or SPRAG_REFUSED, and nothing is.
/// The decisions are written to an array of count elements in both cases, unless it is NULL, which is quickest;
/// each tells whether its own limiter refused, and can be given back by itself. A key that is named twice under one
/// limiter is checked twice. All are decided at one moment.
///
/// Some five times as long as as many single checks; no write to shared memory when refused.
///
/// SPRAG_ERROR_OTHER_SPACE for a limiter of another space; SPRAG_ERROR_FULL or SPRAG_ERROR_SHARE_EXCEEDED while too
/// many threads are stopped in the middle of such calls. Nothing was taken then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_space_check_all(
    space: *const sprag_space,
    checks: *const sprag_check,
    count: usize,
    decisions: *mut sprag_decision,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract; there are as many elements as checks.
    unsafe {
        on(space, error, |space| {
            let checks = values(checks, count, "checks")?;
            let first = match checks.first() {
                Some(first) if count <= SPRAG_CHECKS_MAX => asked(first)?,
                _ => return Err(out_of_range(count)),
            };
            // What is beyond the count is not looked at.
            let mut all = [first; SPRAG_CHECKS_MAX];
            for (check, to) in checks.iter().zip(&mut all).skip(1) {
                *to = asked(check)?;
            }
            let checked = space.check_all(&all[..count])?;
            let is_allowed = checked.is_allowed();
            if !decisions.is_null() {
                for (at, decision) in checked.into_iter().enumerate() {
                    sprag_decision::fill(decisions.add(at), decision);
                }
            }
            Ok(if is_allowed { SPRAG_OK } else { SPRAG_REFUSED })
        })
    }
}

/// A check as the library asks it.
type Asked<'a> = (&'a Limiter, &'a [u8], u64);

/// A check of the caller's.
///
/// # Safety
///
/// As every function's: its limiter is open, and its key may be read, for `'a`.
unsafe fn asked<'a>(check: &sprag_check) -> Result<Asked<'a>, Failure> {
    // SAFETY: by this function's contract.
    unsafe {
        let limiter = check.limiter.as_ref().ok_or(Failure::Null("limiter"))?;
        let key = bytes(check.key, check.key_len, "key")?;
        Ok((limiter.handle().get()?, key, check.cost))
    }
}

#[cold]
fn out_of_range(count: usize) -> Failure {
    Failure::Bounds {
        argument: "count",
        value: count as u64,
        min: 1,
        max: SPRAG_CHECKS_MAX as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{sprag_decision_is_allowed, sprag_decision_remaining};
    use crate::limiter::{sprag_limiter_close, sprag_limiter_refund};
    use crate::status::sprag_status::{
        SPRAG_ERROR_NULL, SPRAG_ERROR_OTHER_SPACE, SPRAG_ERROR_OUT_OF_RANGE,
    };
    use crate::testing::{Scene, at, fails, limiter, outcome, works};
    use std::mem::zeroed;
    use std::ptr::{null, null_mut};

    fn check(limiter: *const sprag_limiter, key: &str, cost: u64) -> sprag_check {
        sprag_check {
            limiter,
            key: key.as_ptr().cast(),
            key_len: key.len(),
            cost,
        }
    }

    #[test]
    fn all_are_taken_or_none() {
        let scene = Scene::new();
        let user = limiter(&scene, "user", c"1/hour");
        let all = limiter(&scene, "all", c"100/hour");
        let checks = [check(user, "ann", 1), check(all, "all", 1)];
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let mut decisions: [sprag_decision; 2] = zeroed();
            let mut ask = || {
                let (checks, decisions) = (checks.as_ptr(), decisions.as_mut_ptr());
                outcome(|error| sprag_space_check_all(scene.space, checks, 2, decisions, error))
            };
            assert_eq!((ask(), ask()), (Ok(SPRAG_OK), Ok(SPRAG_REFUSED)));
            let allowed = decisions.each_ref().map(|of| sprag_decision_is_allowed(of));
            assert_eq!(allowed, [false, true]);
            let none = null_mut();
            let ask = || {
                outcome(|error| sprag_space_check_all(scene.space, checks.as_ptr(), 2, none, error))
            };
            assert_eq!(ask(), Ok(SPRAG_REFUSED));
            let mut peeked = zeroed();
            let one = [check(all, "all", 0)];
            let to = &raw mut peeked;
            works(|error| sprag_space_check_all(scene.space, one.as_ptr(), 1, to, error));
            assert_eq!(sprag_decision_remaining(to), 99);
            sprag_limiter_close(user);
            sprag_limiter_close(all);
        }
    }

    #[test]
    fn a_part_can_be_given_back() {
        let scene = Scene::new();
        let user = limiter(&scene, "user", c"1/hour");
        let all = limiter(&scene, "all", c"100/hour");
        let checks = [check(user, "ann", 1), check(all, "all", 3)];
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let mut decisions: [sprag_decision; 2] = zeroed();
            let (to, checks) = (decisions.as_mut_ptr(), checks.as_ptr());
            works(|error| sprag_space_check_all(scene.space, checks, 2, to, error));
            let mut amount = 0.0;
            let back = &raw mut decisions[1];
            works(|error| sprag_limiter_refund(all, back, null_mut(), &raw mut amount, error));
            assert!(amount > 2.9, "{amount}");
            sprag_limiter_close(user);
            sprag_limiter_close(all);
        }
    }

    #[test]
    fn as_many_as_the_bound_go_together_and_no_more() {
        let scene = Scene::new();
        let user = limiter(&scene, "user", c"100/hour");
        let checks = [check(user, "ann", 1); SPRAG_CHECKS_MAX + 1];
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let ask = |count, error| {
                sprag_space_check_all(scene.space, checks.as_ptr(), count, null_mut(), error)
            };
            works(|error| ask(SPRAG_CHECKS_MAX, error));
            for count in [0, SPRAG_CHECKS_MAX + 1] {
                let failed = fails(|error| ask(count, error));
                assert_eq!(failed, at(SPRAG_ERROR_OUT_OF_RANGE, "count"));
            }
            let failed = fails(|error| ask(usize::MAX, error));
            assert_eq!(failed, at(SPRAG_ERROR_OUT_OF_RANGE, "checks"));
            sprag_limiter_close(user);
        }
    }

    #[test]
    fn what_is_wrong_is_named_and_nothing_is_taken() {
        let (scene, other) = (Scene::new(), Scene::new());
        let user = limiter(&scene, "user", c"1/hour");
        let stranger = limiter(&other, "user", c"1/hour");
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let ask = |second: sprag_check| {
                let checks = [check(user, "ann", 1), second];
                let mut decision: sprag_decision = zeroed();
                let to = &raw mut decision;
                let failed = fails(|error| {
                    sprag_space_check_all(scene.space, checks.as_ptr(), 2, to, error)
                });
                assert_eq!(decision.private_state, 0);
                failed
            };
            assert_eq!(ask(check(null(), "a", 1)), at(SPRAG_ERROR_NULL, "limiter"));
            assert_eq!(ask(check(user, "", 1)), at(SPRAG_ERROR_OUT_OF_RANGE, "key"));
            assert_eq!(
                ask(check(stranger, "a", 1)),
                (SPRAG_ERROR_OTHER_SPACE, None)
            );
            let nowhere =
                fails(|error| sprag_space_check_all(scene.space, null(), 1, null_mut(), error));
            assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "checks"));
            let one = [check(user, "ann", 1)];
            works(|error| sprag_space_check_all(scene.space, one.as_ptr(), 1, null_mut(), error));
            sprag_limiter_close(user);
            sprag_limiter_close(stranger);
        }
    }
}
