//! Inserting into a table, and dying in the middle of it.
//!
//! Owns the one exchange that decides an insertion, and finishing what others began. Which cells may
//! be taken is for [`super::room`] to say.
//!
//! 1. Read the home's insertion word; if a cell is being inserted, *finish* it first.
//! 2. Look for the key. Found: done. A RETIRED cell met on the way is emptied for its owner.
//! 3. Count the cell in (the cap), then claim an EMPTY cell. *Dead here: the cell is CLAIMED by a
//!    dead session; whoever sweeps empties it.*
//! 4. Write the key. Nobody else writes to a claimed cell. *Stopped here: others pass by; the
//!    claim stays, one cell per stopped thread.*
//! 5. Exchange the insertion word read in step 1 for the same with this cell in it. It fails if any
//!    key of this home was inserted since, so no key is ever inserted twice. *Dead after: finished by
//!    the next one who comes by; the key is inserted.*
//! 6. *Finish*: CLAIMED becomes LIVE, with what a new entry starts from read only now (a lock's floor,
//!    an overflow bucket's level), then the insertion word is cleared and its count raised.
//!
//! A cell may be retired only when its home's insertion word does not name it. So while the word
//! names a cell, that cell is the claim it was named for or that claim's LIVE entry, and a helper
//! that read both under one and the same insertion word acts on the right one.

use super::{
    Actor, CLAIMED, CellOwner, Claim, DISPLACEMENT_MAX, Entry, Flavour, Found, LIVE, RETIRED,
    ROUNDS_MAX, Table, phase,
};
use crate::error::{Error, Result};
use crate::region::{CELLS_PER_BLOCK, Region};
use crate::session::SessionId;
use crate::sync::fence;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// How an insertion went.
enum Insertion {
    Done(Found),
    /// Inserted, and reclaimed by somebody else since.
    Gone,
    /// Somebody else got in between: nothing was inserted.
    Beaten,
}

impl<F: Flavour> Table<F> {
    /// Finds the live cell of a key or inserts one.
    #[cold]
    pub(crate) fn find_or_insert<E: Entry<F>>(
        &self,
        region: &Region,
        actor: &Actor<'_>,
        hash: u64,
        entry: &E,
        now_ns: u64,
    ) -> Result<Found> {
        let home = self.home(hash);
        if region.reach(&self.section, home)? {
            self.is_complete
                .store(region.is_complete(&self.section), Relaxed);
        }
        let insertion = region.word(self.section.at(home));
        let mut recounts = 0;
        for _ in 0..ROUNDS_MAX {
            // Acquire: pairs with the release of whoever finished the last insertion here, so that
            // the search below sees every key inserted before.
            let decided = insertion.load(Acquire);
            if decided as u32 != 0 {
                self.finish(region, home, decided);
                continue;
            }
            if let Some(found) = self.search(region, home, hash, entry) {
                return Ok(found);
            }
            if !self.admit(region, actor, home, now_ns, &mut recounts)? {
                continue;
            }
            match self.insert(region, actor, hash, entry, decided, now_ns) {
                Ok(Insertion::Done(found)) => return Ok(found),
                // Whoever reclaimed it counted it out.
                Ok(Insertion::Gone) => {}
                Ok(Insertion::Beaten) => self.count_out(region, actor.session.index),
                Err(error) => {
                    self.count_out(region, actor.session.index);
                    return Err(error);
                }
            }
        }
        Err(Error::Damaged {
            what: "an insertion never settles",
        })
    }

    /// Finishes the insertion that is decided at the home of `hash`, if one is.
    pub(crate) fn finish_at(&self, region: &Region, hash: u64) {
        let home = self.home(hash);
        if !region.is_present(&self.section, home) {
            return;
        }
        // Acquire: as in `find_or_insert`.
        let decided = region.word(self.section.at(home)).load(Acquire);
        if decided as u32 != 0 {
            self.finish(region, home, decided);
        }
    }

    /// Looks through everything within the home's displacement, emptying retired cells on the way.
    fn search<E: Entry<F>>(
        &self,
        region: &Region,
        home: u32,
        hash: u64,
        entry: &E,
    ) -> Option<Found> {
        let first = hash as u32 % CELLS_PER_BLOCK;
        for distance in 0..=self.displacement(region, home) {
            let block = self.displaced(home, distance);
            if !region.is_present(&self.section, block) {
                continue;
            }
            for step in 0..CELLS_PER_BLOCK {
                let slot = if distance == 0 { first ^ step } else { step };
                let (at, cell) = (self.cell_at(block, slot), block * CELLS_PER_BLOCK + slot);
                let line = region.line(at);
                let state = line.state().load();
                match phase(state) {
                    LIVE if entry.matches(region, line, state) => {
                        return Some(Found { cell, at, state });
                    }
                    // Its owner may have died; and if it holds this key, what it preserves must be
                    // preserved before the key is inserted anew.
                    RETIRED => self.empty(region, cell, state),
                    _ => {}
                }
            }
        }
        None
    }

    /// Steps 3 to 6.
    fn insert<E: Entry<F>>(
        &self,
        region: &Region,
        actor: &Actor<'_>,
        hash: u64,
        entry: &E,
        decided: u64,
        now_ns: u64,
    ) -> Result<Insertion> {
        let home = self.home(hash);
        let Some((cell, distance, empty)) = self.vacancy(region, actor, home, hash, now_ns)? else {
            return Err(Error::Full {
                what: F::WHAT,
                cap: self.cap.into(),
            });
        };
        let at = self.at(cell);
        let claim = Claim {
            session: actor.session,
            home,
            payload: entry.payload(),
        };
        let claimed = F::claimed(empty, claim);
        if region.wide(at).compare_exchange(empty, claimed).is_err() {
            return Ok(Insertion::Beaten);
        }
        // The cell is ours alone now: relaxed stores, published by the exchange of the insertion word.
        // Release: whoever still reads the cell as it was, and sees a word written below, finds its
        // state changed. Pairs with the acquire fences before a state is read again.
        fence(Release);
        let creator = region.half(self.creator_at(cell));
        let incarnation = (creator.load(Relaxed) >> 12).wrapping_add(1) & 0xf_ffff;
        creator.store(incarnation << 12 | u32::from(actor.session.index), Relaxed);
        let owner = CellOwner {
            table: F::COUNTER as u8,
            cell,
            incarnation,
        };
        if let Err(error) = entry.write(region, at, home, owner) {
            Self::abandon(region, at, actor.session);
            return Err(error);
        }
        if distance > 0 {
            // Before the decision, so that whoever sees the decision also looks far enough.
            region
                .word(self.section.at(home) + 8)
                .fetch_max(u64::from(distance), AcqRel);
            region
                .word(self.counters + DISPLACEMENT_MAX)
                .fetch_max(u64::from(distance), Relaxed);
        }
        let naming = decided | u64::from(cell + 1);
        // Release: the key's words come before it. Acquire: see `find_or_insert`.
        if region
            .word(self.section.at(home))
            .compare_exchange(decided, naming, AcqRel, Acquire)
            .is_err()
        {
            Self::abandon(region, at, actor.session);
            return Ok(Insertion::Beaten);
        }
        self.finish(region, home, naming);
        // Since it went LIVE it may have been used; then the caller's own exchange fails and it looks
        // again. Or it was idle and retired, and its cell may even hold another key by now.
        let line = region.line(at);
        let state = line.state().load();
        Ok(if entry.matches(region, line, state) {
            Insertion::Done(Found { cell, at, state })
        } else {
            Insertion::Gone
        })
    }

    /// Empties a cell that this session claimed. Others may have changed what is claimed, not by whom.
    fn abandon(region: &Region, at: usize, session: SessionId) {
        let word = region.wide(at);
        for _ in 0..ROUNDS_MAX {
            let state = word.load();
            if phase(state) != CLAIMED
                || F::claim_of(state).session != session
                || word.compare_exchange(state, F::emptied(state)).is_ok()
            {
                return;
            }
        }
    }

    /// Finishes the insertion that `naming` names, for whoever began it.
    pub(super) fn finish(&self, region: &Region, home: u32, naming: u64) {
        let insertion = region.word(self.section.at(home));
        let cell = naming as u32 - 1;
        if self.is_present(region, cell) {
            let at = self.at(cell);
            for _ in 0..ROUNDS_MAX {
                let state = region.wide(at).load();
                // Acquire: this read must come after the state's. Unchanged means that the state was
                // read while the word named the cell.
                if insertion.load(Acquire) != naming {
                    return;
                }
                if phase(state) != CLAIMED || F::claim_of(state).home != home {
                    break;
                }
                let live = F::live(region, at, state);
                // Losing means that somebody else finished it, or changed what is claimed.
                if region.wide(at).compare_exchange(state, live).is_ok() {
                    break;
                }
            }
        }
        // Before the word is cleared, so that it is done even if whoever inserts dies here.
        self.stir(region);
        let next = ((naming >> 32) + 1) << 32;
        // Release: whoever sees the word cleared sees the cell LIVE.
        let _ = insertion.compare_exchange(naming, next, AcqRel, Relaxed);
    }
}
