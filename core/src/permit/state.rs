//! The word of a permit, decoded and encoded. Owns the bits; exchanges no word.
//!
//! Session and lease are where a lock's word has them, and bits 2 to 4 are set in all but a free one, so
//! that it is never the word of a lock that one exchange could release.
//!
//! | bits | field |
//! |---|---|
//! | 0..2 | phase: 0 free, 1 claimed, 2 active, 3 ended |
//! | 2..5 | set unless free |
//! | 5..23 | generation and line of the holder's session |
//! | 23..75 | the lease's end, region time in microseconds |
//! | 75..104 | the cell of its pool |
//! | 104..128 | generation of the permit, one higher for each use |

use crate::object::TOKEN_BITS;
use crate::session::{GENERATION_BITS, SessionId};
use crate::table::field;

pub(super) const FREE: u64 = 0;
pub(super) const CLAIMED: u64 = 1;
pub(super) const ACTIVE: u64 = 2;
pub(super) const ENDED: u64 = 3;

const MARK: u128 = 0b111 << 2;
const CELL_BITS: u32 = 29;

/// A decoded permit's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permit {
    pub(super) phase: u64,
    pub(crate) by: SessionId,
    pub(crate) until_us: u64,
    pub(crate) cell: u32,
    pub(super) generation: u32,
}

impl Permit {
    pub(crate) fn decode(word: u128) -> Self {
        Self {
            phase: field(word, 0, 2),
            by: SessionId::from_bits(field(word, 5, GENERATION_BITS + 12)),
            until_us: field(word, 23, 52),
            cell: field(word, 75, CELL_BITS) as u32,
            generation: field(word, 104, 24) as u32,
        }
    }

    pub(crate) fn encode(self) -> u128 {
        let generation = u128::from(self.generation & 0xff_ffff) << 104;
        if self.phase == FREE {
            return generation;
        }
        u128::from(self.phase)
            | MARK
            | self.by.bits() << 5
            | u128::from(self.until_us) << 23
            | u128::from(self.cell) << 75
            | generation
    }

    pub(super) fn in_phase(self, phase: u64) -> Self {
        Self { phase, ..self }
    }

    /// Free, for the next use.
    pub(super) fn freed(self) -> Self {
        Self {
            phase: FREE,
            generation: self.generation.wrapping_add(1),
            ..self
        }
    }

    pub(crate) fn is_free(self) -> bool {
        self.phase == FREE
    }

    pub(crate) fn is_active(self) -> bool {
        self.phase == ACTIVE
    }

    /// Whether it is a member of its pool, if the pool's last step was followed.
    pub(crate) fn is_member(self) -> bool {
        self.phase == ACTIVE || self.phase == ENDED
    }

    /// Whether it is the same use by the same session, whatever its lease and phase.
    pub(super) fn is_same_hold(self, other: Self) -> bool {
        (self.by, self.cell, self.generation) == (other.by, other.cell, other.generation)
    }

    pub(crate) fn has_expired(self, now_us: u64) -> bool {
        self.until_us <= now_us
    }

    /// Whether it is the same use, whoever has it by now.
    pub(super) fn is_same_use(self, other: Self) -> bool {
        (self.cell, self.generation) == (other.cell, other.generation)
    }

    /// The word that has the token of this use.
    pub(super) fn with_token(self, token: u64) -> u64 {
        token | u64::from(self.generation) << TOKEN_BITS
    }
}
