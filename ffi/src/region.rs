//! # Regions
//!
//! The files of shm: spaces: what there are, what is in them, and how one is removed, resized and looked over. On Linux;
//! elsewhere these calls fail with SPRAG_ERROR_UNSUPPORTED, as shm: does.

use crate::border::{Failure, Outcome, call, on};
use crate::bytes::text;
use crate::error::sprag_error;
use crate::options::{check_flags, check_reserved, read};
use crate::space::{SPRAG_GROUP_SHARED, sprag_space, sprag_space_options};
use crate::status::sprag_status;
use sprag::Space;
use std::ffi::{c_char, c_void};

#[cfg(target_os = "linux")]
mod here;
#[cfg(not(target_os = "linux"))]
#[path = "region/elsewhere.rs"]
mod here;

const NO_VISITOR: Failure = Failure::Null("visit");

/// A region's file, as its directory lists it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sprag_region_file {
    /// sizeof(sprag_region_file).
    pub size: usize,
    /// What follows shm: to open it.
    pub name: *const c_char,
    /// The file.
    pub path: *const c_char,
    /// The file's length in bytes.
    pub bytes: u64,
    /// When it was last written by a call, in nanoseconds since 1970-01-01 UTC; writing through a mapping may not show.
    /// SPRAG_UNKNOWN if not known.
    pub modified_unix_ns: u64,
}

/// Is shown a region's file; returns whether it wants more.
pub type sprag_visit_region_file =
    Option<extern "C" fn(file: *const sprag_region_file, context: *mut c_void) -> bool>;

/// Visits the regions in this user's directory, by name: $SPRAG_DIR, else /dev/shm/sprag-UID. None if there is no such
/// directory.
///
/// SPRAG_ERROR_PLACE for a directory that cannot be read, or a $SPRAG_DIR that is not absolute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_region_each(
    visit: sprag_visit_region_file,
    context: *mut c_void,
    error: *mut *mut sprag_error,
) -> sprag_status {
    call(error, || {
        let visit = visit.ok_or(NO_VISITOR)?;
        here::each(&|file| visit(file, context))
    })
}

/// What can be said of a region from outside.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sprag_region_info {
    /// sizeof(sprag_region_info).
    pub size: usize,
    /// The file.
    pub path: *const c_char,
    /// Bytes of the file that the file system holds.
    pub allocated_bytes: u64,
    /// Bytes that it may grow to.
    pub len_bytes: u64,
    /// When it was created, in nanoseconds since 1970-01-01 UTC.
    pub created_unix_ns: u64,
    /// Its layout.
    pub layout_version: u32,
    /// Sessions whose process is alive.
    pub live_sessions: u32,
    /// The user id of its owner.
    pub owner_uid: u32,
    /// Whether its group may use it.
    pub is_group_shared: bool,
    /// Zero.
    pub reserved: [u8; 3],
    /// From here on its caps, as in sprag_space_options.
    pub objects: u32,
    /// Keys of all limiters together.
    pub limiter_keys: u32,
    /// Keys of all joint limiters together.
    pub joint_keys: u32,
    /// Open spaces at one time.
    pub sessions: u32,
    /// Waits at one time.
    pub waiters: u32,
    /// Shared holds and holds of semaphores at one time.
    pub permits: u32,
    /// Chunks of 48 bytes for long names, long keys, and results.
    pub key_chunks: u32,
    /// Zero.
    pub reserved_word: u32,
}

/// Is shown a region; what it returns is not looked at.
pub type sprag_visit_region =
    Option<extern "C" fn(region: *const sprag_region_info, context: *mut c_void) -> bool>;

/// Visits the region at url, without opening a session in it. flags: 0 or SPRAG_GROUP_SHARED, whether its directory may be
/// the group's. A few system calls, and some for each session that is alive.
///
/// SPRAG_ERROR_PLACE for a URL or a directory that cannot be used, SPRAG_ERROR_UNSUPPORTED for mem:, SPRAG_ERROR_NOT_FOUND
/// and SPRAG_ERROR_INCOMPATIBLE for a file that is not there or is no region of this release.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_region_probe(
    url: *const c_char,
    flags: u32,
    visit: sprag_visit_region,
    context: *mut c_void,
    error: *mut *mut sprag_error,
) -> sprag_status {
    call(error, || {
        check_flags(flags, SPRAG_GROUP_SHARED)?;
        let visit = visit.ok_or(NO_VISITOR)?;
        // SAFETY: by every function's contract.
        let url = unsafe { text(url, "url")? };
        here::probe(url, is_group_shared(flags), &|region| {
            visit(region, context)
        })
    })
}

/// Also a region that is in use: its holds are lost, and its sessions find out at their next slow step.
pub const SPRAG_EVEN_IF_IN_USE: u32 = 8;

/// Removes the region at url. flags: SPRAG_GROUP_SHARED and SPRAG_EVEN_IF_IN_USE, or'ed together. One that is damaged or
/// incompatible is removed too.
///
/// SPRAG_ERROR_IN_USE while sessions are alive in it, or a hold that was detached runs, without SPRAG_EVEN_IF_IN_USE; else
/// those of sprag_region_probe().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_region_remove(
    url: *const c_char,
    flags: u32,
    error: *mut *mut sprag_error,
) -> sprag_status {
    call(error, || {
        check_flags(flags, SPRAG_GROUP_SHARED | SPRAG_EVEN_IF_IN_USE)?;
        // SAFETY: by every function's contract.
        let url = unsafe { text(url, "url")? };
        let even_if_in_use = flags & SPRAG_EVEN_IF_IN_USE != 0;
        here::remove(url, is_group_shared(flags), even_if_in_use)
    })
}

/// Replaces the region at url by one with the caps of options, while nobody uses it; a cap of 0 stays what it is. Of
/// the flags only SPRAG_GROUP_SHARED has a meaning; neither a share nor a clock may be given. Fences, counters, limiters,
/// what their keys have used, and results that are kept are carried over, and no token goes back. Reads the whole region;
/// waits for up to 10 s for another process that is at it.
///
/// SPRAG_ERROR_IN_USE; SPRAG_ERROR_OUT_OF_RANGE for a cap out of its bounds, SPRAG_ERROR_FULL for one too low for what is
/// carried over; SPRAG_ERROR_CONTENDED when the time is over; else those of sprag_region_probe(). Nothing is changed then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_region_resize(
    url: *const c_char,
    options: *const sprag_space_options,
    error: *mut *mut sprag_error,
) -> sprag_status {
    call(error, || {
        // SAFETY: by every function's contract.
        let (url, options) = unsafe { (text(url, "url")?, read(options)?) };
        check_reserved(options.reserved)?;
        check_flags(options.flags, SPRAG_GROUP_SHARED)?;
        if options.share_percent != 0 || !options.clock.is_null() {
            return Err(Failure::Unsupported(
                "a region is resized by its caps alone; leave share_percent and clock zero",
            ));
        }
        here::resize(url, is_group_shared(options.flags), &options)
    })
}

/// Is told one thing that contradicts itself, as text; returns whether it wants more.
pub type sprag_visit_finding =
    Option<extern "C" fn(finding: *const c_char, context: *mut c_void) -> bool>;

/// Walks through all of an open space's region, and tells what contradicts itself, and how many such things there are, unless
/// count is NULL. Changes nothing and stops nobody; in a region in use a finding can be a step that somebody is in the
/// middle of, and is gone when looked for again. SPRAG_OK whatever was found. Reads the whole region.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_region_check(
    space: *const sprag_space,
    visit: sprag_visit_finding,
    context: *mut c_void,
    count: *mut usize,
    error: *mut *mut sprag_error,
) -> sprag_status {
    let checked = |space: &Space| -> Outcome {
        let visit = visit.ok_or(NO_VISITOR)?;
        // SAFETY: by every function's contract.
        unsafe { here::check(space, &|finding| visit(finding, context), count) }
    };
    // SAFETY: by every function's contract.
    unsafe { on(space, error, checked) }
}

fn is_group_shared(flags: u32) -> bool {
    flags & SPRAG_GROUP_SHARED != 0
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
