//! Processes that take single locks, several, partitions and the table of one shared space at the same time: what
//! each of them guards is a file, which its holder writes, reads back and empties. And owners of theirs that wait
//! for each other in circles.

#![cfg(target_os = "linux")]

use sprag::{Error, Space};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const ROLE: &str = "SPRAG_TEST_ROLE";
const PLACE: &str = "SPRAG_TEST_PLACE";
const PROCESSES: u64 = 3;
const KEYS: [&str; 3] = ["a", "b", "c"];

/// Rounds of each process: twenty times as many with `SPRAG_SOAK=1`.
fn rounds() -> u64 {
    let is_soak = std::env::var_os("SPRAG_SOAK").is_some_and(|value| value == "1");
    if is_soak { 4_000 } else { 200 }
}

fn open(place: &Path) -> Space {
    let url = format!("shm:{}", place.join("region").display());
    Space::builder().share_percent(100).open(&url).unwrap()
}

fn guarded(place: &Path, key: usize) -> PathBuf {
    place.join(KEYS[key])
}

/// What a holder of these keys does, who is alone with them.
fn use_alone(place: &Path, keys: &[usize], mark: &str) {
    for &key in keys {
        let before = std::fs::read_to_string(guarded(place, key)).unwrap_or_default();
        assert_eq!(before, "", "somebody else is in {}", KEYS[key]);
        std::fs::write(guarded(place, key), mark).unwrap();
    }
    for &key in keys {
        let after = std::fs::read_to_string(guarded(place, key)).unwrap();
        assert_eq!(after, mark, "somebody else came into {}", KEYS[key]);
        std::fs::write(guarded(place, key), "").unwrap();
    }
}

fn take_one_of_all(space: &Space, place: &Path, random: &mut fastrand::Rng, mark: &str) {
    let key = random.usize(0..KEYS.len());
    let other = (key + 1) % KEYS.len();
    let partition = space.partition_of(KEYS[key]);
    match random.u32(0..10) {
        0..4 => {
            let hold = space.lock(KEYS[key]).unwrap().acquire().unwrap();
            use_alone(place, &[key], mark);
            hold.release().unwrap();
        }
        4..7 => {
            let names = [KEYS[other], KEYS[key]];
            let hold = space.locks(names).unwrap().acquire().unwrap();
            use_alone(place, &[key, other], mark);
            hold.release().unwrap();
        }
        7..9 => {
            let hold = space.partition(partition).unwrap().acquire().unwrap();
            let is_in = |key: &usize| space.partition_of(KEYS[*key]) == partition;
            let keys: Vec<usize> = (0..KEYS.len()).filter(is_in).collect();
            use_alone(place, &keys, mark);
            hold.release().unwrap();
        }
        _ => {
            let hold = space.table().unwrap().acquire().unwrap();
            use_alone(place, &[0, 1, 2], mark);
            hold.release().unwrap();
        }
    }
}

/// Takes two locks, one after the other, as an owner. In an order that all keep to, nobody is told of a deadlock;
/// else somebody is whenever there is one, or all would wait for ever.
fn take_two(space: &Space, random: &mut fastrand::Rng, is_ordered: bool) {
    let owner = space.owner();
    let mut pair = [random.usize(0..KEYS.len()), random.usize(0..KEYS.len())];
    if pair[0] == pair[1] {
        return;
    }
    if is_ordered {
        pair.sort_unstable();
    }
    let one = owner.lock(KEYS[pair[0]]).unwrap().acquire().unwrap();
    match owner.lock(KEYS[pair[1]]).unwrap().acquire() {
        Ok(two) => two.release().unwrap(),
        Err(Error::Deadlock { deadlock }) if !is_ordered => {
            assert!((2..=3).contains(&deadlock.waits.len()), "{deadlock}");
        }
        Err(error) => panic!("ordered: {is_ordered}: {error}"),
    }
    one.release().unwrap();
}

#[test]
fn roles() {
    let (Ok(role), Ok(place)) = (std::env::var(ROLE), std::env::var(PLACE)) else {
        return;
    };
    let place = PathBuf::from(place);
    let space = open(&place);
    let role: u64 = role.parse().unwrap();
    let mut random = fastrand::Rng::with_seed(role);
    // All are at the same part: each says that it is here, and waits for the others.
    let meet = |part: u64| {
        let here = |role| space.fence(&format!("{part} {role}")).unwrap();
        here(role).admit(1).unwrap();
        while (0..PROCESSES).any(|role| here(role).highest() == 0) {
            std::thread::yield_now();
        }
    };
    for round in 0..rounds() {
        take_one_of_all(&space, &place, &mut random, &format!("{role} {round}"));
    }
    for is_ordered in [true, false] {
        meet(u64::from(is_ordered));
        for _ in 0..rounds() {
            take_two(&space, &mut random, is_ordered);
        }
    }
    // What is held or waited for ends with its process: all end together.
    meet(2);
}

// property 1, property 14
#[test]
fn processes_exclude_each_other_at_every_granularity_and_break_every_circle() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let space = open(place);
    let children: Vec<_> = (0..PROCESSES)
        .map(|role| {
            Command::new(std::env::current_exe().unwrap())
                .args(["roles", "--exact", "--nocapture", "--test-threads=1"])
                .env(ROLE, role.to_string())
                .env(PLACE, place)
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let is_held = |info: &sprag::LockInfo| !info.holds.is_empty();
    assert!(!space.inspect("").unwrap().iter().any(is_held));
    assert!(space.inspect_coarse().unwrap().is_empty());
    let hold = space.table().unwrap().acquire_timeout(Duration::ZERO);
    assert!(hold.unwrap().is_some(), "all of it is free");
}
