//! Chance: numbers drawn from the seed, each by what it is for. Nothing is drawn from a sequence, so that leaving one thing
//! out leaves all others as they were.

/// What a number is drawn for.
pub(crate) type Purpose = u64;

/// A seed's numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(mix(seed ^ 0x5052_4147_5349_4d31))
    }

    /// The numbers of one purpose, apart from those of any other.
    pub(crate) fn of(self, purpose: Purpose) -> Self {
        Self(mix(
            self.0 ^ mix(purpose.wrapping_add(0x9e37_79b9_7f4a_7c15))
        ))
    }

    /// A number of 64 bits.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// 0 up to, not including, `bound`; 0 if that is 0.
    pub(crate) fn below(self, bound: u64) -> u64 {
        ((u128::from(self.0) * u128::from(bound)) >> 64) as u64
    }

    /// `least` up to and including `most`.
    pub(crate) fn between(self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// 0 up to, not including, 1.
    pub(crate) fn fraction(self) -> f64 {
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// From `least`, which is not 0, to `most`: about as likely between any number and its double. In whole numbers only,
    /// so that every machine draws the same.
    pub(crate) fn log_uniform(self, least: u64, most: u64) -> u64 {
        let doublings = u64::from((most / least).ilog2()) + 1;
        let low = least << self.of(1).below(doublings);
        low + self.of(2).below(low.min(most - low + 1))
    }
}

/// Spreads every bit over all (the end of `SplitMix64`; Steele, Lea, Flood, OOPSLA 2014).
pub(crate) fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
