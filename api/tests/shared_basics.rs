//! Spaces in a shared region, opened twice in one process: each opening is a session of its own.

#![cfg(target_os = "linux")]

use sprag::{Error, Space};
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
