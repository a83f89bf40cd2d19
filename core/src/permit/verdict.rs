//! Grants of a limiter's key that stand or are void: whether one that joined did so by a capacity that was in
//! force, which the first one to look decides for all.
//!
//! Owns the word that says so. It is the one that says of other permits since when they are held; here it is:
//!
//! | bits | field |
//! |---|---|
//! | 0..38 | low bits of the serial of the definition that it is to be granted by |
//! | 38..62 | generation of the permit |
//! | 62 | set: *void* |
//! | 63 | set: *undecided*, or void; clear: it stands, since the region time (ns) that the whole word is then |
//!
//! ```text
//!  claimed, undecided ──joins──▶ undecided ──the definition has that serial still──▶ stands
//!                                    └────────────────it has another────────────────▶ void: is taken out
//! ```
//!
//! The serial was read before the permit joined, and whoever decides reads it after. So one that stands was
//! granted by the capacity of the instant at which it joined; one that is void, nobody was refused for. Whoever
//! was granted something is stopped at any moment, then: others decide and go on. Generation and serial are
//! in the word so that nobody who is late decides anything for another use.

use super::{Claim, Permit, SINCE};
use crate::engine::Engine;
use crate::sync::{Word, fence};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};

const UNDECIDED: u64 = 1 << 63;
const VOID: u64 = UNDECIDED | 1 << 62;
const SERIAL_BITS: u32 = 38;

/// What became of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Stands,
    Void,
    /// It is over meanwhile: the permit is another use's, or nobody's.
    Over,
}

/// Since when a permit is held, by its word: region time in nanoseconds; `None` if that is not known.
pub(super) fn since_ns(word: u64) -> Option<u64> {
    (word & UNDECIDED == 0).then_some(word)
}

/// Whether the word says that nothing is held by the permit after all.
pub(super) fn is_void(word: u64) -> bool {
    word & VOID == VOID
}

fn undecided(permit: Permit, serial: u64) -> u64 {
    let generation = u64::from(permit.generation & 0xff_ffff);
    UNDECIDED | generation << SERIAL_BITS | serial & ((1 << SERIAL_BITS) - 1)
}

impl Engine {
    fn verdict_word(&self, index: u32) -> &Word {
        self.region.word(self.region.permit_at(index) + SINCE)
    }

    /// Leaves it undecided whether a claim is granted once it joins: by the definition with this serial.
    pub(crate) fn leave_undecided(&self, claim: &Claim, serial: u64) {
        let word = undecided(Permit::decode(claim.word), serial);
        // Relaxed: published by the exchange that makes it a member.
        self.verdict_word(claim.index).store(word, Relaxed);
    }

    /// Whether what a member was granted stands, decided by the serial that its limiter's definition has now, if
    /// nobody did before; `None` for a definition that is gone.
    pub(crate) fn verdict(
        &self,
        index: u32,
        member: Permit,
        serial_now: impl FnOnce() -> Option<u64>,
        now_ns: u64,
    ) -> Verdict {
        let word = self.verdict_word(index);
        // Acquire: pairs with the release of whoever decided.
        let mut said = word.load(Acquire);
        if said & VOID == UNDECIDED && said >> SERIAL_BITS == undecided(member, 0) >> SERIAL_BITS {
            // It joined, then we look at the definition: pairs with the fence in `wake_all_of`.
            fence(SeqCst);
            let stands = serial_now().is_some_and(|serial| said == undecided(member, serial));
            let decided = if stands {
                now_ns.max(1) & !UNDECIDED
            } else {
                said | VOID
            };
            said = match word.compare_exchange(said, decided, AcqRel, Acquire) {
                Ok(_) => decided,
                Err(found) => found,
            };
        }
        // Asked after the word was read: then that was of this use.
        if !Permit::decode(self.permit(index).load()).is_same_use(member) {
            return Verdict::Over;
        }
        match said & VOID {
            UNDECIDED => Verdict::Over,
            VOID => Verdict::Void,
            _ => Verdict::Stands,
        }
    }
}
