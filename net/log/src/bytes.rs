//! Numbers as bytes, and their checksums. All numbers on disk are little-endian.

use rapidhash::v3::{DEFAULT_RAPID_SECRETS, rapidhash_v3_inline};

/// What is written and read at once: a page of the system's cache, a block of the file system, a sector of the largest
/// size that disks have.
pub(crate) const UNIT: usize = 4096;

/// The checksum of everything stored: rapidhash v3 with its default seed, frozen with the layout.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    // Template arguments: the full finish, no compact code, guarded against a zero product.
    rapidhash_v3_inline::<true, false, true>(bytes, &DEFAULT_RAPID_SECRETS)
}

/// Puts numbers one after the other.
pub(crate) struct Writer<'a> {
    into: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(into: &'a mut [u8]) -> Writer<'a> {
        Writer { into, at: 0 }
    }

    pub(crate) fn put<const N: usize>(&mut self, bytes: [u8; N]) -> &mut Self {
        self.into[self.at..self.at + N].copy_from_slice(&bytes);
        self.at += N;
        self
    }
}

/// Takes numbers one after the other.
pub(crate) struct Reader<'a> {
    from: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(from: &'a [u8]) -> Reader<'a> {
        Reader { from, at: 0 }
    }

    pub(crate) fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.from[self.at..self.at + N]);
        self.at += N;
        bytes
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_frozen() {
        let bytes: Vec<u8> = (0..=255).collect();
        let found = [0, 1, 64, 96, 256].map(|length| checksum(&bytes[..length]));
        assert_eq!(
            found,
            [
                2_799_093_577_786_027_767,
                9_081_421_379_713_223_754,
                9_720_149_359_451_194_598,
                8_450_438_861_540_247_573,
                12_509_739_328_383_170_563,
            ]
        );
    }
}
