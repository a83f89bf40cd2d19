//! The loops that are measured, by a thread or by a process of their own. Owns when the clock is read;
//! sums nothing up.

use std::io::{self, BufRead, Write};
use std::num::NonZeroU32;
use std::process::ExitCode;

use sprag::{Limit, Space};

use super::NAME;
use super::samples::{Granted, Samples};
use crate::at::At;
use crate::error::Error;
use crate::{clock, output};

/// A limit that no machine reaches, so that every check is allowed.
const LIMIT: &str = "1000000000000/second";

/// What a worker of a benchmark's process is told when it is started.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Whose benchmark it is
    run: u32,
    /// The number of keys of a limiter; 0 for a lock
    keys: u32,
}

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Job {
    /// Acquire and release one lock.
    Lock,
    /// Check so many keys of one limiter in turn.
    Limit { keys: NonZeroU32 },
}

impl Job {
    fn new(keys: u32) -> Self {
        NonZeroU32::new(keys).map_or(Self::Lock, |keys| Self::Limit { keys })
    }

    /// As [`Job::new`] reads it.
    pub(crate) fn keys(self) -> u32 {
        match self {
            Self::Lock => 0,
            Self::Limit { keys } => keys.get(),
        }
    }
}

/// When a worker counts, on the boot clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// Every how many-th operation is timed.
    pub(crate) timed_every: u64,
}

/// The lock or limiter of the benchmark that process `run` runs.
pub(crate) fn name(run: u32) -> String {
    format!("{NAME}-{run}")
}

/// Does `job` until the plan's end; operations count from its start.
pub(crate) fn work(space: &Space, run: u32, job: Job, plan: Plan) -> sprag::Result<Samples> {
    match job {
        Job::Lock => lock(space, run, plan),
        Job::Limit { keys } => limit(space, run, keys, plan),
    }
}

fn lock(space: &Space, run: u32, plan: Plan) -> sprag::Result<Samples> {
    let lock = space.lock(&name(run))?;
    let mut samples = Samples::default();
    loop {
        let asked_ns = clock::boot_ns();
        if asked_ns >= plan.end_ns {
            return Ok(samples);
        }
        let hold = lock.acquire()?;
        let granted_ns = clock::boot_ns();
        let token = hold.token();
        // Again, since a holder is not always released as soon as it has been granted.
        let released_ns = clock::boot_ns();
        hold.release()?;
        let mut finished = 1;
        for _ in 1..plan.timed_every {
            lock.acquire()?.release()?;
            finished += 1;
        }
        if asked_ns >= plan.start_ns {
            samples.operations += finished;
            samples.spans.saturating_record(granted_ns - asked_ns);
            samples.granted(Granted {
                token,
                asked_ns,
                at_ns: granted_ns,
            });
            samples.released(token, released_ns);
        }
    }
}

fn limit(space: &Space, run: u32, keys: NonZeroU32, plan: Plan) -> sprag::Result<Samples> {
    let limiter = space.limiter(&name(run), Limit::parse(LIMIT)?)?;
    let keys: Vec<[u8; 16]> = (0..keys.get())
        .map(|key| {
            // Spread over the key's bytes, as addresses and user names are.
            let spread = u128::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            spread.to_le_bytes()
        })
        .collect();
    let mut keys = keys.iter().cycle();
    let mut next = move || keys.next().map_or(&[0; 16], |key| key);
    let mut samples = Samples::default();
    loop {
        let key = next();
        let asked_ns = clock::boot_ns();
        if asked_ns >= plan.end_ns {
            return Ok(samples);
        }
        let mut allowed = u64::from(limiter.check(key, 1)?.is_allowed());
        let answered_ns = clock::boot_ns();
        for _ in 1..plan.timed_every {
            allowed += u64::from(limiter.check(next(), 1)?.is_allowed());
        }
        if asked_ns >= plan.start_ns {
            samples.operations += allowed;
            samples.spans.saturating_record(answered_ns - asked_ns);
        }
    }
}

/// Serves a benchmark from a process of its own: says that it is ready, reads the plan, works, and
/// writes what it measured.
pub(crate) fn serve(args: &Args, at: &At, out: &mut impl Write) -> Result<ExitCode, Error> {
    let space = at.open_existing()?;
    writeln!(out, "ready")?;
    out.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let numbers: Vec<u64> = line
        .split_ascii_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let &[start_ns, end_ns, timed_every] = &numbers[..] else {
        // Whoever started this process is gone.
        return Ok(ExitCode::SUCCESS);
    };
    let plan = Plan {
        start_ns,
        end_ns,
        timed_every,
    };
    let samples = work(&space, args.run, Job::new(args.keys), plan)?;
    output::print(out, ExitCode::SUCCESS, |out| samples.write(out))
}
