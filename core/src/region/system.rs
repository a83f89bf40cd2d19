//! The few system calls behind a region's file that the standard library does not offer.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Interruptions by signals after which a call gives up.
const INTERRUPTIONS_MAX: u32 = 10_000;

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn c_string(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Allocates `len` bytes at `offset`, so that writing to them through a mapping finds room. What is
/// there already is kept.
pub(super) fn allocate(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let (Ok(offset), Ok(len)) = (offset.try_into(), len.try_into()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    for _ in 0..INTERRUPTIONS_MAX {
        // Not `posix_fallocate`: where the file system cannot, some C libraries stand in for it by
        // reading and writing back each block, which would undo what another process writes.
        // SAFETY: takes no pointers; the descriptor is open for as long as `file` lives.
        let result = check(unsafe { libc::fallocate(file.as_raw_fd(), 0, offset, len) });
        match result {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
    Err(io::ErrorKind::Interrupted.into())
}

/// Gives a file that has no name the name `to`, unless there is such a file.
pub(super) fn link_unnamed(file: &File, to: &Path) -> io::Result<()> {
    let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let to = c_string(to)?;
    // SAFETY: both paths are NUL-terminated and outlive the call.
    let result = check(unsafe {
        libc::linkat(
            libc::AT_FDCWD,
            from.as_ptr(),
            libc::AT_FDCWD,
            to.as_ptr(),
            libc::AT_SYMLINK_FOLLOW,
        )
    });
    match result {
        // Without /proc: by the descriptor, which newer kernels allow to whoever opened it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // SAFETY: as above; the empty path is a constant.
            check(unsafe {
                libc::linkat(
                    file.as_raw_fd(),
                    c"".as_ptr(),
                    libc::AT_FDCWD,
                    to.as_ptr(),
                    libc::AT_EMPTY_PATH,
                )
            })
        }
        result => result,
    }
}

/// The user that files are opened as.
pub(super) fn effective_user() -> u32 {
    // SAFETY: takes no pointers and cannot fail.
    unsafe { libc::geteuid() }
}

/// The longest file that this process may write. Past it the kernel sends a signal that ends the
/// process, so it is asked for first.
pub(super) fn file_len_max() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: `limit` is valid for writes for the duration of the call. If it fails, the limit above
    // stands.
    unsafe {
        libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit);
    }
    limit.rlim_cur
}
