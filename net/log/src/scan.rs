//! What is found in a segment, before it is judged.

use std::ops::Range;

use sprag_paxos::simulation::{Bug, Mark, planted, reach};

use crate::bytes::checksum;
use crate::cell::{CELL, Cell, Kind, Origin};
use crate::disk::{DiskError, DiskFile, Fault};
use crate::segment::{self, Layout, SECTOR, UNIT_LINES};

/// A segment and its records.
pub(crate) struct Scan<F> {
    pub(crate) generation: u64,
    pub(crate) file: F,
    pub(crate) layout: Layout,
    /// By index, to the one after the last record that left a trace.
    pub(crate) found: Vec<Remains>,
    /// Whether some record has lost one of its two cells.
    pub(crate) is_scarred: bool,
}

/// What is left of a record.
#[derive(Clone, Copy)]
pub(crate) enum Remains {
    /// At least one of its two cells is good.
    Record {
        cell: Cell,
        /// Whether its payload is, too.
        is_whole: bool,
    },
    /// Neither is.
    Nothing {
        /// Whether both places are damaged: neither says that it was never written.
        is_damaged: bool,
    },
}

impl<F: DiskFile> Scan<F> {
    /// Reads and checks all of a segment.
    pub(crate) fn read(file: F, layout: Layout, origin: Origin) -> Result<Scan<F>, DiskError> {
        let image = read_image(&file, layout)?;
        let mut found = Vec::new();
        let mut records = 0;
        let mut is_scarred = false;
        // Whether a record was looked for all over the segment, in vain.
        let mut is_hunted = false;
        // Where the next record lies, as far as the one before it says.
        let mut place = Some(layout.body());
        for index in 0..layout.records_max() {
            let at = index as usize * CELL;
            let header = Cell::decode(&image[at..], origin, index.into());
            let is_body_unused =
                || place.is_some_and(|line| never_written(&image, layout, origin, line));
            let in_front = header.filter(|cell| cell.kind != Kind::Empty && fits(layout, cell));
            let cell = in_front.or_else(|| record_at(&image, layout, origin, index, place?));
            let cell = cell.or_else(|| {
                // A write that went astray may have hit just the other trace.
                if is_hunted || place.is_none() || (header.is_some() && is_body_unused()) {
                    return None;
                }
                let stray = stray(&image, layout, origin, index);
                is_hunted = stray.is_none();
                stray
            });
            if let Some(cell) = cell {
                let is_whole = cell.length == 0 || checksum(payload(&image, &cell)) == cell.payload;
                // The front of its place says that it was not written there: then it was never synced.
                let front_is_empty = header.is_some_and(|cell| cell.kind == Kind::Empty);
                if !is_whole
                    && (front_is_empty || is_torn(&image, layout, origin, index, &cell))
                    && !planted(Bug::TornTakenForUnknown)
                {
                    reach(Mark::TornRecord);
                    found.push(Remains::Nothing { is_damaged: false });
                    place = None;
                    continue;
                }
                let in_body = &image[cell.line as usize * CELL..][..CELL];
                is_scarred |= in_front.is_none() || in_body != &image[at..at + CELL];
                found.push(Remains::Record { cell, is_whole });
                records = found.len();
                place = Some(line_after(&cell));
            } else {
                // With records after it in the body, the front was not damaged where nothing had been written.
                let is_damaged = header.is_none()
                    && !place.is_some_and(|line| ends_before(&image, layout, origin, line));
                found.push(Remains::Nothing { is_damaged });
                place = None;
            }
        }
        found.truncate(records + 1);
        if found.len() == records {
            // No place is left for another.
            found.push(Remains::Nothing { is_damaged: false });
        }
        found.shrink_to_fit();
        Ok(Scan {
            generation: origin.generation,
            file,
            layout,
            found,
            is_scarred,
        })
    }
}

impl<F> Scan<F> {
    pub(crate) fn has_records(&self) -> bool {
        self.found.len() > 1
    }
}

/// All of a segment's bytes. What can't be read is filled so that no checksum holds.
pub(crate) fn read_image<F: DiskFile>(file: &F, layout: Layout) -> Result<Vec<u8>, DiskError> {
    let mut image = vec![0; layout.bytes()];
    match file.read(0, &mut image) {
        Ok(()) => return Ok(image),
        Err(error) if is_damage(error.fault) => {}
        Err(error) => return Err(error),
    }
    for (sector, bytes) in image.chunks_mut(SECTOR).enumerate() {
        match file.read((sector * SECTOR) as u64, bytes) {
            Ok(()) => {}
            Err(error) if is_damage(error.fault) => bytes.fill(0xff),
            Err(error) => return Err(error),
        }
    }
    Ok(image)
}

/// Whether a refused read tells of a bad place, not of a bad moment.
pub(crate) fn is_damage(fault: Fault) -> bool {
    matches!(fault, Fault::Io { .. } | Fault::Short { .. })
}

/// The line after a record's last, or where the next batch begins.
pub(crate) fn line_after(cell: &Cell) -> u32 {
    let after = cell.line + Cell::lines(cell.length);
    if cell.ends_batch {
        after.next_multiple_of(UNIT_LINES)
    } else {
        after
    }
}

fn record_at(image: &[u8], layout: Layout, origin: Origin, index: u32, line: u32) -> Option<Cell> {
    let bytes = image
        .get(line as usize * CELL..)
        .filter(|_| line < layout.end())?;
    let cell = Cell::decode(bytes, origin, index.into())?;
    (cell.kind != Kind::Empty && cell.line == line && fits(layout, &cell)).then_some(cell)
}

/// A cell of the record at `index` that lies in neither of its places.
fn stray(image: &[u8], layout: Layout, origin: Origin, index: u32) -> Option<Cell> {
    let mut cells = image
        .chunks_exact(CELL)
        .filter_map(|bytes| Cell::decode(bytes, origin, index.into()));
    cells.find(|cell| cell.kind != Kind::Empty && fits(layout, cell))
}

/// Whether a record that isn't whole was never synced: part of its place says that nothing was written there. What is
/// damaged doesn't say so. A write that went astray leaves such a place too; then the very same cell lies somewhere else in
/// the segment. Where that is its place in the front, what follows it there isn't a cell: no power cut leaves that.
fn is_torn(image: &[u8], layout: Layout, origin: Origin, index: u32, cell: &Cell) -> bool {
    let is_empty =
        |sector: usize| segment::is_empty_sector(&image[sector * SECTOR..], origin, sector as u64);
    let is_astray = || {
        let mut lines = image.chunks_exact(CELL).enumerate();
        lines.any(|(line, bytes)| {
            let found = Cell::decode(bytes, origin, index.into());
            // In neither of its places. One of an earlier life was another record.
            line != cell.line as usize
                && line != index as usize
                && found.is_some_and(|found| found.checksum == cell.checksum)
        })
    };
    let is_over_the_front = || {
        let next = index + 1;
        let after = &image[next as usize * CELL..];
        next < layout.records_max() && Cell::decode(after, origin, next.into()).is_none()
    };
    sectors(cell).any(is_empty) && !is_astray() && !is_over_the_front()
}

/// The sectors that a record lies in.
pub(crate) fn sectors(cell: &Cell) -> Range<usize> {
    let start = cell.line as usize * CELL;
    let end = start + CELL + cell.length as usize;
    start / SECTOR..end.div_ceil(SECTOR)
}

fn fits(layout: Layout, cell: &Cell) -> bool {
    let end = u64::from(cell.line) + u64::from(cell.length.div_ceil(CELL as u32)) + 1;
    cell.line >= layout.body() && end <= layout.end().into()
}

fn payload<'a>(image: &'a [u8], cell: &Cell) -> &'a [u8] {
    let start = (cell.line as usize + 1) * CELL;
    &image[start..start + cell.length as usize]
}

/// Whether the sector of `line` says that nothing was written there.
fn never_written(image: &[u8], layout: Layout, origin: Origin, line: u32) -> bool {
    if line >= layout.end() {
        return true;
    }
    let sector = line as usize * CELL / SECTOR;
    segment::is_empty_sector(&image[sector * SECTOR..], origin, sector as u64)
}

/// Whether the sectors from that of `line` on all say so.
fn ends_before(image: &[u8], layout: Layout, origin: Origin, line: u32) -> bool {
    let mut lines = (line..layout.end()).step_by(SECTOR / CELL);
    lines.all(|line| never_written(image, layout, origin, line))
}
