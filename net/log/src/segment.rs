//! A segment of the log: a file of fixed length, whose front holds the headers of its records and whose body holds the
//! records, each behind a second copy of its header.
//!
//! ```text
//!   units of 4096 bytes:  | cells of all records, 64 a unit |  batch  |  batch  | ... |  unused  |
//!                         |<- an eighth, at least one ----->|<- each from a unit of its own on ->|
//! ```
//!
//! Before its first use it is written from end to end, so that no write of a record has to allocate, and every place
//! for a cell, and the start of every sector of the body, says in a checksummed cell that nothing was written there.

use sprag_paxos::Slot;

use crate::bytes::UNIT;
use crate::cell::{CELL, Cell, Origin};
use crate::disk::{DiskError, DiskFile};

/// Lines in a unit.
pub(crate) const UNIT_LINES: u32 = (UNIT / CELL) as u32;
/// The least that a disk writes at once, in full or not at all.
pub(crate) const SECTOR: usize = 512;
/// What the index of an unused sector of the body starts with, to tell it from a record's.
const BODY: u64 = 1 << 32;
/// Written at once while formatting.
const CHUNK: usize = 256 * UNIT;
const PREFIX: &str = "segment-";

/// Where things lie in a segment. It follows from the file's length alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    units: u32,
}

impl Layout {
    pub(crate) const UNITS_MIN: u64 = 4;
    pub(crate) const UNITS_MAX: u64 = 1 << 18;

    /// The layout of a file of `bytes`, if there is one.
    pub(crate) fn of(bytes: u64) -> Option<Layout> {
        let units = bytes / UNIT as u64;
        let fits = bytes.is_multiple_of(UNIT as u64)
            && (Self::UNITS_MIN..=Self::UNITS_MAX).contains(&units);
        fits.then_some(Layout {
            units: units as u32,
        })
    }

    pub(crate) fn bytes(self) -> usize {
        self.units as usize * UNIT
    }

    pub(crate) fn header_units(self) -> u32 {
        (self.units / 8).max(1)
    }

    pub(crate) fn header_bytes(self) -> usize {
        self.header_units() as usize * UNIT
    }

    /// How many records have room for their cells.
    pub(crate) fn records_max(self) -> u32 {
        self.header_units() * UNIT_LINES
    }

    /// The first line of the body.
    pub(crate) fn body(self) -> u32 {
        self.header_units() * UNIT_LINES
    }

    /// The line after the last.
    pub(crate) fn end(self) -> u32 {
        self.units * UNIT_LINES
    }

    /// What a batch may take at most.
    pub(crate) fn body_lines(self) -> u32 {
        self.end() - self.body()
    }
}

/// A segment in use.
pub(crate) struct Segment<F> {
    pub(crate) generation: u64,
    pub(crate) file: F,
    pub(crate) layout: Layout,
    /// Records written.
    pub(crate) count: u32,
    /// Records known to be durable.
    pub(crate) synced: u32,
    /// The highest slot that was accepted in any of them.
    pub(crate) slot_max: Slot,
}

/// The name of the segment's file.
pub(crate) fn name(generation: u64) -> String {
    format!("{PREFIX}{generation:016x}")
}

/// The generation of the segment with that name, if it is one.
pub(crate) fn generation(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?;
    let generation = u64::from_str_radix(digits, 16).ok()?;
    (self::name(generation) == name).then_some(generation)
}

/// The front of a segment without records.
pub(crate) fn empty_header(layout: Layout, origin: Origin) -> Vec<u8> {
    let mut header = vec![0; layout.header_bytes()];
    for (index, cell) in header.chunks_exact_mut(CELL).enumerate() {
        Cell::encode_empty(origin, index as u64, cell);
    }
    header
}

/// A unit of the body without records.
pub(crate) fn encode_empty_unit(origin: Origin, unit: u32, into: &mut [u8]) {
    into.fill(0);
    let first = u64::from(unit) * (UNIT / SECTOR) as u64;
    for (sector, bytes) in (first..).zip(into.chunks_exact_mut(SECTOR)) {
        Cell::encode_empty(origin, BODY | sector, bytes);
    }
}

/// Whether a sector of the body says that nothing was written there.
pub(crate) fn is_empty_sector(bytes: &[u8], origin: Origin, sector: u64) -> bool {
    Cell::decode(bytes, origin, BODY | sector).is_some()
}

/// Writes the whole of a segment without records; not synced.
pub(crate) fn format<F: DiskFile>(
    file: &F,
    layout: Layout,
    origin: Origin,
) -> Result<(), DiskError> {
    for (chunk, bytes) in empty_header(layout, origin).chunks(CHUNK).enumerate() {
        file.write((chunk * CHUNK) as u64, bytes)?;
    }
    let mut chunk = Vec::new();
    let mut unit = layout.header_units();
    while unit < layout.units {
        let units = (layout.units - unit).min((CHUNK / UNIT) as u32);
        chunk.resize(units as usize * UNIT, 0);
        for (next, bytes) in (unit..).zip(chunk.chunks_exact_mut(UNIT)) {
            encode_empty_unit(origin, next, bytes);
        }
        file.write(unit as u64 * UNIT as u64, &chunk)?;
        unit += units;
    }
    Ok(())
}
