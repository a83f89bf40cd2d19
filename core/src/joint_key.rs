//! The joint keys table: one 128-byte cell, two lines, for each key of each limiter of limits declared together.
//!
//! Owns what a cell is and when it is idle. The words of a live one are in [`crate::joint::state`], the steps between
//! their states in [`crate::joint::entry`]. Before and after, the state word has:
//!
//! | phase | bits |
//! |---|---|
//! | EMPTY, RETIRED | 23..43 generation |
//! | CLAIMED | 3..9 session generation, 11..23 session, 23..43 generation, 43..75 home block, 75..87 definition, 87..92 key length |
//!
//! The key, at bytes 16..32, is as a limiter key's: its bytes, if at most 16; else its hash and the index of its
//! first chunk with its length. A cell that is emptied goes on three generations: two for what a new key's values
//! become before it is live, and one that a value may be ahead in when its key is retired.

use crate::chunk;
use crate::engine::Engine;
use crate::error::Result;
use crate::joint::entry;
use crate::joint::state::{GENERATION, State};
use crate::joint::{JointRef, definition};
use crate::key;
use crate::limiter_key::{LimiterKeys, reclaimed_at_ns};
use crate::region::memory::Line;
use crate::region::{Region, Section};
use crate::session::SessionId;
use crate::table::{CellOwner, Claim, EMPTY, Entry, Flavour, Idle, RETIRED, Table, field};
use core::sync::atomic::Ordering::Relaxed;

const KEY: usize = 16;
/// Bytes of a key that fit its cell.
const INLINE: usize = 16;
/// Phase, key length and definition.
const MATCH_MASK: u64 = 7 | 0x1f << 3 | 0xfff << 11;
/// The same, and that it is open.
const OPEN_MASK: u64 = MATCH_MASK | 1 << 8;
const GENERATION_MASK: u128 = ((1 << 20) - 1) << GENERATION;
/// Generations from one key of a cell to the next.
const GENERATIONS: u128 = 3 << GENERATION;

pub(crate) struct JointKeys;

impl JointKeys {
    /// Whether the key in a cell is in chunks.
    pub(crate) fn is_long(live: u128) -> bool {
        Self::key_len(live) == 0
    }

    fn key_len(live: u128) -> u32 {
        field(live, 3, 5) as u32
    }

    /// The key in a cell; valid if the state word is unchanged after.
    pub(crate) fn key(region: &Region, at: usize, live: u128) -> Vec<u8> {
        let words = [0, 8].map(|i| region.word(at + KEY + i).load(Relaxed));
        match Self::key_len(live) as usize {
            0 => chunk::read(region, words[1] as u32, (words[1] >> 32) as usize),
            len => {
                let mut key: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                key.truncate(len);
                key
            }
        }
    }

    /// Whether a live cell's words belong together, and to a definition.
    #[cfg(all(not(loom), target_os = "linux"))]
    pub(crate) fn is_sound(region: &Region, at: usize) -> bool {
        let state = State(region.wide(at).load());
        definition::limits(region, state.definition())
            .is_some_and(|limits| entry::is_sound(region, &limits, at, state))
    }
}

impl Flavour for JointKeys {
    const CELL_BYTES: usize = 128;
    const WHAT: &'static str = "joint key";
    const COUNTER: usize = 2;

    fn section(region: &Region) -> &Section {
        &region.geometry.joint_keys
    }

    fn cap(region: &Region) -> u32 {
        region.caps().joint_keys
    }

    fn claimed(empty: u128, claim: Claim) -> u128 {
        LimiterKeys::claimed(empty, claim)
    }

    fn claim_of(claimed: u128) -> Claim {
        LimiterKeys::claim_of(claimed)
    }

    /// Also brings the values to what a new key starts from: the level of the overflow, and never a time before the
    /// last reclaim.
    fn live(region: &Region, at: usize, claimed: u128) -> u128 {
        let payload = Self::claim_of(claimed).payload;
        let (id, key_len) = (payload & 0xfff, payload >> 12);
        let state = State::open(key_len, id, field(claimed, GENERATION, 20));
        // Of limits that cannot be read nobody can ask for a key.
        if let Some(limits) = definition::limits(region, id) {
            let level = entry::level(region, &limits, definition::overflow_at(region, id));
            let moment = region.moment(reclaimed_at_ns(region));
            let generation = state.generation();
            entry::begin(region, &limits, at, claimed, generation, |i, limit| {
                if moment.now_ns == 0 {
                    level[i]
                } else {
                    limit.advanced(level[i], moment)
                }
            });
        }
        state.0
    }

    fn idle(
        region: &Region,
        _: u32,
        at: usize,
        live: u128,
        _: u64,
        _: &mut dyn FnMut(SessionId) -> bool,
    ) -> Idle {
        let state = State(live);
        let Some(limits) = definition::limits(region, state.definition()) else {
            // Its limits are gone: nobody can ask for this key any more.
            return Idle::Now;
        };
        // Closed or not: whoever closed it finds it gone, and begins again.
        match entry::full_at_ns(region, &limits, at, state) {
            None => Idle::Unforeseen,
            Some(u64::MAX) => Idle::Never,
            Some(at_ns) => Idle::At(at_ns),
        }
    }

    fn note_reclaim(region: &Region, at_ns: u64) {
        LimiterKeys::note_reclaim(region, at_ns);
    }

    fn retired(_: &Region, _: usize, live: u128) -> u128 {
        RETIRED | live & GENERATION_MASK
    }

    fn preserve(_: &Region, _: u32, _: u128) {}

    fn emptied(state: u128) -> u128 {
        EMPTY | (state & GENERATION_MASK).wrapping_add(GENERATIONS) & GENERATION_MASK
    }

    fn home_of(region: &Region, table: &Table<Self>, at: usize, live: u128) -> u32 {
        let key = Self::key(region, at, live);
        table.home(definition::hasher(region, State(live).definition()).hash(&key))
    }
}

/// A key of a joint limiter to find or insert.
pub(crate) struct JointKey<'a> {
    engine: &'a Engine,
    joint: &'a JointRef,
    key: &'a [u8],
    words: [u64; 2],
    /// What the state word of this key's cell shows under `MATCH_MASK`.
    pattern: u64,
    pub(crate) hash: u64,
}

impl<'a> JointKey<'a> {
    #[inline(always)]
    pub(crate) fn new(engine: &'a Engine, joint: &'a JointRef, key: &'a [u8]) -> Self {
        Self::hashed(engine, joint, key, joint.hasher.hash(key))
    }

    /// The same for a key whose hash is known.
    #[inline(always)]
    pub(crate) fn hashed(
        engine: &'a Engine,
        joint: &'a JointRef,
        key: &'a [u8],
        hash: u64,
    ) -> Self {
        let (key_len, words) = if key.len() <= INLINE {
            (key.len() as u32, key::words(key))
        } else {
            (0, [hash, 0])
        };
        Self {
            engine,
            joint,
            key,
            words,
            pattern: State::open(key_len, joint.id, 0).0 as u64,
            hash,
        }
    }

    fn key_len(&self) -> u32 {
        field(self.pattern.into(), 3, 5) as u32
    }
}

impl Entry<JointKeys> for JointKey<'_> {
    #[inline(always)]
    fn matches(&self, region: &Region, line: Line<'_>, state: u128) -> bool {
        // Relaxed: written before the cell went LIVE, which the caller acquired; a cell reused since
        // shows in its state word, which the caller exchanges or reads again.
        let word = |offset| line.word(offset).load(Relaxed);
        if state as u64 & MATCH_MASK != self.pattern || word(KEY) != self.words[0] {
            return false;
        }
        let last = word(KEY + 8);
        if self.key_len() != 0 {
            return last == self.words[1];
        }
        (last >> 32) as usize == self.key.len() && chunk::equals(region, last as u32, self.key)
    }

    #[inline(always)]
    fn matches_plainly(&self, _: &Region, line: Line<'_>, state: u128) -> bool {
        // That it is open, too; and no key in chunks, whose place is never 0.
        let word = |offset| line.word(offset).load(Relaxed);
        state as u64 & OPEN_MASK == self.pattern
            && word(KEY) == self.words[0]
            && word(KEY + 8) == self.words[1]
    }

    fn payload(&self) -> u32 {
        self.joint.id | self.key_len() << 12
    }

    fn write(&self, region: &Region, at: usize, _: u32, owner: CellOwner) -> Result<()> {
        let mut words = self.words;
        if self.key_len() == 0 {
            let first = self.engine.write_chunks(owner, self.key)?;
            words[1] = u64::from(first) | (self.key.len() as u64) << 32;
        }
        region.word(at + KEY).store(words[0], Relaxed);
        region.word(at + KEY + 8).store(words[1], Relaxed);
        let claimed = State(region.wide(at).load());
        entry::prepare(region, &self.joint.limits, at, claimed.generation());
        Ok(())
    }
}
