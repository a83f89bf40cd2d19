//! # Keeping holds alive
//!
//! A lease that is renewed in time does not end. The library renews it in the background for holders that cannot,
//! and tells them if the hold is lost all the same.

use crate::error::sprag_error;
use crate::hold::{Changed, leading, sprag_hold};
use crate::options::{Options, read};
use crate::status::sprag_status::{self, SPRAG_OK};
use sprag::KeepAlive;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// How a hold is kept alive. Begins with its size; what is zero has its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sprag_keep_alive_options {
    /// sizeof(sprag_keep_alive_options).
    pub size: usize,
    /// How long after the call renewing stops; the hold then ends with its lease, which counts as its loss. 0 for
    /// 24 hours, SPRAG_FOREVER for no end.
    pub at_most_ns: u64,
    /// Called once, with the token that the hold had when this was asked for, when the hold is lost; may be NULL.
    /// Never for one that is released or detached. It runs in the library's thread, which renews all holds of the
    /// space: it must not block, and must not unwind.
    pub on_lost: Option<extern "C" fn(token: u64, context: *mut c_void)>,
    /// Given to the two functions.
    pub context: *mut c_void,
    /// Called once when neither of the two will be called any more with that context, to free it, in whichever
    /// thread; may be NULL. Not if the call fails: the context stays the caller's then.
    pub free_context: Option<extern "C" fn(context: *mut c_void)>,
}

// SAFETY: as the trait asks: `repr(C)`, its size first; the functions are the caller's word, as all it gives is.
unsafe impl Options for sprag_keep_alive_options {
    const BYTES_MIN: usize = 40;
}

/// The caller's function and what it is given.
struct Callback {
    on_lost: Option<extern "C" fn(u64, *mut c_void)>,
    token: u64,
    context: *mut c_void,
    free_context: Option<extern "C" fn(*mut c_void)>,
    /// Whether the context is the caller's, since the call failed.
    is_refused: AtomicBool,
}

// SAFETY: the header says that the functions run in another thread, with this context.
unsafe impl Send for Callback {}
// SAFETY: as above; of two threads that may share it, one calls it, once.
unsafe impl Sync for Callback {}

impl Callback {
    fn tell(&self) {
        if let Some(on_lost) = self.on_lost {
            on_lost(self.token, self.context);
        }
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        if let Some(free_context) = self.free_context
            && !*self.is_refused.get_mut()
        {
            free_context(self.context);
        }
    }
}

/// Has the lease renewed in the background until the hold is released, lost, or at_most_ns is over; options may be
/// NULL. A thread of the library's, one for the whole space, does so from the first such call on until none is
/// left. A second call replaces what the first asked for.
///
/// The lease is renewed each time a third of it is over, and the hold is looked at every 200 ms besides. So a lock
/// that was broken is told of within 200 ms, as far as the system lets the thread run; sprag_hold_is_valid() is
/// false from then on as well.
///
/// SPRAG_ERROR_LOST if it was lost already, and nothing is called back then; SPRAG_ERROR_SYSTEM if the thread
/// cannot be started.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_hold_keep_alive(
    hold: *mut sprag_hold,
    options: *const sprag_keep_alive_options,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        sprag_hold::on(hold, error, |held| {
            let options = read(options)?;
            let callback = Arc::new(Callback {
                on_lost: options.on_lost,
                token: match &held {
                    Changed::One(hold) => hold.token(),
                    Changed::Owner(hold) => hold.token(),
                    Changed::Several(hold) => leading(hold),
                },
                context: options.context,
                free_context: options.free_context,
                is_refused: AtomicBool::new(false),
            });
            let told = callback.clone();
            let mut keep = KeepAlive {
                on_lost: Some(Arc::new(move || told.tell())),
                ..KeepAlive::default()
            };
            if options.at_most_ns != 0 {
                keep.at_most = Duration::from_nanos(options.at_most_ns);
            }
            let kept = match held {
                Changed::One(hold) => hold.keep_alive(keep),
                Changed::Owner(hold) => hold.keep_alive(keep),
                Changed::Several(hold) => hold.keep_alive(keep),
            };
            if kept.is_err() {
                // Relaxed: whoever drops the last share of it synchronises with those who dropped theirs.
                callback.is_refused.store(true, Relaxed);
            }
            Ok(kept.map(|()| SPRAG_OK)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::sprag_hold_release;
    use crate::lock::{sprag_lock, sprag_lock_acquire, sprag_lock_close, sprag_lock_open};
    use crate::status::sprag_status::SPRAG_ERROR_LOST;
    use crate::testing::{Scene, outcome, works};
    use std::mem::zeroed;
    use std::ptr::{null, null_mut};

    #[test]
    fn a_context_is_freed_once_and_only_if_it_was_taken() {
        extern "C" fn free(context: *mut c_void) {
            // SAFETY: it is the counter below.
            unsafe { *context.cast::<u32>() += 1 };
        }
        let scene = Scene::new();
        let mut freed = 0_u32;
        let mut lock: *mut sprag_lock = null_mut();
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            works(|error| {
                sprag_lock_open(
                    scene.space,
                    c"a".as_ptr().cast(),
                    1,
                    0,
                    &raw mut lock,
                    error,
                )
            });
            let mut hold: sprag_hold = zeroed();
            let mut options: sprag_keep_alive_options = zeroed();
            options.size = size_of::<sprag_keep_alive_options>();
            options.context = (&raw mut freed).cast();
            options.free_context = Some(free);
            let keep = |hold: *mut sprag_hold| {
                outcome(|error| sprag_hold_keep_alive(hold, &raw const options, error))
            };
            assert!(keep(&raw mut hold).is_err() && keep(null_mut()).is_err());
            works(|error| sprag_lock_acquire(lock, 0, &raw mut hold, error));
            assert_eq!((keep(&raw mut hold), freed), (Ok(SPRAG_OK), 0));
            assert_eq!(
                (keep(&raw mut hold), freed),
                (Ok(SPRAG_OK), 1),
                "the first is replaced"
            );
            works(|error| sprag_hold_keep_alive(&raw mut hold, null(), error));
            assert_eq!(freed, 2);
            assert_eq!(keep(&raw mut hold), Ok(SPRAG_OK));
            works(|error| sprag_hold_release(&raw mut hold, error));
            assert_eq!(freed, 3);
            sprag_lock_close(lock);
        }
    }

    #[test]
    fn keeping_a_lost_hold_alive_leaves_the_context_to_the_caller() {
        extern "C" fn never(_: *mut c_void) {
            unreachable!("the context was not taken");
        }
        let scene = Scene::new();
        let mut lock: *mut sprag_lock = null_mut();
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            works(|error| {
                sprag_lock_open(
                    scene.space,
                    c"a".as_ptr().cast(),
                    1,
                    0,
                    &raw mut lock,
                    error,
                )
            });
            let mut hold: sprag_hold = zeroed();
            works(|error| sprag_lock_acquire(lock, 0, &raw mut hold, error));
            scene.advance(31 * crate::duration::SPRAG_SECOND);
            let mut options: sprag_keep_alive_options = zeroed();
            options.size = size_of::<sprag_keep_alive_options>();
            options.free_context = Some(never);
            let lost =
                outcome(|error| sprag_hold_keep_alive(&raw mut hold, &raw const options, error));
            assert_eq!(lost.unwrap_err().status, SPRAG_ERROR_LOST);
            let _ = outcome(|error| sprag_hold_release(&raw mut hold, error));
            sprag_lock_close(lock);
        }
    }
}
