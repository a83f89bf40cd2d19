//! Keys, and the sequences of keys that both contestants of a case go through.

use fastrand::Rng;

/// A key of 16 bytes, all of them letters or digits, so that it is a string too.
pub type Key = [u8; 16];

/// How often each key of a universe is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Draw {
    /// All alike.
    Uniform,
    /// The key of rank `r`, from 1, in proportion to `r` to the power of minus `exponent`.
    Zipf {
        /// 0.99 is what key-value benchmarks use.
        exponent: f64,
    },
}

/// The key of a rank. Ranks that are neighbours give keys that have nothing in common.
pub fn key(rank: u64) -> Key {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let scrambled = scramble(rank);
    std::array::from_fn(|place| DIGITS[(scrambled >> (4 * place)) as usize % 16])
}

/// A key as text.
pub fn text(key: &Key) -> String {
    key.iter().map(|&byte| char::from(byte)).collect()
}

/// `len` keys drawn from `universe` many.
pub fn sequence(draw: Draw, universe: u64, len: usize, seed: u64) -> Vec<Key> {
    let mut rng = Rng::with_seed(seed);
    match draw {
        Draw::Uniform => (0..len).map(|_| key(rng.u64(..universe))).collect(),
        Draw::Zipf { exponent } => {
            let mut sum = 0.0;
            let up_to: Vec<f64> = (0..universe)
                .map(|rank| {
                    sum += (rank as f64 + 1.0).powf(-exponent);
                    sum
                })
                .collect();
            (0..len)
                .map(|_| {
                    let drawn = rng.f64() * sum;
                    key(up_to.partition_point(|&sum| sum <= drawn) as u64)
                })
                .collect()
        }
    }
}

/// One-to-one on 64 bits (the finaliser of `SplitMix64`), so that no two ranks share a key.
fn scramble(rank: u64) -> u64 {
    let mut x = rank.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::{Draw, key, sequence, text};
    use std::collections::HashMap;

    const ZIPF: Draw = Draw::Zipf { exponent: 0.99 };

    #[test]
    fn a_seed_draws_the_same_sequence_again() {
        for draw in [Draw::Uniform, ZIPF] {
            assert_eq!(sequence(draw, 50, 200, 7), sequence(draw, 50, 200, 7));
            assert_ne!(sequence(draw, 50, 200, 7), sequence(draw, 50, 200, 8));
        }
    }

    #[test]
    fn no_two_ranks_share_a_key_and_every_key_is_text() {
        let texts: std::collections::HashSet<_> =
            (0..10_000).map(|rank| text(&key(rank))).collect();
        assert_eq!(texts.len(), 10_000);
        assert!(texts.iter().all(|text| text.len() == 16));
    }

    #[test]
    fn zipf_draws_the_first_rank_twice_as_often_as_the_second() {
        let mut counts = HashMap::new();
        for key in sequence(ZIPF, 1_000, 100_000, 1) {
            *counts.entry(key).or_insert(0_u32) += 1;
        }
        let ratio = f64::from(counts[&key(0)]) / f64::from(counts[&key(1)]);
        assert!((1.8..2.2).contains(&ratio), "{ratio}");
    }
}
