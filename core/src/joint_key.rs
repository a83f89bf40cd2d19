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
//! The key is at bytes 16..32 ([`crate::cell_key`]). A cell that is emptied goes on three generations: two for what a new key's values
//! become before it is live, and one that a value may be ahead in when its key is retired.

use crate::cell_key::{self, CellKey};
use crate::engine::Engine;
use crate::error::Result;
use crate::joint::entry;
use crate::joint::state::{GENERATION, State};
use crate::joint::{JointRef, definition};
use crate::limiter_key::{LimiterKeys, reclaimed_at_ns};
use crate::region::memory::Line;
use crate::region::{Region, Section};
use crate::session::SessionId;
use crate::table::{CellOwner, Claim, EMPTY, Entry, Flavour, Idle, RETIRED, Table, field};

/// Phase, key length and definition.
const MATCH_MASK: u64 = 7 | 0x1f << 3 | 0xfff << 11;
/// The same, and that it is open.
const OPEN_MASK: u64 = MATCH_MASK | 1 << 8;
const GENERATION_MASK: u128 = ((1 << 20) - 1) << GENERATION;
/// Generations from one key of a cell to the next.
const GENERATIONS: u128 = 3 << GENERATION;

pub(crate) struct JointKeys;

impl JointKeys {
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
        let key = cell_key::read(region, at, live);
        table.home(definition::hasher(region, State(live).definition()).hash(&key))
    }
}

/// A key of a joint limiter to find or insert.
pub(crate) struct JointKey<'a> {
    engine: &'a Engine,
    joint: &'a JointRef,
    key: CellKey<'a>,
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
        let key = CellKey::new(key, hash);
        Self {
            engine,
            joint,
            key,
            pattern: State::open(key.len(), joint.id, 0).0 as u64,
            hash,
        }
    }
}

impl Entry<JointKeys> for JointKey<'_> {
    #[inline(always)]
    fn matches(&self, region: &Region, line: Line<'_>, state: u128) -> bool {
        state as u64 & MATCH_MASK == self.pattern && self.key.is_in(region, line)
    }

    #[inline(always)]
    fn matches_plainly(&self, _: &Region, line: Line<'_>, state: u128) -> bool {
        // That it is open, too.
        state as u64 & OPEN_MASK == self.pattern && self.key.is_plainly_in(line)
    }

    fn payload(&self) -> u32 {
        self.joint.id | self.key.len() << 12
    }

    fn write(&self, region: &Region, at: usize, _: u32, owner: CellOwner) -> Result<()> {
        self.key.write(self.engine, at, owner)?;
        let claimed = State(region.wide(at).load());
        entry::prepare(region, &self.joint.limits, at, claimed.generation());
        Ok(())
    }
}
