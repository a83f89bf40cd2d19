//! Room in a table: counting cells in and out, and freeing those that are idle or left by the dead.
//!
//! Owns the cap and each session's share, and the sweeps that make room. A sweep that finds nothing
//! leaves in the table's *quiet* word until when nothing can have become idle (bits 16..64, in
//! microseconds of region time), so that a table full of live entries is not swept at every insertion;
//! each *stir* starts a new epoch (bits 0..16) and clears it. Never looks for a key.

use super::{
    Actor, CLAIMED, EMPTY, Flavour, HAND, Idle, LIVE, LIVE_COUNT, QUIET, RETIRED, ROUNDS_MAX,
    Table, phase,
};
use crate::error::{Error, Result};
use crate::region::{CELLS_PER_BLOCK, Region};
use crate::session::{SessionId, Sessions};
use crate::sync::Word;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Whether room was made.
enum Room {
    Found,
    /// Every cell was looked at, and all are in use.
    None,
    /// As when it was last looked: nothing can have become idle since.
    NoneYet,
}

/// Why a cell was not freed.
enum Unfree {
    /// It was free.
    Empty,
    /// In use, and idle at this region time at the earliest, in nanoseconds.
    Until(u64),
}

/// Passes over the whole table, to correct a counter, after which an insertion takes the table for as
/// full as the counter keeps saying.
const RECOUNTS_MAX: u32 = 64;

/// The longest that a session at its share trusts what it found when it last looked, in nanoseconds.
const SHARE_QUIET_NS_MAX: u64 = 1_000_000_000;

impl<F: Flavour> Table<F> {
    /// Live cells, as counted; may be off by the number of processes killed while inserting.
    pub(crate) fn live_count(&self, region: &Region) -> u64 {
        count_of(region.word(self.counters + LIVE_COUNT).load(Relaxed))
    }

    /// An EMPTY cell for a key of `home`, as near as can be. A partition can be full before the table is
    /// at its cap: then what is idle, or claimed by the dead, makes room.
    pub(super) fn vacancy(
        &self,
        region: &Region,
        actor: &Actor<'_>,
        home: u32,
        hash: u64,
        now_ns: u64,
    ) -> Result<Option<(u32, u32, u128)>> {
        let first = hash as u32 % CELLS_PER_BLOCK;
        let mut probe = Probe::new(region, actor.sessions);
        let mut unreached = None;
        for is_full in [false, true] {
            for distance in 0..self.blocks_per_partition {
                let block = self.displaced(home, distance);
                // Where the file can't grow, a block further on may be there already.
                if unreached.is_none() {
                    unreached = region.reach(&self.section, block).err();
                }
                if unreached.is_some() && !region.is_present(&self.section, block) {
                    continue;
                }
                for step in 0..CELLS_PER_BLOCK {
                    let slot = if distance == 0 { first ^ step } else { step };
                    let cell = block * CELLS_PER_BLOCK + slot;
                    let at = self.at(cell);
                    let mut state = region.wide(at).load();
                    if is_full && self.try_free(region, &mut probe, cell, now_ns).is_ok() {
                        state = region.wide(at).load();
                    }
                    if phase(state) == EMPTY {
                        return Ok(Some((cell, distance, state)));
                    }
                }
            }
        }
        unreached.map_or(Ok(None), Err)
    }

    /// Empties a cell claimed by a session that is gone.
    fn recover(&self, region: &Region, sessions: &Sessions, cell: u32, state: u128) {
        if !sessions.is_alive(region, F::claim_of(state).session) {
            self.end_claim(region, cell, state);
        }
    }

    /// Empties all cells claimed by a session of this line.
    pub(crate) fn end_claims_of(&self, region: &Region, index: u16) {
        self.for_each(region, |cell, _, state| {
            if phase(state) == CLAIMED && F::claim_of(state).session.index == index {
                self.end_claim(region, cell, state);
            }
        });
    }

    fn end_claim(&self, region: &Region, cell: u32, state: u128) {
        let claim = F::claim_of(state);
        let home = claim.home.min(self.section.units - 1);
        if !region.is_present(&self.section, home) {
            return;
        }
        let naming = region.word(self.section.at(home)).load(Acquire);
        if naming as u32 == cell + 1 {
            self.finish(region, home, naming);
        } else if region
            .wide(self.at(cell))
            .compare_exchange(state, F::emptied(state))
            .is_ok()
        {
            // Only its dead claimant could have named it since.
            self.count_out(region, claim.session.index);
        }
    }

    /// Retires an idle entry and empties its cell; `false` if it changed meanwhile.
    pub(crate) fn reclaim(&self, region: &Region, cell: u32, live: u128) -> bool {
        let at = self.at(cell);
        let home = F::home_of(region, self, at, live).min(self.section.units - 1);
        if !region.is_present(&self.section, home) {
            return false;
        }
        // While the home's insertion word names this cell, a helper may still act on it.
        let naming = region.word(self.section.at(home)).load(Acquire);
        if naming as u32 == cell + 1 {
            self.finish(region, home, naming);
        }
        let retired = F::retired(region, at, live);
        if region.wide(at).compare_exchange(live, retired).is_err() {
            return false;
        }
        self.empty(region, cell, retired);
        true
    }

    /// Takes a cell from RETIRED to EMPTY. Anyone may; the one who succeeds counts it out.
    pub(super) fn empty(&self, region: &Region, cell: u32, retired: u128) {
        F::preserve(region, self.partition(cell / CELLS_PER_BLOCK), retired);
        let creator = self.creator(region, cell);
        if region
            .wide(self.at(cell))
            .compare_exchange(retired, F::emptied(retired))
            .is_ok()
        {
            self.count_out(region, creator);
        }
    }

    pub(super) fn count_out(&self, region: &Region, session: u16) {
        decrement(region.word(self.counters + LIVE_COUNT));
        decrement(region.word(Sessions::counter_at(region, session, F::COUNTER)));
    }

    /// Counts a new cell in, against the cap and the session's share, making room if need be.
    /// `false`: room was made or a count corrected, look again.
    pub(super) fn admit(
        &self,
        region: &Region,
        actor: &Actor<'_>,
        home: u32,
        now_ns: u64,
        recounts: &mut u32,
    ) -> Result<bool> {
        let live = region.word(self.counters + LIVE_COUNT);
        let (index, share) = (actor.session.index, u64::from(actor.share));
        // Bounded: a scribbled count may never come out the same twice.
        let mut may_recount = || {
            *recounts += 1;
            *recounts <= RECOUNTS_MAX
        };
        let mine = region.word(Sessions::counter_at(region, index, F::COUNTER));
        if let Err(used) = increment_below(mine, share) {
            return match self.make_room(region, actor, home, Some(index), now_ns) {
                Room::Found => Ok(false),
                Room::None if may_recount() && self.recount(region, Some(index)) < share => {
                    Ok(false)
                }
                Room::None | Room::NoneYet => Err(Error::ShareExceeded {
                    what: F::WHAT,
                    used,
                }),
            };
        }
        let cap = u64::from(self.cap);
        if count_of(live.load(Relaxed)) < cap {
            // Before the cell is counted: should its claimant die, the cell is looked for.
            self.stir(region);
        }
        if increment_below(live, cap).is_err() {
            decrement(mine);
            return match self.make_room(region, actor, home, None, now_ns) {
                Room::Found => Ok(false),
                Room::None if may_recount() && self.recount(region, None) < cap => Ok(false),
                Room::None | Room::NoneYet => Err(Error::Full { what: F::WHAT, cap }),
            };
        }
        Ok(true)
    }

    /// Frees one cell: an idle entry or a dead claim, of `session` if given; near `home` first, then
    /// from the clock hand on through the whole table. Skipped while nothing can have become idle.
    fn make_room(
        &self,
        region: &Region,
        actor: &Actor<'_>,
        home: u32,
        session: Option<u16>,
        now_ns: u64,
    ) -> Room {
        let quiet = region.word(self.counters + QUIET);
        // Acquire: pairs with `stir`.
        let before = quiet.load(Acquire);
        let quiet_until_us = match session {
            None => before >> 16,
            // Relaxed: a hint of this process.
            Some(_) => self.share_quiet_until_us.load(Relaxed),
        };
        if now_ns / 1_000 < quiet_until_us {
            return Room::NoneYet;
        }
        let (mut earliest_ns, mut seen) = (u64::MAX, 0);
        let mut probe = Probe::new(region, actor.sessions);
        let blocks = self.section.units;
        let hand = region.word(self.counters + HAND).fetch_add(1, Relaxed) % u64::from(blocks);
        let onward = (0..blocks).map(|i| ((hand + u64::from(i)) % u64::from(blocks)) as u32);
        let order = core::iter::once(home).chain(onward.filter(|block| *block != home));
        for block in order {
            if !region.is_present(&self.section, block) {
                continue;
            }
            for slot in 0..CELLS_PER_BLOCK {
                let cell = block * CELLS_PER_BLOCK + slot;
                if session.is_some_and(|session| self.creator(region, cell) != session) {
                    continue;
                }
                match self.try_free(region, &mut probe, cell, now_ns) {
                    Ok(()) => return Room::Found,
                    Err(Unfree::Empty) => {}
                    Err(Unfree::Until(at_ns)) => {
                        earliest_ns = earliest_ns.min(at_ns);
                        seen += 1;
                    }
                }
            }
        }
        if earliest_ns > now_ns {
            if session.is_none() {
                // A cell that was counted, and not yet claimed when the sweep came by, was not seen: its
                // claimant may die without a word, so nothing is said for as long as there may be one.
                let counted = self.live_count(region);
                if seen < counted || counted < u64::from(self.cap) {
                    return Room::None;
                }
                // The epoch in the low bits makes this fail if an entry was inserted meanwhile.
                let until = (earliest_ns / 1_000).min((1 << 48) - 1) << 16 | (before & 0xffff);
                let _ = quiet.compare_exchange(before, until, AcqRel, Relaxed);
            } else {
                // Others may change what this session's cells wait for, and stir only the region.
                let until_ns = earliest_ns.min(now_ns.saturating_add(SHARE_QUIET_NS_MAX));
                self.share_quiet_until_us.store(until_ns / 1_000, Relaxed);
            }
        }
        Room::None
    }

    /// Frees `cell` if it is idle, retired or claimed by the dead; else says when it may become so.
    fn try_free(
        &self,
        region: &Region,
        probe: &mut Probe<'_>,
        cell: u32,
        now_ns: u64,
    ) -> Result<(), Unfree> {
        let at = self.at(cell);
        let state = F::load(region, at);
        match phase(state) {
            LIVE => {
                let is_alive = &mut |session| probe.is_alive(session);
                let idle_ns = match F::idle(region, cell, at, state, now_ns, is_alive) {
                    Idle::Now => 0,
                    Idle::At(at_ns) if at_ns <= now_ns => at_ns,
                    Idle::At(at_ns) => return Err(Unfree::Until(at_ns)),
                    Idle::Unforeseen => return Err(Unfree::Until(0)),
                    Idle::Never => return Err(Unfree::Until(u64::MAX)),
                };
                F::note_reclaim(region, idle_ns);
                if self.reclaim(region, cell, state) {
                    Ok(())
                } else {
                    Err(Unfree::Until(0))
                }
            }
            RETIRED => {
                self.empty(region, cell, state);
                Ok(())
            }
            CLAIMED => {
                self.recover(region, probe.sessions, cell, state);
                // A live claimant will go on or die; either way look again next time.
                if phase(region.wide(at).load()) == EMPTY {
                    Ok(())
                } else {
                    Err(Unfree::Until(0))
                }
            }
            _ => Err(Unfree::Empty),
        }
    }

    /// Frees every idle entry that `is_wanted` picks by the offset and the state of its cell. If there
    /// was none, says when there will be one at the earliest, in nanoseconds of region time.
    pub(crate) fn free_idle(
        &self,
        region: &Region,
        sessions: &Sessions,
        now_ns: u64,
        is_wanted: impl Fn(usize, u128) -> bool,
    ) -> Result<(), u64> {
        let mut probe = Probe::new(region, sessions);
        let mut result = Err(u64::MAX);
        self.for_each(region, |cell, at, state| {
            let is_candidate = match phase(state) {
                LIVE => is_wanted(at, state),
                // What the dead claimed or left half reclaimed: its chunks count as taken until then.
                CLAIMED | RETIRED => true,
                _ => false,
            };
            if is_candidate {
                match self.try_free(region, &mut probe, cell, now_ns) {
                    Ok(()) => result = Ok(()),
                    Err(Unfree::Until(at_ns)) => result = result.map_err(|ns| ns.min(at_ns)),
                    Err(Unfree::Empty) => {}
                }
            }
        });
        result
    }

    /// Says that something may have become idle: the next full table sweeps again, and a sweep under
    /// way, which may have passed it by already, keeps its findings to itself.
    pub(crate) fn stir(&self, region: &Region) {
        self.share_quiet_until_us.store(0, Relaxed);
        let quiet = region.word(self.counters + QUIET);
        let mut before = quiet.load(Relaxed);
        for _ in 0..ROUNDS_MAX {
            let next = before.wrapping_add(1) & 0xffff;
            // Release: pairs with the acquire in `make_room`: a sweep that begins after sees what was
            // stirred, and one that began before fails to publish.
            match quiet.compare_exchange(before, next, Release, Relaxed) {
                Ok(_) => return,
                Err(found) => before = found,
            }
        }
    }

    /// Counts cells anew, all of them or one session's, and corrects the counter if it stood still:
    /// a process killed between two steps leaves it off by one. Returns the true count. One that is
    /// between two steps meanwhile is taken for dead, so that a cap may be passed by as many cells as
    /// threads were inserting.
    pub(crate) fn recount(&self, region: &Region, session: Option<u16>) -> u64 {
        let counter = region.word(match session {
            Some(index) => Sessions::counter_at(region, index, F::COUNTER),
            None => self.counters + LIVE_COUNT,
        });
        let before = counter.load(Acquire);
        let mut count = 0;
        self.for_each(region, |cell, _, state| {
            if phase(state) != EMPTY && session.is_none_or(|s| self.creator(region, cell) == s) {
                count += 1;
            }
        });
        let corrected = (before & !(CHANGED - 1)).wrapping_add(CHANGED) | count;
        let _ = counter.compare_exchange(before, corrected, AcqRel, Relaxed);
        count
    }

    /// Ends every insertion, claim and retirement, and the live entries that `ends` picks by the offset of
    /// their cell; counts what is left. For a region that nobody uses, whose words may be of different times.
    #[cfg(all(not(loom), target_os = "linux"))]
    pub(crate) fn settle(&self, region: &Region, ends: impl Fn(&Region, usize) -> bool) {
        // Relaxed throughout: whoever calls this publishes it.
        let sessions = region.caps().sessions;
        let mut counts = vec![0; sessions as usize];
        for block in 0..self.section.units {
            if !region.is_present(&self.section, block) {
                continue;
            }
            let insertion = region.word(self.section.at(block));
            let naming = insertion.load(Relaxed);
            if naming as u32 != 0 {
                insertion.store(((naming >> 32) + 1) << 32, Relaxed);
            }
            for slot in 0..CELLS_PER_BLOCK {
                let (at, cell) = (self.cell_at(block, slot), block * CELLS_PER_BLOCK + slot);
                let state = region.wide(at).load();
                let emptied = match phase(state) {
                    CLAIMED => F::emptied(state),
                    RETIRED => {
                        F::preserve(region, self.partition(block), state);
                        F::emptied(state)
                    }
                    LIVE if ends(region, at) => {
                        let retired = F::retired(region, at, state);
                        F::preserve(region, self.partition(block), retired);
                        F::emptied(retired)
                    }
                    LIVE => {
                        counts[(u32::from(self.creator(region, cell)) % sessions) as usize] += 1;
                        continue;
                    }
                    _ => continue,
                };
                // It can only fail if something scribbles.
                let _ = region.wide(at).compare_exchange(state, emptied);
            }
        }
        region
            .word(self.counters + LIVE_COUNT)
            .store(counts.iter().sum(), Relaxed);
        region.word(self.counters + QUIET).store(0, Relaxed);
        for (index, count) in counts.into_iter().enumerate() {
            region
                .word(Sessions::counter_at(region, index as u16, F::COUNTER))
                .store(count, Relaxed);
        }
    }
}

/// What one sweep found out about sessions: each is asked about once, since in a shared region the
/// answer costs a system call.
struct Probe<'a> {
    region: &'a Region,
    sessions: &'a Sessions,
    known: Vec<(SessionId, bool)>,
}

impl<'a> Probe<'a> {
    fn new(region: &'a Region, sessions: &'a Sessions) -> Self {
        Self {
            region,
            sessions,
            known: Vec::new(),
        }
    }

    fn is_alive(&mut self, session: SessionId) -> bool {
        if let Some((_, is_alive)) = self.known.iter().find(|(known, _)| *known == session) {
            return *is_alive;
        }
        let is_alive = self.sessions.is_alive(self.region, session);
        self.known.push((session, is_alive));
        is_alive
    }
}

/// Adds one to a count unless it has reached `max`: the count before, or the one that is too high. The
/// count is never above `max` in between, where another could take a table with room for full.
fn increment_below(count: &Word, max: u64) -> Result<u64, u64> {
    let mut now = count.load(Relaxed);
    for _ in 0..ROUNDS_MAX {
        if count_of(now) >= max {
            return Err(count_of(now));
        }
        // Relaxed: counts only, they order nothing.
        match count.compare_exchange(now, now.wrapping_add(CHANGED + 1), Relaxed, Relaxed) {
            Ok(_) => return Ok(count_of(now)),
            Err(found) => now = found,
        }
    }
    Err(count_of(now))
}

/// Lowers a count, never below zero.
fn decrement(count: &Word) {
    let mut now = count.load(Relaxed);
    for _ in 0..ROUNDS_MAX {
        if count_of(now) == 0 {
            return;
        }
        let next = now.wrapping_add(CHANGED) - 1;
        match count.compare_exchange(now, next, Relaxed, Relaxed) {
            Ok(_) => return,
            Err(found) => now = found,
        }
    }
}

/// The count in a counter's word; the bits above say how often it changed, so that a correction that
/// took its time, and may have been stopped in the middle, fails even if the count is back where it was.
pub(crate) fn count_of(word: u64) -> u64 {
    word & (CHANGED - 1)
}

const CHANGED: u64 = 1 << 32;
