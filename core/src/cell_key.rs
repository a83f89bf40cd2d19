//! The key in a cell of the limiter keys and of the joint keys, which have it in one form.
//!
//! Owns that form: at bytes 16..32 the key, if it has at most 16; else its hash, and the index of its first chunk with
//! its length. In bits 3..8 of a live cell's state word is how long it is, 0 if it is in chunks.

use crate::chunk;
use crate::engine::Engine;
use crate::error::Result;
use crate::key;
use crate::region::Region;
use crate::region::memory::Line;
use crate::table::{CellOwner, field};
use core::sync::atomic::Ordering::Relaxed;

const KEY: usize = 16;
/// Bytes of a key that fit its cell.
const INLINE: usize = 16;

/// A key as a cell has it.
#[derive(Clone, Copy)]
pub(crate) struct CellKey<'a> {
    pub(crate) bytes: &'a [u8],
    words: [u64; 2],
}

impl<'a> CellKey<'a> {
    #[inline(always)]
    pub(crate) fn new(bytes: &'a [u8], hash: u64) -> Self {
        let words = if bytes.len() <= INLINE {
            key::words(bytes)
        } else {
            [hash, 0]
        };
        Self { bytes, words }
    }

    /// Its length as a state word has it.
    #[inline(always)]
    pub(crate) fn len(&self) -> u32 {
        if self.bytes.len() <= INLINE {
            self.bytes.len() as u32
        } else {
            0
        }
    }

    /// Whether it is the key of the cell whose first line this is, and whose state word has its length.
    #[inline(always)]
    pub(crate) fn is_in(&self, region: &Region, line: Line<'_>) -> bool {
        // Relaxed: written before the cell went LIVE, which the caller acquired; a cell reused since
        // shows in its state word, which the caller exchanges or reads again.
        let word = |i| line.word(KEY + i).load(Relaxed);
        if word(0) != self.words[0] {
            return false;
        }
        let last = word(8);
        if self.len() != 0 {
            return last == self.words[1];
        }
        let (first, len) = place(last);
        len == self.bytes.len() && chunk::equals(region, first, self.bytes)
    }

    /// The same where it is not in chunks, whose index is never 0; `false` where it is.
    #[inline(always)]
    pub(crate) fn is_plainly_in(&self, line: Line<'_>) -> bool {
        // Relaxed: as above.
        let word = |i| line.word(KEY + i).load(Relaxed);
        word(0) == self.words[0] && word(8) == self.words[1]
    }

    /// Writes it to the cell at `at`, which its caller claimed.
    pub(crate) fn write(&self, engine: &Engine, at: usize, owner: CellOwner) -> Result<()> {
        let mut words = self.words;
        if self.len() == 0 {
            let first = engine.write_chunks(owner, self.bytes)?;
            words[1] = u64::from(first) | (self.bytes.len() as u64) << 32;
        }
        for (i, word) in words.into_iter().enumerate() {
            engine.region.word(at + KEY + i * 8).store(word, Relaxed);
        }
        Ok(())
    }
}

/// The index of the first chunk, and the length.
fn place(word: u64) -> (u32, usize) {
    (word as u32, (word >> 32) as usize)
}

fn key_len(live: u128) -> u32 {
    field(live, 3, 5) as u32
}

/// Whether the key in a live cell is in chunks.
pub(crate) fn is_long(live: u128) -> bool {
    key_len(live) == 0
}

/// Bytes of chunks that the key in a live cell takes.
pub(crate) fn chunk_bytes(region: &Region, at: usize, live: u128) -> u64 {
    let (_, len) = place(region.word(at + KEY + 8).load(Relaxed));
    if is_long(live) { chunk::bytes(len) } else { 0 }
}

/// The key in a live cell; valid if the state word is unchanged after.
pub(crate) fn read(region: &Region, at: usize, live: u128) -> Vec<u8> {
    read_of_len(region, at, key_len(live))
}

/// The key in a cell whose state word has this length, or will have.
pub(crate) fn read_of_len(region: &Region, at: usize, key_len: u32) -> Vec<u8> {
    let words = [0, 8].map(|i| region.word(at + KEY + i).load(Relaxed));
    if key_len == 0 {
        let (first, len) = place(words[1]);
        return chunk::read(region, first, len);
    }
    let mut key: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    key.truncate(key_len as usize);
    key
}
