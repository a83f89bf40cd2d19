//! Sleeping on a word, within a process and between two.

#![cfg(target_os = "linux")]

mod support;

use sprag::host::futex::{Reach, Woken, wait, wake_all};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Longer than any test waits when all is well.
const LONG: Duration = Duration::from_secs(30);

#[test]
fn a_wait_ends_at_once_on_another_value_and_in_time_on_the_same() {
    let word = AtomicU32::new(7);
    for reach in [Reach::Process, Reach::Host] {
        assert_eq!(wait(&word, 8, LONG, reach), Woken::Mismatch);
        assert_eq!(wait(&word, 8, Duration::MAX, reach), Woken::Mismatch);
        assert_eq!(wait(&word, 7, Duration::ZERO, reach), Woken::TimedOut);
        assert_eq!(
            wait(&word, 7, Duration::from_micros(1), reach),
            Woken::TimedOut
        );
        assert_eq!(wake_all(&word, reach), 0, "nobody waits");
    }
}

#[test]
fn a_waiter_in_another_process_is_woken_through_shared_memory() {
    // SAFETY: a new shared mapping, which the child inherits.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size_of::<AtomicU32>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(memory, libc::MAP_FAILED);
    // SAFETY: mapped above, zeroed, aligned to a page, and never unmapped.
    let word = unsafe { &*memory.cast::<AtomicU32>() };
    let child = support::start_child(support::Fork::Libc, || {
        // The value stays, so nothing but a wake ends this well.
        i32::from(wait(word, 0, LONG, Reach::Host) != Woken::Woken)
    });
    // Not there yet, or gone: a child that fails to be woken ends by itself and is found out below.
    while wake_all(word, Reach::Host) == 0 && is_running(child) {
        std::thread::yield_now();
    }
    assert_eq!(support::wait_for(child), Ok(0));
}

fn is_running(pid: libc::pid_t) -> bool {
    let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
    let id = libc::id_t::try_from(pid).expect("a pid");
    // SAFETY: writes one siginfo and leaves the child to be waited for.
    unsafe {
        libc::waitid(
            libc::P_PID,
            id,
            info.as_mut_ptr(),
            libc::WEXITED | libc::WNOHANG | libc::WNOWAIT,
        ) == 0
            && info.assume_init().si_pid() == 0
    }
}

#[test]
fn every_thread_that_waits_is_woken() {
    const WAITERS: u32 = 3;
    let word = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let waiters: Vec<_> = (0..WAITERS)
            .map(|_| scope.spawn(|| wait(&word, 0, LONG, Reach::Process)))
            .collect();
        let mut woken = 0;
        while woken < WAITERS && waiters.iter().any(|waiter| !waiter.is_finished()) {
            woken += wake_all(&word, Reach::Process);
        }
        assert_eq!(woken, WAITERS);
        for waiter in waiters {
            assert_eq!(waiter.join().expect("a waiter panicked"), Woken::Woken);
        }
        assert_eq!(word.load(Ordering::Relaxed), 0);
    });
}
