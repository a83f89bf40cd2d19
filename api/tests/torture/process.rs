//! Processes: forked from a process with one thread, waited for, never outliving the test.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

/// Set in the process that runs one test alone.
const ALONE: &str = "SPRAG_TORTURE_ALONE";
/// What that process exits with when its test held; a test that did not run exits with 0.
const HELD: i32 = 42;

/// Runs `body` in a process of its own, which has nothing open and one thread that forks. `test` is
/// the test's full name.
pub(crate) fn alone(test: &str, body: impl FnOnce()) {
    if std::env::var(ALONE).is_ok_and(|name| name == test) {
        body();
        std::process::exit(HELD);
    }
    let program = std::env::current_exe().expect("this program's path");
    let mut command = Command::new(program);
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(ALONE, test)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    // SAFETY: `prctl` is async-signal-safe and touches only the new process.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    let status = command.status().expect("the test's own process");
    assert_eq!(
        status.code(),
        Some(HELD),
        "{test} failed in its own process ({status}); what it said stands above"
    );
}

/// How a process ended, or that it stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It exited with this code.
    Exited(i32),
    /// This signal killed it.
    Killed(i32),
    /// It is stopped.
    Stopped,
}

/// Forks a child that runs `body` and exits: with 0, or with 101 if it panicked. It is killed when
/// its parent dies.
pub(crate) fn fork(body: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the process that forks has one thread that does anything, so the child may do all that
    // its parent may.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "{}", std::io::Error::last_os_error());
    if pid == 0 {
        // SAFETY: takes no pointers.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        // SAFETY: ends the child without running what the parent registered.
        unsafe { libc::_exit(if outcome.is_ok() { 0 } else { 101 }) };
    }
    pid
}

/// Waits until `pid` ends or stops.
pub(crate) fn wait(pid: libc::pid_t) -> Fate {
    wait_with(pid, 0).expect("it ended or stopped").1
}

/// What is known of any child that ended or stopped (`pid` -1) right now.
pub(crate) fn poll(pid: libc::pid_t) -> Option<(libc::pid_t, Fate)> {
    wait_with(pid, libc::WNOHANG)
}

/// Waits until any child ends or stops.
pub(crate) fn wait_any() -> (libc::pid_t, Fate) {
    wait_with(-1, 0).expect("a child ended or stopped")
}

fn wait_with(pid: libc::pid_t, flags: i32) -> Option<(libc::pid_t, Fate)> {
    let mut status = 0;
    loop {
        // SAFETY: writes one int.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, flags | libc::WUNTRACED) };
        if waited == 0 {
            return None;
        }
        if waited > 0 {
            let fate = if libc::WIFEXITED(status) {
                Fate::Exited(libc::WEXITSTATUS(status))
            } else if libc::WIFSIGNALED(status) {
                Fate::Killed(libc::WTERMSIG(status))
            } else {
                Fate::Stopped
            };
            return Some((waited, fate));
        }
        let error = std::io::Error::last_os_error();
        assert_eq!(
            error.kind(),
            std::io::ErrorKind::Interrupted,
            "waitpid: {error}"
        );
    }
}

/// Sends a signal to a child that nobody has waited for yet.
pub(crate) fn signal(pid: libc::pid_t, signal: i32) {
    // Zero and below name groups of processes, and all of them: never what a test means.
    assert!(pid > 1, "{pid} is not a child");
    // SAFETY: takes no pointers.
    unsafe { libc::kill(pid, signal) };
}

/// Ends this process, and with it its children, unless it is called again within so many seconds: a
/// test that hangs is a test that failed.
pub(crate) fn hang_guard(seconds: u32) {
    // SAFETY: takes no pointers. Nobody handles the signal, so it ends the process.
    unsafe { libc::alarm(seconds) };
}

/// The boot clock, in nanoseconds: the same for all processes of the host.
pub(crate) fn now_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Words shared with every child forked from now on, all zero. Never unmapped.
pub(crate) fn shared_words(count: usize) -> &'static [AtomicU64] {
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing of ours.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            count * size_of::<AtomicU64>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(address, libc::MAP_FAILED, "a mapping for the journal");
    // SAFETY: mapped above for so many words, zeroed, aligned to a page, never unmapped; atomics may
    // be shared with other processes.
    unsafe { std::slice::from_raw_parts(address.cast::<AtomicU64>(), count) }
}

/// Runs `run` for each of `0..count`, by `lanes` processes at a time. Each has a hang guard that it
/// winds up anew before each number; what one was at when it failed is told by `describe`.
pub(crate) fn in_lanes(
    lanes: usize,
    count: usize,
    describe: impl Fn(usize) -> String,
    lane: impl Fn(&mut dyn FnMut() -> Option<usize>),
) {
    let words = shared_words(lanes + 1);
    let mut pids = Vec::new();
    for number in 0..lanes {
        pids.push(fork(|| {
            let mut next = || {
                hang_guard(60);
                // Relaxed: each number is given out once, and nothing else hangs on it.
                let at = words[lanes].fetch_add(1, Ordering::Relaxed);
                words[number].store(at, Ordering::Relaxed);
                usize::try_from(at).ok().filter(|&at| at < count)
            };
            let outcome =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| lane(&mut next)));
            if let Err(panic) = outcome {
                // One failure is enough: the others stop after what they are at.
                words[lanes].store(u64::MAX / 2, Ordering::Relaxed);
                std::panic::resume_unwind(panic);
            }
        }));
    }
    let mut failures = Vec::new();
    for (number, pid) in pids.into_iter().enumerate() {
        let fate = wait(pid);
        if fate != Fate::Exited(0) {
            let at = words[number].load(Ordering::Relaxed);
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            failures.push(format!("{fate:?} at {}", describe(at)));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("; "));
}
