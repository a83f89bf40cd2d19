//! `sprag inspect`: what is in a space. Owns the arguments and the tables' form; changes nothing.

mod concurrency;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use sprag::{
    BreakRecord, CounterInfo, EngineError, HoldInfo, JointLimiterInfo, Limit, LimiterInfo,
    LockInfo, OnceInfo, OnceStatus, SemaphoreInfo, Space,
};

use self::concurrency::ConcurrencyRow;
use crate::at::At;
use crate::error::Error;
use crate::printable::{self, Name};
use crate::{output, overrides, span};

/// Show the locks, semaphores, limiters, counters, idempotency keys and last breaks of a space
///
/// Stops nobody and changes nothing. Each entry is shown as it was at one moment, different entries at
/// different ones. A lock that is free stays listed until its entry is needed for another name. "dead" is
/// one whose holder died, or ended without releasing it: the next one that comes for it gets it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes:
  0  shown, even if there is nothing, or nobody has used shm:default yet
  2  an argument is wrong, or something failed; there may be no such space as --at names")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Args {
    /// Only what has a name that begins so
    #[arg(default_value = "", hide_default_value = true)]
    prefix: OsString,

    /// Show locks; without this and the next six all are shown
    #[arg(long)]
    locks: bool,

    /// Show semaphores
    #[arg(long)]
    semaphores: bool,

    /// Show limiters, and which keys have a limit of their own
    #[arg(long)]
    limiters: bool,

    /// Show limiters of how many there are at once of a key, and what is held of each key
    #[arg(long)]
    concurrency: bool,

    /// Show counters that are not at 0
    #[arg(long)]
    counters: bool,

    /// Show the idempotency keys of sprag once, but for new ones
    #[arg(long)]
    onces: bool,

    /// Show which locks were broken last, by whom
    #[arg(long)]
    breaks: bool,

    /// Leave out locks, semaphores and keys that are free and that nobody waits for; dead holders stay
    #[arg(long)]
    held: bool,

    /// Print a JSON object with an array for each kind
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Contents {
    #[serde(skip_serializing_if = "Option::is_none")]
    locks: Option<Vec<LockRow>>,
    /// Partitions, and the table of all: those that are held or waited for, but not those held with the table.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    coarse_locks: Vec<LockRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    semaphores: Option<Vec<SemaphoreRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limiters: Option<Vec<LimiterRow>>,
    /// Keys that have a limit of their own, of limiters that are shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    overrides: Vec<overrides::Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency: Option<Vec<ConcurrencyRow>>,
    /// Those of several limits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    joint_limiters: Vec<JointLimiterRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counters: Option<Vec<CounterRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    onces: Option<Vec<OnceRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    breaks: Option<Vec<BreakRow>>,
}

#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of its own")]
struct LockRow {
    #[serde(flatten)]
    name: Name,
    held: bool,
    /// Whether those who hold it share it.
    shared: bool,
    /// Each hold: one at most, unless it is shared. What is said of the holder is said of the one whose lease
    /// lasts longest.
    holds: Vec<HoldRow>,
    /// Whether the holder died, or ended, without releasing it.
    holder_dead: bool,
    /// Null if free, detached, or not known.
    holder_pid: Option<u32>,
    detached: bool,
    /// Of the holder, or of the last one.
    token: u64,
    lease_left_ns: u64,
    /// Null if free or not known.
    held_for_ns: Option<u64>,
    waiters: u32,
    /// Those that died while they waited, and are not among the others.
    waiters_dead: u32,
    #[serde(skip)]
    shown: String,
}

#[derive(Debug, Serialize)]
struct HoldRow {
    token: u64,
    /// How many of a semaphore's permits; left out for a lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    permits: Option<u32>,
    /// Whether it holds, and not merely by an expired lease or by a process that died.
    live: bool,
    /// Null if detached, or not known.
    pid: Option<u32>,
    detached: bool,
    lease_left_ns: u64,
    /// Null if not known.
    held_for_ns: Option<u64>,
}

#[derive(Debug, Serialize)]
struct SemaphoreRow {
    #[serde(flatten)]
    name: Name,
    permits: u32,
    /// How many are taken, by holds that are over as well until somebody needs them.
    taken: u32,
    holds: Vec<HoldRow>,
    waiters: u32,
    /// Those that died while they waited, and are not among the others.
    waiters_dead: u32,
    #[serde(skip)]
    shown: String,
}

#[derive(Debug, Serialize)]
struct LimiterRow {
    #[serde(flatten)]
    name: Name,
    limit: String,
    keys: u64,
    #[serde(skip)]
    shown: String,
}

#[derive(Debug, Serialize)]
struct JointLimiterRow {
    #[serde(flatten)]
    name: Name,
    limits: Vec<String>,
    keys: u64,
    #[serde(skip)]
    shown: String,
}

#[derive(Debug, Serialize)]
struct CounterRow {
    #[serde(flatten)]
    name: Name,
    number: i64,
    #[serde(skip)]
    shown: String,
}

#[derive(Debug, Serialize)]
struct OnceRow {
    #[serde(flatten)]
    name: Name,
    /// `in progress`, `done` or `unfinished`.
    status: &'static str,
    /// Null unless in progress, and if detached or not known.
    holder_pid: Option<u32>,
    /// Until the deadline, or for which the result is kept; 0 if unfinished.
    left_ns: u64,
    /// Null unless done.
    result_bytes: Option<usize>,
    #[serde(skip)]
    shown: String,
}

#[derive(Debug, Serialize)]
struct BreakRow {
    #[serde(flatten)]
    name: Name,
    /// The token that was ended.
    token: u64,
    /// Of the process that broke it.
    by_pid: u32,
    at_unix_ns: u64,
    #[serde(skip)]
    shown: String,
}

/// Reads the space and prints what it holds.
pub(crate) fn run(args: &Args, at: &At, out: &mut impl Write) -> Result<ExitCode, Error> {
    at.refuse_memory("inspect")?;
    at.check()?;
    let space = match at.open_to_look() {
        // Nobody has used it yet, so there is nothing. One that is named should be there.
        Err(sprag::Error::Engine(EngineError::NotFound { .. })) if at.url.is_none() => None,
        opened => Some(opened?),
    };
    let contents = Contents::read(args, space.as_ref())?;
    output::print(out, ExitCode::SUCCESS, |out| {
        if args.json {
            output::json(out, &contents)
        } else {
            contents.write_text(out)
        }
    })
}

impl Contents {
    /// What there is in `space`; nothing if there is none.
    fn read(args: &Args, space: Option<&Space>) -> Result<Self, Error> {
        let prefix = printable::bytes(&args.prefix);
        let all = !(args.locks
            || args.semaphores
            || args.limiters
            || args.concurrency
            || args.counters
            || args.onces
            || args.breaks);
        let locks = || space.map_or_else(|| Ok(Vec::new()), |space| space.inspect(prefix));
        let semaphores = || space.map_or_else(|| Ok(Vec::new()), |space| space.semaphores(prefix));
        let limiters = || space.map_or_else(|| Ok(Vec::new()), |space| space.limiters(prefix));
        let concurrency = || {
            space.map_or_else(
                || Ok(Vec::new()),
                |space| space.concurrency_limiters(prefix),
            )
        };
        let counters = || space.map_or_else(|| Ok(Vec::new()), |space| space.counters(prefix));
        let onces = || space.map_or_else(|| Ok(Vec::new()), |space| space.onces(prefix));
        let locks = (all || args.locks).then(locks);
        let mut coarse = match space {
            // They have no names that a prefix could choose among.
            Some(space) if (all || args.locks) && prefix.is_empty() => space.inspect_coarse()?,
            _ => Vec::new(),
        };
        if coarse
            .last()
            .is_some_and(|last| last.is_held && last.name == b"the table")
        {
            let table = coarse.pop();
            coarse.retain(|partition| partition.waiters > 0);
            coarse.extend(table);
        }
        let semaphores = (all || args.semaphores).then(semaphores);
        let joint_limiters = match space {
            Some(space) if all || args.limiters => space.joint_limiters(prefix)?,
            _ => Vec::new(),
        };
        let limiters = (all || args.limiters).then(limiters);
        let overrides = match space {
            Some(space) if all || args.limiters => space.overrides(prefix)?,
            _ => Vec::new(),
        };
        let concurrency = (all || args.concurrency).then(concurrency);
        let counters = (all || args.counters).then(counters);
        let onces = (all || args.onces).then(onces);
        let breaks = (all || args.breaks).then(|| space.map_or_else(Vec::new, Space::breaks));
        let is_shown =
            |lock: &LockInfo| !args.held || lock.is_held || lock.is_holder_dead || lock.waiters > 0;
        let is_used = &|semaphore: &SemaphoreInfo| {
            !args.held || !semaphore.holds.is_empty() || semaphore.waiters > 0
        };
        Ok(Self {
            locks: locks.transpose()?.map(|locks| {
                let shown = locks.into_iter().filter(is_shown);
                shown.map(|lock| LockRow::new(&lock)).collect()
            }),
            coarse_locks: coarse.iter().map(LockRow::new).collect(),
            semaphores: semaphores.transpose()?.map(|semaphores| {
                let shown = semaphores.into_iter().filter(is_used);
                shown
                    .map(|semaphore| SemaphoreRow::new(&semaphore))
                    .collect()
            }),
            limiters: limiters
                .transpose()?
                .map(|limiters| limiters.iter().map(LimiterRow::new).collect()),
            overrides: overrides.iter().map(overrides::Row::new).collect(),
            concurrency: concurrency.transpose()?.map(|limiters| {
                let rows = limiters.iter();
                rows.map(|limiter| ConcurrencyRow::new(limiter, is_used))
                    .collect()
            }),
            joint_limiters: joint_limiters.iter().map(JointLimiterRow::new).collect(),
            counters: counters
                .transpose()?
                .map(|counters| counters.iter().map(CounterRow::new).collect()),
            onces: onces
                .transpose()?
                .map(|onces| onces.iter().map(OnceRow::new).collect()),
            breaks: breaks.map(|breaks| {
                let shown = breaks.into_iter().filter(|b| b.name.starts_with(prefix));
                shown.map(|record| BreakRow::new(&record)).collect()
            }),
        })
    }

    /// Each kind that has any entry as a table, with an empty line between two.
    fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        let locks = self.locks.as_deref().unwrap_or_default();
        let semaphores = self.semaphores.as_deref().unwrap_or_default();
        let limiters = self.limiters.as_deref().unwrap_or_default();
        let concurrency = self.concurrency.as_deref().unwrap_or_default();
        let counters = self.counters.as_deref().unwrap_or_default();
        let onces = self.onces.as_deref().unwrap_or_default();
        let breaks = self.breaks.as_deref().unwrap_or_default();
        let tables: [(&str, Vec<_>); 10] = [
            (
                "LOCK HOLDER TOKEN LEASE-LEFT HELD-FOR WAITERS NAME",
                locks.iter().flat_map(LockRow::rows).collect(),
            ),
            (
                "COARSE HOLDER TOKEN LEASE-LEFT HELD-FOR WAITERS NAME",
                self.coarse_locks.iter().flat_map(LockRow::rows).collect(),
            ),
            (
                "SEMAPHORE HOLDER TOKEN LEASE-LEFT HELD-FOR WAITERS NAME",
                semaphores.iter().flat_map(SemaphoreRow::rows).collect(),
            ),
            (
                "LIMITER KEYS NAME",
                limiters
                    .iter()
                    .map(LimiterRow::cells)
                    .chain(self.joint_limiters.iter().map(JointLimiterRow::cells))
                    .collect(),
            ),
            (
                overrides::HEADING,
                self.overrides.iter().map(overrides::Row::cells).collect(),
            ),
            (
                "AT-ONCE KEYS LIMITER",
                concurrency.iter().map(ConcurrencyRow::cells).collect(),
            ),
            (
                "HELD HOLDER TOKEN LEASE-LEFT HELD-FOR WAITERS LIMITER KEY",
                concurrency.iter().flat_map(ConcurrencyRow::rows).collect(),
            ),
            (
                "COUNTER NAME",
                counters.iter().map(CounterRow::cells).collect(),
            ),
            (
                "ONCE HOLDER LEFT RESULT NAME",
                onces.iter().map(OnceRow::cells).collect(),
            ),
            (
                "BROKEN TOKEN BY-PID NAME",
                breaks.iter().map(BreakRow::cells).collect(),
            ),
        ];
        let mut is_first = true;
        for (heading, rows) in tables.into_iter().filter(|(_, rows)| !rows.is_empty()) {
            if !is_first {
                writeln!(out)?;
            }
            is_first = false;
            output::table(out, heading, rows)?;
        }
        if is_first {
            writeln!(out, "nothing to show")?;
        }
        Ok(())
    }
}

impl LockRow {
    fn new(lock: &LockInfo) -> Self {
        Self {
            shown: printable::name(&lock.name),
            name: Name::new(&lock.name),
            held: lock.is_held,
            shared: lock.is_shared,
            holds: lock
                .holds
                .iter()
                .map(|hold| HoldRow::new(hold, false))
                .collect(),
            holder_dead: lock.is_holder_dead,
            holder_pid: lock
                .holder_pid
                .filter(|_| lock.is_held || lock.is_holder_dead),
            detached: lock.is_detached && lock.is_held,
            token: lock.token,
            lease_left_ns: if lock.is_held {
                span::nanoseconds(lock.lease_left)
            } else {
                0
            },
            held_for_ns: lock
                .held_for
                .filter(|_| lock.is_held)
                .map(span::nanoseconds),
            waiters: lock.waiters,
            waiters_dead: lock.waiters_dead,
        }
    }

    /// A line for each who shares it; else one.
    fn rows(&self) -> Vec<Vec<String>> {
        if !self.shared || self.holds.is_empty() {
            return vec![self.cells()];
        }
        let waiters = waiters(self.waiters, self.waiters_dead);
        let row = |hold: &HoldRow| {
            let state = if hold.live { "shared" } else { "dead" };
            hold.cells(state.to_owned(), &waiters, &self.shown)
        };
        self.holds.iter().map(row).collect()
    }

    fn cells(&self) -> Vec<String> {
        let none = || "-".to_owned();
        let passed = |ns| span::passed(Duration::from_nanos(ns));
        let holder = match self.holder_pid {
            _ if self.detached => "detached".to_owned(),
            Some(pid) => format!("pid {pid}"),
            None => none(),
        };
        let state = match (self.held, self.holder_dead) {
            (true, _) => "held",
            (false, true) => "dead",
            (false, false) => "free",
        };
        let waiters = waiters(self.waiters, self.waiters_dead);
        vec![
            state.to_owned(),
            holder,
            self.token.to_string(),
            if self.held {
                passed(self.lease_left_ns)
            } else {
                none()
            },
            self.held_for_ns.map_or_else(none, passed),
            waiters,
            self.shown.clone(),
        ]
    }
}

fn waiters(alive: u32, dead: u32) -> String {
    match dead {
        0 => alive.to_string(),
        dead => format!("{alive} + {dead} dead"),
    }
}

impl HoldRow {
    fn new(hold: &HoldInfo, has_permits: bool) -> Self {
        Self {
            token: hold.token,
            permits: has_permits.then_some(hold.permits),
            live: hold.is_live,
            pid: hold.pid,
            detached: hold.is_detached,
            lease_left_ns: span::nanoseconds(hold.lease_left),
            held_for_ns: hold.held_for.map(span::nanoseconds),
        }
    }

    fn cells(&self, state: String, waiters: &str, name: &str) -> Vec<String> {
        let none = || "-".to_owned();
        let passed = |ns| span::passed(Duration::from_nanos(ns));
        let holder = match self.pid {
            _ if self.detached => "detached".to_owned(),
            Some(pid) => format!("pid {pid}"),
            None => none(),
        };
        vec![
            state,
            holder,
            self.token.to_string(),
            if self.live {
                passed(self.lease_left_ns)
            } else {
                none()
            },
            self.held_for_ns.map_or_else(none, passed),
            waiters.to_owned(),
            name.to_owned(),
        ]
    }
}

impl SemaphoreRow {
    fn new(semaphore: &SemaphoreInfo) -> Self {
        Self {
            shown: printable::name(&semaphore.name),
            name: Name::new(&semaphore.name),
            permits: semaphore.permits,
            taken: semaphore.taken,
            holds: semaphore
                .holds
                .iter()
                .map(|hold| HoldRow::new(hold, true))
                .collect(),
            waiters: semaphore.waiters,
            waiters_dead: semaphore.waiters_dead,
        }
    }

    /// A line for each who has permits, with how many of how many; one for a semaphore that is free.
    fn rows(&self) -> Vec<Vec<String>> {
        let waiters = waiters(self.waiters, self.waiters_dead);
        let row = |hold: &HoldRow| {
            let permits = hold.permits.unwrap_or_default();
            let state = format!("{permits} of {}", self.permits);
            let dead = if hold.live { "" } else { ", dead" };
            hold.cells(format!("{state}{dead}"), &waiters, &self.shown)
        };
        if !self.holds.is_empty() {
            return self.holds.iter().map(row).collect();
        }
        let none = || "-".to_owned();
        let state = format!("0 of {}", self.permits);
        let (waiters, name) = (waiters, self.shown.clone());
        vec![vec![state, none(), none(), none(), none(), waiters, name]]
    }
}

impl LimiterRow {
    fn new(limiter: &LimiterInfo) -> Self {
        Self {
            shown: printable::name(&limiter.name),
            name: Name::new(&limiter.name),
            limit: limiter.limit.to_string(),
            keys: limiter.keys,
        }
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.limit.clone(),
            self.keys.to_string(),
            self.shown.clone(),
        ]
    }
}

impl JointLimiterRow {
    fn new(limiter: &JointLimiterInfo) -> Self {
        Self {
            shown: printable::name(&limiter.name),
            name: Name::new(&limiter.name),
            limits: limiter.limits.iter().map(Limit::to_string).collect(),
            keys: limiter.keys,
        }
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.limits.join(" and "),
            self.keys.to_string(),
            self.shown.clone(),
        ]
    }
}

impl CounterRow {
    fn new(counter: &CounterInfo) -> Self {
        Self {
            shown: printable::name(&counter.name),
            name: Name::new(&counter.name),
            number: counter.number,
        }
    }

    fn cells(&self) -> Vec<String> {
        vec![self.number.to_string(), self.shown.clone()]
    }
}

impl OnceRow {
    fn new(once: &OnceInfo) -> Self {
        let (status, holder_pid, left, result_bytes) = match &once.status {
            OnceStatus::New => ("new", None, Duration::ZERO, None),
            OnceStatus::InProgress {
                holder_pid,
                deadline_left,
            } => ("in progress", *holder_pid, *deadline_left, None),
            OnceStatus::Done { result, kept_left } => {
                ("done", None, *kept_left, Some(result.len()))
            }
            OnceStatus::Unfinished => ("unfinished", None, Duration::ZERO, None),
        };
        Self {
            shown: printable::name(&once.name),
            name: Name::new(&once.name),
            status,
            holder_pid,
            left_ns: span::nanoseconds(left),
            result_bytes,
        }
    }

    fn cells(&self) -> Vec<String> {
        let none = || "-".to_owned();
        let holder = match self.holder_pid {
            Some(pid) => format!("pid {pid}"),
            None if self.status == "in progress" => "detached".to_owned(),
            None => none(),
        };
        let left = match self.left_ns {
            0 => none(),
            ns => span::passed(Duration::from_nanos(ns)),
        };
        let result = self.result_bytes;
        vec![
            self.status.to_owned(),
            holder,
            left,
            result.map_or_else(none, |bytes| format!("{bytes} bytes")),
            self.shown.clone(),
        ]
    }
}

impl BreakRow {
    fn new(record: &BreakRecord) -> Self {
        Self {
            shown: printable::name(&record.name),
            name: Name::new(&record.name),
            token: record.token,
            by_pid: record.by_pid,
            at_unix_ns: record.at_ns,
        }
    }

    fn cells(&self) -> Vec<String> {
        vec![
            utc(self.at_unix_ns),
            self.token.to_string(),
            self.by_pid.to_string(),
            self.shown.clone(),
        ]
    }
}

/// The time to the second, in UTC.
pub(crate) fn utc(unix_ns: u64) -> String {
    // Below 2^34, so positive.
    let seconds = (unix_ns / 1_000_000_000).cast_signed();
    match jiff::Timestamp::from_second(seconds) {
        Ok(time) => time.to_string(),
        Err(_) => format!("{seconds} s"),
    }
}
