//! `sprag break`: take a lock away from whoever holds it. Owns the arguments and the answer's form.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;

use crate::at::At;
use crate::error::Error;
use crate::{output, printable};

/// Take a lock away from whoever holds it
///
/// Asks nothing and takes effect at once: the first waiter gets the lock. The former holder is not told
/// before its next step, and only a fence that has seen a newer token stops what it still writes. Who
/// broke which lock shows in sprag inspect.
///
/// Locks alone: permits of a semaphore or a key, a partition and the table are given up by their token, with sprag lock
/// --release, or when their holder ends.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes:
  0  the lock was held and is not any more
  1  the lock was not held; nothing was changed
  2  an argument is wrong, there is no such space, or something failed")]
pub(crate) struct Args {
    /// The lock's name
    name: OsString,

    /// Print a JSON object: name, token (null if it was not held)
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Answer {
    #[serde(flatten)]
    name: printable::Name,
    token: Option<u64>,
}

/// Breaks the lock, and prints the token that was ended.
pub(crate) fn run(args: &Args, at: &At, out: &mut impl Write) -> Result<ExitCode, Error> {
    at.refuse_memory("break")?;
    let space = at.open_to_look()?;
    let name = printable::bytes(&args.name);
    let token = space.break_lock(name)?;
    let code = if token.is_some() { 0 } else { output::NO };
    output::print(out, code.into(), |out| {
        if args.json {
            let name = printable::Name::new(name);
            return output::json(out, &Answer { name, token });
        }
        let name = printable::name(name);
        match token {
            Some(token) => writeln!(out, "broke {name}: ended token {token}"),
            None => writeln!(out, "the lock {name} is not held"),
        }
    })
}
