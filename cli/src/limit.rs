//! `sprag limit`: ask a limiter, from a shell script. Owns the arguments and the answer's form.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::iter::once;
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use sprag::{Decision, EngineError, JointLimiter, Limit, Limiter, NAME_BYTES_MAX};

use crate::at::At;
use crate::error::Error;
use crate::{number, output, printable, span};

/// Ask whether a key may go on, and take its share if so
///
/// Prints the decision in a line. The limiter is created on first use, with the limit given; after that
/// the same limit must be given, or --update.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes:
  0  allowed
  1  refused, now or for good
  2  an argument is wrong, or something failed

Example:
  sprag limit mail '100/hour;burst=20' --key \"$USER\" && sendmail …")]
pub(crate) struct Args {
    /// The limiter's name
    name: OsString,

    /// What each key is allowed: COUNT/PERIOD[;burst=COUNT][;window=fixed|sliding]
    ///
    /// PERIOD is second, minute, hour, day, week or year (365 days), or a number of s, m, h, d, w, y, ms,
    /// us or ns, as in 5/10s. The burst is what a token bucket holds, COUNT if not given. A fixed window
    /// allows COUNT in each period, the periods being aligned to the Unix epoch; a sliding one counts
    /// the period before too, by the share of the current one that is left.
    limit: Limit,

    /// A further limit that each key is under at once, up to 5: all allow the cost, or nothing is taken
    ///
    /// A limiter of several limits (a joint limiter) has nothing to do with one of a single limit, of the same name or
    /// not. Its limits and their order stay as they are.
    #[arg(long, value_name = "LIMIT", conflicts_with = "update")]
    and: Vec<Limit>,

    /// Whose share to take: a user, an address, any bytes
    #[arg(long, allow_hyphen_values = true)]
    key: OsString,

    /// How much to take
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = number::within::<u64>(0..=u64::MAX), allow_hyphen_values = true)]
    cost: u64,

    /// Only look: take nothing
    #[arg(long)]
    peek: bool,

    /// Change the limiter to this limit if it has another; what keys have used stays used
    #[arg(long)]
    update: bool,

    /// Print the decision as a JSON object
    #[arg(long)]
    json: bool,
}

/// A decision, as it is printed.
#[derive(Debug, Serialize)]
struct Answer {
    allowed: bool,
    /// The most that can be had at once.
    limit: u64,
    /// What is left.
    remaining: u64,
    /// How long until the cost would be allowed; null for never.
    retry_after_ns: Option<u64>,
    /// How long until nothing is used any more; null for never.
    reset_after_ns: Option<u64>,
    /// Whether a bucket shared by all keys that found no room decided.
    overflow: bool,
    /// Which of several limits refuses longest; left out if all allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_by: Option<String>,
}

/// Asks, and prints the answer.
pub(crate) fn run(args: &Args, at: &At, out: &mut impl Write) -> Result<ExitCode, Error> {
    at.check()?;
    at.refuse_memory("limit")?;
    at.check_shared()?;
    // Before anything is created for their sake.
    check_names(&args.name, &args.key)?;
    let space = at.open()?;
    let name = printable::bytes(&args.name);
    let answer = if args.and.is_empty() {
        let limiter = if args.update {
            space.limiter_updated(name, args.limit)
        } else {
            space.limiter(name, args.limit)
        };
        ask(
            args,
            &limiter.map_err(|error| other_limit(error, args, at))?,
        )?
    } else {
        let limits: Vec<Limit> = once(args.limit).chain(args.and.iter().copied()).collect();
        ask_all(args, &space.joint_limiter(name, limits)?)?
    };
    let code = if answer.allowed { 0 } else { output::NO };
    output::print(out, code.into(), |out| {
        if args.json {
            output::json(out, &answer)
        } else {
            answer.write_text(out, args)
        }
    })
}

/// Checks the bounds of a limiter's name and of a key.
pub(crate) fn check_names(name: &OsStr, key: &OsStr) -> Result<(), Error> {
    for (what, name) in [("limiter name", name), ("key", key)] {
        let len = name.len();
        if !(1..=NAME_BYTES_MAX).contains(&len) {
            let max = NAME_BYTES_MAX;
            let error = EngineError::NameLength { what, len, max };
            return Err(sprag::Error::Engine(error).into());
        }
    }
    Ok(())
}

fn other_limit(error: sprag::Error, args: &Args, at: &At) -> Error {
    match error {
        sprag::Error::Engine(sprag::EngineError::LimitDiffers {
            existing, asked, ..
        }) => Error::OtherLimit {
            name: printable::name(printable::bytes(&args.name)),
            url: at.url().to_owned(),
            existing,
            asked,
        },
        error => error.into(),
    }
}

fn ask(args: &Args, limiter: &Limiter) -> Result<Answer, Error> {
    let key = printable::bytes(&args.key);
    if args.peek {
        let state = limiter.peek(key)?;
        let retry_after = state.retry_after_for(args.cost);
        let allowed = retry_after == Some(Duration::ZERO);
        return Ok(Answer::new(allowed, retry_after, &state));
    }
    let decision = limiter.check(key, args.cost)?;
    let retry_after = decision.retry_after();
    Ok(Answer::new(decision.is_allowed(), retry_after, &decision))
}

/// [`ask`] of several limits.
fn ask_all(args: &Args, limiter: &JointLimiter) -> Result<Answer, Error> {
    let key = printable::bytes(&args.key);
    let (decision, retry_after) = if args.peek {
        let state = limiter.peek(key)?;
        (state, state.retry_after_for(args.cost))
    } else {
        let decision = limiter.check(key, args.cost)?;
        (decision, decision.retry_after())
    };
    let allowed = retry_after == Some(Duration::ZERO);
    let limits = limiter.limits();
    let waits_longest = |place: &usize| {
        let one = decision.of(*place);
        one.is_some_and(|one| one.retry_after_for(args.cost) == retry_after)
    };
    let refusing = (0..limits.len()).find(waits_longest).filter(|_| !allowed);
    Ok(Answer {
        allowed,
        limit: decision.limit(),
        remaining: decision.remaining(),
        retry_after_ns: retry_after.map(span::nanoseconds),
        reset_after_ns: decision.reset_after().map(span::nanoseconds),
        overflow: decision.is_overflow(),
        refused_by: refusing.map(|place| limits[place].to_string()),
    })
}

impl Answer {
    fn new(allowed: bool, retry_after: Option<Duration>, decision: &Decision) -> Self {
        Self {
            allowed,
            limit: decision.limit(),
            remaining: decision.remaining(),
            retry_after_ns: retry_after.map(span::nanoseconds),
            reset_after_ns: decision.reset_after().map(span::nanoseconds),
            overflow: decision.is_overflow(),
            refused_by: None,
        }
    }

    fn write_text(&self, out: &mut impl Write, args: &Args) -> io::Result<()> {
        let Self {
            limit, remaining, ..
        } = self;
        match self.retry_after_ns.map(Duration::from_nanos) {
            _ if self.allowed => write!(out, "allowed, {remaining} of {limit} left")?,
            Some(wait) => {
                let wait = span::to_wait(wait);
                write!(out, "refused")?;
                if let Some(by) = &self.refused_by {
                    write!(out, " by {by}")?;
                }
                write!(out, ", retry after {wait}, {remaining} of {limit} left")?;
            }
            None => {
                let cost = args.cost;
                write!(
                    out,
                    "never: the cost {cost} is above the {limit} that can be had at once"
                )?;
            }
        }
        match self.reset_after_ns.map(Duration::from_nanos) {
            Some(Duration::ZERO) => {}
            Some(wait) => write!(out, ", full again in {}", span::to_wait(wait))?,
            None => write!(out, ", never full again")?,
        }
        if self.overflow {
            write!(
                out,
                "; the region has no room for this key, and a bucket shared by such keys decided"
            )?;
        }
        writeln!(out)
    }
}
