//! Runs a command under an attempt: renews that meanwhile, and stores what came of the command.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitCode;
use std::time::Duration;

use sprag::Attempt;

use super::relay::Relay;
use super::stored::Output;
use super::{Args, Error, loss_text};
use crate::shown::Shown;
use crate::supervise::{self, Claim, Loss, Supervisor, Times};

/// What a command has to end in when its attempt was ended by its token.
const KILL_AFTER: Duration = Duration::from_secs(1);

/// An attempt that is renewed as often as it is looked at, if need be.
struct Renewed<'s> {
    attempt: Attempt<'s>,
    ttl: Duration,
}

impl Claim for Renewed<'_> {
    fn left(&mut self) -> Option<Duration> {
        if self.attempt.deadline_left() < self.ttl * 2 / 3 {
            // Where that fails, what follows tells.
            let _ = self.attempt.renew();
        }
        self.attempt.is_held().then(|| self.attempt.deadline_left())
    }
}

/// Runs `command` under `attempt`, and stores its output and its exit code. Must be called by the main thread.
pub(super) fn run(
    attempt: Attempt<'_>,
    key: &OsStr,
    command: &[OsString],
    args: &Args,
) -> Result<ExitCode, Error> {
    let token = attempt.token();
    let mut exports = vec![
        ("SPRAG_KIND", "once".into()),
        ("SPRAG_KEY", key.to_owned()),
        ("SPRAG_TOKEN", token.to_string().into()),
    ];
    if attempt.is_after_unfinished() {
        exports.push(("SPRAG_UNFINISHED", "1".into()));
    }
    let ttl = args.ttl;
    let times = Times {
        ttl,
        kill_after: KILL_AFTER,
    };
    let mut claim = Renewed { attempt, ttl };
    let mut supervisor = match Supervisor::start(&mut claim, command, &exports, true, times) {
        Ok(supervisor) => supervisor,
        Err(failure) => {
            // Nothing was run.
            let _ = claim.attempt.abandon();
            return Err(failure.into());
        }
    };
    let relay = supervisor.take_stdout().map(Relay::start).transpose();
    let watched = supervisor.watch();
    let (status, loss, was_in_front) = supervisor.finish(watched.is_err())?;
    watched?;
    let relay = relay.map_err(|source| Error::System {
        action: "pass on what the command prints",
        source,
    })?;
    let (output, written) = match relay {
        Some(relay) => relay.finish(ttl / 16, || {
            claim.left();
        }),
        None => (Output::default(), Ok(())),
    };
    let lost = |loss| Error::Lost {
        key: Shown::of(key),
        token,
        loss: loss_text(loss),
        command: supervise::shown(command),
        ending: supervise::ending(status),
    };
    if let Some(loss) = loss {
        return Err(lost(loss));
    }
    let exit_code = supervise::exit_code(status);
    if let Some(signal) = status.signal() {
        // It did not get to its end, which the next one is told by the attempt being dropped.
        drop(claim);
        if was_in_front && signal == libc::SIGINT {
            // As under a lock: a shell that runs us in a loop goes by how we end.
            let _ = signal_hook::low_level::emulate_default_handler(libc::SIGINT);
        }
        return Ok(ExitCode::from(exit_code));
    }
    match claim.attempt.finish(&output.encode(exit_code), args.keep) {
        Ok(()) => {}
        Err(sprag::Error::AttemptLost { .. }) => return Err(lost(Loss::TakenAway)),
        Err(source) => {
            return Err(Error::NotStored {
                command: supervise::shown(command),
                source,
            });
        }
    }
    written.map_err(|source| Error::Write {
        source,
        outcome: "the command ran, and what it printed is stored",
    })?;
    Ok(ExitCode::from(exit_code))
}
