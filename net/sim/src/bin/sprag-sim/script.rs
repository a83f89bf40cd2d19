//! Runs a script and shows how it ended.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use sprag_sim::{Report, Script};

use crate::table::Table;
use crate::verdict::Verdict;

/// How many of the last events are shown.
const EVENTS_MAX: u64 = 60;

pub(crate) fn run(path: &Path, out: &mut dyn Write) -> io::Result<Verdict> {
    let report = show(out, &read(path)?)?;
    let events = report.events;
    let verdict = match &report.failure {
        Some(failure) => failure.kind().into(),
        None => Verdict::Clean,
    };
    writeln!(
        out,
        "{events} events, trace {:016x}: {}",
        report.hash,
        verdict.in_words()
    )?;
    Ok(verdict)
}

/// The script in the file at `path`.
pub(crate) fn read(path: &Path) -> io::Result<Script> {
    let wrong = |error: String| io::Error::other(format!("{}: {error}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    text.parse()
        .map_err(|error: sprag_sim::ScriptError| wrong(error.to_string()))
}

/// Shows the last events of `script`, and how it fails if it does.
pub(crate) fn show(out: &mut dyn Write, script: &Script) -> io::Result<Report> {
    let events = script.replay().events;
    let report = script.show(events.saturating_sub(EVENTS_MAX));
    let mut table = Table::new(&[">event", ">ms", "who", "what"]);
    for line in &report.tail {
        let (ms, ns) = (line.at_ns / 1_000_000, line.at_ns % 1_000_000);
        table.row(vec![
            line.number.to_string(),
            format!("{ms}.{ns:06}"),
            line.who.clone(),
            line.what.clone(),
        ]);
    }
    writeln!(out, "{table}")?;
    if let Some(failure) = &report.failure {
        writeln!(out, "{failure}\n")?;
    }
    Ok(report)
}
