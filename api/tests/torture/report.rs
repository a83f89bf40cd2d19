//! The report: operation × steps × kills, printed beside the tests.

use crate::journal::Op;
use crate::scene::say;
use std::fmt::Write as _;

/// A row of the report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) op: Op,
    /// Steps that the operation takes, at most.
    pub(crate) steps: u64,
    /// How many of those steps were struck at least once.
    pub(crate) struck: u64,
    /// How often it was struck.
    pub(crate) count: u64,
    /// What a step was struck with, at the fewest and the most.
    pub(crate) fewest: u64,
    pub(crate) most: u64,
}

impl Row {
    /// From how often each step was struck.
    pub(crate) fn of(op: Op, by_step: &[u64]) -> Self {
        Self {
            op,
            steps: by_step.len() as u64,
            struck: by_step.iter().filter(|&&count| count > 0).count() as u64,
            count: by_step.iter().sum(),
            fewest: by_step.iter().copied().min().unwrap_or(0),
            most: by_step.iter().copied().max().unwrap_or(0),
        }
    }
}

/// Prints a table. `what` is the signal's word: kills, stops.
pub(crate) fn print(title: &str, what: &str, rows: &[Row], closing: &str) {
    let mut text = format!(
        "\n{title}\n  {:<32}{:>7}{:>8}{:>8}{:>18}\n",
        "operation", "steps", "struck", what, "a step (min-max)"
    );
    for row in rows {
        let _ = writeln!(
            text,
            "  {:<32}{:>7}{:>8}{:>8}{:>18}",
            row.op.name(),
            row.steps,
            row.struck,
            row.count,
            format!("{}-{}", row.fewest, row.most)
        );
    }
    let total: u64 = rows.iter().map(|row| row.count).sum();
    let _ = writeln!(text, "  {:<32}{:>23}\n  {closing}\n", "all", total);
    say(&text);
}
