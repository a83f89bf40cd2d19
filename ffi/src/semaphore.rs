//! # Semaphores
//!
//! A semaphore is a number of permits. They are leased, as locks are: those of a holder that died, or did not renew
//! them, return. Each hold has a token, and as many permits as it asked for at once; all are released together.

use crate::border::{close, give, look, on, opaque, wanted};
use crate::bytes::{bytes, copy, writable};
use crate::duration::lease;
use crate::error::sprag_error;
use crate::hold::sprag_hold;
use crate::lock::one;
use crate::space::sprag_space;
use crate::status::sprag_status::{self, SPRAG_OK};
use sprag::Semaphore;
use std::ffi::c_void;
use std::time::Duration;

opaque! {
    /// A handle on a semaphore, or on what a key of a concurrency limiter can have at once. Every call on it is
    /// safe from any thread.
    sprag_semaphore, Semaphore<'static>, "semaphore"
}

/// Opens a handle on the semaphore of a name, which has so many permits: 1 to 16,777,215. Nothing is created before
/// some are acquired. Its holds are leased for ttl_ns: 1 ms to 366 days; 0 for 30 s.
///
/// That it exists with another number of permits is found by acquiring: SPRAG_ERROR_DEFINITION_DIFFERS.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_semaphore_open(
    space: *const sprag_space,
    name: *const c_void,
    name_len: usize,
    permits: u32,
    ttl_ns: u64,
    semaphore: *mut *mut sprag_semaphore,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            wanted(semaphore, "semaphore")?;
            let opened = space.semaphore(bytes(name, name_len, "name")?, permits)?;
            give(semaphore, sprag_semaphore::leased(opened, ttl_ns)?);
            Ok(SPRAG_OK)
        })
    }
}

impl sprag_semaphore {
    /// Hands `opened` to the caller, with this lease, or the default.
    pub(crate) fn leased(opened: Semaphore<'_>, ttl_ns: u64) -> sprag::Result<*mut Self> {
        let opened = opened.into_owned();
        Ok(Self::give(match lease(ttl_ns) {
            Some(ttl) => opened.ttl(ttl)?,
            None => opened,
        }))
    }
}

/// Closes the handle; NULL is none. Its holds go on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_semaphore_close(semaphore: *mut sprag_semaphore) {
    // SAFETY: by every function's contract.
    unsafe { close(semaphore) };
}

/// Acquires so many permits at once, 1 to all there are, waiting for at most timeout_ns: 0 to try, SPRAG_FOREVER
/// without an end. SPRAG_OK, and the hold is written; or SPRAG_BUSY, and it is not, and nothing is left behind.
/// Those who wait are served in the order of coming, also one who wants more than the one behind. A few hundred
/// nanoseconds where there are so many.
///
/// SPRAG_ERROR_DEFINITION_DIFFERS if the semaphore has another number of permits; SPRAG_ERROR_ABOVE_CAPACITY if a
/// limiter allows fewer of its key, also to one who waits when that is changed; SPRAG_ERROR_FULL and
/// SPRAG_ERROR_SHARE_EXCEEDED where the region has no room for another hold, or for another waiter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_semaphore_acquire(
    semaphore: *const sprag_semaphore,
    permits: u32,
    timeout_ns: u64,
    hold: *mut sprag_hold,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(semaphore, error, |semaphore| {
            wanted(hold, "hold")?;
            let held = if timeout_ns == 0 {
                semaphore.try_acquire(permits)?
            } else {
                semaphore.acquire_timeout(permits, Duration::from_nanos(timeout_ns))?
            };
            Ok(one(hold, held))
        })
    }
}

/// Ends the hold with this token, and all its permits, whoever took it: the other half of sprag_hold_detach().
/// SPRAG_ERROR_LOST if there is no such hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_semaphore_release_token(
    semaphore: *const sprag_semaphore,
    token: u64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(semaphore, error, |semaphore| {
            semaphore.release_token(token)?;
            Ok(SPRAG_OK)
        })
    }
}

/// Sets the lease of the hold with this token to the handle's, from now. SPRAG_ERROR_LOST if there is no such hold,
/// or its lease is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_semaphore_renew_token(
    semaphore: *const sprag_semaphore,
    token: u64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(semaphore, error, |semaphore| {
            semaphore.renew_token(token)?;
            Ok(SPRAG_OK)
        })
    }
}

/// Takes over the hold with this token, and all its permits, from whoever has it, with the handle's lease.
/// SPRAG_ERROR_LOST if there is no such hold, or its lease is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_semaphore_adopt_token(
    semaphore: *const sprag_semaphore,
    token: u64,
    hold: *mut sprag_hold,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(semaphore, error, |semaphore| {
            wanted(hold, "hold")?;
            Ok(one(hold, Some(semaphore.adopt_token(token)?)))
        })
    }
}

/// How many permits there are in all; of a limiter's key as many as the limiter allows now. 0 for NULL, and if the
/// region is damaged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_semaphore_permits(semaphore: *const sprag_semaphore) -> u32 {
    // SAFETY: by every function's contract.
    unsafe { look(semaphore, 0, Semaphore::permits) }
}

/// Writes the name, of a limiter's key the key, as far as it fits, and its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_semaphore_name(
    semaphore: *const sprag_semaphore,
    name: *mut c_void,
    name_max: usize,
    name_len: *mut usize,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(semaphore, error, |semaphore| {
            writable(name, name_max, "name")?;
            copy(&semaphore.name(), name, name_max, name_len);
            Ok(SPRAG_OK)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::duration::{SPRAG_FOREVER, SPRAG_SECOND};
    use crate::hold::{
        sprag_hold_detach, sprag_hold_is_held, sprag_hold_is_valid, sprag_hold_lease_left_ns,
        sprag_hold_release,
    };
    use crate::status::sprag_status::{
        SPRAG_BUSY, SPRAG_ERROR_DEFINITION_DIFFERS, SPRAG_ERROR_LOST, SPRAG_ERROR_NULL,
        SPRAG_ERROR_OUT_OF_RANGE,
    };
    use crate::testing::{Scene, at, fails, outcome, told, works};
    use std::mem::zeroed;
    use std::ptr::{null, null_mut};

    fn open(
        scene: &Scene,
        permits: u32,
        ttl_ns: u64,
        to: *mut *mut sprag_semaphore,
        error: *mut *mut sprag_error,
    ) -> sprag_status {
        let name = b"doors".as_ptr().cast();
        // SAFETY: the space is open; the rest are the callers'.
        unsafe { sprag_semaphore_open(scene.space, name, 5, permits, ttl_ns, to, error) }
    }

    #[test]
    fn permits_are_taken_and_return() {
        let scene = Scene::new();
        let mut doors = null_mut();
        works(|error| open(&scene, 3, 0, &raw mut doors, error));
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let (mut two, mut one): (sprag_hold, sprag_hold) = (zeroed(), zeroed());
            let (two, one) = (&raw mut two, &raw mut one);
            works(|error| sprag_semaphore_acquire(doors, 2, SPRAG_FOREVER, two, error));
            let acquire =
                |permits| outcome(|error| sprag_semaphore_acquire(doors, permits, 0, one, error));
            assert_eq!(acquire(2), Ok(SPRAG_BUSY));
            assert_eq!((*one).token, 0);
            assert_eq!(acquire(1), Ok(SPRAG_OK));
            assert!((*one).token > (*two).token && sprag_hold_is_held(one));
            works(|error| sprag_hold_release(two, error));
            works(|error| sprag_semaphore_acquire(doors, 2, 0, two, error));
            works(|error| sprag_hold_release(two, error));
            works(|error| sprag_hold_release(one, error));
            assert_eq!(
                (
                    sprag_semaphore_permits(doors),
                    sprag_semaphore_permits(null())
                ),
                (3, 0)
            );
            let name =
                told(|name, max, len, error| sprag_semaphore_name(doors, name, max, len, error));
            assert_eq!(name, b"doors");
            sprag_semaphore_close(doors);
        }
    }

    #[test]
    fn a_hold_ends_with_its_lease() {
        let scene = Scene::new();
        let mut doors = null_mut();
        works(|error| open(&scene, 1, SPRAG_SECOND, &raw mut doors, error));
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let (mut late, mut next): (sprag_hold, sprag_hold) = (zeroed(), zeroed());
            let (late, next) = (&raw mut late, &raw mut next);
            works(|error| sprag_semaphore_acquire(doors, 1, 0, late, error));
            assert_eq!(sprag_hold_lease_left_ns(late), SPRAG_SECOND);
            scene.advance(2 * SPRAG_SECOND);
            assert!(!sprag_hold_is_valid(late));
            works(|error| sprag_semaphore_acquire(doors, 1, 0, next, error));
            let lost = fails(|error| sprag_hold_release(late, error));
            assert_eq!(lost, (SPRAG_ERROR_LOST, None));
            works(|error| sprag_hold_release(next, error));
            sprag_semaphore_close(doors);
        }
    }

    #[test]
    fn a_detached_hold_goes_on_by_its_token() {
        let scene = Scene::new();
        let mut doors = null_mut();
        works(|error| open(&scene, 1, 0, &raw mut doors, error));
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let (mut hold, mut token): (sprag_hold, u64) = (zeroed(), 0);
            let hold = &raw mut hold;
            works(|error| sprag_semaphore_acquire(doors, 1, 0, hold, error));
            works(|error| sprag_hold_detach(hold, &raw mut token, error));
            works(|error| sprag_semaphore_renew_token(doors, token, error));
            works(|error| sprag_semaphore_adopt_token(doors, token, hold, error));
            assert_eq!((*hold).token, token);
            works(|error| sprag_hold_detach(hold, &raw mut token, error));
            works(|error| sprag_semaphore_release_token(doors, token, error));
            let lost = [
                fails(|error| sprag_semaphore_release_token(doors, token, error)),
                fails(|error| sprag_semaphore_renew_token(doors, token, error)),
                fails(|error| sprag_semaphore_adopt_token(doors, token, hold, error)),
            ];
            assert!(
                lost.iter().all(|lost| *lost == (SPRAG_ERROR_LOST, None)),
                "{lost:?}"
            );
            assert_eq!((*hold).token, 0);
            sprag_semaphore_close(doors);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let scene = Scene::new();
        let (mut doors, mut other) = (null_mut(), null_mut());
        for permits in [0, 1 << 24] {
            let wrong = fails(|error| open(&scene, permits, 0, &raw mut doors, error));
            assert_eq!(wrong.0, SPRAG_ERROR_OUT_OF_RANGE);
        }
        for ttl_ns in [1, u64::MAX] {
            let wrong = fails(|error| open(&scene, 1, ttl_ns, &raw mut doors, error));
            assert_eq!(wrong, at(SPRAG_ERROR_OUT_OF_RANGE, "ttl"));
        }
        let nowhere = fails(|error| open(&scene, 1, 0, null_mut(), error));
        assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "semaphore"));
        assert!(doors.is_null());
        works(|error| open(&scene, 3, 0, &raw mut doors, error));
        works(|error| open(&scene, 4, 0, &raw mut other, error));
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let mut hold: sprag_hold = zeroed();
            let to = &raw mut hold;
            for permits in [0, 4] {
                let wrong = fails(|error| sprag_semaphore_acquire(doors, permits, 0, to, error));
                assert_eq!(wrong.0, SPRAG_ERROR_OUT_OF_RANGE);
            }
            let nowhere = fails(|error| sprag_semaphore_acquire(doors, 1, 0, null_mut(), error));
            assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "hold"));
            let nowhere = fails(|error| sprag_semaphore_acquire(null(), 1, 0, to, error));
            assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "semaphore"));
            works(|error| sprag_semaphore_acquire(doors, 1, 0, to, error));
            let mut second: sprag_hold = zeroed();
            let differs =
                fails(|error| sprag_semaphore_acquire(other, 1, 0, &raw mut second, error));
            assert_eq!(differs, (SPRAG_ERROR_DEFINITION_DIFFERS, None));
            works(|error| sprag_hold_release(to, error));
            sprag_semaphore_close(doors);
            sprag_semaphore_close(other);
        }
    }

    #[test]
    fn handles_are_closed_in_any_order() {
        let mut doors = null_mut();
        let scene = Scene::new();
        works(|error| open(&scene, 1, 0, &raw mut doors, error));
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let mut hold: sprag_hold = zeroed();
            works(|error| sprag_semaphore_acquire(doors, 1, 0, &raw mut hold, error));
            drop(scene);
            sprag_semaphore_close(doors);
            assert!(sprag_hold_is_held(&raw const hold));
            works(|error| sprag_hold_release(&raw mut hold, error));
        }
    }
}
