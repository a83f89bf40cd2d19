//! # Overrides
//!
//! A key of a limiter may have a limit of its own in place of the limiter's. It holds for all who use the limiter,
//! until it is cleared; neither a change of the limiter's limit nor the key's being idle ends it, and what the key
//! has used stays used. A limit of 0/second shuts a key out. Once a change has returned, no check that begins after
//! is decided by what was before. Checks of keys without an override cost nothing more.

use crate::border::on;
use crate::bytes::{bytes, copy_text, text, writable};
use crate::error::sprag_error;
use crate::limiter::sprag_limiter;
use crate::status::sprag_status::{self, SPRAG_NONE, SPRAG_OK};
use std::ffi::{c_char, c_void};

/// Gives a key a limit of its own, in place of any that it was given before. Some microseconds.
///
/// SPRAG_ERROR_LIMIT for a text that is no limit. An override takes one of the region's objects, and a region has
/// 1,024 limit definitions, of which all overrides of a limiter with the same limit share one: SPRAG_ERROR_FULL or
/// SPRAG_ERROR_SHARE_EXCEEDED where there is no room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_limiter_set_override(
    limiter: *const sprag_limiter,
    key: *const c_void,
    key_len: usize,
    limit: *const c_char,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(limiter, error, |limiter| {
            limiter.set_override(bytes(key, key_len, "key")?, text(limit, "limit")?)?;
            Ok(SPRAG_OK)
        })
    }
}

/// Takes a key's override away, so that the limiter's limit holds for it again: SPRAG_OK, or SPRAG_NONE if it had
/// none. Some microseconds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_limiter_clear_override(
    limiter: *const sprag_limiter,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(limiter, error, |limiter| {
            let had_one = limiter.clear_override(bytes(key, key_len, "key")?)?;
            Ok(if had_one { SPRAG_OK } else { SPRAG_NONE })
        })
    }
}

/// Writes the limit that a key has instead of the limiter's, as text, as far as it fits, and its length:
/// SPRAG_LIMIT_BYTES_MAX are enough. SPRAG_NONE, and nothing is written, if it has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_limiter_override_of(
    limiter: *const sprag_limiter,
    key: *const c_void,
    key_len: usize,
    limit: *mut c_char,
    limit_max: usize,
    limit_len: *mut usize,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(limiter, error, |limiter| {
            writable(limit, limit_max, "limit")?;
            let Some(found) = limiter.override_of(bytes(key, key_len, "key")?)? else {
                return Ok(SPRAG_NONE);
            };
            copy_text(&found.to_string(), limit, limit_max, limit_len);
            Ok(SPRAG_OK)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::{SPRAG_LIMIT_BYTES_MAX, sprag_limiter_close};
    use crate::status::sprag_status::{
        SPRAG_ERROR_LIMIT, SPRAG_ERROR_NULL, SPRAG_ERROR_OUT_OF_RANGE,
    };
    use crate::testing::{Scene, at, fails, limiter, outcome, told, works};
    use std::ptr::{null, null_mut};

    #[test]
    fn a_key_has_its_own_limit_until_it_is_cleared() {
        let scene = Scene::new();
        let limiter = limiter(&scene, "api", c"2/hour");
        let key = (b"big".as_ptr().cast(), 3);
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let of = |limit: *mut c_char, max, len: *mut usize, error| {
                sprag_limiter_override_of(limiter, key.0, key.1, limit, max, len, error)
            };
            let mut len = 77;
            let none = outcome(|error| of(null_mut(), 0, &raw mut len, error));
            assert_eq!((none, len), (Ok(SPRAG_NONE), 77));
            let none = outcome(|error| sprag_limiter_clear_override(limiter, key.0, key.1, error));
            assert_eq!(none, Ok(SPRAG_NONE));

            let limit = c"1000/hour;burst=5".as_ptr();
            works(|error| sprag_limiter_set_override(limiter, key.0, key.1, limit, error));
            assert_eq!(told(of), b"1000/hour;burst=5");
            works(|error| sprag_limiter_clear_override(limiter, key.0, key.1, error));
            let none = outcome(|error| of(null_mut(), 0, null_mut(), error));
            assert_eq!(none, Ok(SPRAG_NONE));
            sprag_limiter_close(limiter);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let scene = Scene::new();
        let limiter = limiter(&scene, "api", c"2/hour");
        let limit = c"1/hour".as_ptr();
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let set = |limiter, key: *const u8, len, limit| {
                fails(|error| sprag_limiter_set_override(limiter, key.cast(), len, limit, error))
            };
            let key = b"a".as_ptr();
            assert_eq!(set(null(), key, 1, limit), at(SPRAG_ERROR_NULL, "limiter"));
            assert_eq!(set(limiter, null(), 1, limit), at(SPRAG_ERROR_NULL, "key"));
            assert_eq!(
                set(limiter, key, 0, limit),
                at(SPRAG_ERROR_OUT_OF_RANGE, "key")
            );
            assert_eq!(set(limiter, key, 1, null()), at(SPRAG_ERROR_NULL, "limit"));
            let wrong = set(limiter, key, 1, c"fast".as_ptr());
            assert_eq!(wrong, (SPRAG_ERROR_LIMIT, None));
            let unwritable = fails(|error| {
                let max = SPRAG_LIMIT_BYTES_MAX;
                sprag_limiter_override_of(
                    limiter,
                    key.cast(),
                    1,
                    null_mut(),
                    max,
                    null_mut(),
                    error,
                )
            });
            assert_eq!(unwritable, at(SPRAG_ERROR_NULL, "limit"));
            sprag_limiter_close(limiter);
        }
    }
}
