//! # Owners
//!
//! An owner is who holds when locks are to be re-entrant and deadlocks to be found: a handle, never a thread. What
//! it acquires again, it has at once, under the same token, and must release as often. Where owners wait for each
//! other in a circle, the youngest wait fails with SPRAG_ERROR_DEADLOCK. Holds that are not an owner's are in no
//! circle.

use crate::border::{close, give, on, opaque, wanted};
use crate::error::sprag_error;
use crate::space::sprag_space;
use crate::status::sprag_status::{self, SPRAG_OK};
use sprag::Owner;

opaque! {
    /// An owner. It may be used by any thread; two threads that use one are one holder.
    sprag_owner, Owner, "owner"
}

/// Makes an owner. Costs no shared memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_owner_open(
    space: *const sprag_space,
    owner: *mut *mut sprag_owner,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            wanted(owner, "owner")?;
            give(owner, sprag_owner::give(space.owner()));
            Ok(SPRAG_OK)
        })
    }
}

/// Closes the handle; NULL is none. Its holds go on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_owner_close(owner: *mut sprag_owner) {
    // SAFETY: by every function's contract.
    unsafe { close(owner) };
}
