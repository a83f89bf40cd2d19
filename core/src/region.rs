//! A region: the flat, pointer-free area in which every object of a space lives.
//!
//! ```text
//! offset 0      header page      magic, version, caps, boot id, hash seed, clock base, counters; sink line
//!               floors           one word per partition: tokens of new locks and onces start above it
//!               extents          one bit per extent: set once its pages are allocated
//!               coarse locks     one line per partition and one for all: gates of the locks beneath
//!               breaks           ring of the last forced releases, for audit
//!               sessions         one line per session
//!               waiter words     one word per waiter, scanned when a lock is handed on
//!               waiter records   one line per waiter: ticket, futex, deadline
//!               permits          one line per shared hold: session, lease, token
//!               limits           two lines per limit definition
//!               charges          six lines per call of several limits at once
//!               joint limits     eight lines per definition of limits declared together
//! growing       object blocks    all that has a name, and keys of concurrency limiters: a header line and 8 cells
//!                                of 64 bytes
//!               limiter blocks   limiter keys: a header line and 8 cells of 32 bytes
//!               joint blocks     keys of limits declared together: a header line and 8 cells of 128 bytes
//!               key chunks       names too long for their cell, and results of onces
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
mod geometry;
pub(crate) mod memory;
#[cfg(loom)]
mod modelled;
#[cfg(all(not(loom), target_os = "linux"))]
mod resize;
#[cfg(all(not(loom), target_os = "linux"))]
mod system;

pub use geometry::Caps;
pub(crate) use geometry::{
    BREAK_BYTES, BREAKS, CELLS_PER_BLOCK, CHARGE_BYTES, CHARGES, Geometry, JOINT_BYTES, JOINTS,
    LIMIT_BYTES, LIMITS, SESSIONS_MAX, Section,
};

use crate::error::{Error, Result};
use crate::key::{self, Hasher};
use crate::limit::Moment;
use crate::sync::{Half, Wide, Word};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use geometry::LINE;
use memory::{Line, Memory};

/// The region layout that this release reads and writes.
pub const LAYOUT_VERSION: u32 = 3;

/// Byte offsets of the header's words.
pub(crate) mod header {
    pub(crate) const MAGIC: usize = 0;
    pub(crate) const VERSION: usize = 8;
    /// Feature bits: low half compatible (ignored when unknown), high half incompatible (refused).
    pub(crate) const FEATURES: usize = 16;
    pub(crate) const CAPS: usize = 24; // 24..80: seven words
    pub(crate) const HASH_SEED: usize = 80;
    pub(crate) const HASH_ALGORITHM: usize = 88;
    /// Unix time of region time zero, in nanoseconds.
    pub(crate) const BASE_UNIX: usize = 96;
    /// Checksum over the words above, which never change.
    pub(crate) const CHECKSUM: usize = 104;
    /// Region time zero on the boot clock of boot `BOOT_ID`, in nanoseconds (as two's complement).
    pub(crate) const BASE_BOOT: usize = 128;
    pub(crate) const BOOT_ID: usize = 136; // 136..152
    /// Latest region time that a slow path saw, in nanoseconds; only rises.
    pub(crate) const LATEST: usize = 152;
    /// Limit slots that were ever of overrides lie below this index; 0 while no limiter had one.
    pub(crate) const OVERRIDES: usize = 160;
    /// Index to begin at for a new session, chunk, break or limit: hints that spread reuse.
    pub(crate) const SESSION_HINT: usize = 192;
    /// Permits in use lie below this index.
    pub(crate) const PERMITS_HIGH: usize = 200;
    pub(crate) const CHUNK_HINT: usize = 208;
    pub(crate) const BREAK_HINT: usize = 216;
    /// Waiter words in use lie below this index.
    pub(crate) const WAITERS_HIGH: usize = 224;
    pub(crate) const LIMITS_HINT: usize = 232;
    /// Latest region time at which a key of a limiter was reclaimed, in nanoseconds; only rises.
    pub(crate) const RECLAIMED_AT: usize = 240;
    /// The last ticket handed out to one who waits.
    pub(crate) const TICKETS: usize = 248;
    /// Per table: live cells, clock hand of reclaim, earliest time at which a sweep may find something,
    /// furthest that any key was ever put from its home.
    pub(crate) const OBJECTS: usize = 256; // a line of its own
    pub(crate) const LIMITER_KEYS: usize = 320; // likewise
    pub(crate) const JOINT_KEYS: usize = 384; // likewise
}

/// What a new region is born with: everything the engine may not find out by itself.
#[derive(Clone, Copy, Debug)]
pub struct Birth {
    /// Seed of the keyed hash: random, secret from those who choose names.
    pub hash_seed: u64,
    /// Unix time now, in nanoseconds; becomes region time zero and, in units of 2^-16 s, the token floor.
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
    ((u128::from(unix_ns) << 16) / 1_000_000_000) as u64
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

    /// The hash function of the keys of a limiter whose name hashes to `family`.
    pub(crate) fn family_hasher(&self, family: u64) -> Hasher {
        Hasher::new(key::mix(family, self.hash_seed))
    }

    /// Unix time of region time zero, in nanoseconds.
    #[inline(always)]
    pub fn base_unix_ns(&self) -> u64 {
        self.base_unix_ns
    }

    /// A time of this region, as limits take it.
    #[inline(always)]
    pub(crate) fn moment(&self, now_ns: u64) -> Moment {
        Moment {
            now_ns,
            base_ns: self.base_unix_ns,
        }
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
        for section in [g.objects, g.limiter_keys, g.joint_keys, g.chunks] {
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

    /// The latest region time that a slow path saw, in nanoseconds.
    pub(crate) fn latest_ns(&self) -> u64 {
        // Relaxed: as above.
        self.word(header::LATEST).load(Relaxed)
    }

    #[inline(always)]
    pub(crate) fn line(&self, offset: usize) -> Line<'_> {
        self.memory.line(offset)
    }

    /// The byte offset of a line of this region.
    #[inline(always)]
    pub(crate) fn offset_of(&self, line: Line<'_>) -> usize {
        self.memory.offset_of(line)
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

    /// Byte offset of the lock of a partition, or of the table after the last one; any number is brought into
    /// range.
    #[inline(always)]
    pub(crate) fn coarse_at(&self, index: u32) -> usize {
        self.geometry.coarse + index.min(geometry::PARTITIONS_MAX) as usize * LINE
    }

    /// Byte offset of a permit's line; any number is brought into range.
    pub(crate) fn permit_at(&self, index: u32) -> usize {
        self.geometry.permits + index.min(self.geometry.caps.permits - 1) as usize * LINE
    }

    pub(crate) fn limit_at(&self, index: u32) -> usize {
        self.geometry.limits + index as usize * LIMIT_BYTES
    }

    /// Byte offset of a charge.
    pub(crate) fn charge_at(&self, index: u32) -> usize {
        self.geometry.charges + (index % CHARGES) as usize * CHARGE_BYTES
    }

    /// Whether a limiter's key or bucket can have its word at `offset`, so that it may be read.
    pub(crate) fn is_limiter_word(&self, offset: usize) -> bool {
        let (limits, keys) = (self.geometry.limits, &self.geometry.limiter_keys);
        (limits..limits + LIMITS as usize * LIMIT_BYTES).contains(&offset)
            || keys
                .unit_of(offset)
                .is_some_and(|block| self.is_present(keys, block))
    }

    /// Byte offset of a definition of limits declared together; any number is brought into range.
    pub(crate) fn joint_at(&self, index: u32) -> usize {
        self.geometry.joints + (index % JOINTS) as usize * JOINT_BYTES
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

    /// Fails unless this process's session of this index is kept alive.
    #[cfg(all(not(loom), target_os = "linux"))]
    pub(crate) fn check_session(&self, index: u16, has_line: bool) -> Result<()> {
        let file = self.file.as_ref();
        file.map_or(Ok(()), |file| file.check_session(index, has_line))
    }
}
