//! `sprag inspect`: what is in a space. Owns the arguments, and which tables there are; the rows of each kind are in
//! a file of their own. Changes nothing.

mod broken;
mod concurrency;
mod counter;
mod hold;
mod limiter;
mod lock;
mod once;
mod semaphore;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;
use sprag::{LockInfo, SemaphoreInfo, Space};

use self::broken::BreakRow;
use self::concurrency::ConcurrencyRow;
use self::counter::CounterRow;
use self::limiter::{JointLimiterRow, LimiterRow};
use self::lock::LockRow;
use self::once::OnceRow;
use self::semaphore::SemaphoreRow;
use crate::at::At;
use crate::error::Error;
use crate::{output, overrides, printable};

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

/// Reads the space and prints what it holds.
pub(crate) fn run(args: &Args, at: &At, out: &mut impl Write) -> Result<ExitCode, Error> {
    at.refuse_memory("inspect")?;
    at.check()?;
    let space = at.if_used(at.open_to_look())?;
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
        let is_shown =
            |lock: &LockInfo| !args.held || lock.is_held || lock.is_holder_dead || lock.waiters > 0;
        let is_used = |semaphore: &SemaphoreInfo| {
            !args.held || !semaphore.holds.is_empty() || semaphore.waiters > 0
        };
        let locks = |space: &Space| {
            let locks = space.inspect(prefix)?;
            Ok(locks.into_iter().filter(is_shown).collect())
        };
        let semaphores = |space: &Space| {
            let semaphores = space.semaphores(prefix)?;
            Ok(semaphores.into_iter().filter(is_used).collect())
        };
        let breaks = |space: &Space| {
            let breaks = space.breaks().into_iter();
            Ok(breaks.filter(|b| b.name.starts_with(prefix)).collect())
        };
        let (of_locks, of_limiters) = (all || args.locks, all || args.limiters);
        Ok(Self {
            locks: rows(of_locks, space, locks, LockRow::new)?,
            // They have no names that a prefix could choose among.
            coarse_locks: rows(of_locks && prefix.is_empty(), space, coarse, LockRow::new)?
                .unwrap_or_default(),
            semaphores: rows(all || args.semaphores, space, semaphores, SemaphoreRow::new)?,
            limiters: rows(
                of_limiters,
                space,
                |space| space.limiters(prefix),
                LimiterRow::new,
            )?,
            overrides: rows(
                of_limiters,
                space,
                |space| space.overrides(prefix),
                overrides::Row::new,
            )?
            .unwrap_or_default(),
            concurrency: rows(
                all || args.concurrency,
                space,
                |space| space.concurrency_limiters(prefix),
                |limiter| ConcurrencyRow::new(limiter, is_used),
            )?,
            joint_limiters: rows(
                of_limiters,
                space,
                |space| space.joint_limiters(prefix),
                JointLimiterRow::new,
            )?
            .unwrap_or_default(),
            counters: rows(
                all || args.counters,
                space,
                |space| space.counters(prefix),
                CounterRow::new,
            )?,
            onces: rows(
                all || args.onces,
                space,
                |space| space.onces(prefix),
                OnceRow::new,
            )?,
            breaks: rows(all || args.breaks, space, breaks, BreakRow::new)?,
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

/// A row for each that `read` finds in the space, if there is one; `None` if they are not asked for.
fn rows<T, R>(
    are_asked: bool,
    space: Option<&Space>,
    read: impl FnOnce(&Space) -> Result<Vec<T>, sprag::Error>,
    row: impl Fn(&T) -> R,
) -> Result<Option<Vec<R>>, sprag::Error> {
    if !are_asked {
        return Ok(None);
    }
    let found = space.map_or_else(|| Ok(Vec::new()), read)?;
    Ok(Some(found.iter().map(row).collect()))
}

/// Partitions and the table: those that are held or waited for, but not those held with the table.
fn coarse(space: &Space) -> Result<Vec<LockInfo>, sprag::Error> {
    let mut coarse = space.inspect_coarse()?;
    if let Some(table) = coarse.pop_if(|last| last.is_held && last.name == b"the table") {
        coarse.retain(|partition| partition.waiters > 0);
        coarse.push(table);
    }
    Ok(coarse)
}
