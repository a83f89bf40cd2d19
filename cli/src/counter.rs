//! `sprag counter`: a number by name, from a shell script. Owns the arguments and the answer's form.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;
use sprag::{Added, Counter, EngineError, NAME_BYTES_MAX};

use crate::at::At;
use crate::error::Error;
use crate::{number, output, printable};

/// Count: a number by name, that others change at the same time
///
/// A whole number of 64 bits with a sign, 0 until somebody changes it. Each change is one step.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Get(Get),
    Add(Add),
    Swap(Swap),
    CompareExchange(CompareExchange),
}

/// Print the number; 0 for one that nobody has changed
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes:
  0  printed
  2  an argument is wrong, or something failed")]
pub(crate) struct Get {
    #[command(flatten)]
    which: Which,
}

/// Add to the number and print the sum
///
/// With --min or --max, a sum outside them is refused: nothing is changed, and what is printed is the number
/// as it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes:
  0  added
  1  refused: the sum would be below --min or above --max
  2  an argument is wrong, the sum is no 64-bit number, or something failed

Example:
  sprag counter add --min 0 tickets -1 && sell …")]
pub(crate) struct Add {
    #[command(flatten)]
    which: Which,

    /// How much to add; less than 0 takes away
    #[arg(default_value_t = 1, value_parser = number::signed, allow_negative_numbers = true)]
    delta: i64,

    /// The least that the sum may be
    #[arg(long, value_name = "NUMBER", value_parser = number::signed, allow_hyphen_values = true)]
    min: Option<i64>,

    /// The most that the sum may be
    #[arg(long, value_name = "NUMBER", value_parser = number::signed, allow_hyphen_values = true)]
    max: Option<i64>,
}

/// Set the number and print what it was
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes:
  0  set
  2  an argument is wrong, or something failed")]
pub(crate) struct Swap {
    #[command(flatten)]
    which: Which,

    /// What to set it to
    #[arg(value_parser = number::signed, allow_negative_numbers = true)]
    new: i64,
}

/// Set the number if it is what one takes it for, and print what it is then
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes:
  0  set
  1  it is another number, which is printed; nothing was changed
  2  an argument is wrong, or something failed")]
pub(crate) struct CompareExchange {
    #[command(flatten)]
    which: Which,

    /// What it is taken for
    #[arg(value_parser = number::signed, allow_negative_numbers = true)]
    expected: i64,

    /// What to set it to
    #[arg(value_parser = number::signed, allow_negative_numbers = true)]
    new: i64,
}

/// Which counter, and how to print it.
#[derive(Debug, clap::Args)]
struct Which {
    /// The counter's name
    name: OsString,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// A number, as it is printed.
#[derive(Debug, Serialize)]
struct Answer {
    number: i64,
    /// Whether what was asked for was done.
    done: bool,
}

impl Answer {
    fn done(number: i64) -> Self {
        Self { number, done: true }
    }

    fn refused(number: i64) -> Self {
        Self {
            number,
            done: false,
        }
    }
}

/// Does it, and prints the number.
pub(crate) fn run(command: &Command, at: &At, out: &mut impl Write) -> Result<ExitCode, Error> {
    at.check()?;
    at.refuse_memory("counter")?;
    let which = command.which();
    // Before anything is created for its sake.
    let len = which.name.len();
    if !(1..=NAME_BYTES_MAX).contains(&len) {
        let error = EngineError::NameLength {
            what: "counter name",
            len,
            max: NAME_BYTES_MAX,
        };
        return Err(sprag::Error::Engine(error).into());
    }
    let answer = command.answer(at)?;
    let code = if answer.done { 0 } else { output::NO };
    output::print(out, code.into(), |out| {
        if which.json {
            output::json(out, &answer)
        } else {
            writeln!(out, "{}", answer.number)
        }
    })
}

impl Command {
    fn which(&self) -> &Which {
        match self {
            Self::Get(get) => &get.which,
            Self::Add(add) => &add.which,
            Self::Swap(swap) => &swap.which,
            Self::CompareExchange(exchange) => &exchange.which,
        }
    }

    fn answer(&self, at: &At) -> Result<Answer, Error> {
        let name = printable::bytes(&self.which().name);
        if let Self::Get(_) = self {
            return Ok(Answer::done(match at.if_used(at.open_to_look())? {
                Some(space) => space.counter(name)?.get()?,
                None => 0,
            }));
        }
        at.check_shared()?;
        let space = at.open()?;
        let counter = space.counter(name)?;
        Ok(match self {
            Self::Get(_) => Answer::done(counter.get()?),
            Self::Add(add) => add.to(&counter)?,
            Self::Swap(swap) => Answer::done(counter.swap(swap.new)?),
            Self::CompareExchange(CompareExchange { expected, new, .. }) => {
                match counter.compare_exchange(*expected, *new)? {
                    Ok(()) => Answer::done(*new),
                    Err(number) => Answer::refused(number),
                }
            }
        })
    }
}

impl Add {
    fn to(&self, counter: &Counter<'_>) -> sprag::Result<Answer> {
        if (self.min, self.max) == (None, None) {
            return counter.add(self.delta).map(Answer::done);
        }
        let bounds = self.min.unwrap_or(i64::MIN)..=self.max.unwrap_or(i64::MAX);
        Ok(match counter.add_within(self.delta, bounds)? {
            Added::To(sum) => Answer::done(sum),
            Added::Refused(number) => Answer::refused(number),
        })
    }
}
