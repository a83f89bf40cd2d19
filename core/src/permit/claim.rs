//! Claiming a permit, and what a session has of them.
//!
//! Owns the way from free to claimed and back. A claim becomes a member by [`Engine::join`].

use super::state::{CLAIMED, FREE, Permit};
use super::{AMOUNT, CREATOR, SINCE};
use crate::engine::{Engine, Used};
use crate::error::{Error, Result};
use crate::region::header;
use crate::session::SessionId;
use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

/// What there is no room for, in errors.
const WHAT: &str = "shared hold or semaphore permit";

/// A permit that is claimed, and no member of a pool yet.
pub(crate) struct Claim {
    pub(crate) index: u32,
    pub(super) word: u128,
}

impl Claim {
    /// Whether it is for a share of the pool in `cell`.
    pub(crate) fn is_for(&self, cell: u32) -> bool {
        Permit::decode(self.word).cell == cell
    }
}

impl Engine {
    /// Claims a permit for a share of the pool in `cell`.
    pub(crate) fn claim_permit(
        &self,
        by: SessionId,
        cell: u32,
        until_us: u64,
        amount: u32,
        now_ns: u64,
    ) -> Result<Claim> {
        let cap = self.region.caps().permits;
        self.count_in_permit(by, cap)?;
        // Relaxed: a hint of this process, where it last had one.
        let hint = self.used.permit_hint.load(Relaxed);
        for recover in [false, true] {
            if recover {
                self.reap_all(now_ns);
            }
            for i in 0..cap {
                let index = (hint + i) % cap;
                let before = self.permit(index).load();
                let permit = Permit::decode(before);
                if permit.phase != FREE {
                    continue;
                }
                let claimed = Permit {
                    phase: CLAIMED,
                    by,
                    until_us,
                    cell,
                    generation: permit.generation,
                };
                let word = claimed.encode();
                // Before it is claimed: whoever scans for members, or for what the dead left, looks far enough.
                let high = self.region.word(header::PERMITS_HIGH);
                if high.load(Relaxed) <= u64::from(index) {
                    high.fetch_max(u64::from(index) + 1, AcqRel);
                }
                if self.permit(index).compare_exchange(before, word).is_err() {
                    continue;
                }
                self.used.permit_hint.store(index, Relaxed);
                let at = self.region.permit_at(index);
                self.region.word(at + AMOUNT).store(amount.into(), Relaxed);
                // Release: whoever asks late what became of the last use, and reads this, finds that the
                // permit is another's. Pairs with the acquire in `verdict`.
                self.region.word(at + SINCE).store(0, Release);
                self.region
                    .word(at + CREATOR)
                    .store(by.bits() as u64, Relaxed);
                return Ok(Claim { index, word });
            }
        }
        self.count_out_permit();
        Err(Error::Full {
            what: WHAT,
            cap: cap.into(),
        })
    }

    /// Gives back a claim that did not become a member.
    pub(crate) fn abandon_permit(&self, claim: &Claim) {
        let freed = Permit::decode(claim.word).freed().encode();
        // Losing means that this session is taken for dead.
        let _ = self.permit(claim.index).compare_exchange(claim.word, freed);
        self.count_out_permit();
    }

    fn count_in_permit(&self, by: SessionId, cap: u32) -> Result<()> {
        if !self.has_share() {
            return Ok(());
        }
        let share = self.share_of(cap);
        Used::add(&self.used.permits, 1, share, WHAT).or_else(|error| {
            // Others end what is over, broken or handed on, and this process's count does not know.
            let is_its = |index: &u32| {
                !Permit::decode(self.permit(*index).load()).is_free()
                    && self.is_created_by(*index, by)
            };
            let count = (0..cap).filter(is_its).count() as u32;
            if count >= share {
                return Err(error);
            }
            self.used.permits.store(count + 1, Relaxed);
            Ok(())
        })
    }

    pub(super) fn is_created_by(&self, index: u32, by: SessionId) -> bool {
        let at = self.region.permit_at(index) + CREATOR;
        // Relaxed: for counting.
        self.region.word(at).load(Relaxed) == by.bits() as u64
    }

    pub(super) fn count_out_permit(&self) {
        if self.has_share() {
            Used::take_off(&self.used.permits, 1);
        }
    }
}
