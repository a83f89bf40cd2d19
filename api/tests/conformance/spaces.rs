//! Spaces, sessions, caps.

use super::block_on::block_on;
use super::tier::{Tier, small};
use super::{until, waiters};
use sprag::{Caps, Error};
use std::time::Duration;

pub(crate) fn clones_share_everything(tier: &impl Tier) {
    let space = tier.space();
    let clone = space.clone();
    let hold = space.lock("a").unwrap().acquire().unwrap();
    assert!(clone.lock("a").unwrap().try_acquire().unwrap().is_none());
    assert_eq!(clone.inspect("").unwrap().len(), 1);
    clone.fence("f").unwrap().admit(3).unwrap();
    assert_eq!(space.fence("f").unwrap().highest(), 3);
    drop(clone);
    assert!(hold.is_held(), "one handle less changes nothing");
}

pub(crate) fn partitions_are_stable_and_within_bounds(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let partitions = space.partitions();
    assert!((1..=64).contains(&partitions) && partitions.is_power_of_two());
    let mut seen = std::collections::BTreeSet::new();
    for i in 0..2_000_u32 {
        let partition = space.partition_of(&i.to_le_bytes());
        assert!(partition < partitions);
        assert_eq!(other.partition_of(&i.to_le_bytes()), partition);
        seen.insert(partition);
    }
    assert_eq!(seen.len() as u32, partitions, "every partition has keys");
    drop(space.lock(&7_u32.to_le_bytes()).unwrap().acquire().unwrap());
    assert_eq!(space.partition_of("k"), other.partition_of("k"));
}

pub(crate) fn a_space_tells_its_url(tier: &impl Tier) {
    let space = tier.space();
    assert!(space.url().starts_with("mem:") || space.url().starts_with("shm:"));
    assert!(space.url().starts_with("mem:") != tier.has_sessions());
    for bad in ["", "mem", "memory:", "http://localhost", "shm:", "mem:name"] {
        assert!(matches!(small().open(bad), Err(Error::Place(_))), "{bad}");
    }
}

// property 8
pub(crate) fn caps_and_shares_outside_their_bounds_are_errors(tier: &impl Tier) {
    let good = Caps::default();
    let bad = [
        Caps { objects: 0, ..good },
        Caps {
            objects: (1 << 26) + 1,
            ..good
        },
        Caps {
            limiter_keys: 0,
            ..good
        },
        Caps {
            limiter_keys: u32::MAX,
            ..good
        },
        Caps {
            sessions: 0,
            ..good
        },
        Caps {
            sessions: 4_097,
            ..good
        },
        Caps { waiters: 0, ..good },
        Caps {
            waiters: (1 << 16) + 1,
            ..good
        },
        Caps {
            key_chunks: 0,
            ..good
        },
        Caps {
            key_chunks: u32::MAX,
            ..good
        },
    ];
    for caps in bad {
        let error = tier.open(small().caps(caps)).err().unwrap();
        assert!(
            matches!(error, Error::Engine(sprag_core::Error::OutOfRange { .. })),
            "{caps:?}: {error}"
        );
    }
    for percent in [0, 101, u32::MAX] {
        let error = tier.open(small().share_percent(percent)).err().unwrap();
        assert!(matches!(
            error,
            Error::Engine(sprag_core::Error::OutOfRange {
                min: 1,
                max: 100,
                ..
            })
        ));
    }
    tier.open(small().share_percent(1)).unwrap();
}

// property 11
pub(crate) fn a_full_table_is_a_typed_error_and_reclaims_first(tier: &impl Tier) {
    let caps = Caps {
        objects: 40,
        waiters: 2,
        ..Caps::default()
    };
    let space = tier.open(small().caps(caps).share_percent(100)).unwrap();
    for i in 0..200_u32 {
        drop(space.lock(&i.to_le_bytes()).unwrap().acquire().unwrap());
    }
    let holds: Vec<_> = (0..40_u32)
        .map(|i| space.lock(&i.to_be_bytes()).unwrap().acquire().unwrap())
        .collect();
    let full = |error| {
        matches!(
            error,
            Error::Engine(sprag_core::Error::Full { cap: 40, .. })
        )
    };
    assert!(full(
        space.lock("more").unwrap().try_acquire().err().unwrap()
    ));
    assert!(full(space.fence("more").unwrap().admit(1).unwrap_err()));
    assert!(full(space.limiter("more", "1/second").err().unwrap()));
    drop(holds);
    assert!(space.lock("more").unwrap().try_acquire().unwrap().is_some());
    // Waits have a cap of their own.
    let lock = space.lock("a").unwrap();
    let hold = lock.acquire().unwrap();
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| drop(lock.acquire().unwrap())))
            .collect();
        until(|| waiters(&space, "a") == 2);
        let error = lock.acquire_timeout(Duration::from_hours(1)).err().unwrap();
        assert!(matches!(
            error,
            Error::Engine(sprag_core::Error::Full {
                what: "waiter",
                cap: 2
            })
        ));
        assert!(block_on(lock.acquire_async()).is_err());
        assert!(
            lock.try_acquire().unwrap().is_none(),
            "a try needs no place in the queue"
        );
        assert!(
            space
                .owner()
                .lock("a")
                .unwrap()
                .try_acquire()
                .unwrap()
                .is_none()
        );
        drop(hold);
        for thread in waiting {
            thread.join().unwrap();
        }
    });
}

// property 1, property 4, property 15
pub(crate) fn two_sessions_exclude_each_other_and_one_that_ends_frees_what_it_held(
    tier: &impl Tier,
) {
    if !tier.has_sessions() {
        return;
    }
    let (space, other) = (tier.space(), tier.space());
    let hold = other.lock("a").unwrap().acquire().unwrap();
    let token = hold.token();
    assert!(space.lock("a").unwrap().try_acquire().unwrap().is_none());
    // A process that ends does not release; its session's end does.
    std::mem::forget(hold);
    drop(other);
    let next = space.lock("a").unwrap().try_acquire().unwrap().unwrap();
    assert_eq!(next.token(), token + 1);
    assert!(!space.inspect("a").unwrap()[0].is_detached);
}

// property 3
pub(crate) fn a_hold_adopted_by_another_session_is_no_longer_the_first_ones(tier: &impl Tier) {
    if !tier.has_sessions() {
        return;
    }
    let (space, other) = (tier.space(), tier.space());
    let mut first = space.lock("a").unwrap().acquire().unwrap();
    let adopted = other.lock("a").unwrap().adopt_token(first.token()).unwrap();
    assert_eq!(adopted.token(), first.token());
    assert!(!first.is_held() && adopted.is_held());
    assert!(matches!(first.renew(), Err(Error::Lost { .. })));
    drop(first);
    assert!(adopted.is_held(), "the first holder's drop freed it");
    assert!(space.lock("a").unwrap().try_acquire().unwrap().is_none());
    adopted.release().unwrap();
}

pub(crate) fn queues_span_sessions(tier: &impl Tier) {
    let space = tier.space();
    let sessions: Vec<_> = (0..4).map(|_| tier.another(&space)).collect();
    let hold = space.lock("a").unwrap().acquire().unwrap();
    let first = hold.token();
    let tokens: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = sessions
            .iter()
            .zip(1..)
            .map(|(session, i)| {
                let thread = scope.spawn(|| session.lock("a").unwrap().acquire().unwrap().token());
                until(|| waiters(&space, "a") == i);
                thread
            })
            .collect();
        drop(hold);
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(tokens, (first + 1..=first + 4).collect::<Vec<_>>());
}
