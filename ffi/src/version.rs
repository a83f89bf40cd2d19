//! # Version
//!
//! The version that a program is built with is in the macros; the one that it runs with, sprag_version() tells.
//! A program that was built with an earlier version of the same first number runs with a later one: the name by which
//! programs find the shared library changes with that number alone.

use std::ffi::{CStr, c_char};

/// The version's first number.
pub const SPRAG_VERSION_MAJOR: u32 = 0;

/// The version's second number.
pub const SPRAG_VERSION_MINOR: u32 = 1;

/// The version's third number.
pub const SPRAG_VERSION_PATCH: u32 = 0;

const TEXT: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(text) => text,
        Err(_) => c"",
    };

/// The version of the library that runs, as "0.1.0"; lives as long as the library is loaded. Never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn sprag_version() -> *const c_char {
    TEXT.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::{
        SPRAG_VERSION_MAJOR, SPRAG_VERSION_MINOR, SPRAG_VERSION_PATCH, TEXT, sprag_version,
    };
    use std::ffi::CStr;

    #[test]
    fn the_macros_and_the_text_are_the_packages_version() {
        let macros = format!("{SPRAG_VERSION_MAJOR}.{SPRAG_VERSION_MINOR}.{SPRAG_VERSION_PATCH}");
        assert_eq!(macros, env!("CARGO_PKG_VERSION"));
        assert_eq!(TEXT.to_str(), Ok(env!("CARGO_PKG_VERSION")));
        // SAFETY: a text of this library's.
        assert_eq!(unsafe { CStr::from_ptr(sprag_version()) }, TEXT);
    }
}
