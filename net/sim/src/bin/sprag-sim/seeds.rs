//! Runs seeds: tells of each that fails, shrinks the first few, and sums up.

use std::io::{self, Write};

use sprag_sim::{Report, Script, Setup, shrink};

use crate::arguments::Arguments;
use crate::jobs;
use crate::script;
use crate::summary::Summary;
use crate::verdict::Verdict;

/// So many failing seeds are told of, one line each; the others are counted.
const TOLD_MAX: usize = 20;

/// So many of them are shrunk and shown: one is enough to begin with, and others may be of another kind.
const SHOWN_MAX: usize = 3;

/// The most runs it takes to shrink one.
pub(crate) const REPLAYS_MAX: u32 = 3000;

pub(crate) fn run(arguments: &Arguments, out: &mut dyn Write) -> io::Result<Verdict> {
    let setup = arguments.setup();
    let mut summary = Summary::new(arguments.from, &setup);
    let mut failing: Vec<(u64, Report)> = Vec::new();
    let mut told = 0;
    let bar = jobs::bar(arguments.seeds());
    let take = |number: u64, report: Report| -> io::Result<()> {
        summary.add(&report);
        let Some(failure) = &report.failure else {
            return Ok(());
        };
        let seed = arguments.from + number;
        if told < TOLD_MAX {
            told += 1;
            bar.suspend(|| writeln!(out, "seed {seed}: {failure}\n  {}", arguments.again(seed)))?;
        }
        if wants_showing(&failing, &report) {
            failing.push((seed, report));
        }
        Ok(())
    };
    let work = |number: u64| run_one(arguments.from + number, &setup);
    jobs::in_order(arguments.seeds(), arguments.jobs(), work, take, &bar)?;
    if summary.failed() > TOLD_MAX as u64 {
        writeln!(out, "and {} more", summary.failed() - TOLD_MAX as u64)?;
    }
    for (seed, report) in failing {
        show(out, seed, &setup, report)?;
    }
    summary.conclude(out)
}

/// Of a run that went well the faults are of no use any more.
fn run_one(seed: u64, setup: &Setup) -> Report {
    let mut report = sprag_sim::run(seed, setup);
    if report.failure.is_none() {
        report.struck = Vec::new();
    }
    report
}

/// Whether it failed in a way that none before it did.
fn wants_showing(failing: &[(u64, Report)], report: &Report) -> bool {
    let way = |report: &Report| report.failure.as_ref().map(sprag_sim::Failure::way);
    failing.len() < SHOWN_MAX && failing.iter().all(|(_, other)| way(other) != way(report))
}

fn show(out: &mut dyn Write, seed: u64, setup: &Setup, report: Report) -> io::Result<()> {
    let count = report.struck.len();
    let mut whole = Script::new(seed, setup, report.struck);
    whole.fails = report.failure.map(|failure| failure.way());
    if whole.replay().hash != report.hash {
        return writeln!(
            out,
            "\nseed {seed}: its faults as a script make another run; repair that first"
        );
    }
    let small = shrink(whole, REPLAYS_MAX);
    let faults = small.strikes.len();
    writeln!(
        out,
        "\nSeed {seed}, shrunk from {count} faults to {faults}. As a script, for --script:\n\n{small}"
    )?;
    script::show(out, &small)?;
    Ok(())
}
