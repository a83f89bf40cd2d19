//! Names and keys that are used once and never again: memory stays flat, nothing is ever refused while
//! something can be reclaimed, and no token comes back.
//!
//! A million of each by default, ten million with `SPRAG_SOAK=1`.

mod support;

use sprag_core::lock::{Attempt, Grant, Released};
use sprag_core::region::Caps;
use sprag_core::session::Process;
use sprag_core::waiter::Poll;
use sprag_core::{Engine, Error, Limit, SessionId};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use support::{SECOND, engine_with_session, is_soak, session};

const CAP: u32 = 100_000;

/// Resident memory is the process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn rounds() -> u64 {
    if is_soak() { 10_000_000 } else { 1_000_000 }
}

fn churn_caps() -> Caps {
    Caps {
        objects: CAP,
        limiter_keys: CAP,
        ..Caps::default()
    }
}

fn acquire(engine: &Engine, by: SessionId, name: &[u8], now_ns: u64) -> Result<Grant, Error> {
    let name = engine.lock_name(name)?;
    match engine.try_acquire(&name, by, now_ns, 30 * SECOND)? {
        Attempt::Granted(grant) => Ok(grant),
        Attempt::Busy => panic!("a name used once is held"),
    }
}

/// Resident memory of this process, in bytes; `None` where the system has no such file.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// What must not grow.
struct Memory {
    resident: Option<u64>,
    allocated: u64,
}

impl Memory {
    fn of(engine: &Engine) -> Self {
        Self {
            resident: resident_bytes(),
            allocated: engine.region().allocated_bytes(),
        }
    }

    fn check_flat_since(&self, before: &Self) {
        assert_eq!(self.allocated, before.allocated, "the region grew");
        // Stack and allocator of the test itself may touch a few more pages.
        if let (Some(now), Some(then)) = (self.resident, before.resident) {
            assert!(
                now <= then + (1 << 20),
                "resident: {then} bytes, then {now}"
            );
        }
    }
}

/// Keys that come back now and then, to see their tokens across reclaims.
#[derive(Default)]
struct Probes {
    last: BTreeMap<u64, u64>,
    /// How often each was reclaimed since it was last seen.
    reclaims: BTreeMap<u64, u64>,
}

impl Probes {
    fn acquire(&mut self, engine: &Engine, by: SessionId, probe: u64, len: usize, now_ns: u64) {
        let bytes = one_use(u64::MAX - probe, len);
        let name = engine.lock_name(&bytes).unwrap();
        let is_known = engine.lock_status(&name, now_ns).is_some();
        let grant = acquire(engine, by, &bytes, now_ns).unwrap();
        if let Some(last) = self.last.insert(probe, grant.token) {
            assert!(grant.token > last, "token {} after {last}", grant.token);
            if is_known {
                assert_eq!(grant.token, last + 1, "consecutive while the entry lives");
            } else {
                *self.reclaims.entry(probe).or_default() += 1;
            }
        }
        assert_eq!(
            engine.release(&grant, || now_ns),
            Released::Done { wake: None }
        );
    }
}

/// A one-use name: its number first, then as many bytes as asked for.
fn one_use(i: u64, len: usize) -> Vec<u8> {
    let mut name = vec![b'.'; len];
    name[..8].copy_from_slice(&i.to_le_bytes());
    name
}

fn churn_locks(rounds: u64, len: impl Fn(u64) -> usize) {
    let (engine, me) = engine_with_session(churn_caps());
    let mut probes = Probes::default();
    let mut at_cap = None;
    for i in 0..rounds {
        let grant = acquire(&engine, me, &one_use(i, len(i)), i)
            .unwrap_or_else(|error| panic!("name {i}: {error}"));
        assert_eq!(engine.release(&grant, || i), Released::Done { wake: None });
        if i.is_multiple_of(50) {
            probes.acquire(&engine, me, i / 50 % 64, len(0), i);
        }
        if i == u64::from(2 * CAP) {
            at_cap = Some(Memory::of(&engine));
        }
    }
    Memory::of(&engine).check_flat_since(&at_cap.expect("enough rounds to reach the cap"));
    let reclaims: u64 = probes.reclaims.values().sum();
    assert!(reclaims >= 100, "{reclaims} reclaims");
}

// property 2, property 11
#[test]
fn lock_names_used_once_leave_memory_flat_and_tokens_rise_across_their_reclaims() {
    let _alone = alone();
    churn_locks(rounds(), |_| 8);
}

// property 9, property 11
#[test]
fn long_lock_names_used_once_leave_memory_flat_too() {
    let _alone = alone();
    churn_locks(rounds() / 4, |i| 25 + (i * 37 % 1000) as usize);
}

fn churn_limiter_keys(rounds: u64, len: impl Fn(u64) -> usize) {
    let (engine, me) = engine_with_session(churn_caps());
    let limit = Limit::parse("1000/second;burst=1").unwrap();
    let limiter = engine.open_limiter(b"api", limit, false, me, 0).unwrap();
    let mut at_cap = None;
    for i in 0..rounds {
        // A key is full again after 100 others.
        let now_ns = i * 10_000;
        let key = one_use(i, len(i));
        let first = engine.check(&limiter, &key, 1, me, now_ns).unwrap();
        assert!(first.decision.is_allowed() && !first.is_overflow, "key {i}");
        if i.is_multiple_of(64) {
            let second = engine.check(&limiter, &key, 1, me, now_ns).unwrap();
            assert!(
                !second.decision.is_allowed() && !second.is_overflow,
                "key {i}"
            );
        }
        assert!(engine.limiter_key_count() <= u64::from(CAP));
        if i == u64::from(2 * CAP) {
            at_cap = Some(Memory::of(&engine));
        }
    }
    Memory::of(&engine).check_flat_since(&at_cap.expect("enough rounds to reach the cap"));
}

// property 11, property 12
#[test]
fn limiter_keys_used_once_leave_memory_flat_and_never_meet_the_shared_bucket() {
    let _alone = alone();
    churn_limiter_keys(rounds(), |_| 12);
}

// property 9, property 11
#[test]
fn long_limiter_keys_used_once_leave_memory_flat_too() {
    let _alone = alone();
    churn_limiter_keys(rounds() / 4, |i| 17 + (i * 37 % 1008) as usize);
}

// property 2
#[test]
fn one_probe_keeps_its_token_rising_over_a_hundred_reclaims() {
    let _alone = alone();
    let caps = Caps {
        objects: 100,
        ..churn_caps()
    };
    let (engine, me) = engine_with_session(caps);
    let mut probes = Probes::default();
    let mut rounds = 0_u64..1_000_000;
    while probes.reclaims.values().all(|reclaims| *reclaims < 100) {
        let i = rounds
            .next()
            .expect("a hundred reclaims within a million rounds");
        let grant = acquire(&engine, me, &one_use(i, 8), 0).unwrap();
        let _ = engine.release(&grant, || 0);
        probes.acquire(&engine, me, i % 97, 8, 0);
    }
}

/// Locks of a session, as many as the cap allows, and one more name to ask for.
fn fill(engine: &Engine, by: SessionId, cap: u32, len: usize) -> Vec<Grant> {
    (0..u64::from(cap))
        .map(|i| acquire(engine, by, &one_use(i, len), 0).unwrap())
        .collect()
}

fn tiny() -> Caps {
    Caps {
        objects: 64,
        limiter_keys: 64,
        key_chunks: 128,
        ..Caps::default()
    }
}

// property 11
#[test]
fn locks_left_by_a_closed_session_are_reclaimed_at_the_cap() {
    let (engine, me) = engine_with_session(tiny());
    let other = session(&engine);
    let left = fill(&engine, other, 64, 8);
    let error = acquire(&engine, me, b"one more", 0).unwrap_err();
    assert!(matches!(error, Error::Full { cap: 64, .. }), "{error}");
    engine.close_session(other);
    for i in 0..1_000_u64 {
        let grant = acquire(&engine, me, &one_use(1_000 + i, 8), 0).unwrap();
        let _ = engine.release(&grant, || 0);
    }
    // Above all that was handed out under the same names, and no old step has any effect.
    for (i, left) in left.iter().enumerate() {
        let grant = acquire(&engine, me, &one_use(i as u64, 8), 0).unwrap();
        assert!(grant.token > left.token);
        assert_eq!(engine.release(left, || 0), Released::NotHeld);
        assert_eq!(engine.release(&grant, || 0), Released::Done { wake: None });
    }
}

// property 11
#[test]
fn locks_whose_leases_ran_out_are_reclaimed_at_the_cap() {
    let (engine, me) = engine_with_session(tiny());
    let expired = fill(&engine, me, 64, 8);
    assert!(acquire(&engine, me, b"early", 29 * SECOND).is_err());
    for i in 0..1_000_u64 {
        let grant = acquire(&engine, me, &one_use(1_000 + i, 8), 31 * SECOND).unwrap();
        let _ = engine.release(&grant, || 31 * SECOND);
    }
    for grant in &expired {
        let renewed = engine.renew(grant, 31 * SECOND, SECOND).unwrap();
        assert_eq!(renewed, sprag_core::lock::Renewed::NotHeld);
    }
}

// property 11
#[test]
fn queues_that_only_the_dead_and_the_late_stand_in_are_reclaimed_at_the_cap_and_others_not() {
    let (engine, me) = engine_with_session(tiny());
    let other = session(&engine);
    let holds = fill(&engine, me, 64, 8);
    let names: Vec<_> = (0..64)
        .map(|i| engine.lock_name(&one_use(i, 8)).unwrap())
        .collect();
    // The first has a waiter who lives, the second one who gives up, the third one who dies.
    let waits = [
        engine.enqueue(&names[0], me, 0, u64::MAX).unwrap(),
        engine.enqueue(&names[1], me, 0, SECOND).unwrap(),
        engine.enqueue(&names[2], other, 0, u64::MAX).unwrap(),
    ];
    engine.close_session(other);
    for hold in &holds {
        engine.break_lock(
            &engine.lock_name(b"nobody's").unwrap(),
            Process::default(),
            0,
        );
        assert!(matches!(engine.release(hold, || 0), Released::Done { .. }));
    }
    for i in 0..1_000_u64 {
        let grant = acquire(&engine, me, &one_use(1_000 + i, 8), 2 * SECOND).unwrap();
        let _ = engine.release(&grant, || 2 * SECOND);
    }
    let poll = |wait: usize| {
        engine
            .poll(&waits[wait], &names[wait], me, 2 * SECOND, SECOND, true)
            .unwrap()
    };
    assert!(matches!(poll(0), Poll::Granted { grant, .. } if grant.token == holds[0].token + 1));
    assert_eq!(poll(1), Poll::Moved);
}

// property 11
#[test]
fn long_names_never_run_out_of_room_while_entries_that_have_it_are_idle() {
    let (engine, me) = engine_with_session(tiny());
    // Each takes 21 chunks of the 128: far fewer entries than the table's cap hold them all.
    for i in 0..1_000_u64 {
        let grant = acquire(&engine, me, &one_use(i, 1000), 0).unwrap();
        let _ = engine.release(&grant, || 0);
    }
    let limit = Limit::parse("1/second").unwrap();
    let limiter = engine.open_limiter(b"l", limit, false, me, 0).unwrap();
    for i in 0..1_000_u64 {
        let checked = engine
            .check(&limiter, &one_use(i, 1000), 1, me, i * SECOND)
            .unwrap();
        assert!(
            checked.decision.is_allowed() && !checked.is_overflow,
            "key {i}"
        );
    }
    // In use, they are counted and named.
    let holds: Vec<_> = (0..6)
        .map_while(|i| acquire(&engine, me, &one_use(i, 1000), 2_000 * SECOND).ok())
        .collect();
    assert_eq!(holds.len(), 6);
    let error = acquire(&engine, me, &one_use(9, 1000), 2_000 * SECOND).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Full {
                what: "long name or result",
                ..
            }
        ),
        "{error}"
    );
}

// property 11
#[test]
fn several_locks_that_find_no_room_together_are_told_so() {
    for (len, room, what) in [
        // Of 21 chunks each.
        (1000, 6, "long name or result"),
        (16, 16, "lock, semaphore,"),
    ] {
        let (engine, me) = engine_with_session(Caps {
            objects: 16,
            ..tiny()
        });
        let take = |count: u64| {
            let names: Result<Vec<_>, _> = (0..count)
                .map(|i| engine.lock_name(&one_use(i, len)))
                .collect();
            engine.try_acquire_all(&names?, me, 0, SECOND)
        };
        let error = take(room + 1).unwrap_err();
        assert!(
            matches!(error, Error::Full { what: told, .. } if told.starts_with(what)),
            "{error}"
        );
        let taken = take(room / 2);
        assert!(matches!(taken, Ok(Attempt::Granted(_))), "{len}: {taken:?}");
    }
}

// property 7, property 12
#[test]
fn a_reclaimed_key_is_not_young_again_for_a_stamp_from_before_it_was_full() {
    let caps = Caps {
        key_chunks: 9,
        ..tiny()
    };
    let (engine, me) = engine_with_session(caps);
    let limit = Limit::parse("1/second").unwrap();
    let limiter = engine.open_limiter(b"l", limit, false, me, 0).unwrap();
    let check = |key: u8, now_ns| {
        let checked = engine.check(&limiter, &[key; 100], 1, me, now_ns).unwrap();
        assert!(!checked.is_overflow);
        checked.decision.is_allowed()
    };
    // Three keys have room. They are full at two seconds, and make room for a fourth at three.
    assert!(check(1, SECOND) && check(2, SECOND) && check(3, SECOND));
    assert!(check(4, 3 * SECOND));
    assert_eq!(engine.limiter_key_count(), 1);
    // Then comes a late stamp.
    assert!(check(1, SECOND + SECOND / 2));
    assert!(
        !check(1, 3 * SECOND - 1),
        "as if it had been young at 1.5 s"
    );
    assert!(check(1, 3 * SECOND));
}

// property 11
#[test]
fn a_key_whose_partition_is_full_takes_the_place_of_an_idle_one() {
    // 64 partitions of eight cells each: one fills up long before the table is at its cap.
    let caps = Caps {
        limiter_keys: 384,
        ..Caps::default()
    };
    let (engine, me) = engine_with_session(caps);
    let limit = Limit::parse("1/second").unwrap();
    let limiter = engine.open_limiter(b"l", limit, false, me, 0).unwrap();
    for i in 0..5_000_u64 {
        let checked = engine
            .check(&limiter, &i.to_le_bytes(), 1, me, i * SECOND)
            .unwrap();
        assert!(!checked.is_overflow, "key {i}");
    }
}
