//! Options: structs that begin with their size, so that callers and libraries of different releases go together.
//!
//! A caller of an older release gives a smaller struct: what it does not have is zero, and zero is always the
//! default. A caller of a newer one gives a larger struct: what this library does not know must be zero, since it
//! cannot do it.

use crate::border::Failure;
use std::ffi::c_void;

/// A struct of options, of which zero bytes are the defaults.
///
/// # Safety
///
/// It is `repr(C)`, begins with its size as a `usize`, and any bytes are a value of it.
pub(crate) unsafe trait Options: Copy {
    /// What a caller of the first release gave.
    const BYTES_MIN: usize;
}

/// The options at `from`, or the defaults for NULL.
///
/// # Safety
///
/// `from` is NULL, or as many bytes may be read there as its first word says, and at least that word.
pub(crate) unsafe fn read<O: Options>(from: *const O) -> Result<O, Failure> {
    // SAFETY: any bytes are a value of it, by the trait's contract; these are zeros.
    let mut options: O = unsafe { std::mem::zeroed() };
    if from.is_null() {
        return Ok(options);
    }
    let from = from.cast::<u8>();
    // SAFETY: by this function's contract; unaligned, since nothing is known of the pointer.
    let size = unsafe { from.cast::<usize>().read_unaligned() };
    if size < O::BYTES_MIN || size > BYTES_MAX {
        return Err(Failure::Bounds {
            argument: "options.size",
            value: size as u64,
            min: O::BYTES_MIN as u64,
            max: BYTES_MAX as u64,
        });
    }
    let known = size.min(size_of::<O>());
    // SAFETY: `size` bytes may be read, `known` of them fit, and the two do not overlap.
    unsafe {
        std::ptr::copy_nonoverlapping(from.cast::<c_void>(), (&raw mut options).cast(), known);
    }
    // SAFETY: `size` bytes may be read, of which these are the last.
    let unknown = unsafe { std::slice::from_raw_parts(from.add(known), size - known) };
    if unknown.iter().any(|byte| *byte != 0) {
        return Err(Failure::Unsupported(
            "the options have a field that this release of the library does not know; leave it zero, or use a newer one",
        ));
    }
    Ok(options)
}

/// Larger ones are a mistake.
const BYTES_MAX: usize = 4096;

/// Fails if a field that has no meaning yet is not zero: a later release may give it one.
pub(crate) fn check_reserved(reserved: u32) -> Result<(), Failure> {
    if reserved != 0 {
        return Err(Failure::Invalid {
            argument: "options.reserved",
            must: "must be zero",
        });
    }
    Ok(())
}

/// Fails if `flags` has others than `known`.
pub(crate) fn check_flags(flags: u32, known: u32) -> Result<(), Failure> {
    if flags & !known != 0 {
        return Err(Failure::Invalid {
            argument: "flags",
            must: "has a bit that is none of its flags; give those of the header",
        });
    }
    Ok(())
}
