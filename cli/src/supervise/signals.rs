//! Signals that are caught in order to be passed on. Owns which these are and how to wait for them;
//! never decides where they go.
//!
//! A signal that was ignored when this process started stays ignored, here and in the command, as
//! `nohup` and background jobs of scripts mean it.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::ptr;
use std::time::Duration;

use libc::c_int;
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

/// What is passed on, beside the real-time signals. Not among them: what can't be caught (KILL, STOP);
/// what the kernel raises for a fault of this process itself (ILL, TRAP, BUS, FPE, SEGV, SYS, PIPE,
/// XFSZ); what is about this process's own children and terminal (CHLD, TTIN, TTOU).
const PASSED_ON: [c_int; 18] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGABRT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGSTKFLT,
    libc::SIGTSTP,
    libc::SIGURG,
    libc::SIGXCPU,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGWINCH,
    libc::SIGIO,
    libc::SIGPWR,
    // Last: of a stop and a continuation that came together, the continuation wins.
    libc::SIGCONT,
];

/// The signals caught, for as long as it lives.
#[derive(Debug)]
pub(super) struct Signals {
    delivery: SignalDelivery<UnixStream, SignalOnly>,
    caught: Vec<c_int>,
    are_children_ignored: bool,
}

impl Signals {
    /// Catches every signal that is to be passed on, and the one that tells of children.
    pub(super) fn catch() -> io::Result<Self> {
        let are_children_ignored = is_ignored(libc::SIGCHLD)?;
        let mut caught = vec![libc::SIGCHLD];
        for signal in PASSED_ON
            .into_iter()
            .chain(libc::SIGRTMIN()..=libc::SIGRTMAX())
        {
            if !is_ignored(signal)? {
                caught.push(signal);
            }
        }
        let (read, write) = UnixStream::pair()?;
        let delivery = SignalDelivery::with_pipe(read, write, SignalOnly, &caught)?;
        Ok(Self {
            delivery,
            caught,
            are_children_ignored,
        })
    }

    /// What undoes the catching in a forked child.
    pub(super) fn undo(&self) -> Undo {
        Undo {
            caught: self.caught.clone().into_boxed_slice(),
            are_children_ignored: self.are_children_ignored,
        }
    }

    /// The signals to pass on that came since the last call, each once however often it came, and a
    /// continuation last.
    pub(super) fn take(&mut self) -> Vec<c_int> {
        let mut signals: Vec<c_int> = self.delivery.pending().collect();
        signals.retain(|&signal| signal != libc::SIGCHLD);
        signals.sort_by_key(|&signal| signal == libc::SIGCONT);
        signals
    }

    /// Waits for a signal, for `timeout` at most.
    pub(super) fn wait(&self, timeout: Duration) {
        let timeout_ms = c_int::try_from(timeout.as_micros().div_ceil(1_000)).unwrap_or(c_int::MAX);
        poll([self.delivery.get_read().as_fd()], timeout_ms);
    }
}

/// Waits until one of these can be read or is closed at its other end; which are. None if a signal came first.
pub(crate) fn wait_readable<const N: usize>(files: [BorrowedFd<'_>; N]) -> [bool; N] {
    poll(files, -1)
}

fn poll<const N: usize>(files: [BorrowedFd<'_>; N], timeout_ms: c_int) -> [bool; N] {
    let mut entries = files.map(|file| libc::pollfd {
        fd: file.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: as many entries as is said, ours for the length of the call, whose descriptors are open. A
    // failure (EINTR) is a wait that ended early, and leaves the entries as they are.
    unsafe { libc::poll(entries.as_mut_ptr(), N as libc::nfds_t, timeout_ms) };
    entries.map(|entry| entry.revents != 0)
}

/// Undoes the catching of signals in a forked child, before it executes the command.
pub(super) struct Undo {
    caught: Box<[c_int]>,
    are_children_ignored: bool,
}

impl Undo {
    /// Gives every caught signal back what it had. Async-signal-safe.
    pub(super) fn apply(&self) {
        for &signal in &self.caught {
            let handler = if signal == libc::SIGCHLD && self.are_children_ignored {
                libc::SIG_IGN
            } else {
                libc::SIG_DFL
            };
            set_handler(signal, handler);
        }
    }
}

/// Calls `action` with `signal` blocked in this thread. Async-signal-safe if `action` is.
pub(crate) fn with_blocked<T>(signal: c_int, action: impl FnOnce() -> T) -> T {
    let mut set = MaybeUninit::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` makes `set` valid, `pthread_sigmask` reads it and writes `before`; none can
    // fail with these arguments, and all are async-signal-safe.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr());
    }
    let result = action();
    // SAFETY: `before` was written above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    result
}

/// Stops this process and its group as the terminal would: by SIGTSTP, with its default action. Comes
/// back when it is continued; at once if nobody could continue it, for then the kernel doesn't stop it.
pub(super) fn stop_own_group() {
    let mut before = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: with no new action the call only writes `before`.
    let is_read = unsafe { libc::sigaction(libc::SIGTSTP, ptr::null(), before.as_mut_ptr()) } == 0;
    // SAFETY: written, if the call says so.
    let Some(before) = is_read.then(|| unsafe { before.assume_init() }) else {
        return;
    };
    set_handler(libc::SIGTSTP, libc::SIG_DFL);
    // SAFETY: no memory is involved. Group 0 is the caller's own.
    unsafe { libc::kill(0, libc::SIGTSTP) };
    // SAFETY: an action that this process had, read above.
    unsafe { libc::sigaction(libc::SIGTSTP, &raw const before, ptr::null_mut()) };
}

/// Sets a signal's action to the default or to none. Async-signal-safe.
fn set_handler(signal: c_int, handler: libc::sighandler_t) {
    // SAFETY: all zeros is a valid `sigaction`: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    // SAFETY: a valid action without a function; async-signal-safe.
    unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
}

/// Whether a signal is ignored.
pub(crate) fn is_ignored(signal: c_int) -> io::Result<bool> {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: with no new action the call only writes `action`.
    if unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it wrote.
    Ok(unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN)
}
