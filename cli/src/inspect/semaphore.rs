//! Semaphores in `sprag inspect`. Owns the form of their rows.

use serde::Serialize;
use sprag::SemaphoreInfo;

use super::hold::{HoldRow, waiters};
use crate::printable::{self, Name};

#[derive(Debug, Serialize)]
pub(super) struct SemaphoreRow {
    #[serde(flatten)]
    name: Name,
    permits: u32,
    /// How many are taken, by holds that are over as well until somebody needs them.
    taken: u32,
    holds: Vec<HoldRow>,
    waiters: u32,
    /// Those that died while they waited, and are not among the others.
    waiters_dead: u32,
    #[serde(skip)]
    shown: String,
}

impl SemaphoreRow {
    pub(super) fn new(semaphore: &SemaphoreInfo) -> Self {
        Self {
            shown: printable::name(&semaphore.name),
            name: Name::new(&semaphore.name),
            permits: semaphore.permits,
            taken: semaphore.taken,
            holds: semaphore
                .holds
                .iter()
                .map(|hold| HoldRow::new(hold, true))
                .collect(),
            waiters: semaphore.waiters,
            waiters_dead: semaphore.waiters_dead,
        }
    }

    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        let waiters = waiters(self.waiters, self.waiters_dead);
        rows(self.permits, &self.holds, &waiters, &self.shown)
    }
}

/// A line for each who has permits, with how many of how many; one where nobody has any.
pub(super) fn rows(permits: u32, holds: &[HoldRow], waiters: &str, name: &str) -> Vec<Vec<String>> {
    if holds.is_empty() {
        let none = || "-".to_owned();
        let (state, waiters) = (format!("0 of {permits}"), waiters.to_owned());
        return vec![vec![
            state,
            none(),
            none(),
            none(),
            none(),
            waiters,
            name.to_owned(),
        ]];
    }
    let row = |hold: &HoldRow| {
        let taken = hold.permits.unwrap_or_default();
        let dead = if hold.live { "" } else { ", dead" };
        hold.cells(format!("{taken} of {permits}{dead}"), waiters, name)
    };
    holds.iter().map(row).collect()
}
