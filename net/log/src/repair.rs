//! The segment as it should be after what was found in it: both cells of every record that counts, nothing after the last.

use std::ops::Range;

use crate::bytes::UNIT;
use crate::cell::{CELL, Cell, Origin};
use crate::disk::{DiskError, DiskFile};
use crate::scan::{Remains, Scan, line_after, read_image, sectors};
use crate::segment::{self, SECTOR, UNIT_LINES};

/// What a segment is repaired to.
pub(crate) struct Repaired {
    /// The front.
    pub(crate) header: Vec<u8>,
    /// Where the next batch goes.
    pub(crate) line: u32,
}

/// Writes whatever differs from how a segment should be that holds the first `count` of the records that were found. If
/// not all of it is proven durable, writes anew all there is from index `from` on, though it doesn't differ, and that
/// nothing comes after. Each step is synced before the next:
///
/// 1. What isn't whole gets its cell where it belongs, and no sector there says any more that it is empty. What tells that
///    a write went astray, and that it wasn't torn, may be taken away by what follows.
/// 2. The records in the body, as they are. The system's cache may show one where it belongs though the disk has it
///    elsewhere, behind the end or in the front, which are about to be written.
/// 3. The front, which says what there is.
/// 4. The body: the cells that were missing, and nothing after the last record, not even in its batch.
pub(crate) fn repair<F: DiskFile>(
    scan: &Scan<F>,
    origin: Origin,
    from: Option<u32>,
    count: u32,
) -> Result<Repaired, DiskError> {
    let layout = scan.layout;
    let (body, end) = (layout.header_units(), layout.end() / UNIT_LINES);
    let mut rewrite = Rewrite::read(scan, origin)?;
    let records = || {
        let found = (0..count).zip(&scan.found);
        found.filter_map(|(index, found)| match found {
            Remains::Record { cell, is_whole } => Some((index, cell, *is_whole)),
            // Nothing but damage: it stays, so that nobody takes it for unwritten.
            Remains::Nothing { .. } => None,
        })
    };
    for (index, cell, _) in records().filter(|(.., is_whole)| !is_whole) {
        rewrite.deny_empty(cell);
        rewrite.put(cell, index, cell.line);
    }
    rewrite.write(body..end, end)?;

    let mut line = layout.body();
    let mut anew = layout.end();
    for (index, cell, _) in records() {
        rewrite.put(cell, index, index);
        rewrite.put(cell, index, cell.line);
        line = line.max(line_after(cell).next_multiple_of(UNIT_LINES));
        if from.is_some_and(|from| index >= from) {
            anew = anew.min(cell.line);
        }
        if index + 1 == count {
            rewrite.end_batch(cell);
        }
    }
    if from.is_some() {
        anew = anew.min(line);
    }
    rewrite.end_at(count..layout.records_max(), line);
    let (rest, anew) = (line / UNIT_LINES, anew / UNIT_LINES);
    rewrite.write_again(anew..rest)?;
    rewrite.write(0..body, from.map_or(body, |from| from / UNIT_LINES))?;
    rewrite.write(body..end, anew.max(rest))?;
    rewrite.after.truncate(layout.header_bytes());
    Ok(Repaired {
        header: rewrite.after,
        line,
    })
}

/// All of a segment, as it is and as it should be.
struct Rewrite<'a, F> {
    file: &'a F,
    origin: Origin,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl<'a, F: DiskFile> Rewrite<'a, F> {
    fn read(scan: &'a Scan<F>, origin: Origin) -> Result<Self, DiskError> {
        let before = read_image(&scan.file, scan.layout)?;
        let after = before.clone();
        let file = &scan.file;
        Ok(Self {
            file,
            origin,
            before,
            after,
        })
    }

    /// Puts the cell of the record at `index` into `line`.
    fn put(&mut self, cell: &Cell, index: u32, line: u32) {
        let into = &mut self.after[line as usize * CELL..];
        cell.encode(self.origin, index.into(), into);
    }

    /// No sector of the record says any more that it is empty.
    fn deny_empty(&mut self, cell: &Cell) {
        for sector in sectors(cell) {
            let start = &mut self.after[sector * SECTOR..];
            if segment::is_empty_sector(start, self.origin, sector as u64) {
                start[..CELL].fill(0);
            }
        }
    }

    /// The record is the last of its batch: what came after it there is taken away.
    fn end_batch(&mut self, cell: &Cell) {
        let rest = (cell.line + Cell::lines(cell.length)) as usize * CELL;
        self.after[rest..line_after(cell) as usize * CELL].fill(0);
    }

    /// There are no records at `indices`, which are the last, nor in the body from `line` on.
    fn end_at(&mut self, indices: Range<u32>, line: u32) {
        for index in indices {
            let into = &mut self.after[index as usize * CELL..];
            Cell::encode_empty(self.origin, index.into(), into);
        }
        let units = self.after.chunks_exact_mut(UNIT).enumerate();
        for (unit, bytes) in units.skip((line / UNIT_LINES) as usize) {
            segment::encode_empty_unit(self.origin, unit as u32, bytes);
        }
    }

    /// Writes `units` as they are; then syncs them.
    fn write_again(&self, units: Range<u32>) -> Result<(), DiskError> {
        if units.is_empty() {
            return Ok(());
        }
        for unit in units {
            let start = unit as usize * UNIT;
            self.file
                .write(start as u64, &self.before[start..][..UNIT])?;
        }
        self.file.sync()
    }

    /// Writes those of `units` that differ, and all from `anew` on; then syncs them.
    fn write(&mut self, units: Range<u32>, anew: u32) -> Result<(), DiskError> {
        let mut is_written = false;
        for unit in units {
            let bytes = unit as usize * UNIT..(unit as usize + 1) * UNIT;
            let (before, after) = (&mut self.before[bytes.clone()], &self.after[bytes.clone()]);
            if unit >= anew || after != before {
                self.file.write(bytes.start as u64, after)?;
                before.copy_from_slice(after);
                is_written = true;
            }
        }
        if is_written {
            self.file.sync()?;
        }
        Ok(())
    }
}
