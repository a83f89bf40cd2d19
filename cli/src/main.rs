//! The `sprag` command: reads the arguments, runs one subcommand, turns its error into one line on
//! standard error and an exit code. What a subcommand does lives in its own file.

mod replay;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Locks, limits and other coordination, from the shell.
#[derive(Debug, Parser)]
#[command(name = "sprag", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Replay(replay::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = std::io::stdout().lock();
    let result = match &cli.command {
        Command::Replay(args) => replay::run(args, &mut out),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "sprag: {error}");
            error.exit_code()
        }
    }
}
