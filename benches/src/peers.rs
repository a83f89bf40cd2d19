//! The peers' sides, each set up as its documentation says is fast.
//!
//! - governor has its time from the quanta crate (its default: the time-stamp counter, calibrated).
//!   Its state store is a dashmap. At its best it hashes with foldhash and its keys are 16 bytes in
//!   place; as most programs use it, it hashes with the standard library's hash and its keys are strings.
//! - The map of counters is the standard library's, which is hashbrown, with foldhash: for one thread.
//! - keyed-lock and lockable choose their hash and map themselves; keys are 16 bytes in place.

use crate::case::{Rate, Work};
use crate::draw::{self, Key};
use crate::{Case, Effort, Failure, Result, Side, once};
use governor::clock::DefaultClock;
use governor::state::keyed::DashMapStateStore;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use keyed_lock::sync::KeyedLock;
use lockable::LockPool;
use std::collections::HashMap;
use std::hash::Hash;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// governor as fast as its options make it.
pub type GovernorAtBest =
    RateLimiter<Key, DashMapStateStore<Key, foldhash::fast::RandomState>, DefaultClock>;

/// governor as its first example sets it up, keyed by strings.
pub type GovernorByDefault = DefaultKeyedRateLimiter<String>;

/// Whom a case is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// [`GovernorAtBest`].
    GovernorAtBest,
    /// Two of those, one asked after the other has admitted.
    GovernorsAtBest,
    /// [`GovernorByDefault`].
    GovernorByDefault,
    /// keyed-lock's synchronous lock: no token, no lease.
    KeyedLock,
    /// lockable's pool of locks: no token, no lease.
    LockPool,
    /// A map of numbers, of one thread's alone: no atomics.
    Map,
    /// A word for each thread, on a line of its own.
    Lines,
    /// dashmap's entries, hashed with foldhash: no owner, no deadline.
    DashMap,
}

impl Peer {
    /// Its name, and how it is set up.
    pub fn name(self) -> &'static str {
        match self {
            Self::GovernorAtBest => "governor, its best",
            Self::GovernorsAtBest => "two governor checks, its best",
            Self::GovernorByDefault => "governor, String keys",
            Self::KeyedLock => "keyed-lock",
            Self::LockPool => "lockable",
            Self::Map => "hashbrown + foldhash, no atomics",
            Self::Lines => "fetch_add on separate lines",
            Self::DashMap => "dashmap entry",
        }
    }
}

/// The quota of a rate.
pub fn quota(rate: Rate) -> Result<Quota> {
    let quota = Quota::with_period(rate.period)
        .ok_or_else(|| Failure::from("governor takes no period of zero"))?;
    Ok(quota.allow_burst(rate.burst))
}

/// governor at its best, empty.
pub fn governor_at_best(rate: Rate) -> Result<GovernorAtBest> {
    let hasher = foldhash::fast::RandomState::default();
    let clock = DefaultClock::default();
    Ok(RateLimiter::dashmap_with_clock_and_hasher(
        quota(rate)?,
        clock,
        hasher,
    ))
}

/// governor by its defaults, empty.
pub fn governor_by_default(rate: Rate) -> Result<GovernorByDefault> {
    Ok(RateLimiter::keyed(quota(rate)?))
}

/// `peer` set up for `case`, every key that it keeps already there.
pub fn side(case: &Case, peer: Peer, effort: Effort) -> Result<Side> {
    let sequences = case.sequences(effort);
    let passes = case.passes(effort);
    let operations = passes * sequences[0].len();
    Ok(match peer {
        Peer::GovernorAtBest => {
            let limiter = governor_at_best(case.rate())?;
            fill(&limiter, case, |key| *key);
            Side::new(case.threads, operations, move |thread| {
                Ok(check(&limiter, &sequences[thread], passes))
            })
        }
        Peer::GovernorsAtBest => {
            let rates = case.two_rates().ok_or("the case has one limit")?;
            let [first, second] = [governor_at_best(rates[0])?, governor_at_best(rates[1])?];
            fill(&first, case, |key| *key);
            fill(&second, case, |key| *key);
            Side::new(case.threads, operations, move |thread| {
                Ok(check_two(&first, &second, &sequences[thread], passes))
            })
        }
        Peer::GovernorByDefault => {
            let limiter = governor_by_default(case.rate())?;
            fill(&limiter, case, draw::text);
            let sequences = crate::ours::texts(&sequences);
            Side::new(case.threads, operations, move |thread| {
                Ok(check(&limiter, &sequences[thread], passes))
            })
        }
        Peer::KeyedLock => {
            let locks = KeyedLock::new();
            Side::new(case.threads, operations, move |thread| {
                Ok(keyed_lock(&locks, &sequences[thread], passes))
            })
        }
        Peer::DashMap => once::map(case, effort),
        Peer::LockPool => {
            let locks = LockPool::new();
            Side::new(case.threads, operations, move |thread| {
                Ok(lock_pool(&locks, &sequences[thread], passes))
            })
        }
        Peer::Lines => {
            let words: Vec<Line> = (0..case.threads).map(|_| Line::default()).collect();
            Side::new(case.threads, operations, move |thread| {
                Ok(fetch_add(&words[thread], operations))
            })
        }
        Peer::Map => {
            // Locked once for a whole measurement.
            let numbers = Mutex::new(Numbers::default());
            Side::new(case.threads, operations, move |thread| {
                let mut numbers = numbers.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(add(&mut numbers, &sequences[thread], passes))
            })
        }
    })
}

/// Two lines, since processors fetch lines in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU64);

#[inline(never)]
fn fetch_add(word: &Line, operations: usize) -> u64 {
    for _ in 0..operations {
        word.0.fetch_add(1, Ordering::Relaxed);
    }
    operations as u64
}

type Numbers = HashMap<Key, i64, foldhash::fast::RandomState>;

#[inline(never)]
fn add(numbers: &mut Numbers, keys: &[Key], passes: usize) -> u64 {
    let mut added = 0;
    for _ in 0..passes {
        for key in keys {
            let number = numbers.entry(*key).or_default();
            *number += 1;
            added += u64::from(*number > 0);
        }
    }
    added
}

type Governor<K, S> = RateLimiter<K, DashMapStateStore<K, S>, DefaultClock>;

fn fill<K, S>(limiter: &Governor<K, S>, case: &Case, own: impl Fn(&Key) -> K)
where
    K: Hash + Eq + Clone,
    S: std::hash::BuildHasher + Clone,
{
    let uses = match case.work {
        Work::Refuse => case.rate().burst.get(),
        _ => 1,
    };
    for rank in 0..case.universe {
        for _ in 0..uses {
            let _ = limiter.check_key(&own(&draw::key(rank)));
        }
    }
}

#[inline(never)]
fn check<K, S>(limiter: &Governor<K, S>, keys: &[K], passes: usize) -> u64
where
    K: Hash + Eq + Clone,
    S: std::hash::BuildHasher + Clone,
{
    let mut admitted = 0;
    for _ in 0..passes {
        for key in keys {
            admitted += u64::from(limiter.check_key(key).is_ok());
        }
    }
    admitted
}

#[inline(never)]
fn check_two(first: &GovernorAtBest, second: &GovernorAtBest, keys: &[Key], passes: usize) -> u64 {
    let mut admitted = 0;
    for _ in 0..passes {
        for key in keys {
            let is_admitted = first.check_key(key).is_ok() && second.check_key(key).is_ok();
            admitted += u64::from(is_admitted);
        }
    }
    admitted
}

#[inline(never)]
fn keyed_lock(locks: &KeyedLock<Key>, keys: &[Key], passes: usize) -> u64 {
    let mut admitted = 0;
    for _ in 0..passes {
        for key in keys {
            let guard = locks.lock(*key);
            black_box(&guard);
            admitted += 1;
        }
    }
    admitted
}

#[inline(never)]
fn lock_pool(locks: &LockPool<Key>, keys: &[Key], passes: usize) -> u64 {
    let mut admitted = 0;
    for _ in 0..passes {
        for key in keys {
            let guard = locks.blocking_lock(*key);
            black_box(&guard);
            admitted += 1;
        }
    }
    admitted
}
