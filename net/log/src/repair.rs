//! The segment as it should be after what was found in it: both cells of every record that counts, nothing after the last.

use crate::bytes::UNIT;
use crate::cell::{CELL, Cell, Origin};
use crate::disk::{DiskError, DiskFile};
use crate::scan::{Found, Scan, line_after, read_image};
use crate::segment::{self, UNIT_LINES};

/// What a segment is repaired to.
pub(crate) struct Repaired {
    /// The front.
    pub(crate) header: Vec<u8>,
    /// Where the next batch goes.
    pub(crate) line: u32,
}

/// Writes whatever differs from how a segment should be that holds the first `count` of the records that were found. If
/// not all of it is proven durable, writes anew all there is from index `from` on, though it doesn't differ, and that
/// nothing comes after. First in the front, then in the body, each synced: one cell of each record is whole at any time.
pub(crate) fn repair<F: DiskFile>(
    scan: &Scan<F>,
    origin: Origin,
    from: Option<u32>,
    count: u32,
) -> Result<Repaired, DiskError> {
    let layout = scan.layout;
    let before = read_image(&scan.file, layout)?;
    let mut after = before.clone();
    let mut line = layout.body();
    // The line after the last that counts.
    let mut end = line;
    let mut anew = layout.end();
    for index in 0..layout.records_max() {
        let in_front = index as usize * CELL;
        match scan.found.get(index as usize) {
            Some(Found::Record { cell, .. }) if index < count => {
                cell.encode(origin, index.into(), &mut after[in_front..]);
                cell.encode(
                    origin,
                    index.into(),
                    &mut after[cell.line as usize * CELL..],
                );
                line = line.max(line_after(cell).next_multiple_of(UNIT_LINES));
                end = end.max(cell.line + Cell::lines(cell.length));
                if from.is_some_and(|from| index >= from) {
                    anew = anew.min(cell.line);
                }
            }
            // Nothing but damage: it stays, so that nobody takes it for unwritten.
            _ if index < count => {}
            _ => Cell::encode_empty(origin, index.into(), &mut after[in_front..]),
        }
    }
    if from.is_some() {
        anew = anew.min(line);
    }
    // What was torn off its batch: the next record of its number would look as if it had gone astray.
    after[end as usize * CELL..line as usize * CELL].fill(0);
    let units = after.chunks_exact_mut(UNIT).enumerate();
    for (unit, bytes) in units.skip((line / UNIT_LINES) as usize) {
        segment::encode_empty_unit(origin, unit as u32, bytes);
    }

    let (body, all) = (layout.header_units(), layout.end() / UNIT_LINES);
    let front_anew = from.map_or(body, |from| from / UNIT_LINES);
    for (units, anew) in [(0..body, front_anew), (body..all, anew / UNIT_LINES)] {
        let mut is_written = false;
        for unit in units {
            let bytes = unit as usize * UNIT..(unit as usize + 1) * UNIT;
            if unit >= anew || after[bytes.clone()] != before[bytes.clone()] {
                scan.file.write(bytes.start as u64, &after[bytes])?;
                is_written = true;
            }
        }
        if is_written {
            scan.file.sync()?;
        }
    }
    after.truncate(layout.header_bytes());
    Ok(Repaired {
        header: after,
        line,
    })
}
