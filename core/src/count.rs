//! A counter of cells that can be counted anew while others go on counting.
//!
//! | bits | field |
//! |---|---|
//! | 0..32 | count |
//! | 32..64 | how often it changed |
//!
//! A process killed between counting a cell and claiming it leaves the counter one too high; whoever is
//! refused because of it counts the cells and corrects it. That takes a while, in which a process may
//! even stand still, so the correction fails if the counter changed meanwhile, back to the same count or
//! not. A cell that somebody counted before and claims after is missed: the counter is then too low by
//! it until it is corrected again, and no more than by those that stand still just there.

use crate::sync::Word;
use crate::table::ROUNDS_MAX;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

const CHANGED: u64 = 1 << 32;

/// The count in a counter's word.
fn of(word: u64) -> u64 {
    word & (CHANGED - 1)
}

/// A counter.
pub(crate) struct Count<'r>(pub(crate) &'r Word);

impl Count<'_> {
    pub(crate) fn get(&self) -> u64 {
        // Relaxed here and below: counts only, they order nothing.
        of(self.0.load(Relaxed))
    }

    /// Adds one unless that is more than `max`; then the count as it is.
    pub(crate) fn increment_below(&self, max: u64) -> Result<(), u64> {
        let mut now = self.0.load(Relaxed);
        for _ in 0..ROUNDS_MAX {
            if of(now) >= max.min(CHANGED - 1) {
                break;
            }
            let next = now.wrapping_add(CHANGED + 1);
            match self.0.compare_exchange(now, next, Relaxed, Relaxed) {
                Ok(_) => return Ok(()),
                Err(found) => now = found,
            }
        }
        Err(of(now))
    }

    /// Takes one off, never below zero.
    pub(crate) fn decrement(&self) {
        let mut now = self.0.load(Relaxed);
        for _ in 0..ROUNDS_MAX {
            if of(now) == 0 {
                return;
            }
            let next = now.wrapping_add(CHANGED - 1);
            match self.0.compare_exchange(now, next, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(found) => now = found,
            }
        }
    }

    /// Corrects it to what `count` counts, unless it changes meanwhile; what was counted.
    pub(crate) fn recount(&self, count: impl FnOnce() -> u64) -> u64 {
        // Acquire: what is counted comes after.
        let before = self.0.load(Acquire);
        let counted = count();
        let next = (before & !(CHANGED - 1)).wrapping_add(CHANGED) | of(counted);
        let _ = self.0.compare_exchange(before, next, AcqRel, Relaxed);
        counted
    }
}
