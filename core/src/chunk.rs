//! Names too long for their cell, in chains of 64-byte chunks.
//!
//! | word | field |
//! |---|---|
//! | 0 | *owner*: bits 0..32 cell, bits 32..52 its incarnation, bit 52 limiter key, bit 63 taken |
//! | 8 | index + 1 of the next chunk, 0 at the end |
//! | 16..64 | 48 bytes of the name |
//!
//! A chunk has no free list and is never freed: it is free when its owner's cell is empty or has
//! moved on to another incarnation. So nothing leaks when a process dies between any two steps, and
//! there is nothing to repair. Taking one is a single exchange of the owner word.

use crate::error::{Error, Result};
use crate::key::{NAME_BYTES_MAX, read_word};
use crate::region::{Region, header};
use crate::table::CellOwner;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

const CHUNK_BYTES: usize = 64;
const PAYLOAD: usize = CHUNK_BYTES - 16;
const CHAIN_MAX: usize = NAME_BYTES_MAX.div_ceil(PAYLOAD);
const TAKEN: u64 = 1 << 63;
/// What [`Error::Full`] says there is no room for.
pub(crate) const WHAT: &str = "long name";

/// Chunks that a name of `len` bytes takes.
pub(crate) fn count(len: usize) -> u32 {
    len.div_ceil(PAYLOAD).min(CHAIN_MAX) as u32
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

/// How many chunks are owned by such as `is_its` picks. Reads all of them.
pub(crate) fn count_owned(region: &Region, is_its: impl Fn(CellOwner) -> bool) -> u32 {
    let section = &region.geometry.chunks;
    let is_counted = |chunk: &u32| {
        if !region.is_present(section, *chunk) {
            return false;
        }
        let word = region.word(section.at(*chunk)).load(Acquire);
        word & TAKEN != 0 && is_its(owner_of(word))
    };
    (0..section.units).filter(is_counted).count() as u32
}

fn owner_word(owner: CellOwner) -> u64 {
    TAKEN
        | u64::from(owner.is_limiter_key) << 52
        | u64::from(owner.incarnation) << 32
        | u64::from(owner.cell)
}

fn owner_of(word: u64) -> CellOwner {
    CellOwner {
        is_limiter_key: word >> 52 & 1 != 0,
        cell: word as u32,
        incarnation: (word >> 32 & 0xf_ffff) as u32,
    }
}

/// Writes `name` into chunks owned by `owner`; returns the first one's index.
pub(crate) fn write(
    region: &Region,
    owner: CellOwner,
    name: &[u8],
    is_current: impl Fn(CellOwner) -> bool,
) -> Result<u32> {
    let section = &region.geometry.chunks;
    let hint = region.word(header::CHUNK_HINT);
    let mut next = hint.load(Relaxed) as u32;
    let mut first = None;
    let mut link: Option<u32> = None;
    let mut looked = 0;
    for part in name.chunks(PAYLOAD) {
        let chunk = loop {
            if looked > section.units {
                return Err(Error::Full {
                    what: WHAT,
                    cap: section.units.into(),
                });
            }
            looked += 1;
            // The hint may be anything.
            next = match next.checked_add(1) {
                Some(after) if after < section.units => after,
                _ => 0,
            };
            region.reach(section, next)?;
            let word = region.word(section.at(next));
            // Acquire: pairs with the exchange below, so that the owner's cell is seen no older than it
            // was when the chunk became its own: claimed, and of that incarnation.
            let before = word.load(Acquire);
            let is_free =
                before & TAKEN == 0 || (owner_of(before) != owner && !is_current(owner_of(before)));
            // An incarnation never comes back while its word stands here, so what was free above is
            // still free if the word is unchanged.
            if is_free
                && word
                    .compare_exchange(before, owner_word(owner), AcqRel, Relaxed)
                    .is_ok()
            {
                break next;
            }
        };
        let at = section.at(chunk);
        region.word(at + 8).store(0, Relaxed);
        for (i, bytes) in part.chunks(8).enumerate() {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            region
                .word(at + 16 + i * 8)
                .store(u64::from_le_bytes(padded), Relaxed);
        }
        match link {
            None => first = Some(chunk),
            Some(last) => region
                .word(section.at(last) + 8)
                .store(u64::from(chunk + 1), Relaxed),
        }
        link = Some(chunk);
    }
    hint.store(u64::from(next), Relaxed);
    Ok(first.unwrap_or(0))
}

/// Calls `part` with each word of a name of `len` bytes, in order, while it returns true. A chain
/// that ends early or runs on (a damaged region, or a cell being reused) just ends.
fn walk(region: &Region, first: u32, len: usize, mut part: impl FnMut(usize, u64) -> bool) -> bool {
    let section = &region.geometry.chunks;
    let mut chunk = first;
    for link in 0..len.div_ceil(PAYLOAD).min(CHAIN_MAX) {
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

/// The name of `len` bytes in the chain from `first`. The caller revalidates the cell after.
pub(crate) fn read(region: &Region, first: u32, len: usize) -> Vec<u8> {
    let len = len.min(NAME_BYTES_MAX);
    let mut name = Vec::with_capacity(len + 8);
    walk(region, first, len, |_, word| {
        name.extend_from_slice(&word.to_le_bytes());
        true
    });
    name.truncate(len);
    name
}
