//! The controlling terminal and which process group is in its foreground.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

use libc::pid_t;

use super::signals;

/// The terminal that controls this process's session.
#[derive(Debug)]
pub(super) struct Terminal {
    file: File,
    own_group: pid_t,
}

impl Terminal {
    /// The terminal, if the session has one.
    pub(super) fn controlling() -> Option<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOCTTY)
            .open("/dev/tty")
            .ok()
            .filter(File::is_terminal)?;
        Some(Self {
            file,
            // SAFETY: takes nothing and can't fail.
            own_group: unsafe { libc::getpgrp() },
        })
    }

    /// Its descriptor, which is closed when a program is executed.
    pub(super) fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Whether a command should be in the foreground from the start: we are, and nobody is there with
    /// us. A pipeline's other members, or the script that we are a line of, must get the keyboard's
    /// signals too; a command of theirs gets the terminal when it asks for it.
    pub(super) fn is_all_ours(&self) -> bool {
        let own_pid = pid_t::try_from(std::process::id()).ok();
        self.is_ours()
            && own_pid == Some(self.own_group)
            && !is_pipe(&io::stdin())
            && !is_pipe(&io::stdout())
    }

    /// Whether our own group is in the foreground.
    pub(super) fn is_ours(&self) -> bool {
        self.is_of(self.own_group)
    }

    /// Whether this group is in the foreground.
    pub(super) fn is_of(&self, group: pid_t) -> bool {
        // SAFETY: no memory is involved; -1 is no group's number.
        unsafe { libc::tcgetpgrp(self.fd()) == group }
    }

    /// Puts a group in the foreground if ours is there.
    pub(super) fn hand_to(&self, group: pid_t) {
        if self.is_ours() {
            set_foreground(self.fd(), group);
        }
    }

    /// Puts our own group in the foreground, whoever is there.
    pub(super) fn take_back(&self) {
        set_foreground(self.fd(), self.own_group);
    }

    /// Puts our own group in the foreground if `group` is there; whether it was.
    pub(super) fn take_from(&self, group: pid_t) -> bool {
        let was_there = self.is_of(group);
        if was_there {
            self.take_back();
        }
        was_there
    }
}

/// Puts a group in the foreground of a terminal, from the background too. A failure leaves things as
/// they are: the terminal is gone, or the group is. Async-signal-safe.
pub(super) fn set_foreground(terminal: RawFd, group: pid_t) {
    // SAFETY: no memory is involved. In the background it would stop us, were the signal not blocked.
    signals::with_blocked(libc::SIGTTOU, || unsafe {
        libc::tcsetpgrp(terminal, group)
    });
}

fn is_pipe(stream: &impl AsRawFd) -> bool {
    std::fs::metadata(format!("/proc/self/fd/{}", stream.as_raw_fd()))
        .is_ok_and(|metadata| metadata.file_type().is_fifo())
}
