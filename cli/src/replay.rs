//! `sprag replay`: what would this limit have refused? Owns the subcommand's arguments, its course from
//! log to report, its errors and its exit codes. Never parses a line and never decides a request.
//!
//! ```text
//! input ──▶ line ──▶ batch ──▶ engine          the watch runs over batch → engine only
//!                      │
//!                      └─────▶ tally ──▶ report
//! ```

mod batch;
mod decide;
mod engine;
mod input;
mod limit;
mod line;
mod report;
mod stamp;
mod tally;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use sprag::Limit;

use crate::number;

use self::batch::{Batch, Decided, Failure};
use self::decide::{Decide, LIMITS_MAX};
use self::engine::Engine;
use self::input::{Lines, Taken};
use self::limit::{Algorithm, Asked, Mismatch};
use self::line::{Field, Line};
use self::report::{LimitCount, RefusedKey, Report};
use self::tally::Tally;

/// Tell what a rate limit would have refused, from a web access log
///
/// Reads a log in the common or the combined format of Apache and nginx, plain or gzip, and decides
/// each line as the limiter would have decided it at the line's time. Time never goes back: a line
/// earlier than one before it is decided at the latest time seen so far.
///
/// A line is a request if it has host, ident, user, [time], "request", status and size, and a key of 1
/// to 1,024 bytes in the field that --by names. Every other line counts as malformed: also an empty
/// one, one over 1 MiB, and one whose time is no time between the years 1677 and 2262. Keys are compared
/// by the bytes that the log has, escapes and all.
///
/// The decisions are those of a limiter in a region of this process. "ns per decision" is their mean on
/// this machine, reading the log not counted. "bytes per key" is what the region holds for a key: its
/// cell, its share of the cell block's header, and chunks for a key over 16 bytes; a region is sized
/// so that at its cap a third of the cells are free. A key that has something used without a pause
/// for more than 9 years can't be told apart from there on, which ends the replay with an error.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes:
  0  the log was read to its end, whatever was refused, or is empty
  1  it could not be read, decided or reported on, or no line of it is a request; one that breaks
     off is reported up to there
  2  an argument is wrong")]
pub(crate) struct Args {
    /// The access log, plain or gzip; - reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// What to allow each key, as COUNT/PERIOD[;burst=COUNT][;window=fixed|sliding]
    ///
    /// As sprag limit has it: PERIOD is second, minute, hour, day, week or year, or a number of s, m, h,
    /// d, w, y, ms, us or ns, as in 5/10s. The burst is what a token bucket holds, COUNT if not given; a
    /// window has none. A COUNT of 0 refuses every request.
    ///
    /// Given more than once, up to 32 times, a request is allowed if every limit has room for it; one that
    /// is refused takes from none. The report tells how many each had no room for.
    #[arg(
        long = "limit",
        value_name = "LIMIT",
        required = true,
        allow_hyphen_values = true
    )]
    limits: Vec<Asked>,

    /// How each limit is enforced [default: as the limit says, by a token bucket if it says nothing]
    #[arg(long, value_enum)]
    algorithm: Option<Algorithm>,

    /// The field of the line whose value is the key
    #[arg(long, value_enum, value_name = "FIELD", default_value_t = Field::Host)]
    by: Field,

    /// What each request costs
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = number::within::<u64>(1..=u64::MAX), allow_hyphen_values = true)]
    cost: u64,

    /// How many of the most refused keys to list
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = number::within::<usize>(0..=u64::from(u32::MAX)), allow_hyphen_values = true)]
    top: usize,

    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,

    /// Instead of the report, print each line's number and "allowed", "refused" or "malformed"
    #[arg(long, conflicts_with_all = ["json", "top"])]
    decisions: bool,
}

/// Why a replay failed. Its text is one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// No request could ever be allowed.
    #[error(
        "--cost {cost} is more than the {cost_max} that --limit {limit} can grant at once; lower the cost or raise the limit"
    )]
    Cost {
        cost: u64,
        cost_max: u64,
        limit: Limit,
    },
    /// There are more than fit.
    #[error("--limit is given {count} times, and {LIMITS_MAX} limits are the most; give fewer")]
    TooMany { count: usize },
    /// The limit and the algorithm don't go together.
    #[error("--limit {limit}: {mismatch}")]
    Mismatch { limit: String, mismatch: Mismatch },
    /// The engine can't enforce the limit.
    #[error("--limit {limit}: {reason}")]
    Limit { limit: Limit, reason: String },
    /// The log can't be opened.
    #[error(
        "cannot read {file}: {source}; name a log that exists and is readable, or - for standard input"
    )]
    Open { file: String, source: io::Error },
    /// The log ends within its compressed data.
    #[error(
        "{file} breaks off in its compressed data after line {lines}; what was printed ends there: get the whole file"
    )]
    Cut { file: String, lines: u64 },
    /// The log can't be read on.
    #[error(
        "cannot read {file} past line {lines}: {source}; what was printed ends there: check the file, with gzip -t if it is compressed"
    )]
    Read {
        file: String,
        lines: u64,
        source: io::Error,
    },
    /// There is a log, and no line of it is what was asked for.
    #[error(
        "no line of {file} is a request with a {field}, of {lines} read; a line must look like \
         'HOST IDENT USER [17/May/2015:10:05:03 +0000] \"REQUEST\" STATUS SIZE', the combined format \
         having '\"REFERER\" \"USER-AGENT\"' after that: convert the log, or choose another field with --by"
    )]
    NoRequest {
        file: String,
        lines: u64,
        field: &'static str,
    },
    /// The engine can't decide.
    #[error("no decision on line {line} of {file}: {reason}; what was printed ends there")]
    Decide {
        file: String,
        line: u64,
        reason: String,
    },
    /// The report can't be written.
    #[error("cannot write to standard output: {0}; free some space or send it elsewhere")]
    Write(io::Error),
}

impl Error {
    /// 2 where an argument is wrong, else 1.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Cost { .. }
            | Self::TooMany { .. }
            | Self::Mismatch { .. }
            | Self::Limit { .. } => ExitCode::from(2),
            Self::Open { .. }
            | Self::Cut { .. }
            | Self::Read { .. }
            | Self::NoRequest { .. }
            | Self::Decide { .. }
            | Self::Write(_) => ExitCode::FAILURE,
        }
    }
}

/// Replays the log that `args` names and writes the findings to `out`. A reader of `out` that has gone
/// away has seen enough, which is no error.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> Result<ExitCode, Error> {
    match replay(args, &mut BufWriter::new(out)) {
        Err(Error::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Err(error),
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

fn replay(args: &Args, out: &mut impl Write) -> Result<(), Error> {
    let limits = limits(args)?;
    let file = args.file.display().to_string().escape_debug().to_string();
    // Decisions that scroll by would tear the bar.
    let source = input::open(&args.file, !args.decisions).map_err(|source| Error::Open {
        file: file.clone(),
        source,
    })?;
    let plan = Plan {
        by: args.by,
        cost: args.cost,
    };
    let open = |first_at_ns| Engine::new(&limits, first_at_ns);
    let played = if args.decisions {
        play(source.text, &plan, open, |line, verdict| {
            writeln!(out, "{line} {}", verdict.name())
        })
    } else {
        play(source.text, &plan, open, |_, _| Ok(()))
    };
    source.progress.finish_and_clear();
    let played = match played {
        Ok(played) => played,
        Err(Fault::Limit(limit, reason)) => return Err(Error::Limit { limit, reason }),
        Err(Fault::Write(error)) => return Err(Error::Write(error)),
    };
    if !args.decisions {
        let report = played.report(args, &limits);
        if args.json {
            report.write_json(out).map_err(Error::Write)?;
        } else {
            report.write_text(out).map_err(Error::Write)?;
        }
    }
    out.flush().map_err(Error::Write)?;
    let lines = played.lines;
    match played.stop {
        None if lines > 0 && played.tally.requests == 0 => Err(Error::NoRequest {
            file,
            lines,
            field: args.by.name(),
        }),
        None => Ok(()),
        Some(Stop::Read(source)) if source.kind() == io::ErrorKind::UnexpectedEof => {
            Err(Error::Cut { file, lines })
        }
        Some(Stop::Read(source)) => Err(Error::Read {
            file,
            lines,
            source,
        }),
        Some(Stop::Decide(Failure { line, reason })) => Err(Error::Decide { file, line, reason }),
    }
}

/// What `args` ask to be enforced, where that makes sense.
fn limits(args: &Args) -> Result<Vec<Limit>, Error> {
    let count = args.limits.len();
    if count > LIMITS_MAX {
        return Err(Error::TooMany { count });
    }
    args.limits.iter().map(|asked| limit(asked, args)).collect()
}

fn limit(asked: &Asked, args: &Args) -> Result<Limit, Error> {
    let limit = asked
        .limit(args.algorithm)
        .map_err(|mismatch| Error::Mismatch {
            limit: asked.to_string(),
            mismatch,
        })?;
    let (cost, cost_max) = (args.cost, limit::cost_max(limit));
    // A count of 0 is a way to ask for nothing to be allowed.
    if cost > cost_max && limit.count() > 0 {
        return Err(Error::Cost {
            cost,
            cost_max,
            limit,
        });
    }
    Ok(limit)
}

/// What to ask the engine about each line.
struct Plan {
    by: Field,
    cost: u64,
}

/// What became of one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Allowed,
    Refused,
    Malformed,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Refused => "refused",
            Self::Malformed => "malformed",
        }
    }
}

/// What was found up to the log's end or to where it stopped.
struct Played {
    /// Lines read and, unless malformed, decided.
    lines: u64,
    tally: Tally,
    late: Late,
    bytes_per_key: Option<f64>,
    stop: Option<Stop>,
}

/// Requests with a time before that of one above them, which were decided at that one's.
#[derive(Default)]
struct Late {
    requests: u64,
    /// By how much, at most.
    ns_max: u64,
}

/// Why the log was not replayed to its end.
enum Stop {
    Read(io::Error),
    Decide(Failure),
}

/// Why there is nothing to report.
enum Fault {
    /// The engine does not take the limit.
    Limit(Limit, String),
    /// A verdict could not be told.
    Write(io::Error),
}

impl Played {
    fn report(&self, args: &Args, limits: &[Limit]) -> Report {
        let tally = &self.tally;
        let refused_keys = tally.most_refused(args.top);
        Report {
            requests: tally.requests,
            malformed: self.lines - tally.requests,
            late: self.late.requests,
            late_ns_max: self.late.ns_max,
            keys: tally.keys(),
            allowed: tally.requests - tally.refused,
            refused: tally.refused,
            refused_keys: refused_keys
                .into_iter()
                .map(|(key, count)| RefusedKey::new(key, count))
                .collect(),
            ns_per_decision: quotient(tally.deciding.as_nanos() as f64, tally.requests),
            bytes_per_key: self.bytes_per_key,
            limits: limits
                .iter()
                .zip(tally.refused_by)
                .map(|(limit, refused)| LimitCount {
                    limit: limit.to_string(),
                    algorithm: limit::algorithm_name(*limit),
                    refused,
                })
                .collect(),
            by: args.by.name(),
            cost: args.cost,
            complete: self.stop.is_none(),
        }
    }
}

/// One replay under way: what is read waits in the batch until it is decided, then is told.
struct Player<D, O, T> {
    open: O,
    engine: Option<D>,
    cost: u64,
    batch: Batch,
    tally: Tally,
    /// Lines whose verdict was told.
    told: u64,
    tell: T,
}

/// Decides every line of `text` by the engine that `open` makes for the first request's time, and
/// tells the number and the verdict of each to `tell`, in order.
fn play<D: Decide>(
    text: impl BufRead,
    plan: &Plan,
    open: impl Fn(i64) -> Result<D, (Limit, String)>,
    tell: impl FnMut(u64, Verdict) -> io::Result<()>,
) -> Result<Played, Fault> {
    let mut lines = Lines::new(text);
    let mut player = Player {
        open,
        engine: None,
        cost: plan.cost,
        batch: Batch::default(),
        tally: Tally::default(),
        told: 0,
        tell,
    };
    let mut latest_ns = i64::MIN;
    let mut late = Late::default();
    let mut stop = None;
    while stop.is_none() {
        let number = lines.count + 1;
        match lines.take() {
            Ok(Taken::Line(line)) => {
                let parsed = Line::parse(line);
                if let Some((key, at_ns)) =
                    parsed.and_then(|line| Some((line.key(plan.by)?, line.at_ns)))
                {
                    if at_ns < latest_ns {
                        late.requests += 1;
                        late.ns_max = late.ns_max.max(latest_ns.abs_diff(at_ns));
                    }
                    latest_ns = latest_ns.max(at_ns);
                    player.batch.push(number, key, latest_ns);
                }
            }
            Ok(Taken::TooLong) => {}
            Ok(Taken::End) => break,
            Err(error) => stop = Some(Stop::Read(error)),
        }
        if player.batch.is_full()
            && let Some(failure) = player.settle(lines.count)?
        {
            stop = Some(Stop::Decide(failure));
        }
    }
    if !matches!(stop, Some(Stop::Decide(_)))
        && let Some(failure) = player.settle(lines.count)?
    {
        stop = Some(Stop::Decide(failure));
    }
    let bytes_per_key = player
        .engine
        .and_then(|engine| quotient(engine.bytes() as f64, engine.keys()));
    Ok(Played {
        lines: player.told,
        tally: player.tally,
        late,
        bytes_per_key,
        stop,
    })
}

impl<D, O, T> Player<D, O, T>
where
    D: Decide,
    O: Fn(i64) -> Result<D, (Limit, String)>,
    T: FnMut(u64, Verdict) -> io::Result<()>,
{
    /// Decides the batch, empties it, and tells all verdicts up to line `last` or to the failure.
    fn settle(&mut self, last: u64) -> Result<Option<Failure>, Fault> {
        let mut failure = None;
        if let Some(first_at_ns) = self.batch.first_at_ns() {
            let engine = match &mut self.engine {
                Some(engine) => engine,
                none => {
                    let opened = (self.open)(first_at_ns);
                    none.insert(opened.map_err(|(limit, why)| Fault::Limit(limit, why))?)
                }
            };
            let (took, result) = self.batch.decide(engine, self.cost);
            self.tally.deciding += took;
            failure = result.err();
        }
        for decided in self.batch.decided() {
            self.tally.add(decided);
            let Decided {
                line, refused_by, ..
            } = decided;
            tell_malformed(&mut self.tell, &mut self.told, line - 1)?;
            let verdict = if refused_by == 0 {
                Verdict::Allowed
            } else {
                Verdict::Refused
            };
            (self.tell)(line, verdict).map_err(Fault::Write)?;
            self.told = line;
        }
        let last = failure.as_ref().map_or(last, |failure| failure.line - 1);
        tell_malformed(&mut self.tell, &mut self.told, last)?;
        self.batch.clear();
        Ok(failure)
    }
}

/// Tells that the lines after `told` up to `last` are malformed: a line that is in no batch is.
fn tell_malformed(
    tell: &mut impl FnMut(u64, Verdict) -> io::Result<()>,
    told: &mut u64,
    last: u64,
) -> Result<(), Fault> {
    while *told < last {
        *told += 1;
        tell(*told, Verdict::Malformed).map_err(Fault::Write)?;
    }
    Ok(())
}

fn quotient(total: f64, count: u64) -> Option<f64> {
    (count > 0).then(|| total / count as f64)
}
