//! What a log wants done beside its writing: give back the segments that are trimmed, and make the next one ready. It
//! may run on another thread.

use sprag_paxos::Slot;
use sprag_paxos::simulation::{Bug, planted};

use crate::cell::Origin;
use crate::disk::{Disk, DiskError, DiskFile, Fault};
use crate::error::LogError;
use crate::log::Log;
use crate::segment::{self, Layout, Segment};

/// A segment while it is made.
pub(crate) const SPARE: &str = "spare";

/// A segment without records, durable in full.
pub(crate) struct Ready<F> {
    pub(crate) generation: u64,
    pub(crate) file: F,
    pub(crate) layout: Layout,
}

impl<F> Ready<F> {
    /// The segment, to be written to.
    pub(crate) fn into_segment(self) -> Segment<F> {
        Segment {
            generation: self.generation,
            file: self.file,
            layout: self.layout,
            count: 0,
            synced: 0,
            slot_max: Slot::NONE,
        }
    }
}

/// What was made ready, and what is to be given back.
pub(crate) struct Upkeep<F> {
    /// Of the segments that are made from now on.
    layout: Layout,
    /// The next segment.
    ready: Option<Ready<F>>,
    /// Segments that a durable record says are no longer needed.
    discard: Vec<(u64, Layout)>,
    is_under_way: bool,
}

impl<F> Upkeep<F> {
    pub(crate) fn new(layout: Layout) -> Self {
        Self {
            layout,
            ready: None,
            discard: Vec::new(),
            is_under_way: false,
        }
    }

    /// How the next segment is laid out.
    pub(crate) fn next_layout(&self) -> Layout {
        self.ready
            .as_ref()
            .map_or(self.layout, |ready| ready.layout)
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.is_some()
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.is_under_way
    }

    pub(crate) fn take_ready(&mut self) -> Option<Ready<F>> {
        self.ready.take()
    }

    /// A durable record says that these segments are no longer needed.
    pub(crate) fn discard(&mut self, segments: Vec<(u64, Layout)>) {
        self.discard.extend(segments);
    }
}

/// Work for the disk, from [`Log::begin_upkeep`](crate::Log::begin_upkeep).
pub struct UpkeepJob<D: Disk> {
    disk: D,
    /// Segments that a durable record says are no longer needed.
    discard: Vec<(u64, Layout)>,
    prepare: Option<(Origin, Layout)>,
}

/// What came of an [`UpkeepJob`]; [`Log::finish_upkeep`](crate::Log::finish_upkeep) takes it.
pub struct UpkeepDone<D: Disk> {
    outcome: Outcome<D::File>,
}

enum Outcome<F> {
    Done(Option<Ready<F>>),
    /// No room for another segment; nothing is left of it.
    Full(DiskError),
    Failed(DiskError),
}

impl<D: Disk> UpkeepJob<D> {
    /// Does it. Takes as long as writing a segment and syncing it.
    pub fn run(self) -> UpkeepDone<D> {
        let outcome = match self.discard() {
            Err(error) => Outcome::Failed(error),
            Ok(()) => match self.prepare() {
                Ok(ready) => Outcome::Done(ready),
                Err(error) if error.is_want_of_room() => {
                    // Half a segment would keep what is missing elsewhere.
                    let _ = self.disk.remove(SPARE);
                    Outcome::Full(error)
                }
                Err(error) => Outcome::Failed(error),
            },
        };
        UpkeepDone { outcome }
    }

    /// One becomes the spare, if that is wanted; the others go. Any that comes back after a power cut is known by its
    /// generation, so nothing waits for the directory here.
    fn discard(&self) -> Result<(), DiskError> {
        let mut wanted = self.prepare.map(|(_, layout)| layout);
        for (generation, layout) in &self.discard {
            let name = segment::name(*generation);
            if wanted == Some(*layout) {
                self.disk.rename(&name, SPARE)?;
                wanted = None;
            } else {
                self.disk.remove(&name)?;
            }
        }
        if self.prepare.is_none() && !self.discard.is_empty() {
            self.disk.sync_directory()?;
        }
        Ok(())
    }

    fn prepare(&self) -> Result<Option<Ready<D::File>>, DiskError> {
        match self.prepare {
            Some((origin, layout)) => prepare(&self.disk, origin, layout).map(Some),
            None => Ok(None),
        }
    }
}

/// Makes a segment, out of the spare if there is one: the name that counts comes last.
pub(crate) fn prepare<D: Disk>(
    disk: &D,
    origin: Origin,
    layout: Layout,
) -> Result<Ready<D::File>, DiskError> {
    let (file, is_new) = match disk.open(SPARE) {
        Ok(file) => (file, false),
        Err(error) if error.fault == Fault::NotFound => {
            (disk.create(SPARE, layout.bytes() as u64)?, true)
        }
        Err(error) => return Err(error),
    };
    if is_new || !planted(Bug::RecycledRecordTaken) {
        segment::format(&file, layout, origin)?;
    }
    file.sync()?;
    disk.rename(SPARE, &segment::name(origin.generation))?;
    if !planted(Bug::SegmentUsedBeforeItsName) {
        disk.sync_directory()?;
    }
    Ok(Ready {
        generation: origin.generation,
        file,
        layout,
    })
}

impl<D: Disk> Log<D> {
    /// What gives back the segments that are trimmed and makes the next one ready; it may run on another thread, while
    /// appends go on. `None` where there is nothing to do, or one is under way; to ask costs nothing, and is best done
    /// after each opening, append and sync. Without it appends do as much themselves when a segment is full.
    ///
    /// # Errors
    /// [`LogError::Stopped`].
    pub fn begin_upkeep(&mut self) -> Result<Option<UpkeepJob<D>>, LogError> {
        self.running()?;
        let next = self.origin(self.segments.last().generation + 1);
        let upkeep = &mut self.upkeep;
        let is_wanted = upkeep.ready.is_none();
        if upkeep.is_under_way || (upkeep.discard.is_empty() && !is_wanted) {
            return Ok(None);
        }
        upkeep.is_under_way = true;
        Ok(Some(UpkeepJob {
            disk: self.disk.clone(),
            discard: std::mem::take(&mut upkeep.discard),
            prepare: is_wanted.then_some((next, upkeep.layout)),
        }))
    }

    /// Takes what came of an upkeep.
    ///
    /// # Errors
    /// [`LogError::DiskFull`] where there was no room for another segment; [`LogError::Disk`] where it failed, with which
    /// the log has stopped; [`LogError::Stopped`] where it had.
    pub fn finish_upkeep(&mut self, done: UpkeepDone<D>) -> Result<(), LogError> {
        self.upkeep.is_under_way = false;
        self.running()?;
        match done.outcome {
            Outcome::Done(ready) => {
                let upkeep = &mut self.upkeep;
                upkeep.ready = ready.or(upkeep.ready.take());
                Ok(())
            }
            Outcome::Full(error) => Err(LogError::DiskFull(error)),
            Outcome::Failed(error) => Err(self.stop(error)),
        }
    }

    /// Does the upkeep, here and now, if there is any.
    ///
    /// # Errors
    /// As [`finish_upkeep`](Self::finish_upkeep).
    pub fn upkeep(&mut self) -> Result<(), LogError> {
        match self.begin_upkeep()? {
            Some(job) => {
                let done = job.run();
                self.finish_upkeep(done)
            }
            None => Ok(()),
        }
    }
}
