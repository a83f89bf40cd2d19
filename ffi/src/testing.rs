//! What the tests of the C ABI share: a space on a clock of its own, and what a call failed with.

use crate::clock::{
    sprag_manual_clock, sprag_manual_clock_advance, sprag_manual_clock_close,
    sprag_manual_clock_open,
};
use crate::error::{sprag_error, sprag_error_argument, sprag_error_free, sprag_error_message};
use crate::limiter::{sprag_limiter, sprag_limiter_open};
use crate::space::{sprag_space, sprag_space_close, sprag_space_open, sprag_space_options};
use crate::status::sprag_status::{self, SPRAG_OK};
use std::ffi::{CStr, c_char};
use std::mem::zeroed;
use std::ptr::null_mut;

/// A mem: space, whose clock stands still.
pub(crate) struct Scene {
    clock: *mut sprag_manual_clock,
    pub(crate) space: *mut sprag_space,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// With other options than the defaults.
    pub(crate) fn with(set: impl FnOnce(&mut sprag_space_options)) -> Self {
        let (mut clock, mut space) = (null_mut(), null_mut());
        // SAFETY: numbers and a pointer, of which zeros are a value; and pointers to variables of this function's.
        unsafe {
            works(|error| sprag_manual_clock_open(&raw mut clock, error));
            let mut options: sprag_space_options = zeroed();
            options.size = size_of::<sprag_space_options>();
            options.clock = clock;
            set(&mut options);
            works(|error| {
                sprag_space_open(c"mem:".as_ptr(), &raw const options, &raw mut space, error)
            });
        }
        Self { clock, space }
    }

    pub(crate) fn advance(&self, by_ns: u64) {
        // SAFETY: it is open.
        works(|error| unsafe { sprag_manual_clock_advance(self.clock, by_ns, error) });
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // SAFETY: they are open, and nobody uses them any more.
        unsafe {
            sprag_space_close(self.space);
            sprag_manual_clock_close(self.clock);
        }
    }
}

/// Why a call failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) status: sprag_status,
    pub(crate) argument: Option<String>,
    pub(crate) message: String,
}

/// What a call comes to.
pub(crate) fn outcome(
    act: impl FnOnce(*mut *mut sprag_error) -> sprag_status,
) -> Result<sprag_status, Failed> {
    let mut error = null_mut();
    let status = act(&raw mut error);
    if status as i32 >= 0 {
        assert!(error.is_null(), "{status:?} with an error");
        return Ok(status);
    }
    assert!(!error.is_null(), "{status:?} without an error");
    // SAFETY: the call wrote it.
    unsafe {
        let failed = Failed {
            status,
            argument: owned(sprag_error_argument(error)),
            message: owned(sprag_error_message(error)).unwrap_or_default(),
        };
        sprag_error_free(error);
        Err(failed)
    }
}

/// A call that must succeed.
pub(crate) fn works(act: impl FnOnce(*mut *mut sprag_error) -> sprag_status) {
    assert_eq!(outcome(act), Ok(SPRAG_OK));
}

/// The status of a call that must fail, and the argument that its error names.
pub(crate) fn fails(
    act: impl FnOnce(*mut *mut sprag_error) -> sprag_status,
) -> (sprag_status, Option<String>) {
    match outcome(act) {
        Ok(status) => panic!("{status:?} of a call that must fail"),
        Err(failed) => (failed.status, failed.argument),
    }
}

/// What [`fails`] returns for this status and this argument.
pub(crate) fn at(status: sprag_status, argument: &str) -> (sprag_status, Option<String>) {
    (status, Some(argument.to_owned()))
}

/// What `write` writes as bytes, in a buffer that is large enough.
pub(crate) fn told<T>(
    write: impl FnOnce(*mut T, usize, *mut usize, *mut *mut sprag_error) -> sprag_status,
) -> Vec<u8> {
    let (mut buffer, mut len) = ([0_u8; 2048], 0);
    works(|error| {
        write(
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            &raw mut len,
            error,
        )
    });
    buffer[..len].to_vec()
}

/// A text of the library's.
///
/// # Safety
///
/// It is NULL, or ends with a zero byte.
unsafe fn owned(text: *const c_char) -> Option<String> {
    // SAFETY: NULL, or a text of the library's.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text).to_string_lossy().into_owned() })
}

/// A limiter of the scene's space.
pub(crate) fn limiter(scene: &Scene, name: &str, limit: &CStr) -> *mut sprag_limiter {
    let mut limiter = null_mut();
    let (name, len, limit) = (name.as_ptr().cast(), name.len(), limit.as_ptr());
    // SAFETY: the space is open, and the rest are variables of this function's.
    works(|error| unsafe {
        sprag_limiter_open(scene.space, name, len, limit, 0, &raw mut limiter, error)
    });
    limiter
}
