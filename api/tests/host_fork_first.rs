//! What a process opens first while another of its threads forks. A test program by itself: its handler has to be
//! registered before the library's, and run after it.

#![cfg(target_os = "linux")]

mod support;

use std::sync::atomic::{AtomicBool, Ordering};

use sprag::Space;
use sprag::host::fork;
use support::{Fork, check_in_child};

static IS_TO_WAIT: AtomicBool = AtomicBool::new(false);
static IS_FORKING: AtomicBool = AtomicBool::new(false);
static IS_RENEWED: AtomicBool = AtomicBool::new(false);

extern "C" fn fork_slowly() {
    if IS_TO_WAIT.load(Ordering::SeqCst) {
        IS_FORKING.store(true, Ordering::SeqCst);
        while !IS_RENEWED.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_fork_under_way_at_the_first_opening_ends_as_any_other() {
    // SAFETY: the handler lives as long as the program, and does not unwind.
    let failure = unsafe { libc::pthread_atfork(Some(fork_slowly), None, None) };
    assert_eq!(failure, 0);
    fork::renew().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let url = format!("shm:{}", directory.path().join("region").display());
    check_in_child(Fork::Libc, || {
        IS_TO_WAIT.store(true, Ordering::SeqCst);
        let forks = std::thread::spawn(|| {
            // SAFETY: the child does nothing but end; its parent waits for it.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    libc::_exit(0);
                }
                libc::waitpid(child, std::ptr::null_mut(), 0);
            }
        });
        while !IS_FORKING.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        if fork::renew().is_err() {
            return 1;
        }
        IS_RENEWED.store(true, Ordering::SeqCst);
        if forks.join().is_err() {
            return 2;
        }
        IS_TO_WAIT.store(false, Ordering::SeqCst);
        // Which waits as long as a fork is under way.
        if Space::open(&url).is_err() { 3 } else { 0 }
    });
}
