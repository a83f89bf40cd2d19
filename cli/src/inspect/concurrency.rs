//! Concurrency limiters in `sprag inspect`, and what is held of their keys. Owns the form of their rows.

use serde::Serialize;
use sprag::{ConcurrencyInfo, SemaphoreInfo};

use super::hold::{HoldRow, waiters};
use super::semaphore;
use crate::printable::{self, Key, Name};

#[derive(Debug, Serialize)]
pub(super) struct ConcurrencyRow {
    #[serde(flatten)]
    name: Name,
    /// How many of each key there can be at once.
    permits: u32,
    keys: Vec<KeyRow>,
    /// How many keys have an entry, shown or not.
    #[serde(skip)]
    entries: usize,
    #[serde(skip)]
    shown: String,
}

#[derive(Debug, Serialize)]
struct KeyRow {
    #[serde(flatten)]
    key: Key,
    /// How many are taken, by holds that are over as well until somebody needs them.
    taken: u32,
    holds: Vec<HoldRow>,
    waiters: u32,
    /// Those that died while they waited, and are not among the others.
    waiters_dead: u32,
    #[serde(skip)]
    shown: String,
}

impl ConcurrencyRow {
    /// Of a limiter with those of its keys that are to be shown.
    pub(super) fn new(
        limiter: &ConcurrencyInfo,
        is_shown: impl Fn(&SemaphoreInfo) -> bool,
    ) -> Self {
        let keys = limiter.keys.iter().filter(|key| is_shown(key));
        Self {
            shown: printable::name(&limiter.name),
            name: Name::new(&limiter.name),
            permits: limiter.permits,
            entries: limiter.keys.len(),
            keys: keys.map(KeyRow::new).collect(),
        }
    }

    /// The limiter itself.
    pub(super) fn cells(&self) -> Vec<String> {
        vec![
            self.permits.to_string(),
            self.entries.to_string(),
            self.shown.clone(),
        ]
    }

    /// A line for each hold of a key; one for a key that is free.
    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        self.keys.iter().flat_map(|key| self.rows_of(key)).collect()
    }

    fn rows_of(&self, key: &KeyRow) -> Vec<Vec<String>> {
        let waiters = waiters(key.waiters, key.waiters_dead);
        let mut rows = semaphore::rows(self.permits, &key.holds, &waiters, &self.shown);
        for row in &mut rows {
            row.push(key.shown.clone());
        }
        rows
    }
}

impl KeyRow {
    fn new(key: &SemaphoreInfo) -> Self {
        let holds = key.holds.iter();
        Self {
            shown: printable::name(&key.name),
            key: Key::new(&key.name),
            taken: key.taken,
            holds: holds.map(|hold| HoldRow::new(hold, true)).collect(),
            waiters: key.waiters,
            waiters_dead: key.waiters_dead,
        }
    }
}
