//! Locks in shared use.

use super::tier::Tier;
use super::{until, waiters};
use sprag::Error;
use std::time::Duration;

// property 1, property 2
pub(crate) fn those_who_share_keep_out_who_wants_the_lock_alone_and_the_other_way_round(
    tier: &impl Tier,
) {
    let space = tier.space();
    let lock = space.lock("a").unwrap();
    let one = lock.try_acquire_shared().unwrap().unwrap();
    let two = lock.try_acquire_shared().unwrap().unwrap();
    assert!(one.is_shared() && two.is_shared());
    assert_eq!(two.token(), one.token() + 1);
    assert!(lock.try_acquire().unwrap().is_none());
    one.release().unwrap();
    assert!(lock.try_acquire().unwrap().is_none());
    assert!(two.is_held());
    two.release().unwrap();
    let alone = lock.try_acquire().unwrap().unwrap();
    assert!(!alone.is_shared());
    assert!(lock.try_acquire_shared().unwrap().is_none());
}

pub(crate) fn a_hold_is_downgraded_and_upgraded_in_place(tier: &impl Tier) {
    let space = tier.space();
    let lock = space.lock("a").unwrap();
    let mut hold = lock.acquire().unwrap();
    let token = hold.token();
    hold.downgrade().unwrap();
    assert_eq!(hold.token(), token);
    let other = lock.try_acquire_shared().unwrap().unwrap();
    assert!(!hold.try_upgrade().unwrap());
    assert!(hold.is_shared() && hold.is_held());
    other.release().unwrap();
    hold.upgrade().unwrap();
    assert!(!hold.is_shared() && hold.is_held() && hold.token() > token);
    assert!(lock.try_acquire_shared().unwrap().is_none());
    hold.release().unwrap();
    assert!(lock.try_acquire().unwrap().is_some());
}

pub(crate) fn a_second_who_upgrades_is_told_and_keeps_its_share(tier: &impl Tier) {
    let space = tier.space();
    let lock = space.lock("a").unwrap();
    let mut one = lock.acquire_shared().unwrap();
    let mut two = lock.acquire_shared().unwrap();
    std::thread::scope(|scope| {
        let upgrading = scope.spawn(|| one.upgrade());
        until(|| waiters(&space, "a") == 1);
        assert!(matches!(
            two.upgrade_timeout(Duration::from_secs(60)),
            Err(Error::UpgradeConflict { .. })
        ));
        assert!(two.is_held());
        assert!(
            lock.try_acquire_shared().unwrap().is_none(),
            "nobody new gets in"
        );
        two.release().unwrap();
        upgrading.join().unwrap().unwrap();
    });
    assert!(!one.is_shared());
}

pub(crate) fn who_wants_a_lock_alone_is_not_starved_by_those_who_share_it(tier: &impl Tier) {
    let space = tier.space();
    let lock = space.lock("a").unwrap();
    let shared = lock.acquire_shared().unwrap();
    std::thread::scope(|scope| {
        let alone = scope.spawn(|| lock.acquire().unwrap().token());
        until(|| waiters(&space, "a") == 1);
        assert!(lock.try_acquire_shared().unwrap().is_none());
        let later = scope.spawn(|| lock.acquire_shared().unwrap().token());
        until(|| waiters(&space, "a") == 2);
        shared.release().unwrap();
        assert!(alone.join().unwrap() < later.join().unwrap());
    });
}
