//! Idempotency keys, ours and the peer's: a map whose entry is made by the first who comes, with the result
//! as its value, for as long as the program runs. It knows no owner, no deadline and no process but its own.

use crate::case::Work;
use crate::draw::{self, Key};
use crate::ours::{Home, Reach};
use crate::{Case, Effort, Result, Side};
use dashmap::{DashMap, Entry};
use sprag::{Begun, Space};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// What is stored for a key.
const RESULT: [u8; 8] = *b"a result";
const TTL: Duration = Duration::from_mins(1);
const KEPT: Duration = Duration::from_hours(1);

/// Which keys a measurement goes through, and how often.
struct Keys {
    all: Vec<Key>,
    passes: usize,
    /// How many of them in a measurement, the next ones each time.
    at_once: usize,
    next: AtomicUsize,
}

impl Keys {
    fn of(case: &Case, effort: Effort) -> Self {
        if case.work == Work::OnceAgain {
            let all = case.sequences(effort).swap_remove(0);
            let at_once = all.len();
            return Self {
                all,
                passes: case.passes(effort),
                at_once,
                next: AtomicUsize::new(0),
            };
        }
        Self {
            all: (0..case.universe).map(draw::key).collect(),
            passes: 1,
            at_once: (1 << 12) / effort.divisor,
            next: AtomicUsize::new(0),
        }
    }

    fn operations(&self) -> usize {
        self.passes * self.at_once
    }

    fn take(&self) -> &[Key] {
        let parts = self.all.len() / self.at_once;
        let part = self.next.fetch_add(1, Relaxed) % parts;
        &self.all[part * self.at_once..][..self.at_once]
    }
}

/// Sprag's side.
pub(crate) fn ours(case: &Case, reach: Reach, effort: Effort) -> Result<Side> {
    let home = Home::open(reach, case.universe)?;
    let keys = Keys::of(case, effort);
    if case.work == Work::OnceAgain {
        for rank in 0..case.universe {
            do_once(&home.space, &draw::key(rank))?;
        }
    }
    let is_new = case.work == Work::Once;
    Ok(Side::new(1, keys.operations(), move |_| {
        // With its directory.
        let home = &home;
        let mut done = 0;
        for _ in 0..keys.passes {
            for key in keys.take() {
                if is_new {
                    do_once(&home.space, key)?;
                }
                if let Begun::Done(result) = home.space.once(key)?.begin(TTL)? {
                    done += black_box(result).len() as u64;
                }
            }
        }
        Ok(done)
    }))
}

fn do_once(space: &Space, key: &Key) -> Result<()> {
    if let Begun::Started(mut attempt) = space.once(key)?.begin(TTL)? {
        attempt.finish(&RESULT, KEPT)?;
    }
    Ok(())
}

/// The map's side, with room for all from the start.
pub(crate) fn map(case: &Case, effort: Effort) -> Side {
    let map: DashMap<Key, Vec<u8>, foldhash::fast::RandomState> = DashMap::with_capacity_and_hasher(
        case.universe as usize,
        foldhash::fast::RandomState::default(),
    );
    let keys = Keys::of(case, effort);
    if case.work == Work::OnceAgain {
        for rank in 0..case.universe {
            map.insert(draw::key(rank), RESULT.to_vec());
        }
    }
    let is_new = case.work == Work::Once;
    Side::new(1, keys.operations(), move |_| {
        let mut done = 0;
        for _ in 0..keys.passes {
            for key in keys.take() {
                if is_new && let Entry::Vacant(vacant) = map.entry(*key) {
                    vacant.insert(RESULT.to_vec());
                }
                if let Entry::Occupied(occupied) = map.entry(*key) {
                    done += black_box(occupied.get().clone()).len() as u64;
                }
            }
        }
        Ok(done)
    })
}
