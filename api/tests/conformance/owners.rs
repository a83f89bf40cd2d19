//! Owners, whose locks are re-entrant.

use super::block_on::{block_on, poll_once};
use super::tier::Tier;
use super::{until, waiters};
use sprag::{Error, KeepAlive};
use std::sync::{Arc, Barrier};
use std::task::Poll;
use std::time::Duration;

// property 2, property 3
pub(crate) fn an_owner_gets_its_hold_again_and_the_last_release_counts(tier: &impl Tier) {
    let space = tier.space();
    let owner = space.owner();
    let lock = owner.lock("a").unwrap();
    let outer = lock.acquire().unwrap();
    let inner = lock.try_acquire().unwrap().unwrap();
    let innermost = owner.clone();
    let innermost = innermost.lock("a").unwrap();
    let innermost = innermost
        .acquire_timeout(Duration::from_millis(1))
        .unwrap()
        .unwrap();
    let token = outer.token();
    assert_eq!((inner.token(), innermost.token()), (token, token));
    let innermost = innermost.into_owned();
    assert!(!outer.is_reentry() && inner.is_reentry() && innermost.is_reentry());
    assert!(outer.is_valid() && inner.is_valid() && innermost.is_valid());
    let plain = space.lock("a").unwrap();
    outer.release().unwrap();
    assert!(plain.try_acquire().unwrap().is_none());
    drop(inner);
    assert!(plain.try_acquire().unwrap().is_none());
    innermost.release().unwrap();
    assert_eq!(plain.try_acquire().unwrap().unwrap().token(), token + 1);
    assert_eq!(
        lock.acquire().unwrap().token(),
        token + 2,
        "a new hold, a new token"
    );
}

pub(crate) fn threads_of_one_owner_share_its_hold(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let blocker = other.lock("a").unwrap().acquire().unwrap();
    let owner = space.owner();
    let all_hold = Barrier::new(4);
    let tokens: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let lock = owner.lock("a").unwrap();
                    let hold = lock.acquire().unwrap();
                    all_hold.wait();
                    hold.token()
                })
            })
            .collect();
        until(|| waiters(&space, "a") == 1);
        drop(blocker);
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(tokens.iter().all(|token| *token == tokens[0]), "{tokens:?}");
    assert_eq!(
        other.lock("a").unwrap().acquire().unwrap().token(),
        tokens[0] + 1
    );
}

// property 1
pub(crate) fn owners_exclude_each_other_and_plain_locks(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let (one, two) = (space.owner(), other.owner());
    let hold = one.lock("a").unwrap().acquire().unwrap();
    assert!(two.lock("a").unwrap().try_acquire().unwrap().is_none());
    assert!(
        space
            .owner()
            .lock("a")
            .unwrap()
            .try_acquire()
            .unwrap()
            .is_none()
    );
    assert!(space.lock("a").unwrap().try_acquire().unwrap().is_none());
    assert!(two.lock("b").unwrap().try_acquire().unwrap().is_some());
    drop(hold);
    assert!(two.lock("a").unwrap().try_acquire().unwrap().is_some());
}

// property 6
pub(crate) fn a_timed_wait_of_an_owner_ends_and_leaves_nothing(tier: &impl Tier) {
    let space = tier.space();
    let hold = space.lock("a").unwrap().acquire().unwrap();
    let owner = space.owner();
    let lock = owner.lock("a").unwrap();
    for timeout in [Duration::ZERO, Duration::from_millis(1)] {
        assert!(lock.acquire_timeout(timeout).unwrap().is_none());
    }
    assert_eq!(waiters(&space, "a"), 0);
    drop(hold);
    assert!(lock.try_acquire().unwrap().is_some());
}

pub(crate) fn an_owner_that_lost_its_hold_is_told_so(tier: &impl Tier) {
    let space = tier.space();
    let owner = space.owner();
    let lock = owner.lock("a").unwrap();
    let hold = lock.acquire().unwrap();
    let token = hold.token();
    assert_eq!(space.break_lock("a").unwrap(), Some(token));
    assert!(matches!(lock.try_acquire(), Err(Error::Lost { token: lost, .. }) if lost == token));
    assert!(matches!(hold.release(), Err(Error::Lost { token: lost, .. }) if lost == token));
    assert_eq!(
        lock.acquire().unwrap().token(),
        token + 1,
        "it can begin anew"
    );
}

// property 8
pub(crate) fn an_owner_checks_names_and_ttls(tier: &impl Tier) {
    let space = tier.space();
    let owner = space.owner();
    for bad in [Duration::ZERO, Duration::MAX] {
        let error = owner.lock("a").unwrap().ttl(bad).err().unwrap();
        assert!(
            matches!(error, Error::Duration { what: "ttl", .. }),
            "{error}"
        );
    }
    let lock = owner
        .lock("a")
        .unwrap()
        .ttl(Duration::from_hours(1))
        .unwrap();
    let _hold = lock.acquire().unwrap();
    assert!(space.inspect("a").unwrap()[0].lease_left > Duration::from_mins(1));
}

// property 5
pub(crate) fn renewing_at_any_depth_renews_the_one_hold_beneath_all(tier: &impl Tier) {
    let space = tier.space();
    let owner = space.owner();
    let short = Duration::from_mins(1);
    let lock = owner.lock("a").unwrap().ttl(short).unwrap();
    let outer = lock.acquire().unwrap();
    let inner = lock.acquire().unwrap();
    assert!(outer.lease_left() <= short);
    inner.extend(Duration::from_hours(1)).unwrap();
    for hold in [&outer, &inner] {
        assert!(hold.lease_left() > short && hold.is_valid() && hold.is_held());
    }
    drop(inner);
    outer.extend(short).unwrap();
    assert!(outer.lease_left() <= short);
    outer.renew().unwrap();
    space.break_lock("a").unwrap();
    assert!(outer.is_valid(), "by its own clock, which knows no better");
    assert!(!outer.is_held());
    assert!(matches!(outer.renew(), Err(Error::Lost { .. })));
    let lost = outer.keep_alive(KeepAlive::default());
    assert!(matches!(lost, Err(Error::Lost { .. })), "{lost:?}");
}

// property 5
pub(crate) fn an_owner_kept_alive_at_any_depth_outlives_its_ttl_until_the_last_release(
    tier: &impl Tier,
) {
    let space = tier.space();
    let other = tier.another(&space);
    let ttl = Duration::from_millis(300);
    let owner = space.owner();
    let lock = owner.lock("a").unwrap().ttl(ttl).unwrap();
    let outer = lock.acquire().unwrap();
    let inner = lock.acquire().unwrap();
    inner.keep_alive(KeepAlive::default()).unwrap();
    inner.release().unwrap();
    let plain = other.lock("a").unwrap();
    assert!(plain.acquire_timeout(3 * ttl).unwrap().is_none());
    assert!(outer.is_valid() && outer.is_held());
    outer.release().unwrap();
    assert!(plain.try_acquire().unwrap().is_some());
}

// property 5
pub(crate) fn every_depth_follows_a_loss_and_a_later_hold_is_not_theirs(tier: &impl Tier) {
    let space = tier.space();
    let owner = space.owner();
    let lock = owner.lock("a").unwrap();
    let stale = [lock.acquire().unwrap(), lock.acquire().unwrap()];
    space.break_lock("a").unwrap();
    assert!(lock.acquire().is_err(), "told once");
    let next = lock.acquire().unwrap();
    for hold in &stale {
        assert!(!hold.is_valid() && !hold.is_held() && hold.lease_left().is_zero());
        assert!(matches!(hold.renew(), Err(Error::Lost { token, .. }) if token == hold.token()));
    }
    assert!(next.is_held());
}

pub(crate) fn a_callback_may_have_a_hold_of_the_owner_to_drop(tier: &impl Tier) {
    let space = tier.space();
    let owner = space.owner();
    let lock = owner.lock("a").unwrap().into_owned();
    let hold = lock.acquire().unwrap();
    let with_a_hold = || {
        let captured = lock.acquire().unwrap();
        KeepAlive {
            on_lost: Some(Arc::new(move || assert!(!captured.is_held()))),
            ..KeepAlive::default()
        }
    };
    hold.keep_alive(with_a_hold()).unwrap();
    let options = with_a_hold();
    hold.keep_alive(options).unwrap();
    let options = with_a_hold();
    space.break_lock("a").unwrap();
    assert!(hold.keep_alive(options).is_err());
    assert!(lock.acquire().is_err(), "told once");
    assert!(lock.acquire().is_ok());
}

pub(crate) fn a_future_of_an_owner_gets_its_hold_again_or_waits_for_all_of_it(tier: &impl Tier) {
    let space = tier.space();
    let (owner, other) = (space.owner(), space.owner());
    let lock = owner.lock("a").unwrap();
    let others = other.lock("a").unwrap().acquire().unwrap();
    let mut first = lock.acquire_async();
    let mut behind = lock.acquire_async();
    assert!(poll_once(&mut first).is_pending());
    assert!(poll_once(&mut behind).is_pending());
    assert_eq!(waiters(&space, "a"), 1, "one wait for the owner");
    std::thread::scope(|scope| {
        let behind = scope.spawn(|| block_on(behind).unwrap());
        let thread = scope.spawn(|| lock.acquire().unwrap());
        let token = others.token() + 1;
        others.release().unwrap();
        let first = block_on(first).unwrap();
        let (behind, thread) = (behind.join().unwrap(), thread.join().unwrap());
        assert_eq!(
            (first.token(), behind.token(), thread.token()),
            (token, token, token)
        );
        let Poll::Ready(Ok(again)) = poll_once(&mut lock.acquire_async()) else {
            panic!("the owner has it")
        };
        assert_eq!(again.token(), token);
        drop((first, behind, thread));
        assert!(again.is_held());
        again.release().unwrap();
    });
    assert!(!space.inspect("a").unwrap()[0].is_held);
}

// property 6
pub(crate) fn a_dropped_future_of_an_owner_lets_another_be_first(tier: &impl Tier) {
    let space = tier.space();
    let (owner, other) = (space.owner(), space.owner());
    let lock = owner.lock("a").unwrap();
    let others = other.lock("a").unwrap().acquire().unwrap();
    let mut first = lock.acquire_async();
    assert!(poll_once(&mut first).is_pending());
    std::thread::scope(|scope| {
        let behind = scope.spawn(|| block_on(lock.acquire_async()).unwrap().token());
        drop(first);
        until(|| waiters(&space, "a") == 1);
        let token = others.token() + 1;
        others.release().unwrap();
        assert_eq!(behind.join().unwrap(), token);
    });
    assert_eq!(waiters(&space, "a"), 0);
    assert!(lock.try_acquire().unwrap().is_some());
}

// property 1, property 8
pub(crate) fn an_owner_shares_a_lock_once_and_upgrades_rather_than_wait_for_itself(
    tier: &impl Tier,
) {
    let space = tier.space();
    let owner = space.owner();
    let lock = owner.lock("a").unwrap();
    let outer = lock.acquire_shared().unwrap();
    let inner = lock.try_acquire_shared().unwrap().unwrap();
    assert!(outer.is_shared());
    assert_eq!(inner.token(), outer.token());
    for error in [
        lock.acquire().unwrap_err(),
        lock.try_acquire().unwrap_err(),
        block_on(lock.acquire_async()).unwrap_err(),
    ] {
        assert!(matches!(&error, Error::OwnerShares { lock } if lock == "a"));
        assert!(error.to_string().contains("upgrade the hold"));
    }
    let token = outer.token();
    inner.upgrade().unwrap();
    assert!(!outer.is_shared() && outer.is_held());
    assert_eq!(outer.token(), token + 1, "the same for every depth");
    let again = block_on(lock.acquire_shared_async()).unwrap();
    assert!(!again.is_shared(), "it has more than it asked for");
    let alone = lock.acquire().unwrap();
    outer.downgrade().unwrap();
    assert!(alone.is_shared());
    let other = space.lock("a").unwrap().acquire_shared().unwrap();
    assert!(!alone.try_upgrade().unwrap());
    assert!(!alone.upgrade_timeout(Duration::from_millis(1)).unwrap());
    drop((outer, inner, again));
    assert!(alone.is_held());
    alone.release().unwrap();
    other.release().unwrap();
    assert!(space.lock("a").unwrap().try_acquire().unwrap().is_some());
}

pub(crate) fn threads_of_an_owner_wait_while_one_upgrades(tier: &impl Tier) {
    let space = tier.space();
    let owner = space.owner();
    let lock = owner.lock("a").unwrap();
    let one = lock.acquire_shared().unwrap();
    let two = lock.acquire_shared().unwrap();
    let other = space.lock("a").unwrap().acquire_shared().unwrap();
    let token = other.token();
    std::thread::scope(|scope| {
        let upgrading = scope.spawn(|| one.upgrade());
        until(|| waiters(&space, "a") == 1);
        let asking = scope.spawn(|| (two.is_shared(), two.token()));
        let acquiring = scope.spawn(|| lock.acquire().unwrap().token());
        let releasing = scope.spawn(|| lock.acquire_shared().unwrap().release());
        other.release().unwrap();
        upgrading.join().unwrap().unwrap();
        assert_eq!(asking.join().unwrap(), (false, token + 1));
        assert_eq!(acquiring.join().unwrap(), token + 1);
        releasing.join().unwrap().unwrap();
    });
    drop((one, two));
    assert_eq!(lock.acquire().unwrap().token(), token + 2);
}
