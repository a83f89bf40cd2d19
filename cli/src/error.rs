//! Why a subcommand failed: owns the one-line texts that are the command's own, and the exit codes.

use std::io;
use std::process::ExitCode;

#[cfg(target_os = "linux")]
use crate::{lock, once};
use crate::{output, replay};

/// Why a subcommand failed. Its text is one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// From the space.
    #[error(transparent)]
    Space(#[from] sprag::Error),
    /// From `sprag lock`.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Lock(#[from] lock::Error),
    /// From `sprag once`.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Once(#[from] once::Error),
    /// From `sprag replay`.
    #[error(transparent)]
    Replay(#[from] replay::Error),
    /// The limiter is there with another limit.
    #[error(
        "the limiter {name} is {existing} in {url}, not {asked}; give that limit, or --update to change it"
    )]
    OtherLimit {
        name: String,
        url: String,
        existing: String,
        asked: String,
    },
    /// There is no such limiter.
    #[error(
        "there is no limiter {name} in {url}; sprag limit creates one on first use, and one of several limits (--and) has no \
         overrides"
    )]
    NoLimiter { name: String, url: String },
    /// The region stays, since it is in use.
    #[error(
        "{path} is in use by {sessions} open sessions and {detached} detached holds; {way_out}"
    )]
    InUse {
        path: String,
        sessions: u32,
        detached: u32,
        way_out: String,
    },
    /// There is no such region to work on.
    #[error("there is no region at {path}; sprag region ls lists those there are")]
    NoRegion { path: String },
    /// Standard output can't be written to.
    #[error("cannot write to standard output: {0}; free some space or send it elsewhere")]
    Write(#[from] io::Error),
    /// A process of a benchmark could not be run, or did not answer.
    #[error("the benchmark's own process {what}: {source}")]
    Child {
        what: &'static str,
        source: io::Error,
    },
    /// Something that can't be asked together.
    #[error("{0}")]
    Usage(String),
}

impl Error {
    /// What to exit with: 2, but for a region that stays since it is in use, which is an answer, for a
    /// replay, which tells usage from a log that it can't read, and for a lock and a once, whose codes must be
    /// told from a command's own.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::InUse { .. } => output::NO.into(),
            #[cfg(target_os = "linux")]
            Self::Lock(error) => error.exit_code(),
            #[cfg(target_os = "linux")]
            Self::Once(error) => error.exit_code(),
            Self::Replay(error) => error.exit_code(),
            _ => ExitCode::from(2),
        }
    }
}

impl From<sprag::limit::LimitError> for Error {
    fn from(error: sprag::limit::LimitError) -> Self {
        Self::Space(error.into())
    }
}
