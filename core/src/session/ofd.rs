//! Open file description locks on single bytes far past the end of a region's file.
//!
//! | byte | held by |
//! |---|---|
//! | [`BASE`] + index | the session of that index, for as long as it lives |
//! | [`SETUP`] | whoever brings the region to another boot, or replaces it |
//! | [`CLAIM`] + index | whoever opens the session of that index, until it has the byte above |
//!
//! Whoever replaces the region holds all session bytes too, so that no session can open meanwhile.
//!
//! Such a lock belongs to the open file description and goes when its last reference goes. A mapping
//! is a reference, and a forked child inherits it: so the description that was mapped never carries a
//! lock, or a child would keep its dead parent's sessions alive.

use super::SESSIONS_MAX;
use crate::error::{Error, Result};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Offset of session 0's byte. Past any region, and below the largest file offset.
const BASE: i64 = 1 << 60;
/// Offset of the byte that serialises setting up; past the last session's.
const SETUP: i64 = BASE + 5_000;
/// Offset of the byte that serialises opening session 0.
const CLAIM: i64 = BASE + 10_000;

/// A run of bytes to lock.
#[derive(Clone, Copy)]
pub(crate) struct Bytes {
    start: i64,
    len: i64,
}

impl Bytes {
    /// The byte that serialises setting up.
    pub(crate) const SETUP: Self = Self {
        start: SETUP,
        len: 1,
    };
    /// The bytes of all sessions.
    pub(crate) const SESSIONS: Self = Self {
        start: BASE,
        len: SESSIONS_MAX as i64,
    };

    /// The byte of one session.
    pub(crate) fn session(index: u16) -> Self {
        Self {
            start: BASE + i64::from(index),
            len: 1,
        }
    }

    /// The byte of whoever opens that session.
    pub(super) fn claim(index: u16) -> Self {
        Self {
            start: CLAIM + i64::from(index),
            len: 1,
        }
    }
}

fn request(kind: i32, bytes: Bytes) -> libc::flock {
    // SAFETY: `flock` is plain integers, for which zero is a valid value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as i16;
    lock.l_whence = libc::SEEK_SET as i16;
    lock.l_start = bytes.start;
    lock.l_len = bytes.len;
    lock
}

/// Takes `bytes` if no other open file description has any of them.
pub(crate) fn try_lock(file: &impl AsFd, bytes: Bytes) -> Result<bool> {
    let lock = request(libc::F_WRLCK, bytes);
    // SAFETY: the descriptor is open for as long as `file` lives; `lock` outlives the call.
    if unsafe { libc::fcntl(file.as_fd().as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Ok(false),
        _ => Err(Error::NoKernelLock { source: error }),
    }
}

/// Gives `bytes` back.
pub(crate) fn unlock(file: &impl AsFd, bytes: Bytes) {
    let lock = request(libc::F_UNLCK, bytes);
    // SAFETY: as in `try_lock`. It can only fail for a bad descriptor or arguments.
    unsafe {
        libc::fcntl(file.as_fd().as_raw_fd(), libc::F_OFD_SETLK, &raw const lock);
    }
}

/// A lock of another open file description on any of `bytes`.
fn conflict(file: &impl AsFd, bytes: Bytes) -> io::Result<Option<Bytes>> {
    let mut lock = request(libc::F_WRLCK, bytes);
    // SAFETY: as in `try_lock`; the kernel writes only into `lock`.
    if unsafe { libc::fcntl(file.as_fd().as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((lock.l_type != libc::F_UNLCK as i16).then_some(Bytes {
        start: lock.l_start,
        // A length of 0 means without end.
        len: if lock.l_len == 0 {
            i64::MAX - lock.l_start
        } else {
            lock.l_len
        },
    }))
}

/// Whether another open file description holds the byte of `index`. On an unexpected error it
/// says yes: taking a live holder for dead would be worse than waiting for its lease to end.
pub(crate) fn is_alive(file: &impl AsFd, index: u16) -> bool {
    !matches!(conflict(file, Bytes::session(index)), Ok(None))
}

/// Device and inode of the file that a descriptor is open on; `None` if it is closed.
pub(super) fn identity(file: &impl AsFd) -> Option<(u64, u64)> {
    // SAFETY: `stat` is plain integers, for which zero is a valid value.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes only into `stat`; a closed descriptor is an error.
    let result = unsafe { libc::fstat(file.as_fd().as_raw_fd(), &raw mut stat) };
    (result == 0).then_some((stat.st_dev, stat.st_ino))
}

/// Whether another open file description certainly holds the byte of `index`.
pub(crate) fn is_held(file: &impl AsFd, index: u16) -> bool {
    matches!(conflict(file, Bytes::session(index)), Ok(Some(_)))
}

/// Whether somebody holds all sessions' bytes at once, as only a replacement of the region does.
pub(crate) fn is_being_replaced(file: &impl AsFd) -> bool {
    matches!(conflict(file, Bytes::SETUP), Ok(Some(_)))
        && matches!(conflict(file, Bytes::SESSIONS), Ok(Some(found)) if found.len > 1)
}

/// How many sessions other open file descriptions keep alive.
pub(crate) fn count_alive(file: &impl AsFd) -> Result<u32> {
    let mut count = 0;
    // The kernel names any one conflict, not the first: look again on both sides of each.
    let mut open = vec![(
        Bytes::SESSIONS.start,
        Bytes::SESSIONS.start + Bytes::SESSIONS.len,
    )];
    while let Some((start, end)) = open.pop() {
        if start >= end {
            continue;
        }
        let bytes = Bytes {
            start,
            len: end - start,
        };
        let found = conflict(file, bytes).map_err(|source| Error::NoKernelLock { source })?;
        if let Some(found) = found {
            count += 1;
            open.push((start, found.start));
            open.push((found.start.saturating_add(found.len).max(start + 1), end));
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn open(path: &std::path::Path) -> File {
        File::options().read(true).write(true).open(path).unwrap()
    }

    #[test]
    fn living_sessions_are_counted_wherever_their_bytes_lie() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("region");
        File::create(&path).unwrap();
        let files: Vec<_> = [0, 1, 2, 77, 78, 4_000, 4_095]
            .map(|index| {
                let file = open(&path);
                assert!(try_lock(&file, Bytes::session(index)).unwrap());
                file
            })
            .into();
        let reader = File::open(&path).unwrap();
        for (closed, file) in files.into_iter().enumerate() {
            assert_eq!(count_alive(&reader).unwrap() as usize, 7 - closed);
            drop(file);
        }
        assert_eq!(count_alive(&reader).unwrap(), 0);
    }
}
