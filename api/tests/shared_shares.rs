//! What one session may have of a shared region: a share of each cap, and what is left serves others.

#![cfg(target_os = "linux")]

use sprag::{Caps, EngineError, Error, Space, SpaceBuilder};
use std::future::Future;
use std::task::{Context, Poll, Waker};

const CAPS: Caps = Caps {
    objects: 2_048,
    limiter_keys: 256,
    joint_keys: 256,
    sessions: 16,
    waiters: 16,
    permits: 16,
    key_chunks: 64,
};

/// A directory with a region of [`CAPS`], of each of which a session may have half.
struct World {
    directory: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn open(&self) -> sprag::Result<Space> {
        let path = self.directory.path().join("r.sprag");
        let options = Space::builder().caps(CAPS).share_percent(50);
        options.open(&format!("shm:{}", path.display()))
    }

    fn two(&self) -> [Space; 2] {
        [self.open().unwrap(), self.open().unwrap()]
    }
}

/// Which share was used up, and at how many.
fn share(error: Error) -> (&'static str, u64) {
    match error {
        Error::Engine(EngineError::ShareExceeded { what, used }) => (what, used),
        other => panic!("{other}"),
    }
}

/// Does `one` until it fails; what was done and why it failed.
fn until_it_fails<T>(mut one: impl FnMut(usize) -> sprag::Result<T>) -> (Vec<T>, Error) {
    let mut done = Vec::new();
    loop {
        match one(done.len()) {
            Ok(next) => done.push(next),
            Err(error) => return (done, error),
        }
        assert!(done.len() < 10_000, "no bound");
    }
}

// property 11
#[test]
fn waits_have_a_share() {
    let world = World::new();
    let [a, b] = world.two();
    let _hold = a.lock("x").unwrap().acquire().unwrap();
    let wait = |space: &Space| {
        let mut future = Box::pin(space.lock("x").unwrap().into_owned().acquire_async());
        let mut context = Context::from_waker(Waker::noop());
        match future.as_mut().poll(&mut context) {
            Poll::Ready(result) => result.map(|_| unreachable!("it is held")),
            Poll::Pending => Ok(future),
        }
    };
    let (mut waits, error) = until_it_fails(|_| wait(&a));
    assert_eq!((waits.len(), share(error)), (8, ("waiter", 8)));
    let _other = wait(&b).unwrap();
    // One that ends makes room for one.
    drop(waits.pop());
    waits.push(wait(&a).unwrap());
    assert_eq!(share(wait(&a).err().unwrap()), ("waiter", 8));
}

// property 11
#[test]
fn shares_and_permits_have_a_share_of_the_region_whoever_has_them_by_now() {
    let world = World::new();
    let [a, b] = world.two();
    let take = |space: &Space| space.semaphore("s", 100)?.into_owned().acquire(2);
    let (mut holds, error) = until_it_fails(|_| take(&a));
    let what = "shared hold or semaphore permit";
    assert_eq!((holds.len(), share(error)), (8, (what, 8)));
    let other = take(&b).unwrap();
    drop(holds.pop());
    holds.push(take(&a).unwrap());
    // What others end for it makes room, and what it hands on doesn't.
    let token = holds.pop().unwrap().detach().unwrap();
    assert_eq!(share(take(&a).err().unwrap()), (what, 8));
    b.semaphore("s", 100).unwrap().release_token(token).unwrap();
    holds.push(take(&a).unwrap());
    // What it takes over is the other's still.
    let adopted = other.detach().unwrap();
    let adopted = a.semaphore("s", 100).unwrap().adopt_token(adopted).unwrap();
    adopted.release().unwrap();
    assert_eq!(share(take(&a).err().unwrap()), (what, 8));
    assert!(take(&b).is_ok());
}

// property 11
#[test]
fn long_names_have_a_share_and_idle_ones_make_room() {
    let world = World::new();
    let [a, b] = world.two();
    // Four chunks each.
    let name = |i: usize| format!("{i:0>180}");
    let hold = |space: &Space, i| space.lock(&name(i))?.into_owned().acquire();
    let (mut holds, error) = until_it_fails(|i| hold(&a, i));
    assert_eq!(
        (holds.len(), share(error)),
        (8, ("long name or result", 32))
    );
    let _other = hold(&b, 100).unwrap();
    drop(holds.pop());
    holds.push(hold(&a, 200).unwrap());
    assert!(hold(&a, 201).is_err());

    // Limiter keys that find none are decided all the same.
    let limiter = a.limiter("l", "1/hour").unwrap();
    assert!(limiter.check(&name(300), 1).unwrap().is_overflow());
    drop(holds);
    assert!(!limiter.check(&name(301), 1).unwrap().is_overflow());
}

// property 11
#[test]
fn limits_have_a_share() {
    let world = World::new();
    let [a, b] = world.two();
    let (limiters, error) = until_it_fails(|i| a.limiter(&format!("l{i}"), "1/hour"));
    assert_eq!(
        (limiters.len(), share(error)),
        (512, ("limit definition", 512))
    );
    b.limiter("other", "1/hour").unwrap();
    // Those that are there can still be opened.
    a.limiter("l7", "1/hour").unwrap();
}

// property 11
#[test]
fn sessions_of_one_process_have_a_share() {
    let world = World::new();
    let (mut spaces, error) = until_it_fails(|_| world.open());
    assert_eq!((spaces.len(), share(error)), (8, ("session", 8)));
    drop(spaces.pop());
    world.open().unwrap();
}

// property 11
#[test]
fn a_region_full_of_sessions_can_be_looked_at_and_tidied() {
    let world = World::new();
    let path = world.directory.path().join("r.sprag");
    let url = format!("shm:{}", path.display());
    let open = |options: SpaceBuilder| options.caps(CAPS).share_percent(100).open(&url);
    let space = open(Space::builder()).unwrap();
    let token = space
        .lock("x")
        .unwrap()
        .acquire()
        .unwrap()
        .detach()
        .unwrap();
    let (_spaces, error) = until_it_fails(|_| open(Space::builder()));
    assert!(matches!(error, Error::Engine(EngineError::Full { .. })));

    let tidier = open(Space::builder().without_session()).unwrap();
    assert_eq!(tidier.inspect("").unwrap()[0].token, token);
    let lock = tidier.lock("x").unwrap();
    lock.renew_token(token).unwrap();
    lock.release_token(token).unwrap();
    let held = space.lock("x").unwrap().acquire().unwrap();
    assert_eq!(tidier.break_lock("x").unwrap(), Some(held.token()));
    assert!(!held.is_held());

    let is_told = |error: Error| matches!(error, Error::NoSession);
    assert!(lock.try_acquire().is_err_and(is_told));
    assert!(lock.acquire().is_err_and(is_told));
    assert!(lock.try_acquire_shared().is_err_and(is_told));
    assert!(lock.acquire_shared().is_err_and(is_told));
    let semaphore = tidier.semaphore("s", 2).unwrap();
    assert!(semaphore.try_acquire(1).is_err_and(is_told));
    assert!(semaphore.adopt_token(token).is_err_and(is_told));
    assert!(lock.adopt_token(token).is_err_and(is_told));
    assert!(tidier.limiter("l", "1/hour").is_err_and(is_told));
    assert!(tidier.fence("f").unwrap().admit(7).is_err_and(is_told));
    assert!(
        tidier
            .owner()
            .lock("x")
            .unwrap()
            .try_acquire()
            .is_err_and(is_told)
    );
    let mut context = Context::from_waker(Waker::noop());
    let future = Box::pin(lock.acquire_async()).as_mut().poll(&mut context);
    assert!(matches!(future, Poll::Ready(Err(Error::NoSession))));
}

// property 11
#[test]
fn what_a_session_of_long_ago_opened_is_not_of_the_share_of_one_that_words_call_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("shm:{}", directory.path().join("r.sprag").display());
    let caps = Caps {
        objects: 2_048,
        sessions: 1,
        ..CAPS
    };
    let open = || Space::builder().caps(caps).open(&url).unwrap();
    let space = open();
    let limits = ["1/hour", "9/day"];
    let joints = until_it_fails(|at| space.joint_limiter(&format!("{at}"), limits)).0;
    let limiters = until_it_fails(|at| space.limiter(&format!("{at}"), "1/hour")).0;
    assert_eq!((joints.len(), limiters.len()), (192, 768));
    drop((space, joints, limiters));
    // Words have six bits of how many sessions there were before.
    for number in 1..=64 {
        let space = open();
        let limiter = space.find_limiter("0").unwrap().unwrap();
        limiter
            .set_override("k", format!("{number}/day").as_str())
            .unwrap();
        space
            .joint_limiter(&format!("new{number}"), limits)
            .unwrap();
    }
}
