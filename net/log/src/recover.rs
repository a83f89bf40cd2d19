//! From what was found in a log's files to a log that goes on: what counts is made durable, the rest is taken away.

use std::cmp::Ordering;
use std::collections::VecDeque;

use sprag_paxos::simulation::{Bug, planted};
use sprag_paxos::{Ballot, Slot};

use crate::bytes::UNIT;
use crate::cell::{CELL, Cell, Origin};
use crate::disk::{Disk, DiskError, DiskFile};
use crate::error::OpenError;
use crate::identity::Identity;
use crate::judge::{At, Verdict, judge, kept};
use crate::log::{Log, Position};
use crate::open::Recovered;
use crate::options::LogOptions;
use crate::scan::{Found, Scan, line_after, read_image};
use crate::segment::{self, Layout, Segment, UNIT_LINES};
use crate::slots::Slots;
use crate::upkeep::{Ready, prepare};
use crate::vote::VoteFile;

/// A log whose segments were read.
pub(crate) struct Opening<D: Disk> {
    pub(crate) disk: D,
    pub(crate) identity: Identity,
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
    ) -> Result<(Log<D>, Recovered), OpenError> {
        let verdict = judge(&scans);
        // The log is never without a segment, unless somebody took it.
        let last = misshapen.iter().copied().max().unwrap_or(0);
        let mut verdict = verdict.unwrap_or(Verdict {
            first: 1,
            proven: (0, 0),
            end: (last, 0),
            is_lost: true,
            trimmed: Slot::NONE,
            decided: Slot::NONE,
        });
        verdict.is_lost |= last >= verdict.first;
        self.remember(&scans, &verdict)?;

        let mut slots = Slots::new(verdict.trimmed);
        let mut line = 0;
        let mut header = Vec::new();
        for scan in scans.iter().filter(|scan| verdict.keeps(scan.generation)) {
            note(&mut slots, scan, verdict.end);
            if scan.is_scarred || scan.generation >= verdict.proven.0.min(verdict.end.0) {
                (line, header) = self.write_back(scan, &verdict)?;
            }
        }
        // Only now that what says so is durable.
        let ready = self.remove_useless(&mut scans, misshapen, &verdict)?;
        let previous = kept(&scans, verdict.first, verdict.end)
            .last()
            .map_or(0, |(_, cell)| cell.checksum);
        let mut segments: VecDeque<_> = scans
            .into_iter()
            .map(|scan| in_use(scan, verdict.end))
            .collect();
        if segments.is_empty() {
            let made = prepare(&self.disk, self.origin(verdict.end.0 + 1), self.layout)?;
            line = made.layout.body();
            header = segment::empty_header(made.layout, self.origin(made.generation));
            segments.push_back(Segment {
                generation: made.generation,
                file: made.file,
                layout: made.layout,
                count: 0,
                synced: 0,
                slot_max: Slot::NONE,
            });
        }
        let log = Log {
            disk: self.disk,
            identity: self.identity,
            vote: self.vote,
            options: self.options,
            layout: self.layout,
            segments,
            header,
            line,
            previous,
            ready,
            discard: Vec::new(),
            trim: None,
            slots,
            decided: verdict.decided,
            appended: Position(0),
            synced: Position(0),
            is_syncing: false,
            is_in_upkeep: false,
            batch: Vec::new(),
            stopped: None,
        };
        let recovered = log.recovered()?;
        Ok((log, recovered))
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

    /// Removes the segments that are trimmed, and those after the log's end but for one that can be used next.
    fn remove_useless(
        &self,
        scans: &mut Vec<Scan<D::File>>,
        misshapen: &[u64],
        verdict: &Verdict,
    ) -> Result<Option<Ready<D::File>>, DiskError> {
        let mut ready = None;
        let mut useless = misshapen.to_vec();
        for scan in std::mem::take(scans) {
            let generation = scan.generation;
            if verdict.keeps(generation) {
                scans.push(scan);
            } else if generation == verdict.end.0 + 1
                && scan.is_unused
                && scan.layout == self.layout
            {
                let (file, layout) = (scan.file, scan.layout);
                ready = Some(Ready {
                    generation,
                    file,
                    layout,
                });
            } else {
                useless.push(generation);
            }
        }
        for generation in &useless {
            self.disk.remove(&segment::name(*generation))?;
        }
        self.disk.sync_directory()?;
        Ok(ready)
    }

    /// Writes anew what isn't proven to be durable, and takes away what lies beyond the log's end: first in the front of
    /// the segment, then in its body, so that one trace of each record is whole at any time. Returns where the next
    /// batch would go, and the front.
    fn write_back(
        &self,
        scan: &Scan<D::File>,
        verdict: &Verdict,
    ) -> Result<(u32, Vec<u8>), DiskError> {
        let origin = self.origin(scan.generation);
        let layout = scan.layout;
        let count = count(scan, verdict.end);
        let from = match scan.generation.cmp(&verdict.proven.0) {
            _ if planted(Bug::FoundTakenForDurable) => count,
            Ordering::Less => count,
            Ordering::Equal => verdict.proven.1,
            Ordering::Greater => 0,
        };
        let mut image = read_image(&scan.file, layout)?;

        let mut header = image[..layout.header_bytes()].to_vec();
        let (mut rewritten_from, mut rewritten_to) = (u32::MAX, 0);
        let mut line = layout.body();
        for (index, place) in (0..).zip(header.chunks_exact_mut(CELL)) {
            match scan.found.get(index as usize) {
                Some(Found::Record { cell, .. }) if index < count => {
                    cell.encode(origin, index.into(), place);
                    line = line.max(line_after(cell).next_multiple_of(UNIT_LINES));
                    if index >= from {
                        rewritten_from = rewritten_from.min(cell.line);
                        rewritten_to = line;
                    }
                }
                // Nothing but damage: it stays, so that nobody takes it for unwritten.
                _ if index < count => {}
                _ => Cell::encode_empty(origin, index.into(), place),
            }
        }
        let mut is_written = false;
        let units = header
            .chunks_exact(UNIT)
            .zip(image.chunks_exact(UNIT))
            .enumerate();
        for (unit, (bytes, before)) in units {
            let indexes = unit as u32 * UNIT_LINES..(unit as u32 + 1) * UNIT_LINES;
            if bytes != before || (indexes.start < count && indexes.end > from) {
                scan.file.write((unit * UNIT) as u64, bytes)?;
                is_written = true;
            }
        }
        if is_written {
            scan.file.sync()?;
        }

        let mut is_written = false;
        let units = image
            .chunks_exact_mut(UNIT)
            .enumerate()
            .skip(layout.header_units() as usize);
        for (unit, bytes) in units {
            let lines = unit as u32 * UNIT_LINES..(unit as u32 + 1) * UNIT_LINES;
            let is_beyond =
                lines.start >= line && !segment::is_empty_unit(bytes, origin, unit as u32);
            if is_beyond {
                segment::encode_empty_unit(origin, unit as u32, bytes);
            }
            if is_beyond || (lines.start < rewritten_to && lines.end > rewritten_from) {
                scan.file.write((unit * UNIT) as u64, bytes)?;
                is_written = true;
            }
        }
        if is_written {
            scan.file.sync()?;
        }
        Ok((line, header))
    }

    fn origin(&self, generation: u64) -> Origin {
        Origin {
            identity: self.identity,
            generation,
        }
    }
}

impl<D: Disk> Log<D> {
    fn recovered(&self) -> Result<Recovered, DiskError> {
        let vote = self.vote.record();
        let answers = self
            .slots
            .all()
            .map(|(slot, held)| Ok((slot, self.answer(held)?)));
        Ok(Recovered {
            voter: self.identity.voter,
            promised: vote.promised,
            trimmed: self.slots.trimmed(),
            decided: self.decided(),
            lost: (vote.lost > Ballot::NONE).then_some(vote.lost),
            answers: answers.collect::<Result<_, DiskError>>()?,
        })
    }
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
            Found::Record {
                cell,
                is_whole: true,
            } if cell.is_accepted() => slots.accept(scan.generation, *cell),
            Found::Record {
                cell,
                is_whole: false,
            } if cell.is_accepted() => {
                slots.cannot_read(cell.slot, cell.ballot);
            }
            Found::Record { .. } | Found::Nothing { .. } => {}
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
            Found::Record { cell, .. } if cell.is_accepted() => cell.slot,
            Found::Record { .. } | Found::Nothing { .. } => Slot::NONE,
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
