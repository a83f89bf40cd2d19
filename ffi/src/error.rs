//! # Errors
//!
//! A call that can fail takes a pointer to a sprag_error pointer as its last argument, which may be NULL. If the
//! call fails and it is not, an error object is written there, which belongs to the caller: free it with
//! sprag_error_free(). If the call succeeds, nothing is written; so begin with NULL. Nothing is kept per thread.
//!
//!     sprag_error *error = NULL;
//!     if (sprag_space_open("shm:orders", NULL, &space, &error) < 0) {
//!         fprintf(stderr, "%s\n", sprag_error_message(error));
//!         sprag_error_free(error);
//!     }

use crate::border::{Failure, give};
use crate::duration::nanoseconds;
use crate::status::sprag_status;
use sprag::{EngineError, Error, HostError};
use std::ffi::{CStr, CString, c_char, c_int};

/// What was wrong in one call. It never changes; any thread may read it.
pub struct sprag_error {
    status: sprag_status,
    message: CString,
    argument: Option<CString>,
    bounds: Option<[u64; 3]>,
    os_code: c_int,
    token: u64,
    highest_token: u64,
}

impl sprag_error {
    #[cold]
    pub(crate) fn give(failure: &Failure) -> *mut Self {
        Box::into_raw(Box::new(Self::new(failure)))
    }

    fn new(failure: &Failure) -> Self {
        let status = failure.status();
        let mut details = Self {
            status,
            message: CString::default(),
            argument: None,
            bounds: None,
            os_code: 0,
            token: 0,
            highest_token: 0,
        };
        let mut argument = None;
        let message = match failure {
            Failure::Null(name) => {
                argument = Some(*name);
                format!("{name} is NULL; it must not be")
            }
            Failure::Bounds {
                argument: name,
                value,
                min,
                max,
            } => {
                argument = Some(*name);
                details.bounds = Some([*value, *min, *max]);
                format!("{name} is {value}; it must be {min} to {max}")
            }
            Failure::Invalid {
                argument: name,
                must,
            } => {
                argument = Some(*name);
                format!("{name} {must}")
            }
            Failure::Unsupported(why) => (*why).to_owned(),
            Failure::Empty(name) => {
                argument = Some(*name);
                format!("{name} is empty: used up by an earlier call, or never filled in")
            }
            Failure::Poisoned => {
                "an earlier call with this handle met a fault of the library; close it".to_owned()
            }
            Failure::Panicked(text) => format!(
                "the call met a fault of the library ({text}); close the handle, and report it"
            ),
            Failure::Sprag(error) => {
                argument = details.take(error);
                error.to_string()
            }
        };
        details.message = text(message);
        details.argument = argument.map(|name| text(name.to_owned()));
        details
    }

    /// Takes what a library's error tells; the argument that it names.
    fn take(&mut self, error: &Error) -> Option<&'static str> {
        match error {
            Error::Duration {
                what,
                value,
                min,
                max,
            } => {
                self.bounds = Some([*value, *min, *max].map(nanoseconds));
                Some(what)
            }
            Error::Stale { stale, .. } => {
                self.token = stale.token;
                self.highest_token = stale.highest;
                None
            }
            Error::Lost { token, .. } | Error::AttemptLost { token, .. } => {
                self.token = *token;
                None
            }
            Error::Thread { source } => {
                self.os_code = source.raw_os_error().unwrap_or(0);
                None
            }
            Error::Host(error) => {
                self.os_code = of_host(error);
                None
            }
            Error::Engine(error) => self.take_engine(error),
            _ => None,
        }
    }

    fn take_engine(&mut self, error: &EngineError) -> Option<&'static str> {
        match error {
            EngineError::NameLength { what, len, max } => {
                self.bounds = Some([*len as u64, 1, *max as u64]);
                Some(what)
            }
            EngineError::OutOfRange {
                what,
                value,
                min,
                max,
            } => {
                self.bounds = Some([*value, *min, *max]);
                Some(what)
            }
            EngineError::NoSpace { source }
            | EngineError::Io { source, .. }
            | EngineError::NoKernelLock { source } => {
                self.os_code = source.raw_os_error().unwrap_or(0);
                None
            }
            _ => None,
        }
    }
}

fn of_host(error: &HostError) -> c_int {
    match error {
        HostError::ClockUnavailable { source }
        | HostError::MapPage { source }
        | HostError::ForkHandlers { source }
        | HostError::OpenDescriptor { source }
        | HostError::Random { source } => source.raw_os_error().unwrap_or(0),
        _ => 0,
    }
}

/// Text for C, up to the first zero byte.
pub(crate) fn text(text: String) -> CString {
    CString::new(text).unwrap_or_else(|error| {
        let end = error.nul_position();
        let mut bytes = error.into_vec();
        bytes.truncate(end);
        CString::new(bytes).unwrap_or_default()
    })
}

/// Frees an error; NULL is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_error_free(error: *mut sprag_error) {
    // SAFETY: by every function's contract.
    unsafe { crate::border::close(error) };
}

/// The status that the call returned; SPRAG_OK for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_error_status(error: *const sprag_error) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe { error.as_ref() }.map_or(sprag_status::SPRAG_OK, |error| error.status)
}

/// What was wrong and what to do about it, in English, one line. Lives as long as the error; "" for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_error_message(error: *const sprag_error) -> *const c_char {
    // SAFETY: by every function's contract.
    let error = unsafe { error.as_ref() };
    error.map_or(c"", |error| error.message.as_c_str()).as_ptr()
}

/// The argument that was wrong, as the message calls it; NULL if none was. Lives as long as the error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_error_argument(error: *const sprag_error) -> *const c_char {
    // SAFETY: by every function's contract.
    let argument = unsafe { error.as_ref() }.and_then(|error| error.argument.as_deref());
    argument.map_or(std::ptr::null(), CStr::as_ptr)
}

/// Whether the argument has bounds: if so, what was given and the least and greatest that are accepted are written,
/// each where its pointer is not NULL. Durations are in nanoseconds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_error_bounds(
    error: *const sprag_error,
    value: *mut u64,
    min: *mut u64,
    max: *mut u64,
) -> bool {
    // SAFETY: by every function's contract.
    let bounds = unsafe { error.as_ref() }.and_then(|error| error.bounds);
    let Some(bounds) = bounds else {
        return false;
    };
    for (to, number) in [value, min, max].into_iter().zip(bounds) {
        // SAFETY: by every function's contract.
        unsafe { give(to, number) };
    }
    true
}

/// The system's own error number (errno) where the system refused something; else 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_error_os_code(error: *const sprag_error) -> c_int {
    // SAFETY: by every function's contract.
    unsafe { error.as_ref() }.map_or(0, |error| error.os_code)
}

/// The token of what was lost, or was stale; 0 if this is no such error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_error_token(error: *const sprag_error) -> u64 {
    // SAFETY: by every function's contract.
    unsafe { error.as_ref() }.map_or(0, |error| error.token)
}

/// The highest token that the fence had admitted when it found one stale; 0 if this is no such error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_error_highest_token(error: *const sprag_error) -> u64 {
    // SAFETY: by every function's contract.
    unsafe { error.as_ref() }.map_or(0, |error| error.highest_token)
}
