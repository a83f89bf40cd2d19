//! Holds of partitions, of the table and of several locks: leases, tokens, inspection, and their ends.

use super::block_on::block_on;
use super::tier::Tier;
use super::until;
use sprag::{Error, KeepAlive};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(30);

// property 5
pub(crate) fn coarse_and_several_locks_end_with_their_lease_and_last_as_long_as_it_is_renewed(
    tier: &impl Tier,
) {
    let space = tier.space();
    let lock = space.lock("a").unwrap();
    let table = space.table().unwrap().ttl(SHORT).unwrap();
    let both = space.locks(["a", "b"]).unwrap().ttl(SHORT).unwrap();
    let mut hold = table.acquire().unwrap();
    hold.extend(Duration::from_mins(1)).unwrap();
    assert!(hold.lease_left() > SHORT && lock.try_acquire().unwrap().is_none());
    hold.extend(SHORT).unwrap();
    drop(lock.acquire().unwrap());
    assert!(matches!(hold.renew(), Err(Error::Lost { .. })));
    assert!(!hold.is_held() && !hold.is_valid());
    assert!(matches!(hold.release(), Err(Error::Lost { .. })));
    let mut hold = both.acquire().unwrap();
    hold.extend(Duration::from_mins(1)).unwrap();
    assert!(hold.is_held() && lock.try_acquire().unwrap().is_none());
    hold.extend(SHORT).unwrap();
    // The one that follows comes free by the lease of the one that leads.
    drop(space.lock("b").unwrap().acquire().unwrap());
    drop(lock.acquire().unwrap());
    assert!(matches!(hold.release(), Err(Error::Lost { .. })));
}

pub(crate) fn several_locks_that_are_kept_alive_outlive_their_lease_and_a_break_of_one_is_told(
    tier: &impl Tier,
) {
    let space = tier.space();
    // Long enough that a busy machine lets the background renew it in time.
    let ttl = Duration::from_secs(1);
    let both = space.locks(["a", "b"]).unwrap().ttl(ttl).unwrap();
    let mut hold = both.acquire().unwrap();
    let (lost, is_lost) = mpsc::channel();
    let on_lost: Arc<dyn Fn() + Send + Sync> = Arc::new(move || {
        let _ = lost.send(());
    });
    hold.keep_alive(KeepAlive {
        on_lost: Some(on_lost),
        ..KeepAlive::default()
    })
    .unwrap();
    let began = std::time::Instant::now();
    until(|| began.elapsed() > ttl);
    assert!(hold.is_held());
    let tokens = hold.tokens().to_vec();
    assert_eq!(space.break_lock("b").unwrap(), Some(tokens[1]));
    is_lost.recv().unwrap();
    assert!(!hold.is_held());
    assert!(space.lock("a").unwrap().try_acquire().unwrap().is_some());
    assert!(space.lock("b").unwrap().try_acquire().unwrap().is_some());
    assert_eq!(space.breaks().len(), 1);
}

// property 3
pub(crate) fn a_detached_coarse_lock_is_renewed_adopted_and_released_by_its_token(
    tier: &impl Tier,
) {
    let space = tier.space();
    let lock = space.lock("a").unwrap();
    for coarse in [
        space.partition(space.partition_of("a")).unwrap(),
        space.table().unwrap(),
    ] {
        let token = coarse.acquire().unwrap().detach().unwrap();
        assert!(lock.try_acquire().unwrap().is_none());
        assert!(space.inspect_coarse().unwrap()[0].is_detached);
        coarse.renew_token(token).unwrap();
        assert!(coarse.renew_token(token + 1).is_err());
        let hold = coarse.adopt_token(token).unwrap();
        assert_eq!(hold.token(), token);
        assert!(hold.is_held());
        hold.release().unwrap();
        assert!(lock.try_acquire().unwrap().is_some());
        let token = coarse.acquire().unwrap().detach().unwrap();
        coarse.release_token(token).unwrap();
        assert!(coarse.release_token(token).is_err());
        assert!(lock.try_acquire().unwrap().is_some());
        assert!(matches!(coarse.adopt_token(token), Err(Error::Lost { .. })));
    }
    assert!(space.inspect_coarse().unwrap().is_empty());
}

// property 3
pub(crate) fn breaking_a_coarse_lock_ends_its_hold_and_is_written_down(tier: &impl Tier) {
    let space = tier.space();
    let (table, partition) = (space.table().unwrap(), space.partition(0).unwrap());
    assert_eq!(partition.break_hold().unwrap(), None);
    let hold = partition.acquire().unwrap();
    assert_eq!(partition.break_hold().unwrap(), Some(hold.token()));
    assert!(!hold.is_held());
    let hold = table.acquire().unwrap();
    assert_eq!(partition.break_hold().unwrap(), Some(hold.token()));
    assert!(!hold.is_held());
    assert!(table.try_acquire().unwrap().is_some());
    let names: Vec<Vec<u8>> = space.breaks().into_iter().map(|it| it.name).collect();
    assert_eq!(names, [b"partition 0".to_vec(), b"the table".to_vec()]);
}

pub(crate) fn an_inspection_tells_who_holds_several_and_coarse_locks(tier: &impl Tier) {
    let space = tier.space();
    let hold = space.locks(["a", "b"]).unwrap().acquire().unwrap();
    let seen = space.inspect("").unwrap();
    assert_eq!(seen.len(), 2);
    for (info, token) in seen.iter().zip(hold.tokens()) {
        assert!(info.is_held);
        assert_eq!(info.token, *token);
        assert_eq!(info.holder_pid, Some(std::process::id()));
        assert!(info.lease_left > Duration::from_secs(20));
    }
    hold.release().unwrap();
    assert!(space.inspect("").unwrap().iter().all(|info| !info.is_held));
    assert!(space.inspect_coarse().unwrap().is_empty());
    let hold = space.table().unwrap().acquire().unwrap();
    let seen = space.inspect_coarse().unwrap();
    assert_eq!(seen.len(), space.partitions() as usize + 1);
    assert!(seen.iter().all(|info| info.is_held));
    let table = &seen[seen.len() - 1];
    assert_eq!(
        (&table.name[..], table.token),
        (&b"the table"[..], hold.token())
    );
    assert_eq!(table.holder_pid, Some(std::process::id()));
}

// property 4
pub(crate) fn what_a_session_that_ends_held_of_several_and_coarse_locks_is_had(tier: &impl Tier) {
    let space = tier.space();
    for what in 0..3 {
        let other = tier.another(&space);
        match what {
            0 => std::mem::forget(other.locks(["a", "b"]).unwrap().acquire().unwrap()),
            1 => std::mem::forget(other.table().unwrap().acquire().unwrap()),
            _ => std::mem::forget(other.partition(0).unwrap().acquire().unwrap()),
        }
        if tier.has_sessions() {
            drop(other);
        } else {
            // Its holds are the space's own.
            for name in ["a", "b"] {
                let _ = space.break_lock(name).unwrap();
            }
            let _ = space.table().unwrap().break_hold().unwrap();
            let _ = space.partition(0).unwrap().break_hold().unwrap();
        }
        for name in ["b", "a"] {
            assert!(space.lock(name).unwrap().try_acquire().unwrap().is_some());
        }
        assert!(space.table().unwrap().try_acquire().unwrap().is_some());
    }
}

// property 6
pub(crate) fn a_timed_wait_for_several_or_coarse_locks_leaves_nothing(tier: &impl Tier) {
    let space = tier.space();
    let lock = space.lock("a").unwrap();
    let hold = lock.acquire().unwrap();
    let soon = Duration::from_millis(5);
    let partition = space.partition(space.partition_of("a")).unwrap();
    assert!(partition.acquire_timeout(soon).unwrap().is_none());
    assert!(
        space
            .table()
            .unwrap()
            .acquire_timeout(soon)
            .unwrap()
            .is_none()
    );
    let both = space.locks(["a", "b"]).unwrap();
    assert!(both.acquire_timeout(soon).unwrap().is_none());
    drop(both.acquire_async());
    drop(partition.acquire_async());
    for name in ["b", "c"] {
        assert!(space.lock(name).unwrap().try_acquire().unwrap().is_some());
    }
    assert!(space.inspect_coarse().unwrap().is_empty());
    hold.release().unwrap();
    assert!(both.try_acquire().unwrap().is_some());
    assert!(partition.try_acquire().unwrap().is_some());
}

pub(crate) fn futures_of_several_and_coarse_locks_are_woken(tier: &impl Tier) {
    let space = tier.space();
    let lock = space.lock("a").unwrap();
    let both = space.locks(["a", "b"]).unwrap().into_owned();
    let partition = space
        .partition(space.partition_of("a"))
        .unwrap()
        .into_owned();
    let hold = block_on(both.acquire_async()).unwrap();
    assert_eq!(hold.tokens().len(), 2);
    drop(hold);
    let hold = lock.acquire().unwrap();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| drop(block_on(both.acquire_async()).unwrap()));
        let second = scope.spawn(|| drop(block_on(partition.acquire_async()).unwrap()));
        until(|| super::waiters(&space, "b") == 1 && space.inspect_coarse().unwrap().len() == 1);
        hold.release().unwrap();
        first.join().unwrap();
        second.join().unwrap();
    });
}

// property 2
pub(crate) fn a_fence_takes_the_tokens_of_several_locks_each_its_own(tier: &impl Tier) {
    let space = tier.space();
    let both = space.locks(["a", "b"]).unwrap();
    let (a, b) = (space.fence("a").unwrap(), space.fence("b").unwrap());
    let before = both.acquire().unwrap().tokens().to_vec();
    drop(space.lock("b").unwrap().acquire().unwrap());
    let hold = both.acquire().unwrap().into_owned();
    a.admit(hold.tokens()[0]).unwrap();
    b.admit(hold.tokens()[1]).unwrap();
    assert!(a.admit(before[0]).is_err() && b.admit(before[1]).is_err());
}

// property 1
pub(crate) fn holders_of_every_granularity_exclude_each_other_under_many_threads(tier: &impl Tier) {
    const ROUNDS: u32 = 300;
    let space = tier.space();
    let keys = ["a", "b", "c"];
    // What each key guards: written and checked by whoever has it, by whatever lock.
    let guarded: [AtomicU64; 3] = Default::default();
    let rounds: AtomicU32 = AtomicU32::new(0);
    let use_it = |which: &[usize], mark: u64| {
        for &key in which {
            // Relaxed: right only if the locks order those who come after.
            assert_eq!(guarded[key].swap(mark, Relaxed), 0, "somebody else is in");
        }
        std::thread::yield_now();
        for &key in which {
            assert_eq!(guarded[key].swap(0, Relaxed), mark, "somebody else came in");
        }
        rounds.fetch_add(1, Relaxed);
    };
    let beneath = |partition: u32| {
        let is_in = |key: &usize| space.partition_of(keys[*key]) == partition;
        (0..keys.len()).filter(is_in).collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (space, use_it, beneath) = (&space, &use_it, &beneath);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let mark = thread * 1_000_000 + u64::from(round) + 1;
                    let key = (round as usize + thread as usize) % keys.len();
                    match (thread + u64::from(round)) % 8 {
                        0..3 => {
                            let hold = space.lock(keys[key]).unwrap().acquire().unwrap();
                            use_it(&[key], mark);
                            hold.release().unwrap();
                        }
                        3..6 => {
                            let other = (key + 1) % keys.len();
                            let both = space.locks([keys[key], keys[other]]).unwrap();
                            let hold = both.acquire().unwrap();
                            use_it(&[key, other], mark);
                            hold.release().unwrap();
                        }
                        6 => {
                            let partition = space.partition_of(keys[key]);
                            let hold = space.partition(partition).unwrap().acquire().unwrap();
                            use_it(&beneath(partition), mark);
                            hold.release().unwrap();
                        }
                        _ => {
                            let hold = space.table().unwrap().acquire().unwrap();
                            use_it(&[0, 1, 2], mark);
                            hold.release().unwrap();
                        }
                    }
                }
            });
        }
    });
    assert_eq!(rounds.into_inner(), 4 * ROUNDS);
    assert!(space.inspect_coarse().unwrap().is_empty());
}

// property 14
pub(crate) fn owners_that_take_locks_in_one_order_are_never_told_and_others_never_hang(
    tier: &impl Tier,
) {
    const ROUNDS: usize = 150;
    let space = tier.space();
    let keys = ["a", "b", "c"];
    let told = AtomicU32::new(0);
    for is_ordered in [true, false] {
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (space, told) = (&space, &told);
                scope.spawn(move || {
                    let owner = space.owner();
                    for round in 0..ROUNDS {
                        let first = (thread + round) % keys.len();
                        let second = (first + 1) % keys.len();
                        let pair = if is_ordered {
                            [first.min(second), first.max(second)]
                        } else {
                            [first, second]
                        };
                        let one = owner.lock(keys[pair[0]]).unwrap().acquire().unwrap();
                        match owner.lock(keys[pair[1]]).unwrap().acquire() {
                            Ok(two) => two.release().unwrap(),
                            Err(Error::Deadlock { .. }) if !is_ordered => {
                                told.fetch_add(1, Relaxed);
                            }
                            Err(error) => panic!("ordered: {is_ordered}: {error}"),
                        }
                        one.release().unwrap();
                    }
                });
            }
        });
    }
    assert!(
        space.inspect("").unwrap().iter().all(|info| !info.is_held),
        "something is held still"
    );
}

// property 14
pub(crate) fn a_circle_of_three_is_broken_by_exactly_one(tier: &impl Tier) {
    let space = tier.space();
    let keys = ["a", "b", "c"];
    for _ in 0..20 {
        let ready = std::sync::Barrier::new(3);
        let told = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (space, ready, told) = (&space, &ready, &told);
                scope.spawn(move || {
                    let owner = space.owner();
                    let one = owner.lock(keys[thread]).unwrap().acquire().unwrap();
                    ready.wait();
                    match owner.lock(keys[(thread + 1) % 3]).unwrap().acquire() {
                        Ok(two) => two.release().unwrap(),
                        Err(Error::Deadlock { deadlock }) => {
                            assert_eq!(deadlock.waits.len(), 3);
                            told.fetch_add(1, Relaxed);
                        }
                        Err(error) => panic!("{error}"),
                    }
                    one.release().unwrap();
                });
            }
        });
        assert_eq!(told.into_inner(), 1, "who is told breaks the one circle");
    }
}
