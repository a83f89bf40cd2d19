//! # Spaces
//!
//! A space is a set of named objects, opened by URL; the URL decides how far it reaches:
//!
//!     mem:         the threads of this process; each opening is another space
//!     shm:NAME     the processes of this host: the file NAME.sprag in $SPRAG_DIR, else in /dev/shm/sprag-UID
//!     shm:/path    the processes of this host: that very file
//!
//! An open space has a session, by which others know that this process lives: when the process ends, however it does,
//! what it held passes on. A process forked from one with an open space owns nothing in it: its calls fail with
//! SPRAG_ERROR_FORKED until it opens the space itself. So servers that fork their workers fork first and open after.

use crate::border::{Opaque, call, close, give, look, on, opaque, wanted};
use crate::bytes::{bytes, text};
use crate::clock::sprag_clock;
use crate::error::sprag_error;
use crate::options::{Options, check_flags, check_reserved, read};
use crate::status::sprag_status::{self, SPRAG_OK};
use sprag::{Caps, Space};
use std::ffi::{c_char, c_void};

opaque! {
    /// An open space. Every call on it is safe from any thread. What was opened in it has a share of it: the session ends
    /// when the space and all of that are closed.
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
    pub clock: *const sprag_clock,
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
    fn caps(&self) -> Caps {
        let default = Caps::default();
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

/// Opens the space at url; options may be NULL. Waits up to 10 s for another process that is making the region. Some
/// dozen system calls.
///
/// SPRAG_ERROR_PLACE for a URL or a place that cannot be used; SPRAG_ERROR_NOT_FOUND with SPRAG_EXISTING if there is no
/// region; SPRAG_ERROR_INCOMPATIBLE, SPRAG_ERROR_PERMISSION and SPRAG_ERROR_SYSTEM for one that cannot be opened.
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
            .caps(options.caps())
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

/// Closes the handle; NULL is none. The session ends, and with it what this process still holds, once all that was
/// opened in the space is closed too.
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
            give(
                partition,
                space.partition_of(bytes(name, name_len, "name")?),
            );
            Ok(SPRAG_OK)
        })
    }
}
