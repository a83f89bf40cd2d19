//! The segments of a log: batches are written to the last; all are read, synced and in the end given back.

use std::collections::VecDeque;
use std::iter;

use sprag_paxos::Slot;
use sprag_paxos::simulation::{Bug, planted};

use crate::bytes::{UNIT, checksum};
use crate::cell::{CELL, Cell, Origin};
use crate::disk::{DiskError, DiskFile};
use crate::identity::Identity;
use crate::record::{Draft, Size};
use crate::repair::Repaired;
use crate::segment::{self, Layout, Segment, UNIT_LINES};
use crate::upkeep::Ready;

/// The segments in use, and where the next batch goes.
pub(crate) struct Segments<F> {
    /// Oldest first.
    older: VecDeque<Segment<F>>,
    /// The one that is written to.
    last: Segment<F>,
    /// Its front, as it was written.
    header: Vec<u8>,
    /// Where the next batch goes.
    line: u32,
    /// The checksum of the last record's cell.
    previous: u64,
    /// The batch as it is written; kept, so that appending allocates nothing.
    bytes: Vec<u8>,
}

/// A batch that is put together.
pub(crate) struct Batch {
    origin: Origin,
    /// The index of its first record.
    first: u32,
    /// What its records say to have been synced before.
    proven: u32,
}

impl<F> Segments<F> {
    /// Goes on after the record whose cell has the checksum `previous`, in the last segment as it was repaired.
    pub(crate) fn new(
        older: VecDeque<Segment<F>>,
        last: Segment<F>,
        repaired: Repaired,
        previous: u64,
    ) -> Self {
        Self {
            older,
            last,
            header: repaired.header,
            line: repaired.line,
            previous,
            bytes: Vec::new(),
        }
    }

    /// The one that is written to.
    pub(crate) fn last(&self) -> &Segment<F> {
        &self.last
    }

    /// All of them, oldest first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Segment<F>> + Clone {
        self.older.iter().chain(iter::once(&self.last))
    }

    /// Whether the last has room for a batch.
    pub(crate) fn has_room(&self, size: Size) -> bool {
        size.fits(self.last.layout, self.last.count, self.line)
    }

    /// The generation of the oldest that holds something above `slot`, or of the last, which is written to.
    pub(crate) fn oldest_above(&self, slot: Slot) -> u64 {
        let mut older = self.older.iter();
        let needed = older.find(|segment| segment.slot_max > slot);
        needed.unwrap_or(&self.last).generation
    }

    /// Goes on in another segment.
    pub(crate) fn go_on_in(&mut self, next: Ready<F>, identity: Identity) {
        let generation = next.generation;
        let origin = Origin {
            identity,
            generation,
        };
        self.header = segment::empty_header(next.layout, origin);
        self.line = next.layout.body();
        let before = std::mem::replace(&mut self.last, next.into_segment());
        self.older.push_back(before);
    }

    /// Takes out those below generation `first`, but never the last.
    pub(crate) fn take_below(&mut self, first: u64) -> Vec<(u64, Layout)> {
        let useless = iter::from_fn(|| {
            self.older
                .pop_front_if(|segment| segment.generation < first)
        });
        useless
            .map(|segment| (segment.generation, segment.layout))
            .collect()
    }

    /// The first `count` records of a segment are durable.
    pub(crate) fn note_synced(&mut self, generation: u64, count: u32) {
        let mut all = self.older.iter_mut().chain(iter::once(&mut self.last));
        if let Some(segment) = all.find(|segment| segment.generation == generation) {
            segment.synced = count;
        }
    }

    /// Begins a batch.
    pub(crate) fn begin_batch(&mut self, identity: Identity) -> Batch {
        self.bytes.clear();
        let is_synced = |segment: &Segment<F>| segment.synced == segment.count;
        Batch {
            origin: Origin {
                identity,
                generation: self.last.generation,
            },
            first: self.last.count,
            proven: if self.older.iter().all(is_synced) {
                self.last.synced + 1
            } else {
                0
            },
        }
    }

    /// Puts a record into the batch; there is room.
    pub(crate) fn put(&mut self, batch: &Batch, draft: &Draft<'_>, ends_batch: bool) -> Cell {
        let index = self.last.count;
        let cell = Cell {
            checksum: 0,
            previous: self.previous,
            payload: checksum(draft.payload),
            slot: draft.slot,
            ballot: draft.ballot,
            kind: draft.kind,
            ends_batch,
            length: draft.payload.len() as u32,
            line: self.line + (self.bytes.len() / CELL) as u32,
            proven: batch.proven,
        };
        let header = &mut self.header[index as usize * CELL..][..CELL];
        self.previous = cell.encode(batch.origin, index.into(), header);
        self.bytes.extend_from_slice(header);
        self.bytes.extend_from_slice(draft.payload);
        self.bytes
            .resize(self.bytes.len().next_multiple_of(CELL), 0);
        self.last.count += 1;
        if cell.is_accepted() || cell.is_learned() {
            self.last.slot_max = self.last.slot_max.max(cell.slot);
        }
        cell
    }
}

impl<F: DiskFile> Segments<F> {
    /// Writes the batch; gives how many records it has.
    pub(crate) fn write(&mut self, batch: &Batch) -> Result<u32, DiskError> {
        let Segment { file, count, .. } = &self.last;
        let length = self.bytes.len().next_multiple_of(UNIT);
        self.bytes.resize(length, 0);
        let start = (batch.first / UNIT_LINES) as usize * UNIT;
        let end = count.div_ceil(UNIT_LINES) as usize * UNIT;
        // The front first: a body that lands on it stays there, and tells that it went astray.
        let written = file
            .write(start as u64, &self.header[start..end])
            .and_then(|()| file.write(u64::from(self.line) * CELL as u64, &self.bytes));
        if written.is_err() && !planted(Bug::WriteErrorIgnored) {
            written?;
        }
        self.line += (length / CELL) as u32;
        Ok(count - batch.first)
    }

    /// Reads a record's payload; `None` where it can't be read any more.
    pub(crate) fn read(&self, generation: u64, cell: &Cell) -> Result<Option<Vec<u8>>, DiskError> {
        let Some(segment) = self.all().find(|segment| segment.generation == generation) else {
            return Ok(None);
        };
        let mut payload = vec![0; cell.length as usize];
        let start = (u64::from(cell.line) + 1) * CELL as u64;
        match segment.file.read(start, &mut payload) {
            Ok(()) => Ok((checksum(&payload) == cell.payload).then_some(payload)),
            Err(error) if error.is_damage() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
