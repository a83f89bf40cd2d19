//! Names and keys: their bounds, their words, their hash.
//!
//! A name is 1 to 1,024 bytes, exact, never parsed. The hash is frozen with the region layout: its
//! known answers are tested, and a change of any of them is a new layout.

use crate::error::{Error, Result};
use rapidhash::v3::{RapidSecrets, rapidhash_v3_inline};

/// The longest name or key, in bytes.
pub const NAME_BYTES_MAX: usize = 1024;

/// The longest name of an object that belongs to a pair of names, in bytes: see `Name::pair`.
pub(crate) const PAIR_BYTES_MAX: usize = 2 + 2 * NAME_BYTES_MAX;

/// Checks the bounds of a name or key; `what` names the argument in the error.
pub fn check_name(what: &'static str, name: &[u8]) -> Result<()> {
    if (1..=NAME_BYTES_MAX).contains(&name.len()) {
        Ok(())
    } else {
        Err(Error::NameLength {
            what,
            len: name.len(),
            max: NAME_BYTES_MAX,
        })
    }
}

/// A keyed hash function, rapidhash v3, frozen with the layout.
#[derive(Clone)]
pub struct Hasher(RapidSecrets);

impl Hasher {
    /// The hash function for `seed`.
    pub fn new(seed: u64) -> Self {
        Self(RapidSecrets::seed(seed))
    }

    /// The 64-bit hash of `bytes`.
    #[inline(always)]
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        // Template arguments: not the avalanche-only variant, no compact code, no protection against a
        // zero product (the seed is secret).
        rapidhash_v3_inline::<true, false, false>(bytes, &self.0)
    }
}

/// Mixes a constant into a hash, so that one name gives unrelated hashes for different uses.
#[inline(always)]
pub(crate) fn mix(hash: u64, salt: u64) -> u64 {
    let wide = u128::from(hash ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_mul(0xd6e8_feb8_6659_fd93);
    (wide >> 64) as u64 ^ wide as u64
}

/// The bytes of a short key as zero-padded little-endian words, at most `N * 8` bytes.
#[inline(always)]
pub(crate) fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut words = [0; N];
    let mut rest = bytes;
    for word in &mut words {
        if rest.len() < 8 {
            *word = short_word(rest);
            break;
        }
        *word = read_word(rest, 0);
        rest = &rest[8..];
    }
    words
}

#[inline(always)]
pub(crate) fn read_word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Fewer than eight bytes as a zero-padded word, by two overlapping reads instead of a loop.
#[inline(always)]
fn short_word(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    let part = |at: usize, bytes: &[u8]| u64::from(bytes[at]);
    match len {
        0 => 0,
        1..=3 => {
            // First, middle and last byte, which may be the same.
            part(0, bytes)
                | part(len / 2, bytes) << (len / 2 * 8)
                | part(len - 1, bytes) << ((len - 1) * 8)
        }
        _ => {
            let read = |at: usize| {
                let mut word = [0; 4];
                word.copy_from_slice(&bytes[at..at + 4]);
                u64::from(u32::from_le_bytes(word))
            };
            read(0) | read(len - 4) << ((len - 4) * 8)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_are_the_zero_padded_bytes() {
        for len in 0..=24_usize {
            let bytes: Vec<u8> = (1..=len as u8).collect();
            let mut padded = [0; 24];
            padded[..len].copy_from_slice(&bytes);
            let words: Vec<u8> = words::<3>(&bytes)
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .collect();
            assert_eq!(words, padded, "{len}");
        }
    }
}
