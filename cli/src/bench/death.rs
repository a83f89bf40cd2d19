//! From the death of a holder to the grant of who waits: owns the killing and the holder that is killed.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::crew::Process;
use super::{Ground, samples, worker};
use crate::at::At;
use crate::clock;
use crate::error::Error;

/// How long the holder's lease is: far longer than the benchmark, so that only its death ends it.
const LEASE: Duration = Duration::from_hours(1);

/// What a holder is told when it is started.
#[derive(Debug, clap::Args)]
pub(crate) struct HolderArgs {
    /// Whose benchmark it is
    run: u32,
}

/// Holds the lock until killed, or until whoever started it is gone.
pub(crate) fn serve(args: &HolderArgs, at: &At, out: &mut impl Write) -> Result<ExitCode, Error> {
    let space = at.open_existing()?;
    let hold = space.lock(&worker::name(args.run))?.ttl(LEASE)?.acquire()?;
    writeln!(out, "ready")?;
    out.flush()?;
    io::stdin().lock().read_to_end(&mut Vec::new())?;
    hold.release()?;
    Ok(ExitCode::SUCCESS)
}

/// Kills so many holders, each while a thread of this process waits for its lock.
pub(crate) fn measure(ground: &Ground, kills: u32) -> Result<Histogram<u64>, Error> {
    let run = std::process::id();
    let name = worker::name(run);
    let lock = ground.space.lock(&name)?;
    let mut spans = samples::spans();
    for _ in 0..kills {
        let mut holder = Process::start(ground, &["holder", &run.to_string()])?;
        let (granted, killed) = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let hold = lock.acquire()?;
                let granted_ns = clock::boot_ns();
                hold.release()?;
                Ok::<_, sprag::Error>(granted_ns)
            });
            let killed = kill_once_awaited(ground, &name, &mut holder);
            (waiter.join(), killed)
        });
        let granted_ns = match granted {
            Ok(granted) => granted?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        spans.saturating_record(granted_ns.saturating_sub(killed?));
    }
    Ok(spans)
}

/// Kills the holder as soon as somebody waits, and gives the time just before. Also after an error:
/// who waits must not wait for ever.
fn kill_once_awaited(ground: &Ground, name: &str, holder: &mut Process) -> Result<u64, Error> {
    let awaited = loop {
        match ground.space.inspect(name) {
            Ok(locks) if locks.iter().any(|lock| lock.waiters > 0) => break Ok(()),
            // The waiter is on its way.
            Ok(_) => std::thread::yield_now(),
            Err(error) => break Err(error),
        }
    };
    let killed_ns = clock::boot_ns();
    holder.kill()?;
    awaited?;
    Ok(killed_ns)
}
