//! The log of a node: what it promised and what it accepted, durable.

use std::fmt;

use sprag_paxos::simulation::{Bug, planted};
use sprag_paxos::{Answer, Ballot, Entry, Record, Slot, Vote, Voter};

use crate::cell::{CELL, Cell, Kind, Origin};
use crate::disk::{Disk, DiskError};
use crate::error::LogError;
use crate::identity::Identity;
use crate::options::LogOptions;
use crate::record::{self, Draft, Size};
use crate::recover::Opening;
use crate::segments::Segments;
use crate::slots::{Held, Slots};
use crate::sync::Progress;
use crate::upkeep::Upkeep;
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
    pub(crate) vote: VoteFile<D::File>,
    options: LogOptions,
    pub(crate) segments: Segments<D::File>,
    pub(crate) slots: Slots,
    pub(crate) progress: Progress,
    pub(crate) upkeep: Upkeep<D::File>,
    stopped: Option<DiskError>,
}

impl<D: Disk> Log<D> {
    /// Goes on with what was found.
    pub(crate) fn opened(opening: Opening<D>, segments: Segments<D::File>, slots: Slots) -> Log<D> {
        Log {
            disk: opening.disk,
            vote: opening.vote,
            options: opening.options,
            segments,
            slots,
            progress: Progress::default(),
            upkeep: Upkeep::new(opening.layout),
            stopped: None,
        }
    }

    /// Who votes on this disk.
    pub fn voter(&self) -> Voter {
        self.identity().voter
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
        self.slots.decided()
    }

    /// All that was appended up to here.
    pub fn appended(&self) -> Position {
        self.progress.appended()
    }

    /// All that was appended up to here is durable.
    pub fn synced(&self) -> Position {
        self.progress.synced()
    }

    /// How many segments hold what isn't trimmed: at most [`LogOptions::segments_max`].
    pub fn segments(&self) -> usize {
        self.segments.all().count()
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
        self.check_slots(records, room)?;
        let drafts = records.iter().filter_map(Draft::of);
        self.make_room(Size::of(drafts.clone()), room.segments_max)?;
        let promised = records.iter().map(record::promised);
        self.raise(promised.fold(Ballot::NONE, Ballot::max))?;
        self.write(drafts)
    }

    /// Refuses slots that are trimmed, and those that are too far.
    fn check_slots(&self, records: &[Record], room: Room) -> Result<(), LogError> {
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
        Ok(())
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
            .make_room(Size::of(draft.clone()), usize::MAX)
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

    /// Sees to it that a batch of this size fits into the last segment.
    fn make_room(&mut self, size: Size, segments_max: usize) -> Result<(), LogError> {
        if self.segments.has_room(size) {
            return Ok(());
        }
        let next = self.upkeep.next_layout();
        if !size.fits(next, 0, next.body()) {
            return Err(LogError::TooLarge {
                records: size.records,
                bytes: size.lines * CELL as u64,
                records_max: next.records_max().into(),
                bytes_max: u64::from(next.body_lines()) * CELL as u64,
            });
        }
        if self.is_full(segments_max) {
            return Err(LogError::Full { segments_max });
        }
        if !self.upkeep.is_ready() {
            if self.upkeep.is_under_way() {
                return Err(LogError::Busy("upkeep"));
            }
            self.upkeep()?;
        }
        if let Some(ready) = self.upkeep.take_ready() {
            self.segments.go_on_in(ready, self.identity());
        }
        Ok(())
    }

    /// Whether there are so many segments that hold what isn't trimmed, and the oldest could be. What isn't decided can't
    /// be, and may need just what is to be written next.
    fn is_full(&self, segments_max: usize) -> bool {
        let (trimmed, decided) = (self.trimmed(), self.decided());
        let segments = self.segments.all();
        let mut needed = segments.skip_while(|segment| segment.slot_max <= trimmed);
        needed.clone().count() >= segments_max
            && needed
                .next()
                .is_some_and(|oldest| oldest.slot_max <= decided)
    }

    /// Writes the drafts as one batch; there is room.
    fn write<'a>(&mut self, drafts: impl Iterator<Item = Draft<'a>>) -> Result<Position, LogError> {
        let mut drafts = drafts.peekable();
        if drafts.peek().is_none() {
            return Ok(self.appended());
        }
        let batch = self.segments.begin_batch(self.identity());
        let generation = self.segments.last().generation;
        let mut oldest_needed = None;
        while let Some(mut draft) = drafts.next() {
            if draft.kind == Kind::Trimmed {
                self.slots.trim(draft.slot);
                draft.slot = self.trimmed();
                draft.ballot.round = self.segments.oldest_above(draft.slot);
                oldest_needed = Some(draft.ballot.round);
            }
            let cell = self.segments.put(&batch, &draft, drafts.peek().is_none());
            if cell.kind == Kind::Decided {
                self.slots.decide(cell.slot);
            }
            self.slots.note(generation, cell);
        }
        let written = self.segments.write(&batch);
        let records = written.map_err(|error| self.stop(error))?;
        self.progress.advance(records);
        if let Some(oldest) = oldest_needed {
            self.progress.await_trim(oldest);
            if planted(Bug::TrimBeforeSync) {
                self.give_back(oldest);
            }
        }
        Ok(self.appended())
    }

    /// The segments below `first` are no longer needed, and that is durable.
    pub(crate) fn give_back(&mut self, first: u64) {
        self.upkeep.discard(self.segments.take_below(first));
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
        let payload = self.segments.read(generation, cell)?;
        Ok(payload.map(|payload| Entry::Commands(payload.into())))
    }

    fn identity(&self) -> Identity {
        self.vote.record().identity
    }

    pub(crate) fn origin(&self, generation: u64) -> Origin {
        Origin {
            identity: self.identity(),
            generation,
        }
    }
}

impl<D: Disk> fmt::Debug for Log<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("identity", &self.identity())
            .field("promised", &self.promised())
            .field("appended", &self.appended())
            .field("synced", &self.synced())
            .field("trimmed", &self.trimmed())
            .field("stopped", &self.stopped)
            .finish_non_exhaustive()
    }
}
