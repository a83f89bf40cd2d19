//! Names too long for their cell, and results, in chains of 64-byte chunks.
//!
//! | word | field |
//! |---|---|
//! | 0 | *owner*, see below |
//! | 8 | bits 0..32: index + 1 of the next chunk, 0 at the end; of a result's also bits 32..44: the session that wrote it, and in its first chunk bits 44..60: its length |
//! | 16..64 | 48 bytes of the name or the result |
//!
//! | owner | bits | it is the owner's while |
//! |---|---|---|
//! | a cell, for its name | 0..32 cell, 32..52 its incarnation, 52..54 its table, 63 set | that incarnation has the cell |
//! | an attempt, for its result | 0..28 cell, 28..61 low bits of its token, 62 and 63 set | the attempt is under way, or done and nobody began anew ([`crate::once`]) |
//! | a writer | 0..12 session, 12..44 its generation, 61 and 63 set | the session lives |
//!
//! A chunk has no free list: it is free when it is nobody's any more, which its owner word and one
//! other word say. So nothing leaks when a process dies between any two steps, and
//! there is nothing to repair. Taking one is a single exchange of the owner word.

use crate::error::{Error, Result};
use crate::key::{NAME_BYTES_MAX, PAIR_BYTES_MAX, read_word};
use crate::region::{Region, header};
use crate::sync::fence;
use crate::table::CellOwner;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

const CHUNK_BYTES: usize = 64;
pub(crate) const PAYLOAD: usize = CHUNK_BYTES - 16;
/// Chunks of the longest result.
pub(crate) const CHAIN_MAX: usize = NAME_BYTES_MAX.div_ceil(PAYLOAD);
/// Chunks of the longest name, that of a pair.
const NAME_CHAIN_MAX: usize = PAIR_BYTES_MAX.div_ceil(PAYLOAD);
const TAKEN: u64 = 1 << 63;
const ATTEMPT: u64 = 1 << 62;
const WRITER: u64 = 1 << 61;
const CELL_BITS: u32 = 28;
const TOKEN_BITS: u32 = 33;
/// What [`Error::Full`] says there is no room for.
pub(crate) const WHAT: &str = "long name or result";

/// Chunks that a name of `len` bytes takes.
pub(crate) fn count(len: usize) -> u32 {
    len.div_ceil(PAYLOAD).min(NAME_CHAIN_MAX) as u32
}

/// Bytes of these chunks.
pub(crate) fn bytes(len: usize) -> u64 {
    u64::from(count(len)) * CHUNK_BYTES as u64
}

/// Whether chunks are what there is no room for, in the region or in a session's share.
pub(crate) fn is_lacking(error: &Error) -> bool {
    matches!(
        error,
        Error::Full { what: WHAT, .. } | Error::ShareExceeded { what: WHAT, .. }
    )
}

/// Whose a chunk is, or was.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A cell's, for its name.
    Name(CellOwner),
    /// The attempt's under `token`, of which these are the low bits, at a once in `cell`.
    Attempt { cell: u32, token: u64 },
    /// A session's that is writing to it.
    Writer { line: u16, generation: u32 },
}

impl Owner {
    /// An attempt's.
    pub(crate) fn attempt(cell: u32, token: u64) -> Self {
        let token = token & ((1 << TOKEN_BITS) - 1);
        Self::Attempt { cell, token }
    }

    pub(crate) fn encode(self) -> u64 {
        TAKEN
            | match self {
                Self::Name(owner) => {
                    u64::from(owner.table) << 52
                        | u64::from(owner.incarnation) << 32
                        | u64::from(owner.cell)
                }
                Self::Attempt { cell, token } => ATTEMPT | token << CELL_BITS | u64::from(cell),
                Self::Writer { line, generation } => {
                    WRITER | u64::from(generation) << 12 | u64::from(line)
                }
            }
    }

    pub(crate) fn decode(word: u64) -> Self {
        if word & ATTEMPT != 0 {
            let cell = word as u32 & ((1 << CELL_BITS) - 1);
            Self::attempt(cell, word >> CELL_BITS)
        } else if word & WRITER != 0 {
            Self::Writer {
                line: word as u16 & 0xfff,
                generation: (word >> 12) as u32,
            }
        } else {
            Self::Name(CellOwner {
                table: (word >> 52 & 3) as u8,
                cell: word as u32,
                incarnation: (word >> 32 & 0xf_ffff) as u32,
            })
        }
    }
}

/// How many chunks are owned by such as `is_its` picks, by a chunk's owner and by who wrote it, which is
/// said of results only. Reads all of them.
pub(crate) fn count_owned(region: &Region, is_its: impl Fn(Owner, u16) -> bool) -> u32 {
    let section = &region.geometry.chunks;
    let is_counted = |chunk: &u32| {
        if !region.is_present(section, *chunk) {
            return false;
        }
        let at = section.at(*chunk);
        let word = region.word(at).load(Acquire);
        let link = region.word(at + 8).load(Relaxed);
        word & TAKEN != 0 && is_its(Owner::decode(word), (link >> 32 & 0xfff) as u16)
    };
    (0..section.units).filter(is_counted).count() as u32
}

/// Takes free chunks, one after another, from where the last one who took some left off.
pub(crate) struct Taker<'r, F> {
    region: &'r Region,
    next: u32,
    looked: u32,
    is_current: F,
}

impl<'r, F: Fn(Owner) -> bool> Taker<'r, F> {
    /// `is_current` says whether a chunk is still its owner's.
    pub(crate) fn new(region: &'r Region, is_current: F) -> Self {
        Self {
            region,
            next: region.word(header::CHUNK_HINT).load(Relaxed) as u32,
            looked: 0,
            is_current,
        }
    }

    /// Takes one for `owner`, writes `part` to it, and `link` beside.
    pub(crate) fn take(&mut self, owner: Owner, part: &[u8], link: u64) -> Result<u32> {
        let section = &self.region.geometry.chunks;
        loop {
            if self.looked > section.units {
                return Err(Error::Full {
                    what: WHAT,
                    cap: section.units.into(),
                });
            }
            self.looked += 1;
            // The hint may be anything.
            self.next = match self.next.checked_add(1) {
                Some(after) if after < section.units => after,
                _ => 0,
            };
            self.region.reach(section, self.next)?;
            let word = self.region.word(section.at(self.next));
            // Acquire: pairs with the exchange below, so that the word that says whose it is is seen no
            // older than it was when the chunk became its owner's.
            let before = word.load(Acquire);
            let is_free = before & TAKEN == 0
                || (before != owner.encode() && !(self.is_current)(Owner::decode(before)));
            // An owner never comes back while its word stands here, so what was free above is
            // still free if the word is unchanged.
            if is_free
                && word
                    .compare_exchange(before, owner.encode(), AcqRel, Relaxed)
                    .is_ok()
            {
                break;
            }
        }
        // Release: whoever still reads the chunk as its last owner's, and sees a word written below, finds
        // that owner's state changed, as it was seen above. Pairs with the acquire fences before a
        // state is read again.
        fence(Release);
        let at = section.at(self.next);
        self.region.word(at + 8).store(link, Relaxed);
        for (i, bytes) in part.chunks(8).enumerate() {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            self.region
                .word(at + 16 + i * 8)
                .store(u64::from_le_bytes(padded), Relaxed);
        }
        Ok(self.next)
    }

    /// Has the next one begin after the last that was taken here.
    pub(crate) fn leave_off(self) {
        self.region
            .word(header::CHUNK_HINT)
            .store(u64::from(self.next), Relaxed);
    }
}

/// Writes `name` into chunks owned by `owner`; returns the first one's index.
pub(crate) fn write(
    region: &Region,
    owner: CellOwner,
    name: &[u8],
    is_current: impl Fn(Owner) -> bool,
) -> Result<u32> {
    let section = &region.geometry.chunks;
    let mut taker = Taker::new(region, is_current);
    let mut first = None;
    let mut last: Option<u32> = None;
    for part in name.chunks(PAYLOAD) {
        let chunk = taker.take(Owner::Name(owner), part, 0)?;
        match last {
            None => first = Some(chunk),
            Some(last) => region
                .word(section.at(last) + 8)
                .store(u64::from(chunk + 1), Relaxed),
        }
        last = Some(chunk);
    }
    taker.leave_off();
    Ok(first.unwrap_or(0))
}

/// Calls `part` with each word of a name of `len` bytes, in order, while it returns true. A chain
/// that ends early or runs on (a damaged region, or a cell being reused) just ends.
fn walk(region: &Region, first: u32, len: usize, mut part: impl FnMut(usize, u64) -> bool) -> bool {
    let section = &region.geometry.chunks;
    let mut chunk = first;
    for link in 0..len.div_ceil(PAYLOAD).min(NAME_CHAIN_MAX) {
        if chunk >= section.units || !region.is_present(section, chunk) {
            return false;
        }
        let at = section.at(chunk);
        for i in 0..PAYLOAD / 8 {
            let offset = link * PAYLOAD + i * 8;
            if offset >= len {
                return true;
            }
            if !part(offset, region.word(at + 16 + i * 8).load(Relaxed)) {
                return false;
            }
        }
        chunk = (region.word(at + 8).load(Relaxed) as u32).wrapping_sub(1);
    }
    true
}

/// Whether the chain from `first` holds exactly `name`. The caller revalidates the cell after.
pub(crate) fn equals(region: &Region, first: u32, name: &[u8]) -> bool {
    walk(region, first, name.len(), |offset, word| {
        let mut padded = [0; 8];
        let end = name.len().min(offset + 8);
        padded[..end - offset].copy_from_slice(&name[offset..end]);
        word == read_word(&padded, 0)
    })
}

/// The name or result of `len` bytes in the chain from `first`. The caller revalidates the cell after.
#[inline]
pub(crate) fn read(region: &Region, first: u32, len: usize) -> Vec<u8> {
    let section = &region.geometry.chunks;
    let len = len.min(PAIR_BYTES_MAX);
    let mut bytes = Vec::with_capacity(len);
    let mut chunk = first;
    // A part at a time, since words added to the end one by one cost as much as they do.
    while bytes.len() < len && chunk < section.units && region.is_present(section, chunk) {
        let at = section.at(chunk);
        let part_len = (len - bytes.len()).min(PAYLOAD);
        let mut part = [0; PAYLOAD];
        for i in 0..part_len.div_ceil(8) {
            let word = region.word(at + 16 + i * 8).load(Relaxed);
            part[i * 8..][..8].copy_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&part[..part_len]);
        chunk = (region.word(at + 8).load(Relaxed) as u32).wrapping_sub(1);
    }
    bytes
}
