//! `sprag region`: the files behind shm: spaces. Owns the arguments and what is printed; what a region
//! is and whether it is sound is the engine's to say.

use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;
use sprag::region::Info;
use sprag::{Caps, EngineError};

use crate::at::At;
use crate::error::Error;
use crate::{number, output, printable, span};

/// Times that a check looks before it takes a finding for one: steps in passing are gone by then.
const LOOKS: u32 = 3;

/// List, check, resize and remove the regions behind shm: spaces
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "Exit codes:
  0  done; for check, nothing was found
  1  check: something was found; rm and resize: refused, since the region is in use
  2  an argument is wrong, or something failed")]
pub(crate) enum Command {
    Ls(LsArgs),
    Check(CheckArgs),
    Resize(ResizeArgs),
    Rm(RmArgs),
}

#[expect(clippy::doc_markdown, reason = "help for a terminal")]
/// List this user's regions: those in $SPRAG_DIR, or else in /dev/shm/sprag-UID
#[derive(Debug, clap::Args)]
pub(crate) struct LsArgs {
    /// Print a JSON array with an object for each region
    #[arg(long)]
    json: bool,
}

/// Walk through a region and say what contradicts itself
///
/// Changes nothing and stops nobody. A region that is in use is looked at three times, and only what
/// is found each time counts, since somebody may be in the middle of a step.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// The region: NAME, /path, or a shm: URL; that of --at if not given
    region: Option<String>,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// Give a region other caps, while nobody uses it
///
/// A cap that is not given stays; region ls --json tells them. Limiters, what their keys have used of a rate, overrides,
/// counters, fences and results that are kept are carried over; no token goes back. Nothing is changed if it fails, also when a cap is too low for what there is.
#[derive(Debug, clap::Args)]
pub(crate) struct ResizeArgs {
    /// The region: NAME, /path, or a shm: URL
    region: String,

    /// Locks, semaphores, fences, counters, limiter names, overrides, keys of which some are held, and onces together
    #[arg(long, value_name = "COUNT", value_parser = number::within::<u32>(0..=u64::from(u32::MAX)), allow_hyphen_values = true)]
    locks: Option<u32>,

    /// Keys of all limiters of one limit together
    #[arg(long, value_name = "COUNT", value_parser = number::within::<u32>(0..=u64::from(u32::MAX)), allow_hyphen_values = true)]
    limiter_keys: Option<u32>,

    /// Keys of all limiters of several limits together
    #[arg(long, value_name = "COUNT", value_parser = number::within::<u32>(0..=u64::from(u32::MAX)), allow_hyphen_values = true)]
    joint_keys: Option<u32>,

    /// Programs that have the space open at one time
    #[arg(long, value_name = "COUNT", value_parser = number::within::<u32>(0..=u64::from(u32::MAX)), allow_hyphen_values = true)]
    sessions: Option<u32>,

    /// Waits at one time
    #[arg(long, value_name = "COUNT", value_parser = number::within::<u32>(0..=u64::from(u32::MAX)), allow_hyphen_values = true)]
    waiters: Option<u32>,

    /// Shared holds, and holds of semaphores and of limiters' keys, at one time
    #[arg(long, value_name = "COUNT", value_parser = number::within::<u32>(0..=u64::from(u32::MAX)), allow_hyphen_values = true)]
    permits: Option<u32>,

    /// Pieces of 48 bytes for names over 24 bytes, limiter keys over 16, and results
    #[arg(long, value_name = "COUNT", value_parser = number::within::<u32>(0..=u64::from(u32::MAX)), allow_hyphen_values = true)]
    key_chunks: Option<u32>,

    /// Print the region as ls would, as a JSON object
    #[arg(long)]
    json: bool,
}

/// Remove a region and all that is in it
#[derive(Debug, clap::Args)]
pub(crate) struct RmArgs {
    /// The region: NAME, /path, or a shm: URL
    region: String,

    /// Also while programs have it open, or scripts hold a lock: those are lost, and an error tells them
    #[arg(long)]
    force: bool,

    /// Print a JSON object: url, removed
    #[arg(long)]
    json: bool,
}

/// A region in a list.
#[derive(Debug, Serialize)]
struct Row {
    /// Null for a region that was named by its path.
    name: Option<String>,
    path: String,
    #[serde(flatten)]
    state: State,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum State {
    Sound {
        sessions: u32,
        allocated_bytes: u64,
        len_bytes: u64,
        locks_cap: u32,
        limiter_keys_cap: u32,
        joint_keys_cap: u32,
        sessions_cap: u32,
        waiters_cap: u32,
        permits_cap: u32,
        key_chunks_cap: u32,
        created_unix_ns: u64,
    },
    Unreadable {
        error: String,
    },
}

#[derive(Debug, Serialize)]
struct Checked {
    url: String,
    objects: u64,
    limiter_keys: u64,
    joint_keys: u64,
    waits: u32,
    displacement_max: u32,
    findings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Removed {
    url: String,
    removed: bool,
}

/// Runs one of them.
pub(crate) fn run(command: &Command, at: &At, out: &mut impl Write) -> Result<ExitCode, Error> {
    at.check()?;
    match command {
        Command::Ls(args) => {
            at.refuse_url(
                "region ls lists all regions in $SPRAG_DIR, or else in /dev/shm/sprag-UID",
            )?;
            list(args, at, out)
        }
        Command::Check(args) => {
            if args.region.is_none() {
                at.refuse_memory("region check")?;
            } else {
                refuse_second_name(at)?;
            }
            check(args, at, out)
        }
        Command::Resize(args) => {
            refuse_second_name(at)?;
            resize(args, at, out)
        }
        Command::Rm(args) => {
            refuse_second_name(at)?;
            remove(args, at, out)
        }
    }
}

/// Refuses --at beside a region that is named.
fn refuse_second_name(at: &At) -> Result<(), Error> {
    at.refuse_url("the region is named without an option, as in sprag region check NAME")
}

/// The URL of a region that was named for short.
fn url(region: &str) -> String {
    // A path may have any byte in it.
    if region.contains(':') && !region.starts_with('/') {
        region.to_owned()
    } else {
        format!("shm:{region}")
    }
}

fn list(args: &LsArgs, at: &At, out: &mut impl Write) -> Result<ExitCode, Error> {
    let regions = sprag::region::list()?;
    let rows: Vec<Row> = regions
        .iter()
        .map(|region| Row {
            name: Some(region.name.to_string()),
            ..row(
                &format!("shm:{}", region.name),
                at,
                region.path.display().to_string(),
            )
        })
        .collect();
    output::print(out, ExitCode::SUCCESS, |out| {
        if args.json {
            return output::json(out, &rows);
        }
        if rows.is_empty() {
            return writeln!(out, "no regions");
        }
        let heading = "NAME SESSIONS ALLOCATED AT-MOST CREATED PATH";
        output::table(out, heading, rows.iter().map(Row::cells))
    })
}

fn row(url: &str, at: &At, path: String) -> Row {
    let state = match sprag::region::probe(url, at.group_shared) {
        Ok(info) => State::Sound {
            sessions: info.sessions,
            allocated_bytes: info.allocated_bytes,
            len_bytes: info.len_bytes,
            locks_cap: info.caps.objects,
            limiter_keys_cap: info.caps.limiter_keys,
            joint_keys_cap: info.caps.joint_keys,
            sessions_cap: info.caps.sessions,
            waiters_cap: info.caps.waiters,
            permits_cap: info.caps.permits,
            key_chunks_cap: info.caps.key_chunks,
            created_unix_ns: info.created_unix_ns,
        },
        Err(error) => State::Unreadable {
            error: error.to_string(),
        },
    };
    Row {
        name: None,
        path,
        state,
    }
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let name = self.name.as_deref().unwrap_or("-").to_owned();
        let path = printable::harmless(&self.path);
        match &self.state {
            State::Sound {
                sessions,
                allocated_bytes,
                len_bytes,
                created_unix_ns,
                ..
            } => vec![
                name,
                sessions.to_string(),
                size(*allocated_bytes),
                size(*len_bytes),
                span::utc(*created_unix_ns),
                path,
            ],
            State::Unreadable { error } => {
                let unknown = || "-".to_owned();
                vec![
                    name,
                    unknown(),
                    unknown(),
                    unknown(),
                    unknown(),
                    printable::harmless(error),
                ]
            }
        }
    }
}

/// Bytes in the largest binary unit, in tenths.
fn size(bytes: u64) -> String {
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= unit {
            let tenths = u128::from(bytes) * 10 / u128::from(unit);
            return format!("{}.{} {name}", tenths / 10, tenths % 10);
        }
    }
    format!("{bytes} B")
}

fn check(args: &CheckArgs, at: &At, out: &mut impl Write) -> Result<ExitCode, Error> {
    let url = args
        .region
        .as_deref()
        .map_or_else(|| at.url().to_owned(), url);
    if url == "mem:" {
        let text =
            "region check is of no use with mem:, which is this command's own; name a shm: region";
        return Err(Error::Usage(text.to_owned()));
    }
    let checked = match at.builder().create(false).without_session().open(&url) {
        Ok(space) => {
            let mut check = sprag::region::check(&space);
            for _ in 1..LOOKS {
                if check.findings.is_empty() {
                    break;
                }
                let again = sprag::region::check(&space);
                check
                    .findings
                    .retain(|finding| again.findings.contains(finding));
            }
            Checked {
                url,
                objects: check.live,
                limiter_keys: check.limiter_keys,
                joint_keys: check.joint_keys,
                waits: check.waits,
                displacement_max: check.displacement_max,
                findings: check.findings.iter().map(ToString::to_string).collect(),
            }
        }
        // So bad that it can't even be opened, which is what was asked.
        Err(sprag::Error::Engine(error @ EngineError::Damaged { .. })) => Checked {
            url,
            objects: 0,
            limiter_keys: 0,
            joint_keys: 0,
            waits: 0,
            displacement_max: 0,
            findings: vec![error.to_string()],
        },
        Err(error) => return Err(of_region(error, "")),
    };
    let code = if checked.findings.is_empty() {
        0
    } else {
        output::NO
    };
    output::print(out, code.into(), |out| {
        if args.json {
            output::json(out, &checked)
        } else {
            checked.write_text(out)
        }
    })
}

impl Checked {
    fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        for finding in &self.findings {
            writeln!(out, "{finding}")?;
        }
        let Self {
            objects,
            limiter_keys,
            joint_keys,
            waits,
            ..
        } = self;
        let verdict = match self.findings.len() {
            0 => "sound".to_owned(),
            count => format!("{count} found"),
        };
        let url = printable::harmless(&self.url);
        writeln!(
            out,
            "{url}: {verdict}; {objects} locks, fences, counters and limiters, {limiter_keys} limiter keys, {joint_keys} joint keys, {waits} waits"
        )
    }
}

/// What any of them fails at, with the ways out that the command has; `others` are those of this one.
fn of_region(error: sprag::Error, others: &str) -> Error {
    match error {
        sprag::Error::Engine(EngineError::InUse {
            path,
            sessions,
            detached,
        }) => {
            let mut ways_out = Vec::new();
            if sessions > 0 {
                ways_out.push("stop its users first");
            }
            if detached > 0 {
                ways_out.push(
                    "release what sprag inspect shows as detached by its token, sprag break it, or let its lease end",
                );
            }
            Error::InUse {
                path: printable::harmless(&path.display().to_string()),
                sessions,
                detached,
                way_out: ways_out.join("; ") + others,
            }
        }
        sprag::Error::Engine(EngineError::NotFound { path }) => Error::NoRegion {
            path: printable::harmless(&path.display().to_string()),
        },
        error => error.into(),
    }
}

fn resize(args: &ResizeArgs, at: &At, out: &mut impl Write) -> Result<ExitCode, Error> {
    let url = url(&args.region);
    let before =
        sprag::region::probe(&url, at.group_shared).map_err(|error| of_region(error, ""))?;
    let path = before.path.display().to_string();
    let caps = Caps {
        objects: args.locks.unwrap_or(before.caps.objects),
        limiter_keys: args.limiter_keys.unwrap_or(before.caps.limiter_keys),
        joint_keys: args.joint_keys.unwrap_or(before.caps.joint_keys),
        sessions: args.sessions.unwrap_or(before.caps.sessions),
        waiters: args.waiters.unwrap_or(before.caps.waiters),
        permits: args.permits.unwrap_or(before.caps.permits),
        key_chunks: args.key_chunks.unwrap_or(before.caps.key_chunks),
    };
    if caps == before.caps {
        let given = "resize needs a cap that the region does not have yet, such as --locks or --limiter-keys";
        return Err(Error::Usage(given.to_owned()));
    }
    sprag::region::resize(&url, at.group_shared, caps)
        .map_err(|error| of_resizing(error, &before))?;
    let name = url.strip_prefix("shm:");
    let row = Row {
        name: name
            .filter(|name| !name.starts_with('/'))
            .map(str::to_owned),
        ..row(&url, at, path)
    };
    output::print(out, ExitCode::SUCCESS, |out| {
        if args.json {
            return output::json(out, &row);
        }
        write!(out, "{}: ", printable::harmless(&url))?;
        let old = before.caps;
        let changed: Vec<String> = [
            ("locks", old.objects, caps.objects),
            ("limiter keys", old.limiter_keys, caps.limiter_keys),
            ("joint keys", old.joint_keys, caps.joint_keys),
            ("sessions", old.sessions, caps.sessions),
            ("waiters", old.waiters, caps.waiters),
            ("permits", old.permits, caps.permits),
            ("key chunks", old.key_chunks, caps.key_chunks),
        ]
        .into_iter()
        .filter(|(_, old, new)| old != new)
        .map(|(what, old, new)| format!("{what} {old} to {new}"))
        .collect();
        writeln!(out, "{}", changed.join(", "))
    })
}

/// In the words of the command's options what a resize fails at.
fn of_resizing(error: sprag::Error, before: &Info) -> Error {
    let option = |what: &str| match what {
        "objects cap" => "--locks",
        // Whatever else there is beside locks.
        what if what.starts_with("lock, ") => "--locks",
        "limiter keys cap" | "limiter key" => "--limiter-keys",
        "joint keys cap" | "joint key" => "--joint-keys",
        "sessions cap" => "--sessions",
        "waiters cap" => "--waiters",
        "permits cap" => "--permits",
        _ => "--key-chunks",
    };
    Error::Usage(match error {
        sprag::Error::Engine(EngineError::OutOfRange {
            what,
            value,
            min,
            max,
        }) => format!(
            "{} {value} is out of bounds; it must be {min} to {max}",
            option(what)
        ),
        sprag::Error::Engine(EngineError::Full { what, cap }) => {
            let option = option(what);
            let now = match option {
                "--locks" => before.caps.objects,
                "--limiter-keys" => before.caps.limiter_keys,
                "--joint-keys" => before.caps.joint_keys,
                _ => before.caps.key_chunks,
            };
            format!(
                "{option} {cap} has no room for what is carried over, and nothing was changed; it is {now} now: give more"
            )
        }
        error => return of_region(error, ""),
    })
}

fn remove(args: &RmArgs, at: &At, out: &mut impl Write) -> Result<ExitCode, Error> {
    let url = url(&args.region);
    sprag::region::remove(&url, at.group_shared, args.force)
        .map_err(|error| of_region(error, "; or give --force to take it away from them"))?;
    output::print(out, ExitCode::SUCCESS, |out| {
        if args.json {
            let removed = true;
            return output::json(out, &Removed { url, removed });
        }
        writeln!(out, "removed {}", printable::harmless(&url))
    })
}
