//! Runs a command under a claim, such as a hold: starts it, passes signals on, lets the terminal's job
//! control through, ends it when the claim is lost, and turns its end into an exit code. Never takes a
//! claim, nor gives one back.
//!
//! ```text
//!  supervise ──┬── guard      how long the command may go on
//!              ├── child      its process and its group
//!              ├── signals    what is caught, to be passed on
//!              └── terminal   who is in the foreground
//! ```
//!
//! ```text
//!            ┌────────────────── a stop without a terminal: it waits, it is kept ─┐
//!            ▼                                                                  │
//!  start ─▶ runs ──(stops by Ctrl-Z …)──▶ terminal back, we stop ──(SIGCONT)──▶ stopped
//!            │ ▲                                                                │
//!            │ └─────────── still ours: terminal handed over, SIGCONT ──────────┤
//!            ▼                                                                  ▼ lost: SIGKILL
//!          ended ◀──────────────────────────────────────────────────────────────┘
//! ```
//!
//! Each turn looks at the claim first, so that after a stop of our own, whose length nobody knows, no
//! command is continued under a claim that was lost meanwhile.

mod child;
mod guard;
pub(crate) mod signals;
mod terminal;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStdout, ExitStatus, Stdio};
use std::time::Duration;

use libc::c_int;

pub(crate) use self::guard::{Loss, TTL_MIN};

use self::child::{Change, Child};
use self::guard::{Guard, Verdict};
use self::signals::Signals;
use self::terminal::Terminal;
use crate::clock;
use crate::shown::Shown;

/// The exit codes that are not a command's own.
pub(crate) mod code {
    /// An argument is wrong (`EX_USAGE`, as flock has it), or what is asked for waits for itself.
    pub(crate) const USAGE: u8 = 64;
    /// Somebody else has what is asked for (`EX_TEMPFAIL`).
    pub(crate) const BUSY: u8 = 75;
    /// The claim was lost, or there is none under the token.
    pub(crate) const LOST: u8 = 123;
    /// The command of ours failed (as env and timeout have it).
    pub(crate) const FAILED: u8 = 125;
    /// The command was found but can't be run.
    pub(crate) const CANNOT_RUN: u8 = 126;
    /// The command was not found.
    pub(crate) const NOT_FOUND: u8 = 127;
    /// The command was ended by the signal with the number above this.
    const SIGNAL: u8 = 128;

    /// The code of a command that ended by a signal.
    pub(super) fn of_signal(signal: i32) -> i32 {
        i32::from(SIGNAL) + signal
    }
}

/// What a command runs under.
pub(crate) trait Claim {
    /// What is left of it, renewed if that is due and it is not renewed elsewhere; `None` if it is lost.
    fn left(&mut self) -> Option<Duration>;
}

/// Why a command was not run, or not to its end.
pub(crate) enum Failure {
    /// There is no such program.
    NotFound { command: Shown },
    /// The program can't be run.
    CannotRun { command: Shown, source: io::Error },
    /// The system failed.
    System {
        action: &'static str,
        source: io::Error,
    },
}

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// How long the claim lasts when it is not renewed.
    pub(crate) ttl: Duration,
    /// What a command has to end in when the claim was taken away.
    pub(crate) kill_after: Duration,
}

pub(crate) fn shown(command: &[OsString]) -> Shown {
    Shown::of(command.first().map_or(OsStr::new(""), OsString::as_os_str))
}

fn cannot_run(command: &[OsString], source: io::Error) -> Failure {
    let command = shown(command);
    match source.kind() {
        io::ErrorKind::NotFound => Failure::NotFound { command },
        _ => Failure::CannotRun { command, source },
    }
}

pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    let code = match status.signal() {
        Some(signal) => code::of_signal(signal),
        None => status.code().unwrap_or_default(),
    };
    u8::try_from(code).unwrap_or(code::FAILED)
}

pub(crate) fn ending(status: ExitStatus) -> String {
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

/// A command that runs under a claim.
pub(crate) struct Supervisor<'c, C> {
    claim: &'c mut C,
    guard: Guard,
    child: Child,
    signals: Signals,
    terminal: Option<Terminal>,
    stop: Stop,
    /// Whether the terminal is to be handed over when the command goes on.
    wants_terminal: bool,
}

impl<'c, C: Claim> Supervisor<'c, C> {
    /// Starts the command, with these variables, and with a pipe of ours for its standard output if `is_piped`.
    /// Must be called by the main thread.
    pub(crate) fn start(
        claim: &'c mut C,
        command: &[OsString],
        exports: &[(&str, OsString)],
        is_piped: bool,
        times: Times,
    ) -> Result<Self, Failure> {
        let left = claim.left().unwrap_or_default();
        let guard = Guard::new(clock::boot_ns(), left, times.ttl, times.kill_after);
        let signals = Signals::catch().map_err(|source| Failure::System {
            action: "catch signals",
            source,
        })?;
        let terminal = Terminal::controlling();
        let in_front = terminal.as_ref().filter(|terminal| terminal.is_all_ours());
        let stdout = if is_piped {
            Stdio::piped()
        } else {
            Stdio::inherit()
        };
        let undo = signals.undo();
        let foreground = in_front.map(Terminal::fd);
        let started = Child::start(command, exports, stdout, undo, foreground);
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
            claim,
            guard,
            child,
            signals,
            terminal,
            stop: Stop::None,
            wants_terminal: false,
        })
    }

    /// Our end of the pipe that is its standard output, once.
    pub(crate) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.take_stdout()
    }

    /// Watches over the command until it has ended.
    pub(crate) fn watch(&mut self) -> Result<(), Failure> {
        loop {
            self.heed_the_claim();
            let change = self.child.look().map_err(|source| Failure::System {
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
                    // We may have been stopped ourselves: first of all, is the claim still ours?
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

    /// Ends the command if the claim is no more.
    fn heed_the_claim(&mut self) {
        let left = self.claim.left();
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
            // Nobody is waiting for a terminal back; the claim is kept until it goes on.
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
    /// ended, how the claim was lost, and whether it had the terminal to the end.
    pub(crate) fn finish(
        self,
        is_to_be_killed: bool,
    ) -> Result<(ExitStatus, Option<Loss>, bool), Failure> {
        let loss = self.guard.loss();
        if loss.is_some() || is_to_be_killed {
            // Those of its group that outlive it have no claim to go on under either.
            self.child.signal(libc::SIGKILL);
        }
        let terminal = self.terminal.as_ref();
        let had_terminal = terminal.is_some_and(|terminal| terminal.take_from(self.child.group()));
        let status = self.child.wait().map_err(|source| Failure::System {
            action: "wait for the command",
            source,
        })?;
        Ok((status, loss, had_terminal))
    }
}
