//! The `sprag` command: reads the arguments, runs one subcommand, turns its error into one line on
//! standard error and an exit code. What a subcommand does lives in its own file.

mod at;
mod bench;
mod break_lock;
mod clock;
mod completions;
mod counter;
mod duration;
mod error;
mod inspect;
mod limit;
#[cfg(target_os = "linux")]
mod lock;
mod metrics;
mod number;
#[cfg(target_os = "linux")]
mod once;
mod output;
mod overrides;
mod printable;
#[cfg(target_os = "linux")]
mod region;
mod replay;
#[cfg(target_os = "linux")]
mod shown;
mod span;
#[cfg(target_os = "linux")]
mod supervise;
mod usage;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::at::At;
use crate::error::Error;

/// Locks, limits and other coordination, from the shell
///
/// A space is a set of named locks, limiters and counters, shared by all processes that open it by the same URL.
#[derive(Debug, Parser)]
#[command(name = "sprag", version, about, long_about, after_help = EXIT_CODES)]
struct Cli {
    #[command(flatten)]
    at: At,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(target_os = "linux")]
    Lock(lock::Args),
    #[cfg(target_os = "linux")]
    Once(once::Args),
    Limit(limit::Args),
    #[command(subcommand)]
    Override(overrides::Command),
    #[command(subcommand)]
    Counter(counter::Command),
    Inspect(inspect::Args),
    Metrics(metrics::Args),
    Break(break_lock::Args),
    #[cfg(target_os = "linux")]
    #[command(subcommand)]
    Region(region::Command),
    Replay(replay::Args),
    #[command(subcommand)]
    Bench(bench::Command),
    Completions(completions::Args),
}

const EXIT_CODES: &str = "\
Exit codes, unless the subcommand's own help says otherwise:
  0  done, or the answer is yes
  1  the answer is no: refused, not held, something found
  2  an argument is wrong, or something failed; one line on standard error says what";

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| exit_for_usage(&error));
    let mut out = std::io::stdout().lock();
    match run(&cli, &mut out) {
        Ok(code) => code,
        Err(error) => {
            // A path may have any byte in it, and an error is one line.
            let line = printable::harmless(&error.to_string());
            // Nobody is left to be told of a failure to tell.
            let _ = writeln!(std::io::stderr(), "sprag: {line}");
            error.exit_code()
        }
    }
}

/// Prints what is wrong with the arguments, or the help that was asked for, and ends the process.
fn exit_for_usage(error: &clap::Error) -> ! {
    let Some(line) = usage::line(error, &Cli::command(), std::env::args_os()) else {
        error.exit();
    };
    // Nobody is left to be told of a failure to tell.
    let _ = writeln!(std::io::stderr(), "sprag: {line}");
    #[cfg(target_os = "linux")]
    let code = lock::usage_code(std::env::args_os());
    #[cfg(not(target_os = "linux"))]
    let code = None;
    std::process::exit(code.unwrap_or(2));
}

fn run(cli: &Cli, out: &mut impl Write) -> Result<ExitCode, Error> {
    let at = &cli.at;
    match &cli.command {
        #[cfg(target_os = "linux")]
        Command::Lock(args) => Ok(lock::run(args, at, out)?),
        #[cfg(target_os = "linux")]
        Command::Once(args) => Ok(once::run(args, at, out)?),
        Command::Replay(args) => {
            at.refuse("replay")?;
            Ok(replay::run(args, out)?)
        }
        Command::Completions(args) => {
            at.refuse("completions")?;
            completions::run::<Cli>(args, out)
        }
        Command::Limit(args) => limit::run(args, at, out),
        Command::Override(command) => overrides::run(command, at, out),
        Command::Counter(command) => counter::run(command, at, out),
        Command::Inspect(args) => inspect::run(args, at, out),
        Command::Metrics(args) => metrics::run(args, at, out),
        Command::Break(args) => break_lock::run(args, at, out),
        #[cfg(target_os = "linux")]
        Command::Region(command) => region::run(command, at, out),
        Command::Bench(command) => bench::run(command, at, out),
    }
}
