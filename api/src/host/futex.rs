//! Sleeping on a 32-bit word, always for a bounded time.
//!
//! Nothing here decides anything: a waiter looks at the word again, whatever it was told.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Who may be on the other side of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Threads of this process only. Cheaper: the kernel needn't find out what is mapped there.
    Process,
    /// Processes that map the same file.
    Host,
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Somebody woke this waiter, or the kernel says so.
    Woken,
    /// The time was up.
    TimedOut,
    /// The word didn't hold the expected value, so there was nothing to wait for.
    Mismatch,
    /// A signal, or a kernel that refuses the call (then after a short sleep, so that loops don't spin).
    Interrupted,
}

/// The longest single wait. Longer ones end with [`Woken::TimedOut`] at this: callers look again in any case.
const WAIT_MAX: Duration = Duration::from_hours(1);

/// Sleeps until woken, while `word` holds `expected`, for `timeout` at most.
///
/// The time runs on the host's monotonic clock, which stands still in suspend.
pub fn wait(word: &AtomicU32, expected: u32, timeout: Duration, reach: Reach) -> Woken {
    system::wait(word, expected, timeout.min(WAIT_MAX), reach)
}

/// Wakes every waiter and returns how many. Costs a kernel call even if nobody waits.
pub fn wake_all(word: &AtomicU32, reach: Reach) -> u32 {
    system::wake_all(word, reach)
}

#[cfg(target_os = "linux")]
mod system {
    use super::{Reach, Woken};
    use std::io;
    use std::ptr;
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;

    /// What a kernel that refuses futexes costs a waiter instead.
    const REFUSED_SLEEP: Duration = Duration::from_millis(1);

    pub(super) fn wait(word: &AtomicU32, expected: u32, timeout: Duration, reach: Reach) -> Woken {
        let timespec = libc::timespec {
            // At most WAIT_MAX, so that it fits any time_t.
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // SAFETY: `word` is aligned and borrowed for the length of the call, the kernel only reads
        // it, and reads one timespec.
        let outcome = unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT | flag(reach),
                expected,
                &raw const timespec,
                ptr::null::<u32>(),
                0_u32,
            )
        };
        if outcome == 0 {
            return Woken::Woken;
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::ETIMEDOUT) => Woken::TimedOut,
            Some(libc::EAGAIN) => Woken::Mismatch,
            Some(libc::EINTR) => Woken::Interrupted,
            _ => {
                std::thread::sleep(timeout.min(REFUSED_SLEEP));
                Woken::Interrupted
            }
        }
    }

    pub(super) fn wake_all(word: &AtomicU32, reach: Reach) -> u32 {
        // SAFETY: FUTEX_WAKE uses the address as a name and doesn't touch what lies there.
        let woken = unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAKE | flag(reach),
                i32::MAX,
            )
        };
        u32::try_from(woken).unwrap_or(0)
    }

    fn flag(reach: Reach) -> libc::c_int {
        match reach {
            Reach::Process => libc::FUTEX_PRIVATE_FLAG,
            Reach::Host => 0,
        }
    }
}

/// Waiters look at the word now and then; nobody can be woken.
#[cfg(not(target_os = "linux"))]
mod system {
    use super::{Reach, Woken};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::{Duration, Instant};

    const FIRST_SLEEP: Duration = Duration::from_micros(50);
    const LAST_SLEEP: Duration = Duration::from_millis(1);

    pub(super) fn wait(word: &AtomicU32, expected: u32, timeout: Duration, _: Reach) -> Woken {
        let start = Instant::now();
        let mut sleep = FIRST_SLEEP;
        if word.load(Ordering::Acquire) != expected {
            return Woken::Mismatch;
        }
        loop {
            let rest = timeout.saturating_sub(start.elapsed());
            if rest.is_zero() {
                return Woken::TimedOut;
            }
            std::thread::sleep(sleep.min(rest));
            sleep = (sleep * 2).min(LAST_SLEEP);
            if word.load(Ordering::Acquire) != expected {
                return Woken::Woken;
            }
        }
    }

    pub(super) fn wake_all(_: &AtomicU32, _: Reach) -> u32 {
        0
    }
}
