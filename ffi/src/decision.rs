//! # Decisions
//!
//! A sprag_decision is what a limiter answered: a value in the caller's own memory, filled in by a check. It needs
//! no freeing, and it may be moved; it stands for what was taken, so a copy must not be given back a second time.

use crate::border::Failure;
use crate::duration::{SPRAG_NEVER, nanoseconds, wait_ns};
use sprag::Decision;
use std::mem::{ManuallyDrop, MaybeUninit};

/// What tells a decision that was filled in from memory that was not, or was used up.
const FILLED: u64 = 0x6465_6369_6465_6421;

/// The answer of a limiter, and the key's state right after it.
#[repr(C)]
pub struct sprag_decision {
    /// The library's own.
    pub private_state: u64,
    /// The library's own.
    pub private_words: [MaybeUninit<u64>; 22],
}

const _: () = assert!(size_of::<Decision>() <= 22 * size_of::<u64>());

impl sprag_decision {
    /// Fills in the decision at `to`, if that is not NULL.
    ///
    /// # Safety
    ///
    /// `to` is NULL or may be written.
    #[inline(always)]
    pub(crate) unsafe fn fill(to: *mut Self, decision: Decision) {
        if to.is_null() {
            return;
        }
        // SAFETY: it may be written, and has room enough, as asserted above. The alignment of C's struct is a
        // word's, that of the library's may be greater.
        unsafe {
            (&raw mut (*to).private_state).write(FILLED);
            (&raw mut (*to).private_words)
                .cast::<Decision>()
                .write_unaligned(decision);
        }
    }

    /// The decision at `from`, if one was filled in there.
    ///
    /// # Safety
    ///
    /// `from` is NULL, or may be read, and has [`FILLED`] as its state only if this library filled it in.
    unsafe fn read(from: *const Self) -> Option<ManuallyDrop<Decision>> {
        // SAFETY: by this function's contract.
        if from.is_null() || unsafe { (&raw const (*from).private_state).read() } != FILLED {
            return None;
        }
        // SAFETY: it was filled in, and never dropped twice, since nothing is dropped.
        let decision = unsafe {
            (&raw const (*from).private_words)
                .cast::<Decision>()
                .read_unaligned()
        };
        Some(ManuallyDrop::new(decision))
    }

    /// The decision at `from`, which is empty from now on.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read), and it may be written.
    pub(crate) unsafe fn take(from: *mut Self) -> Result<Decision, Failure> {
        if from.is_null() {
            return Err(Failure::Null("decision"));
        }
        // SAFETY: by this function's contract.
        let decision = unsafe { Self::read(from) }.ok_or(Failure::Empty("decision"))?;
        // SAFETY: by this function's contract.
        unsafe { (&raw mut (*from).private_state).write(0) };
        Ok(ManuallyDrop::into_inner(decision))
    }
}

/// What `of` tells of the decision at `from`; `otherwise` if there is none.
///
/// # Safety
///
/// As for [`sprag_decision::read`].
unsafe fn tell<T>(from: *const sprag_decision, otherwise: T, of: impl FnOnce(&Decision) -> T) -> T {
    // SAFETY: by this function's contract.
    let decision = unsafe { sprag_decision::read(from) };
    decision.map_or(otherwise, |decision| of(&decision))
}

/// Whether the cost was admitted; false for an empty one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_decision_is_allowed(decision: *const sprag_decision) -> bool {
    // SAFETY: by every function's contract.
    unsafe { tell(decision, false, Decision::is_allowed) }
}

/// The most that can be admitted at once: the burst, or a window's count; 0 for an empty one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_decision_limit(decision: *const sprag_decision) -> u64 {
    // SAFETY: by every function's contract.
    unsafe { tell(decision, 0, Decision::limit) }
}

/// The greatest cost that another check at the same instant would be allowed; 0 for an empty one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_decision_remaining(decision: *const sprag_decision) -> u64 {
    // SAFETY: by every function's contract.
    unsafe { tell(decision, 0, Decision::remaining) }
}

/// How long to wait until the same cost would be allowed, in nanoseconds, if nobody else takes any: 0 if it was,
/// SPRAG_NEVER if it never can be, and for an empty one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_decision_retry_after_ns(decision: *const sprag_decision) -> u64 {
    // SAFETY: by every function's contract.
    unsafe { tell(decision, SPRAG_NEVER, |of| wait_ns(of.retry_after())) }
}

/// How long until nothing is used any more, in nanoseconds, if nobody takes any; SPRAG_NEVER for never, and for an
/// empty one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_decision_reset_after_ns(decision: *const sprag_decision) -> u64 {
    // SAFETY: by every function's contract.
    unsafe { tell(decision, SPRAG_NEVER, |of| wait_ns(of.reset_after())) }
}

/// How long until a further check of another cost would be allowed, in nanoseconds, if nobody else takes any: 0 if
/// it would be at once, SPRAG_NEVER if it never can be, and for an empty one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_decision_retry_after_for_ns(
    decision: *const sprag_decision,
    cost: u64,
) -> u64 {
    // SAFETY: by every function's contract.
    unsafe {
        tell(decision, SPRAG_NEVER, |of| {
            wait_ns(of.retry_after_for(cost))
        })
    }
}

/// How long to wait, from the call on, before acting on it, in nanoseconds: 0, but for a reservation, and for an
/// empty one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_decision_act_after_ns(decision: *const sprag_decision) -> u64 {
    // SAFETY: by every function's contract.
    unsafe { tell(decision, 0, |of| nanoseconds(of.act_after())) }
}

/// Whether the region had no room for the key, so that a bucket shared by all such keys decided; false for an empty
/// one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_decision_is_overflow(decision: *const sprag_decision) -> bool {
    // SAFETY: by every function's contract.
    unsafe { tell(decision, false, Decision::is_overflow) }
}
