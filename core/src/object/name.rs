//! Names of objects, as their cells have them.
//!
//! Owns what the bytes of a name are: what users call it, alone, behind the limiter whose key it is, or as a pair.

use crate::error::Result;
use crate::key;
use crate::region::Region;
use std::sync::Arc;

/// Bytes of a name that fit its cell.
pub(super) const INLINE: usize = 24;
/// Bytes of a name that say which limiter a key's slots are of.
pub(super) const FAMILY: usize = 4;

/// The name of an object, with its hash and words made once.
#[derive(Clone)]
pub struct Name {
    /// The bytes, if they don't fit a cell.
    pub(super) long: Option<Arc<[u8]>>,
    pub(super) len: u16,
    /// How many of the bytes are before what users call it.
    family_len: u8,
    /// What the cell holds of the name: its bytes, or its hash.
    pub(super) words: [u64; 3],
    /// Hash of the bytes; each kind mixes its own from it.
    pub(super) hash: u64,
}

impl Name {
    #[inline(always)]
    pub(crate) fn new(region: &Region, what: &'static str, bytes: &[u8]) -> Result<Self> {
        let long = if bytes.is_empty() || bytes.len() > INLINE {
            Some(Self::long(what, bytes)?)
        } else {
            None
        };
        Ok(Self::of(region, bytes, long))
    }

    #[inline(always)]
    fn of(region: &Region, bytes: &[u8], long: Option<Arc<[u8]>>) -> Self {
        let hash = region.hasher.hash(bytes);
        let words = if long.is_some() {
            [hash, 0, 0]
        } else {
            key::words(bytes)
        };
        Self {
            long,
            len: bytes.len() as u16,
            family_len: 0,
            words,
            hash,
        }
    }

    /// The name of what one key of a limiter has, for a key within its bounds.
    pub(crate) fn of_family(region: &Region, family: u32, key: &[u8]) -> Self {
        let family = family.to_le_bytes();
        let len = FAMILY + key.len();
        let name = if len > INLINE {
            let bytes: Arc<[u8]> = family.iter().chain(key).copied().collect();
            Self::of(region, &bytes, Some(Arc::clone(&bytes)))
        } else {
            let mut bytes = [0; INLINE];
            bytes[..FAMILY].copy_from_slice(&family);
            bytes[FAMILY..len].copy_from_slice(key);
            Self::of(region, &bytes[..len], None)
        };
        Self {
            family_len: FAMILY as u8,
            ..name
        }
    }

    /// The name of an object that belongs to a pair of names, both within their bounds: the length of the
    /// first in two bytes, then both.
    pub(crate) fn pair(region: &Region, first: &[u8], second: &[u8]) -> Self {
        let len = (first.len() as u16).to_le_bytes();
        let bytes = [&len, first, second].concat();
        let long = (bytes.len() > INLINE).then(|| bytes.as_slice().into());
        Self::of(region, &bytes, long)
    }

    #[cold]
    fn long(what: &'static str, bytes: &[u8]) -> Result<Arc<[u8]>> {
        key::check_name(what, bytes)?;
        Ok(bytes.into())
    }

    /// Whether the name is in chunks.
    pub(crate) fn is_long(&self) -> bool {
        self.long.is_some()
    }

    /// The bytes of the name; of a limiter's key those of the key.
    pub fn to_vec(&self) -> Vec<u8> {
        let family = usize::from(self.family_len);
        if let Some(bytes) = &self.long {
            return bytes[family..].to_vec();
        }
        let mut bytes: Vec<u8> = self
            .words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        bytes.truncate(self.len.into());
        bytes.drain(..family);
        bytes
    }

    /// The hash of the name as it is kept, of this region: names that differ in it differ.
    #[inline(always)]
    pub fn raw_hash(&self) -> u64 {
        self.hash
    }
}

/// The two names of which [`Name::pair`] made `bytes`; `None` for what it can't have made.
pub(crate) fn parts_of_pair(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, names) = bytes.split_first_chunk()?;
    let parts = names.split_at_checked(u16::from_le_bytes(*len).into())?;
    let is_name = |name| key::check_name("name", name).is_ok();
    (is_name(parts.0) && is_name(parts.1)).then_some(parts)
}
