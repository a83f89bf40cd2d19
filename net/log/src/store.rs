//! The store: carries out what a voter asks to be persisted, and says up to where that is durable.

use std::collections::VecDeque;

use sprag_paxos::{Record, Ticket};

use crate::disk::Disk;
use crate::error::LogError;
use crate::log::{Log, Position};
use crate::sync::{SyncDone, SyncJob};

/// A ticket that isn't reported yet.
#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    /// Where its record is in the log; `None` for a promise, which is durable as soon as it is written.
    position: Option<Position>,
}

/// A log, and the tickets of what was written to it.
///
/// Writes happen as they come; a sync is wanted as soon as somebody waits for one, and covers all that was written
/// before it began. When to run it, and where, is up to the host: at once when nothing else is to do, on another thread
/// while more comes.
pub struct Store<D: Disk> {
    log: Log<D>,
    waiting: VecDeque<Waiting>,
    durable: Ticket,
    /// Something that isn't durable is waited for, and no sync that covers it has begun.
    wants_sync: bool,
}

impl<D: Disk> Store<D> {
    /// Around an open log, for a voter that has asked for nothing yet.
    pub fn new(log: Log<D>) -> Self {
        Self {
            log,
            waiting: VecDeque::new(),
            durable: Ticket::NONE,
            wants_sync: false,
        }
    }

    /// The log.
    pub fn log(&self) -> &Log<D> {
        &self.log
    }

    /// Writes a record. A promise, and an acceptance above it, syncs the vote file, twice, before this returns.
    ///
    /// # Errors
    /// As [`Log::append`] and [`Log::promise`]. The ticket is then never reported, and so is none after it.
    pub fn persist(&mut self, ticket: Ticket, record: &Record) -> Result<(), LogError> {
        let position = if let Record::Promised(ballot) = record {
            self.log.promise(*ballot)?;
            None
        } else {
            Some(self.log.append(std::slice::from_ref(record))?)
        };
        self.waiting.push_back(Waiting { ticket, position });
        self.report();
        self.wants_sync |= record.is_urgent() && self.durable < ticket;
        Ok(())
    }

    /// Everything up to this ticket is durable.
    pub fn durable(&self) -> Ticket {
        self.durable
    }

    /// Begins a sync, if one is waited for and none is under way; see [`Log::begin_sync`].
    ///
    /// # Errors
    /// [`LogError::Stopped`].
    pub fn begin_sync(&mut self) -> Result<Option<SyncJob<D::File>>, LogError> {
        if !self.wants_sync {
            return Ok(None);
        }
        let job = self.log.begin_sync()?;
        self.wants_sync = job.is_none();
        Ok(job)
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
