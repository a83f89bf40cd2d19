//! The state word of a live lock that at most one holds: decoded, encoded, and what it becomes. In shared
//! use it has another form, [`crate::pool`].
//!
//! Owns the bits. Exchanges no word: whoever does asks this file for the next one.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0..2 | phase | LIVE |
//! | 2 | pooled | clear: this form |
//! | 3 | held | set: `session` holds it; clear: free |
//! | 4 | queue | set: there may be waiters; a free lock is then theirs, newcomers queue behind |
//! | 5..11, 11..23 | session | the holder's generation and line; 0 while free |
//! | 23..75 | time | region time in microseconds: the lease's end while held; when it was freed while free with a queue |
//! | 75..128 | token | of the holder; of the last holder while free |

use super::Grant;
use crate::object::{TOKEN_BITS, TOKEN_MAX};
use crate::pool::POOLED;
use crate::session::{GENERATION_BITS, SessionId};
use crate::table::{LIVE, PHASE_MASK, field};

const HELD: u128 = 1 << 3;
pub(super) const QUEUE: u128 = 1 << 4;
const TIME: u32 = 23;
const TIME_BITS: u32 = 52;
pub(super) const TIME_US_MAX: u64 = (1 << TIME_BITS) - 1;
pub(super) const TOKEN: u32 = 75;

/// A decoded lock word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) holder: Option<SessionId>,
    pub(crate) queue: bool,
    pub(crate) time_us: u64,
    pub(crate) token: u64,
}

impl State {
    /// Free, with no queue.
    pub(crate) fn free(token: u64) -> Self {
        Self {
            holder: None,
            queue: false,
            time_us: 0,
            // A floor past the highest is damaged: the lock then has no tokens left. Cut off at the
            // word's end instead, its tokens would start anew.
            token: token.min(TOKEN_MAX),
        }
    }

    #[inline(always)]
    pub(crate) fn decode(state: u128) -> Self {
        let session = SessionId::from_bits(field(state, 5, GENERATION_BITS + 12));
        Self {
            holder: (state & HELD != 0).then_some(session),
            queue: state & QUEUE != 0,
            time_us: field(state, TIME, TIME_BITS),
            token: field(state, TOKEN, TOKEN_BITS),
        }
    }

    #[inline(always)]
    pub(crate) fn encode(self) -> u128 {
        let holder = self.holder.map_or(0, |session| HELD | session.bits() << 5);
        let queue = if self.queue { QUEUE } else { 0 };
        let time_us = self.time_us.min(TIME_US_MAX);
        LIVE | holder | queue | u128::from(time_us) << TIME | u128::from(self.token) << TOKEN
    }

    /// No different from a new entry.
    pub(crate) fn is_idle(self) -> bool {
        self.holder.is_none() && !self.queue
    }

    /// Whether a word is that of a live lock that is free with no queue.
    #[inline(always)]
    pub(crate) fn is_plainly_free(state: u128) -> bool {
        state & (PHASE_MASK | POOLED | HELD | QUEUE) == LIVE
    }

    /// The word after `state` when `by` is granted the lock until `until_us`, and the token; phase and
    /// queue are kept. `None` when tokens are used up. `until_us` is one that [`until_us`] gives.
    #[inline(always)]
    pub(crate) fn granted(state: u128, by: SessionId, until_us: u64) -> Option<(u64, u128)> {
        let token = field(state, TOKEN, TOKEN_BITS) + 1;
        let after = state & (PHASE_MASK | QUEUE)
            | HELD
            | by.bits() << 5
            | u128::from(until_us) << TIME
            | u128::from(token) << TOKEN;
        (token <= TOKEN_MAX).then_some((token, after))
    }

    /// Freed by its holder, by the end of its lease, or by force.
    pub(crate) fn freed(self, now_us: u64) -> Self {
        let time_us = if self.queue { now_us } else { 0 };
        Self {
            holder: None,
            time_us,
            ..self
        }
    }

    /// Whether a hold's lease is over. The engine rounds its end up, so never before the holder's own.
    #[inline(always)]
    pub(crate) fn has_expired(self, now_us: u64) -> bool {
        self.holder.is_some() && self.time_us <= now_us
    }

    /// Whether it is the hold of `grant`, whether its lease still runs or not.
    #[inline(always)]
    pub(super) fn is_of(self, grant: &Grant) -> bool {
        self.holder == grant.by() && self.token == grant.token
    }
}
