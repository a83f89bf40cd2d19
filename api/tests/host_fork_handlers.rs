//! What a program may do in fork handlers of its own. A test program by itself: its handler has to be registered before
//! the library's, which is when something is first opened.

#![cfg(target_os = "linux")]

mod support;

use sprag::Space;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use support::{Fork, check_in_child};

static URL: Mutex<String> = Mutex::new(String::new());
static OPENED: Mutex<Option<Space>> = Mutex::new(None);
static IS_TO_OPEN: AtomicBool = AtomicBool::new(false);

extern "C" fn open_in_child() {
    if IS_TO_OPEN.load(Ordering::Relaxed) {
        let url = URL.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = Space::open(&url).ok();
        *OPENED.lock().unwrap_or_else(PoisonError::into_inner) = opened;
    }
}

#[test]
fn what_a_childs_fork_handler_opens_is_the_childs_own() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("shm:{}", directory.path().join("region").display());
    // SAFETY: the handler lives as long as the program, and does not unwind.
    let failure = unsafe { libc::pthread_atfork(None, None, Some(open_in_child)) };
    assert_eq!(failure, 0);
    let parents = Space::open(&url).unwrap();
    let lock = parents.lock("a").unwrap();
    URL.lock().unwrap().push_str(&url);
    IS_TO_OPEN.store(true, Ordering::Relaxed);
    check_in_child(Fork::Libc, || {
        let Some(space) = OPENED.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return 1;
        };
        let Ok(lock) = space.lock("a") else { return 2 };
        let Ok(Some(hold)) = lock.try_acquire() else {
            return 3;
        };
        // Whoever takes it for dead takes its lock: another child, which has a session of its own.
        let mut status = 0;
        // SAFETY: as in `check_in_child`; waits for that child, and writes one int.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                let opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner).take();
                let lock = opened.as_ref().and_then(|space| space.lock("a").ok());
                let is_busy = lock.is_some_and(|lock| matches!(lock.try_acquire(), Ok(None)));
                libc::_exit(i32::from(!is_busy));
            }
            if libc::waitpid(child, &raw mut status, 0) != child || status != 0 {
                return 4;
            }
        }
        if hold.release().is_err() {
            return 5;
        }
        0
    });
    assert!(
        lock.try_acquire().unwrap().is_some(),
        "and the parent's stays the parent's"
    );
}
