//! Children that are really forked, for the tests of what a fork does.

#![allow(dead_code, unreachable_pub)]

use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// How a child is made.
#[derive(Clone, Copy, Debug)]
pub enum Fork {
    /// By the C library, which runs the handlers.
    Libc,
    /// By the system call alone: no handler runs.
    Raw,
}

pub const BOTH: [Fork; 2] = [Fork::Libc, Fork::Raw];

/// Runs `in_child` in a forked child, which may do only what is async-signal-safe (other threads of
/// the test hold locks that nobody will release there), and returns its pid.
pub fn start_child(fork: Fork, in_child: impl FnOnce() -> i32) -> libc::pid_t {
    // SAFETY: the child only runs `in_child`, which keeps to the rule above, and exits.
    let pid = unsafe {
        match fork {
            Fork::Libc => libc::fork(),
            Fork::Raw => libc::pid_t::try_from(libc::syscall(
                libc::SYS_clone,
                libc::SIGCHLD,
                0_usize,
                0_usize,
                0_usize,
                0_usize,
            ))
            .unwrap_or(-1),
        }
    };
    assert!(pid >= 0, "{}", std::io::Error::last_os_error());
    if pid == 0 {
        let code = in_child();
        // SAFETY: ends the child without running what the parent registered.
        unsafe { libc::_exit(code) };
    }
    pid
}

/// The exit code of a child, or what killed it.
pub fn wait_for(pid: libc::pid_t) -> Result<i32, String> {
    let mut status = 0;
    loop {
        // SAFETY: writes one int.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        if waited == pid {
            break;
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(format!("waitpid: {error}"));
        }
    }
    if libc::WIFEXITED(status) {
        Ok(libc::WEXITSTATUS(status))
    } else {
        Err(format!("killed by signal {}", libc::WTERMSIG(status)))
    }
}

/// Runs `in_child` in a forked child; 0 is right, another number says which check failed.
#[track_caller]
pub fn check_in_child(fork: Fork, in_child: impl FnOnce() -> i32) {
    let outcome = wait_for(start_child(fork, in_child));
    assert_eq!(outcome, Ok(0), "in a child by {fork:?}");
}

/// Whether the number is an open descriptor. Async-signal-safe.
pub fn is_open(fd: RawFd) -> bool {
    // SAFETY: asks for flags; any number may be asked about.
    unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 }
}

/// Opens for reading and writing. Async-signal-safe.
pub fn open(path: &CStr) -> std::io::Result<OwnedFd> {
    // SAFETY: `path` ends in a zero byte.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: just opened and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Tries to take the whole file's OFD lock. Async-signal-safe.
pub fn try_lock(fd: RawFd) -> bool {
    let whole = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    // SAFETY: reads one flock.
    unsafe { libc::fcntl(fd, libc::F_OFD_SETLK, &raw const whole) == 0 }
}

/// A file and its path, as the calls above take it.
pub fn scratch_file(directory: &tempfile::TempDir) -> std::ffi::CString {
    let path = directory.path().join("locked");
    File::create(&path).expect("a scratch file");
    std::ffi::CString::new(path.to_str().expect("a plain path")).expect("no zero byte")
}

/// A pipe: what is read from, and what is written to.
pub fn pipe() -> (OwnedFd, OwnedFd) {
    let mut ends = [0; 2];
    // SAFETY: writes two descriptors.
    let made = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) };
    assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: both were just made and are nobody else's.
    unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) }
}

/// Blocks until a byte comes. (Don't wait for the pipe's end: children of other tests keep copies of
/// the writing side.) Async-signal-safe.
pub fn read_byte(fd: RawFd) -> bool {
    let mut byte = 0_u8;
    // SAFETY: writes one byte at most.
    unsafe { libc::read(fd, (&raw mut byte).cast(), 1) == 1 }
}

/// Async-signal-safe.
pub fn write_byte(fd: RawFd) -> bool {
    let byte = 1_u8;
    // SAFETY: reads one byte.
    unsafe { libc::write(fd, (&raw const byte).cast(), 1) == 1 }
}
