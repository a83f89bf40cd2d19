//! # Fences
//!
//! A fence stands at the resource's side of a lock: it remembers the highest token that it admitted, and rejects
//! older ones, so that a holder that was stopped and comes late does no harm. Check each write by its token.

use crate::border::{close, give, look, on, opaque, wanted};
use crate::bytes::bytes;
use crate::error::sprag_error;
use crate::space::sprag_space;
use crate::status::sprag_status::{self, SPRAG_OK};
use sprag::Fence;
use std::ffi::c_void;

opaque! {
    /// An open fence. Every call on it is safe from any thread.
    sprag_fence, Fence, "fence"
}

/// The highest token that there can be: 2^53 - 1.
pub const SPRAG_TOKEN_MAX: u64 = 9_007_199_254_740_991;

const _: () = assert!(SPRAG_TOKEN_MAX == sprag::TOKEN_MAX);

/// Opens a handle on the fence of a name. It is created when it first admits a token, and stays for as long as the
/// region does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_fence_open(
    space: *const sprag_space,
    name: *const c_void,
    name_len: usize,
    fence: *mut *mut sprag_fence,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            wanted(fence, "fence")?;
            let opened = space.fence(bytes(name, name_len, "name")?)?;
            give(fence, sprag_fence::give(opened));
            Ok(SPRAG_OK)
        })
    }
}

/// Closes the handle; NULL is none. The fence stays in its space.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_fence_close(fence: *mut sprag_fence) {
    // SAFETY: by every function's contract.
    unsafe { close(fence) };
}

/// Admits a token not lower than the highest admitted, in one step. Tens of nanoseconds; writes nothing if it is
/// the highest itself.
///
/// SPRAG_ERROR_STALE for a lower token and for 0: sprag_error_highest_token() tells the highest then.
/// SPRAG_ERROR_OUT_OF_RANGE for one above SPRAG_TOKEN_MAX, SPRAG_ERROR_FULL where the region has no room for the
/// fence.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_fence_admit(
    fence: *const sprag_fence,
    token: u64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(fence, error, |fence| {
            fence.admit(token)?;
            Ok(SPRAG_OK)
        })
    }
}

/// sprag_fence_admit() for a token higher than the highest admitted: each token once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_fence_admit_once(
    fence: *const sprag_fence,
    token: u64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(fence, error, |fence| {
            fence.admit_once(token)?;
            Ok(SPRAG_OK)
        })
    }
}

/// The highest token admitted; 0 if none was, and for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_fence_highest(fence: *const sprag_fence) -> u64 {
    // SAFETY: by every function's contract.
    unsafe { look(fence, 0, Fence::highest) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{sprag_error_free, sprag_error_highest_token, sprag_error_token};
    use crate::status::sprag_status::{
        SPRAG_ERROR_NULL, SPRAG_ERROR_OUT_OF_RANGE, SPRAG_ERROR_STALE,
    };
    use crate::testing::{Scene, at, fails, works};
    use std::ptr::{null, null_mut};

    fn open(scene: &Scene) -> *mut sprag_fence {
        let mut fence = null_mut();
        let name = b"reports".as_ptr().cast();
        // SAFETY: the space is open; the rest are variables of this function's.
        works(|error| unsafe { sprag_fence_open(scene.space, name, 7, &raw mut fence, error) });
        fence
    }

    #[test]
    fn an_older_token_is_rejected_and_the_error_tells_the_highest() {
        let scene = Scene::new();
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let fence = open(&scene);
            assert_eq!(sprag_fence_highest(fence), 0);
            works(|error| sprag_fence_admit(fence, 7, error));
            works(|error| sprag_fence_admit(fence, 7, error));
            assert_eq!(sprag_fence_highest(fence), 7);
            let mut error = null_mut();
            assert_eq!(
                sprag_fence_admit(fence, 6, &raw mut error),
                SPRAG_ERROR_STALE
            );
            let told = (sprag_error_token(error), sprag_error_highest_token(error));
            assert_eq!(told, (6, 7));
            sprag_error_free(error);
            assert_eq!(sprag_error_highest_token(null()), 0);
            sprag_fence_close(fence);
        }
    }

    #[test]
    fn a_token_is_admitted_once_where_that_is_asked() {
        let scene = Scene::new();
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let fence = open(&scene);
            works(|error| sprag_fence_admit_once(fence, 7, error));
            let again = fails(|error| sprag_fence_admit_once(fence, 7, error));
            assert_eq!(again, (SPRAG_ERROR_STALE, None));
            sprag_fence_close(fence);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let scene = Scene::new();
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let fence = open(&scene);
            let above = fails(|error| sprag_fence_admit(fence, SPRAG_TOKEN_MAX + 1, error));
            assert_eq!(above, at(SPRAG_ERROR_OUT_OF_RANGE, "token"));
            let zero = fails(|error| sprag_fence_admit(fence, 0, error));
            assert_eq!(zero, (SPRAG_ERROR_STALE, None));
            let nowhere = fails(|error| sprag_fence_admit(null(), 1, error));
            assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "fence"));
            assert_eq!(sprag_fence_highest(null()), 0);
            let name = b"a".as_ptr().cast();
            let nowhere = fails(|error| sprag_fence_open(scene.space, name, 1, null_mut(), error));
            assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "fence"));
            sprag_fence_close(fence);
            sprag_fence_close(null_mut());
        }
    }
}
