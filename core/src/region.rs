//! A region: the flat, pointer-free area in which every object of a space lives.
//!
//! ```text
//! offset 0      header page      magic, version, caps, boot id, hash seed, clock base, counters; sink line
//!               floors           one word per partition: tokens of new locks start above it
//!               extents          one bit per extent: set once its pages are allocated
//!               breaks           ring of the last forced releases, for audit
//!               sessions         one line per session
//!               waiter words     one word per waiter, scanned when a lock is handed on
//!               waiter records   one line per waiter: ticket, futex, deadline
//!               limits           two lines per limit definition
//! growing       object blocks    locks, fences, limiter names: a header line and 8 cells of 64 bytes
//!               limiter blocks   limiter keys: a header line and 8 cells of 32 bytes
//!               key chunks       names too long for their cell
//! ```
//!
//! The part above *growing* is allocated when the region is created. The rest is allocated extent by
//! extent, before anything in it is reached, so that a full file system is an error and not a
//! SIGBUS. A file has its final length from the start and never shrinks. In anonymous memory reaching an
//! extent only marks it, which keeps sweeps off untouched pages.
//!
//! Nothing in a region is a pointer. Whoever may write the file can falsify what it says; [`memory`]
//! keeps that from ever becoming an access outside it. One thing cannot be kept off: a writer who takes
//! pages away (truncates the file, or makes holes in it or falsifies which there are while the file
//! system is full) makes the kernel send SIGBUS to those who touch them.

#[cfg(all(not(loom), target_os = "linux"))]
mod boot;
#[cfg(all(not(loom), target_os = "linux"))]
pub mod file;
#[cfg(all(not(loom), not(target_os = "linux")))]
#[path = "region/no_file.rs"]
pub mod file;
pub(crate) mod memory;
#[cfg(loom)]
mod modelled;
#[cfg(all(not(loom), target_os = "linux"))]
mod resize;
#[cfg(all(not(loom), target_os = "linux"))]
mod system;

use crate::error::{Error, Result};
use crate::key::Hasher;
use crate::sync::{Half, Wide, Word};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use memory::{Line, Memory};

/// The region layout that this release reads and writes.
pub const LAYOUT_VERSION: u32 = 1;

/// Cells of one block. Models use small blocks to keep their state spaces small.
pub(crate) const CELLS_PER_BLOCK: u32 = if cfg!(loom) { 2 } else { 8 };
const LINE: usize = 64;
const PAGE: usize = 4096;
/// Blocks (or groups of chunks) that are allocated at once; keeps every extent whole pages long.
const BLOCKS_PER_EXTENT: u32 = 1 << BLOCKS_SHIFT;
const BLOCKS_SHIFT: u32 = 7;
const CHUNKS_PER_EXTENT: u32 = 1 << CHUNKS_SHIFT;
const CHUNKS_SHIFT: u32 = 10;
const PARTITIONS_MAX: u32 = 64;
/// Records in the ring of forced releases.
pub(crate) const BREAKS: u32 = 64;
pub(crate) const BREAK_BYTES: usize = 128;

/// Byte offsets of the header's words.
pub(crate) mod header {
    pub(crate) const MAGIC: usize = 0;
    pub(crate) const VERSION: usize = 8;
    /// Feature bits: low half compatible (ignored when unknown), high half incompatible (refused).
    pub(crate) const FEATURES: usize = 16;
    pub(crate) const CAPS: usize = 24; // 24..64: five words
    pub(crate) const HASH_SEED: usize = 64;
    pub(crate) const HASH_ALGORITHM: usize = 72;
    /// Unix time of region time zero, in nanoseconds.
    pub(crate) const BASE_UNIX: usize = 80;
    /// Checksum over the words above, which never change.
    pub(crate) const CHECKSUM: usize = 88;
    /// Region time zero on the boot clock of boot `BOOT_ID`, in nanoseconds (as two's complement).
    pub(crate) const BASE_BOOT: usize = 128;
    pub(crate) const BOOT_ID: usize = 136; // 136..152
    /// Latest region time that a slow path saw, in nanoseconds; only rises.
    pub(crate) const LATEST: usize = 152;
    /// Next index to try for a new session, waiter and so on: hints that spread reuse.
    pub(crate) const SESSION_HINT: usize = 192;
    pub(crate) const CHUNK_HINT: usize = 208;
    pub(crate) const BREAK_HINT: usize = 216;
    /// Waiter words in use lie below this index.
    pub(crate) const WAITERS_HIGH: usize = 224;
    pub(crate) const LIMITS_HINT: usize = 232;
    /// Latest region time at which a limiter key was reclaimed, in nanoseconds; only rises.
    pub(crate) const RECLAIMED_AT: usize = 240;
    /// Per table: live cells, clock hand of reclaim, earliest time at which a sweep may find something.
    pub(crate) const OBJECTS: usize = 256; // a line of its own
    pub(crate) const LIMITER_KEYS: usize = 320; // likewise
}

/// Caps of a region, fixed when it is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Locks, fences and limiter names together: 1 to 2^26; 65,536 by default.
    pub objects: u32,
    /// Keys of all limiters together: 1 to 2^28; 262,144 by default.
    pub limiter_keys: u32,
    /// Sessions (open spaces) at one time: 1 to 4,095; 1,024 by default.
    pub sessions: u32,
    /// Waits at one time: 1 to 65,536; 4,096 by default.
    pub waiters: u32,
    /// Chunks of 48 bytes for names longer than 24 bytes and limiter keys longer than 16: 1 to 2^28;
    /// 262,144 by default.
    pub key_chunks: u32,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            objects: 65_536,
            limiter_keys: 262_144,
            sessions: 1_024,
            waiters: 4_096,
            key_chunks: 262_144,
        }
    }
}

/// Highest value of each cap, by the width of the fields that hold indices.
const CAP_BOUNDS: [(&str, u32, u32); 5] = [
    ("objects cap", 1, 1 << 26),
    ("limiter keys cap", 1, 1 << 28),
    // The last line that a session field can name stands for no session.
    ("sessions cap", 1, SESSIONS_MAX - 1),
    ("waiters cap", 1, 1 << 16),
    ("key chunks cap", 1, 1 << 28),
];

/// Sessions that a session field can name.
pub(crate) const SESSIONS_MAX: u32 = 4_096;
/// Limit definitions that a limit field can name; also the number of slots in a region.
pub(crate) const LIMITS: u32 = if cfg!(loom) { 4 } else { 1_024 };
pub(crate) const LIMIT_BYTES: usize = 128;

impl Caps {
    fn words(self) -> [u64; 5] {
        [
            self.objects,
            self.limiter_keys,
            self.sessions,
            self.waiters,
            self.key_chunks,
        ]
        .map(u64::from)
    }

    /// Checks every cap against its bounds.
    pub fn check(self) -> Result<()> {
        for (value, (what, min, max)) in self.words().into_iter().zip(CAP_BOUNDS) {
            if !(u64::from(min)..=u64::from(max)).contains(&value) {
                return Err(Error::OutOfRange {
                    what,
                    value,
                    min: min.into(),
                    max: max.into(),
                });
            }
        }
        Ok(())
    }
}

/// One growing section: where its units lie and which bit says that their pages are there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    pub(crate) offset: usize,
    pub(crate) units: u32,
    unit_bytes: usize,
    /// Units of an extent, as a power of two.
    extent_shift: u32,
    first_extent: u32,
}

impl Section {
    #[inline(always)]
    pub(crate) fn at(&self, unit: u32) -> usize {
        self.offset + unit as usize * self.unit_bytes
    }

    /// A unit's bytes over the `parts` that share it.
    pub(crate) fn bytes_per(&self, parts: u32) -> u64 {
        self.unit_bytes as u64 / u64::from(parts)
    }

    fn extents(&self) -> u32 {
        self.units.div_ceil(1 << self.extent_shift)
    }

    fn extent_bytes(&self) -> usize {
        self.unit_bytes << self.extent_shift
    }
}

/// Where everything lies; a pure function of the caps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    pub(crate) caps: Caps,
    pub(crate) partitions: u32,
    floors: usize,
    extents: usize,
    breaks: usize,
    sessions: usize,
    waiter_words: usize,
    waiter_records: usize,
    limits: usize,
    /// Bytes that are allocated at creation.
    fixed: usize,
    pub(crate) objects: Section,
    pub(crate) limiter_keys: Section,
    pub(crate) chunks: Section,
    len: usize,
}

/// Bytes of a block of the objects table and of the limiter keys table.
const OBJECT_BLOCK: usize = LINE + 8 * 64;
const LIMITER_BLOCK: usize = LINE + 8 * 32;

impl Geometry {
    pub(crate) fn new(caps: Caps) -> Self {
        // Objects are a line each and hot ones are locks: half full at the cap keeps the first cell
        // looked at the right one. Limiter keys are many: three quarters full keeps them small.
        let objects = caps.objects.div_ceil(CELLS_PER_BLOCK / 2).max(2);
        let limiter_keys = (u64::from(caps.limiter_keys) * 4)
            .div_ceil(3 * u64::from(CELLS_PER_BLOCK))
            .max(2) as u32;
        let mut partitions = PARTITIONS_MAX;
        while partitions > 1 && objects / partitions < 8 {
            partitions /= 2;
        }
        // Whole partitions, so that a partition's blocks are contiguous.
        let objects = objects.next_multiple_of(partitions);
        let limiter_keys = limiter_keys.next_multiple_of(partitions);

        let mut end = PAGE;
        let mut place = |bytes: usize| {
            let at = end;
            end = (end + bytes).next_multiple_of(LINE);
            at
        };
        let floors = place(PARTITIONS_MAX as usize * 8);
        let extent_count = |units: u32, per: u32| units.div_ceil(per);
        let object_extents = extent_count(objects, BLOCKS_PER_EXTENT);
        let limiter_extents = extent_count(limiter_keys, BLOCKS_PER_EXTENT);
        let chunk_extents = extent_count(caps.key_chunks, CHUNKS_PER_EXTENT);
        let all_extents = object_extents + limiter_extents + chunk_extents;
        let extents = place((all_extents as usize).div_ceil(64) * 8);
        let breaks = place(BREAKS as usize * BREAK_BYTES);
        let sessions = place(caps.sessions as usize * LINE);
        let waiter_words = place(caps.waiters as usize * 8);
        let waiter_records = place(caps.waiters as usize * LINE);
        let limits = place(LIMITS as usize * LIMIT_BYTES);
        let fixed = end.next_multiple_of(PAGE);

        let section = |offset, units, unit_bytes, extent_shift, first_extent| Section {
            offset,
            units,
            unit_bytes,
            extent_shift,
            first_extent,
        };
        let end_of = |s: Section| s.offset + s.extents() as usize * s.extent_bytes();
        let objects = section(fixed, objects, OBJECT_BLOCK, BLOCKS_SHIFT, 0);
        let limiter_keys = section(
            end_of(objects),
            limiter_keys,
            LIMITER_BLOCK,
            BLOCKS_SHIFT,
            object_extents,
        );
        let chunks = section(
            end_of(limiter_keys),
            caps.key_chunks,
            LINE,
            CHUNKS_SHIFT,
            object_extents + limiter_extents,
        );
        Self {
            caps,
            partitions,
            floors,
            extents,
            breaks,
            sessions,
            waiter_words,
            waiter_records,
            limits,
            fixed,
            objects,
            limiter_keys,
            chunks,
            len: end_of(chunks),
        }
    }
}

/// What a new region is born with: everything the engine may not find out by itself.
#[derive(Clone, Copy, Debug)]
pub struct Birth {
    /// Seed of the keyed hash: random, secret from those who choose names.
    pub hash_seed: u64,
    /// Unix time now, in nanoseconds; becomes region time zero and, as seconds, the token floor.
    pub unix_ns: u64,
    /// Boot clock now, in nanoseconds.
    pub boot_ns: u64,
    /// The kernel's boot id.
    pub boot_id: [u64; 2],
    /// Token floor if higher than the one from `unix_ns`; of a region that this one replaces.
    pub floor: u64,
}

/// The token floor of a region that is made at `unix_ns`.
fn floor_at(unix_ns: u64) -> u64 {
    (unix_ns / 1_000_000_000) << 16
}

/// Hash over a header's first bytes, up to the checksum itself.
fn checksum(bytes: &[u8; header::CHECKSUM]) -> u64 {
    Hasher::new(0).hash(bytes)
}

#[cfg(not(loom))]
fn check_processor() -> Result<()> {
    if crate::sync::wide_is_supported() {
        Ok(())
    } else {
        Err(Error::Unsupported {
            what: "128-bit atomic instructions of the processor",
        })
    }
}

const MAGIC: u64 = u64::from_le_bytes(*b"SPRAG\0\r\n");
const HASH_RAPID_V3: u64 = 1;

/// The flat area with its geometry and its constants read once.
pub struct Region {
    memory: Memory,
    pub(crate) geometry: Geometry,
    pub(crate) hasher: Hasher,
    hash_seed: u64,
    base_unix_ns: u64,
    /// The file behind the memory, for growth and for finding out that it was replaced.
    #[cfg(not(loom))]
    file: Option<file::Backing>,
}

impl Region {
    /// A region in anonymous memory, for the threads of this process.
    pub fn anonymous(caps: Caps, birth: Birth) -> Result<Self> {
        caps.check()?;
        #[cfg(not(loom))]
        check_processor()?;
        let geometry = Geometry::new(caps);
        let memory = Memory::anonymous(geometry.len).map_err(|source| Error::NoSpace { source })?;
        let region = Self {
            memory,
            geometry,
            hasher: Hasher::new(birth.hash_seed),
            hash_seed: birth.hash_seed,
            base_unix_ns: birth.unix_ns,
            #[cfg(not(loom))]
            file: None,
        };
        region.initialise(birth);
        Ok(region)
    }

    /// A region over a mapped file, whose `header` was checked or, in a new file, is to be written.
    #[cfg(all(not(loom), target_os = "linux"))]
    fn of_file(memory: Memory, header: &file::Header, backing: file::Backing) -> Self {
        Self {
            memory,
            geometry: Geometry::new(header.caps),
            hasher: Hasher::new(header.hash_seed),
            hash_seed: header.hash_seed,
            base_unix_ns: header.base_unix_ns,
            file: Some(backing),
        }
    }

    /// Says that the pages of everything are there.
    #[cfg(all(not(loom), target_os = "linux"))]
    fn mark_all_allocated(&self) {
        let chunks = &self.geometry.chunks;
        let extents = (chunks.first_extent + chunks.extents()) as usize;
        for word in 0..extents.div_ceil(64) {
            self.word(self.geometry.extents + word * 8)
                .store(u64::MAX, Relaxed);
        }
    }

    /// The file that it lives in; `None` for anonymous memory.
    #[cfg(not(loom))]
    pub fn path(&self) -> Option<&std::path::Path> {
        self.file.as_ref().map(file::Backing::path)
    }

    /// Another open file description of the region's file, which is not mapped.
    #[cfg(not(loom))]
    pub fn reopen(&self) -> Result<std::fs::File> {
        match &self.file {
            Some(file) => file.reopen(),
            None => Err(Error::Unsupported {
                what: "sharing anonymous memory with other processes",
            }),
        }
    }

    /// Writes the header and the floors of a region nobody else can see yet.
    fn initialise(&self, birth: Birth) {
        let put = |offset, value| self.word(offset).store(value, Relaxed);
        put(header::MAGIC, MAGIC);
        put(header::VERSION, u64::from(LAYOUT_VERSION));
        put(header::FEATURES, 0);
        for (i, cap) in self.geometry.caps.words().into_iter().enumerate() {
            put(header::CAPS + i * 8, cap);
        }
        put(header::HASH_SEED, birth.hash_seed);
        put(header::HASH_ALGORITHM, HASH_RAPID_V3);
        put(header::BASE_UNIX, birth.unix_ns);
        put(header::CHECKSUM, self.checksum());
        put(header::BASE_BOOT, birth.boot_ns);
        put(header::BOOT_ID, birth.boot_id[0]);
        put(header::BOOT_ID + 8, birth.boot_id[1]);
        let floor = birth.floor.max(floor_at(birth.unix_ns));
        for partition in 0..self.geometry.partitions {
            self.floor(partition).store(floor, Relaxed);
        }
    }

    /// Hash over the words that never change after creation.
    fn checksum(&self) -> u64 {
        let mut bytes = [0; header::CHECKSUM];
        for at in (0..header::CHECKSUM).step_by(8) {
            bytes[at..at + 8].copy_from_slice(&self.word(at).load(Relaxed).to_le_bytes());
        }
        checksum(&bytes)
    }

    pub(crate) fn hash_seed(&self) -> u64 {
        self.hash_seed
    }

    /// Unix time of region time zero, in nanoseconds.
    #[inline(always)]
    pub fn base_unix_ns(&self) -> u64 {
        self.base_unix_ns
    }

    /// Region time zero on this boot's clock, in nanoseconds: region time is boot time minus this.
    pub fn base_boot_ns(&self) -> i64 {
        self.word(header::BASE_BOOT).load(Acquire).cast_signed()
    }

    /// The caps it was created with.
    pub fn caps(&self) -> Caps {
        self.geometry.caps
    }

    /// How many partitions its keys fall into; a power of two, at most 64.
    pub fn partitions(&self) -> u32 {
        self.geometry.partitions
    }

    /// Bytes allocated so far, of the [`len_bytes`](Self::len_bytes) that it may grow to. Looks at a bit
    /// for each extent.
    pub fn allocated_bytes(&self) -> u64 {
        let g = &self.geometry;
        let mut bytes = g.fixed;
        for section in [g.objects, g.limiter_keys, g.chunks] {
            for extent in 0..section.extents() {
                let bit = section.first_extent + extent;
                if self.extent_word(bit).load(Relaxed) & (1 << (bit % 64)) != 0 {
                    bytes += section.extent_bytes();
                }
            }
        }
        bytes as u64
    }

    /// Bytes of address space, and of file length.
    pub fn len_bytes(&self) -> u64 {
        self.memory.len() as u64
    }

    /// Whether other processes can share it.
    pub fn is_shared(&self) -> bool {
        #[cfg(not(loom))]
        {
            self.file.is_some()
        }
        #[cfg(loom)]
        false
    }

    /// Notes a region time that a slow path saw, in nanoseconds; the latest is kept.
    pub(crate) fn note_time(&self, now_ns: u64) {
        // Relaxed: a high-water mark that nothing else depends on.
        self.word(header::LATEST).fetch_max(now_ns, Relaxed);
    }

    #[inline(always)]
    pub(crate) fn line(&self, offset: usize) -> Line<'_> {
        self.memory.line(offset)
    }

    #[inline(always)]
    pub(crate) fn word(&self, offset: usize) -> &Word {
        self.memory.word(offset)
    }

    #[inline(always)]
    pub(crate) fn half(&self, offset: usize) -> &Half {
        self.memory.half(offset)
    }

    #[inline(always)]
    pub(crate) fn wide(&self, offset: usize) -> &Wide {
        self.memory.wide(offset)
    }

    /// The word below which no new token of `partition` may start.
    pub(crate) fn floor(&self, partition: u32) -> &Word {
        self.word(self.geometry.floors + partition as usize * 8)
    }

    pub(crate) fn session_at(&self, index: u32) -> usize {
        self.geometry.sessions + index as usize * LINE
    }

    pub(crate) fn waiter_word(&self, index: u32) -> &Word {
        self.word(self.geometry.waiter_words + index as usize * 8)
    }

    pub(crate) fn waiter_at(&self, index: u32) -> usize {
        self.geometry.waiter_records + index as usize * LINE
    }

    pub(crate) fn limit_at(&self, index: u32) -> usize {
        self.geometry.limits + index as usize * LIMIT_BYTES
    }

    pub(crate) fn break_at(&self, index: u32) -> usize {
        self.geometry.breaks + (index % BREAKS) as usize * BREAK_BYTES
    }

    fn extent_word(&self, bit: u32) -> &Word {
        self.word(self.geometry.extents + (bit / 64) as usize * 8)
    }

    /// Whether the pages of `unit` are allocated, so that it may be read.
    #[inline(always)]
    pub(crate) fn is_present(&self, section: &Section, unit: u32) -> bool {
        if cfg!(loom) {
            return true;
        }
        let bit = section.first_extent + (unit >> section.extent_shift);
        // Relaxed: allocation is a fact of the file, not of the words in it, which start as zero.
        self.extent_word(bit).load(Relaxed) & (1 << (bit % 64)) != 0
    }

    /// Allocates the pages of `unit` if nobody has yet; whether it had to.
    pub(crate) fn reach(&self, section: &Section, unit: u32) -> Result<bool> {
        if self.is_present(section, unit) {
            return Ok(false);
        }
        let extent = unit >> section.extent_shift;
        #[cfg(not(loom))]
        if let Some(file) = &self.file {
            let offset = section.offset + extent as usize * section.extent_bytes();
            file.allocate(offset as u64, section.extent_bytes() as u64)?;
        }
        let bit = section.first_extent + extent;
        // Set after the pages are there; a caller that dies in between leaves pages that the next
        // one allocates again, which changes nothing.
        self.extent_word(bit).fetch_or(1 << (bit % 64), AcqRel);
        Ok(true)
    }

    /// Whether the pages of every unit are allocated.
    pub(crate) fn is_complete(&self, section: &Section) -> bool {
        (0..section.extents())
            .all(|extent| self.is_present(section, extent << section.extent_shift))
    }

    /// Fails if the file at the region's path is no longer this one. Costs a system call or two.
    pub fn check_in_place(&self) -> Result<()> {
        #[cfg(not(loom))]
        if let Some(file) = &self.file {
            return file.check_in_place();
        }
        Ok(())
    }
}
