//! Many threads at once.

use super::block_on::block_on;
use super::tier::Tier;
use super::waiters;
use sprag::Space;
use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::time::Duration;

const THREADS: usize = 6;
const KEYS: usize = 3;

/// Acquires by each thread: a hundred times as many with `SPRAG_SOAK=1`.
fn rounds() -> usize {
    let is_soak = std::env::var_os("SPRAG_SOAK").is_some_and(|value| value == "1");
    if is_soak { 40_000 } else { 400 }
}

/// A number that is not atomic: only exclusion keeps its updates from being lost.
struct Unprotected(UnsafeCell<u64>);

// SAFETY: accessed only under the lock that the test is about; a break of it shows as a lost update.
unsafe impl Sync for Unprotected {}

impl Unprotected {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    /// Must be called under this number's lock.
    fn increment(&self) {
        let value = self.0.get();
        // SAFETY: the pointer is the cell's own. Volatile, so that no two increments are merged.
        unsafe { value.write_volatile(value.read_volatile() + 1) };
    }

    fn into_inner(self) -> u64 {
        self.0.into_inner()
    }
}

/// Runs `act` with a space, the thread's number and the round, [`rounds`] times in each thread; gives
/// the tokens that were granted, by key.
fn run(
    tier: &impl Tier,
    act: impl Fn(&Space, &str, &Unprotected, usize) -> Option<u64> + Sync,
) -> BTreeMap<usize, Vec<u64>> {
    let space = tier.space();
    let numbers: Vec<_> = (0..KEYS).map(|_| Unprotected::new()).collect();
    let mut tokens: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let space = tier.another(&space);
                let (act, numbers) = (&act, &numbers);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(thread as u64);
                    let mut log = Vec::new();
                    for round in 0..rounds() {
                        let key = random.usize(0..KEYS);
                        let token = act(&space, &format!("key {key}"), &numbers[key], round);
                        log.extend(token.map(|token| (key, token)));
                    }
                    log
                })
            })
            .collect();
        for thread in threads {
            for (key, token) in thread.join().unwrap() {
                tokens.entry(key).or_default().push(token);
            }
        }
    });
    for (key, (number, tokens)) in numbers.into_iter().zip(tokens.values_mut()).enumerate() {
        tokens.sort_unstable();
        assert_eq!(
            number.into_inner(),
            tokens.len() as u64,
            "an update of key {key} was lost"
        );
        assert_eq!(waiters(&space, &format!("key {key}")), 0);
        let lock = space.lock(&format!("key {key}")).unwrap();
        assert!(
            lock.try_acquire().unwrap().is_some(),
            "key {key} is free at the end"
        );
    }
    tokens
}

fn check_consecutive(tokens: &BTreeMap<usize, Vec<u64>>) {
    for (key, tokens) in tokens {
        let is_consecutive = tokens.windows(2).all(|pair| pair[1] == pair[0] + 1);
        assert!(is_consecutive, "key {key}: {tokens:?}");
    }
}

// property 1, property 2
pub(crate) fn many_threads_exclude_each_other_and_their_tokens_are_consecutive(tier: &impl Tier) {
    let tokens = run(tier, |space, name, number, round| {
        let lock = space.lock(name).unwrap();
        let hold = match round % 4 {
            0 => lock.try_acquire().unwrap()?,
            1 => lock.acquire_timeout(Duration::from_micros(50)).unwrap()?,
            2 => block_on(lock.acquire_async()).unwrap(),
            _ => lock.acquire().unwrap(),
        };
        number.increment();
        let token = hold.token();
        hold.release().unwrap();
        Some(token)
    });
    check_consecutive(&tokens);
}

pub(crate) fn every_waiter_of_many_is_served(tier: &impl Tier) {
    let tokens = run(tier, |space, name, number, _| {
        let hold = space.lock(name).unwrap().acquire().unwrap();
        number.increment();
        // Others queue up meanwhile.
        std::thread::yield_now();
        Some(hold.token())
    });
    check_consecutive(&tokens);
    assert_eq!(
        tokens.values().map(Vec::len).sum::<usize>(),
        THREADS * rounds()
    );
}

pub(crate) fn every_future_of_many_is_served(tier: &impl Tier) {
    let tokens = run(tier, |space, name, number, round| {
        let lock = space.lock(name).unwrap();
        if round % 5 == 0 {
            // Started, and dropped.
            let mut future = lock.acquire_async();
            if let std::task::Poll::Ready(hold) = super::block_on::poll_once(&mut future) {
                number.increment();
                return Some(hold.unwrap().token());
            }
        }
        let hold = block_on(lock.acquire_async()).unwrap();
        number.increment();
        std::thread::yield_now();
        Some(hold.token())
    });
    check_consecutive(&tokens);
}

// property 6
pub(crate) fn a_storm_of_cancelled_waits_leaves_nothing(tier: &impl Tier) {
    let tokens = run(tier, |space, name, number, round| {
        let lock = space.lock(name).unwrap();
        let timeout = Duration::from_nanos([1, 1_000, 20_000, 100_000][round % 4]);
        let hold = lock.acquire_timeout(timeout).unwrap()?;
        number.increment();
        std::thread::yield_now();
        Some(hold.token())
    });
    check_consecutive(&tokens);
}

// property 1
pub(crate) fn owners_exclude_each_other_under_many_threads(tier: &impl Tier) {
    let tokens = run(tier, |space, name, number, _| {
        let owner = space.owner();
        let lock = owner.lock(name).unwrap();
        let outer = lock.acquire().unwrap();
        let inner = lock.acquire().unwrap();
        assert_eq!(outer.token(), inner.token());
        drop(outer);
        number.increment();
        Some(inner.token())
    });
    check_consecutive(&tokens);
}
