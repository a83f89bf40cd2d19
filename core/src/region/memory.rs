//! The flat area behind a region: who may touch which byte, and how.
//!
//! Region bytes are reached only through the three accessors here, each an atomic word. An offset
//! that lies outside (only a damaged or hostile region can produce one) lands on the *sink* line of
//! the header, so that it can falsify state but never leave the area.

use crate::sync::{Half, Wide, Word};

/// Byte offset of the sink line, the last line of the header page.
pub(crate) const SINK: usize = 4096 - 64;

#[cfg(not(loom))]
pub(crate) use mapped::{Line, Memory};
#[cfg(loom)]
pub(crate) use modelled::{Line, Memory};

#[cfg(not(loom))]
mod mapped {
    use super::{Half, SINK, Wide, Word};
    use core::marker::PhantomData;
    use memmap2::{MmapOptions, MmapRaw};
    use std::io;

    /// A mapping of `len` bytes, anonymous or of a file.
    pub(crate) struct Memory {
        map: MmapRaw,
        base: *const u8,
        /// Highest offset at which a whole 16-byte word still fits.
        last: usize,
        /// Highest offset at which 64 bytes still fit.
        last_line: usize,
    }

    // SAFETY: the mapping is shared memory; it is reached only through atomic words.
    unsafe impl Send for Memory {}
    // SAFETY: as above.
    unsafe impl Sync for Memory {}

    /// Up to 64 bytes of the area from one offset on, checked once: the words of a cell.
    #[derive(Clone, Copy)]
    pub(crate) struct Line<'m> {
        base: *const u8,
        area: PhantomData<&'m Memory>,
    }

    impl<'m> Line<'m> {
        /// The 128-bit word at its start.
        #[inline(always)]
        pub(crate) fn state(self) -> &'m Wide {
            // SAFETY: `Memory::line` made `base` 16-byte aligned and the 64 bytes from it part of the
            // mapping; `Wide` is a bare atomic, valid for any bytes.
            #[expect(clippy::cast_ptr_alignment, reason = "aligned by `Memory::line`")]
            unsafe {
                &*self.base.cast::<Wide>()
            }
        }

        /// The 64-bit word at `offset`, a multiple of 8 below 64.
        #[inline(always)]
        pub(crate) fn word(self, offset: usize) -> &'m Word {
            debug_assert!(offset < 64 && offset.is_multiple_of(8));
            // SAFETY: as in `state`; the offset, brought into range, stays within the 64 bytes.
            #[expect(clippy::cast_ptr_alignment, reason = "aligned by `Memory::line`")]
            unsafe {
                &*self.base.add(offset & 0b11_1000).cast::<Word>()
            }
        }
    }

    impl Memory {
        pub(crate) fn anonymous(len: usize) -> io::Result<Self> {
            let map = MmapOptions::new().len(len).no_reserve_swap().map_anon()?;
            Ok(Self::new(MmapRaw::from(map), len))
        }

        /// Maps `len` bytes of `file`, shared and writable.
        #[cfg(target_os = "linux")]
        pub(crate) fn of_file(file: &std::fs::File, len: usize) -> io::Result<Self> {
            let map = MmapOptions::new().len(len).map_raw(file)?;
            Ok(Self::new(map, len))
        }

        fn new(map: MmapRaw, len: usize) -> Self {
            let base = map.as_ptr();
            assert!(
                len >= 4096 && (base as usize).is_multiple_of(4096),
                "a region is whole pages"
            );
            Self {
                map,
                base,
                last: len - 16,
                last_line: len - 64,
            }
        }

        pub(crate) fn len(&self) -> usize {
            self.map.len()
        }

        /// The address of `offset`, rounded down to the alignment of `T`, or the sink's.
        #[inline(always)]
        fn at<T>(&self, offset: usize) -> *const T {
            let offset = if offset <= self.last {
                offset & !(align_of::<T>() - 1)
            } else {
                SINK
            };
            // SAFETY: `offset` is at most `last` or is the sink, so a 16-byte word there lies
            // inside the mapping, which lives as long as `self`.
            unsafe { self.base.add(offset).cast() }
        }

        /// The 64 bytes from `offset` on, or the sink line.
        #[inline(always)]
        pub(crate) fn line(&self, offset: usize) -> Line<'_> {
            let offset = if offset <= self.last_line {
                offset & !15
            } else {
                SINK
            };
            Line {
                // SAFETY: `offset` is at most `last_line` or is the sink's, so 64 bytes from it lie
                // inside the mapping, which the line borrows.
                base: unsafe { self.base.add(offset) },
                area: PhantomData,
            }
        }

        #[inline(always)]
        pub(crate) fn word(&self, offset: usize) -> &Word {
            // SAFETY: in bounds and aligned by `at`; `Word` is a bare atomic, valid for any bytes,
            // and nothing reaches the same bytes as a plain value.
            unsafe { &*self.at(offset) }
        }

        /// The byte offset of `line`.
        #[inline(always)]
        pub(crate) fn offset_of(&self, line: Line<'_>) -> usize {
            (line.base as usize).wrapping_sub(self.base as usize)
        }

        #[inline(always)]
        pub(crate) fn half(&self, offset: usize) -> &Half {
            // SAFETY: as in `word`.
            unsafe { &*self.at(offset) }
        }

        #[inline(always)]
        pub(crate) fn wide(&self, offset: usize) -> &Wide {
            // SAFETY: as in `word`.
            unsafe { &*self.at(offset) }
        }
    }
}

/// Under loom the area is three lists of modelled words. A model's region is a few kilobytes.
#[cfg(loom)]
mod modelled {
    use super::{Half, SINK, Wide, Word};
    use std::cell::UnsafeCell;
    use std::collections::BTreeMap;
    use std::io;
    use std::sync::Mutex;

    pub(crate) struct Memory {
        len: usize,
        words: Lazy<Word>,
        halves: Lazy<Half>,
        wides: Lazy<Wide>,
    }

    /// Words made at first touch: loom keeps history for each, so untouched ones must not exist.
    struct Lazy<T>(Mutex<UnsafeCell<BTreeMap<usize, Box<T>>>>);

    impl<T> Lazy<T> {
        fn new() -> Self {
            Self(Mutex::new(UnsafeCell::new(BTreeMap::new())))
        }

        fn get(&self, offset: usize, make: impl FnOnce() -> T) -> &T {
            let map = self.0.lock().unwrap();
            // SAFETY: the map is only reached under the mutex; boxes never move or go away while
            // `self` lives, so a reference to one outlives the guard.
            unsafe {
                let words = &mut *map.get();
                let word: *const T =
                    &raw const **words.entry(offset).or_insert_with(|| Box::new(make()));
                &*word
            }
        }
    }

    #[derive(Clone, Copy)]
    pub(crate) struct Line<'m> {
        memory: &'m Memory,
        offset: usize,
    }

    impl<'m> Line<'m> {
        pub(crate) fn state(self) -> &'m Wide {
            self.memory.wide(self.offset)
        }

        pub(crate) fn word(self, offset: usize) -> &'m Word {
            self.memory.word(self.offset + offset)
        }
    }

    impl Memory {
        pub(crate) fn anonymous(len: usize) -> io::Result<Self> {
            Ok(Self {
                len,
                words: Lazy::new(),
                halves: Lazy::new(),
                wides: Lazy::new(),
            })
        }

        pub(crate) fn len(&self) -> usize {
            self.len
        }

        pub(crate) fn line(&self, offset: usize) -> Line<'_> {
            Line {
                memory: self,
                offset,
            }
        }

        pub(crate) fn offset_of(&self, line: Line<'_>) -> usize {
            debug_assert!(std::ptr::eq(self, line.memory));
            line.offset
        }

        fn at(&self, offset: usize, align: usize) -> usize {
            if offset + 16 <= self.len {
                offset & !(align - 1)
            } else {
                SINK
            }
        }

        pub(crate) fn word(&self, offset: usize) -> &Word {
            self.words.get(self.at(offset, 8), || Word::new(0))
        }

        pub(crate) fn half(&self, offset: usize) -> &Half {
            self.halves.get(self.at(offset, 4), || Half::new(0))
        }

        pub(crate) fn wide(&self, offset: usize) -> &Wide {
            self.wides.get(self.at(offset, 16), || Wide::new(0))
        }
    }
}
