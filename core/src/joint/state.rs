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
//! | 8 | closed | set: the values are being brought to include the batch |
//! | 11..23 | definition | which limits |
//! | 23..43 | generation | one higher for each closing |
//! | 43..69 | sum | of the batch: so much was admitted by every limit |
//! | 69..128 | then | of the batch: when, in nanoseconds of region time |
//!
//! A value:
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0..43 | tag | in its low 20 bits the last generation whose batch it includes; the others count on where those come round, so that no value word ever comes back |
//! | 43..128 | value | of its limit ([`crate::limit`]) |

use crate::limit::{Batch, Moment, TIME_NS_MAX, VALUE_BITS};
use crate::table::{LIVE, field};

const SUM_BITS: u32 = 26;
/// The greatest cost of a call: 2^26 - 1, as much as a batch holds.
pub const COST_MAX: u64 = (1 << SUM_BITS) - 1;

const CLOSED: u128 = 1 << 8;
pub(crate) const GENERATION: u32 = 23;
const GENERATION_BITS: u32 = 20;
const GENERATION_MASK: u64 = (1 << GENERATION_BITS) - 1;
const SUM: u32 = GENERATION + GENERATION_BITS;
const THEN: u32 = SUM + SUM_BITS;
const TAG_BITS: u32 = u128::BITS - VALUE_BITS;

const _: () = assert!(THEN + TIME_NS_MAX.count_ones() == u128::BITS);

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
    pub(super) fn sum(self) -> u64 {
        field(self.0, SUM, SUM_BITS)
    }

    #[inline(always)]
    pub(super) fn then_ns(self) -> u64 {
        (self.0 >> THEN) as u64
    }

    #[inline(always)]
    pub(super) fn batch(self, base_ns: u64) -> Batch {
        Batch {
            moment: Moment {
                now_ns: self.then_ns(),
                base_ns,
            },
            sum: self.sum(),
        }
    }

    #[inline(always)]
    pub(super) fn closed(self) -> Self {
        Self(self.0 | CLOSED)
    }

    /// The same with another batch; the sum is at most [`COST_MAX`].
    #[inline(always)]
    pub(super) fn with_batch(self, then_ns: u64, sum: u64) -> Self {
        let then_ns = then_ns.min(TIME_NS_MAX);
        Self(self.0 & ((1 << SUM) - 1) | u128::from(sum) << SUM | u128::from(then_ns) << THEN)
    }

    /// A closed one open again, now that its values include its batch.
    pub(super) fn opened(self, then_ns: u64, sum: u64) -> Self {
        let generation = u128::from(self.generation().wrapping_add(1) & GENERATION_MASK);
        let rest = self.0 & !CLOSED & !(u128::from(GENERATION_MASK) << GENERATION);
        Self(rest | generation << GENERATION).with_batch(then_ns, sum)
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

    fn tag(self) -> u64 {
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
