//! # A clock for tests
//!
//! A mem: space may run on a clock that the caller moves by hand, so that tests of leases, limits and timeouts need
//! not wait. A call that waits with a timeout returns then only once another thread has moved the clock that far.

use crate::border::{call, close, give, look, on, opaque, wanted};
use crate::error::sprag_error;
use crate::status::sprag_status::{self, SPRAG_OK};
use sprag::ManualClock;
use std::time::Duration;

opaque! {
    /// A clock that stands still until it is moved. Any thread may move it.
    sprag_manual_clock, ManualClock, "clock"
}

/// Makes a clock, which shows 2026-01-01T00:00:00Z. It may be closed while spaces run on it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_manual_clock_open(
    clock: *mut *mut sprag_manual_clock,
    error: *mut *mut sprag_error,
) -> sprag_status {
    call(error, || {
        wanted(clock, "clock")?;
        // SAFETY: by every function's contract.
        unsafe { give(clock, sprag_manual_clock::give(ManualClock::new())) };
        Ok(SPRAG_OK)
    })
}

/// Moves the clock forward by so many nanoseconds. It never goes back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_manual_clock_advance(
    clock: *const sprag_manual_clock,
    by_ns: u64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(clock, error, |clock| {
            clock.advance(Duration::from_nanos(by_ns));
            Ok(SPRAG_OK)
        })
    }
}

/// What the clock shows, in nanoseconds since 1970-01-01 UTC; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_manual_clock_unix_ns(clock: *const sprag_manual_clock) -> u64 {
    // SAFETY: by every function's contract.
    unsafe { look(clock, 0, ManualClock::unix_ns) }
}

/// Closes the handle; NULL is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_manual_clock_close(clock: *mut sprag_manual_clock) {
    // SAFETY: by every function's contract.
    unsafe { close(clock) };
}
