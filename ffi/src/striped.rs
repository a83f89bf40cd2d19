//! # Striped counters
//!
//! A striped counter is a counter in several parts, so that threads and processes that add to it at once do not
//! wait for one another's cache lines. It is the same counter for everyone: who has it open as a plain one adds to
//! the same number. What needs the whole number has to gather it, about a microsecond, and slows the next few
//! additions down: so sprag_counter_add(), which tells the sum, is the wrong call for a hot counter. A striped
//! counter is exact, stays for as long as the region does, also at 0, and takes the room of nine objects.

use crate::border::{close, give, on, opaque, wanted};
use crate::bytes::{bytes, copy, writable};
use crate::error::sprag_error;
use crate::space::sprag_space;
use crate::status::sprag_status::{self, SPRAG_DIFFERS, SPRAG_OK, SPRAG_REFUSED};
use sprag::StripedCounter;
use std::ffi::c_void;

opaque! {
    /// An open striped counter. Every call on it is safe from any thread.
    sprag_striped_counter, StripedCounter<'static>, "striped_counter"
}

/// Opens the counter of a name as a striped one, which it is for everyone from then on.
///
/// SPRAG_ERROR_FULL and SPRAG_ERROR_SHARE_EXCEEDED where the region has no room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_striped_counter_open(
    space: *const sprag_space,
    name: *const c_void,
    name_len: usize,
    striped_counter: *mut *mut sprag_striped_counter,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            wanted(striped_counter, "striped_counter")?;
            let opened = space.counter(bytes(name, name_len, "name")?)?.striped()?;
            let opened = sprag_striped_counter::give(opened.into_owned());
            give(striped_counter, opened);
            Ok(SPRAG_OK)
        })
    }
}

/// Closes the handle; NULL is none. The counter stays in its space.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_striped_counter_close(striped_counter: *mut sprag_striped_counter) {
    // SAFETY: by every function's contract.
    unsafe { close(striped_counter) };
}

/// Adds delta, which may be negative. The sum is not told: nobody knows it without looking at all parts. Some
/// nanoseconds, by however many at once.
///
/// SPRAG_ERROR_COUNTER_OVERFLOW as for sprag_counter_add().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_striped_counter_add(
    striped_counter: *const sprag_striped_counter,
    delta: i64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(striped_counter, error, |counter| {
            counter.add(delta)?;
            Ok(SPRAG_OK)
        })
    }
}

/// Adds delta if the sum over all parts is at least min and at most max: SPRAG_OK, and number is not written; else
/// SPRAG_REFUSED, nothing is changed, and what the counter is at is written to number, unless that is NULL. Bounds
/// that most calls share are the fastest; different ones take turns at gathering the whole.
///
/// SPRAG_ERROR_OUT_OF_RANGE if min is above max.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_striped_counter_add_within(
    striped_counter: *const sprag_striped_counter,
    delta: i64,
    min: i64,
    max: i64,
    number: *mut i64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(striped_counter, error, |counter| {
            let Err(is_at) = counter.add_within(delta, min..=max)? else {
                return Ok(SPRAG_OK);
            };
            give(number, is_at);
            Ok(SPRAG_REFUSED)
        })
    }
}

/// Writes the number: one that the counter had at a moment during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_striped_counter_get(
    striped_counter: *const sprag_striped_counter,
    number: *mut i64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(striped_counter, error, |counter| {
            wanted(number, "number")?;
            give(number, counter.get()?);
            Ok(SPRAG_OK)
        })
    }
}

/// Sets the number, and writes what it was to was, unless that is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_striped_counter_swap(
    striped_counter: *const sprag_striped_counter,
    number: i64,
    was: *mut i64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(striped_counter, error, |counter| {
            give(was, counter.swap(number)?);
            Ok(SPRAG_OK)
        })
    }
}

/// Sets the number if it is the expected one: SPRAG_OK; else SPRAG_DIFFERS, and nothing is changed. What it was is
/// written to was in both cases, unless that is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_striped_counter_compare_exchange(
    striped_counter: *const sprag_striped_counter,
    expected: i64,
    number: i64,
    was: *mut i64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(striped_counter, error, |counter| {
            let (found, status) = match counter.compare_exchange(expected, number)? {
                Ok(()) => (expected, SPRAG_OK),
                Err(found) => (found, SPRAG_DIFFERS),
            };
            give(was, found);
            Ok(status)
        })
    }
}

/// Writes the name, as far as it fits, and its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_striped_counter_name(
    striped_counter: *const sprag_striped_counter,
    name: *mut c_void,
    name_max: usize,
    name_len: *mut usize,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(striped_counter, error, |counter| {
            writable(name, name_max, "name")?;
            copy(&counter.name(), name, name_max, name_len);
            Ok(SPRAG_OK)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::{sprag_counter_add, sprag_counter_close, sprag_counter_open};
    use crate::status::sprag_status::{SPRAG_ERROR_NULL, SPRAG_ERROR_OUT_OF_RANGE};
    use crate::testing::{Scene, at, fails, outcome, told, works};
    use std::ptr::{null, null_mut};

    #[test]
    fn it_is_the_same_counter_as_the_plain_one() {
        let scene = Scene::new();
        let name = b"hits".as_ptr().cast();
        let (mut hits, mut plain) = (null_mut(), null_mut());
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            works(|error| sprag_striped_counter_open(scene.space, name, 4, &raw mut hits, error));
            works(|error| sprag_counter_open(scene.space, name, 4, &raw mut plain, error));
            works(|error| sprag_striped_counter_add(hits, 5, error));
            let mut number = 77;
            let to = &raw mut number;
            works(|error| sprag_counter_add(plain, 1, to, error));
            assert_eq!(*to, 6);

            let within = |delta, to| {
                outcome(|error| sprag_striped_counter_add_within(hits, delta, 0, 10, to, error))
            };
            assert_eq!(within(2, to), Ok(SPRAG_OK));
            assert_eq!(*to, 6, "the sum is not told");
            assert_eq!((within(3, to), *to), (Ok(SPRAG_REFUSED), 8));
            assert_eq!(within(3, null_mut()), Ok(SPRAG_REFUSED));

            let exchange = |expected, number| {
                *to = 77;
                let status = outcome(|error| {
                    sprag_striped_counter_compare_exchange(hits, expected, number, to, error)
                });
                (status, *to)
            };
            assert_eq!(exchange(7, 5), (Ok(SPRAG_DIFFERS), 8));
            assert_eq!(exchange(8, 5), (Ok(SPRAG_OK), 8));
            works(|error| sprag_striped_counter_swap(hits, -3, to, error));
            assert_eq!(*to, 5);
            works(|error| sprag_striped_counter_get(hits, to, error));
            assert_eq!(*to, -3);
            let told = told(|name, max, len, error| {
                sprag_striped_counter_name(hits, name, max, len, error)
            });
            assert_eq!(told, b"hits");
            sprag_striped_counter_close(hits);
            sprag_counter_close(plain);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let scene = Scene::new();
        let name = b"hits".as_ptr().cast();
        let mut hits = null_mut();
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            works(|error| sprag_striped_counter_open(scene.space, name, 4, &raw mut hits, error));
            let nowhere = fails(|error| sprag_striped_counter_get(hits, null_mut(), error));
            assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "number"));
            let nowhere = fails(|error| sprag_striped_counter_add(null(), 1, error));
            assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "striped_counter"));
            let mut number = 77;
            let none = fails(|error| {
                sprag_striped_counter_add_within(hits, 1, 1, 0, &raw mut number, error)
            });
            assert_eq!((none.0, number), (SPRAG_ERROR_OUT_OF_RANGE, 77));
            sprag_striped_counter_close(hits);
        }
    }
}
