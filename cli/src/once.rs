//! `sprag once`: runs a command unless it was run, or begins, finishes and abandons an attempt for a script.
//! Owns the subcommand's arguments, its errors and its exit codes. Never decides when a command must end.
//!
//! ```text
//!            ┌── token     no CMD: begin and print, finish, abandon, extend, show
//!  Args ─────┤                 ┌── relay      what CMD prints, passed on and kept
//!            └── run ──────────┼── stored     what of it is stored, and how it is shown again
//!                              └── (crate::supervise)
//! ```

mod relay;
mod run;
mod stored;
mod token;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use sprag::{Begun, EngineError, Span};

use crate::at::{At, is_bad_url};
use crate::shown::Shown;
use crate::supervise::{Failure, Loss, TTL_MIN, code};
use crate::{duration, number, printable, span};

const EXIT_CODES: &str = "\
Exit codes:
  0..255   CMD's own, now or when it ran, or 128 + N if signal N ended it
  1        --begin: it was done, and the result is printed; --status: it was not done
  64       an argument is wrong, or the result is too long
  75       it is in progress elsewhere (-E sets another code)
  123      the attempt was lost while CMD ran, or there is none under TOKEN
  125      sprag failed: the space cannot be opened, is full or damaged
  126      CMD was found but cannot be run
  127      CMD was not found

Examples:
  # Send the invoice unless it was sent within a day
  sprag once invoice-42 --keep 1d -- send-invoice 42
  # Do it in several steps of a script
  token=$(sprag once --begin invoice-42 --ttl 10m) || exit
  send-invoice 42 && echo sent | sprag once --finish \"$token\" invoice-42";

/// Run a command once, and show its output again to those who come later
///
/// If nobody ran a command under KEY in the space that --at names, runs CMD, and stores the first 1,020 bytes
/// of its standard output and its exit code for --keep. Whoever comes within that time gets both, and
/// CMD is not run. Whoever comes while CMD runs is told so.
///
/// A CMD that is ended by a signal, or whose sprag is killed, is not done: the next one runs it again, with
/// SPRAG_UNFINISHED=1 in its environment, for it may have done its work in part. CMD finds the key in SPRAG_KEY
/// and the attempt's token in SPRAG_TOKEN. Signals and terminals are CMD's as under sprag lock.
///
/// Without CMD, --begin, --finish, --abandon and --extend let a script do it between commands.
#[derive(Debug, clap::Args)]
#[expect(
    clippy::doc_markdown,
    reason = "users read it as help, where backticks stand for nothing"
)]
#[command(
    override_usage = "sprag once [OPTIONS] KEY -- CMD [ARGS]...\n       \
        sprag once --begin [--ttl DURATION] KEY\n       \
        sprag once --finish TOKEN [--keep DURATION] KEY < RESULT\n       \
        sprag once --abandon TOKEN KEY\n       \
        sprag once --extend TOKEN [--ttl DURATION] KEY\n       \
        sprag once --status KEY",
    after_help = EXIT_CODES,
    group = clap::ArgGroup::new("once-mode").args(["begin", "finish", "abandon", "extend", "status"])
)]
pub(crate) struct Args {
    /// How long the key is this attempt's when nobody renews it
    ///
    /// While CMD runs it is renewed well before; 100ms to 366d then. For --begin and --extend, 1ms to 366d from
    /// now.
    #[arg(long, value_name = "DURATION", value_parser = duration::ttl, allow_hyphen_values = true, default_value = "30s", conflicts_with_all = ["finish", "abandon", "status"])]
    ttl: Duration,

    /// How long the result is kept, from when it is there; 1ms to 366d
    #[arg(long, value_name = "DURATION", value_parser = duration::keep, allow_hyphen_values = true, default_value = "1d", conflicts_with_all = ["begin", "abandon", "extend", "status"])]
    keep: Duration,

    /// The exit code when it is in progress elsewhere, instead of 75
    #[arg(short = 'E', long, value_name = "N", value_parser = number::within::<u8>(0..=255), allow_hyphen_values = true, conflicts_with_all = ["finish", "abandon", "extend", "status"])]
    conflict_exit_code: Option<u8>,

    /// Begin, print the attempt's token, and leave it in progress until it is finished or --ttl is over
    #[arg(long)]
    begin: bool,

    /// Finish the attempt under this token; its result, at most 1,024 bytes, is read from standard input
    #[arg(long, value_name = "TOKEN", value_parser = token::parse, allow_hyphen_values = true)]
    finish: Option<u64>,

    /// Free the key, as if the attempt under this token had not been
    #[arg(long, value_name = "TOKEN", value_parser = token::parse, allow_hyphen_values = true)]
    abandon: Option<u64>,

    /// Let the time of the attempt under this token start anew
    #[arg(long, value_name = "TOKEN", value_parser = token::parse, allow_hyphen_values = true)]
    extend: Option<u64>,

    /// Show what is known of the key
    #[arg(long)]
    status: bool,

    /// Print what was done or is known as one JSON object; not with CMD
    #[arg(long, requires = "once-mode")]
    json: bool,

    /// The key, 1 to 1,024 bytes; one that begins with - goes behind a -- of its own
    #[arg(value_name = "KEY")]
    key: Option<OsString>,

    /// The command and its arguments
    #[arg(last = true, value_name = "CMD", value_hint = clap::ValueHint::CommandWithArguments)]
    rest: Vec<OsString>,
}

/// Why nothing was run, or not to its end. Its text is one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Arguments that don't go together.
    #[error("{0}")]
    Usage(String),
    /// The key or the URL is wrong.
    #[error(transparent)]
    Argument(sprag::Error),
    /// The time is too short to be guarded.
    #[error(
        "--ttl is {}; while a command runs it must be {} to 366d: use a longer one",
        Span(*ttl), Span(TTL_MIN)
    )]
    ShortTtl { ttl: Duration },
    /// The result does not fit.
    #[error(
        "the result is longer than {} bytes, the most that is stored; store where it is instead",
        sprag::RESULT_BYTES_MAX
    )]
    LongResult,
    /// Another attempt is under way.
    #[error("{key} is in progress{by}, for {left} more at most; try again later")]
    Busy {
        key: Shown,
        by: String,
        left: String,
        code: u8,
    },
    /// There is no attempt under the token.
    #[error(
        "no attempt at {key} is in progress under token {token}: it was finished or abandoned, or its time is over; begin again to learn which"
    )]
    NotInProgress { key: Shown, token: u64 },
    /// The attempt was lost while CMD ran.
    #[error(
        "the attempt at {key} (token {token}) was lost: {loss}; {command} {ending}, and nothing was stored: check what it left undone"
    )]
    Lost {
        key: Shown,
        token: u64,
        loss: &'static str,
        command: Shown,
        ending: String,
    },
    /// There is no such program.
    #[error("cannot find {command}; name a program in PATH, or a path with a slash")]
    NotFound { command: Shown },
    /// The program can't be run.
    #[error(
        "cannot run {command}: {source}; check that it is a program and that you may execute it"
    )]
    CannotRun { command: Shown, source: io::Error },
    /// The result can't be stored though the command ran.
    #[error(
        "{command} came to its end, which cannot be stored: {source}; the next one is told that it may have been"
    )]
    NotStored {
        command: Shown,
        source: sprag::Error,
    },
    /// The space or its engine failed.
    #[error(transparent)]
    Space(sprag::Error),
    /// The system failed.
    #[error("cannot {action}: {source}; the next one is told that the attempt ended unfinished")]
    System {
        action: &'static str,
        source: io::Error,
    },
    /// The result can't be read.
    #[error("cannot read the result from standard input: {source}; nothing was stored")]
    Read { source: io::Error },
    /// What is to be told can't be.
    #[error("cannot write to standard output: {source}; {outcome}")]
    Write {
        source: io::Error,
        outcome: &'static str,
    },
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotFound { command } => Self::NotFound { command },
            Failure::CannotRun { command, source } => Self::CannotRun { command, source },
            Failure::System { action, source } => Self::System { action, source },
        }
    }
}

/// How an attempt was lost, in the words of this subcommand.
fn loss_text(loss: Loss) -> &'static str {
    match loss {
        Loss::TakenAway => {
            "it was ended by its token, or the space's region was removed or replaced"
        }
        Loss::NotRenewed => {
            "its time could not be renewed, for sprag was stopped or held up for longer than --ttl"
        }
    }
}

impl Error {
    /// See the table in the help.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Usage(_) | Self::Argument(_) | Self::ShortTtl { .. } | Self::LongResult => {
                code::USAGE
            }
            Self::Busy { code, .. } => *code,
            Self::NotInProgress { .. } | Self::Lost { .. } => code::LOST,
            Self::NotFound { .. } => code::NOT_FOUND,
            Self::CannotRun { .. } => code::CANNOT_RUN,
            Self::NotStored { .. }
            | Self::Space(_)
            | Self::System { .. }
            | Self::Read { .. }
            | Self::Write { .. } => code::FAILED,
        })
    }
}

/// What is asked for, the arguments taken apart.
enum Task<'a> {
    Run(&'a [OsString]),
    Begin,
    Finish(u64),
    Abandon(u64),
    Extend(u64),
    Status,
}

impl Args {
    /// The key and what to do with it.
    fn task(&self) -> Result<(&OsString, Task<'_>), Error> {
        let usage = |text: &str| Error::Usage(text.to_owned());
        let (key, command) = match (&self.key, self.rest.as_slice()) {
            (Some(key), rest) => (key, rest),
            // sprag once -- KEY -- CMD
            (None, [key, separator, command @ ..]) if separator == "--" => (key, command),
            (None, [key]) => (key, [].as_slice()),
            (None, _) => return Err(usage("no key is named; use sprag once KEY -- CMD")),
        };
        let task = match (
            self.begin,
            self.finish,
            self.abandon,
            self.extend,
            self.status,
        ) {
            (true, ..) => Task::Begin,
            (_, Some(token), ..) => Task::Finish(token),
            (_, _, Some(token), ..) => Task::Abandon(token),
            (_, _, _, Some(token), _) => Task::Extend(token),
            (.., true) => Task::Status,
            _ => Task::Run(command),
        };
        match (&task, command) {
            (Task::Run(_), []) => Err(usage(
                "nothing to run; use sprag once KEY -- CMD, or --begin for a script",
            )),
            (Task::Run(_), _) if self.ttl < TTL_MIN => Err(Error::ShortTtl { ttl: self.ttl }),
            (Task::Run(_), _) | (_, []) => Ok((key, task)),
            _ => Err(usage(
                "a command is run by sprag once KEY -- CMD alone; leave it out, or the other option",
            )),
        }
    }
}

/// Does what `args` ask for in the space `at`. `out` is for what sprag itself prints; a command that is run
/// has the process's own standard error and input, and its output is passed on to the process's own.
pub(crate) fn run(args: &Args, at: &At, out: &mut impl Write) -> Result<ExitCode, Error> {
    at.check()
        .and_then(|()| at.refuse_memory("once"))
        .and_then(|()| at.check_shared())
        .map_err(|error| Error::Usage(error.to_string()))?;
    let (key, task) = args.task()?;
    let shown = || Shown::of(key);
    let opened = match task {
        Task::Run(_) | Task::Begin => at.open(),
        Task::Finish(_) => at.open_existing(),
        Task::Abandon(_) | Task::Extend(_) | Task::Status => at.open_to_look(),
    };
    let space = match (opened, &task) {
        // Where there is no region, nothing is in progress, and nothing was done.
        (
            Err(sprag::Error::Engine(EngineError::NotFound { .. })),
            Task::Finish(token) | Task::Abandon(token) | Task::Extend(token),
        ) => {
            let (key, token) = (shown(), *token);
            return Err(Error::NotInProgress { key, token });
        }
        (Err(sprag::Error::Engine(EngineError::NotFound { .. })), Task::Status) => {
            return token::show(printable::bytes(key), &sprag::OnceStatus::New, args, out);
        }
        (Err(error), _) if is_bad_url(&error) => return Err(Error::Argument(error)),
        (opened, _) => opened.map_err(Error::Space)?,
    };
    let once = space.once(printable::bytes(key)).map_err(Error::Argument)?;
    match task {
        Task::Finish(token) => return token::finish(&once, token, args, out),
        Task::Abandon(token) => return token::abandon(&once, token, args, out),
        Task::Extend(token) => return token::extend(&once, token, args, out),
        Task::Status => {
            let status = once.status().map_err(Error::Space)?;
            return token::show(&once.name(), &status, args, out);
        }
        Task::Run(_) | Task::Begin => {}
    }
    match (once.begin(args.ttl).map_err(Error::Space)?, task) {
        (
            Begun::InProgress {
                holder_pid,
                deadline_left,
            },
            _,
        ) => Err(Error::Busy {
            key: shown(),
            by: holder_pid.map_or_else(String::new, |pid| format!(" in process {pid}")),
            left: span::to_wait(deadline_left),
            code: args.conflict_exit_code.unwrap_or(code::BUSY),
        }),
        (Begun::Done(result), Task::Run(_)) => stored::show(&result, out),
        (Begun::Done(result), _) => token::begun(&once, None, &result, args, out),
        (Begun::Started(attempt), Task::Run(command)) => run::run(attempt, key, command, args),
        (Begun::Started(attempt), _) => token::begun(&once, Some(attempt), b"", args, out),
    }
}
