//! Counts the atomic steps of the calling thread and acts at a chosen one: for crash and stop tests.
//!
//! A *step* is the instant before one atomic access of the engine. A test arms the thread with a
//! step number and a signal; when that step is reached the process sends the signal to itself, so
//! that it dies (`SIGKILL`) or freezes (`SIGSTOP`) exactly between two accesses. Or the thread panics there.

use std::cell::Cell;

/// What is done at the chosen step.
#[derive(Clone, Copy)]
enum Act {
    Signal(i32),
    Panic,
}

thread_local! {
    static TAKEN: Cell<u64> = const { Cell::new(0) };
    static ARMED: Cell<Option<(u64, Act)>> = const { Cell::new(None) };
}

/// Counts from zero again and, if `at` is given, sends that signal to the process before step
/// number `at` (counting from 1) of this thread.
pub fn arm(at: Option<(u64, i32)>) {
    TAKEN.set(0);
    ARMED.set(at.map(|(step, signal)| (step, Act::Signal(signal))));
}

/// Counts from zero again, and has this thread panic before step number `at` (counting from 1), once.
pub fn arm_panic(at: u64) {
    TAKEN.set(0);
    ARMED.set(Some((at, Act::Panic)));
}

/// Disarms the thread and returns how many steps it took since [`arm`].
pub fn disarm() -> u64 {
    ARMED.set(None);
    TAKEN.get()
}

#[inline]
pub(super) fn step() {
    let taken = TAKEN.get() + 1;
    TAKEN.set(taken);
    if let Some((at, act)) = ARMED.get()
        && at == taken
    {
        // Before a panic: destructors take steps as well.
        ARMED.set(None);
        match act {
            // SAFETY: `kill` and `getpid` take no pointers; sending a signal to oneself is the intent.
            Act::Signal(signal) => unsafe {
                libc::kill(libc::getpid(), signal);
            },
            Act::Panic => panic!("as armed, before step {at}"),
        }
    }
}
