//! Concurrency limiters.

use super::block_on::{block_on, poll_once};
use super::tier::Tier;
use super::until;
use sprag::{Concurrency, EngineError, Error, Space};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

fn waiters(limiter: &Concurrency<'_>, key: &str) -> u32 {
    limiter.key(key).unwrap().peek().unwrap().waiters
}

fn is_above(error: &Error) -> bool {
    matches!(error, Error::Engine(EngineError::AboveCapacity { .. }))
}

// property 12
pub(crate) fn no_more_of_a_key_are_out_than_the_limiter_allows(tier: &impl Tier) {
    let space = tier.space();
    let uploads = space.concurrency("uploads", 3).unwrap();
    let (ann, bob) = (uploads.key("ann").unwrap(), uploads.key("bob").unwrap());
    let two = ann.try_acquire(2).unwrap().unwrap();
    assert!(ann.try_acquire(2).unwrap().is_none());
    let one = ann.try_acquire(1).unwrap().unwrap();
    assert!(ann.try_acquire(1).unwrap().is_none());
    // property 2
    assert_eq!(one.token(), two.token() + 1);
    let all = bob.try_acquire(3).unwrap().unwrap();
    let downloads = space.concurrency("downloads", 1).unwrap();
    let other = downloads.key("ann").unwrap().try_acquire(1).unwrap();
    assert!(other.is_some());
    let seen = ann.peek().unwrap();
    assert_eq!((seen.permits, seen.used(), seen.remaining()), (3, 3, 0));
    assert_eq!((seen.name, seen.holders), (b"ann".to_vec(), 2));
    two.release().unwrap();
    assert_eq!(ann.peek().unwrap().remaining(), 2);
    drop((one, all));
    assert!(ann.try_acquire(3).unwrap().is_some());
}

// property 8
pub(crate) fn a_limiter_with_another_capacity_is_an_error_until_it_is_updated(tier: &impl Tier) {
    let space = tier.space();
    assert!(space.find_concurrency("l").unwrap().is_none());
    let limiter = space.concurrency("l", 2).unwrap();
    for permits in [0, 1 << 24] {
        let error = space.concurrency("l", permits).unwrap_err();
        assert!(error.to_string().contains("permits is "), "{error}");
        assert!(space.concurrency_updated("l", permits).is_err());
    }
    let error = space.concurrency("l", 3).unwrap_err();
    assert!(matches!(
        &error,
        Error::Engine(EngineError::ConcurrencyDiffers { existing: 2, asked: 3, limiter }) if limiter == "l"
    ));
    assert!(error.to_string().contains("concurrency_updated"), "{error}");
    let other = tier.another(&space);
    assert_eq!(
        other
            .concurrency_updated("l", 3)
            .unwrap()
            .permits()
            .unwrap(),
        3
    );
    // By a handle from before, too.
    assert_eq!(limiter.permits().unwrap(), 3);
    let existing = space.find_concurrency("l").unwrap().unwrap();
    assert_eq!(
        (existing.name(), existing.permits().unwrap()),
        (b"l".to_vec(), 3)
    );
    let key = limiter.key("k").unwrap();
    assert!(key.try_acquire(0).is_err());
    assert!(is_above(&key.try_acquire(4).unwrap_err()));
    assert!(is_above(&key.acquire(4).unwrap_err()));
    assert!(key.try_acquire(3).unwrap().is_some());
    // A rate, and a semaphore, of the same name are other things.
    assert!(space.limiter("l", "1/s").is_ok());
    assert!(
        space
            .semaphore("l", 9)
            .unwrap()
            .try_acquire(9)
            .unwrap()
            .is_some()
    );
}

pub(crate) fn when_the_capacity_falls_nobody_loses_a_hold_and_nobody_gets_in_until_there_is_room(
    tier: &impl Tier,
) {
    let space = tier.space();
    let limiter = space.concurrency("l", 3).unwrap();
    let key = limiter.key("k").unwrap();
    let mut holds: Vec<_> = (0..3).map(|_| key.acquire(1).unwrap()).collect();
    space.concurrency_updated("l", 1).unwrap();
    assert!(holds.iter_mut().all(|hold| hold.renew().is_ok()));
    let seen = key.peek().unwrap();
    assert_eq!((seen.permits, seen.used(), seen.remaining()), (1, 3, 0));
    for _ in 0..3 {
        // property 12
        assert!(key.try_acquire(1).unwrap().is_none());
        assert!(
            key.acquire_timeout(1, Duration::from_millis(1))
                .unwrap()
                .is_none()
        );
        holds.pop();
    }
    let one = key.try_acquire(1).unwrap();
    assert!(one.is_some() && key.try_acquire(1).unwrap().is_none());
}

pub(crate) fn when_the_capacity_rises_those_who_wait_are_served_in_order(tier: &impl Tier) {
    let space = tier.space();
    let limiter = space.concurrency("l", 2).unwrap();
    let key = limiter.key("k").unwrap();
    let _two = key.acquire(2).unwrap();
    std::thread::scope(|scope| {
        let mut waits = Vec::new();
        for before in 0..3 {
            // One waits as a future.
            let key = &key;
            waits.push(scope.spawn(move || match before {
                1 => block_on(key.acquire_async(1).unwrap()).unwrap(),
                _ => key.acquire(1).unwrap(),
            }));
            until(|| waiters(&limiter, "k") == before + 1);
        }
        let other = tier.another(&space);
        other.concurrency_updated("l", 5).unwrap();
        let held = waits.into_iter().map(|wait| wait.join().unwrap());
        let tokens: Vec<u64> = held.map(|hold| hold.token()).collect();
        assert!(tokens.is_sorted(), "{tokens:?}");
    });
}

// property 8
pub(crate) fn who_waits_for_more_than_a_capacity_that_fell_is_told(tier: &impl Tier) {
    let space = tier.space();
    let limiter = space.concurrency("l", 3).unwrap();
    let key = limiter.key("k").unwrap();
    let one = key.acquire(1).unwrap();
    let mut future = key.acquire_async(3).unwrap();
    assert!(poll_once(&mut future).is_pending());
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| key.acquire(3).unwrap_err());
        until(|| waiters(&limiter, "k") == 2);
        // Behind them, and not kept waiting by them.
        let behind = scope.spawn(|| key.acquire(2).unwrap().token());
        until(|| waiters(&limiter, "k") == 3);
        space.concurrency_updated("l", 2).unwrap();
        assert!(is_above(&blocked.join().unwrap()));
        let error = block_on(future).unwrap_err();
        assert!(error.to_string().contains("limiter l allows 2"), "{error}");
        one.release().unwrap();
        behind.join().unwrap();
    });
    assert_eq!(waiters(&limiter, "k"), 0);
}

// property 9
pub(crate) fn keys_of_every_length_are_their_own_whatever_the_limiters_are_called(
    tier: &impl Tier,
) {
    let space = tier.space();
    let long = "l".repeat(1_024);
    let names = ["a", "ab", "b", &long];
    let limiters = names.map(|name| space.concurrency(name, 1).unwrap());
    let mut holds = Vec::new();
    // Around what fits a cell, and to the bound.
    for len in [1, 2, 3, 4, 19, 20, 21, 24, 48, 1_023, 1_024] {
        for first in [b'b', 0] {
            let mut key = vec![b'c'; len];
            key[0] = first;
            for limiter in &limiters {
                let key = limiter.key(&key).unwrap();
                holds.push(key.try_acquire(1).unwrap().expect("its own"));
                assert!(key.try_acquire(1).unwrap().is_none());
            }
        }
    }
    for key in [&[][..], &[b'k'; 1_025]] {
        let error = limiters[0].key(key).unwrap_err();
        assert!(error.to_string().contains("key is"), "{error}");
    }
    let seen = space.concurrency_limiters("a").unwrap();
    let all: Vec<_> = seen
        .iter()
        .map(|info| (&info.name[..], info.keys.len()))
        .collect();
    assert_eq!(all, [(&b"a"[..], 22), (&b"ab"[..], 22)]);
    assert!(seen[0].keys.iter().all(|key| key.used() == 1));
    let longest = seen[0].keys.iter().map(|key| key.name.len()).max();
    assert_eq!(longest, Some(1_024));
    drop(holds);
    assert!(space.find_concurrency(&[]).is_err());
}

// property 5
pub(crate) fn those_of_a_key_whose_lease_is_over_come_back(tier: &impl Tier) {
    let space = tier.space();
    let key = space.concurrency("l", 2).unwrap().key("k").unwrap();
    let short = key.clone().ttl(Duration::from_millis(1)).unwrap();
    let mut late = short.acquire(2).unwrap();
    let all = key.acquire_timeout(2, Duration::from_mins(1)).unwrap();
    assert!(all.is_some_and(|all| all.is_held()));
    let lost = late.renew().unwrap_err();
    assert!(
        matches!(&lost, Error::Lost { lock: Some(name), .. } if name == "k"),
        "{lost}"
    );
    assert!(late.release().is_err());
}

// property 3
pub(crate) fn holds_of_a_key_go_by_their_token(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let limiter = space.concurrency("l", 3).unwrap().into_owned();
    let key = limiter.key("k").unwrap();
    let token = key.acquire(2).unwrap().detach().unwrap();
    let elsewhere = [
        limiter.key("other").unwrap(),
        space.concurrency("m", 3).unwrap().key("k").unwrap(),
        space.semaphore("k", 3).unwrap(),
    ];
    for handle in elsewhere {
        assert!(matches!(
            handle.release_token(token),
            Err(Error::Lost { .. })
        ));
    }
    let there = other.find_concurrency("l").unwrap().unwrap();
    let there = there.key("k").unwrap();
    there.renew_token(token).unwrap();
    let hold = there.adopt_token(token).unwrap();
    assert_eq!(hold.token(), token);
    assert!(key.try_acquire(2).unwrap().is_none());
    let token = hold.detach().unwrap();
    key.release_token(token).unwrap();
    assert!(matches!(there.renew_token(token), Err(Error::Lost { .. })));
    assert!(key.try_acquire(3).unwrap().is_some());
}

// property 11
pub(crate) fn keys_that_nobody_uses_make_room_and_limiters_stay(tier: &impl Tier) {
    let caps = sprag::Caps {
        objects: 4,
        ..Default::default()
    };
    let space = Space::builder().caps(caps).share_percent(100);
    let space = tier.open(space).unwrap();
    let limiter = space.concurrency("l", 2).unwrap();
    let first = limiter.key("0").unwrap().acquire(1).unwrap().token();
    for i in 0..64_u32 {
        let key = limiter.key(&[i.to_string(), "k".repeat(i as usize)].concat());
        assert!(key.unwrap().acquire(2).unwrap().is_held());
    }
    // property 2
    assert!(limiter.key("0").unwrap().acquire(1).unwrap().token() > first);
    let kept: Vec<_> = (0..3)
        .map(|i| limiter.key(&[i]).unwrap().acquire(1).unwrap())
        .collect();
    assert!(matches!(
        limiter.key("more").unwrap().try_acquire(1),
        Err(Error::Engine(EngineError::Full { .. }))
    ));
    drop(kept);
    assert!(space.concurrency("l", 2).is_ok());
}

// property 12
pub(crate) fn threads_never_have_more_than_the_capacity_while_it_changes(tier: &impl Tier) {
    let space = tier.space();
    let limiter = space.concurrency("l", 4).unwrap();
    // How many are out at least, and how many there may be at most.
    let (out, over) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let key = limiter.key("k").unwrap();
                for round in 0..200_u32 {
                    let amount = round % 2 + 1;
                    let hold = match round % 5 {
                        0 => Some(key.acquire(amount).unwrap()),
                        _ => key.try_acquire(amount).unwrap(),
                    };
                    let Some(hold) = hold else { continue };
                    if out.fetch_add(amount, SeqCst) + amount > 4 {
                        over.fetch_add(1, SeqCst);
                    }
                    out.fetch_sub(amount, SeqCst);
                    hold.release().unwrap();
                }
            });
        }
        for round in 0..100 {
            let capacity = [2, 4, 3][round % 3];
            space.concurrency_updated("l", capacity).unwrap();
        }
    });
    assert_eq!(over.into_inner(), 0);
    space.concurrency_updated("l", 4).unwrap();
    assert!(limiter.key("k").unwrap().try_acquire(4).unwrap().is_some());
}
