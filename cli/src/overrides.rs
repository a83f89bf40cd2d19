//! `sprag override`: a limit of its own for one key of a limiter. Owns the arguments and the answers' form.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;
use sprag::{Limit, Limiter, OverrideInfo, Space};

use crate::at::At;
use crate::error::Error;
use crate::printable::{self, Name};
use crate::{limit, output};

/// Give a key of a limiter a limit of its own
///
/// It holds for all who use the limiter, in place of the limiter's limit, until it is cleared. What the key has used
/// stays used. Limiters of one limit have overrides; those of several (sprag limit --and), and of how many at once
/// (sprag lock --key), have none.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Set(Set),
    Clear(Clear),
    Ls(Ls),
}

/// Give a key a limit of its own, or another one than it has
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes:
  0  set
  2  an argument is wrong, there is no such limiter, or something failed

Example:
  sprag override set api 1000/minute --key bigcorp
  sprag override set api 0/second --key scraper     # shut out")]
pub(crate) struct Set {
    #[command(flatten)]
    which: Which,

    /// What the key is allowed, as for sprag limit; 0/second shuts it out
    limit: Limit,
}

/// Take a key's limit away, so that the limiter's holds for it again
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes:
  0  cleared
  1  it had none
  2  an argument is wrong, or something failed")]
pub(crate) struct Clear {
    #[command(flatten)]
    which: Which,
}

/// List the keys that have a limit of their own
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes:
  0  listed, even if there are none, or nobody has used shm:default yet
  2  an argument is wrong, or something failed")]
pub(crate) struct Ls {
    /// Only those of limiters whose name begins so
    #[arg(default_value = "", hide_default_value = true)]
    prefix: OsString,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

/// Which key, and how to answer.
#[derive(Debug, clap::Args)]
struct Which {
    /// The limiter's name
    name: OsString,

    /// Whose limit: a user, an address, any bytes
    #[arg(long, allow_hyphen_values = true)]
    key: OsString,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// An override, as it is printed.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    /// The limiter's.
    #[serde(flatten)]
    name: Name,
    key: String,
    /// All bytes in hexadecimal, where they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_hex: Option<String>,
    limit: String,
    #[serde(skip)]
    shown: [String; 2],
}

impl Row {
    pub(crate) fn new(info: &OverrideInfo) -> Self {
        let is_text = std::str::from_utf8(&info.key).is_ok();
        Self {
            name: Name::new(&info.limiter),
            key: printable::readable(&info.key),
            key_hex: (!is_text).then(|| printable::hex(&info.key)),
            limit: info.limit.to_string(),
            shown: [&info.limiter, &info.key].map(|name| printable::name(name)),
        }
    }

    pub(crate) fn cells(&self) -> Vec<String> {
        let [limiter, key] = self.shown.clone();
        vec![self.limit.clone(), limiter, key]
    }
}

/// The heading over rows of overrides.
pub(crate) const HEADING: &str = "OVERRIDE LIMITER KEY";

/// Does it, and prints the answer.
pub(crate) fn run(command: &Command, at: &At, out: &mut impl Write) -> Result<ExitCode, Error> {
    at.check()?;
    at.refuse_memory("override")?;
    match command {
        Command::Set(args) => args.run(at, out),
        Command::Clear(args) => args.run(at, out),
        Command::Ls(args) => args.run(at, out),
    }
}

impl Which {
    /// The limiter, if there is one.
    fn find(
        &self,
        at: &At,
        open: fn(&At) -> sprag::Result<Space>,
    ) -> Result<Option<Limiter>, Error> {
        limit::check_names(&self.name, &self.key)?;
        let Some(space) = at.if_used(open(at))? else {
            return Ok(None);
        };
        Ok(space.find_limiter(printable::bytes(&self.name))?)
    }

    fn print(
        &self,
        out: &mut impl Write,
        code: u8,
        limit: Option<Limit>,
        text: &str,
    ) -> Result<ExitCode, Error> {
        #[derive(Serialize)]
        struct Answer {
            /// The limit that the key has of its own now.
            limit: Option<String>,
            /// Whether what was asked for was done.
            done: bool,
        }
        output::print(out, code.into(), |out| {
            if self.json {
                let limit = limit.map(|limit| limit.to_string());
                let done = code == 0;
                output::json(out, &Answer { limit, done })
            } else {
                writeln!(out, "{text}")
            }
        })
    }

    fn shown_key(&self) -> String {
        printable::name(printable::bytes(&self.key))
    }
}

impl Set {
    fn run(&self, at: &At, out: &mut impl Write) -> Result<ExitCode, Error> {
        at.check_shared()?;
        let Some(limiter) = self.which.find(at, At::open_existing)? else {
            return Err(Error::NoLimiter {
                name: printable::name(printable::bytes(&self.which.name)),
                url: at.url().to_owned(),
            });
        };
        limiter.set_override(printable::bytes(&self.which.key), self.limit)?;
        let (key, limit, own) = (self.which.shown_key(), self.limit, limiter.limit());
        let text = format!("{key} has {limit} in place of {own}");
        self.which.print(out, 0, Some(limit), &text)
    }
}

impl Clear {
    fn run(&self, at: &At, out: &mut impl Write) -> Result<ExitCode, Error> {
        let limiter = self.which.find(at, At::open_to_look)?;
        let key = printable::bytes(&self.which.key);
        let own = match &limiter {
            Some(limiter) if limiter.clear_override(key)? => Some(limiter.limit()),
            _ => None,
        };
        let key = self.which.shown_key();
        let (code, text) = match own {
            Some(own) => (0, format!("{key} has {own} again, as all")),
            None => (output::NO, format!("{key} had no limit of its own")),
        };
        self.which.print(out, code, None, &text)
    }
}

impl Ls {
    fn run(&self, at: &At, out: &mut impl Write) -> Result<ExitCode, Error> {
        let overrides = match at.if_used(at.open_to_look())? {
            Some(space) => space.overrides(printable::bytes(&self.prefix))?,
            None => Vec::new(),
        };
        let rows: Vec<Row> = overrides.iter().map(Row::new).collect();
        output::print(out, ExitCode::SUCCESS, |out| {
            if self.json {
                output::json(out, &rows)
            } else if rows.is_empty() {
                writeln!(out, "no overrides")
            } else {
                output::table(out, HEADING, rows.iter().map(Row::cells))
            }
        })
    }
}
