//! `sprag metrics`: how full a space is. Owns the arguments and the answer's form. Changes nothing.

use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;
use sprag::{Fill, Space};

use crate::at::At;
use crate::error::Error;
use crate::output;

/// Show how full a space is
///
/// Stops nobody and changes nothing. What is idle, expired or left by the dead counts until somebody needs its
/// room: what is full need not refuse anybody, what is far from full refuses nobody. sprag region resize gives a
/// space more room.
///
/// What one program did with the space is not shown: only that program can tell, through the library.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes:
  0  shown
  2  an argument is wrong, there is no such space, or something failed")]
pub(crate) struct Args {
    /// Print a JSON object of objects, each with used and cap
    #[arg(long)]
    json: bool,
}

/// How much of a thing is taken.
#[derive(Debug, Serialize)]
struct Row {
    used: u64,
    cap: u64,
}

impl From<Fill> for Row {
    fn from(fill: Fill) -> Self {
        Self {
            used: fill.used,
            cap: fill.cap,
        }
    }
}

/// Reads how full the space is, and prints it.
pub(crate) fn run(args: &Args, at: &At, out: &mut impl Write) -> Result<ExitCode, Error> {
    at.refuse_memory("metrics")?;
    let answer = Answer::read(&at.open_to_look()?)?;
    output::print(out, ExitCode::SUCCESS, |out| {
        if args.json {
            return output::json(out, &answer);
        }
        let rows = answer.rows().map(|(what, row)| {
            let percent = 100 * row.used / row.cap.max(1);
            vec![
                row.used.to_string(),
                row.cap.to_string(),
                format!("{percent} %"),
                what.to_owned(),
            ]
        });
        output::table(out, "USED CAP FULL OF", rows)
    })
}

#[derive(Debug, Serialize)]
struct Answer {
    objects: Row,
    limiter_keys: Row,
    joint_keys: Row,
    sessions: Row,
    waiters: Row,
    permits: Row,
    key_chunks: Row,
    limits: Row,
    joint_limiters: Row,
}

impl Answer {
    fn read(space: &Space) -> sprag::Result<Self> {
        let usage = space.metrics()?.region;
        Ok(Self {
            objects: usage.objects.into(),
            limiter_keys: usage.limiter_keys.into(),
            joint_keys: usage.joint_keys.into(),
            sessions: usage.sessions.into(),
            waiters: usage.waiters.into(),
            permits: usage.permits.into(),
            key_chunks: space.key_chunk_usage()?.into(),
            limits: usage.limits.into(),
            joint_limiters: usage.joint_limiters.into(),
        })
    }

    fn rows(&self) -> [(&'static str, &Row); 9] {
        [
            ("objects", &self.objects),
            ("limiter keys", &self.limiter_keys),
            ("joint keys", &self.joint_keys),
            ("sessions", &self.sessions),
            ("waiters", &self.waiters),
            ("permits", &self.permits),
            ("key chunks", &self.key_chunks),
            ("limits", &self.limits),
            ("joint limiters", &self.joint_limiters),
        ]
    }
}
