//! Why `sprag lock` ran nothing, or not to its end. Owns the texts, and which exit code each has.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use sprag::Span;

use super::code;
use super::wanted::Subject;
use crate::shown::Shown;
use crate::supervise::{Failure, Loss, TTL_MIN};

/// Why nothing was run, or not to its end. Its text is one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// There is no lock to speak of.
    #[error("no lock is named; use sprag lock NAME -- CMD")]
    NoName,
    /// Several names and no command: what was meant for one may be among them.
    #[error(
        "{word} is taken for another lock's name; a command to run goes behind --, as in sprag lock NAME -- CMD"
    )]
    NoCommandOfSeveral { word: Shown },
    /// The table is to be locked for nothing.
    #[error("no command is given; use sprag lock --table -- CMD, or --acquire")]
    NoTableCommand,
    /// There is nothing to run.
    #[error(
        "nothing to run under the lock {name}; use sprag lock NAME -- CMD, or --acquire for a script"
    )]
    NoCommand { name: Shown },
    /// There is something to run that will not be.
    #[error(
        "{mode} runs no command, so {command} has no place; leave it out, or leave {mode} out to run it"
    )]
    Command { mode: &'static str, command: Shown },
    /// The lease is too short to be guarded.
    #[error(
        "--ttl is {}; while a command runs it must be {} to 366d: use a longer one",
        Span(*ttl), Span(TTL_MIN)
    )]
    ShortTtl { ttl: Duration },
    /// Arguments that don't go together.
    #[error("{0}")]
    Usage(String),
    /// The name or the URL is wrong.
    #[error(transparent)]
    Argument(sprag::Error),
    /// The lock is not free.
    #[error("the {subject} is not free; try again later, or wait for it with --wait 5s")]
    Busy { subject: Subject, code: u8 },
    /// It is part of the command that the lock is held for.
    #[error(
        "the {subject} can't be had as long as the command that this is part of runs (SPRAG_TOKEN {token}), so waiting would never end; leave the inner sprag lock out"
    )]
    Nested { subject: Subject, token: u64 },
    /// The lock's turn did not come in time.
    #[error("the {subject} was not free within {}; try again later, or wait longer", Span(*wait))]
    TimedOut {
        subject: Subject,
        wait: Duration,
        code: u8,
    },
    /// The token isn't the holder's.
    #[error(
        "the {subject} is not held under token {token}: it was released, broken, or its lease is over{}; stop what it \
         protected and take it again",
        subject.or_of_another_kind()
    )]
    NotHeld { subject: Subject, token: u64 },
    /// The lock was lost while CMD ran.
    #[error(
        "the {subject} (token {token}) was lost: {loss}; {command} {ending}: check what it left undone"
    )]
    Lost {
        subject: Subject,
        token: u64,
        loss: Loss,
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
    /// The space or its engine failed.
    #[error(transparent)]
    Space(sprag::Error),
    /// The system failed.
    #[error("cannot {action}: {source}; the lock is released")]
    System {
        action: &'static str,
        source: io::Error,
    },
    /// The token can't be told.
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

impl Error {
    /// See the table in the help.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::NoName
            | Self::NoTableCommand
            | Self::NoCommandOfSeveral { .. }
            | Self::NoCommand { .. }
            | Self::Command { .. }
            | Self::ShortTtl { .. }
            | Self::Usage(_)
            | Self::Nested { .. }
            | Self::Argument(_) => code::USAGE,
            Self::Busy { code, .. } | Self::TimedOut { code, .. } => *code,
            Self::NotHeld { .. } | Self::Lost { .. } => code::LOST,
            Self::NotFound { .. } => code::NOT_FOUND,
            Self::CannotRun { .. } => code::CANNOT_RUN,
            Self::Space(_) | Self::System { .. } | Self::Write { .. } => code::FAILED,
        })
    }
}
