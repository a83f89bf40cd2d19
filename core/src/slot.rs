//! The control word of a slot: of one limit ([`crate::limiter`]), or of limits declared together ([`crate::joint`]).
//!
//! Owns the bits. Exchanges no word.
//!
//! | bits | field |
//! |---|---|
//! | 0..2 | phase: 0 free, 1 claimed, 2 in use; a slot of limits declared together stays claimed |
//! | 2..8, 8..20 | the claimant's session |
//! | 20 | *replaced*: another limit took this one's place |
//! | 32..64 | generation, one higher for each claim |

use crate::session::SessionId;

const FREE: u64 = 0;
const CLAIMED: u64 = 1;
const IN_USE: u64 = 2;
const REPLACED: u64 = 1 << 20;

/// A control word, decoded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Control(pub(crate) u64);

impl Control {
    fn phase(self) -> u64 {
        self.0 & 3
    }

    pub(crate) fn is_free(self) -> bool {
        self.phase() == FREE
    }

    pub(crate) fn is_claimed(self) -> bool {
        self.phase() == CLAIMED
    }

    pub(crate) fn is_in_use(self) -> bool {
        self.phase() == IN_USE
    }

    pub(crate) fn is_replaced(self) -> bool {
        self.0 & REPLACED != 0
    }

    /// Who claimed it last.
    pub(crate) fn claimant(self) -> SessionId {
        SessionId::from_bits(self.0 >> 2)
    }

    /// Claimed anew.
    pub(crate) fn claimed(self, by: SessionId) -> Self {
        let generation = (self.0 >> 32).wrapping_add(1) & 0xffff_ffff;
        Self(CLAIMED | (by.bits() as u64) << 2 | generation << 32)
    }

    /// The same claim, now that the slot says what it is for.
    pub(crate) fn in_use(self) -> Self {
        Self(self.0 & !3 | IN_USE)
    }

    pub(crate) fn replaced(self) -> Self {
        Self(self.0 | REPLACED)
    }

    pub(crate) fn freed(self) -> Self {
        Self(self.0 & !3 | FREE)
    }
}
