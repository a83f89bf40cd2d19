//! Waits for a lock's turn. Owns what TERM, INT and HUP do meanwhile: the queue is left first, then the
//! signal does what it does to any program.
//!
//! The three are blocked while it waits and end the wait by a descriptor that tells of them, so that they
//! are still pending, and take effect, when they are let through again.

use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::Error;
use super::wanted::{Held, Wanted};
use crate::supervise::signals;
use crate::{clock, span};
use libc::c_int;

/// What ends a wait.
const ENDING: [c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// Waits for the turn for what is `wanted`, for at most `timeout`; `None` if it did not come.
pub(super) fn wait<'s>(
    wanted: &Wanted<'s>,
    timeout: Option<Duration>,
) -> Result<Option<Held<'s>>, Error> {
    let system = |source| Error::System {
        action: "wait for the lock",
        source,
    };
    let until_ns =
        timeout.map(|timeout| clock::boot_ns().saturating_add(span::nanoseconds(timeout)));
    // Before the future may start a thread, which must not be the one that a signal goes to.
    let ending = Ending::block().map_err(system)?;
    let (mut heard, bell) = UnixStream::pair().map_err(system)?;
    for end in [&heard, &bell] {
        end.set_nonblocking(true).map_err(system)?;
    }
    let waker = Waker::from(Arc::new(Bell(bell)));
    let mut turn = pin!(Some(wanted.acquire_async().map_err(Error::Space)?));
    loop {
        let Some(acquire) = turn.as_mut().as_pin_mut() else {
            return Ok(None);
        };
        if let Poll::Ready(hold) = acquire.poll(&mut Context::from_waker(&waker)) {
            let hold = hold.map_err(Error::Space)?;
            if ending.is_pending() {
                drop(hold);
                return Ok(None);
            }
            return Ok(Some(hold));
        }
        let left_ns = until_ns.map(|until_ns| until_ns.saturating_sub(clock::boot_ns()));
        if left_ns == Some(0) || ending.is_pending() {
            // Dropped, the future leaves the queue; then `ending` lets the signal through.
            turn.set(None);
            continue;
        }
        sleep([heard.as_raw_fd(), ending.fd()], left_ns);
        // However often it rang, and an error is no ring.
        while heard.read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
    }
}

/// Wakes the wait, from the thread of the space.
struct Bell(UnixStream);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        // Full, it has rung often enough.
        let _ = (&self.0).write(&[1]);
    }
}

/// The signals that end a wait, blocked for as long as it lives: but for those that were ignored or blocked
/// before.
struct Ending {
    descriptor: OwnedFd,
    before: libc::sigset_t,
}

impl Ending {
    fn block() -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `sigemptyset` makes `set` valid, and with no new mask the other call only writes
        // `before`; neither can fail with these arguments.
        let (mut set, before) = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), before.as_mut_ptr());
            (set.assume_init(), before.assume_init())
        };
        for signal in ENDING {
            // SAFETY: a valid set, and a signal's number.
            let is_blocked = unsafe { libc::sigismember(&raw const before, signal) } == 1;
            if !is_blocked && !signals::is_ignored(signal)? {
                // SAFETY: as above.
                unsafe { libc::sigaddset(&raw mut set, signal) };
            }
        }
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: -1 asks for a descriptor of its own; the set is valid.
        let fd = unsafe { libc::signalfd(-1, &raw const set, flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just made, and nobody else's.
        let descriptor = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: a valid set; can't fail with these arguments.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()) };
        Ok(Self { descriptor, before })
    }

    fn fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// Whether one of them came. It stays pending.
    fn is_pending(&self) -> bool {
        sleep([self.fd()], Some(0))
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        // SAFETY: a mask that this thread had. What is pending takes effect here, which may be the end.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut());
        }
    }
}

/// Waits until one of the descriptors can be read, for at most so long; whether one can.
fn sleep<const N: usize>(descriptors: [RawFd; N], timeout_ns: Option<u64>) -> bool {
    let mut ready = descriptors.map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    let timeout_ms = timeout_ns.map_or(-1, |timeout_ns| {
        c_int::try_from(timeout_ns.div_ceil(1_000_000)).unwrap_or(c_int::MAX)
    });
    // SAFETY: as many entries as told, ours for the length of the call. A failure (EINTR) is a wait
    // that ended early.
    let count = unsafe { libc::poll(ready.as_mut_ptr(), N as libc::nfds_t, timeout_ms) };
    count > 0
}
