//! Numbers that vary: a seed's sequence, the same on every machine.

use std::hash::{Hash, Hasher};

/// A generator (`SplitMix64`: Steele, Lea, Flood, OOPSLA 2014). Spreads retries; no secret rests on it.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// 0 up to, not including, `bound`; 0 if that is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// Any two are the same: they say when something is done, never what, so no state is another for them.
impl PartialEq for Random {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Random {}

impl Hash for Random {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}
