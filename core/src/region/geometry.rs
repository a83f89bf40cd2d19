//! Where everything in a region lies: a pure function of its caps.
//!
//! Owns the caps with their bounds, and the sizes and places of all sections. Never touches memory.

use crate::error::{Error, Result};

/// Caps of a region, fixed when it is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Locks, semaphores, fences, counters, limiter names, overrides, keys of concurrency limiters and onces
    /// together: 1 to 2^26; 65,536 by default.
    pub objects: u32,
    /// Keys of all limiters together: 1 to 2^28; 262,144 by default.
    pub limiter_keys: u32,
    /// Keys of all joint limiters together: 1 to 2^26; 65,536 by default.
    pub joint_keys: u32,
    /// Sessions (open spaces) at one time: 1 to 4,095; 1,024 by default.
    pub sessions: u32,
    /// Waits at one time: 1 to 65,536; 4,096 by default.
    pub waiters: u32,
    /// Shared holds and holds of semaphores at one time: 1 to 65,536; 8,192 by default.
    pub permits: u32,
    /// Chunks of 48 bytes for names longer than 24 bytes, keys of limiters longer than 16, and results: 1 to 2^28;
    /// 262,144 by default.
    pub key_chunks: u32,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            objects: 65_536,
            limiter_keys: 262_144,
            joint_keys: 65_536,
            sessions: 1_024,
            waiters: 4_096,
            permits: 8_192,
            key_chunks: 262_144,
        }
    }
}

/// How many caps there are.
const CAPS: usize = 7;
/// Highest value of each cap, by the width of the fields that hold indices.
const CAP_BOUNDS: [(&str, u32, u32); CAPS] = [
    ("objects cap", 1, 1 << 26),
    ("limiter keys cap", 1, 1 << 28),
    // The last line that a session field can name stands for no session.
    ("sessions cap", 1, SESSIONS_MAX - 1),
    ("waiters cap", 1, 1 << 16),
    ("key chunks cap", 1, 1 << 28),
    ("permits cap", 1, 1 << 16),
    ("joint keys cap", 1, 1 << 26),
];

/// Sessions that a session field can name.
pub(crate) const SESSIONS_MAX: u32 = 4_096;
/// Limit definitions that a limit field can name; also the number of slots in a region.
pub(crate) const LIMITS: u32 = if cfg!(loom) { 4 } else { 1_024 };
pub(crate) const LIMIT_BYTES: usize = 128;
/// Calls of several limits at once that can be under way at one time, and what each takes: a line and eight entries.
pub(crate) const CHARGES: u32 = if cfg!(loom) { 2 } else { 512 };
pub(crate) const CHARGE_BYTES: usize = LINE + 8 * 40;
/// Definitions of limits declared together.
pub(crate) const JOINTS: u32 = if cfg!(loom) { 2 } else { 256 };
pub(crate) const JOINT_BYTES: usize = 512;

impl Caps {
    pub(super) fn words(self) -> [u64; CAPS] {
        [
            self.objects,
            self.limiter_keys,
            self.sessions,
            self.waiters,
            self.key_chunks,
            self.permits,
            self.joint_keys,
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

/// Cells of one block. Models use small blocks to keep their state spaces small.
pub(crate) const CELLS_PER_BLOCK: u32 = if cfg!(loom) { 2 } else { 8 };
pub(super) const LINE: usize = 64;
const PAGE: usize = 4096;
/// Blocks (or groups of chunks) that are allocated at once; keeps every extent whole pages long.
const BLOCKS_PER_EXTENT: u32 = 1 << BLOCKS_SHIFT;
const BLOCKS_SHIFT: u32 = 7;
const CHUNKS_PER_EXTENT: u32 = 1 << CHUNKS_SHIFT;
const CHUNKS_SHIFT: u32 = 10;
pub(super) const PARTITIONS_MAX: u32 = 64;
/// Records in the ring of forced releases.
pub(crate) const BREAKS: u32 = 64;
pub(crate) const BREAK_BYTES: usize = 128;

/// One growing section: where its units lie and which bit says that their pages are there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    pub(crate) offset: usize,
    pub(crate) units: u32,
    unit_bytes: usize,
    /// Units of an extent, as a power of two.
    pub(super) extent_shift: u32,
    pub(super) first_extent: u32,
}

impl Section {
    #[inline(always)]
    pub(crate) fn at(&self, unit: u32) -> usize {
        self.offset + unit as usize * self.unit_bytes
    }

    /// The unit in which a byte lies.
    pub(super) fn unit_of(&self, offset: usize) -> Option<u32> {
        let unit = offset.checked_sub(self.offset)? / self.unit_bytes;
        (unit < self.units as usize).then_some(unit as u32)
    }

    /// A unit's bytes over the `parts` that share it.
    pub(crate) fn bytes_per(&self, parts: u32) -> u64 {
        self.unit_bytes as u64 / u64::from(parts)
    }

    pub(super) fn extents(&self) -> u32 {
        self.units.div_ceil(1 << self.extent_shift)
    }

    pub(super) fn extent_bytes(&self) -> usize {
        self.unit_bytes << self.extent_shift
    }
}

/// Where everything lies; a pure function of the caps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    pub(crate) caps: Caps,
    pub(crate) partitions: u32,
    pub(super) floors: usize,
    pub(super) extents: usize,
    pub(super) coarse: usize,
    pub(super) breaks: usize,
    pub(super) sessions: usize,
    pub(super) waiter_words: usize,
    pub(super) waiter_records: usize,
    pub(super) permits: usize,
    pub(super) limits: usize,
    pub(super) charges: usize,
    pub(super) joints: usize,
    /// Bytes that are allocated at creation.
    pub(super) fixed: usize,
    pub(crate) objects: Section,
    pub(crate) limiter_keys: Section,
    pub(crate) joint_keys: Section,
    pub(crate) chunks: Section,
    pub(super) len: usize,
}

/// Bytes of a block of the objects table, of the limiter keys table and of the joint keys table.
const OBJECT_BLOCK: usize = LINE + 8 * 64;
const LIMITER_BLOCK: usize = LINE + 8 * 32;
const JOINT_BLOCK: usize = LINE + 8 * 128;

impl Geometry {
    pub(crate) fn new(caps: Caps) -> Self {
        // Objects are a line each and hot ones are locks, and joint keys are two lines: half full at the cap
        // keeps the first cell looked at the right one. Limiter keys are many, two to a line: 65 % full keeps them
        // small, and four in five on the first line looked at.
        let objects = caps.objects.div_ceil(CELLS_PER_BLOCK / 2).max(2);
        let limiter_keys = (u64::from(caps.limiter_keys) * 100)
            .div_ceil(65 * u64::from(CELLS_PER_BLOCK))
            .max(2) as u32;
        let joint_keys = caps.joint_keys.div_ceil(CELLS_PER_BLOCK / 2).max(2);
        let mut partitions = PARTITIONS_MAX;
        while partitions > 1 && objects / partitions < 8 {
            partitions /= 2;
        }
        // Whole partitions, so that a partition's blocks are contiguous.
        let objects = objects.next_multiple_of(partitions);
        let limiter_keys = limiter_keys.next_multiple_of(partitions);
        let joint_keys = joint_keys.next_multiple_of(partitions);

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
        let joint_extents = extent_count(joint_keys, BLOCKS_PER_EXTENT);
        let chunk_extents = extent_count(caps.key_chunks, CHUNKS_PER_EXTENT);
        let all_extents = object_extents + limiter_extents + joint_extents + chunk_extents;
        let extents = place((all_extents as usize).div_ceil(64) * 8);
        let coarse = place((PARTITIONS_MAX as usize + 1) * LINE);
        let breaks = place(BREAKS as usize * BREAK_BYTES);
        let sessions = place(caps.sessions as usize * LINE);
        let waiter_words = place(caps.waiters as usize * 8);
        let waiter_records = place(caps.waiters as usize * LINE);
        let permits = place(caps.permits as usize * LINE);
        let limits = place(LIMITS as usize * LIMIT_BYTES);
        let charges = place(CHARGES as usize * CHARGE_BYTES);
        let joints = place(JOINTS as usize * JOINT_BYTES);
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
        let joint_keys = section(
            end_of(limiter_keys),
            joint_keys,
            JOINT_BLOCK,
            BLOCKS_SHIFT,
            object_extents + limiter_extents,
        );
        let chunks = section(
            end_of(joint_keys),
            caps.key_chunks,
            LINE,
            CHUNKS_SHIFT,
            object_extents + limiter_extents + joint_extents,
        );
        Self {
            caps,
            partitions,
            floors,
            extents,
            coarse,
            breaks,
            sessions,
            waiter_words,
            waiter_records,
            permits,
            limits,
            charges,
            joints,
            fixed,
            objects,
            limiter_keys,
            joint_keys,
            chunks,
            len: end_of(chunks),
        }
    }
}
