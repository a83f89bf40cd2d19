//! The command's process: how it is started, looked at, signalled and waited for.

use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::{self, ChildStdout, Command, ExitStatus, Stdio};

use libc::{c_int, pid_t};

use super::signals::Undo;
use super::terminal;

/// A command that was started and not yet waited for, in a process group of its own.
#[derive(Debug)]
pub(super) struct Child {
    process: process::Child,
    group: pid_t,
}

/// What became of a command since it was last looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing.
    None,
    /// A signal stopped it.
    Stopped(c_int),
    /// It goes on after a stop.
    Continued,
    /// It ended, and keeps its process id until it is waited for.
    Ended,
}

impl Child {
    /// Starts `command` with the variables `exports`: with the signals as they were before we caught
    /// any, in the foreground of the terminal `foreground_of` if one is given, and with us as the
    /// parent without which it is killed.
    ///
    /// The kernel watches the *thread* that starts it, so this must be one that lives as long as the
    /// process: the main thread. It forgets the wish when the command is one that gains privileges
    /// (set-user-id, or with capabilities), and it means the command alone, not what that started.
    pub(super) fn start(
        command: &[OsString],
        exports: &[(&str, OsString)],
        stdout: Stdio,
        undo: Undo,
        foreground_of: Option<RawFd>,
    ) -> io::Result<Self> {
        let [program, args @ ..] = command else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let parent = process::id();
        let mut builder = Command::new(program);
        builder
            .args(args)
            .envs(exports.iter().map(|(name, value)| (name, value)))
            .stdout(stdout)
            .process_group(0);
        let before_exec = move || {
            die_with(parent)?;
            // Before the terminal is the child's, so that no key pressed is lost in a handler.
            undo.apply();
            if let Some(terminal) = foreground_of {
                // SAFETY: takes nothing and can't fail.
                terminal::set_foreground(terminal, unsafe { libc::getpid() });
            }
            Ok(())
        };
        // SAFETY: the closure runs in the forked child of a process that may have threads, where only
        // what is async-signal-safe may be done: it makes system calls and touches its own captures;
        // it allocates nothing, takes no lock and doesn't unwind.
        unsafe { builder.pre_exec(before_exec) };
        let process = builder.spawn()?;
        let group = pid_t::try_from(process.id()).map_err(io::Error::other)?;
        Ok(Self { process, group })
    }

    /// Our end of the pipe that is its standard output, once, if there is one.
    pub(super) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.process.stdout.take()
    }

    /// Its process group, which has its process id.
    pub(super) fn group(&self) -> pid_t {
        self.group
    }

    /// Sends a signal to its group; to itself if it has left that. What can't be signalled, because it
    /// has ended or has other privileges, is left alone.
    pub(super) fn signal(&self, signal: c_int) {
        // SAFETY: no memory is involved. The number is the child's own until it is waited for, which
        // takes `self`.
        unsafe {
            if libc::kill(-self.group, signal) != 0 {
                libc::kill(self.group, signal);
            }
        }
    }

    /// What became of it since the last call.
    pub(super) fn look(&self) -> io::Result<Change> {
        if self.wait_id(libc::WEXITED | libc::WNOWAIT)?.is_some() {
            return Ok(Change::Ended);
        }
        let changed = match self.wait_id(libc::WSTOPPED | libc::WCONTINUED) {
            // It has ended since, and nothing but that can be asked about it any more.
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(Change::Ended),
            changed => changed?,
        };
        Ok(match changed {
            None => Change::None,
            Some(info) if info.si_code == libc::CLD_STOPPED => {
                // SAFETY: `waitid` filled in the fields that go with this code.
                Change::Stopped(unsafe { info.si_status() })
            }
            Some(_) => Change::Continued,
        })
    }

    fn wait_id(&self, options: c_int) -> io::Result<Option<libc::siginfo_t>> {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        let options = options | libc::WNOHANG;
        // SAFETY: `info` is ours to write for the length of the call.
        let failure =
            unsafe { libc::waitid(libc::P_PID, self.process.id(), info.as_mut_ptr(), options) };
        if failure != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: all zeros is a valid value, and the kernel writes whole ones. With nothing to tell it
        // leaves the process id zero.
        unsafe {
            let info = info.assume_init();
            Ok((info.si_pid() != 0).then_some(info))
        }
    }

    /// Waits for its end. From then on its process id may be another's.
    pub(super) fn wait(mut self) -> io::Result<ExitStatus> {
        self.process.wait()
    }
}

/// Has this process killed when its parent dies, also if that happened already. For a forked child;
/// async-signal-safe.
///
/// By SIGKILL, since a lock is what it protects: it is free as soon as the parent is dead, and
/// whatever a handler would still tidy up would run beside the next holder.
fn die_with(parent: u32) -> io::Result<()> {
    // SAFETY: no memory is involved.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: takes nothing and can't fail.
    if u32::try_from(unsafe { libc::getppid() }) != Ok(parent) {
        // SAFETY: async-signal-safe; nobody is left who would want a code.
        unsafe { libc::_exit(libc::EXIT_FAILURE) };
    }
    Ok(())
}
