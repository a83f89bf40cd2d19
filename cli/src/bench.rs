//! `sprag bench`: what locks and limiters cost on this machine. Owns the arguments, the course of a
//! measurement and its printing; the loops that are measured are in [`worker`].
//!
//! ```text
//!  this process ── crew ──▶ worker × contenders   threads for mem:, processes for shm:
//!       ▲                      │
//!       └── histograms, and samples of who was granted and released when, by token
//! ```

mod crew;
mod death;
mod samples;
mod worker;

use std::io::{self, Write};
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use sprag::Space;

use self::crew::Crew;
use self::worker::{Job, Plan};
use crate::at::At;
use crate::error::Error;
use crate::{clock, duration, number, output, span};

/// How long workers run before anything counts.
const WARM_UP: Duration = Duration::from_millis(200);
/// What the names of locks and limiters begin with.
const NAME: &str = "sprag-bench";
/// Readings of the clock that its cost is taken from.
const CLOCK_READINGS: u32 = 100_000;

/// Measure locks and limiters on this machine
///
/// Without --at, in a region of its own that is removed afterwards, by processes; with --at mem:, by
/// threads of one process; with another --at, in that space, under names that begin with
/// "sprag-bench".
///
/// A span is taken with the kernel's boot clock. It has what one reading costs in it, which is printed
/// and not taken off. Workers run 0.2 s before anything counts; all count over the same span of time.
/// With one worker every 16th operation is timed, so that the rate is hardly slowed by the clock. A
/// percentile that the samples are too few for is not told: P50 takes 2, P90 10, P99 100, P99.9 1,000.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Lock(LockArgs),
    Limit(LimitArgs),
    #[command(hide = true)]
    Worker(worker::Args),
    #[command(hide = true)]
    Holder(death::HolderArgs),
}

/// Measure acquisition and hand-off of one lock
///
/// "acquire" is from the request to the grant. "hand-off" is from just before the release to the next
/// grant, counted where the next holder was already waiting; grants and releases are matched by token,
/// one in 8. "after kill -9" is from just before a holder is killed to the grant of the one that waits.
#[derive(Debug, clap::Args)]
pub(crate) struct LockArgs {
    #[command(flatten)]
    common: Common,

    /// How many holders to kill, one after the other; none with mem:
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = number::within::<u32>(0..=1_000_000), allow_hyphen_values = true)]
    kills: u32,
}

/// Measure checks of one limiter, all of them allowed
#[derive(Debug, clap::Args)]
pub(crate) struct LimitArgs {
    #[command(flatten)]
    common: Common,

    /// Over how many keys the checks are spread; 1 is the hardest
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = number::within::<u32>(1..=u64::from(u32::MAX)), allow_hyphen_values = true)]
    keys: u32,
}

#[derive(Debug, clap::Args)]
struct Common {
    /// How many workers at once: a measurement for each number
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_value = "1,2,8", value_parser = number::within::<u32>(1..=256), allow_hyphen_values = true)]
    contenders: Vec<u32>,

    /// How long each measurement takes
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration::measurement, allow_hyphen_values = true)]
    seconds: Duration,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// All that was measured.
#[derive(Debug, Serialize)]
struct Report {
    url: String,
    /// What one reading of the clock costs: the middle of many.
    clock_reading_ns: u64,
    rows: Vec<Row>,
}

/// The distribution of one kind of span.
#[derive(Debug, Serialize)]
struct Row {
    what: &'static str,
    contenders: u32,
    /// Threads, or processes.
    workers: &'static str,
    /// Operations finished by all workers together; null where the rate means nothing.
    per_second: Option<f64>,
    samples: u64,
    /// Null, as all of these, where there are too few samples to tell.
    p50_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
    p999_ns: Option<u64>,
    max_ns: Option<u64>,
}

/// Measures and prints, or serves one that does.
pub(crate) fn run(command: &Command, at: &At, out: &mut impl Write) -> Result<ExitCode, Error> {
    match command {
        Command::Worker(args) => worker::serve(args, at, out),
        Command::Holder(args) => death::serve(args, at, out),
        Command::Lock(args) => measure(&args.common, at, out, |ground, report| {
            for &contenders in &args.common.contenders {
                report.lock(ground, contenders, args.common.seconds)?;
            }
            if ground.is_shared() && args.kills > 0 {
                let spans = death::measure(ground, args.kills)?;
                report
                    .rows
                    .push(Row::new("after kill -9", 1, ground, &spans, None));
            }
            Ok(())
        }),
        Command::Limit(args) => measure(&args.common, at, out, |ground, report| {
            let keys = NonZeroU32::new(args.keys).unwrap_or(NonZeroU32::MIN);
            for &contenders in &args.common.contenders {
                report.limit(ground, contenders, args.common.seconds, keys)?;
            }
            Ok(())
        }),
    }
}

fn measure(
    common: &Common,
    at: &At,
    out: &mut impl Write,
    all: impl FnOnce(&Ground, &mut Report) -> Result<(), Error>,
) -> Result<ExitCode, Error> {
    at.check()?;
    let ground = Ground::new(at)?;
    let mut report = Report {
        url: ground.url.clone(),
        clock_reading_ns: clock_reading_ns(),
        rows: Vec::new(),
    };
    all(&ground, &mut report)?;
    drop(ground);
    output::print(out, ExitCode::SUCCESS, |out| {
        if common.json {
            output::json(out, &report)
        } else {
            report.write_text(out)
        }
    })
}

/// Where a benchmark takes place.
struct Ground {
    space: Space,
    url: String,
    group_shared: bool,
    /// Whether the region is the benchmark's own.
    is_own: bool,
}

impl Ground {
    fn new(at: &At) -> Result<Self, Error> {
        let own_url = || format!("shm:{NAME}-{}", std::process::id());
        let url = at.url.clone().unwrap_or_else(own_url);
        Ok(Self {
            space: at.builder().open(&url)?,
            url,
            group_shared: at.group_shared,
            is_own: at.url.is_none(),
        })
    }

    fn is_shared(&self) -> bool {
        self.url != "mem:"
    }

    /// What so many workers are.
    fn workers(&self, count: u32) -> &'static str {
        match (self.is_shared(), count) {
            (true, 1) => "process",
            (true, _) => "processes",
            (false, 1) => "thread",
            (false, _) => "threads",
        }
    }

    /// Runs `job` by so many workers for so long.
    fn run(&self, job: Job, contenders: u32, seconds: Duration) -> Result<samples::Samples, Error> {
        let crew = Crew::hire(self, job, contenders)?;
        let start_ns = clock::boot_ns() + span::nanoseconds(WARM_UP);
        let plan = Plan {
            start_ns,
            end_ns: start_ns + span::nanoseconds(seconds),
            timed_every: if contenders == 1 { 16 } else { 1 },
        };
        crew.work(plan)
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        if self.is_own {
            // Its users are gone but for this process; what can't be removed shows in `region ls`.
            let _ = sprag::region::remove(&self.url, self.group_shared, true);
        }
    }
}

impl Report {
    fn lock(&mut self, ground: &Ground, contenders: u32, seconds: Duration) -> Result<(), Error> {
        let samples = ground.run(Job::Lock, contenders, seconds)?;
        let rate = samples.operations as f64 / seconds.as_secs_f64();
        let row = Row::new("acquire", contenders, ground, &samples.spans, Some(rate));
        self.rows.push(row);
        if contenders > 1 {
            let spans = samples.hand_offs();
            let row = Row::new("hand-off", contenders, ground, &spans, None);
            self.rows.push(row);
        }
        Ok(())
    }

    fn limit(
        &mut self,
        ground: &Ground,
        contenders: u32,
        seconds: Duration,
        keys: NonZeroU32,
    ) -> Result<(), Error> {
        let samples = ground.run(Job::Limit { keys }, contenders, seconds)?;
        let rate = samples.operations as f64 / seconds.as_secs_f64();
        let row = Row::new("check", contenders, ground, &samples.spans, Some(rate));
        self.rows.push(row);
        Ok(())
    }

    fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        let heading = "WHAT WORKERS SAMPLES P50 P90 P99 P99.9 MAX PER-SECOND";
        output::table(out, heading, self.rows.iter().map(Row::cells))?;
        writeln!(
            out,
            "in {}; a reading of the clock costs {} ns, and one is in each sample",
            crate::printable::harmless(&self.url),
            self.clock_reading_ns
        )
    }
}

impl Row {
    fn new(
        what: &'static str,
        contenders: u32,
        ground: &Ground,
        spans: &Histogram<u64>,
        per_second: Option<f64>,
    ) -> Self {
        // A percentile needs one sample at least above it.
        let percentile = |per_mille: u64| {
            let is_told = spans.len() * (1_000 - per_mille) >= 1_000;
            is_told.then(|| spans.value_at_quantile(per_mille as f64 / 1_000.0))
        };
        Self {
            what,
            contenders,
            workers: ground.workers(contenders),
            per_second,
            samples: spans.len(),
            p50_ns: percentile(500),
            p90_ns: percentile(900),
            p99_ns: percentile(990),
            p999_ns: percentile(999),
            max_ns: (!spans.is_empty()).then(|| spans.max()),
        }
    }

    fn cells(&self) -> Vec<String> {
        let span = |ns: Option<u64>| match ns {
            None => "-".to_owned(),
            Some(ns) => span::passed(Duration::from_nanos(ns)),
        };
        let rate = self.per_second.map(|rate| format!("{rate:.0}"));
        vec![
            self.what.to_owned(),
            format!("{} {}", self.contenders, self.workers),
            self.samples.to_string(),
            span(self.p50_ns),
            span(self.p90_ns),
            span(self.p99_ns),
            span(self.p999_ns),
            span(self.max_ns),
            rate.unwrap_or_else(|| "-".to_owned()),
        ]
    }
}

/// What one reading costs: the middle of many pairs of neighbours.
fn clock_reading_ns() -> u64 {
    let mut spans = samples::spans();
    let mut last_ns = clock::boot_ns();
    for _ in 0..CLOCK_READINGS {
        let now_ns = clock::boot_ns();
        spans.saturating_record(now_ns - last_ns);
        last_ns = now_ns;
    }
    spans.value_at_quantile(0.5)
}
