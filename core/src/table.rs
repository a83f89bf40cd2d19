//! A table: at most one live cell per key, in blocks of eight, found by touching one line.
//!
//! A block is a header line and eight cells. A key's *home* is a block (high half of its hash) and a
//! first cell in it (low bits); the other cells follow by exclusive-or, so the neighbour on the same
//! line comes second. When all eight are taken the next blocks of the same partition serve, and the
//! home's *displacement* word, which only rises, says how far a search must look. Cells never move.
//!
//! This file owns the cells, and finding one. How a key gets in is in [`insertion`]; what is counted and
//! freed, and when a table is full, in [`room`].
//!
//! # Header line of a block
//!
//! | bytes | field | written by |
//! |---|---|---|
//! | 0..8 | *insertion word*: bits 0..32 cell + 1 being inserted for a key whose home this is, or 0; bits 32..64 how many were | the one compare-and-exchange that decides an insertion |
//! | 8..16 | displacement: blocks past this one that hold keys whose home this is | `fetch_max` before an insertion |
//! | 16..20 … 44..48 | *creator* of each cell: bits 0..12 session, bits 12..32 incarnation | whoever claimed the cell |
//!
//! # Phases of a cell (bits 0..2 of its state word)
//!
//! ```text
//!            claim                    finish (anyone)              retire (idle only)
//!  EMPTY ───────────▶ CLAIMED ───────────────────────▶ LIVE ───────────────────────▶ RETIRED
//!    ▲                   │ abandon, or recovered         the kind's own transitions      │
//!    │                   │ from a dead session                                           │
//!    └───────────────────┴───────────────────── empty (anyone), new serial ◀─────────────┘
//! ```
//!
//! A state word never repeats a value: emptying raises the serial or generation that it carries, so
//! an exchange prepared before a cell was reused fails.

mod insertion;
mod room;

pub(crate) use room::count_of;

use crate::error::Result;
use crate::region::memory::Line;
use crate::region::{CELLS_PER_BLOCK, Region, Section, header};
use crate::session::{SessionId, Sessions};
use crate::sync::{Wide, fence};
use core::marker::PhantomData;
use core::ops::Range;
// Process-local, and only hints: models need not see them.
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::sync::atomic::{AtomicBool, AtomicU64};

pub(crate) const EMPTY: u128 = 0;
pub(crate) const CLAIMED: u128 = 1;
pub(crate) const LIVE: u128 = 2;
pub(crate) const RETIRED: u128 = 3;
pub(crate) const PHASE_MASK: u128 = 3;

#[inline(always)]
pub(crate) fn phase(state: u128) -> u128 {
    state & PHASE_MASK
}

/// Bits `low..low + width` of a state word.
#[inline(always)]
pub(crate) const fn field(state: u128, low: u32, width: u32) -> u64 {
    ((state >> low) & ((1 << width) - 1)) as u64
}

/// What a claimed cell says about who claimed it.
#[derive(Clone, Copy)]
pub(crate) struct Claim {
    pub(crate) session: SessionId,
    /// The home block of the key being inserted.
    pub(crate) home: u32,
    /// The flavour's own bits.
    pub(crate) payload: u32,
}

/// How one table's cells encode their state, and what its kinds do at the table's transitions.
pub(crate) trait Flavour {
    const CELL_BYTES: usize;
    const CELLS_PER_LINE: u32 = if Self::CELL_BYTES < 64 {
        (64 / Self::CELL_BYTES) as u32
    } else {
        1
    };
    /// What there is no room for, in errors.
    const WHAT: &'static str;
    /// Which of a session's counters counts this table's cells; also the table's number.
    const COUNTER: usize;

    fn section(region: &Region) -> &Section;
    fn cap(region: &Region) -> u32;
    fn claimed(empty: u128, claim: Claim) -> u128;
    fn claim_of(claimed: u128) -> Claim;
    /// The state of a new entry. Runs after the insertion was decided, so what it reads is at least
    /// as new as the last retirement of the same key.
    fn live(region: &Region, at: usize, claimed: u128) -> u128;
    /// When the entry in `cell`, whose state is `live`, is no different from a new one. May ask
    /// `is_alive` of the sessions that it names.
    fn idle(
        region: &Region,
        cell: u32,
        at: usize,
        live: u128,
        now_ns: u64,
        is_alive: &mut dyn FnMut(SessionId) -> bool,
    ) -> Idle;
    /// The state word at `at`, out of the middle of whatever others began with it.
    fn load(region: &Region, at: usize) -> u128 {
        region.wide(at).load()
    }
    /// Notes that an entry which was idle from `at_ns` on is about to be reclaimed.
    fn note_reclaim(region: &Region, at_ns: u64);
    fn retired(region: &Region, at: usize, live: u128) -> u128;
    /// Saves what must outlive the entry. Runs at least once between RETIRED and EMPTY.
    fn preserve(region: &Region, partition: u32, retired: u128);
    /// The empty state after a claimed or retired one, with a new serial.
    fn emptied(state: u128) -> u128;
    /// The home block of a live entry.
    fn home_of(region: &Region, table: &Table<Self>, at: usize, live: u128) -> u32
    where
        Self: Sized;
}

/// When an entry is no different from a new one, so that it may be reclaimed.
pub(crate) enum Idle {
    Now,
    /// From this region time on, in nanoseconds, unless it is used before.
    At(u64),
    /// At any moment, by somebody's step.
    Unforeseen,
    /// Only when it is removed.
    Never,
}

/// What is looked for, and how to write it into a claimed cell.
pub(crate) trait Entry<F: Flavour> {
    /// Whether the cell in `line`, whose state word was `state`, is live and holds this key. May say so too
    /// of a cell that changed meanwhile: then its state is no longer this one.
    fn matches(&self, region: &Region, line: Line<'_>, state: u128) -> bool;
    /// The same for the first look, which may overlook what only a search need find.
    #[inline(always)]
    fn matches_plainly(&self, region: &Region, line: Line<'_>, state: u128) -> bool {
        self.matches(region, line, state)
    }
    fn payload(&self) -> u32;
    /// Writes the key. `owner` names this incarnation of the cell to the chunks it allocates.
    fn write(&self, region: &Region, at: usize, home: u32, owner: CellOwner) -> Result<()>;
}

/// A cell and which incarnation of it: what a key chunk belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct CellOwner {
    /// Which table's the cell is: [`Flavour::COUNTER`].
    pub(crate) table: u8,
    pub(crate) cell: u32,
    pub(crate) incarnation: u32,
}

/// A live cell that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) cell: u32,
    /// Byte offset of its state word.
    pub(crate) at: usize,
    pub(crate) state: u128,
}

impl Found {
    /// Whether the cell is unchanged. An answer that rests on its state, and ends in no exchange of it,
    /// must ask: the state may be that of the entry before, if the cell was reused between the reads of
    /// its state and of its key.
    pub(crate) fn is_unchanged(&self, region: &Region) -> bool {
        // Acquire: pairs with the fence in `insert`. If a word of the key that was compared is a later
        // entry's, the state read here is its claim or newer.
        fence(Acquire);
        region.wide(self.at).load() == self.state
    }
}

/// Who inserts, and how much of the region it may fill.
#[derive(Clone, Copy)]
pub(crate) struct Actor<'a> {
    pub(crate) sessions: &'a Sessions,
    pub(crate) session: SessionId,
    /// Cells of this table that the session may have.
    pub(crate) share: u32,
}

/// Rounds after which a loop that others keep disturbing gives up: only a scribbled region gets here.
pub(crate) const ROUNDS_MAX: u32 = 1 << 16;

pub(crate) struct Table<F> {
    section: Section,
    counters: usize,
    blocks_per_partition: u32,
    cap: u32,
    /// Whether every extent is known to be allocated, which spares the first look its question. Of
    /// this process, not of the region: it only remembers.
    is_complete: AtomicBool,
    /// Until when this process's session, at its share, has nothing that could be reclaimed.
    share_quiet_until_us: AtomicU64,
    flavour: PhantomData<F>,
}

const LIVE_COUNT: usize = 0;
const HAND: usize = 8;
const QUIET: usize = 16;
const DISPLACEMENT_MAX: usize = 24;

impl<F: Flavour> Table<F> {
    pub(crate) fn new(region: &Region) -> Self {
        let section = *F::section(region);
        Self {
            section,
            counters: [header::OBJECTS, header::LIMITER_KEYS, header::JOINT_KEYS][F::COUNTER],
            blocks_per_partition: section.units / region.partitions(),
            cap: F::cap(region),
            is_complete: AtomicBool::new(region.is_complete(&section)),
            share_quiet_until_us: AtomicU64::new(0),
            flavour: PhantomData,
        }
    }

    /// The home block of a hash.
    #[inline(always)]
    pub(crate) fn home(&self, hash: u64) -> u32 {
        (((hash >> 32) * u64::from(self.section.units)) >> 32) as u32
    }

    pub(crate) fn partition(&self, block: u32) -> u32 {
        block / self.blocks_per_partition
    }

    #[inline(always)]
    fn cell_at(&self, block: u32, slot: u32) -> usize {
        self.section.at(block) + 64 + slot as usize * F::CELL_BYTES
    }

    /// Byte offset of a cell's state word; any number is brought into range.
    #[inline(always)]
    pub(crate) fn at(&self, cell: u32) -> usize {
        let block = (cell / CELLS_PER_BLOCK).min(self.section.units - 1);
        self.cell_at(block, cell % CELLS_PER_BLOCK)
    }

    pub(crate) fn cells(&self) -> u32 {
        self.section.units * CELLS_PER_BLOCK
    }

    pub(crate) fn is_present(&self, region: &Region, cell: u32) -> bool {
        cell < self.cells() && region.is_present(&self.section, cell / CELLS_PER_BLOCK)
    }

    /// The furthest any key was ever put from its home, in blocks.
    pub(crate) fn displacement_max(&self, region: &Region) -> u64 {
        region.word(self.counters + DISPLACEMENT_MAX).load(Relaxed)
    }

    /// Hints that the home of `hash` will be looked at soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self, region: &Region, hash: u64) {
        let slot = hash as u32 % CELLS_PER_BLOCK;
        crate::sync::prefetch(region.wide(self.cell_at(self.home(hash), slot)));
    }

    /// Looks for a key where most are: on the first line that it may be on. The cells are tried by
    /// branches, not chosen by arithmetic: where a table is large, the processor then goes on to the next
    /// key's line before this one has come from memory (choosing measured 1.5 times slower).
    #[inline(always)]
    pub(crate) fn find_first<'r, E: Entry<F>>(
        &self,
        region: &'r Region,
        hash: u64,
        entry: &E,
    ) -> Option<(Line<'r>, u32, u128)> {
        let home = self.home(hash);
        if !self.is_complete.load(Relaxed) && !region.is_present(&self.section, home) {
            return None;
        }
        let first = hash as u32 % CELLS_PER_BLOCK;
        for step in 0..F::CELLS_PER_LINE {
            let slot = first ^ step;
            let line = region.line(self.cell_at(home, slot));
            // Acquire: pairs with the exchange that made the cell LIVE, so the key is complete.
            let state = line.state().load();
            if entry.matches_plainly(region, line, state) {
                return Some((line, home * CELLS_PER_BLOCK + slot, state));
            }
        }
        None
    }

    /// Finds the live cell of a key. One line in the usual case; no writes.
    #[inline(always)]
    pub(crate) fn find<E: Entry<F>>(&self, region: &Region, hash: u64, entry: &E) -> Option<Found> {
        self.find_by(region, hash, |line, state| {
            entry.matches(region, line, state)
        })
    }

    /// [`find`](Self::find) for what has no entry to insert: the first cell that `matches`, which is asked as
    /// [`Entry::matches`] is.
    #[inline(always)]
    pub(crate) fn find_by(
        &self,
        region: &Region,
        hash: u64,
        matches: impl Fn(Line<'_>, u128) -> bool,
    ) -> Option<Found> {
        let home = self.home(hash);
        if !region.is_present(&self.section, home) {
            return None;
        }
        let first = hash as u32 % CELLS_PER_BLOCK;
        for step in 0..CELLS_PER_BLOCK {
            let slot = first ^ step;
            let at = self.cell_at(home, slot);
            // Acquire: pairs with the exchange that made the cell LIVE, so the key is complete.
            let line = region.line(at);
            let state = line.state().load();
            if matches(line, state) {
                let cell = home * CELLS_PER_BLOCK + slot;
                return Some(Found { cell, at, state });
            }
        }
        self.find_displaced(region, home, matches)
    }

    #[cold]
    fn find_displaced(
        &self,
        region: &Region,
        home: u32,
        matches: impl Fn(Line<'_>, u128) -> bool,
    ) -> Option<Found> {
        let displacement = self.displacement(region, home);
        (1..=displacement)
            .map(|d| self.displaced(home, d))
            .find_map(|block| {
                if !region.is_present(&self.section, block) {
                    return None;
                }
                (0..CELLS_PER_BLOCK).find_map(|slot| {
                    let at = self.cell_at(block, slot);
                    let line = region.line(at);
                    let state = line.state().load();
                    matches(line, state).then_some(Found {
                        cell: block * CELLS_PER_BLOCK + slot,
                        at,
                        state,
                    })
                })
            })
    }

    /// Blocks past `home` to look at; bounded by the partition whatever the word says.
    fn displacement(&self, region: &Region, home: u32) -> u32 {
        // Acquire: pairs with the `fetch_max` before an insertion is decided.
        let word = region.word(self.section.at(home) + 8).load(Acquire);
        word.min(u64::from(self.blocks_per_partition - 1)) as u32
    }

    /// The block `distance` past `home`, wrapping within the partition.
    fn displaced(&self, home: u32, distance: u32) -> u32 {
        let first = home - home % self.blocks_per_partition;
        first + (home - first + distance) % self.blocks_per_partition
    }

    /// How many blocks past its home the cell of a key lies; `None` if a search for it would not look
    /// there.
    pub(crate) fn distance(&self, region: &Region, hash: u64, cell: u32) -> Option<u32> {
        let home = self.home(hash);
        let block = cell / CELLS_PER_BLOCK;
        (0..=self.displacement(region, home)).find(|&d| self.displaced(home, d) == block)
    }

    /// The line of the session that created what is in a cell.
    pub(crate) fn creator(&self, region: &Region, cell: u32) -> u16 {
        // Relaxed: for counting.
        (region.half(self.creator_at(cell)).load(Relaxed) & 0xfff) as u16
    }

    fn creator_at(&self, cell: u32) -> usize {
        let block = (cell / CELLS_PER_BLOCK).min(self.section.units - 1);
        self.section.at(block) + 16 + (cell % CELLS_PER_BLOCK) as usize * 4
    }

    /// Whether `owner` is still the incarnation that holds its cell.
    pub(crate) fn is_current(&self, region: &Region, owner: CellOwner) -> bool {
        self.is_present(region, owner.cell)
            && phase(region.wide(self.at(owner.cell)).load()) != EMPTY
            && region.half(self.creator_at(owner.cell)).load(Relaxed) >> 12 == owner.incarnation
    }

    /// [`for_each`](Self::for_each) in one partition alone.
    pub(crate) fn for_each_in(
        &self,
        region: &Region,
        partition: u32,
        visit: impl FnMut(u32, usize, u128),
    ) {
        let first = partition * self.blocks_per_partition;
        let blocks = first..(first + self.blocks_per_partition).min(self.section.units);
        self.visit(region, blocks, visit);
    }

    /// Visits every allocated cell: its index, the offset of its state word, its state.
    pub(crate) fn for_each(&self, region: &Region, visit: impl FnMut(u32, usize, u128)) {
        self.visit(region, 0..self.section.units, visit);
    }

    fn visit(&self, region: &Region, blocks: Range<u32>, mut visit: impl FnMut(u32, usize, u128)) {
        for block in blocks {
            if !region.is_present(&self.section, block) {
                continue;
            }
            for slot in 0..CELLS_PER_BLOCK {
                let at = self.cell_at(block, slot);
                visit(block * CELLS_PER_BLOCK + slot, at, region.wide(at).load());
            }
        }
    }

    pub(crate) fn state<'r>(&self, region: &'r Region, cell: u32) -> &'r Wide {
        region.wide(self.at(cell))
    }
}
