//! From what was found in a log's files to a log that goes on: what counts is made durable, the rest is taken away.

use std::cmp::Ordering;
use std::collections::VecDeque;

use sprag_paxos::simulation::{Bug, Mark, planted, reach};
use sprag_paxos::{Answer, Ballot, Recovered, Slot};

use crate::cell::{CELL, Origin};
use crate::disk::{Disk, DiskError};
use crate::error::OpenError;
use crate::judge::{At, Verdict, judge, kept};
use crate::log::Log;
use crate::open::Found;
use crate::options::LogOptions;
use crate::repair::{Repaired, repair};
use crate::scan::{Remains, Scan};
use crate::segment::{self, Layout, Segment};
use crate::segments::Segments;
use crate::slots::Slots;
use crate::upkeep::prepare;
use crate::vote::VoteFile;

/// A log whose segments were read.
pub(crate) struct Opening<D: Disk> {
    pub(crate) disk: D,
    pub(crate) vote: VoteFile<D::File>,
    pub(crate) options: LogOptions,
    pub(crate) layout: Layout,
}

impl<D: Disk> Opening<D> {
    /// Judges the segments, which are in order; `misshapen` are those of a length that no segment has.
    pub(crate) fn finish(
        mut self,
        mut scans: Vec<Scan<D::File>>,
        misshapen: &[u64],
    ) -> Result<(Log<D>, Found), OpenError> {
        let verdict = verdict(&scans, misshapen);
        self.remember(&scans, &verdict)?;
        self.end_batch(&mut scans, &verdict);
        let mut slots = Slots::new(verdict.trimmed, verdict.decided);
        let mut last = None;
        for scan in scans.iter().filter(|scan| verdict.keeps(scan.generation)) {
            note(&mut slots, scan, verdict.end);
            if scan.is_scarred || scan.generation >= verdict.proven.0.min(verdict.end.0) {
                last = Some(self.repair(scan, &verdict)?);
            }
        }
        // Only now that what says so is durable.
        self.remove_useless(&mut scans, misshapen, &verdict)?;
        let segments = self.segments(scans, last, &verdict)?;
        let mut log = Log::opened(self, segments, slots);
        let found = log.found()?;
        if found.state.decided < log.decided() {
            reach(Mark::DecidedTakenBack);
            log.take_back_decided(found.state.decided)?;
        }
        Ok((log, found))
    }

    /// Writes to the vote what was found, before anything that was found is touched.
    fn remember(&mut self, scans: &[Scan<D::File>], verdict: &Verdict) -> Result<(), DiskError> {
        let vote = self.vote.record();
        let accepted =
            kept(scans, verdict.first, verdict.end).filter(|(_, cell)| cell.is_accepted());
        let promised = accepted.fold(vote.promised, |highest, (_, cell)| highest.max(cell.ballot));
        let lost = if verdict.is_lost { promised } else { vote.lost };
        // Also where nothing changes: what was read may be in the cache only.
        self.vote.write(promised, lost)
    }

    /// The last record that counts may have had others after it in its batch, of which none counts. The next comes in a
    /// batch of its own, and is looked for where one begins.
    fn end_batch(&self, scans: &mut [Scan<D::File>], verdict: &Verdict) {
        let (generation, count) = verdict.end;
        let origin = self.origin(generation);
        let scan = scans.iter_mut().find(|scan| scan.generation == generation);
        if let (Some(scan), Some(index)) = (scan, count.checked_sub(1))
            && let Some(Remains::Record { cell, .. }) = scan.found.get_mut(index as usize)
            && !cell.ends_batch
        {
            cell.ends_batch = true;
            cell.checksum = cell.encode(origin, index.into(), &mut [0; CELL]);
        }
    }

    /// Removes the segments that are trimmed, and those after the log's end: though they may say that they are unused, a
    /// sync that failed may be why.
    fn remove_useless(
        &self,
        scans: &mut Vec<Scan<D::File>>,
        misshapen: &[u64],
        verdict: &Verdict,
    ) -> Result<(), DiskError> {
        let useless = scans.iter().map(|scan| scan.generation);
        let useless = useless.filter(|generation| !verdict.keeps(*generation));
        let mut useless: Vec<u64> = useless.chain(misshapen.iter().copied()).collect();
        useless.sort_unstable();
        // From the last on, each durably before the next: one that comes back alone would look as if the one before it was lost.
        for generation in useless.into_iter().rev() {
            self.disk.remove(&segment::name(generation))?;
            if generation > verdict.end.0 {
                self.disk.sync_directory()?;
            }
        }
        scans.retain(|scan| verdict.keeps(scan.generation));
        // Though nothing was removed: what is kept may have its name in the cache only.
        self.disk.sync_directory()
    }

    /// Makes durable what counts in a segment: it may be in the system's cache only, from before a sync that failed.
    fn repair(&self, scan: &Scan<D::File>, verdict: &Verdict) -> Result<Repaired, DiskError> {
        let count = count(scan, verdict.end);
        let from = match scan.generation.cmp(&verdict.proven.0) {
            _ if planted(Bug::FoundTakenForDurable) => None,
            Ordering::Less => None,
            Ordering::Equal => Some(verdict.proven.1),
            Ordering::Greater => Some(0),
        };
        repair(scan, self.origin(scan.generation), from, count)
    }

    /// The segments that are left, of which the last was repaired; a new one where none is.
    fn segments(
        &self,
        scans: Vec<Scan<D::File>>,
        last: Option<Repaired>,
        verdict: &Verdict,
    ) -> Result<Segments<D::File>, DiskError> {
        let previous = kept(&scans, verdict.first, verdict.end)
            .last()
            .map_or(0, |(_, cell)| cell.checksum);
        let in_use = scans.into_iter().map(|scan| in_use(scan, verdict.end));
        let mut in_use: VecDeque<_> = in_use.collect();
        if let Some(repaired) = last
            && let Some(last) = in_use.pop_back()
        {
            return Ok(Segments::new(in_use, last, repaired, previous));
        }
        let origin = self.origin(verdict.end.0 + 1);
        let made = prepare(&self.disk, origin, self.layout)?;
        let last = Repaired {
            header: segment::empty_header(made.layout, origin),
            line: made.layout.body(),
        };
        Ok(Segments::new(in_use, made.into_segment(), last, previous))
    }

    fn origin(&self, generation: u64) -> Origin {
        Origin {
            identity: self.vote.record().identity,
            generation,
        }
    }
}

impl<D: Disk> Log<D> {
    fn found(&self) -> Result<Found, DiskError> {
        let vote = self.vote.record();
        let trimmed = self.trimmed();
        let mut state = Recovered {
            promised: vote.promised,
            decided: trimmed,
            trimmed,
            snapshot: trimmed,
            ..Recovered::default()
        };
        for (slot, held) in self.slots.all() {
            let answer = self.answer(held)?;
            let learned = match &held.learned {
                Some((generation, cell)) => self.entry(*generation, cell)?,
                None => None,
            };
            let is_accepted = matches!(answer, Answer::Accepted(_)) && held.learned.is_none();
            let is_known = learned.is_some() || is_accepted;
            // Where something is lost, it may have been what came last.
            let is_next = slot == state.decided.next() && vote.lost == Ballot::NONE;
            if is_next
                && is_known
                && slot <= self.decided()
                && (!held.is_unread || planted(Bug::UnreadTakenForDecided))
            {
                state.decided = slot;
                state.learned.extend(learned.map(|entry| (slot, entry)));
            }
            if answer != Answer::Never {
                state.answers.insert(slot, answer);
            }
        }
        Ok(Found {
            voter: self.voter(),
            lost: (vote.lost > Ballot::NONE).then_some(vote.lost),
            state,
        })
    }
}

/// Judges the segments, though none may be left.
fn verdict<F>(scans: &[Scan<F>], misshapen: &[u64]) -> Verdict {
    let last = misshapen.iter().copied().max().unwrap_or(0);
    // The log is never without a segment, unless somebody took it.
    let mut verdict = judge(scans).unwrap_or(Verdict {
        first: 1,
        proven: (0, 0),
        end: (last, 0),
        is_lost: true,
        trimmed: Slot::NONE,
        decided: Slot::NONE,
    });
    verdict.is_lost |= last >= verdict.first;
    verdict
}

/// How many records of a segment count.
fn count<F>(scan: &Scan<F>, end: At) -> u32 {
    if scan.generation == end.0 {
        end.1
    } else {
        scan.found.len() as u32 - 1
    }
}

fn note<F>(slots: &mut Slots, scan: &Scan<F>, end: At) {
    for found in scan.found.iter().take(count(scan, end) as usize) {
        match found {
            Remains::Record { cell, is_whole } if *is_whole => slots.note(scan.generation, *cell),
            Remains::Record { cell, .. } => slots.note_unreadable(cell),
            Remains::Nothing { .. } => {}
        }
    }
}

fn in_use<F>(scan: Scan<F>, end: At) -> Segment<F> {
    let count = count(&scan, end);
    let slots = scan
        .found
        .iter()
        .take(count as usize)
        .map(|found| match found {
            Remains::Record { cell, .. } if cell.is_accepted() || cell.is_learned() => cell.slot,
            Remains::Record { .. } | Remains::Nothing { .. } => Slot::NONE,
        });
    Segment {
        generation: scan.generation,
        slot_max: slots.fold(Slot::NONE, Slot::max),
        file: scan.file,
        layout: scan.layout,
        count,
        synced: count,
    }
}
