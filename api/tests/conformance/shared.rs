//! Locks in shared use.

use super::block_on::{block_on, poll_once};
use super::tier::Tier;
use super::{until, waiters};
use sprag::{EngineError, Error, KeepAlive, Space};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
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
            two.upgrade_timeout(Duration::from_mins(1)),
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

// property 5
pub(crate) fn each_share_has_a_lease_of_its_own(tier: &impl Tier) {
    let space = tier.space();
    let lock = space.lock("a").unwrap();
    let mut short = lock
        .clone()
        .ttl(Duration::from_millis(1))
        .unwrap()
        .acquire_shared()
        .unwrap();
    let mut long = lock.acquire_shared().unwrap();
    until(|| !short.is_valid());
    assert!(lock.try_acquire().unwrap().is_none(), "the other's runs");
    // The engine's end comes a little later than the holder's.
    until(|| space.inspect("a").unwrap()[0].holders == 1);
    let lost = |error: &Error| matches!(error, Error::Lost { .. });
    assert!(short.renew().is_err_and(|error| lost(&error)));
    assert!(short.upgrade().is_err_and(|error| lost(&error)));
    assert!(short.downgrade().is_err_and(|error| lost(&error)));
    long.extend(Duration::from_mins(1)).unwrap();
    assert!(long.lease_left() > Duration::from_secs(50));
    long.renew().unwrap();
    assert!(long.upgrade_timeout(Duration::from_mins(1)).unwrap());
    assert!(!long.is_shared());
    assert!(short.release().is_err_and(|error| lost(&error)));
    assert!(long.is_held());
}

pub(crate) fn a_share_that_is_kept_alive_stays_so_through_downgrade_and_upgrade(tier: &impl Tier) {
    let space = tier.space();
    let ttl = Duration::from_millis(200);
    let lock = space.lock("a").unwrap().ttl(ttl).unwrap();
    let lost = Arc::new(AtomicU32::new(0));
    let told = lost.clone();
    let mut hold = lock.acquire().unwrap();
    hold.keep_alive(KeepAlive {
        on_lost: Some(Arc::new(move || {
            told.fetch_add(1, Ordering::SeqCst);
        })),
        ..KeepAlive::default()
    })
    .unwrap();
    let other = tier.another(&space);
    let other = other.lock("a").unwrap();
    hold.downgrade().unwrap();
    assert!(other.acquire_timeout(3 * ttl).unwrap().is_none());
    assert!(hold.is_held(), "renewed for longer than the lease was");
    for _ in 0..20 {
        assert!(lock.try_acquire_shared().unwrap().is_some());
        hold.upgrade().unwrap();
        hold.downgrade().unwrap();
    }
    hold.upgrade().unwrap();
    assert!(other.acquire_timeout(3 * ttl).unwrap().is_none());
    assert!(hold.is_held(), "renewed for longer than the lease was");
    assert_eq!(lost.load(Ordering::SeqCst), 0);
    space.break_lock("a").unwrap();
    until(|| lost.load(Ordering::SeqCst) == 1);
    assert!(!hold.is_valid());
}

// property 3
pub(crate) fn a_share_is_detached_adopted_renewed_and_released_by_its_token(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let lock = space.lock("a").unwrap();
    let stays = lock.acquire_shared().unwrap();
    let token = lock.acquire_shared().unwrap().detach().unwrap();
    let there = other.lock("a").unwrap();
    there.renew_token(token).unwrap();
    assert!(matches!(
        there.renew_token(token + 1),
        Err(Error::Lost { .. })
    ));
    let hold = there.adopt_token(token).unwrap();
    assert_eq!(hold.token(), token);
    assert!(hold.is_shared() && hold.is_held());
    assert!(lock.try_acquire().unwrap().is_none());
    let token = hold.detach().unwrap();
    lock.release_token(token).unwrap();
    assert!(matches!(lock.release_token(token), Err(Error::Lost { .. })));
    assert!(stays.is_held());
    // One that was upgraded goes by its new token only.
    let mut hold = stays.into_owned();
    let before = hold.token();
    hold.upgrade().unwrap();
    let token = hold.detach().unwrap();
    assert!(token > before);
    assert!(matches!(
        there.release_token(before),
        Err(Error::Lost { .. })
    ));
    assert!(there.try_acquire_shared().unwrap().is_none());
    there.release_token(token).unwrap();
    assert!(there.try_acquire().unwrap().is_some());
}

pub(crate) fn a_break_ends_all_who_share_and_is_written_down(tier: &impl Tier) {
    let space = tier.space();
    let lock = space.lock("a").unwrap();
    let mut one = lock.acquire_shared().unwrap();
    let two = lock.acquire_shared().unwrap();
    let last = two.token();
    assert_eq!(space.break_lock("a").unwrap(), Some(last));
    assert!(!one.is_held() && !two.is_held());
    assert!(matches!(one.renew(), Err(Error::Lost { .. })));
    assert!(matches!(two.release(), Err(Error::Lost { .. })));
    let breaks = space.breaks();
    assert_eq!(breaks.len(), 1);
    assert_eq!((&*breaks[0].name, breaks[0].token), (&b"a"[..], last));
    assert_eq!(space.break_lock("a").unwrap(), None);
    assert_eq!(lock.try_acquire().unwrap().unwrap().token(), last + 1);
}

// property 6
pub(crate) fn a_wait_for_a_share_or_an_upgrade_that_ends_leaves_nothing(tier: &impl Tier) {
    let space = tier.space();
    let lock = space.lock("a").unwrap();
    let mut alone = lock.acquire().unwrap();
    let moment = Duration::from_millis(1);
    for timeout in [Duration::ZERO, moment] {
        assert!(lock.acquire_shared_timeout(timeout).unwrap().is_none());
    }
    assert_eq!(waiters(&space, "a"), 0);
    alone.downgrade().unwrap();
    let other = lock.acquire_shared().unwrap();
    for timeout in [Duration::ZERO, moment] {
        assert!(!alone.upgrade_timeout(timeout).unwrap());
        assert_eq!(waiters(&space, "a"), 0);
        assert!(alone.is_shared() && alone.is_held());
        assert!(
            lock.try_acquire_shared().unwrap().is_some(),
            "others get in again"
        );
    }
    other.release().unwrap();
    assert!(alone.try_upgrade().unwrap());
    let token = alone.token();
    assert!(alone.try_upgrade().unwrap(), "it has what it wants");
    alone.upgrade().unwrap();
    assert_eq!(alone.token(), token);
}

// property 6
pub(crate) fn futures_of_shares_are_woken_and_leave_nothing_when_dropped(tier: &impl Tier) {
    let space = tier.space();
    let lock = space.lock("a").unwrap();
    let Poll::Ready(Ok(first)) = poll_once(&mut lock.acquire_shared_async()) else {
        panic!("the lock is free")
    };
    let mut alone = lock.acquire_async();
    assert!(poll_once(&mut alone).is_pending());
    let mut dropped = lock.acquire_shared_async();
    assert!(
        poll_once(&mut dropped).is_pending(),
        "after the one who wants it alone"
    );
    assert_eq!(waiters(&space, "a"), 2);
    drop(alone);
    assert!(
        matches!(poll_once(&mut dropped), Poll::Ready(Ok(_))),
        "nobody is before it any more"
    );
    first.release().unwrap();
    let other = tier.another(&space);
    let alone = lock.acquire().unwrap();
    std::thread::scope(|scope| {
        let shares: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let lock = other.lock("a").unwrap().into_owned();
                    block_on(lock.acquire_shared_async()).unwrap()
                })
            })
            .collect();
        until(|| waiters(&space, "a") == 3);
        alone.release().unwrap();
        let shares: Vec<_> = shares
            .into_iter()
            .map(|share| share.join().unwrap())
            .collect();
        assert!(shares.iter().all(sprag::Hold::is_held));
    });
    assert_eq!(waiters(&space, "a"), 0);
    assert!(lock.try_acquire().unwrap().is_some());
}

pub(crate) fn an_inspection_tells_who_shares_a_lock(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let one = space.lock("a").unwrap().acquire_shared().unwrap();
    let two = other.lock("a").unwrap().acquire_shared().unwrap();
    let info = space.inspect("a").unwrap().remove(0);
    assert!(info.is_held && info.is_shared && !info.is_holder_dead);
    assert_eq!((info.holders, info.token), (2, two.token()));
    assert_eq!(info.holder_pid, Some(std::process::id()));
    assert!(info.lease_left > Duration::from_secs(10));
    drop(one);
    let mut two = two;
    two.upgrade().unwrap();
    let info = space.inspect("a").unwrap().remove(0);
    assert!(info.is_held && !info.is_shared);
    assert_eq!((info.holders, info.token), (1, two.token()));
    drop(two);
    let info = space.inspect("a").unwrap().remove(0);
    assert!(!info.is_held && !info.is_shared);
    assert_eq!(info.holders, 0);
}

// property 8, property 11
pub(crate) fn a_region_without_room_for_another_share_says_so(tier: &impl Tier) {
    let caps = sprag::Caps {
        permits: 2,
        ..Default::default()
    };
    let options = Space::builder().caps(caps).share_percent(100);
    let space = tier.open(options).unwrap();
    let lock = space.lock("a").unwrap();
    let one = lock.acquire_shared().unwrap();
    let _two = lock.acquire_shared().unwrap();
    let error = lock.acquire_shared().unwrap_err();
    assert!(matches!(
        error,
        Error::Engine(EngineError::Full { cap: 2, .. })
    ));
    let text = error.to_string();
    assert!(text.contains("shared hold or semaphore permit") && text.contains("cap 2"));
    // A downgrade that finds none keeps what it has.
    let mut alone = space.lock("b").unwrap().acquire().unwrap();
    assert!(alone.downgrade().is_err());
    assert!(alone.is_held() && !alone.is_shared());
    one.release().unwrap();
    alone.downgrade().unwrap();
}
