//! # Names, keys and values
//!
//! Names and keys are bytes, 1 to SPRAG_NAME_BYTES_MAX of them, given as pointer and length; they may hold
//! anything, also zero bytes, and are compared exactly. A number's own bytes are the cheapest key. What is given
//! is read during the call only.
//!
//! A call that tells a name or a text writes it to the caller's buffer as far as that reaches, and how long it is
//! in all, to a pointer that may be NULL; so ask with a buffer of 0 bytes first, or with one that is long enough
//! for all. A text ends with a zero byte even where it was cut, which its length does not count; a name does not.

use crate::border::{Failure, give, wanted};
use std::ffi::{CStr, c_char, c_void};

/// The most bytes that a name or a key may have.
pub const SPRAG_NAME_BYTES_MAX: usize = 1024;

const _: () = assert!(SPRAG_NAME_BYTES_MAX == sprag::NAME_BYTES_MAX);

/// Bytes that belong to the caller.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sprag_bytes {
    /// Where they begin; may be NULL if there are none.
    pub data: *const c_void,
    /// How many there are.
    pub len: usize,
}

impl sprag_bytes {
    /// The bytes of `slice`, for as long as that is borrowed.
    pub(crate) fn of(slice: &[u8]) -> Self {
        Self {
            data: slice.as_ptr().cast(),
            len: slice.len(),
        }
    }
}

/// The bytes of a name or a key. How many there may be, the engine checks.
///
/// # Safety
///
/// `data` is NULL, or `len` bytes there may be read for `'a`, during which nobody writes them.
#[inline(always)]
pub(crate) unsafe fn bytes<'a>(
    data: *const c_void,
    len: usize,
    argument: &'static str,
) -> Result<&'a [u8], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(Failure::Null(argument));
    }
    // A slice longer than that may not even be made.
    if len > isize::MAX as usize {
        return Err(Failure::Bounds {
            argument,
            value: len as u64,
            min: 1,
            max: SPRAG_NAME_BYTES_MAX as u64,
        });
    }
    // SAFETY: by this function's contract, and it is neither NULL nor too long.
    Ok(unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) })
}

/// The `count` values that begin at `first`.
///
/// # Safety
///
/// `first` is NULL, or `count` values there may be read for `'a`, during which nobody writes them.
pub(crate) unsafe fn values<'a, T>(
    first: *const T,
    count: usize,
    argument: &'static str,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if first.is_null() {
        return Err(Failure::Null(argument));
    }
    let max = isize::MAX as usize / size_of::<T>().max(1);
    if count > max {
        return Err(Failure::Bounds {
            argument,
            value: count as u64,
            min: 0,
            max: max as u64,
        });
    }
    if !first.is_aligned() {
        return Err(Failure::Invalid {
            argument,
            must: "must be aligned as its type is",
        });
    }
    // SAFETY: by this function's contract, and it is neither NULL, nor too long, nor unaligned.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

/// A text that ends with a zero byte.
///
/// # Safety
///
/// `text` is NULL, or a string that ends with a zero byte and that nobody writes for `'a`.
pub(crate) unsafe fn text<'a>(
    text: *const c_char,
    argument: &'static str,
) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::Null(argument));
    }
    // SAFETY: by this function's contract.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure::Invalid {
        argument,
        must: "must be UTF-8",
    })
}

/// Fails if `max` bytes are to be written to NULL: asked before anything is done.
pub(crate) fn writable<T>(to: *mut T, max: usize, argument: &'static str) -> Result<(), Failure> {
    if max == 0 {
        return Ok(());
    }
    wanted(to, argument)
}

/// Writes `from` to the caller's buffer as far as it fits, and its whole length to `len`, if that is not NULL.
///
/// # Safety
///
/// `max` bytes may be written at `to`, which may be NULL if there are none; `len` is NULL or may be written.
pub(crate) unsafe fn copy(from: &[u8], to: *mut c_void, max: usize, len: *mut usize) {
    let fits = from.len().min(max);
    if fits > 0 {
        // SAFETY: so many may be written, by this function's contract; the source is the library's own.
        unsafe {
            to.cast::<u8>()
                .copy_from_nonoverlapping(from.as_ptr(), fits);
        };
    }
    // SAFETY: by this function's contract.
    unsafe { give(len, from.len()) };
}

/// The same for a text, which ends with a zero byte wherever it was cut; that byte is not counted.
///
/// # Safety
///
/// As for [`copy`].
pub(crate) unsafe fn copy_text(from: &str, to: *mut c_char, max: usize, len: *mut usize) {
    // SAFETY: by this function's contract; of `max` bytes, one is left for the end.
    unsafe {
        copy(from.as_bytes(), to.cast(), max.saturating_sub(1), len);
        if max > 0 {
            to.add(from.len().min(max - 1)).write(0);
        }
    }
}
