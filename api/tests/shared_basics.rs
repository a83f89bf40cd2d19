//! Spaces in a shared region, opened twice in one process: each opening is a session of its own.

#![cfg(target_os = "linux")]

use sprag::{Caps, Error, Hold, KeepAlive, Space};
use std::future::Future;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

#[test]
fn two_openings_of_one_region_exclude_each_other_and_share_limits() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("shm:{}", directory.path().join("r.sprag").display());
    let (a, b) = (Space::open(&url).unwrap(), Space::open(&url).unwrap());
    let hold = a.lock("x").unwrap().try_acquire().unwrap().unwrap();
    assert!(b.lock("x").unwrap().try_acquire().unwrap().is_none());
    let token = hold.token();
    // The space is gone with what it held.
    std::mem::forget(hold);
    drop(a);
    let taken = b
        .lock("x")
        .unwrap()
        .acquire_timeout(Duration::from_mins(1))
        .unwrap()
        .unwrap();
    assert_eq!(taken.token(), token + 1);
    let c = Space::open(&url).unwrap();
    let (one, two) = (
        b.limiter("l", "3/hour").unwrap(),
        c.limiter("l", "3/hour").unwrap(),
    );
    let admitted: Vec<bool> = [&one, &two, &one, &two]
        .map(|l| l.check("k", 1).unwrap().is_allowed())
        .into();
    assert_eq!(admitted, [true, true, true, false]);
    assert!(matches!(c.limiter("l", "4/hour"), Err(Error::Engine(_))));
}

#[test]
fn a_waiter_in_one_session_is_woken_by_a_release_in_another() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("shm:{}", directory.path().join("r.sprag").display());
    let (a, b) = (Space::open(&url).unwrap(), Space::open(&url).unwrap());
    let hold = a.lock("x").unwrap().acquire().unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| b.lock("x").unwrap().acquire().unwrap().token());
        while a.inspect("x").unwrap()[0].waiters == 0 {
            std::thread::yield_now();
        }
        let token = hold.token();
        hold.release().unwrap();
        assert_eq!(waiter.join().unwrap(), token + 1);
    });
}

// property 5
#[test]
fn a_hold_in_a_region_that_was_replaced_is_neither_renewed_nor_taken_over_by_its_token() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r.sprag");
    let space = Space::open(&format!("shm:{}", path.display())).unwrap();
    let lock = space.lock("x").unwrap();
    let token = lock.acquire().unwrap().detach().unwrap();
    lock.renew_token(token).unwrap();
    std::fs::remove_file(&path).unwrap();
    let is_replaced = |error| matches!(error, Error::Engine(sprag::EngineError::Replaced { .. }));
    assert!(lock.renew_token(token).is_err_and(is_replaced));
    assert!(lock.adopt_token(token).is_err_and(is_replaced));
}

/// Does `attempt` until it fails; a space may take some of its time to look whether all is in place.
fn until_refused<T>(mut attempt: impl FnMut() -> sprag::Result<T>) -> sprag::EngineError {
    loop {
        match attempt() {
            Ok(_) => std::thread::yield_now(),
            Err(Error::Engine(error)) => return error,
            Err(error) => panic!("{error}"),
        }
    }
}

// property 1
#[test]
fn nothing_is_told_of_a_region_that_was_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r.sprag");
    let space = Space::open(&format!("shm:{}", path.display())).unwrap();
    let limiter = space.limiter("l", "1/hour").unwrap();
    let joint = space.joint_limiter("j", ["1/second", "2/hour"]).unwrap();
    let key = space.concurrency("c", 1).unwrap().key("k").unwrap();
    let semaphore = space.semaphore("s", 1).unwrap();
    let (once, counter) = (space.once("o").unwrap(), space.counter("n").unwrap());
    std::fs::remove_file(&path).unwrap();
    let errors = [
        until_refused(|| limiter.peek("k")),
        until_refused(|| limiter.override_of("k")),
        until_refused(|| joint.peek("k")),
        until_refused(|| key.peek()),
        until_refused(|| semaphore.peek()),
        until_refused(|| once.status()),
        until_refused(|| counter.get()),
        until_refused(|| space.inspect("")),
        until_refused(|| space.inspect_coarse()),
        until_refused(|| space.semaphores("")),
        until_refused(|| space.limiters("")),
        until_refused(|| space.overrides("")),
        until_refused(|| space.joint_limiters("")),
        until_refused(|| space.concurrency_limiters("")),
        until_refused(|| space.counters("")),
        until_refused(|| space.onces("")),
    ];
    for error in errors {
        assert!(
            matches!(error, sprag::EngineError::Replaced { .. }),
            "{error}"
        );
    }
}

// property 1
#[test]
fn a_space_whose_region_was_replaced_grants_and_decides_nothing_any_more() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r.sprag");
    let space = Space::open(&format!("shm:{}", path.display())).unwrap();
    let limiter = space.limiter("l", "1/hour").unwrap();
    let busy = space.lock("busy").unwrap();
    let mut hold = busy.acquire().unwrap();
    let free = space.lock("free").unwrap();
    drop(free.acquire().unwrap());
    let _ = limiter.check("known", 1).unwrap();
    std::fs::remove_file(&path).unwrap();
    let mut number = 0;
    let errors = [
        until_refused(|| busy.try_acquire()),
        until_refused(|| free.acquire()),
        until_refused(|| limiter.check("known", 1)),
        until_refused(|| {
            number += 1;
            space.lock(&format!("new{number}"))?.try_acquire()
        }),
        until_refused(|| {
            number += 1;
            limiter.check(&format!("new{number}"), 1)
        }),
        until_refused(|| limiter.check_batch(&["a", "b"], 1, |_, _| {})),
        until_refused(|| space.fence("f")?.admit(7)),
    ];
    for error in errors {
        assert!(
            matches!(error, sprag::EngineError::Replaced { .. }),
            "{error}"
        );
    }
    assert!(hold.renew().is_err());
}

#[test]
fn who_only_looks_finds_out_that_the_region_was_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r.sprag");
    let url = format!("shm:{}", path.display());
    let space = Space::open(&url).unwrap();
    let once = space.once("o").unwrap();
    let limiter = space.limiter("l", "1/hour").unwrap();
    let joint = space.joint_limiter("j", ["1/hour", "9/day"]).unwrap();
    let uploads = space.concurrency("c", 2).unwrap();
    let tidier = Space::builder().without_session().open(&url).unwrap();
    let found = tidier.find_limiter("l").unwrap().unwrap();
    let existing = tidier.find_concurrency("c").unwrap().unwrap();
    assert_eq!(existing.permits().unwrap(), 2);
    assert_eq!(found.override_of("k").unwrap(), None);
    assert_eq!(found.peek("k").unwrap().remaining(), 1);
    std::fs::remove_file(&path).unwrap();
    let errors = [
        until_refused(|| once.status()),
        until_refused(|| limiter.peek("k")),
        until_refused(|| limiter.override_of("k")),
        until_refused(|| joint.peek("k").map(drop)),
        until_refused(|| uploads.permits()),
        until_refused(|| existing.permits()),
        until_refused(|| found.override_of("k")),
        until_refused(|| found.peek("k")),
    ];
    for error in errors {
        assert!(
            matches!(error, sprag::EngineError::Replaced { .. }),
            "{error}"
        );
    }
}

// property 1
#[test]
fn a_process_that_closes_its_sessions_descriptor_is_told_that_its_holds_are_lost() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r.sprag");
    let url = format!("shm:{}", path.display());
    // Its descriptor will be another's, and not for this space to close.
    let space = ManuallyDrop::new(Space::open(&url).unwrap());
    let mut hold = ManuallyDrop::new(space.lock("x").unwrap().acquire().unwrap());
    // As a program does that closes whatever it finds open. Of other tests' descriptors, none is on
    // this file.
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let mut closed = 0;
    for entry in open.flatten() {
        if std::fs::read_link(entry.path()).is_ok_and(|target| target == path) {
            let descriptor: i32 = entry.file_name().to_str().unwrap().parse().unwrap();
            // SAFETY: nobody but this test's space uses it, which must bear it.
            assert_eq!(unsafe { libc::close(descriptor) }, 0);
            closed += 1;
        }
    }
    assert!(closed > 0);
    let next = Space::open(&url).unwrap();
    let taken = next.lock("x").unwrap().try_acquire().unwrap().unwrap();
    assert!(!hold.is_held());
    let error = hold.renew().unwrap_err().to_string();
    assert!(error.contains("was closed"), "{error}");
    assert!(taken.is_held());
}

// property 15
#[test]
fn an_inspection_tells_holders_and_waiters_that_are_gone_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("shm:{}", directory.path().join("r.sprag").display());
    let (holder, other) = (Space::open(&url).unwrap(), Space::open(&url).unwrap());
    std::mem::forget(holder.lock("x").unwrap().acquire().unwrap());
    let looks = || other.inspect("x").unwrap().remove(0);
    let alive = looks();
    assert!(alive.is_held && !alive.is_holder_dead);
    drop(holder);
    for _ in 0..2 {
        let gone = looks();
        assert!(!gone.is_held && gone.is_holder_dead, "{gone:?}");
        assert_eq!(gone.token, alive.token);
        assert!(gone.lease_left > Duration::ZERO);
    }
    let next = other.lock("x").unwrap().try_acquire().unwrap().unwrap();
    assert_eq!(next.token(), alive.token + 1);
    let taken = looks();
    assert!(taken.is_held && !taken.is_holder_dead);
}

/// A way to end a hold.
type End = fn(Hold<'static>);

#[test]
fn a_space_ends_with_its_last_owned_hold_or_future() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("shm:{}", directory.path().join("r.sprag").display());
    let sessions = || sprag::region::probe(&url, false).unwrap().sessions;
    let hold = || {
        let space = Space::open(&url).unwrap();
        space.lock("a").unwrap().acquire().unwrap().into_owned()
    };
    let ways: [(&str, End); 4] = [
        ("dropped", drop),
        ("released", |hold| hold.release().unwrap()),
        ("owned again", |hold| drop(hold.into_owned())),
        ("detached", |hold| {
            hold.detach().unwrap();
        }),
    ];
    for (way, end) in ways {
        end(hold());
        assert_eq!(sessions(), 0, "{way}");
    }
    // One that a thread of the space's keeps open ends once the thread has.
    let space = Space::open(&url).unwrap();
    let token = space.inspect("a").unwrap()[0].token;
    space.lock("a").unwrap().release_token(token).unwrap();
    let lock = space.lock("a").unwrap().into_owned();
    let mut kept = lock.acquire().unwrap();
    kept.keep_alive(KeepAlive::default()).unwrap();
    let mut future = Box::pin(lock.acquire_async());
    let mut context = Context::from_waker(Waker::noop());
    assert!(future.as_mut().poll(&mut context).is_pending());
    drop((space, lock));
    drop(kept);
    assert_eq!(sessions(), 1);
    drop(future);
    while sessions() > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn an_opening_waits_for_a_resize() {
    let directory = tempfile::tempdir().unwrap();
    let url = &format!("shm:{}", directory.path().join("r.sprag").display());
    drop(Space::open(url).unwrap());
    let is_over = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let space = Space::open(url).unwrap();
                    drop(space.lock("a").unwrap().acquire().unwrap());
                    drop(space);
                    // Else nobody would ever find the region unused.
                    std::thread::yield_now();
                }
            });
        }
        let mut resized = 0;
        while resized < 40 {
            let caps = Caps {
                objects: 1_000 + resized,
                ..Caps::default()
            };
            match sprag::region::resize(url, false, caps) {
                Ok(()) => resized += 1,
                Err(Error::Engine(sprag::EngineError::InUse { .. })) => {}
                Err(error) => panic!("{error}"),
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn who_creates_nothing_makes_no_directory_either() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("not/there");
    let url = format!("shm:{}/r.sprag", missing.display());
    let opened = Space::builder().create(false).open(&url);
    let errors = [
        opened.err().unwrap(),
        sprag::region::probe(&url, false).unwrap_err(),
        sprag::region::remove(&url, false, true).unwrap_err(),
        sprag::region::resize(&url, false, Caps::default()).unwrap_err(),
    ];
    for error in errors {
        assert!(
            matches!(error, Error::Engine(sprag::EngineError::NotFound { .. })),
            "{error}"
        );
    }
    assert!(!missing.exists());
}

// property 1, property 5
#[test]
fn a_future_that_waits_in_a_region_that_was_replaced_fails() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("shm:{}", directory.path().join("r.sprag").display());
    let (a, b) = (Space::open(&url).unwrap(), Space::open(&url).unwrap());
    let hold = a.lock("x").unwrap().acquire().unwrap();
    let lock = b.lock("x").unwrap();
    let mut context = Context::from_waker(Waker::noop());
    let mut wait = Box::pin(lock.acquire_async());
    assert!(wait.as_mut().poll(&mut context).is_pending());
    sprag::region::remove(&url, false, true).unwrap();
    let c = Space::open(&url).unwrap();
    let other = c.lock("x").unwrap().try_acquire().unwrap().unwrap();
    let error = loop {
        match wait.as_mut().poll(&mut context) {
            Poll::Pending => std::thread::yield_now(),
            Poll::Ready(result) => break result.unwrap_err(),
        }
    };
    assert!(
        matches!(error, Error::Engine(sprag::EngineError::Replaced { .. })),
        "{error}"
    );
    drop(hold);
    assert!(other.is_valid() && other.is_held());
}

/// The descriptors of this process that are open on `path`.
fn descriptors_on(path: &std::path::Path) -> Vec<i32> {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    open.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target == path))
        .map(|entry| entry.file_name().to_str().unwrap().parse().unwrap())
        .collect()
}

// property 1
#[test]
fn a_process_whose_sessions_descriptor_became_another_files_takes_nobody_for_dead() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r.sprag");
    let url = format!("shm:{}", path.display());
    let holder = Space::open(&url).unwrap();
    let before = descriptors_on(&path);
    // What it closes when dropped is the other file's descriptor, which is no harm.
    let space = Space::open(&url).unwrap();
    let hold = holder.lock("x").unwrap().acquire().unwrap();
    let lock = space.lock("x").unwrap();
    assert!(lock.try_acquire().unwrap().is_none());
    let log = std::fs::File::create(directory.path().join("log")).unwrap();
    for descriptor in descriptors_on(&path) {
        if !before.contains(&descriptor) {
            // SAFETY: both are open; nobody but `space` uses the second, which must bear it.
            let duplicated = unsafe { libc::dup2(log.as_raw_fd(), descriptor) };
            assert_eq!(duplicated, descriptor);
        }
    }
    let error = until_refused(|| {
        let taken = lock.try_acquire()?;
        assert!(taken.is_none(), "a live holder was taken for dead");
        Ok(())
    });
    assert!(
        matches!(error, sprag::EngineError::SessionLost { .. }),
        "{error}"
    );
    assert!(hold.is_valid() && hold.is_held());
}

// property 1
#[test]
fn a_space_that_is_dropped_touches_nothing_that_has_its_descriptors_numbers_by_then() {
    for is_region in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.sprag");
        let url = format!("shm:{}", path.display());
        let space = Space::open(&url).unwrap();
        for descriptor in descriptors_on(&path) {
            // SAFETY: nobody but `space` uses it, which must bear it.
            assert_eq!(unsafe { libc::close(descriptor) }, 0);
        }
        // Other tests open files too: the number may become one of theirs as well as one of these.
        let log = std::fs::File::create(directory.path().join("log")).unwrap();
        let next = is_region.then(|| Space::open(&url).unwrap());
        let hold = next
            .as_ref()
            .map(|next| next.lock("x").unwrap().acquire().unwrap());
        drop(space);
        (&log).write_all(b"still open").unwrap();
        if let Some(hold) = hold {
            let other = Space::open(&url).unwrap();
            assert!(other.lock("x").unwrap().try_acquire().unwrap().is_none());
            assert!(hold.is_held());
        }
    }
}
