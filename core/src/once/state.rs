//! The state word of a live once: one 128-bit word, decoded, encoded, and what it becomes.
//!
//! Owns the bits. Exchanges no word: whoever does asks this file for the next one.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0..3 | phase | LIVE |
//! | 3..5 | status | 0 open, 1 in progress, 2 in progress after an attempt that ended unfinished, 3 done |
//! | 75..128 | token | of the attempt; of the last one while open |
//!
//! | while | bits | field | meaning |
//! |---|---|---|---|
//! | open | 5 | unfinished | the last attempt ended unfinished, or one before that nobody finished since |
//! | open | 23..75 | time | since when it is open, in microseconds of region time, if unfinished; else 0 |
//! | in progress | 5..11, 11..23 | session | the owner's generation and line |
//! | in progress | 23..75 | time | the deadline in microseconds |
//! | done | 5..34 | result | its first chunk's index + 1; 0: it is empty |
//! | done | 34..75 | time | until when it is kept, in milliseconds |

use crate::object::{TOKEN_BITS, TOKEN_MAX};
use crate::session::{GENERATION_BITS, SessionId};
use crate::table::{LIVE, field};

const STATUS: u32 = 3;
const OPEN: u64 = 0;
const IN_PROGRESS: u64 = 1;
const AFTER_UNFINISHED: u64 = 2;
const DONE: u64 = 3;
const SESSION: u32 = 5;
const UNFINISHED: u64 = 1;
const TIME: u32 = 23;
const TIME_BITS: u32 = 52;
const RESULT: u32 = 5;
const RESULT_BITS: u32 = 29;
const KEPT: u32 = 34;
const KEPT_BITS: u32 = 41;
const TOKEN: u32 = 75;

/// A decoded once word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) token: u64,
    pub(crate) status: Status,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Open {
        /// Since when, if an attempt ended unfinished.
        unfinished_us: Option<u64>,
    },
    InProgress {
        by: SessionId,
        until_us: u64,
        is_after_unfinished: bool,
    },
    Done {
        /// The result's first chunk; `None` if it is empty.
        first: Option<u32>,
        until_ms: u64,
    },
}

impl State {
    /// A new entry, whose attempts have tokens above this.
    pub(crate) fn open(token: u64) -> Self {
        Self {
            // As for locks: a damaged floor leaves no tokens, it doesn't start them anew.
            token: token.min(TOKEN_MAX),
            status: Status::Open {
                unfinished_us: None,
            },
        }
    }

    #[inline(always)]
    pub(crate) fn decode(state: u128) -> Self {
        let time_us = field(state, TIME, TIME_BITS);
        let status = match field(state, STATUS, 2) {
            OPEN => Status::Open {
                unfinished_us: (field(state, SESSION, 1) == UNFINISHED).then_some(time_us),
            },
            DONE => Status::Done {
                first: (field(state, RESULT, RESULT_BITS) as u32).checked_sub(1),
                until_ms: field(state, KEPT, KEPT_BITS),
            },
            status => Status::InProgress {
                by: SessionId::from_bits(field(state, SESSION, GENERATION_BITS + 12)),
                until_us: time_us,
                is_after_unfinished: status == AFTER_UNFINISHED,
            },
        };
        Self {
            token: field(state, TOKEN, TOKEN_BITS),
            status,
        }
    }

    #[inline]
    pub(crate) fn encode(self) -> u128 {
        let time = |time_us: u64| u128::from(time_us.min((1 << TIME_BITS) - 1)) << TIME;
        let status = match self.status {
            Status::Open {
                unfinished_us: None,
            } => u128::from(OPEN) << STATUS,
            Status::Open {
                unfinished_us: Some(since_us),
            } => u128::from(OPEN) << STATUS | u128::from(UNFINISHED) << SESSION | time(since_us),
            Status::InProgress {
                by,
                until_us,
                is_after_unfinished,
            } => {
                let status = if is_after_unfinished {
                    AFTER_UNFINISHED
                } else {
                    IN_PROGRESS
                };
                u128::from(status) << STATUS | by.bits() << SESSION | time(until_us)
            }
            Status::Done { first, until_ms } => {
                let first = first.map_or(0, |chunk| chunk + 1);
                u128::from(DONE) << STATUS
                    | u128::from(first) << RESULT
                    | u128::from(until_ms.min((1 << KEPT_BITS) - 1)) << KEPT
            }
        };
        LIVE | status | u128::from(self.token) << TOKEN
    }

    /// With another status, token kept.
    pub(crate) fn with(self, status: Status) -> Self {
        Self { status, ..self }
    }

    /// The attempt is over, and may have done its work in part.
    pub(crate) fn left_unfinished(self, now_us: u64) -> Self {
        self.with(Status::Open {
            unfinished_us: Some(now_us),
        })
    }

    /// Whose attempt is in progress and not past its deadline; whether its owner lives is not said.
    pub(crate) fn owner(self, now_us: u64) -> Option<SessionId> {
        match self.status {
            Status::InProgress { by, until_us, .. } => (now_us < until_us).then_some(by),
            Status::Open { .. } | Status::Done { .. } => None,
        }
    }

    /// Whether the attempt under `token` is in progress, or over only by its deadline, which nobody noted.
    pub(crate) fn is_attempt(self, token: u64) -> bool {
        self.token == token && matches!(self.status, Status::InProgress { .. })
    }

    /// Whether a result is in chunks.
    pub(crate) fn has_chunks(self) -> bool {
        matches!(self.status, Status::Done { first: Some(_), .. })
    }
}
