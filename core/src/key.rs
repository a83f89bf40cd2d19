//! Names and keys: their bounds, their words, their hash.
//!
//! A name is 1 to 1,024 bytes, exact, never parsed. The hash is frozen with the region layout: its
//! known answers are tested, and a change of any of them is a new layout.

use crate::error::{Error, Result};
use rapidhash::v3::{RapidSecrets, rapidhash_v3_inline};

/// The longest name or key, in bytes.
pub const NAME_BYTES_MAX: usize = 1024;

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
    if N >= 2 && bytes.len() == 16 {
        // The common size of a binary key, without the copy loop.
        words[0] = read_word(bytes, 0);
        words[1] = read_word(bytes, 8);
        return words;
    }
    for (word, chunk) in words.iter_mut().zip(bytes.chunks(8)) {
        let mut padded = [0; 8];
        padded[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_le_bytes(padded);
    }
    words
}

#[inline(always)]
pub(crate) fn read_word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}
