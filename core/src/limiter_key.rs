//! The limiter keys table: one 32-byte cell for each key of each limiter.
//!
//! | bytes | field |
//! |---|---|
//! | 0..16 | state word |
//! | 16..32 | the key ([`crate::cell_key`]) |
//!
//! # The state word
//!
//! | phase | bits |
//! |---|---|
//! | EMPTY, RETIRED | 23..43 generation |
//! | CLAIMED | 3..9 session generation, 11..23 session, 23..43 generation, 43..75 home block, 75..87 limit, 87..92 key length, 92..128 how often it was changed |
//! | LIVE | 3..8 key length (0: in chunks), 8 marked, 9 engaged, 11..23 limit, 23..43 generation, 43..128 value |
//!
//! A check exchanges the whole word, so that the value can only change under the key, the limit and
//! the generation that it was read with. What a value means is in [`crate::limit`]; which limit the
//! number stands for is in [`crate::limiter`].
//!
//! *Marked*: something was given back since the last admission, so that the next one moves the key to its
//! next generation (see [`crate::limit::Records`]). Set by a refund, cleared by that admission.
//!
//! *Engaged*: the word is one of several that are being exchanged together, and where the value was stands
//! which ([`crate::limiter::charge`]). Whoever meets one settles it before it reads a value. Bit 10 is not used.
//!
//! Within a generation a refund may bring back a word that was there before. That is harmless: whoever
//! prepared an exchange from the earlier one finds the same key with the same value, and what it decided is
//! what it would decide now with the stamp that it has.

use crate::cell_key::{self, CellKey};
use crate::engine::Engine;
use crate::error::Result;
use crate::limiter;
use crate::region::memory::Line;
use crate::region::{CELLS_PER_BLOCK, Region, Section, header};
use crate::session::SessionId;
use crate::sync::fence;
use crate::table::{
    CLAIMED, CellOwner, Claim, EMPTY, Entry, Flavour, Idle, LIVE, PHASE_MASK, RETIRED, Table, field,
};
use core::sync::atomic::Ordering::{AcqRel, Acquire, SeqCst};

const VALUE: u32 = 43;
/// Phase, key length and limit.
const MATCH_MASK: u64 = SHAPE_MASK | 0xfff << 11;
/// Phase and key length.
const SHAPE_MASK: u64 = 7 | 0x1f << 3;
const GENERATION_MASK: u128 = ((1 << 20) - 1) << 23;
const MARKED: u128 = 1 << 8;
const ENGAGED: u128 = 1 << 9;

/// The state of a live limiter key, or of an overflow bucket, which has the same form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyState(pub(crate) u128);

impl KeyState {
    #[inline(always)]
    pub(crate) fn live(key_len: u32, limit: u32, generation: u128, value: u128) -> Self {
        Self(
            LIVE | u128::from(key_len) << 3
                | u128::from(limit) << 11
                | generation & GENERATION_MASK
                | value << VALUE,
        )
    }

    #[inline(always)]
    pub(crate) fn limit(self) -> u32 {
        field(self.0, 11, 12) as u32
    }

    #[inline(always)]
    pub(crate) fn value(self) -> u128 {
        self.0 >> VALUE
    }

    #[inline(always)]
    pub(crate) fn with_value(self, value: u128) -> Self {
        Self(self.0 & ((1 << VALUE) - 1) | value << VALUE)
    }

    /// The same after an admission that leaves `value`.
    #[inline(always)]
    pub(crate) fn admitted(self, value: u128) -> Self {
        if self.is_marked() {
            return self.next_generation().with_value(value);
        }
        self.with_value(value)
    }

    /// Whether the next admission is one of the next generation.
    #[inline(always)]
    pub(crate) fn is_marked(self) -> bool {
        self.0 & MARKED != 0
    }

    pub(crate) fn marked(self) -> Self {
        Self(self.0 | MARKED)
    }

    /// Whether the value is somewhere else: see [`crate::limiter::charge`].
    #[inline(always)]
    pub(crate) fn is_engaged(self) -> bool {
        self.0 & (PHASE_MASK | ENGAGED) == LIVE | ENGAGED
    }

    /// The same with `mark` in the value's place.
    pub(crate) fn engaged(self, mark: u128) -> Self {
        Self(self.0 | ENGAGED).with_value(mark)
    }

    /// The same with no value yet in the mark's place.
    pub(crate) fn released(self) -> Self {
        Self(self.0 & !ENGAGED)
    }

    /// All but the value and the mark: as long as it stays, so do the key, the limit and what
    /// admissions remember.
    #[inline(always)]
    pub(crate) fn tag(self) -> u64 {
        (self.0 & ((1 << VALUE) - 1) & !MARKED) as u64
    }

    /// The same under another limit.
    pub(crate) fn with_limit(self, limit: u32, value: u128) -> Self {
        Self(self.0 & !(0xfff << 11) | u128::from(limit) << 11).with_value(value)
    }

    /// The same in the next generation, and not marked: an exchange prepared before now fails.
    pub(crate) fn next_generation(self) -> Self {
        let next = (self.0 & GENERATION_MASK).wrapping_add(1 << 23) & GENERATION_MASK;
        Self(self.0 & !GENERATION_MASK & !MARKED | next)
    }
}

const CLAIMED_LIMIT: u32 = 75;

/// The limit under which a claimed cell is to be inserted.
pub(crate) fn claimed_limit(claimed: u128) -> u32 {
    field(claimed, CLAIMED_LIMIT, 12) as u32
}

/// The same claim under another limit.
pub(crate) fn with_claimed_limit(claimed: u128, limit: u32) -> u128 {
    next_claim(claimed) & !(0xfff << CLAIMED_LIMIT) | u128::from(limit) << CLAIMED_LIMIT
}

/// The same claim in another word: an exchange prepared from this one fails.
pub(crate) fn next_claim(claimed: u128) -> u128 {
    const CHANGES: u32 = 92;
    let next = (claimed >> CHANGES).wrapping_add(1);
    claimed & ((1 << CHANGES) - 1) | next << CHANGES
}

pub(crate) struct LimiterKeys;

impl LimiterKeys {
    /// Bytes that a live key takes, of its block and of the chunks.
    pub(crate) fn bytes(region: &Region, at: usize, live: u128) -> u64 {
        let cell = Self::section(region).bytes_per(CELLS_PER_BLOCK);
        cell + cell_key::chunk_bytes(region, at, live)
    }
}

impl Flavour for LimiterKeys {
    const CELL_BYTES: usize = 32;
    const WHAT: &'static str = "limiter key";
    const COUNTER: usize = 1;

    fn section(region: &Region) -> &Section {
        &region.geometry.limiter_keys
    }

    fn cap(region: &Region) -> u32 {
        region.caps().limiter_keys
    }

    fn claimed(empty: u128, claim: Claim) -> u128 {
        CLAIMED
            | u128::from(claim.session.generation) << 3
            | u128::from(claim.session.index) << 11
            | empty & GENERATION_MASK
            | u128::from(claim.home) << 43
            | u128::from(claim.payload) << 75
    }

    fn claim_of(claimed: u128) -> Claim {
        Claim {
            session: SessionId {
                index: field(claimed, 11, 12) as u16,
                generation: field(claimed, 3, 6) as u8,
            },
            home: field(claimed, 43, 32) as u32,
            payload: field(claimed, 75, 17) as u32,
        }
    }

    fn live(region: &Region, at: usize, claimed: u128) -> u128 {
        let payload = Self::claim_of(claimed).payload;
        let (own, key_len) = (payload & 0xfff, payload >> 12);
        let limit =
            limiter::limit_of_new(region, own, || cell_key::read_of_len(region, at, key_len));
        KeyState::live(key_len, limit, claimed, limiter::first_value(region, limit)).0
    }

    fn idle(
        region: &Region,
        _: u32,
        _: usize,
        live: u128,
        _: u64,
        _: &mut dyn FnMut(SessionId) -> bool,
    ) -> Idle {
        let state = KeyState(live);
        if state.is_engaged() {
            return Idle::Unforeseen;
        }
        match limiter::prepared(region, state.limit()) {
            Some(limit) => match limit.full_at_ns(state.value(), region.base_unix_ns()) {
                u64::MAX => Idle::Never,
                at_ns => Idle::At(at_ns),
            },
            // Its limit is gone: nobody can ask for this key any more.
            None => Idle::Now,
        }
    }

    fn load(region: &Region, at: usize) -> u128 {
        // In a damaged region it stays engaged, and is never idle.
        limiter::settle(region, at).unwrap_or_else(|_| region.wide(at).load())
    }

    fn note_reclaim(region: &Region, at_ns: u64) {
        if at_ns > 0 {
            // AcqRel: before the cell is emptied, so before its key can be inserted anew; pairs with
            // the acquire in `reclaimed_at_ns`.
            region.word(header::RECLAIMED_AT).fetch_max(at_ns, AcqRel);
        }
    }

    fn retired(_: &Region, _: usize, live: u128) -> u128 {
        RETIRED | live & GENERATION_MASK
    }

    fn preserve(_: &Region, _: u32, _: u128) {}

    fn emptied(state: u128) -> u128 {
        let next = KeyState(state).next_generation().0;
        EMPTY | next & GENERATION_MASK
    }

    fn home_of(region: &Region, table: &Table<Self>, at: usize, live: u128) -> u32 {
        let key = cell_key::read(region, at, live);
        let hash = limiter::hasher(region, KeyState(live).limit()).hash(&key);
        table.home(hash)
    }
}

/// A limiter's key to find or insert.
pub(crate) struct LimiterKey<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) limiter: &'a limiter::LimiterRef,
    pub(crate) key: CellKey<'a>,
    /// What the state word of this key's cell shows under `MATCH_MASK`.
    pattern: u64,
    pub(crate) hash: u64,
}

impl<'a> LimiterKey<'a> {
    #[inline(always)]
    pub(crate) fn new(engine: &'a Engine, limiter: &'a limiter::LimiterRef, key: &'a [u8]) -> Self {
        Self::hashed(engine, limiter, key, limiter.hasher.hash(key))
    }

    /// The same for a key whose hash is known.
    #[inline(always)]
    pub(crate) fn hashed(
        engine: &'a Engine,
        limiter: &'a limiter::LimiterRef,
        key: &'a [u8],
        hash: u64,
    ) -> Self {
        let key = CellKey::new(key, hash);
        Self {
            engine,
            limiter,
            key,
            pattern: pattern(&key, limiter),
            hash,
        }
    }

    /// The same key under another reference to the same limiter: same name, same hash.
    pub(crate) fn of<'b>(&self, limiter: &'b limiter::LimiterRef) -> LimiterKey<'b>
    where
        'a: 'b,
    {
        LimiterKey {
            engine: self.engine,
            limiter,
            key: self.key,
            pattern: pattern(&self.key, limiter),
            hash: self.hash,
        }
    }

    /// Whether a cell with the same key, whose state word is neither under the limiter's limit nor under
    /// the one that this replaced, is this limiter's all the same: under an override.
    #[cold]
    fn is_overridden(&self, region: &Region, line: Line<'_>, state: u128) -> bool {
        if limiter::name_cell(region, KeyState(state).limit()) == self.limiter.cell {
            return true;
        }
        // Acquire: the reads above come before the one below. The same generation means that the limit's slot had not
        // gone to another limiter before its name was read. Not the same word: that may be another for a moment, and
        // this one again when the caller exchanges it.
        fence(Acquire);
        let now = KeyState(line.state().load());
        now.released().tag() != KeyState(state).released().tag()
    }
}

#[inline(always)]
fn pattern(key: &CellKey<'_>, limiter: &limiter::LimiterRef) -> u64 {
    KeyState::live(key.len(), limiter.id, 0, 0).0 as u64
}

impl Entry<LimiterKeys> for LimiterKey<'_> {
    /// The key under any limit of the limiter: its own, the one that this replaced, an override's.
    #[inline(always)]
    fn matches(&self, region: &Region, line: Line<'_>, state: u128) -> bool {
        if (state as u64 ^ self.pattern) & SHAPE_MASK != 0 || !self.key.is_in(region, line) {
            return false;
        }
        let limit = KeyState(state).limit();
        limit == self.limiter.id
            || Some(limit) == self.limiter.previous
            || self.is_overridden(region, line, state)
    }

    #[inline(always)]
    fn matches_plainly(&self, _: &Region, line: Line<'_>, state: u128) -> bool {
        // Phase, key length, limit and that it is neither marked nor engaged in one comparison.
        state as u64 & (MATCH_MASK | (MARKED | ENGAGED) as u64) == self.pattern
            && self.key.is_plainly_in(line)
    }

    fn payload(&self) -> u32 {
        self.limiter.id | self.key.len() << 12
    }

    fn write(&self, _: &Region, at: usize, _: u32, owner: CellOwner) -> Result<()> {
        // We claimed a cell under this limit, then look whether it is still the limiter's; whoever
        // replaces a limit publishes the new one, fences, then looks for cells under the old one.
        fence(SeqCst);
        self.engine.check_current(self.limiter)?;
        self.key.write(self.engine, at, owner)
    }
}

/// The latest time from which on a key that was since reclaimed had been full, in nanoseconds: a key
/// inserted after must not act as if it were earlier.
pub(crate) fn reclaimed_at_ns(region: &Region) -> u64 {
    region.word(header::RECLAIMED_AT).load(Acquire)
}
