//! What the records that are found mean: which of them count, where the log ends, and whether something is lost.
//!
//! A record leaves two traces, a cell in the front of its segment and itself in the body, and is acknowledged only after
//! a sync of both. So one that was acknowledged and of which one trace is damaged still has the other. The first record
//! of which neither trace is there was therefore never synced, nor anything after it: the log ends before it. Unless a
//! record that can be read says that it had been synced; or both its places are damaged, which no power cut does. Then
//! something is lost.

use sprag_paxos::Slot;
use sprag_paxos::simulation::{Bug, planted};

use crate::cell::{Cell, Kind};
use crate::scan::{Remains, Scan};

/// A place in the log: a generation, and an index in its segment.
pub(crate) type At = (u64, u32);

/// The judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The oldest generation that is still needed.
    pub(crate) first: u64,
    /// Everything before this was synced, as records say.
    pub(crate) proven: At,
    /// Where the log ends, and goes on.
    pub(crate) end: At,
    /// Whether a record is gone whose slot nobody knows.
    pub(crate) is_lost: bool,
    /// All slots up to this one are in a snapshot.
    pub(crate) trimmed: Slot,
    /// All slots up to this one are decided.
    pub(crate) decided: Slot,
}

impl Verdict {
    /// Whether a segment is part of the log.
    pub(crate) fn keeps(&self, generation: u64) -> bool {
        (self.first..=self.end.0).contains(&generation)
    }
}

/// Judges segments, which are in order. `None` where none is left that could hold a log.
pub(crate) fn judge<F>(scans: &[Scan<F>]) -> Option<Verdict> {
    let all = || {
        scans
            .iter()
            .flat_map(|scan| records(scan, scan.found.len() as u32))
    };
    let proven = all().filter_map(|(at, cell)| Some((at.0, cell.proven.checked_sub(1)?)));
    let proven = proven.max().unwrap_or((0, 0));
    let oldest_named = |cell: &Cell| {
        if cell.kind == Kind::Trimmed {
            cell.ballot.round
        } else {
            1
        }
    };
    let mut first = all().map(|(_, cell)| oldest_named(cell)).max().unwrap_or(1);
    loop {
        let (end, is_lost) = end(scans, first, proven)?;
        let mut verdict = Verdict {
            first: 1,
            proven,
            end,
            is_lost,
            trimmed: Slot::NONE,
            decided: Slot::NONE,
        };
        for (_, cell) in kept(scans, first, end) {
            verdict.first = verdict.first.max(oldest_named(cell));
            match cell.kind {
                // The last one: it may take back what an earlier one said, but for what is trimmed.
                Kind::Decided => verdict.decided = cell.slot.max(verdict.trimmed),
                Kind::Trimmed => {
                    verdict.trimmed = verdict.trimmed.max(cell.slot);
                    verdict.decided = verdict.decided.max(cell.slot);
                }
                _ => {}
            }
        }
        // A trim that comes after the end was never synced, so nothing was given back for it.
        if verdict.first == first {
            return Some(verdict);
        }
        first = verdict.first;
    }
}

/// The records that count, in order.
pub(crate) fn kept<F>(scans: &[Scan<F>], first: u64, end: At) -> impl Iterator<Item = (At, &Cell)> {
    let scans = scans
        .iter()
        .filter(move |scan| (first..=end.0).contains(&scan.generation));
    scans.flat_map(move |scan| {
        let count = if scan.generation == end.0 {
            end.1
        } else {
            u32::MAX
        };
        records(scan, count)
    })
}

/// The first `count` records of a segment.
fn records<F>(scan: &Scan<F>, count: u32) -> impl Iterator<Item = (At, &Cell)> {
    let found = (0..count).zip(&scan.found);
    found.filter_map(|(index, found)| match found {
        Remains::Record { cell, .. } => Some(((scan.generation, index), cell)),
        Remains::Nothing { .. } => None,
    })
}

/// Where the log ends, and whether something before it, or at it, is lost. `None` without segments.
fn end<F>(scans: &[Scan<F>], first: u64, proven: At) -> Option<(At, bool)> {
    let mut is_lost = false;
    // The checksum of the record before, where that can be read. Before the very first there is none.
    let mut previous = (first == 1).then_some(0);
    let mut expected = first;
    let mut scans = scans.iter().filter(|scan| scan.generation >= first);
    while let Some(scan) = scans.next() {
        if scan.generation != expected {
            is_lost = true;
            previous = None;
        }
        expected = scan.generation + 1;
        let goes_on = scans.clone().any(Scan::has_records);
        let last = scan.found.len() as u32 - 1;
        for (index, found) in (0..).zip(&scan.found) {
            let at = (scan.generation, index);
            match *found {
                Remains::Record { cell, is_whole } => {
                    if !is_whole && planted(Bug::CorruptMiddleReadAsEnd) {
                        return Some((at, false));
                    }
                    if previous.is_some_and(|previous| previous != cell.previous)
                        && !planted(Bug::RecycledRecordTaken)
                    {
                        // Something is gone that came just before.
                        if at > proven {
                            return Some((at, is_lost));
                        }
                        is_lost = true;
                    }
                    previous = Some(cell.checksum);
                }
                Remains::Nothing { is_damaged } if index < last => {
                    if at >= proven {
                        return Some((at, is_lost || is_damaged));
                    }
                    is_lost = true;
                    previous = None;
                }
                Remains::Nothing { is_damaged } => {
                    let mut after = index;
                    if scan.generation == proven.0 && index < proven.1 {
                        is_lost = true;
                        previous = None;
                        after = proven.1;
                    }
                    is_lost |= is_damaged;
                    if !goes_on {
                        is_lost |= scans.any(is_damaged_at_once);
                        return Some(((scan.generation, after), is_lost));
                    }
                }
            }
        }
    }
    None
}

/// Whether a segment without records may have had one.
fn is_damaged_at_once<F>(scan: &Scan<F>) -> bool {
    matches!(scan.found[..], [Remains::Nothing { is_damaged: true }, ..])
}
