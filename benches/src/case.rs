//! The cases: what is done, to which keys, by how many threads.

use crate::draw::{self, Draw, Key};
use std::num::NonZeroU32;
use std::time::Duration;

/// Keys to a batch in [`Work::CheckBatch`].
pub const BATCH: usize = 32;

/// What a thread does with each key of its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// One check of a limiter that allows it.
    Check,
    /// The same in batches, by contestants who have them.
    CheckBatch,
    /// One check of a limiter that has nothing left.
    Refuse,
    /// One check by two limits that both allow it and have both something used before.
    CheckTwo,
    /// The same, where all that was used under one of them has drained before each check.
    CheckTwoDrained,
    /// Lock and unlock by key.
    Lock,
    /// Add one to a counter by key.
    Add,
    /// Add one to a striped counter through a handle that is kept.
    AddStriped,
    /// A key that is new, with its result stored, and the same key again. One thread.
    Once,
    /// A key that is done. One thread.
    OnceAgain,
}

/// A case.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// As the budgets name it.
    pub name: &'static str,
    /// What is done.
    pub work: Work,
    /// How many keys there are.
    pub universe: u64,
    /// How they are drawn.
    pub draw: Draw,
    /// By how many threads at once, each with a sequence of its own.
    pub threads: usize,
    /// Whether keys are given as strings rather than as 16 bytes.
    pub is_text: bool,
}

/// How much is done for one measurement.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Divides the number of operations; 1 for figures to keep.
    pub divisor: usize,
}

/// A limit, in terms that every limiter has.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// One more each.
    pub period: Duration,
    /// And this many at once.
    pub burst: NonZeroU32,
}

impl Rate {
    /// Never used up by a case: what it admits is what it was asked.
    pub const AMPLE: Self = Self {
        period: Duration::from_millis(1),
        burst: NonZeroU32::new(1_000_000_000).unwrap(),
    };

    /// 1,000 an hour, and never used up by a case either.
    pub const HOURLY: Self = Self {
        period: Duration::from_millis(3_600),
        ..Self::AMPLE
    };

    /// As many as there are nanoseconds: a bucket is full again before the next check.
    pub const DRAINED: Self = Self {
        period: Duration::from_nanos(1),
        ..Self::AMPLE
    };

    /// Used up before the case begins, and not refilled before it ends.
    pub const SCANT: Self = Self {
        period: Duration::from_hours(24),
        burst: NonZeroU32::new(100).unwrap(),
    };
}

impl Case {
    /// One key, one thread.
    pub const fn hot(name: &'static str, work: Work) -> Self {
        Self {
            name,
            work,
            universe: 1,
            draw: Draw::Uniform,
            threads: 1,
            is_text: false,
        }
    }

    /// With this many keys, all alike.
    #[must_use]
    pub const fn uniform(self, universe: u64) -> Self {
        Self { universe, ..self }
    }

    /// With this many keys, zipf 0.99.
    #[must_use]
    pub const fn zipf(self, universe: u64) -> Self {
        let draw = Draw::Zipf { exponent: 0.99 };
        Self {
            universe,
            draw,
            ..self
        }
    }

    /// With two threads.
    #[must_use]
    pub const fn two_threads(self) -> Self {
        Self { threads: 2, ..self }
    }

    /// With strings for keys.
    #[must_use]
    pub const fn text(self) -> Self {
        Self {
            is_text: true,
            ..self
        }
    }

    /// The limit that its limiters have.
    pub fn rate(&self) -> Rate {
        match self.work {
            Work::Refuse => Rate::SCANT,
            _ => Rate::AMPLE,
        }
    }

    /// The limits of those cases that have two.
    pub fn two_rates(&self) -> Option<[Rate; 2]> {
        match self.work {
            Work::CheckTwo => Some([Rate::AMPLE, Rate::HOURLY]),
            Work::CheckTwoDrained => Some([Rate::DRAINED, Rate::HOURLY]),
            _ => None,
        }
    }

    /// Whether two threads can want one lock at the same time so often that waiting is what is measured.
    pub fn is_hand_off(&self) -> bool {
        self.work == Work::Lock && self.universe == 1 && self.threads > 1
    }

    /// Each thread's keys. Long enough that a large universe does not fit any cache, and short enough
    /// otherwise that reading the sequence costs nothing.
    pub fn sequences(&self, effort: Effort) -> Vec<Vec<Key>> {
        let len = if self.universe > 100_000 {
            (1 << 20) / effort.divisor
        } else {
            1 << 13
        };
        (0..self.threads as u64)
            .map(|seed| draw::sequence(self.draw, self.universe, len, seed + 1))
            .collect()
    }

    /// How often a thread goes through its sequence in one measurement: some tens of milliseconds.
    pub fn passes(&self, effort: Effort) -> usize {
        if self.universe > 100_000 {
            1
        } else if self.is_hand_off() {
            (16 / effort.divisor).max(1)
        } else {
            (256 / effort.divisor).max(1)
        }
    }
}
