//! The words of an entry of limits declared together: decoded, encoded, and what they become.
//!
//! Owns the bits. Exchanges no word: [`super::entry`] does.
//!
//! The state of a live entry:
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0..3 | phase | LIVE |
//! | 3..8 | key length | 0: in chunks; of an overflow not used |
//! | 8 | closed | set: the values are being brought to include all that the state says |
//! | 9 | split | set: there is a total |
//! | 11..23 | definition | which limits |
//! | 23..43 | generation | one higher for each closing |
//! | 43..69 | sum | of the batch: so much was admitted by every limit |
//! | 43..53 | sum | the same, if split |
//! | 53..63 | total | if split: so much was admitted since the values, the batch included |
//! | 63..69 | by total | if split: which limits count the total |
//! | 69..128 | then | of the batch: when, in nanoseconds of region time |
//!
//! A value:
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0..43 | tag | in its low 20 bits the last generation that it includes; the others count on where those come round, so that no value word ever comes back |
//! | 43..128 | value | of its limit ([`crate::limit`]) |

use super::entry::LIMITS_MAX;
use crate::limit::{Since, TIME_NS_MAX, VALUE_BITS, Ways};
use crate::region::Region;
use crate::table::{LIVE, field};

const SUM_BITS: u32 = 26;
/// The greatest cost of a call: 2^26 - 1, as much as a batch holds.
pub const COST_MAX: u64 = (1 << SUM_BITS) - 1;

/// Sum and total of a split state, in bits.
const PART_BITS: u32 = 10;
const PART_MAX: u64 = (1 << PART_BITS) - 1;

const CLOSED: u128 = 1 << 8;
const SPLIT: u128 = 1 << 9;
pub(crate) const GENERATION: u32 = 23;
const GENERATION_BITS: u32 = 20;
const GENERATION_MASK: u64 = (1 << GENERATION_BITS) - 1;
const SUM: u32 = GENERATION + GENERATION_BITS;
const THEN: u32 = SUM + SUM_BITS;
const TAG_BITS: u32 = u128::BITS - VALUE_BITS;

const _: () = assert!(THEN + TIME_NS_MAX.count_ones() == u128::BITS);
const _: () = assert!(2 * PART_BITS + LIMITS_MAX as u32 == SUM_BITS);

/// What was admitted since the values.
#[derive(Clone, Copy)]
pub(super) struct Batch {
    pub(super) then_ns: u64,
    pub(super) sum: u64,
    pub(super) total: u64,
    /// Bit i: whether the limit of index i counts the total.
    pub(super) by_total: u8,
}

impl Batch {
    #[inline(always)]
    pub(super) fn since(self, region: &Region, index: usize) -> Since {
        Since {
            then: region.moment(self.then_ns),
            sum: self.sum,
            total: self.total,
            is_by_total: self.by_total >> index & 1 != 0,
        }
    }
}

/// The batches that say what an admission does, as far as one has asked the limits.
pub(super) struct Candidates {
    grown: Batch,
    fresh: Batch,
    is_grown: bool,
    is_fresh: bool,
}

impl Candidates {
    #[inline(always)]
    pub(super) fn new(before: Batch, cost: u64, now_ns: u64) -> Self {
        let grown = Batch {
            sum: before.sum + cost,
            total: before.total + cost,
            by_total: 0,
            ..before
        };
        let fresh = Batch {
            then_ns: now_ns,
            sum: cost,
            ..grown
        };
        Self {
            grown,
            fresh,
            is_grown: true,
            is_fresh: true,
        }
    }

    #[inline(always)]
    pub(super) fn ask(&mut self, index: usize, ways: Ways) {
        self.is_grown &= ways.grown | ways.total;
        self.grown.by_total |= u8::from(!ways.grown) << index;
        self.is_fresh &= ways.fresh | ways.total;
        self.fresh.by_total |= u8::from(!ways.fresh) << index;
    }

    /// The state with the first that does; `None` if none does that a state holds.
    #[inline(always)]
    pub(super) fn state(&self, before: State) -> Option<State> {
        let grown = self.is_grown.then(|| before.with_batch(self.grown));
        let fresh = || self.is_fresh.then(|| before.with_batch(self.fresh));
        grown.flatten().or_else(|| fresh().flatten())
    }
}

/// The state of a live entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State(pub(crate) u128);

impl State {
    /// Open, without a batch.
    #[inline(always)]
    pub(crate) fn open(key_len: u32, definition: u32, generation: u64) -> Self {
        Self(
            LIVE | u128::from(key_len) << 3
                | u128::from(definition) << 11
                | u128::from(generation & GENERATION_MASK) << GENERATION,
        )
    }

    #[inline(always)]
    pub(crate) fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    /// The number of the definition, at most 12 bits.
    #[inline(always)]
    pub(crate) fn definition(self) -> u32 {
        field(self.0, 11, 12) as u32
    }

    #[inline(always)]
    pub(crate) fn generation(self) -> u64 {
        field(self.0, GENERATION, GENERATION_BITS)
    }

    #[inline(always)]
    pub(super) fn then_ns(self) -> u64 {
        (self.0 >> THEN) as u64
    }

    #[inline(always)]
    pub(super) fn is_split(self) -> bool {
        self.0 & SPLIT != 0
    }

    #[inline(always)]
    pub(super) fn batch(self) -> Batch {
        let sum = field(self.0, SUM, SUM_BITS);
        let batch = Batch {
            then_ns: self.then_ns(),
            sum,
            total: sum,
            by_total: 0,
        };
        if !self.is_split() {
            return batch;
        }
        Batch {
            sum: sum & PART_MAX,
            total: sum >> PART_BITS & PART_MAX,
            by_total: (sum >> (2 * PART_BITS)) as u8,
            ..batch
        }
    }

    #[inline(always)]
    pub(super) fn closed(self) -> Self {
        Self(self.0 | CLOSED)
    }

    /// The same with another batch; `None` if it does not hold that.
    #[inline(always)]
    pub(super) fn with_batch(self, batch: Batch) -> Option<Self> {
        let Batch {
            then_ns,
            sum,
            total,
            by_total,
        } = batch;
        if by_total == 0 {
            return (sum <= COST_MAX).then(|| self.with(then_ns, sum));
        }
        let parts = sum | total << PART_BITS | u64::from(by_total) << (2 * PART_BITS);
        (sum <= PART_MAX && total <= PART_MAX).then(|| Self(self.with(then_ns, parts).0 | SPLIT))
    }

    /// The same with a batch of `sum`, at most [`COST_MAX`], and no more since the values.
    #[inline(always)]
    pub(super) fn with(self, then_ns: u64, sum: u64) -> Self {
        let then_ns = then_ns.min(TIME_NS_MAX);
        let rest = self.0 & ((1 << SUM) - 1) & !SPLIT;
        Self(rest | u128::from(sum) << SUM | u128::from(then_ns) << THEN)
    }

    /// A closed one open again, now that its values include what it says.
    pub(super) fn opened(self, then_ns: u64, sum: u64) -> Self {
        let generation = u128::from(self.generation().wrapping_add(1) & GENERATION_MASK);
        let rest = self.0 & !CLOSED & !(u128::from(GENERATION_MASK) << GENERATION);
        Self(rest | generation << GENERATION).with(then_ns, sum)
    }
}

/// The word of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value(pub(super) u128);

impl Value {
    #[inline(always)]
    pub(super) fn value(self) -> u128 {
        self.0 >> TAG_BITS
    }

    pub(super) fn tag(self) -> u64 {
        field(self.0, 0, TAG_BITS)
    }

    /// Whether the last generation that it includes is `generation`.
    #[inline(always)]
    pub(super) fn is_of(self, generation: u64) -> bool {
        (self.0 as u64 ^ generation) & GENERATION_MASK == 0
    }

    /// Whether it includes all but the batch of `state`.
    #[inline(always)]
    pub(super) fn is_before(self, state: State) -> bool {
        self.is_of(state.generation().wrapping_sub(1))
    }

    /// The next word that includes `generation`, with another value.
    pub(super) fn next(self, generation: u64, value: u128) -> Self {
        // From the last one on: at least one further, at most as many as there are generations.
        let further = generation.wrapping_sub(self.tag()).wrapping_sub(1) & GENERATION_MASK;
        let tag = self.tag().wrapping_add(further + 1) & ((1 << TAG_BITS) - 1);
        Self(u128::from(tag) | value << TAG_BITS)
    }
}
