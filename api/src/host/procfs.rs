//! Small kernel files, read without allocating: forked children and clock renewals read them too.

use std::ffi::CStr;
use std::mem::MaybeUninit;

/// The file's first bytes, as many as fit; None if it can't be read, whatever the reason.
pub(crate) fn read<'a>(path: &CStr, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    // SAFETY: `path` ends in a zero byte; open keeps no pointer.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if fd < 0 {
        return None;
    }
    let mut filled = 0;
    let is_whole = loop {
        let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) else {
            break true;
        };
        // SAFETY: `rest` is writable for its length, and `fd` is open.
        let got = unsafe { libc::read(fd, rest.as_mut_ptr().cast(), rest.len()) };
        match usize::try_from(got) {
            Ok(0) => break true,
            Ok(got) => filled += got,
            Err(_) if interrupted() => {}
            Err(_) => break false,
        }
    };
    // SAFETY: `fd` was opened above and handed to nobody.
    unsafe { libc::close(fd) };
    is_whole.then(|| &buffer[..filled])
}

/// The inode that `path` leads to (links followed, so of the namespace behind a `/proc/*/ns` entry); 0 if there is
/// none.
pub(crate) fn inode(path: &CStr) -> u64 {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `path` ends in a zero byte and `status` has room for what stat writes.
    if unsafe { libc::stat(path.as_ptr(), status.as_mut_ptr()) } != 0 {
        return 0;
    }
    // SAFETY: stat returned 0, so it has written all of it.
    unsafe { status.assume_init() }.st_ino
}

fn interrupted() -> bool {
    std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
}
