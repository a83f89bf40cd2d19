//! # Counters
//!
//! A counter is a signed 64-bit number, 0 until somebody changes it, shared by everyone who opens it in the same
//! space. Each call is one step: all of it happened or nothing did, also if its caller is killed. A counter at 0
//! takes no room that another name needs.
//!
//! Every change fails with SPRAG_ERROR_FULL or SPRAG_ERROR_SHARE_EXCEEDED where the region has no room for another
//! counter, and with SPRAG_ERROR_COUNTER_OVERFLOW, and the counter stays what it is, where the sum would leave the
//! range of int64_t.

use crate::border::{close, give, on, opaque, wanted};
use crate::bytes::{bytes, copy, writable};
use crate::error::sprag_error;
use crate::space::sprag_space;
use crate::status::sprag_status::{self, SPRAG_DIFFERS, SPRAG_OK, SPRAG_REFUSED};
use sprag::{Added, Counter};
use std::ffi::c_void;

opaque! {
    /// An open counter. Every call on it is safe from any thread.
    sprag_counter, Counter<'static>, "counter"
}

/// Opens a handle on the counter of a name. Nothing is created before it is changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_counter_open(
    space: *const sprag_space,
    name: *const c_void,
    name_len: usize,
    counter: *mut *mut sprag_counter,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            wanted(counter, "counter")?;
            let opened = space.counter(bytes(name, name_len, "name")?)?;
            give(counter, sprag_counter::give(opened.into_owned()));
            Ok(SPRAG_OK)
        })
    }
}

/// Closes the handle; NULL is none. The counter stays in its space.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_counter_close(counter: *mut sprag_counter) {
    // SAFETY: by every function's contract.
    unsafe { close(counter) };
}

/// Adds delta, which may be negative, and writes the sum, unless sum is NULL. Some nanoseconds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_counter_add(
    counter: *const sprag_counter,
    delta: i64,
    sum: *mut i64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(counter, error, |counter| {
            give(sum, counter.add(delta)?);
            Ok(SPRAG_OK)
        })
    }
}

/// Adds delta if the sum is at least min and at most max: SPRAG_OK, and the sum is written to number; else
/// SPRAG_REFUSED, nothing is changed, and what the counter is at is written there, unless number is NULL. With a
/// min of 0 nobody overdraws, however many try at once. Where the number lies outside already, only what brings it
/// back is added.
///
/// SPRAG_ERROR_OUT_OF_RANGE if min is above max.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_counter_add_within(
    counter: *const sprag_counter,
    delta: i64,
    min: i64,
    max: i64,
    number: *mut i64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(counter, error, |counter| {
            let (is_at, status) = match counter.add_within(delta, min..=max)? {
                Added::To(sum) => (sum, SPRAG_OK),
                Added::Refused(is_at) => (is_at, SPRAG_REFUSED),
            };
            give(number, is_at);
            Ok(status)
        })
    }
}

/// Writes the number. A load; nothing is created by looking.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_counter_get(
    counter: *const sprag_counter,
    number: *mut i64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(counter, error, |counter| {
            wanted(number, "number")?;
            give(number, counter.get()?);
            Ok(SPRAG_OK)
        })
    }
}

/// Sets the number, and writes what it was to was, unless that is NULL. To set it to 0 gives its room back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_counter_swap(
    counter: *const sprag_counter,
    number: i64,
    was: *mut i64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(counter, error, |counter| {
            give(was, counter.swap(number)?);
            Ok(SPRAG_OK)
        })
    }
}

/// Sets the number if it is the expected one: SPRAG_OK; else SPRAG_DIFFERS, and nothing is changed. What it was is
/// written to was in both cases, unless that is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_counter_compare_exchange(
    counter: *const sprag_counter,
    expected: i64,
    number: i64,
    was: *mut i64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(counter, error, |counter| {
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
pub unsafe extern "C" fn sprag_counter_name(
    counter: *const sprag_counter,
    name: *mut c_void,
    name_max: usize,
    name_len: *mut usize,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(counter, error, |counter| {
            writable(name, name_max, "name")?;
            copy(&counter.name(), name, name_max, name_len);
            Ok(SPRAG_OK)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::sprag_status::{
        SPRAG_ERROR_COUNTER_OVERFLOW, SPRAG_ERROR_NULL, SPRAG_ERROR_OUT_OF_RANGE,
    };
    use crate::testing::{Scene, at, fails, outcome, told, works};
    use std::ptr::{null, null_mut};

    fn open(scene: &Scene) -> *mut sprag_counter {
        let mut counter = null_mut();
        let name = b"stock".as_ptr().cast();
        // SAFETY: the space is open; the rest are variables of this function's.
        works(|error| unsafe { sprag_counter_open(scene.space, name, 5, &raw mut counter, error) });
        counter
    }

    #[test]
    fn a_number_is_changed_in_every_way() {
        let scene = Scene::new();
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let stock = open(&scene);
            let mut number = 77;
            let to = &raw mut number;
            works(|error| sprag_counter_add(stock, 10, to, error));
            assert_eq!(*to, 10);
            works(|error| sprag_counter_add(stock, -1, null_mut(), error));
            works(|error| sprag_counter_get(stock, to, error));
            assert_eq!(*to, 9);

            let within = |delta| {
                let status =
                    outcome(|error| sprag_counter_add_within(stock, delta, 0, 10, to, error));
                (status, *to)
            };
            assert_eq!(within(-7), (Ok(SPRAG_OK), 2));
            assert_eq!(within(-7), (Ok(SPRAG_REFUSED), 2));
            assert_eq!(within(9), (Ok(SPRAG_REFUSED), 2));

            let exchange = |expected, number| {
                let status = outcome(|error| {
                    sprag_counter_compare_exchange(stock, expected, number, to, error)
                });
                (status, *to)
            };
            assert_eq!(exchange(3, 5), (Ok(SPRAG_DIFFERS), 2));
            assert_eq!(exchange(2, 5), (Ok(SPRAG_OK), 2));
            works(|error| sprag_counter_swap(stock, 0, to, error));
            assert_eq!(*to, 5);
            let name =
                told(|name, max, len, error| sprag_counter_name(stock, name, max, len, error));
            assert_eq!(name, b"stock");
            sprag_counter_close(stock);
        }
    }

    #[test]
    fn a_sum_out_of_range_and_bounds_that_are_none_change_nothing() {
        let scene = Scene::new();
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let stock = open(&scene);
            let mut number = 77;
            let to = &raw mut number;
            works(|error| sprag_counter_add(stock, i64::MAX, null_mut(), error));
            let over = fails(|error| sprag_counter_add(stock, 1, to, error));
            assert_eq!(over, (SPRAG_ERROR_COUNTER_OVERFLOW, None));
            let none = fails(|error| sprag_counter_add_within(stock, 1, 1, 0, to, error));
            assert_eq!(none.0, SPRAG_ERROR_OUT_OF_RANGE);
            assert_eq!(*to, 77);
            works(|error| sprag_counter_get(stock, to, error));
            assert_eq!(*to, i64::MAX);
            sprag_counter_close(stock);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let scene = Scene::new();
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let stock = open(&scene);
            let nowhere = fails(|error| sprag_counter_get(stock, null_mut(), error));
            assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "number"));
            let nowhere = fails(|error| sprag_counter_add(null(), 1, null_mut(), error));
            assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "counter"));
            let mut second = null_mut();
            let unnamed =
                fails(|error| sprag_counter_open(scene.space, null(), 0, &raw mut second, error));
            assert_eq!(unnamed.0, SPRAG_ERROR_OUT_OF_RANGE);
            assert!(second.is_null());
            sprag_counter_close(stock);
        }
    }
}
