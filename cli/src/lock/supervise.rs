//! Runs a command under a hold: starts it, passes signals on, lets the terminal's job control through,
//! ends it when the hold is lost, and turns its end into an exit code.
//!
//! ```text
//!            ┌────────────────── a stop without a terminal: it waits, we renew ──┐
//!            ▼                                                                  │
//!  start ─▶ runs ──(stops by Ctrl-Z …)──▶ terminal back, we stop ──(SIGCONT)──▶ stopped
//!            │ ▲                                                                │
//!            │ └─────────── still held: terminal handed over, SIGCONT ──────────┤
//!            ▼                                                                  ▼ lost: SIGKILL
//!          ended ◀──────────────────────────────────────────────────────────────┘
//! ```
//!
//! Each turn looks at the hold first, so that after a stop of our own, whose length nobody knows, no
//! command is continued under a lock that was lost meanwhile.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use libc::c_int;
use sprag::{Hold, KeepAlive};

use super::child::{Change, Child};
use super::guard::{Guard, Loss, Verdict};
use super::shown::Shown;
use super::signals::{self, Signals};
use super::terminal::Terminal;
use super::wanted::Subject;
use super::{Error, code};
use crate::clock;

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// The leases of the hold.
    pub(super) ttl: Duration,
    /// What a command has to end in when its lock was taken away.
    pub(super) kill_after: Duration,
}

/// Runs `command` under `hold` and releases that when the command has ended. Must be called by the
/// main thread.
pub(super) fn run(
    mut hold: Hold<'_>,
    subject: Subject,
    name: &OsStr,
    command: &[OsString],
    times: Times,
) -> Result<ExitCode, Error> {
    let token = hold.token();
    // For as long as the command runs, however long that is.
    let keep_alive = KeepAlive {
        at_most: Duration::MAX,
        on_lost: None,
    };
    hold.keep_alive(keep_alive).map_err(Error::Space)?;
    let mut supervisor = Supervisor::start(&hold, name, command, times)?;
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
            command: shown(command),
            ending: ending(status),
        });
    }
    if was_in_front && status.signal() == Some(libc::SIGINT) {
        // The keyboard's interrupt reached the command alone. A shell that runs us in a loop goes by
        // how we end, so end as the command did; where that fails, the code says the same.
        let _ = signal_hook::low_level::emulate_default_handler(libc::SIGINT);
    }
    Ok(ExitCode::from(exit_code(status)))
}

fn shown(command: &[OsString]) -> Shown {
    Shown::of(command.first().map_or(OsStr::new(""), OsString::as_os_str))
}

fn cannot_run(command: &[OsString], source: io::Error) -> Error {
    let command = shown(command);
    match source.kind() {
        io::ErrorKind::NotFound => Error::NotFound { command },
        _ => Error::CannotRun { command, source },
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = match status.signal() {
        Some(signal) => c_int::from(code::SIGNAL) + signal,
        None => status.code().unwrap_or_default(),
    };
    u8::try_from(code).unwrap_or(code::FAILED)
}

fn ending(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("was ended by signal {signal}"),
        None => format!("ended with code {}", exit_code(status)),
    }
}

/// What a stopped command waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// It isn't stopped.
    None,
    /// Somebody continues it.
    UntilContinued,
    /// The terminal, which it wanted to use from the background.
    ForTerminal,
    /// Nothing any more.
    Over,
}

struct Supervisor<'h, 's> {
    hold: &'h Hold<'s>,
    guard: Guard,
    child: Child,
    signals: Signals,
    terminal: Option<Terminal>,
    stop: Stop,
    /// Whether the terminal is to be handed over when the command goes on.
    wants_terminal: bool,
}

impl<'h, 's> Supervisor<'h, 's> {
    fn start(
        hold: &'h Hold<'s>,
        name: &OsStr,
        command: &[OsString],
        times: Times,
    ) -> Result<Self, Error> {
        let guard = Guard::new(
            clock::boot_ns(),
            hold.lease_left(),
            times.ttl,
            times.kill_after,
        );
        let signals = Signals::catch().map_err(|source| Error::System {
            action: "catch signals",
            source,
        })?;
        let terminal = Terminal::controlling();
        let in_front = terminal.as_ref().filter(|terminal| terminal.is_all_ours());
        let exports = [
            (super::KEY, name.to_owned()),
            (super::TOKEN, hold.token().to_string().into()),
        ];
        let started = Child::start(command, exports, signals.undo(), in_front.map(Terminal::fd));
        let child = match started {
            Ok(child) => child,
            Err(source) => {
                if let Some(terminal) = in_front {
                    // It may have been handed over before the command turned out not to run.
                    terminal.take_back();
                }
                return Err(cannot_run(command, source));
            }
        };
        Ok(Self {
            hold,
            guard,
            child,
            signals,
            terminal,
            stop: Stop::None,
            wants_terminal: false,
        })
    }

    /// Watches over the command until it has ended.
    fn watch(&mut self) -> Result<(), Error> {
        loop {
            self.heed_the_hold();
            let change = self.child.look().map_err(|source| Error::System {
                action: "look after the command",
                source,
            })?;
            match change {
                Change::Ended => return Ok(()),
                // Asked to end, perhaps when it was stopped already: it would have to go on to hear it.
                Change::Stopped(_) if self.guard.loss().is_some() => {
                    self.child.signal(libc::SIGKILL);
                }
                Change::Stopped(signal) => {
                    self.on_stop(signal);
                    // We may have been stopped ourselves: first of all, is the lock still ours?
                    continue;
                }
                Change::Continued => self.stop = Stop::None,
                Change::None => {}
            }
            for signal in self.signals.take() {
                if signal == libc::SIGCONT {
                    self.go_on();
                } else {
                    self.child.signal(signal);
                }
            }
            let is_due = match self.stop {
                Stop::None | Stop::UntilContinued => false,
                Stop::ForTerminal => self.terminal.as_ref().is_some_and(Terminal::is_ours),
                Stop::Over => true,
            };
            if is_due {
                self.go_on();
            }
            self.signals.wait(self.guard.look_again(clock::boot_ns()));
        }
    }

    /// Ends the command if the hold is no more.
    fn heed_the_hold(&mut self) {
        let left = self.hold.is_held().then(|| self.hold.lease_left());
        match self.guard.look(clock::boot_ns(), left) {
            Verdict::GoOn => {}
            // One that is stopped would have to go on first to hear it.
            Verdict::Terminate if self.stop == Stop::None => self.child.signal(libc::SIGTERM),
            Verdict::Terminate | Verdict::Kill => self.child.signal(libc::SIGKILL),
        }
    }

    /// The command was stopped: by the terminal, for the terminal, or by somebody.
    fn on_stop(&mut self, signal: c_int) {
        let asks_for_terminal = signal == libc::SIGTTIN || signal == libc::SIGTTOU;
        self.stop = if asks_for_terminal {
            Stop::ForTerminal
        } else {
            Stop::UntilContinued
        };
        let Some(terminal) = &self.terminal else {
            // Nobody is waiting for a terminal back; the hold is kept until it goes on.
            return;
        };
        if asks_for_terminal && terminal.is_ours() {
            self.wants_terminal = true;
            return;
        }
        let was_in_front = terminal.is_of(self.child.group());
        if signal == libc::SIGSTOP && !was_in_front {
            // Meant for the command; whoever sent it will continue the command as well.
            return;
        }
        self.wants_terminal = was_in_front || asks_for_terminal;
        terminal.take_from(self.child.group());
        signals::stop_own_group();
        // Continued, and then SIGCONT is among the signals by now or soon; or never stopped, as nobody
        // is there who could continue us. Then the command goes on too, but for one that wants a
        // terminal which isn't ours: that one waits, or it would be stopped and continued for ever.
        if !asks_for_terminal {
            self.stop = Stop::Over;
        }
    }

    /// Continues the command, with the terminal if it had or wants it and we have it.
    fn go_on(&mut self) {
        if self.guard.loss().is_some() {
            return;
        }
        if std::mem::take(&mut self.wants_terminal)
            && let Some(terminal) = &self.terminal
        {
            terminal.hand_to(self.child.group());
        }
        self.stop = Stop::None;
        self.child.signal(libc::SIGCONT);
    }

    /// Takes the terminal back and waits for the command, which has ended or `is_to_be_killed`; how it
    /// ended, how the hold was lost, and whether it had the terminal to the end.
    fn finish(self, is_to_be_killed: bool) -> Result<(ExitStatus, Option<Loss>, bool), Error> {
        let loss = self.guard.loss();
        if loss.is_some() || is_to_be_killed {
            // Those of its group that outlive it have no lock to go on under either.
            self.child.signal(libc::SIGKILL);
        }
        let terminal = self.terminal.as_ref();
        let had_terminal = terminal.is_some_and(|terminal| terminal.take_from(self.child.group()));
        let status = self.child.wait().map_err(|source| Error::System {
            action: "wait for the command",
            source,
        })?;
        Ok((status, loss, had_terminal))
    }
}
