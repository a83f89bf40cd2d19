//! What a script holds between commands: taken, released and renewed by its token.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use super::wanted::{Held, Wanted};
use super::{Args, Error};
use crate::printable::{Key, Name};
use crate::{output, span};
use serde::Serialize;

/// What was done, as `--json` prints it.
#[derive(Serialize)]
struct Report {
    did: &'static str,
    #[serde(flatten)]
    name: Name,
    /// Of a limiter.
    #[serde(flatten)]
    key: Option<Key>,
    token: u64,
    /// The lease from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ns: Option<u64>,
}

/// The value of `--release` and `--renew`. Often missing, so that the name is taken for it.
pub(super) fn parse(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(
            "not a token; a token is the number that --acquire printed, and goes before the lock's name"
                .to_owned(),
        ),
        Ok(token) => Ok(token),
    }
}

/// Prints the token of `hold` and leaves it held. A token that nobody could read would hold the lock
/// for nothing, so it is told first: when that fails, the hold is released.
pub(super) fn acquire(
    held: Held<'_>,
    wanted: &Wanted<'_>,
    args: &Args,
    out: &mut impl Write,
) -> Result<ExitCode, Error> {
    // Several are held only while a command runs.
    let Held::One(hold) = held else {
        return Ok(ExitCode::SUCCESS);
    };
    let token = hold.token();
    let told = if args.json {
        output::json(out, &report("acquired", wanted, token, Some(args.ttl)))
    } else {
        writeln!(out, "{token}")
    };
    told.and_then(|()| out.flush())
        .map_err(|source| Error::Write {
            source,
            outcome: "what was acquired was released again",
        })?;
    let detached = hold.detach();
    detached.map_err(|error| of_token(error, wanted, token))?;
    Ok(ExitCode::SUCCESS)
}

/// Releases the lock that is held under `token`.
pub(super) fn release(
    wanted: &Wanted<'_>,
    token: u64,
    args: &Args,
    out: &mut impl Write,
) -> Result<ExitCode, Error> {
    let released = wanted.release_token(token);
    released.map_err(|error| of_token(error, wanted, token))?;
    let report = report("released", wanted, token, None);
    tell(&report, args, out, "it was released all the same")
}

/// Starts the lease of the hold under `token` anew.
pub(super) fn renew(
    wanted: &Wanted<'_>,
    token: u64,
    args: &Args,
    out: &mut impl Write,
) -> Result<ExitCode, Error> {
    let renewed = wanted.renew_token(token);
    renewed.map_err(|error| of_token(error, wanted, token))?;
    let report = report("renewed", wanted, token, Some(args.ttl));
    tell(&report, args, out, "it was renewed all the same")
}

fn tell(
    report: &Report,
    args: &Args,
    out: &mut impl Write,
    outcome: &'static str,
) -> Result<ExitCode, Error> {
    if args.json {
        let told = output::json(out, report).and_then(|()| out.flush());
        told.map_err(|source| Error::Write { source, outcome })?;
    }
    Ok(ExitCode::SUCCESS)
}

fn of_token(error: sprag::Error, wanted: &Wanted<'_>, token: u64) -> Error {
    match error {
        sprag::Error::Lost { .. } => Error::NotHeld {
            subject: wanted.subject(),
            token,
        },
        _ => Error::Space(error),
    }
}

fn report(did: &'static str, wanted: &Wanted<'_>, token: u64, ttl: Option<Duration>) -> Report {
    Report {
        did,
        name: Name::new(&wanted.name()),
        key: wanted.key().map(|key| Key::new(&key)),
        token,
        ttl_ns: ttl.map(span::nanoseconds),
    }
}
