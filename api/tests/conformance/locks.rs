//! Locks and holds.

use super::block_on::block_on;
use super::tier::Tier;
use super::{until, waiters};
use sprag::Error;
use std::time::Duration;

const TTL_MIN: Duration = Duration::from_millis(1);
const TTL_MAX: Duration = Duration::from_hours(366 * 24);
/// Long enough to be granted in any test, and proof of nothing when it is.
const LONG: Duration = Duration::from_hours(1);

// property 1
pub(crate) fn a_free_lock_is_had_at_once_and_a_held_one_is_not(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let hold = space.lock("a").unwrap().try_acquire().unwrap().unwrap();
    assert!(hold.is_valid() && hold.is_held());
    for space in [&space, &other] {
        let lock = space.lock("a").unwrap();
        assert!(lock.try_acquire().unwrap().is_none());
        assert!(lock.acquire_timeout(Duration::ZERO).unwrap().is_none());
        assert!(lock.acquire_timeout(TTL_MIN).unwrap().is_none());
    }
    assert!(other.lock("b").unwrap().try_acquire().unwrap().is_some());
    hold.release().unwrap();
    assert!(other.lock("a").unwrap().try_acquire().unwrap().is_some());
}

// property 2
pub(crate) fn tokens_are_consecutive_and_each_lock_has_its_own(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let first = space.lock("a").unwrap().acquire().unwrap().token();
    assert!(first > 0 && first <= sprag::TOKEN_MAX);
    for i in 1..20 {
        let space = if i % 2 == 0 { &space } else { &other };
        let lock = space.lock("a").unwrap();
        let hold = match i % 3 {
            0 => lock.acquire().unwrap(),
            1 => lock.try_acquire().unwrap().unwrap(),
            _ => lock.acquire_timeout(LONG).unwrap().unwrap(),
        };
        assert_eq!(hold.token(), first + i);
        let _another_lock = space.lock("b").unwrap().acquire().unwrap();
        assert!(lock.try_acquire().unwrap().is_none());
    }
}

pub(crate) fn dropping_a_hold_releases_it(tier: &impl Tier) {
    let space = tier.space();
    let lock = space.lock("a").unwrap();
    assert_eq!(lock.name(), b"a");
    drop(lock.acquire().unwrap());
    let _held = lock.try_acquire().unwrap().unwrap();
}

// property 6
pub(crate) fn a_timed_wait_that_ends_leaves_nothing(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let hold = space.lock("a").unwrap().acquire().unwrap();
    for _ in 0..5 {
        assert!(
            other
                .lock("a")
                .unwrap()
                .acquire_timeout(TTL_MIN)
                .unwrap()
                .is_none()
        );
        assert_eq!(waiters(&space, "a"), 0);
    }
    let token = hold.token();
    hold.release().unwrap();
    let next = other.lock("a").unwrap().try_acquire().unwrap().unwrap();
    assert_eq!(
        next.token(),
        token + 1,
        "no grant was made to a wait that had ended"
    );
}

pub(crate) fn a_wait_without_end_is_granted_by_a_release(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let hold = space.lock("a").unwrap().acquire().unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| other.lock("a").unwrap().acquire().unwrap().token());
        until(|| waiters(&space, "a") == 1);
        let token = hold.token();
        hold.release().unwrap();
        assert_eq!(waiter.join().unwrap(), token + 1);
    });
    assert_eq!(waiters(&space, "a"), 0);
}

pub(crate) fn waiters_are_served_in_the_order_they_came(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let hold = space.lock("a").unwrap().acquire().unwrap();
    let first = hold.token();
    let tokens: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8_u32)
            .map(|i| {
                let space = if i % 2 == 0 { &space } else { &other };
                let thread = scope.spawn(move || {
                    let lock = space.lock("a").unwrap();
                    let hold = if i % 3 == 0 {
                        lock.acquire_timeout(LONG).unwrap().unwrap()
                    } else {
                        lock.acquire().unwrap()
                    };
                    hold.token()
                });
                until(|| waiters(space, "a") == i + 1);
                thread
            })
            .collect();
        hold.release().unwrap();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let in_order: Vec<u64> = (first + 1..=first + 8).collect();
    assert_eq!(tokens, in_order);
}

// property 4, property 5
pub(crate) fn a_waiter_gets_the_lock_of_a_holder_whose_lease_ran_out(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let short = space
        .lock("a")
        .unwrap()
        .ttl(Duration::from_millis(20))
        .unwrap();
    let mut old = short.acquire().unwrap();
    let new = other.lock("a").unwrap().acquire().unwrap();
    assert_eq!(new.token(), old.token() + 1);
    assert!(!old.is_valid() && !old.is_held());
    assert_eq!(old.lease_left(), Duration::ZERO);
    assert!(matches!(old.renew(), Err(Error::Lost { token, .. }) if token == old.token()));
    let token = old.token();
    assert!(matches!(old.release(), Err(Error::Lost { token: lost, .. }) if lost == token));
    assert!(new.is_held(), "the late release took the newer hold");
}

// property 3
pub(crate) fn an_old_token_frees_no_newer_hold_of_the_same_owner(tier: &impl Tier) {
    let space = tier.space();
    let lock = space.lock("a").unwrap();
    let old = lock.acquire().unwrap();
    let old_token = old.token();
    old.release().unwrap();
    let new = lock.acquire().unwrap();
    for token in [old_token, 0, new.token() + 1, u64::MAX] {
        assert!(
            matches!(lock.release_token(token), Err(Error::Lost { token: lost, .. }) if lost == token)
        );
        assert!(matches!(lock.renew_token(token), Err(Error::Lost { .. })));
        assert!(matches!(lock.adopt_token(token), Err(Error::Lost { .. })));
    }
    assert!(new.is_held());
    new.release().unwrap();
}

pub(crate) fn a_released_hold_cannot_be_used_by_its_token(tier: &impl Tier) {
    let space = tier.space();
    let lock = space.lock("a").unwrap();
    let hold = lock.acquire().unwrap();
    let token = hold.token();
    lock.release_token(token).unwrap();
    assert!(!hold.is_held());
    assert!(matches!(lock.release_token(token), Err(Error::Lost { .. })));
    assert!(matches!(hold.release(), Err(Error::Lost { .. })));
    // A name that nobody ever used.
    let never = space.lock("never").unwrap();
    assert!(matches!(
        never.release_token(token),
        Err(Error::Lost { .. })
    ));
    assert!(matches!(never.renew_token(token), Err(Error::Lost { .. })));
    assert!(matches!(never.adopt_token(token), Err(Error::Lost { .. })));
}

// property 8
pub(crate) fn a_ttl_outside_its_bounds_is_an_error_that_names_them(tier: &impl Tier) {
    let space = tier.space();
    let nanosecond = Duration::from_nanos(1);
    let mut hold = space.lock("a").unwrap().acquire().unwrap();
    for bad in [
        Duration::ZERO,
        Duration::from_nanos(999_999),
        TTL_MAX + nanosecond,
        Duration::MAX,
    ] {
        let error = space.lock("b").unwrap().ttl(bad).err().unwrap();
        assert!(
            matches!(error, Error::Duration { what: "ttl", value, min, max }
                if (value, min, max) == (bad, TTL_MIN, TTL_MAX)),
            "{error}"
        );
        assert!(matches!(
            hold.extend(bad),
            Err(Error::Duration { what: "ttl", .. })
        ));
    }
    for good in [TTL_MIN, TTL_MAX] {
        let lock = space.lock("b").unwrap().ttl(good).unwrap();
        let hold = lock.acquire_timeout(LONG).unwrap().unwrap();
        assert!(hold.lease_left() <= good);
    }
    hold.extend(TTL_MAX).unwrap();
    assert!(hold.is_valid() && hold.lease_left() + LONG > TTL_MAX);
}

// property 9
pub(crate) fn names_are_bytes_of_every_value(tier: &impl Tier) {
    let space = tier.space();
    let one: Vec<_> = (0..=255_u8)
        .map(|byte| space.lock(&[byte]).unwrap().acquire().unwrap())
        .collect();
    // Padding and trailing zeros are no part of each other.
    let names: [&[u8]; 6] = [b"n", b"n\0", b"n\0\0", b"\0n", b"N", b"n "];
    let more: Vec<_> = names
        .iter()
        .filter(|name| name.len() > 1)
        .map(|name| space.lock(*name).unwrap().try_acquire().unwrap().unwrap())
        .collect();
    let mut seen: Vec<Vec<u8>> = space
        .inspect("")
        .unwrap()
        .into_iter()
        .map(|lock| lock.name)
        .collect();
    let mut expected: Vec<Vec<u8>> = (0..=255_u8).map(|byte| vec![byte]).collect();
    expected.extend(
        names
            .iter()
            .filter(|name| name.len() > 1)
            .map(|name| name.to_vec()),
    );
    expected.sort();
    seen.sort();
    assert_eq!(seen, expected);
    drop((one, more));
}

// property 9
pub(crate) fn names_of_every_length_are_locks_of_their_own(tier: &impl Tier) {
    let space = tier.space();
    let long = [b'x'; 1024];
    let holds: Vec<_> = (1..=1024)
        .map(|len| {
            space
                .lock(&long[..len])
                .unwrap()
                .try_acquire()
                .unwrap()
                .unwrap()
        })
        .collect();
    let mut other = long;
    other[1023] = b'y';
    let last_byte = space.lock(&other).unwrap();
    assert!(
        last_byte.try_acquire().unwrap().is_some(),
        "only the last byte differs"
    );
    for len in 1..=1024 {
        let lock = space.lock(&long[..len]).unwrap();
        assert_eq!(lock.name(), &long[..len]);
        assert!(lock.try_acquire().unwrap().is_none(), "{len}");
    }
    let listed: Vec<usize> = space
        .inspect("x")
        .unwrap()
        .into_iter()
        .map(|lock| lock.name.len())
        .collect();
    // In the order of names: the shorter of two that begin alike comes first; the odd one, last.
    assert_eq!(listed, (1..=1024).chain([1024]).collect::<Vec<_>>());
    drop(holds);
}

// property 8, property 9
pub(crate) fn names_too_short_or_too_long_are_errors_everywhere(tier: &impl Tier) {
    let space = tier.space();
    let long = [0; 1025];
    for (name, bad_len) in [(&b""[..], 0), (&long[..], 1025)] {
        let limiter = space.limiter("l", "1/second").unwrap();
        let owner = space.owner();
        let errors = [
            space.lock(name).err(),
            owner.lock(name).err(),
            space.fence(name).err(),
            space.limiter(name, "1/second").err(),
            space.limiter_updated(name, "1/second").err(),
            space.break_lock(name).err(),
            limiter.check(name, 1).err(),
            limiter.peek(name).err(),
        ];
        for (i, error) in errors.into_iter().enumerate() {
            assert!(
                matches!(
                    error,
                    Some(Error::Engine(sprag_core::Error::NameLength { len, max: 1024, .. })) if len == bad_len
                ),
                "{i}: {error:?}"
            );
        }
    }
}

pub(crate) fn a_detached_hold_lives_until_released_by_its_token(tier: &impl Tier) {
    let space = tier.space();
    let session = tier.another(&space);
    let token = session
        .lock("a")
        .unwrap()
        .acquire()
        .unwrap()
        .detach()
        .unwrap();
    drop(session);
    let lock = space.lock("a").unwrap();
    assert!(lock.try_acquire().unwrap().is_none());
    let info = &space.inspect("a").unwrap()[0];
    assert!(info.is_held && info.is_detached);
    assert_eq!((info.holder_pid, info.token), (None, token));
    lock.release_token(token).unwrap();
    assert_eq!(lock.try_acquire().unwrap().unwrap().token(), token + 1);
}

pub(crate) fn a_detached_hold_can_be_renewed_and_adopted_by_its_token(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let short = space
        .lock("a")
        .unwrap()
        .ttl(Duration::from_mins(1))
        .unwrap();
    let token = short.acquire().unwrap().detach().unwrap();
    let long = other.lock("a").unwrap().ttl(LONG).unwrap();
    long.renew_token(token).unwrap();
    assert!(space.inspect("a").unwrap()[0].lease_left > Duration::from_mins(1));
    let hold = long.adopt_token(token).unwrap();
    assert_eq!(hold.token(), token);
    assert!(hold.is_held() && hold.lease_left() > Duration::from_mins(1));
    let info = &space.inspect("a").unwrap()[0];
    assert!(!info.is_detached);
    assert_eq!(info.holder_pid, Some(std::process::id()));
    hold.release().unwrap();
    assert!(matches!(long.adopt_token(token), Err(Error::Lost { .. })));
}

// property 3
pub(crate) fn breaking_a_lock_ends_its_hold_and_is_written_down(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    assert_eq!(other.break_lock("a").unwrap(), None, "never held");
    let hold = space.lock("a").unwrap().acquire().unwrap();
    let unix_ns = || {
        let now = std::time::SystemTime::now();
        let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
        u64::try_from(since.as_nanos()).unwrap()
    };
    let before_ns = unix_ns();
    assert_eq!(other.break_lock("a").unwrap(), Some(hold.token()));
    assert_eq!(other.break_lock("a").unwrap(), None, "no longer held");
    assert!(
        hold.is_valid() && !hold.is_held(),
        "is_valid is local, is_held asks"
    );
    let breaks = space.breaks();
    assert_eq!(breaks.len(), 1);
    assert_eq!(
        (breaks[0].token, breaks[0].by_pid),
        (hold.token(), std::process::id())
    );
    assert_eq!(breaks[0].name, b"a");
    // The wall clock may be set; a region's unix time is its birth's plus what went by since.
    let minute_ns = 60_000_000_000;
    assert!((before_ns - minute_ns..unix_ns() + minute_ns).contains(&breaks[0].at_ns));
    let next = other.lock("a").unwrap().try_acquire().unwrap().unwrap();
    assert_eq!(next.token(), hold.token() + 1);
    assert!(matches!(hold.release(), Err(Error::Lost { .. })));
    assert!(next.is_held());
}

// property 11
pub(crate) fn the_ring_of_breaks_keeps_the_last_64(tier: &impl Tier) {
    let space = tier.space();
    let long = [b'n'; 200];
    for i in 0..100_u8 {
        let hold = space
            .lock(&long[..=usize::from(i)])
            .unwrap()
            .acquire()
            .unwrap();
        assert_eq!(
            space.break_lock(&long[..=usize::from(i)]).unwrap(),
            Some(hold.token())
        );
        drop(hold);
    }
    let lengths: Vec<usize> = space
        .breaks()
        .iter()
        .map(|record| record.name.len())
        .collect();
    let expected: Vec<usize> = (36..100).map(|i| (i + 1).min(96)).collect();
    assert_eq!(lengths, expected, "oldest first, names cut to 96 bytes");
}

pub(crate) fn an_inspection_tells_holder_token_lease_and_waiters(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    assert!(space.inspect("").unwrap().is_empty());
    let ttl = Duration::from_mins(1);
    let hold = space
        .lock("a")
        .unwrap()
        .ttl(ttl)
        .unwrap()
        .acquire()
        .unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| other.lock("a").unwrap().acquire().unwrap().token());
        until(|| waiters(&other, "a") == 1);
        let info = &other.inspect("a").unwrap()[0];
        assert_eq!(info.name, b"a");
        assert_eq!((info.token, info.is_held), (hold.token(), true));
        assert_eq!(
            (info.holder_pid, info.is_detached),
            (Some(std::process::id()), false)
        );
        assert!(
            info.lease_left > Duration::ZERO && info.lease_left <= ttl + Duration::from_millis(1)
        );
        assert!(info.held_for.is_some_and(|held_for| held_for < ttl));
        drop(hold);
        waiter.join().unwrap();
    });
    let info = &space.inspect("a").unwrap()[0];
    assert_eq!(
        (info.is_held, info.holder_pid, info.held_for),
        (false, None, None)
    );
    assert_eq!((info.lease_left, info.waiters), (Duration::ZERO, 0));
}

pub(crate) fn an_inspection_lists_by_prefix_in_order(tier: &impl Tier) {
    let space = tier.space();
    let long = format!("jobs/{}", "x".repeat(100));
    for name in ["jobs/2", "jobs/1", &long, "job", "other", "jobs0"] {
        drop(space.lock(name).unwrap().acquire().unwrap());
    }
    space.fence("jobs/fence").unwrap().admit(1).unwrap();
    let _limiter = space.limiter("jobs/limiter", "1/second").unwrap();
    let names = |prefix: &str| -> Vec<String> {
        let locks = space.inspect(prefix).unwrap();
        locks
            .into_iter()
            .map(|lock| String::from_utf8(lock.name).unwrap())
            .collect()
    };
    assert_eq!(names("jobs/"), ["jobs/1", "jobs/2", &long]);
    assert_eq!(
        names(""),
        ["job", "jobs/1", "jobs/2", &long, "jobs0", "other"]
    );
    assert_eq!(names("jobs/1x"), [""; 0]);
}

/// Whether it can be stored, and sent to a thread or a task.
fn is_free<T: Send + 'static>(_: &T) {}

// property 3
pub(crate) fn owned_locks_and_holds_outlive_the_space_they_came_from(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let lock = space.lock("a").unwrap().into_owned();
    let from_lock = lock.acquire().unwrap();
    let from_hold = space.lock("b").unwrap().acquire().unwrap().into_owned();
    let owner = space.owner();
    let from_owner = owner.lock("c").unwrap().into_owned().acquire().unwrap();
    let again = owner.lock("c").unwrap().acquire().unwrap().into_owned();
    let future = space.lock("d").unwrap().into_owned().acquire_async();
    is_free(&lock);
    is_free(&from_lock);
    is_free(&from_hold);
    is_free(&from_owner);
    is_free(&future);
    drop((space, owner));
    let holds = std::thread::spawn(move || {
        let from_future = block_on(future).unwrap();
        assert!(from_lock.is_held() && from_hold.is_held() && from_future.is_held());
        assert!(from_owner.is_valid() && again.is_valid());
        (from_lock, from_hold, from_future, from_owner, again)
    })
    .join()
    .unwrap();
    let is_free = |name| other.lock(name).unwrap().try_acquire().unwrap().is_some();
    for name in ["a", "b", "c", "d"] {
        assert!(!is_free(name), "{name}");
    }
    let (from_lock, from_hold, from_future, from_owner, again) = holds;
    from_lock.release().unwrap();
    drop(from_hold);
    from_future.into_owned().into_owned().release().unwrap();
    drop(from_owner);
    assert!(!is_free("c"), "one of the owner's holds is left");
    again.release().unwrap();
    for name in ["a", "b", "c", "d"] {
        assert!(is_free(name), "{name}");
    }
}

// property 5
pub(crate) fn a_forgotten_hold_ends_with_its_lease(tier: &impl Tier) {
    let space = tier.space();
    let ttl = Duration::from_millis(20);
    let owner = space.owner();
    let plain = space.lock("a").unwrap().ttl(ttl).unwrap();
    let owned = space.lock("b").unwrap().ttl(ttl).unwrap().into_owned();
    let owners = owner.lock("c").unwrap().ttl(ttl).unwrap();
    std::mem::forget(plain.acquire().unwrap());
    std::mem::forget(owned.acquire().unwrap());
    std::mem::forget(owners.acquire().unwrap());
    plain.acquire().unwrap().release().unwrap();
    owned.acquire().unwrap().release().unwrap();
    let next = space.lock("c").unwrap().acquire().unwrap();
    // Its owner is told once, and begins anew.
    assert!(matches!(owners.try_acquire(), Err(Error::Lost { .. })));
    assert!(owners.try_acquire().unwrap().is_none());
    drop(next);
    owners.acquire().unwrap().release().unwrap();
}

// property 8
pub(crate) fn errors_and_debug_output_name_what_they_are_about(tier: &impl Tier) {
    let space = tier.space();
    let names: [(&[u8], &str); 3] = [
        (b"orders/42", "orders/42"),
        (b"\xff\n", "\\xff\\x0a"),
        (
            b"a name of more than twenty-four bytes",
            "a name of more than twenty-four bytes",
        ),
    ];
    for (name, shown) in names {
        let lock = space.lock(name).unwrap();
        let hold = lock.acquire().unwrap();
        let token = hold.token();
        let limiter = space.limiter(name, "3/day").unwrap();
        let info = space.inspect(name).unwrap().remove(0);
        for (debug, part) in [
            (
                format!("{lock:?}"),
                format!("Lock {{ name: \"{shown}\", ttl: 30s }}"),
            ),
            (
                format!("{info:?}"),
                format!("name: \"{shown}\", token: {token}, is_held: true"),
            ),
            (
                format!("{hold:?}"),
                format!("Hold {{ lock: Some(\"{shown}\"), token: {token}, lease_left: "),
            ),
            (
                format!("{limiter:?}"),
                format!("name: \"{shown}\", limit: 3/day"),
            ),
            (
                format!("{:?}", space.limiters(name).unwrap()),
                format!("[LimiterInfo {{ name: \"{shown}\", limit: 3/day, keys: 0 }}]"),
            ),
            (
                format!("{:?}", limiter.check("k", 4).unwrap()),
                "Decision { is_allowed: false, limit: 3, remaining: 3, retry_after: None"
                    .to_owned(),
            ),
        ] {
            assert!(debug.contains(&part), "{debug}: {part}");
        }
        space.fence(name).unwrap().admit(token).unwrap();
        space.break_lock(name).unwrap();
        let debug = format!("{:?}", space.breaks());
        assert!(debug.contains(&format!("name: \"{shown}\"")), "{debug}");
        let errors = [
            hold.release().unwrap_err(),
            lock.release_token(token).unwrap_err(),
            lock.renew_token(token).unwrap_err(),
            lock.adopt_token(token).err().unwrap(),
            space.limiter(name, "4/day").err().unwrap(),
            space.fence(name).unwrap().admit(token - 1).unwrap_err(),
        ];
        for error in errors {
            let error = error.to_string();
            assert!(error.contains(&format!(" {shown} ")), "{error}");
        }
    }
    let error = space.lock("a").unwrap().ttl(Duration::ZERO).unwrap_err();
    assert_eq!(error.to_string(), "ttl is 0s; it must be 1ms to 366d");
}
