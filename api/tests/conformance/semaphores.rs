//! Semaphores.

use super::tier::Tier;
use super::until;
use sprag::EngineError;

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
    assert!(matches!(
        error,
        sprag::Error::Engine(EngineError::CapacityDiffers {
            existing: 2,
            asked: 3,
            ..
        })
    ));
}
