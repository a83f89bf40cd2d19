//! The scene of a call that panics: two sessions in one region, and all that is opened in them.

use crate::bytes::sprag_bytes;
use crate::error::{sprag_error, sprag_error_free, sprag_error_message, sprag_error_status};
use crate::hold::{sprag_hold, sprag_hold_release};
use crate::limiter::{sprag_limiter, sprag_limiter_check, sprag_limiter_close, sprag_limiter_open};
use crate::lock::{
    SPRAG_SHARED, sprag_acquire_options, sprag_lock, sprag_lock_acquire, sprag_lock_acquire_with,
    sprag_lock_close, sprag_lock_open, sprag_lock_open_several,
};
use crate::space::{sprag_space, sprag_space_open, sprag_space_options};
use crate::status::sprag_status::{self, SPRAG_OK};
use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::mem::zeroed;
use std::ptr::{null, null_mut};

pub(super) type ErrorOut = *mut *mut sprag_error;

/// The names that the calls are on.
pub(super) const NAMES: [&str; 2] = ["one", "two"];

/// Two sessions in a region of their own: the one whose call panics, and another. What is made ready is closed
/// with it.
pub(super) struct Scene {
    pub(super) url: String,
    pub(super) mine: *mut sprag_space,
    pub(super) theirs: *mut sprag_space,
    /// What is done in the end, the last first.
    in_the_end: RefCell<Vec<Box<dyn FnOnce()>>>,
    _directory: tempfile::TempDir,
}

impl Scene {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("shm:{}/region", directory.path().display());
        Self {
            mine: open(&url),
            theirs: open(&url),
            url,
            in_the_end: RefCell::default(),
            _directory: directory,
        }
    }

    pub(super) fn later(&self, act: impl FnOnce() + 'static) {
        self.in_the_end.borrow_mut().push(Box::new(act));
    }

    pub(super) fn end(&self) {
        while let Some(act) = { self.in_the_end.borrow_mut().pop() } {
            act();
        }
    }

    pub(super) fn lock(&self, space: *mut sprag_space, name: &str) -> *mut sprag_lock {
        let lock = lock(space, name);
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        self.later(move || unsafe { sprag_lock_close(lock) });
        lock
    }

    pub(super) fn opened(
        &self,
        open: impl FnOnce(*mut *mut sprag_lock, ErrorOut) -> sprag_status,
    ) -> *mut sprag_lock {
        let mut lock = null_mut();
        works(|error| open(&raw mut lock, error));
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        self.later(move || unsafe { sprag_lock_close(lock) });
        lock
    }

    pub(super) fn both(&self) -> *mut sprag_lock {
        let names = NAMES.map(|name| sprag_bytes::of(name.as_bytes()));
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        self.opened(|lock, error| unsafe {
            sprag_lock_open_several(self.mine, names.as_ptr(), names.len(), 0, lock, error)
        })
    }

    pub(super) fn limiter(&self, space: *mut sprag_space, limit: &CStr) -> *mut sprag_limiter {
        let limiter = limiter(space, limit, 0);
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        self.later(move || unsafe { sprag_limiter_close(limiter) });
        limiter
    }

    /// An empty hold, which is released in the end if it is one by then: it has a share of its session.
    pub(super) fn hold(&self) -> *mut sprag_hold {
        let hold = Box::into_raw(Box::new(unsafe { zeroed::<sprag_hold>() }));
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        self.later(move || unsafe {
            outcome(|error| sprag_hold_release(hold, error));
            drop(Box::from_raw(hold));
        });
        hold
    }

    pub(super) fn acquired(&self, lock: *mut sprag_lock) -> *mut sprag_hold {
        let hold = self.hold();
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        works(|error| unsafe { sprag_lock_acquire(lock, 0, hold, error) });
        hold
    }

    pub(super) fn shared(&self, lock: *mut sprag_lock) -> *mut sprag_hold {
        let hold = self.hold();
        // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
        works(|error| unsafe { sprag_lock_acquire_with(lock, &sharing(), hold, error) });
        hold
    }
}

pub(super) fn open(url: &str) -> *mut sprag_space {
    let url = CString::new(url).unwrap();
    let mut space = null_mut();
    // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
    unsafe {
        let mut options: sprag_space_options = zeroed();
        options.size = size_of::<sprag_space_options>();
        options.objects = 256;
        options.limiter_keys = 256;
        options.joint_keys = 256;
        options.sessions = 16;
        options.waiters = 16;
        options.permits = 16;
        options.key_chunks = 256;
        works(|error| sprag_space_open(url.as_ptr(), &raw const options, &raw mut space, error));
    }
    space
}

pub(super) fn works(act: impl FnOnce(ErrorOut) -> sprag_status) {
    assert_eq!(outcome(act), (SPRAG_OK, String::new()));
}

/// The status of a call, and what its error says.
pub(super) fn outcome(act: impl FnOnce(ErrorOut) -> sprag_status) -> (sprag_status, String) {
    let mut error = null_mut();
    let status = act(&raw mut error);
    assert_eq!((status as i32) < 0, !error.is_null(), "{status:?}");
    // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
    unsafe {
        assert!(error.is_null() || sprag_error_status(error) == status);
        let message = CStr::from_ptr(sprag_error_message(error));
        let message = message.to_str().unwrap().to_owned();
        sprag_error_free(error);
        (status, message)
    }
}

pub(super) fn lock(space: *mut sprag_space, name: &str) -> *mut sprag_lock {
    let mut lock = null_mut();
    let (at, len, to) = (name.as_ptr().cast(), name.len(), &raw mut lock);
    // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
    works(|error| unsafe { sprag_lock_open(space, at, len, 0, to, error) });
    lock
}

pub(super) fn limiter(space: *mut sprag_space, limit: &CStr, flags: u32) -> *mut sprag_limiter {
    let mut limiter = null_mut();
    let to = &raw mut limiter;
    // SAFETY: what is pointed at is the scene's, which closes it in the end, or a variable here.
    works(|error| unsafe { open_limiter(space, limit, flags, to, error) });
    limiter
}

/// Opens the one limiter that there is in these tests.
pub(super) unsafe fn open_limiter(
    space: *mut sprag_space,
    limit: &CStr,
    flags: u32,
    to: *mut *mut sprag_limiter,
    error: ErrorOut,
) -> sprag_status {
    let name = "limiter";
    // SAFETY: the space is open, and the rest is the caller's.
    unsafe {
        let (at, len) = (name.as_ptr().cast(), name.len());
        sprag_limiter_open(space, at, len, limit.as_ptr(), flags, to, error)
    }
}

/// # Safety
///
/// What is pointed at is open, or may be written.
pub(super) unsafe fn check(
    limiter: *mut sprag_limiter,
    key: &str,
    cost: u64,
    error: ErrorOut,
) -> sprag_status {
    // SAFETY: the limiter is open.
    unsafe {
        let (at, len) = (key.as_ptr().cast(), key.len());
        sprag_limiter_check(limiter, at, len, cost, null_mut(), error)
    }
}

pub(super) fn sharing() -> sprag_acquire_options {
    sprag_acquire_options {
        size: size_of::<sprag_acquire_options>(),
        timeout_ns: 0,
        owner: null(),
        mode: SPRAG_SHARED,
        reserved: 0,
    }
}
