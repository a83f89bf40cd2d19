//! Locks of partitions, of the table and of several keys at once, and deadlocks among owners.

use super::block_on::block_on;
use super::tier::Tier;
use super::{until, waiters};
use sprag::Error;
use std::time::Duration;

// property 1
pub(crate) fn a_partition_and_the_locks_in_it_exclude_each_other(tier: &impl Tier) {
    let space = tier.space();
    let partition = space.partition(space.partition_of("a")).unwrap();
    let lock = space.lock("a").unwrap();
    let hold = lock.try_acquire().unwrap().unwrap();
    assert!(partition.try_acquire().unwrap().is_none());
    hold.release().unwrap();
    let hold = partition.try_acquire().unwrap().unwrap();
    assert!(lock.try_acquire().unwrap().is_none());
    assert!(lock.try_acquire_shared().unwrap().is_none());
    assert!(partition.try_acquire().unwrap().is_none());
    assert!(hold.is_held() && !hold.is_shared());
    let (token, first) = (hold.token(), hold);
    first.release().unwrap();
    assert!(lock.try_acquire().unwrap().is_some());
    assert_eq!(partition.try_acquire().unwrap().unwrap().token(), token + 1);
}

// property 1
pub(crate) fn the_table_excludes_all_locks_of_keys_and_partitions(tier: &impl Tier) {
    let space = tier.space();
    let (table, lock) = (space.table().unwrap(), space.lock("a").unwrap());
    let partition = space.partition(0).unwrap();
    let hold = table.acquire().unwrap();
    assert!(lock.try_acquire().unwrap().is_none());
    assert!(partition.try_acquire().unwrap().is_none());
    assert!(table.try_acquire().unwrap().is_none());
    hold.release().unwrap();
    let hold = partition.acquire().unwrap();
    assert!(table.try_acquire().unwrap().is_none());
    drop(hold);
    let hold = lock.acquire().unwrap();
    assert!(table.try_acquire().unwrap().is_none());
    drop(hold);
    assert!(table.try_acquire().unwrap().is_some());
}

pub(crate) fn who_waits_for_the_table_keeps_newcomers_out_and_is_served(tier: &impl Tier) {
    let space = tier.space();
    let (table, lock) = (space.table().unwrap(), space.lock("a").unwrap());
    let hold = lock.acquire().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| table.acquire().unwrap().release().unwrap());
        until(|| space.lock("b").unwrap().try_acquire().unwrap().is_none());
        let later = scope.spawn(|| lock.acquire().unwrap().release().unwrap());
        until(|| waiters(&space, "a") == 1);
        hold.release().unwrap();
        waiting.join().unwrap();
        later.join().unwrap();
    });
    assert!(space.lock("b").unwrap().try_acquire().unwrap().is_some());
}

// property 10
pub(crate) fn several_locks_are_had_all_at_once_or_not_at_all(tier: &impl Tier) {
    let space = tier.space();
    let (a, b) = (space.lock("a").unwrap(), space.lock("b").unwrap());
    let both = space.locks(["b", "a", "b"]).unwrap();
    let hold = b.acquire().unwrap();
    assert!(both.try_acquire().unwrap().is_none());
    assert!(
        both.acquire_timeout(Duration::from_millis(1))
            .unwrap()
            .is_none()
    );
    assert!(a.try_acquire().unwrap().is_some(), "left as it was");
    let token = hold.token();
    hold.release().unwrap();
    let mut held = both.try_acquire().unwrap().unwrap();
    assert_eq!(held.tokens()[0], token + 1);
    assert_eq!(held.tokens()[0], held.tokens()[2]);
    assert!(a.try_acquire().unwrap().is_none());
    assert!(b.try_acquire().unwrap().is_none());
    held.renew().unwrap();
    assert!(held.is_held());
    held.release().unwrap();
    let next = b.try_acquire().unwrap().unwrap();
    assert_eq!(next.token(), token + 2);
    assert!(a.try_acquire().unwrap().is_some());
}

pub(crate) fn who_waits_for_several_locks_holds_none_and_is_woken(tier: &impl Tier) {
    let space = tier.space();
    let (a, b) = (space.lock("a").unwrap(), space.lock("b").unwrap());
    let (hold_a, hold_b) = (a.acquire().unwrap(), b.acquire().unwrap());
    let both = space.locks(["a", "b"]).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| both.acquire().unwrap().release().unwrap());
        until(|| waiters(&space, "a") == 1 && waiters(&space, "b") == 1);
        hold_a.release().unwrap();
        let later = scope.spawn(|| a.acquire().unwrap().release().unwrap());
        until(|| waiters(&space, "a") == 2);
        hold_b.release().unwrap();
        waiting.join().unwrap();
        later.join().unwrap();
    });
}

// property 8
pub(crate) fn numbers_of_locks_and_partitions_out_of_bounds_are_errors(tier: &impl Tier) {
    let space = tier.space();
    let none: [&str; 0] = [];
    assert!(space.locks(none).is_err());
    assert!(space.locks((0..65_u8).map(|i| [i])).is_err());
    assert!(
        space
            .locks((0..64_u8).map(|i| [i]))
            .unwrap()
            .try_acquire()
            .unwrap()
            .is_some()
    );
    assert!(space.partition(space.partitions()).is_err());
}

// property 14
pub(crate) fn owners_that_wait_for_each_other_are_told(tier: &impl Tier) {
    let space = tier.space();
    let (one, two) = (space.owner(), space.owner());
    let _a = one.lock("a").unwrap().acquire().unwrap();
    let b = two.lock("b").unwrap().acquire().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| one.lock("b").unwrap().acquire().map(drop));
        until(|| waiters(&space, "b") == 1);
        let error = two.lock("a").unwrap().acquire().unwrap_err();
        let Error::Deadlock { deadlock } = &error else {
            panic!("{error}");
        };
        let locks: Vec<_> = deadlock.waits.iter().map(|wait| &wait.lock[..]).collect();
        assert_eq!(locks, [b"a", b"b"]);
        assert!(error.to_string().contains('a'), "{error}");
        b.release().unwrap();
        waiting.join().unwrap().unwrap();
    });
}

// property 14
pub(crate) fn a_deadlock_over_a_partition_and_several_locks_is_told(tier: &impl Tier) {
    let space = tier.space();
    let (one, two) = (space.owner(), space.owner());
    let partition = space.partition(space.partition_of("a")).unwrap();
    let forever = Duration::MAX;
    let names: Vec<_> = (0..10_000).map(|i| format!("lock {i}")).collect();
    let (beside, elsewhere): (Vec<_>, Vec<_>) = names
        .iter()
        .partition(|name| space.partition_of(name) == space.partition_of("a"));
    let several = space.locks([elsewhere[0], elsewhere[1]]).unwrap();
    let _held = several.acquire_for(&one, forever).unwrap().unwrap();
    let a = two.lock("a").unwrap().acquire().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| partition.acquire_for(&one, forever).map(drop));
        // Who comes for another lock of the partition is refused once somebody waits for that.
        until(|| {
            space
                .lock(beside[0])
                .unwrap()
                .try_acquire()
                .unwrap()
                .is_none()
        });
        let error = two.lock(elsewhere[1]).unwrap().acquire().unwrap_err();
        assert!(matches!(error, Error::Deadlock { .. }), "{error}");
        a.release().unwrap();
        waiting.join().unwrap().unwrap();
    });
    // An owner that waits for what it holds waits for itself.
    let held = partition.acquire_for(&two, forever).unwrap().unwrap();
    let error = two.lock("a").unwrap().acquire().unwrap_err();
    assert!(matches!(error, Error::Deadlock { .. }), "{error}");
    drop(held);
}

// property 14
pub(crate) fn futures_of_an_owner_find_deadlocks_too(tier: &impl Tier) {
    let space = tier.space();
    let owner = space.owner();
    let several = space.locks(["a", "b"]).unwrap();
    let table = space.table().unwrap();
    let held = block_on(several.acquire_for_async(&owner)).unwrap();
    assert_eq!(held.tokens().len(), 2);
    let error = block_on(table.acquire_for_async(&owner)).unwrap_err();
    assert!(matches!(error, Error::Deadlock { .. }), "{error}");
    drop(held);
    let held = block_on(table.acquire_for_async(&owner)).unwrap();
    let error = block_on(several.acquire_for_async(&owner)).unwrap_err();
    assert!(matches!(error, Error::Deadlock { .. }), "{error}");
    drop(held);
    let other = sprag::Space::open("mem:").unwrap().owner();
    let error = block_on(table.acquire_for_async(&other)).map(drop);
    assert!(matches!(error, Err(Error::NotHere { .. })), "{error:?}");
    assert!(space.table().unwrap().try_acquire().unwrap().is_some());
}
