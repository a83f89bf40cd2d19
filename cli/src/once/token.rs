//! Attempts of a script, between commands: begun, finished, abandoned and extended by their token; and what is
//! known of a key.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use sprag::{Attempt, Once, OnceStatus, RESULT_BYTES_MAX};

use super::{Args, Error};
use crate::printable::{self, Name};
use crate::shown::Shown;
use crate::{output, span};

/// What was done or is known, as `--json` prints it.
#[derive(Serialize)]
struct Report {
    status: &'static str,
    #[serde(flatten)]
    name: Name,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<u64>,
    /// Whether an attempt before ended unfinished.
    #[serde(skip_serializing_if = "Option::is_none")]
    after_unfinished: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    /// All bytes of the result in hexadecimal, where they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    result_hex: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder_pid: Option<u32>,
    /// Until the deadline, or until the result is not kept any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_ns: Option<u64>,
}

impl Report {
    fn new(status: &'static str, name: &[u8]) -> Self {
        Self {
            status,
            name: Name::new(name),
            token: None,
            after_unfinished: None,
            result: None,
            result_hex: None,
            holder_pid: None,
            left_ns: None,
        }
    }

    fn with_token(self, token: u64) -> Self {
        let token = Some(token);
        Self { token, ..self }
    }

    fn with_left(self, left: Duration) -> Self {
        let left_ns = Some(span::nanoseconds(left));
        Self { left_ns, ..self }
    }

    fn with_result(self, result: &[u8]) -> Self {
        let is_text = std::str::from_utf8(result).is_ok();
        Self {
            result: Some(printable::readable(result)),
            result_hex: (!is_text).then(|| printable::hex(result)),
            ..self
        }
    }

    /// Prints it if that is asked for.
    fn tell(&self, args: &Args, out: &mut impl Write, outcome: &'static str) -> Result<(), Error> {
        if !args.json {
            return Ok(());
        }
        let told = output::json(out, self).and_then(|()| out.flush());
        told.map_err(|source| Error::Write { source, outcome })
    }
}

/// The value of the options that take a token. Often missing, so that the key is taken for it.
pub(super) fn parse(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(
            "not a token; a token is the number that --begin printed, and goes before the key"
                .to_owned(),
        ),
        Ok(token) => Ok(token),
    }
}

/// Prints the token of `attempt` and leaves it in progress, or else the result. A token that nobody could
/// read would keep others off for nothing, so it is told first: when that fails, the attempt is abandoned.
pub(super) fn begun(
    once: &Once<'_>,
    attempt: Option<Attempt<'_>>,
    result: &[u8],
    args: &Args,
    out: &mut impl Write,
) -> Result<ExitCode, Error> {
    let Some(attempt) = attempt else {
        let outcome = "it was done before";
        if args.json {
            let report = Report::new("done", &once.name()).with_result(result);
            report.tell(args, out, outcome)?;
        } else {
            let told = out.write_all(result).and_then(|()| out.flush());
            told.map_err(|source| Error::Write { source, outcome })?;
        }
        return Ok(output::NO.into());
    };
    let token = attempt.token();
    let told = if args.json {
        let report = Report {
            after_unfinished: Some(attempt.is_after_unfinished()),
            ..Report::new("begun", &once.name())
        };
        output::json(out, &report.with_token(token).with_left(args.ttl))
    } else {
        writeln!(out, "{token}")
    };
    if let Err(source) = told.and_then(|()| out.flush()) {
        let _ = attempt.abandon();
        let outcome = "the attempt was abandoned again";
        return Err(Error::Write { source, outcome });
    }
    let detached = attempt.detach();
    detached.map_err(|error| of_token(error, once, token))?;
    Ok(ExitCode::SUCCESS)
}

/// Finishes the attempt under `token` with what comes from standard input.
pub(super) fn finish(
    once: &Once<'_>,
    token: u64,
    args: &Args,
    out: &mut impl Write,
) -> Result<ExitCode, Error> {
    let mut result = Vec::new();
    let most = RESULT_BYTES_MAX as u64 + 1;
    let read = io::stdin().lock().take(most).read_to_end(&mut result);
    read.map_err(|source| Error::Read { source })?;
    if result.len() > RESULT_BYTES_MAX {
        return Err(Error::LongResult);
    }
    let finished = once.finish_token(token, &result, args.keep);
    finished.map_err(|error| of_token(error, once, token))?;
    let report = Report::new("finished", &once.name()).with_token(token);
    report.tell(args, out, "the result is stored all the same")?;
    Ok(ExitCode::SUCCESS)
}

/// Abandons the attempt under `token`.
pub(super) fn abandon(
    once: &Once<'_>,
    token: u64,
    args: &Args,
    out: &mut impl Write,
) -> Result<ExitCode, Error> {
    let abandoned = once.abandon_token(token);
    abandoned.map_err(|error| of_token(error, once, token))?;
    let report = Report::new("abandoned", &once.name()).with_token(token);
    report.tell(args, out, "the attempt was abandoned all the same")?;
    Ok(ExitCode::SUCCESS)
}

/// Starts the time of the attempt under `token` anew.
pub(super) fn extend(
    once: &Once<'_>,
    token: u64,
    args: &Args,
    out: &mut impl Write,
) -> Result<ExitCode, Error> {
    let extended = once.extend_token(token, args.ttl);
    extended.map_err(|error| of_token(error, once, token))?;
    let report = Report::new("extended", &once.name()).with_token(token);
    let outcome = "the attempt was extended all the same";
    report.with_left(args.ttl).tell(args, out, outcome)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints what is known of a key; 0 if it was done.
pub(super) fn show(
    name: &[u8],
    status: &OnceStatus,
    args: &Args,
    out: &mut impl Write,
) -> Result<ExitCode, Error> {
    let (report, text) = match status {
        OnceStatus::New => (Report::new("new", name), "new".to_owned()),
        OnceStatus::InProgress {
            holder_pid,
            deadline_left,
        } => {
            let by = holder_pid.map_or_else(|| "detached".to_owned(), |pid| format!("pid {pid}"));
            let left = span::passed(*deadline_left);
            let report = Report {
                holder_pid: *holder_pid,
                ..Report::new("in progress", name)
            };
            let text = format!("in progress, {by}, {left} left");
            (report.with_left(*deadline_left), text)
        }
        OnceStatus::Done { result, kept_left } => {
            let report = Report::new("done", name).with_result(result);
            let left = span::passed(*kept_left);
            let text = format!("done, {} bytes kept for {left}", result.len());
            (report.with_left(*kept_left), text)
        }
        OnceStatus::Unfinished => (Report::new("unfinished", name), "unfinished".to_owned()),
    };
    let told = if args.json {
        output::json(out, &report)
    } else {
        writeln!(out, "{text}")
    };
    match told.and_then(|()| out.flush()) {
        // The answer stands in the exit code all the same.
        Err(source) if source.kind() != io::ErrorKind::BrokenPipe => {
            let outcome = "nothing was changed";
            return Err(Error::Write { source, outcome });
        }
        Ok(()) | Err(_) => {}
    }
    Ok(match status {
        OnceStatus::Done { .. } => ExitCode::SUCCESS,
        _ => output::NO.into(),
    })
}

fn of_token(error: sprag::Error, once: &Once<'_>, token: u64) -> Error {
    match error {
        sprag::Error::AttemptLost { .. } => Error::NotInProgress {
            key: Shown::of_bytes(&once.name()),
            token,
        },
        _ => Error::Space(error),
    }
}
