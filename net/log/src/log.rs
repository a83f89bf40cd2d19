//! The log of a node: what it promised and what it accepted, durable.

use std::collections::VecDeque;
use std::fmt;

use sprag_paxos::simulation::{Bug, planted};
use sprag_paxos::{Answer, Ballot, Entry, Record, Slot, Vote, Voter};

use crate::bytes::{UNIT, checksum};
use crate::cell::{CELL, Cell, Kind, Origin};
use crate::disk::{Disk, DiskError, DiskFile};
use crate::error::LogError;
use crate::identity::Identity;
use crate::options::LogOptions;
use crate::record::{self, Draft};
use crate::scan::is_damage;
use crate::segment::{self, Layout, Segment, UNIT_LINES};
use crate::slots::{Held, Slots};
use crate::upkeep::Ready;
use crate::vote::VoteFile;

/// How many records were appended since the log was opened. All records up to a position become durable together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

/// What room there is for a batch.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    /// How many segments there may be.
    segments_max: usize,
    /// Up to where all is trimmed, once all of the batch is written.
    trimmed: Slot,
}

/// A node's vote and its log, on a disk.
///
/// Nothing that rests on a record may be said before a sync that was begun after its append has succeeded. Appends may
/// go on meanwhile, and one sync makes all of them durable: grouping is up to the caller.
///
/// After any write or sync that failed the log has stopped, and says so at every call: what was written since the last
/// sync that succeeded may be there or not. Nothing is ever tried again. Whoever opens it anew finds out.
pub struct Log<D: Disk> {
    pub(crate) disk: D,
    pub(crate) identity: Identity,
    pub(crate) vote: VoteFile<D::File>,
    pub(crate) options: LogOptions,
    pub(crate) layout: Layout,
    /// Oldest first; the last is written to. Never empty.
    pub(crate) segments: VecDeque<Segment<D::File>>,
    /// The front of the last segment, as it was written.
    pub(crate) header: Vec<u8>,
    /// Where the next batch goes.
    pub(crate) line: u32,
    /// The checksum of the last record's cell.
    pub(crate) previous: u64,
    /// The next segment.
    pub(crate) ready: Option<Ready<D::File>>,
    /// Segments that a durable record says are no longer needed.
    pub(crate) discard: Vec<(u64, Layout)>,
    /// The last trim, until its record is durable: where that is, and the oldest generation that it needs.
    pub(crate) trim: Option<(Position, u64)>,
    pub(crate) slots: Slots,
    pub(crate) decided: Slot,
    pub(crate) appended: Position,
    pub(crate) synced: Position,
    pub(crate) is_syncing: bool,
    pub(crate) is_in_upkeep: bool,
    /// The batch as it is written; kept, so that appending allocates nothing.
    pub(crate) batch: Vec<u8>,
    pub(crate) stopped: Option<DiskError>,
}

impl<D: Disk> Log<D> {
    /// Who votes on this disk.
    pub fn voter(&self) -> Voter {
        self.identity.voter
    }

    /// The highest ballot that was promised durably.
    pub fn promised(&self) -> Ballot {
        self.vote.record().promised
    }

    /// All slots up to this one are in a snapshot.
    pub fn trimmed(&self) -> Slot {
        self.slots.trimmed()
    }

    /// All slots up to this one are decided, as far as records say.
    pub fn decided(&self) -> Slot {
        self.decided
    }

    /// All that was appended up to here.
    pub fn appended(&self) -> Position {
        self.appended
    }

    /// All that was appended up to here is durable.
    pub fn synced(&self) -> Position {
        self.synced
    }

    /// How many segments hold what isn't trimmed: at most [`LogOptions::segments_max`].
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// Why the log has stopped, if it has.
    pub fn stopped(&self) -> Option<&DiskError> {
        self.stopped.as_ref()
    }

    /// Promises a ballot, durably by the time it returns: two writes, each synced. It says nothing of what was appended
    /// before. To promise again what is promised costs nothing.
    ///
    /// # Errors
    /// [`LogError::Backwards`] below what is promised; [`LogError::Disk`], with which the log has stopped.
    pub fn promise(&mut self, ballot: Ballot) -> Result<(), LogError> {
        self.running()?;
        let promised = self.promised();
        if ballot < promised {
            return Err(LogError::Backwards {
                asked: ballot,
                promised,
            });
        }
        self.raise(ballot)
    }

    /// Appends records, in one batch: one write for them, and one for their headers. They are not durable yet, but for
    /// what they promise, which is made durable first, as [`promise`](Self::promise) does it.
    ///
    /// With [`Record::Trimmed`], which makes room, the log may grow beyond its bound of segments. The slots are forgotten
    /// at once; their segments are given back by the upkeep after the record is durable. The snapshot must have been
    /// durable before.
    ///
    /// # Errors
    /// Before anything is written, and the log goes on: [`LogError::TooLarge`], [`LogError::Trimmed`],
    /// [`LogError::TooFar`], [`LogError::Full`], [`LogError::DiskFull`], and [`LogError::Busy`] while the upkeep under
    /// way makes the segment that is needed. [`LogError::Disk`], with which it has stopped.
    pub fn append(&mut self, records: &[Record]) -> Result<Position, LogError> {
        self.append_within(records, self.room_for(records))
    }

    /// What room there is for `records`: what is trimmed among them makes more, wherever it stands.
    pub(crate) fn room_for(&self, records: &[Record]) -> Room {
        let trimmed = records.iter().filter_map(record::trimmed_slot).max();
        Room {
            segments_max: if trimmed.is_some() {
                usize::MAX
            } else {
                self.options.segments_max
            },
            trimmed: trimmed.unwrap_or(Slot::NONE).max(self.slots.trimmed()),
        }
    }

    /// Appends records, in one batch.
    pub(crate) fn append_within(
        &mut self,
        records: &[Record],
        room: Room,
    ) -> Result<Position, LogError> {
        self.running()?;
        let mut trimmed = self.slots.trimmed();
        let slots_max = self.options.slots_max;
        for record in records {
            if let Some(slot) = record::trimmed_slot(record) {
                trimmed = trimmed.max(slot);
            }
            let Some(slot) = record::held_slot(record) else {
                continue;
            };
            if slot <= trimmed {
                return Err(LogError::Trimmed { slot, trimmed });
            }
            if slot.0.saturating_sub(room.trimmed.0) > slots_max as u64 {
                let trimmed = room.trimmed;
                return Err(LogError::TooFar {
                    slot,
                    trimmed,
                    slots_max,
                });
            }
        }
        let drafts = records.iter().filter_map(Draft::of);
        self.make_room(drafts.clone(), room.segments_max)?;
        let promised = records.iter().map(record::promised);
        self.raise(promised.fold(Ballot::NONE, Ballot::max))?;
        self.write(drafts)
    }

    /// What the node knows of `slot`, read from the disk and checked.
    ///
    /// # Errors
    /// [`LogError::Trimmed`]; [`LogError::Disk`] where the disk refuses for another reason than a bad place, with which
    /// the log has stopped.
    pub fn read(&mut self, slot: Slot) -> Result<Answer, LogError> {
        self.running()?;
        let trimmed = self.slots.trimmed();
        if slot <= trimmed {
            return Err(LogError::Trimmed { slot, trimmed });
        }
        let answer = self.answer(self.slots.get(slot));
        answer.map_err(|error| self.stop(error))
    }

    pub(crate) fn running(&self) -> Result<(), LogError> {
        match &self.stopped {
            Some(error) => Err(LogError::Stopped(error.clone())),
            None => Ok(()),
        }
    }

    pub(crate) fn stop(&mut self, error: DiskError) -> LogError {
        self.stopped = Some(error.clone());
        LogError::Disk(error)
    }

    /// Takes back what records say is decided above `slot`, durably: not all of it can be read any more. Else what is accepted
    /// there from now on would look, once the rest has been fetched, like what was decided.
    pub(crate) fn take_back_decided(&mut self, slot: Slot) -> Result<(), DiskError> {
        let record = Record::Decided(slot);
        let draft = Draft::of(&record).into_iter();
        let taken_back = self
            .make_room(draft.clone(), usize::MAX)
            .and_then(|()| self.write(draft))
            .and_then(|_| self.sync());
        match taken_back {
            Err(LogError::Disk(error) | LogError::Stopped(error) | LogError::DiskFull(error)) => {
                Err(error)
            }
            // It is small, and nothing else is under way.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn raise(&mut self, ballot: Ballot) -> Result<(), LogError> {
        if ballot <= self.promised() {
            return Ok(());
        }
        let lost = self.vote.record().lost;
        self.vote
            .write(ballot, lost)
            .map_err(|error| self.stop(error))
    }

    /// Sees to it that the drafts fit into the last segment.
    fn make_room<'a>(
        &mut self,
        drafts: impl Iterator<Item = Draft<'a>>,
        segments_max: usize,
    ) -> Result<(), LogError> {
        let (records, lines) = drafts.fold((0, 0), |(records, lines), draft| {
            (records + 1, lines + draft.lines())
        });
        let fits = |layout: Layout, count: u32, line: u32| {
            records <= u64::from(layout.records_max() - count)
                && lines <= u64::from(layout.end() - line)
        };
        let last = self.last();
        if fits(last.layout, last.count, self.line) {
            return Ok(());
        }
        let next = self
            .ready
            .as_ref()
            .map_or(self.layout, |ready| ready.layout);
        if !fits(next, 0, next.body()) {
            return Err(LogError::TooLarge {
                records,
                bytes: lines * CELL as u64,
                records_max: next.records_max().into(),
                bytes_max: u64::from(next.body_lines()) * CELL as u64,
            });
        }
        if self.is_full(segments_max) {
            return Err(LogError::Full { segments_max });
        }
        if self.ready.is_none() {
            if self.is_in_upkeep {
                return Err(LogError::Busy("upkeep"));
            }
            self.upkeep()?;
        }
        if let Some(ready) = self.ready.take() {
            self.header = segment::empty_header(ready.layout, self.origin(ready.generation));
            self.line = ready.layout.body();
            self.segments.push_back(ready.into_segment());
        }
        Ok(())
    }

    /// Whether there are so many segments that hold what isn't trimmed, and the oldest could be. What isn't decided can't
    /// be, and may need just what is to be written next.
    fn is_full(&self, segments_max: usize) -> bool {
        let trimmed = self.slots.trimmed();
        let segments = self.segments.iter();
        let mut needed = segments.skip_while(|segment| segment.slot_max <= trimmed);
        needed.clone().count() >= segments_max
            && needed
                .next()
                .is_some_and(|oldest| oldest.slot_max <= self.decided)
    }

    /// Writes the drafts as one batch; there is room.
    fn write<'a>(
        &mut self,
        drafts: impl Iterator<Item = Draft<'a>> + Clone,
    ) -> Result<Position, LogError> {
        let lines: u64 = drafts.clone().map(|draft| draft.lines()).sum();
        if lines == 0 {
            return Ok(self.appended);
        }
        let length = (lines as usize * CELL).next_multiple_of(UNIT);
        self.batch.clear();
        self.batch.resize(length, 0);
        let Some((last, older)) = self.segments.make_contiguous().split_last_mut() else {
            return Ok(self.appended);
        };
        let mut synced = older.iter();
        let are_older_synced = synced.all(|segment| segment.synced == segment.count);
        let proven = if are_older_synced { last.synced + 1 } else { 0 };
        let origin = Origin {
            identity: self.identity,
            generation: last.generation,
        };
        let (first, mut index) = (last.count, last.count);
        let mut rest = &mut self.batch[..];
        let mut drafts = drafts.peekable();
        let mut line = self.line;
        let mut oldest_needed = None;
        while let Some(mut draft) = drafts.next() {
            if draft.kind == Kind::Trimmed {
                self.slots.trim(draft.slot);
                draft.slot = self.slots.trimmed();
                let mut older = older.iter();
                let needed = older.find(|segment| segment.slot_max > draft.slot);
                // The last segment stays, since it is written to.
                draft.ballot.round = needed.map_or(last.generation, |needed| needed.generation);
                oldest_needed = Some(draft.ballot.round);
                self.decided = self.decided.max(draft.slot);
            }
            let cell = Cell {
                checksum: 0,
                previous: self.previous,
                payload: checksum(draft.payload),
                slot: draft.slot,
                ballot: draft.ballot,
                kind: draft.kind,
                ends_batch: drafts.peek().is_none(),
                length: draft.payload.len() as u32,
                line,
                proven,
            };
            let header = &mut self.header[index as usize * CELL..][..CELL];
            self.previous = cell.encode(origin, index.into(), header);
            let (record, after) = rest.split_at_mut(draft.lines() as usize * CELL);
            record[..CELL].copy_from_slice(header);
            record[CELL..][..draft.payload.len()].copy_from_slice(draft.payload);
            rest = after;
            line += draft.lines() as u32;
            index += 1;
            if cell.is_accepted() || cell.is_learned() {
                last.slot_max = last.slot_max.max(cell.slot);
                self.slots.note(origin.generation, cell);
            } else if cell.kind == Kind::Decided {
                self.decided = cell.slot.max(self.slots.trimmed());
            }
        }
        let units = first / UNIT_LINES..index.div_ceil(UNIT_LINES);
        let headers = units.start as usize * UNIT..units.end as usize * UNIT;
        last.count = index;
        let file = &last.file;
        // The front first: a body that lands on it stays there, and tells that it went astray.
        let written = file.write(headers.start as u64, &self.header[headers]);
        let written =
            written.and_then(|()| file.write(u64::from(self.line) * CELL as u64, &self.batch));
        written.map_err(|error| self.stop(error))?;
        self.line = line.next_multiple_of(UNIT_LINES);
        self.appended = Position(self.appended.0 + u64::from(index - first));
        if let Some(oldest) = oldest_needed {
            self.trim = Some((self.appended, oldest));
            if planted(Bug::TrimBeforeSync) {
                self.give_back(oldest);
            }
        }
        Ok(self.appended)
    }

    /// The segments below `first` are no longer needed, and that is durable.
    pub(crate) fn give_back(&mut self, first: u64) {
        while self.segments.len() > 1 && self.segments[0].generation < first {
            if let Some(segment) = self.segments.pop_front() {
                self.discard.push((segment.generation, segment.layout));
            }
        }
    }

    pub(crate) fn answer(&self, held: Held) -> Result<Answer, DiskError> {
        // Where something is lost, it may have been of any slot.
        let lost = self.vote.record().lost;
        let unknown = held.unreadable.max(lost);
        match held.accepted {
            Some((generation, cell)) if cell.ballot > lost && cell.ballot >= held.unreadable => {
                Ok(match self.entry(generation, &cell)? {
                    Some(entry) => Answer::Accepted(Vote {
                        ballot: cell.ballot,
                        entry,
                    }),
                    None => Answer::Unknown(cell.ballot),
                })
            }
            _ if unknown > Ballot::NONE => Ok(Answer::Unknown(unknown)),
            _ => Ok(Answer::Never),
        }
    }

    /// Reads what was accepted or learned; `None` where it can't be read any more.
    pub(crate) fn entry(&self, generation: u64, cell: &Cell) -> Result<Option<Entry>, DiskError> {
        if matches!(cell.kind, Kind::AcceptedNoop | Kind::LearnedNoop) {
            return Ok(Some(Entry::Noop));
        }
        let mut segments = self.segments.iter();
        let Some(segment) = segments.find(|segment| segment.generation == generation) else {
            return Ok(None);
        };
        let mut payload = vec![0; cell.length as usize];
        match segment
            .file
            .read((u64::from(cell.line) + 1) * CELL as u64, &mut payload)
        {
            Ok(()) => {}
            Err(error) if is_damage(error.fault) => return Ok(None),
            Err(error) => return Err(error),
        }
        let is_whole = checksum(&payload) == cell.payload;
        Ok(is_whole.then(|| Entry::Commands(payload.into())))
    }

    pub(crate) fn last(&self) -> &Segment<D::File> {
        // There is one from the opening on, and the last is never given back.
        &self.segments[self.segments.len() - 1]
    }

    pub(crate) fn origin(&self, generation: u64) -> Origin {
        Origin {
            identity: self.identity,
            generation,
        }
    }
}

impl<D: Disk> fmt::Debug for Log<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("identity", &self.identity)
            .field("promised", &self.promised())
            .field("appended", &self.appended)
            .field("synced", &self.synced)
            .field("trimmed", &self.trimmed())
            .field("stopped", &self.stopped)
            .finish_non_exhaustive()
    }
}
