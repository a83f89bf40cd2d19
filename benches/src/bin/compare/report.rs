//! What is printed.

use crate::contest::Outcome;
use crate::rows::Row;
use serde::{Deserialize, Serialize};
use sprag_benches::Result;

/// One row with what it came to.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Line {
    case: String,
    /// What `ours_ns` and `peer_ns` are: `bytes` for sizes.
    unit: String,
    ours_ns: Option<f64>,
    peer: String,
    peer_ns: Option<f64>,
    ratio: Option<f64>,
    budget: String,
    met: Option<bool>,
    ours_admitted: Option<u64>,
    peer_admitted: Option<u64>,
    /// Why it wasn't measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skipped: Option<String>,
}

impl Line {
    pub(crate) fn of(row: &Row, outcome: Result<Outcome>) -> Self {
        let mut line = Self {
            case: row.case.clone(),
            unit: row.unit.to_owned(),
            ours_ns: None,
            peer: row.peer.to_owned(),
            peer_ns: None,
            ratio: None,
            budget: row.budget.to_string(),
            met: None,
            ours_admitted: None,
            peer_admitted: None,
            skipped: None,
        };
        match outcome {
            Ok(outcome) => {
                let ratio = outcome.ours / outcome.peer;
                line.ours_ns = Some(outcome.ours);
                line.peer_ns = Some(outcome.peer);
                line.ratio = Some(ratio);
                line.met = Some(row.budget.is_met(outcome.ours, outcome.peer));
                line.ours_admitted = Some(outcome.ours_admitted);
                line.peer_admitted = Some(outcome.peer_admitted);
            }
            Err(error) => line.skipped = Some(error.to_string()),
        }
        line
    }

    /// The cells of the table.
    fn cells(&self) -> [String; COLUMNS.len()] {
        let number = |value: Option<f64>| value.map_or_else(String::new, figure);
        let admitted = match (self.ours_admitted, self.peer_admitted) {
            (Some(ours), Some(peer)) if ours == peer => format!("{ours} each"),
            (Some(ours), Some(peer)) => format!("{ours} and {peer}: they differ"),
            _ => String::new(),
        };
        let met = match (self.met, &self.skipped) {
            (Some(true), _) => "yes".to_owned(),
            (Some(false), _) => "no".to_owned(),
            (None, Some(why)) => format!("skipped: {why}"),
            (None, None) => String::new(),
        };
        let unit = if self.unit == "ns" { "" } else { &self.unit };
        [
            self.case.clone(),
            format!("{} {unit}", number(self.ours_ns)).trim().to_owned(),
            self.peer.clone(),
            format!("{} {unit}", number(self.peer_ns)).trim().to_owned(),
            self.ratio.map_or_else(String::new, ratio),
            self.budget.clone(),
            met,
            admitted,
        ]
    }
}

const COLUMNS: [&str; 8] = [
    "case", "ours ns", "peer", "peer ns", "ratio", "budget", "met", "admitted",
];

/// Prints the lines as a table in Markdown, columns aligned.
pub(crate) fn print_table(lines: &[Line]) {
    let mut table = vec![COLUMNS.map(str::to_owned)];
    table.extend(lines.iter().map(Line::cells));
    let widths: [usize; COLUMNS.len()] = std::array::from_fn(|column| {
        let width = |row: &[String; COLUMNS.len()]| row[column].chars().count();
        table.iter().map(width).max().unwrap_or(0)
    });
    for (number, row) in table.iter().enumerate() {
        let cells: Vec<String> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        println!("| {} |", cells.join(" | "));
        if number == 0 {
            println!("|{}|", widths.map(|width| "-".repeat(width + 2)).join("|"));
        }
    }
}

/// Enough figures to tell it from its budget.
fn ratio(ratio: f64) -> String {
    if ratio < 0.01 {
        format!("{ratio:.5}")
    } else {
        format!("{ratio:.3}")
    }
}

/// Three figures that count.
fn figure(value: f64) -> String {
    if value < 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}
