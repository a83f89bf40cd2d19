//! Sprag beside its peers, case by case, in one run on one machine.
//!
//! Contestants of a row are both set up first and then measured in turn, several rounds, so that what
//! else the machine does meets both; the ratio of the medians is what counts. This program measures:
//! it never fails because of a number, and a row that can't be run says why.

mod c_calls;
mod contest;
mod log;
mod machine;
mod python;
mod redis;
mod report;
mod resident;
mod rows;
mod sleeper;

use clap::Parser;
use sprag_benches::{Effort, Result};
use std::path::PathBuf;
use std::process::ExitCode;

/// Measures Sprag beside its peers.
#[derive(Parser)]
#[command(name = "compare")]
struct Options {
    /// Print a JSON array instead of a table.
    #[arg(long)]
    json: bool,
    /// Only rows whose case or peer contains this text, in any case of letters; may be repeated.
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,
    /// How often each contestant is measured, after a round that doesn't count.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// An eighth of the work and three rounds: to see that it runs, not to quote.
    #[arg(long)]
    quick: bool,
    /// List the rows and measure nothing.
    #[arg(long)]
    list: bool,
    /// A Python that has the package installed, and the peers of its rows: without one these are left out.
    #[arg(long, value_name = "PROGRAM")]
    python: Option<PathBuf>,
    /// Fill this one's limiter and print bytes per key: how a row measures memory, in a process of its own.
    #[arg(long, hide = true, value_name = "CONTESTANT")]
    resident: Option<resident::Contestant>,
}

/// How a run measures.
#[derive(Clone, Copy, Debug)]
struct Plan {
    rounds: usize,
    effort: Effort,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("compare: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    if let Some(contestant) = options.resident {
        println!("{}", resident::measure(contestant)?);
        return Ok(());
    }
    let plan = Plan {
        rounds: if options.quick {
            3
        } else {
            options.rounds as usize
        },
        effort: Effort {
            divisor: if options.quick { 8 } else { 1 },
        },
    };
    let rows: Vec<_> = rows::rows()
        .into_iter()
        .filter(|row| options.only.is_empty() || options.only.iter().any(|only| row.matches(only)))
        .collect();
    if options.list {
        for row in &rows {
            println!("{} | {} | {}", row.case, row.peer, row.budget);
        }
        return options.python.as_deref().map_or(Ok(()), python::list);
    }
    eprintln!("{}", machine::two_threads());
    let mut results = Vec::with_capacity(rows.len());
    for row in &rows {
        eprintln!("{} | {} …", row.case, row.peer);
        results.push(report::Line::of(row, row.measure(plan)));
    }
    if let Some(python) = &options.python {
        results.extend(python::measure(python, options)?);
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&results)?);
    } else {
        report::print_table(&results);
        println!("\n{}", machine::two_threads());
    }
    Ok(())
}
