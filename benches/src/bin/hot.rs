//! Runs one contestant of one case over and over, for a profiler to look at.

use clap::{Parser, ValueEnum};
use sprag_benches::case::Work;
use sprag_benches::ours::{self, Reach};
use sprag_benches::peers::{self, Peer};
use sprag_benches::{Case, Effort, Result, Side};

/// Runs one contestant of one case over and over.
#[derive(Parser)]
struct Options {
    /// What is done to each key.
    work: WorkName,
    /// Who does it.
    #[arg(long, default_value = "memory")]
    side: SideName,
    /// How many keys.
    #[arg(long, default_value_t = 1)]
    keys: u64,
    /// Draw them by zipf 0.99.
    #[arg(long)]
    zipf: bool,
    /// By how many threads.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// How many measurements.
    #[arg(long, default_value_t = 20)]
    rounds: u32,
    /// Divides the operations of each measurement, for profilers that slow everything down.
    #[arg(long, default_value_t = 1)]
    divisor: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum WorkName {
    Check,
    CheckBatch,
    Refuse,
    Lock,
    Add,
    AddStriped,
    Once,
    OnceAgain,
    CheckTwo,
    CheckTwoDrained,
}

#[derive(Clone, Copy, ValueEnum)]
enum SideName {
    Memory,
    Shared,
    Governor,
    GovernorByDefault,
    KeyedLock,
    Lockable,
    Map,
    DashMap,
    Lines,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let work = match options.work {
        WorkName::Check => Work::Check,
        WorkName::CheckBatch => Work::CheckBatch,
        WorkName::Refuse => Work::Refuse,
        WorkName::Lock => Work::Lock,
        WorkName::Add => Work::Add,
        WorkName::AddStriped => Work::AddStriped,
        WorkName::Once => Work::Once,
        WorkName::OnceAgain => Work::OnceAgain,
        WorkName::CheckTwo => Work::CheckTwo,
        WorkName::CheckTwoDrained => Work::CheckTwoDrained,
    };
    let mut case = Case::hot("profiled", work).uniform(options.keys);
    if options.zipf {
        case = case.zipf(options.keys);
    }
    case.threads = options.threads;
    let side = side(
        &case,
        options.side,
        Effort {
            divisor: options.divisor,
        },
    )?;
    for _ in 0..options.rounds {
        let timed = side.run()?;
        println!("{:.2} ns, {} admitted", timed.ns, timed.admitted);
    }
    Ok(())
}

fn side(case: &Case, side: SideName, effort: Effort) -> Result<Side> {
    match side {
        SideName::Memory => ours::side(case, Reach::Memory, effort),
        SideName::Shared => ours::side(case, Reach::Shared, effort),
        SideName::Governor => peers::side(case, Peer::GovernorAtBest, effort),
        SideName::GovernorByDefault => peers::side(case, Peer::GovernorByDefault, effort),
        SideName::KeyedLock => peers::side(case, Peer::KeyedLock, effort),
        SideName::Lockable => peers::side(case, Peer::LockPool, effort),
        SideName::Map => peers::side(case, Peer::Map, effort),
        SideName::DashMap => peers::side(case, Peer::DashMap, effort),
        SideName::Lines => peers::side(case, Peer::Lines, effort),
    }
}
