//! Semaphores.

use super::block_on::{block_on, poll_once};
use super::tier::Tier;
use super::until;
use sprag::{EngineError, Error, KeepAlive, Space};
use std::time::Duration;

// property 1
pub(crate) fn no_more_permits_are_out_than_there_are(tier: &impl Tier) {
    let space = tier.space();
    let semaphore = space.semaphore("s", 3).unwrap();
    let two = semaphore.try_acquire(2).unwrap().unwrap();
    assert!(semaphore.try_acquire(2).unwrap().is_none());
    let one = semaphore.try_acquire(1).unwrap().unwrap();
    assert!(semaphore.try_acquire(1).unwrap().is_none());
    assert_eq!(one.token(), two.token() + 1);
    let info = &space.semaphores("s").unwrap()[0];
    assert_eq!((info.permits, info.taken, info.holders), (3, 3, 2));
    two.release().unwrap();
    assert!(semaphore.try_acquire(2).unwrap().is_some());
    drop(one);
    assert!(semaphore.try_acquire(3).unwrap().is_some());
}

pub(crate) fn waiters_for_permits_are_served_in_order_whatever_they_want(tier: &impl Tier) {
    let space = tier.space();
    let semaphore = space.semaphore("s", 3).unwrap();
    let one = semaphore.acquire(1).unwrap();
    std::thread::scope(|scope| {
        let all = scope.spawn(|| semaphore.acquire(3).unwrap().token());
        until(|| space.semaphores("s").unwrap()[0].waiters == 1);
        assert!(semaphore.try_acquire(1).unwrap().is_none(), "others wait");
        let later = scope.spawn(|| semaphore.acquire(1).unwrap().token());
        until(|| space.semaphores("s").unwrap()[0].waiters == 2);
        one.release().unwrap();
        assert!(all.join().unwrap() < later.join().unwrap());
    });
}

// property 8
pub(crate) fn numbers_of_permits_out_of_bounds_and_another_capacity_are_errors(tier: &impl Tier) {
    let space = tier.space();
    assert!(space.semaphore("s", 0).is_err());
    assert!(space.semaphore("s", 1 << 24).is_err());
    let semaphore = space.semaphore("s", 2).unwrap();
    assert!(semaphore.try_acquire(0).is_err());
    assert!(semaphore.try_acquire(3).is_err());
    let _hold = semaphore.acquire(1).unwrap();
    let error = space.semaphore("s", 3).unwrap().try_acquire(1).unwrap_err();
    assert!(error.to_string().contains("another name"), "{error}");
    let lost = semaphore.release_token(7).unwrap_err().to_string();
    assert!(lost.contains(" on s ") && !lost.contains("lock"), "{lost}");
    assert!(matches!(
        error,
        sprag::Error::Engine(EngineError::CapacityDiffers {
            existing: 2,
            asked: 3,
            ..
        })
    ));
}

// property 5
pub(crate) fn permits_of_one_whose_lease_is_over_come_back(tier: &impl Tier) {
    let space = tier.space();
    let semaphore = space.semaphore("s", 3).unwrap();
    let short = semaphore.clone().ttl(Duration::from_millis(1)).unwrap();
    let mut late = short.acquire(2).unwrap();
    let mut one = semaphore.acquire(1).unwrap();
    let all = semaphore.acquire_timeout(2, Duration::from_mins(1));
    assert!(all.unwrap().is_some_and(|two| two.is_held()));
    assert!(matches!(late.renew(), Err(Error::Lost { .. })));
    assert!(matches!(late.release(), Err(Error::Lost { .. })));
    one.extend(Duration::from_mins(1)).unwrap();
    one.keep_alive(KeepAlive::default()).unwrap();
    one.renew().unwrap();
    assert!(one.is_held());
}

// property 3
pub(crate) fn permits_are_detached_adopted_renewed_and_released_by_their_token(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let semaphore = space.semaphore("s", 3).unwrap();
    let token = semaphore.acquire(2).unwrap().detach().unwrap();
    // A lock of the same name is another thing.
    let lock = space.lock("s").unwrap();
    assert!(matches!(lock.release_token(token), Err(Error::Lost { .. })));
    let there = other.semaphore("s", 3).unwrap();
    there.renew_token(token).unwrap();
    let hold = there.adopt_token(token).unwrap();
    assert_eq!(hold.token(), token);
    assert!(semaphore.try_acquire(2).unwrap().is_none());
    let token = hold.detach().unwrap();
    semaphore.release_token(token).unwrap();
    assert!(matches!(
        there.release_token(token),
        Err(Error::Lost { .. })
    ));
    assert!(matches!(there.renew_token(token), Err(Error::Lost { .. })));
    assert!(matches!(there.adopt_token(token), Err(Error::Lost { .. })));
    assert!(semaphore.try_acquire(3).unwrap().is_some());
}

// property 6
pub(crate) fn a_wait_for_permits_that_ends_lets_the_next_one_in(tier: &impl Tier) {
    let space = tier.space();
    let semaphore = space.semaphore("s", 3).unwrap();
    let waiting = || space.semaphores("s").unwrap()[0].waiters;
    let one = semaphore.acquire(1).unwrap();
    for timeout in [Duration::ZERO, Duration::from_millis(1)] {
        assert!(semaphore.acquire_timeout(3, timeout).unwrap().is_none());
    }
    assert_eq!(waiting(), 0);
    let mut all = semaphore.acquire_async(3).unwrap();
    assert!(poll_once(&mut all).is_pending());
    std::thread::scope(|scope| {
        let other = tier.another(&space);
        let two = scope.spawn(move || {
            let semaphore = other.semaphore("s", 3).unwrap().into_owned();
            block_on(semaphore.acquire_async(2).unwrap()).unwrap()
        });
        until(|| waiting() == 2);
        drop(all);
        assert!(two.join().unwrap().is_held());
    });
    one.release().unwrap();
    assert_eq!(waiting(), 0);
    assert!(semaphore.try_acquire(3).unwrap().is_some());
}

// property 8
pub(crate) fn a_hold_of_permits_is_shared_and_cannot_be_had_alone(tier: &impl Tier) {
    let space = tier.space();
    // A number of permits that a lock's mode would have the bits of.
    let semaphore = space.semaphore("s", 3 << 16).unwrap();
    let mut hold = semaphore.acquire(1).unwrap();
    assert!(hold.is_shared());
    let token = hold.token();
    let errors = [
        hold.upgrade().unwrap_err(),
        hold.try_upgrade().unwrap_err(),
        hold.downgrade().unwrap_err(),
    ];
    for error in errors {
        let Error::Engine(EngineError::NotALock { token: named }) = &error else {
            panic!("{error}");
        };
        assert_eq!(*named, token);
        assert!(error.to_string().contains("release it"));
    }
    assert!(hold.is_held());
    let info = space.semaphores("s").unwrap().remove(0);
    assert_eq!((info.permits, info.taken), (3 << 16, 1));
}

pub(crate) fn a_semaphore_that_nobody_uses_can_have_another_capacity_once_its_entry_is_gone(
    tier: &impl Tier,
) {
    let caps = sprag::Caps {
        objects: 1,
        ..Default::default()
    };
    let space = Space::builder().caps(caps).share_percent(100);
    let space = tier.open(space).unwrap();
    let token = space.semaphore("s", 2).unwrap().acquire(1).unwrap().token();
    assert!(space.semaphore("s", 3).unwrap().try_acquire(1).is_err());
    // Another name needs the room.
    drop(space.lock("a").unwrap().acquire().unwrap());
    let hold = space.semaphore("s", 3).unwrap().acquire(3).unwrap();
    // property 2
    assert!(hold.token() > token);
}
