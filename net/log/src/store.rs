//! The store: carries out what a voter asks to be persisted, and says up to where that is durable.

use std::collections::VecDeque;

use sprag_paxos::{Record, Ticket};

use crate::disk::Disk;
use crate::error::LogError;
use crate::log::{Log, Position, Room};
use crate::sync::{SyncDone, SyncJob};
use crate::upkeep::{UpkeepDone, UpkeepJob};

/// A ticket that isn't reported yet.
#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    /// Where its record is in the log, once it is written; a promise is durable by then.
    position: Option<Position>,
}

/// So many records, or bytes of them, are written at the latest, though nothing waits for them.
const UNWRITTEN_MAX: usize = 1024;
const UNWRITTEN_BYTES_MAX: usize = 1 << 20;

fn payload_bytes(record: &Record) -> usize {
    match record {
        Record::Accepted { vote, .. } => vote.entry.bytes(),
        Record::Learned { entry, .. } => entry.bytes(),
        Record::Promised(_) | Record::Decided(_) | Record::Trimmed(_) => 0,
    }
}

/// A log, and the tickets of what is to be written to it.
///
/// What comes while a sync is under way waits for the next, and is then written in one batch: so of two batches in the
/// log, the first was durable before the second was written. When a sync runs, and where, is up to the host: at once
/// when nothing else is to do, on another thread while more comes.
pub struct Store<D: Disk> {
    log: Log<D>,
    /// Not written yet.
    records: Vec<Record>,
    /// What those hold, about.
    unwritten_bytes: usize,
    waiting: VecDeque<Waiting>,
    durable: Ticket,
    /// Something that isn't durable is waited for, or there is much of it, and no sync that covers it has begun.
    wants_sync: bool,
}

impl<D: Disk> Store<D> {
    /// Around an open log, for a voter that has asked for nothing yet.
    pub fn new(log: Log<D>) -> Self {
        Self {
            log,
            records: Vec::new(),
            unwritten_bytes: 0,
            waiting: VecDeque::new(),
            durable: Ticket::NONE,
            wants_sync: false,
        }
    }

    /// The log.
    pub fn log(&self) -> &Log<D> {
        &self.log
    }

    /// Takes a record. A promise, and an acceptance above it, syncs the vote file, twice, before this returns.
    ///
    /// # Errors
    /// As [`Log::promise`]. The ticket is then never reported, and so is none after it.
    pub fn persist(&mut self, ticket: Ticket, record: Record) -> Result<(), LogError> {
        self.unwritten_bytes += payload_bytes(&record);
        let is_much =
            self.records.len() >= UNWRITTEN_MAX || self.unwritten_bytes >= UNWRITTEN_BYTES_MAX;
        self.wants_sync |= record.is_urgent() || is_much;
        let is_promise = match &record {
            Record::Promised(ballot) => {
                self.log.promise(*ballot)?;
                true
            }
            Record::Accepted { vote, .. } if vote.ballot > self.log.promised() => {
                self.log.promise(vote.ballot)?;
                false
            }
            _ => false,
        };
        if !is_promise {
            self.records.push(record);
        }
        // Of what is not written yet, where it will be.
        let unwritten = self.records.len() as u64;
        let position = Position(self.log.appended().0 + unwritten);
        self.waiting.push_back(Waiting {
            ticket,
            position: (!is_promise).then_some(position),
        });
        self.report();
        Ok(())
    }

    /// Whether [`begin_sync`](Self::begin_sync) has something to write.
    pub fn wants_sync(&self) -> bool {
        self.wants_sync
    }

    /// Everything up to this ticket is durable.
    pub fn durable(&self) -> Ticket {
        self.durable
    }

    /// Writes what has come and begins a sync, if one is waited for and none is under way; see [`Log::begin_sync`]. `None`
    /// also while the segment that is needed is being made: to be called again when that is finished.
    ///
    /// # Errors
    /// As [`Log::append`], but for [`LogError::Busy`]; [`LogError::Stopped`]. What was refused for want of room is kept, and
    /// written by a later call: in one batch with a [`Record::Trimmed`] that comes meanwhile, which makes room.
    pub fn begin_sync(&mut self) -> Result<Option<SyncJob<D::File>>, LogError> {
        if !self.wants_sync || self.log.progress.is_syncing() {
            return Ok(None);
        }
        let mut records = std::mem::take(&mut self.records);
        let before = self.log.appended();
        let appended = self.append(&records, self.log.room_for(&records));
        records.drain(..(self.log.appended().0 - before.0) as usize);
        self.wants_sync = !records.is_empty();
        self.unwritten_bytes = records.iter().map(payload_bytes).sum();
        self.records = records;
        match appended {
            Err(LogError::Busy(_)) => Ok(None),
            Err(error) => Err(error),
            Ok(()) => self.log.begin_sync(),
        }
    }

    /// What makes the next segment ready; see [`Log::begin_upkeep`].
    ///
    /// # Errors
    /// [`LogError::Stopped`].
    pub fn begin_upkeep(&mut self) -> Result<Option<UpkeepJob<D>>, LogError> {
        self.log.begin_upkeep()
    }

    /// Takes what came of an upkeep.
    ///
    /// # Errors
    /// As [`Log::finish_upkeep`].
    pub fn finish_upkeep(&mut self, done: UpkeepDone<D>) -> Result<(), LogError> {
        self.log.finish_upkeep(done)
    }

    /// In one batch, or in as few as a segment has room for: what is trimmed in one makes room for all of them.
    fn append(&mut self, records: &[Record], room: Room) -> Result<(), LogError> {
        match self.log.append_within(records, room) {
            Err(LogError::TooLarge { .. }) if records.len() > 1 => {
                let (first, second) = records.split_at(records.len() / 2);
                self.append(first, room)?;
                self.append(second, room)
            }
            appended => appended.map(|_| ()),
        }
    }

    /// Takes what came of a sync.
    ///
    /// # Errors
    /// As [`Log::finish_sync`].
    pub fn finish_sync(&mut self, done: SyncDone<D::File>) -> Result<(), LogError> {
        self.log.finish_sync(done)?;
        self.report();
        Ok(())
    }

    fn report(&mut self) {
        let synced = self.log.synced();
        let is_durable =
            |waiting: &Waiting| waiting.position.is_none_or(|position| position <= synced);
        while let Some(first) = self.waiting.front()
            && is_durable(first)
        {
            self.durable = first.ticket;
            self.waiting.pop_front();
        }
    }
}
