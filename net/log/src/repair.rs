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

/// Writes whatever differs from how a segment should be that holds the first `count` of the records that were found;
/// and anew, though it doesn't differ, whatever belongs to a record from index `from` on. First in the front, then in the
/// body, each synced: one cell of each record is whole at any time.
pub(crate) fn repair<F: DiskFile>(
    scan: &Scan<F>,
    origin: Origin,
    from: u32,
    count: u32,
) -> Result<Repaired, DiskError> {
    let layout = scan.layout;
    let before = read_image(&scan.file, layout)?;
    let mut after = before.clone();
    let mut is_anew = vec![false; layout.bytes() / UNIT];
    let mut line = layout.body();
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
                let end = line_after(cell).next_multiple_of(UNIT_LINES);
                line = line.max(end);
                if index >= from {
                    is_anew[(index / UNIT_LINES) as usize] = true;
                    let units = cell.line / UNIT_LINES..end / UNIT_LINES;
                    is_anew[units.start as usize..units.end as usize].fill(true);
                }
            }
            // Nothing but damage: it stays, so that nobody takes it for unwritten.
            _ if index < count => {}
            _ => Cell::encode_empty(origin, index.into(), &mut after[in_front..]),
        }
    }
    let units = after.chunks_exact_mut(UNIT).enumerate();
    for (unit, bytes) in units.skip((line / UNIT_LINES) as usize) {
        if !segment::is_empty_unit(bytes, origin, unit as u32) {
            segment::encode_empty_unit(origin, unit as u32, bytes);
        }
    }

    let body = layout.header_units() as usize;
    for units in [0..body, body..is_anew.len()] {
        let mut is_written = false;
        for unit in units {
            let bytes = unit * UNIT..(unit + 1) * UNIT;
            if is_anew[unit] || after[bytes.clone()] != before[bytes.clone()] {
                scan.file.write((unit * UNIT) as u64, &after[bytes])?;
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
