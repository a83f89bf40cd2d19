//! # Stopping waits
//!
//! A thread that waits, for a lock, for permits or for an upgrade, sleeps until it has what it waits for or its
//! time is over. What else is to end its waits, such as a signal, it is told here.

use crate::border::{self, Failure};
use crate::error::sprag_error;
use crate::status::sprag_status::{self, SPRAG_OK};
use std::ffi::c_void;

/// Calls call(context), and lets stop(stop_context) end the waits in it, on this thread: it is asked whenever a
/// wait was woken from its sleep without having what it waits for, also by a signal that the thread handles, and
/// several times a second in any case. Once it says true, the wait leaves the queue and fails with
/// SPRAG_ERROR_STOPPED; until then it keeps its place. For programs that are to act on a signal while a thread
/// waits: the handler sets a flag, and stop reads it.
///
/// Neither function may unwind (throw). stop may call anything of this library; a wait in it has no stop of its
/// own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_interruptible(
    stop: Option<extern "C" fn(stop_context: *mut c_void) -> bool>,
    stop_context: *mut c_void,
    call: Option<extern "C" fn(context: *mut c_void)>,
    context: *mut c_void,
    error: *mut *mut sprag_error,
) -> sprag_status {
    border::call(error, || {
        let stop = stop.ok_or(Failure::Null("stop"))?;
        let call = call.ok_or(Failure::Null("call"))?;
        sprag::interruptible(|| stop(stop_context), || call(context));
        Ok(SPRAG_OK)
    })
}
