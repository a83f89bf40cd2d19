//! Runs a command under a lock: keeps the hold alive meanwhile, and releases it when the command has ended.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitCode;
use std::time::Duration;

use sprag::KeepAlive;

use super::Error;
use super::wanted::{Held, Subject};
use crate::supervise::{self, Claim, Loss, Supervisor, Times};

impl Claim for Held<'_> {
    fn left(&mut self) -> Option<Duration> {
        Held::left(self)
    }
}

/// Runs `command` under `hold` and releases that when the command has ended. `exports` are what tells it what it
/// holds, but for the token. Must be called by the main thread.
pub(super) fn run(
    mut hold: Held<'_>,
    subject: Subject,
    mut exports: Vec<(&str, OsString)>,
    command: &[OsString],
    times: Times,
) -> Result<ExitCode, Error> {
    let tokens = hold.tokens();
    let token = tokens.first().copied().unwrap_or(0);
    // For as long as the command runs, however long that is.
    let keep_alive = KeepAlive {
        at_most: Duration::MAX,
        on_lost: None,
    };
    hold.keep_alive(keep_alive).map_err(Error::Space)?;
    let told: Vec<String> = tokens.iter().map(u64::to_string).collect();
    exports.push((super::TOKEN, told.join(" ").into()));
    let mut supervisor = Supervisor::start(&mut hold, command, &exports, false, times)?;
    let watched = supervisor.watch();
    let (status, loss, was_in_front) = supervisor.finish(watched.is_err())?;
    watched?;
    let loss = match hold.release() {
        Ok(()) => loss,
        // Gone at the end: it went while the command ran.
        Err(sprag::Error::Lost { .. }) => loss.or(Some(Loss::TakenAway)),
        Err(error) => return Err(Error::Space(error)),
    };
    if let Some(loss) = loss {
        return Err(Error::Lost {
            subject,
            token,
            loss,
            command: supervise::shown(command),
            ending: supervise::ending(status),
        });
    }
    if was_in_front && status.signal() == Some(libc::SIGINT) {
        // The keyboard's interrupt reached the command alone. A shell that runs us in a loop goes by
        // how we end, so end as the command did; where that fails, the code says the same.
        let _ = signal_hook::low_level::emulate_default_handler(libc::SIGINT);
    }
    Ok(ExitCode::from(supervise::exit_code(status)))
}
