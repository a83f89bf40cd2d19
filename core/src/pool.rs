//! The state word of what several hold at once: a lock in shared use, or a semaphore.
//!
//! Owns the bits, and what the word becomes; exchanges no word. Who holds is in permits
//! ([`crate::permit`]); the word says how much of it they have together, so that one exchange
//! decides whether there is room for another.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0..2 | phase | LIVE |
//! | 2 | pooled | set: this form; clear: the form of [`crate::lock`] |
//! | 3 | | clear; else the form of [`crate::lock::engaged`] |
//! | 4 | queue | set: there may be waiters, as in a lock's word |
//! | 5..7 | step | what the last exchange was: 0 none, 1 *joined*, 2 *left* |
//! | 7..23 | permit | the permit that joined or left |
//! | 23..47 | used | how much the members have together |
//! | 47..73 | terms | of a lock: its [`Mode`]; of a semaphore: its capacity |
//! | 75..128 | token | the last one handed out |
//!
//! # A step and its permit
//!
//! The exchange of this word decides; the permit follows. So the word names the permit of its last step, and
//! whoever makes the next step first sees to it that this one has followed ([`crate::permit::follow_step`]). A
//! permit is a member from the exchange that names it as joined to the one that names it as left, and `used` is
//! the sum over the members, whoever dies in between.
//!
//! Token and *used* together never repeat, and so neither does a step: a token is spent for each that joins,
//! and until the next one joins *used* only falls. *Queue* and a lock's mode go back and forth in between, so
//! that the whole word may: who asks whether a step was made asks [`has_same_step`].

use crate::object::{TOKEN_BITS, TOKEN_MAX};
use crate::table::{LIVE, PHASE_MASK, field};

pub(crate) const POOLED: u128 = 1 << 2;
const ENGAGED: u128 = 1 << 3;
const QUEUE: u128 = 1 << 4;
const STEP: u32 = 5;
const PERMIT: u32 = 7;
const PERMIT_BITS: u32 = 16;
const USED: u32 = 23;
const USED_BITS: u32 = 24;
const TERMS: u32 = 47;
const TERMS_BITS: u32 = 26;
const TOKEN: u32 = 75;

/// The most that the members of a pool can have together.
pub(crate) const USED_MAX: u32 = (1 << USED_BITS) - 1;

/// What the last exchange of a pool's word was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    None,
    Joined(u32),
    Left(u32),
}

/// How a lock is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Any number hold it.
    Shared,
    /// The holder of this permit waits for the others to leave; nobody else gets in.
    Upgrading(u32),
    /// The holder of this permit has it alone.
    Exclusive(u32),
}

/// A decoded pool's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    pub(crate) queue: bool,
    pub(crate) step: Step,
    pub(crate) used: u32,
    pub(crate) terms: u32,
    pub(crate) token: u64,
}

/// Whether a live word has this form.
#[inline(always)]
pub(crate) fn is_pooled(state: u128) -> bool {
    state & (PHASE_MASK | POOLED | ENGAGED) == LIVE | POOLED
}

/// Whether no step was made between two readings of a pool's word.
pub(crate) fn has_same_step(one: u128, other: u128) -> bool {
    let passing = QUEUE | ((1 << TERMS_BITS) - 1) << TERMS;
    (one ^ other) & !passing == 0
}

impl Pool {
    /// With no members.
    pub(crate) fn empty(token: u64, queue: bool) -> Self {
        Self {
            queue,
            step: Step::None,
            used: 0,
            terms: 0,
            token: token.min(TOKEN_MAX),
        }
    }

    pub(crate) fn decode(state: u128) -> Self {
        let permit = field(state, PERMIT, PERMIT_BITS) as u32;
        Self {
            queue: state & QUEUE != 0,
            step: match field(state, STEP, 2) {
                1 => Step::Joined(permit),
                2 => Step::Left(permit),
                _ => Step::None,
            },
            used: field(state, USED, USED_BITS) as u32,
            terms: field(state, TERMS, TERMS_BITS) as u32,
            token: field(state, TOKEN, TOKEN_BITS),
        }
    }

    pub(crate) fn encode(self) -> u128 {
        let (step, permit) = match self.step {
            Step::None => (0, 0),
            Step::Joined(permit) => (1, permit),
            Step::Left(permit) => (2, permit),
        };
        LIVE | POOLED
            | if self.queue { QUEUE } else { 0 }
            | step << STEP
            | u128::from(permit & ((1 << PERMIT_BITS) - 1)) << PERMIT
            | u128::from(self.used) << USED
            | u128::from(self.terms) << TERMS
            | u128::from(self.token) << TOKEN
    }

    /// After `permit` joined with `amount` more; `None` when tokens are used up.
    pub(crate) fn joined(self, permit: u32, amount: u32) -> Option<Self> {
        let used = self
            .used
            .checked_add(amount)
            .filter(|used| *used <= USED_MAX)?;
        (self.token < TOKEN_MAX).then_some(Self {
            step: Step::Joined(permit),
            used,
            token: self.token + 1,
            ..self
        })
    }

    /// After `permit`, which had `amount`, left.
    pub(crate) fn left(self, permit: u32, amount: u32) -> Self {
        Self {
            step: Step::Left(permit),
            // Less than nothing only in a damaged region.
            used: self.used.saturating_sub(amount),
            ..self
        }
    }

    pub(crate) fn mode(self) -> Mode {
        let permit = self.terms & ((1 << PERMIT_BITS) - 1);
        match self.terms >> PERMIT_BITS & 3 {
            1 => Mode::Upgrading(permit),
            2 => Mode::Exclusive(permit),
            _ => Mode::Shared,
        }
    }

    pub(crate) fn with_mode(self, mode: Mode) -> Self {
        let terms = match mode {
            Mode::Shared => 0,
            Mode::Upgrading(permit) => 1 << PERMIT_BITS | permit,
            Mode::Exclusive(permit) => 2 << PERMIT_BITS | permit,
        };
        Self { terms, ..self }
    }
}
