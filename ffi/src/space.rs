//! # Spaces
//!
//! A space is a set of named objects, opened by URL; the URL decides how far it reaches:
//!
//!     mem:         the threads of this process; each opening is another space
//!     shm:NAME     the processes of this host: the file NAME.sprag in $SPRAG_DIR, else in /dev/shm/sprag-UID
//!     shm:/path    the processes of this host: that very file
//!
//! An open space has a session, by which others know that this process lives: when the process ends, however it
//! does, what it held passes on. A process forked from one with an open space owns nothing in it: its calls fail
//! with SPRAG_ERROR_FORKED until it opens the space itself. So servers that fork their workers fork first and open
//! after.

use crate::border::{Failure, Opaque, call, close, give, look, on, opaque, wanted};
use crate::bytes::{SPRAG_NAME_BYTES_MAX, bytes, copy_text, text, writable};
use crate::clock::sprag_manual_clock;
use crate::error::sprag_error;
use crate::options::{Options, check_flags, check_reserved, read};
use crate::status::sprag_status::{self, SPRAG_OK};
use sprag::{Caps, Space};
use std::ffi::{c_char, c_void};

opaque! {
    /// An open space. Every call on it is safe from any thread. What was opened in it has a share of it, as has
    /// each hold and each attempt: the session ends when the space and all of those are closed, or released.
    sprag_space, Space, "space"
}

/// Only a region that is there is opened; none is created.
pub const SPRAG_EXISTING: u32 = 1;
/// The group may use the region too: mode 0660 instead of 0600.
pub const SPRAG_GROUP_SHARED: u32 = 2;
/// No session is opened: enough to look, to break, and to release and renew by token.
pub const SPRAG_WITHOUT_SESSION: u32 = 4;

/// How a space is opened. Begins with its size; what is zero has its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sprag_space_options {
    /// sizeof(sprag_space_options).
    pub size: usize,
    /// SPRAG_EXISTING, SPRAG_GROUP_SHARED and SPRAG_WITHOUT_SESSION, or'ed together.
    pub flags: u32,
    /// How much of each cap of a shared region this session may fill, in percent: 1 to 100; 0 for 75.
    pub share_percent: u32,
    /// A clock moved by hand, for mem: only; NULL for the system's. Need not stay open.
    pub clock: *const sprag_manual_clock,
    /// From here on caps of a region, if this call creates it; an existing one keeps its own. Locks, semaphores,
    /// fences, counters, limiters, overrides and idempotency keys together: 1 to 2^26; 0 for 65,536.
    pub objects: u32,
    /// Keys of all limiters together: 1 to 2^28; 0 for 262,144.
    pub limiter_keys: u32,
    /// Keys of all joint limiters together: 1 to 2^26; 0 for 65,536.
    pub joint_keys: u32,
    /// Open spaces at one time: 1 to 4,095; 0 for 1,024.
    pub sessions: u32,
    /// Waits at one time: 1 to 65,536; 0 for 4,096.
    pub waiters: u32,
    /// Shared holds and holds of semaphores at one time: 1 to 65,536; 0 for 8,192.
    pub permits: u32,
    /// Chunks of 48 bytes for long names, long keys, and results: 1 to 2^28; 0 for 262,144.
    pub key_chunks: u32,
    /// Zero.
    pub reserved: u32,
}

// SAFETY: as the trait asks: `repr(C)`, its size first, and numbers and a pointer, for which any bytes will do.
unsafe impl Options for sprag_space_options {
    const BYTES_MIN: usize = 56;
}

impl sprag_space_options {
    /// The caps, those that are 0 as in `default`.
    pub(crate) fn caps(&self, default: Caps) -> Caps {
        let or = |given, default| if given == 0 { default } else { given };
        Caps {
            objects: or(self.objects, default.objects),
            limiter_keys: or(self.limiter_keys, default.limiter_keys),
            joint_keys: or(self.joint_keys, default.joint_keys),
            sessions: or(self.sessions, default.sessions),
            waiters: or(self.waiters, default.waiters),
            permits: or(self.permits, default.permits),
            key_chunks: or(self.key_chunks, default.key_chunks),
        }
    }
}

/// Opens the space at url; options may be NULL. Waits up to 10 s for another process that is making the region.
/// Some dozen system calls.
///
/// SPRAG_ERROR_PLACE for a URL or a place that cannot be used; SPRAG_ERROR_NOT_FOUND with SPRAG_EXISTING if there
/// is no region; SPRAG_ERROR_INCOMPATIBLE, SPRAG_ERROR_PERMISSION and SPRAG_ERROR_SYSTEM for one that cannot be
/// opened.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_space_open(
    url: *const c_char,
    options: *const sprag_space_options,
    space: *mut *mut sprag_space,
    error: *mut *mut sprag_error,
) -> sprag_status {
    call(error, || {
        wanted(space, "space")?;
        // SAFETY: by every function's contract.
        let (url, options) = unsafe { (text(url, "url")?, read(options)?) };
        check_reserved(options.reserved)?;
        check_flags(
            options.flags,
            SPRAG_EXISTING | SPRAG_GROUP_SHARED | SPRAG_WITHOUT_SESSION,
        )?;
        let mut builder = Space::builder()
            .caps(options.caps(Caps::default()))
            .create(options.flags & SPRAG_EXISTING == 0)
            .group_shared(options.flags & SPRAG_GROUP_SHARED != 0);
        if options.flags & SPRAG_WITHOUT_SESSION != 0 {
            builder = builder.without_session();
        }
        if options.share_percent != 0 {
            builder = builder.share_percent(options.share_percent);
        }
        // SAFETY: by every function's contract.
        if let Some(clock) = unsafe { options.clock.as_ref() } {
            builder = builder.clock(clock.handle().get()?);
        }
        let opened = builder.open(url)?;
        // SAFETY: by every function's contract.
        unsafe { give(space, sprag_space::give(opened)) };
        Ok(SPRAG_OK)
    })
}

/// Closes the handle; NULL is none. The session ends once all that was opened in the space is closed too, and its
/// holds and attempts have ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_space_close(space: *mut sprag_space) {
    // SAFETY: by every function's contract.
    unsafe { close(space) };
}

/// How many partitions the space has: a power of two, at most 64; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_space_partitions(space: *const sprag_space) -> u32 {
    // SAFETY: by every function's contract.
    unsafe { look(space, 0, Space::partitions) }
}

/// The partition that a lock's name falls into, from 0. Some nanoseconds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_space_partition_of(
    space: *const sprag_space,
    name: *const c_void,
    name_len: usize,
    partition: *mut u32,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            wanted(partition, "partition")?;
            let name = bytes(name, name_len, "name")?;
            if !(1..=SPRAG_NAME_BYTES_MAX).contains(&name.len()) {
                return Err(Failure::Bounds {
                    argument: "name_len",
                    value: name.len() as u64,
                    min: 1,
                    max: SPRAG_NAME_BYTES_MAX as u64,
                });
            }
            give(partition, space.partition_of(name));
            Ok(SPRAG_OK)
        })
    }
}

/// Writes the URL that the space was opened by, as far as it fits, and its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_space_url(
    space: *const sprag_space,
    url: *mut c_char,
    url_max: usize,
    url_len: *mut usize,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            writable(url, url_max, "url")?;
            copy_text(space.url(), url, url_max, url_len);
            Ok(SPRAG_OK)
        })
    }
}

/// How many keys the space's limiters have now: those with something used, and full ones not reclaimed yet. A few
/// loads; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_space_limiter_key_count(space: *const sprag_space) -> u64 {
    // SAFETY: by every function's contract.
    unsafe { look(space, 0, Space::limiter_key_count) }
}

/// Bytes that these keys take in the region: their cells, and the chunks of long ones. Reads the whole table; 0
/// for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_space_limiter_key_bytes(space: *const sprag_space) -> u64 {
    // SAFETY: by every function's contract.
    unsafe { look(space, 0, Space::limiter_key_bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::{sprag_limiter_check, sprag_limiter_close};
    use crate::status::sprag_status::{
        SPRAG_ERROR_NULL, SPRAG_ERROR_OUT_OF_RANGE, SPRAG_ERROR_PLACE, SPRAG_ERROR_UNSUPPORTED,
    };
    use crate::testing::{Scene, at, fails, limiter, told, works};
    use std::mem::zeroed;
    use std::ptr::{null, null_mut};

    #[test]
    fn a_space_tells_of_itself() {
        let scene = Scene::new();
        let limiter = limiter(&scene, "api", c"2/hour");
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let url =
                told(|url, max, len, error| sprag_space_url(scene.space, url, max, len, error));
            assert_eq!(url, b"mem:");
            let nowhere =
                fails(|error| sprag_space_url(scene.space, null_mut(), 1, null_mut(), error));
            assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "url"));
            assert_eq!(sprag_space_limiter_key_count(scene.space), 0);
            let key = b"ann".as_ptr().cast();
            works(|error| sprag_limiter_check(limiter, key, 3, 1, null_mut(), error));
            assert_eq!(sprag_space_limiter_key_count(scene.space), 1);
            assert!(sprag_space_limiter_key_bytes(scene.space) > 0);
            assert_eq!(sprag_space_limiter_key_count(null()), 0);
            assert_eq!(sprag_space_limiter_key_bytes(null()), 0);
            sprag_limiter_close(limiter);
        }
    }

    #[test]
    fn options_that_are_wrong_open_nothing() {
        let mut space = null_mut();
        // SAFETY: as the contract asks: variables of this test's own.
        unsafe {
            let mut refused = |set: &dyn Fn(&mut sprag_space_options)| {
                let mut options: sprag_space_options = zeroed();
                options.size = size_of::<sprag_space_options>();
                set(&mut options);
                let (url, options, to) = (c"mem:".as_ptr(), &raw const options, &raw mut space);
                let failed = fails(|error| sprag_space_open(url, options, to, error));
                assert!(space.is_null());
                failed
            };
            let out_of_range = |argument| at(SPRAG_ERROR_OUT_OF_RANGE, argument);
            let wrong = refused(&|options| options.size = 55);
            assert_eq!(wrong, out_of_range("options.size"));
            assert_eq!(refused(&|options| options.flags = 8), out_of_range("flags"));
            let wrong = refused(&|options| options.reserved = 1);
            assert_eq!(wrong, out_of_range("options.reserved"));
            let wrong = refused(&|options| options.share_percent = 101);
            assert_eq!(wrong.0, SPRAG_ERROR_OUT_OF_RANGE);
            let wrong = refused(&|options| options.objects = u32::MAX);
            assert_eq!(wrong.0, SPRAG_ERROR_OUT_OF_RANGE);
            let to = &raw mut space;
            let wrong = fails(|error| sprag_space_open(c"here".as_ptr(), null(), to, error));
            assert_eq!(wrong, (SPRAG_ERROR_PLACE, None));
            let wrong = fails(|error| sprag_space_open(null(), null(), to, error));
            assert_eq!(wrong, at(SPRAG_ERROR_NULL, "url"));
            assert!(space.is_null());
        }
    }

    #[test]
    fn a_newer_callers_options_are_taken_where_they_ask_nothing_new() {
        #[repr(C)]
        struct Newer {
            known: sprag_space_options,
            unknown: u64,
        }
        let mut space = null_mut();
        // SAFETY: as the contract asks: variables of this test's own; zeros are a value of it.
        unsafe {
            let mut newer: Newer = zeroed();
            newer.known.size = size_of::<Newer>();
            let url = c"mem:".as_ptr();
            let mut open = |newer: &Newer, error| {
                let options = (&raw const *newer).cast();
                sprag_space_open(url, options, &raw mut space, error)
            };
            newer.unknown = 1;
            let wrong = fails(|error| open(&newer, error));
            assert_eq!(wrong, (SPRAG_ERROR_UNSUPPORTED, None));
            newer.unknown = 0;
            works(|error| open(&newer, error));
            sprag_space_close(space);
        }
    }
}
