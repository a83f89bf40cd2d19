//! What is found in a segment, before it is judged.

use std::ops::Range;

use sprag_paxos::simulation::{Bug, Mark, planted, reach};

use crate::bytes::checksum;
use crate::cell::{CELL, Cell, Kind, Origin};
use crate::disk::{DiskError, DiskFile};
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
        let mut scanner = Scanner {
            image: Image {
                bytes: read_image(&file, layout)?,
                layout,
                origin,
            },
            is_hunted: false,
            place: Some(layout.body()),
            is_scarred: false,
        };
        let indices = 0..layout.records_max();
        let mut found: Vec<_> = indices.map(|index| scanner.next(index)).collect();
        let is_record = |remains: &Remains| matches!(remains, Remains::Record { .. });
        let records = found.iter().rposition(is_record).map_or(0, |last| last + 1);
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
            is_scarred: scanner.is_scarred,
        })
    }
}

impl<F> Scan<F> {
    pub(crate) fn has_records(&self) -> bool {
        self.found.len() > 1
    }
}

/// Goes through a segment, record by record.
struct Scanner {
    image: Image,
    /// Whether a record was looked for all over the segment, in vain.
    is_hunted: bool,
    /// Where the next record lies, as far as the one before it says.
    place: Option<u32>,
    is_scarred: bool,
}

impl Scanner {
    /// What is left of the record at `index`.
    fn next(&mut self, index: u32) -> Remains {
        let header = self.image.cell(index, index);
        let place = self.place.take();
        let in_front = header.filter(|cell| self.image.is_record(cell));
        let cell = in_front.or_else(|| self.elsewhere(index, place?, header.is_some()));
        let Some(cell) = cell else {
            // With records after it in the body, the front was not damaged where nothing had been written.
            let ends = place.is_some_and(|line| self.image.ends_before(line));
            let is_damaged = header.is_none() && !ends;
            return Remains::Nothing { is_damaged };
        };
        let is_whole = self.image.is_whole(&cell);
        // The front of its place says that it was not written there: then it was never synced.
        let front_is_empty = header.is_some_and(|cell| cell.kind == Kind::Empty);
        if !is_whole
            && (front_is_empty || self.image.is_torn(index, &cell))
            && !planted(Bug::TornTakenForUnknown)
        {
            reach(Mark::TornRecord);
            return Remains::Nothing { is_damaged: false };
        }
        let are_alike = self.image.line(index) == self.image.line(cell.line);
        self.is_scarred |= in_front.is_none() || !are_alike;
        self.place = Some(line_after(&cell));
        Remains::Record { cell, is_whole }
    }

    /// The record's cell, where the front has none: at `line`, or in neither of its places.
    fn elsewhere(&mut self, index: u32, line: u32, has_header: bool) -> Option<Cell> {
        let in_body = self.image.record_at(index, line);
        // A write that went astray may have hit just the other trace.
        if in_body.is_some() || self.is_hunted || (has_header && self.image.never_written(line)) {
            return in_body;
        }
        let stray = self.image.stray(index);
        self.is_hunted = stray.is_none();
        stray
    }
}

/// A segment's bytes as they were read.
struct Image {
    bytes: Vec<u8>,
    layout: Layout,
    origin: Origin,
}

impl Image {
    fn line(&self, line: u32) -> &[u8] {
        &self.bytes[line as usize * CELL..][..CELL]
    }

    /// The cell of the record at `index`, if `line` holds it.
    fn cell(&self, line: u32, index: u32) -> Option<Cell> {
        Cell::decode(self.line(line), self.origin, index.into())
    }

    /// Whether a cell is of a record that lies in the body.
    fn is_record(&self, cell: &Cell) -> bool {
        let end = u64::from(cell.line) + u64::from(cell.length.div_ceil(CELL as u32)) + 1;
        cell.kind != Kind::Empty
            && cell.line >= self.layout.body()
            && end <= self.layout.end().into()
    }

    fn record_at(&self, index: u32, line: u32) -> Option<Cell> {
        let is_inside = line < self.layout.end();
        let cell = is_inside.then(|| self.cell(line, index))??;
        (cell.line == line && self.is_record(&cell)).then_some(cell)
    }

    /// A cell of the record at `index` that lies in neither of its places.
    fn stray(&self, index: u32) -> Option<Cell> {
        let mut cells = (0..self.layout.end()).filter_map(|line| self.cell(line, index));
        cells.find(|cell| self.is_record(cell))
    }

    fn is_whole(&self, cell: &Cell) -> bool {
        let start = (cell.line as usize + 1) * CELL;
        let payload = &self.bytes[start..][..cell.length as usize];
        payload.is_empty() || checksum(payload) == cell.payload
    }

    /// Whether a record that isn't whole was never synced: part of its place says that nothing was written there. What is
    /// damaged doesn't say so. A write that went astray leaves such a place too; then the very same cell lies somewhere else in
    /// the segment. Where that is its place in the front, what follows it there isn't a cell: no power cut leaves that.
    fn is_torn(&self, index: u32, cell: &Cell) -> bool {
        let is_astray = || {
            let mut lines = (0..self.layout.end()).filter_map(|line| {
                // In neither of its places. One of an earlier life was another record.
                let found = self.cell(line, index)?;
                (line != cell.line && line != index).then_some(found)
            });
            lines.any(|found| found.checksum == cell.checksum)
        };
        let is_over_the_front = || {
            let next = index + 1;
            next < self.layout.records_max() && self.cell(next, next).is_none()
        };
        sectors(cell).any(|sector| self.is_empty_sector(sector))
            && !is_astray()
            && !is_over_the_front()
    }

    fn is_empty_sector(&self, sector: usize) -> bool {
        let bytes = &self.bytes[sector * SECTOR..];
        segment::is_empty_sector(bytes, self.origin, sector as u64)
    }

    /// Whether the sector of `line` says that nothing was written there.
    fn never_written(&self, line: u32) -> bool {
        line >= self.layout.end() || self.is_empty_sector(line as usize * CELL / SECTOR)
    }

    /// Whether the sectors from that of `line` on all say so.
    fn ends_before(&self, line: u32) -> bool {
        let mut lines = (line..self.layout.end()).step_by(SECTOR / CELL);
        lines.all(|line| self.never_written(line))
    }
}

/// All of a segment's bytes. What can't be read is filled so that no checksum holds.
pub(crate) fn read_image<F: DiskFile>(file: &F, layout: Layout) -> Result<Vec<u8>, DiskError> {
    let mut image = vec![0; layout.bytes()];
    match file.read(0, &mut image) {
        Ok(()) => return Ok(image),
        Err(error) if error.is_damage() => {}
        Err(error) => return Err(error),
    }
    for (sector, bytes) in image.chunks_mut(SECTOR).enumerate() {
        match file.read((sector * SECTOR) as u64, bytes) {
            Ok(()) => {}
            Err(error) if error.is_damage() => bytes.fill(0xff),
            Err(error) => return Err(error),
        }
    }
    Ok(image)
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

/// The sectors that a record lies in.
pub(crate) fn sectors(cell: &Cell) -> Range<usize> {
    let start = cell.line as usize * CELL;
    let end = start + CELL + cell.length as usize;
    start / SECTOR..end.div_ceil(SECTOR)
}
