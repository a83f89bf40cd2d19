//! What a forked child has of its parent: nothing.

#![cfg(target_os = "linux")]

mod support;

use sprag::host::fork::{Origin, fork_id, renew};
use sprag::host::process_fd::ProcessFd;
use sprag::{Error, Space};
use std::cell::Cell;
use std::os::fd::AsRawFd;
use support::{BOTH, Fork, check_in_child, is_open, open, read_byte, try_lock, write_byte};

#[test]
fn a_forked_child_has_no_fork_id_until_it_renews_and_then_one_that_no_ancestor_had() {
    let parent = Origin::here().expect("this process");
    assert!(parent.is_this_process());
    assert_eq!(parent.id(), fork_id());
    for fork in BOTH {
        check_in_child(fork, || {
            if parent.is_this_process() || fork_id() != 0 {
                return 1;
            }
            let Ok(child) = Origin::here() else { return 2 };
            if child.id() == 0 || child.id() == parent.id() || !child.is_this_process() {
                return 3;
            }
            if renew().ok() != Some(child.id()) || parent.is_this_process() {
                return 4;
            }
            let grandchild = support::start_child(fork, || {
                if child.is_this_process() || fork_id() != 0 {
                    return 10;
                }
                match renew() {
                    Ok(id) if id != child.id() && id != parent.id() => 0,
                    _ => 11,
                }
            });
            support::wait_for(grandchild).unwrap_or(5)
        });
        assert!(parent.is_this_process(), "the parent is what it was");
    }
}

#[test]
fn threads_are_the_process_that_they_run_in() {
    let here = Origin::here().expect("this process");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                assert!(here.is_this_process());
                assert_eq!(renew().expect("renewed already"), here.id());
            });
        }
    });
}

#[test]
fn a_forked_child_closes_the_descriptors_of_its_parent_and_keeps_the_others() {
    let directory = tempfile::tempdir().expect("a scratch directory");
    let path = support::scratch_file(&directory);
    // More than one chunk of the list, and some dropped again in the middle.
    let mut listed: Vec<ProcessFd> = (0..150)
        .map(|_| ProcessFd::open_with(|| open(&path)).expect("listed"))
        .collect();
    for index in [140, 99, 64, 63, 5, 0] {
        let number = listed[index].as_raw_fd();
        let inode_before = std::fs::read_link(format!("/proc/self/fd/{number}"));
        assert!(inode_before.is_ok());
        drop(listed.swap_remove(index));
    }
    let other = open(&path).expect("not listed");
    check_in_child(Fork::Libc, || {
        if listed.iter().any(|fd| is_open(fd.as_raw_fd())) {
            return 1;
        }
        i32::from(!is_open(other.as_raw_fd())) * 2
    });
    check_in_child(Fork::Raw, || {
        // No handler ran; opening something of its own closes them.
        if !listed.iter().all(|fd| is_open(fd.as_raw_fd())) {
            return 1;
        }
        if renew().is_err() || listed.iter().any(|fd| is_open(fd.as_raw_fd())) {
            return 2;
        }
        i32::from(!is_open(other.as_raw_fd())) * 3
    });
    assert!(
        listed.iter().all(|fd| is_open(fd.as_raw_fd())),
        "the parent keeps its own"
    );
}

#[test]
fn the_lock_of_a_dead_parent_is_free_while_its_child_lives() {
    let directory = tempfile::tempdir().expect("a scratch directory");
    let path = support::scratch_file(&directory);
    let (child_waits, parent_tells) = support::pipe();
    let (we_wait, child_tells) = support::pipe();
    check_in_child(Fork::Libc, || {
        let Ok(alive) = ProcessFd::open_with(|| open(&path)) else {
            return 1;
        };
        if !try_lock(alive.as_raw_fd()) {
            return 2;
        }
        support::start_child(Fork::Libc, || {
            // Outlives its parent, until the test writes to the pipe.
            let has_told = write_byte(child_tells.as_raw_fd());
            read_byte(child_waits.as_raw_fd());
            i32::from(!has_told)
        });
        // Exits with the lock held and nothing dropped, as if killed.
        std::mem::forget(alive);
        0
    });
    assert!(read_byte(we_wait.as_raw_fd()), "the grandchild runs");
    let fresh = open(&path).expect("a second descriptor");
    assert!(
        try_lock(fresh.as_raw_fd()),
        "a child that outlived its parent keeps the parent's lock"
    );
    assert!(write_byte(parent_tells.as_raw_fd()));
}

#[test]
fn dropping_a_copy_in_a_child_neither_closes_a_stranger_nor_frees_the_parents_lock() {
    let directory = tempfile::tempdir().expect("a scratch directory");
    let path = support::scratch_file(&directory);
    let alive = ProcessFd::open_with(|| open(&path)).expect("listed");
    let number = alive.as_raw_fd();
    assert!(try_lock(number));
    let copy = || {
        // SAFETY: the child's copy of the value, which nothing else in the child drops: it ends by _exit.
        unsafe { std::ptr::read(&raw const alive) }
    };
    for fork in BOTH {
        check_in_child(fork, || {
            // The number has become another file's.
            // SAFETY: replaces whatever has the number in this child.
            if unsafe { libc::dup2(libc::STDERR_FILENO, number) } != number {
                return 1;
            }
            drop(copy());
            i32::from(!is_open(number)) * 2
        });
        check_in_child(fork, || {
            drop(copy());
            let Ok(fresh) = open(&path) else { return 3 };
            i32::from(try_lock(fresh.as_raw_fd())) * 4
        });
        check_in_child(fork, || {
            // SAFETY: as above.
            if unsafe { libc::dup2(libc::STDERR_FILENO, number) } != number || renew().is_err() {
                return 5;
            }
            i32::from(!is_open(number)) * 6
        });
    }
    let fresh = open(&path).expect("a second descriptor");
    assert!(!try_lock(fresh.as_raw_fd()), "the parent still holds it");
    drop(alive);
    assert!(try_lock(fresh.as_raw_fd()), "dropping it lets go");
}

#[test]
fn a_fork_between_open_and_listing_makes_the_parent_open_again() {
    let directory = tempfile::tempdir().expect("a scratch directory");
    let path = support::scratch_file(&directory);
    let (child_waits, parent_tells) = support::pipe();
    let calls = Cell::new(0);
    let child = Cell::new(0);
    let alive = ProcessFd::open_with(|| {
        let fd = open(&path)?;
        calls.set(calls.get() + 1);
        if calls.get() == 1 {
            // As another thread might: the child has a copy that nobody has listed.
            child.set(support::start_child(Fork::Libc, || {
                read_byte(child_waits.as_raw_fd());
                i32::from(!is_open(fd.as_raw_fd()))
            }));
        }
        Ok(fd)
    })
    .expect("listed");
    // Other tests of this process fork too, each of which costs another try.
    assert!(calls.get() >= 2, "opened {} times", calls.get());
    assert!(try_lock(alive.as_raw_fd()));
    drop(alive);
    let fresh = open(&path).expect("a second descriptor");
    assert!(
        try_lock(fresh.as_raw_fd()),
        "the child's stray copy holds no lock"
    );
    assert!(write_byte(parent_tells.as_raw_fd()));
    assert_eq!(support::wait_for(child.get()), Ok(0));
}

#[test]
fn dropping_it_lets_go_of_the_lock_although_a_child_still_has_a_copy() {
    let directory = tempfile::tempdir().expect("a scratch directory");
    let path = support::scratch_file(&directory);
    let (child_waits, parent_tells) = support::pipe();
    let alive = ProcessFd::open_with(|| open(&path)).expect("listed");
    assert!(try_lock(alive.as_raw_fd()));
    // By the system call alone, so that nothing closes the copy.
    let child = support::start_child(Fork::Raw, || {
        read_byte(child_waits.as_raw_fd());
        i32::from(!is_open(alive.as_raw_fd()))
    });
    drop(alive);
    let fresh = open(&path).expect("a second descriptor");
    assert!(try_lock(fresh.as_raw_fd()));
    assert!(write_byte(parent_tells.as_raw_fd()));
    assert_eq!(support::wait_for(child), Ok(0));
}

#[test]
fn an_open_that_fails_says_why() {
    let error = ProcessFd::open_with(|| open(c"/no/such/file")).expect_err("no such file");
    assert!(error.to_string().contains("No such file"), "{error}");
}

// property 15
#[test]
fn a_batch_whose_callback_forks_goes_on_in_the_parent_only() {
    let space = Space::open("mem:").unwrap();
    let limiter = space.limiter("l", "10/hour").unwrap();
    let (mut decided, mut child) = (0, None);
    let result = limiter.check_batch(&["a", "b", "c", "d"], 1, |_, _| {
        decided += 1;
        if decided == 2 {
            // SAFETY: the child calls nothing but what is said to work in one, and `_exit`.
            child = Some(unsafe { libc::fork() });
        }
    });
    let child = child.expect("the callback ran");
    if child == 0 {
        let is_told = matches!(result, Err(Error::Forked)) && decided == 2;
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!is_told)) };
    }
    result.unwrap();
    assert_eq!(decided, 4);
    assert_eq!(support::wait_for(child), Ok(0));
}

// property 15
#[test]
fn a_forked_child_shares_no_lock_and_has_no_permits() {
    let space = Space::open("mem:").unwrap();
    let (lock, semaphore) = (space.lock("a").unwrap(), space.semaphore("s", 2).unwrap());
    let owner = space.owner();
    let owned = owner.lock("b").unwrap().acquire_shared().unwrap();
    for fork in BOTH {
        let (mut share, mut permits) = (
            Some(lock.acquire_shared().unwrap()),
            Some(semaphore.acquire(1).unwrap()),
        );
        check_in_child(fork, || {
            let (Some(mut share), Some(mut permits)) = (share.take(), permits.take()) else {
                return 1;
            };
            let forked = |result: Result<(), Error>| matches!(result, Err(Error::Forked));
            let all = [
                forked(lock.try_acquire_shared().map(drop)),
                forked(lock.acquire_shared().map(drop)),
                forked(semaphore.try_acquire(1).map(drop)),
                forked(semaphore.acquire(1).map(drop)),
                forked(semaphore.release_token(1)),
                forked(semaphore.renew_token(1)),
                forked(semaphore.adopt_token(1).map(drop)),
                forked(share.upgrade()),
                forked(share.downgrade()),
                forked(share.renew()),
                forked(permits.renew()),
                forked(owned.upgrade()),
                forked(owned.downgrade()),
                forked(space.semaphores("").map(drop)),
                forked(share.release()),
                forked(permits.release()),
            ];
            all.iter()
                .position(|is_told| !is_told)
                .map_or(0, |at| 10 + i32::try_from(at).unwrap_or(0))
        });
        assert!(share.as_ref().is_some_and(sprag::Hold::is_held));
        assert!(permits.as_ref().is_some_and(sprag::Hold::is_held));
    }
}

// property 15
#[test]
fn a_forked_child_has_no_limits_to_take_from_or_to_change() {
    let space = Space::open("mem:").unwrap();
    let limiter = space.limiter("l", "5/hour").unwrap();
    let joint = space.joint_limiter("j", ["5/hour", "9/day"]).unwrap();
    let uploads = space.concurrency("c", 2).unwrap();
    let ann = uploads.key("ann").unwrap();
    let held = ann.acquire(1).unwrap();
    for fork in BOTH {
        check_in_child(fork, || {
            let forked = |result: Result<(), Error>| matches!(result, Err(Error::Forked));
            let all = [
                forked(space.metrics().map(drop)),
                forked(space.key_chunk_usage().map(drop)),
                forked(limiter.check("k", 1).map(drop)),
                forked(limiter.peek("k").map(drop)),
                forked(limiter.set_override("k", "1/hour")),
                forked(limiter.clear_override("k").map(drop)),
                forked(limiter.override_of("k").map(drop)),
                forked(space.find_limiter("l").map(drop)),
                forked(space.overrides("").map(drop)),
                forked(space.check_all(&[(&limiter, "k", 1)]).map(drop)),
                forked(joint.check("k", 1).map(drop)),
                forked(joint.peek("k").map(drop)),
                forked(space.joint_limiter("j", ["5/hour", "9/day"]).map(drop)),
                forked(space.joint_limiters("").map(drop)),
                forked(space.concurrency("c", 2).map(drop)),
                forked(space.concurrency_updated("c", 3).map(drop)),
                forked(space.find_concurrency("c").map(drop)),
                forked(space.concurrency_limiters("").map(drop)),
                forked(uploads.permits().map(drop)),
                forked(ann.try_acquire(1).map(drop)),
                forked(ann.peek().map(drop)),
                forked(ann.release_token(held.token())),
            ];
            all.iter()
                .position(|is_told| !is_told)
                .map_or(0, |at| 10 + i32::try_from(at).unwrap_or(0))
        });
    }
    assert!(held.is_held() && ann.try_acquire(1).unwrap().is_some());
    assert_eq!(limiter.peek("k").unwrap().remaining(), 5);
    assert_eq!(uploads.permits().unwrap(), 2);
}
