//! Child commands: how they look on a command line, how they run, and that none outlives us. A
//! watched child has a process group of its own, so that a test that hangs or leaves processes
//! behind can be ended as a whole.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// A `cargo` command with its environment and directory.
#[derive(Clone, Debug)]
pub(crate) struct Cargo {
    args: Vec<String>,
    env: Vec<(String, String)>,
    directory: PathBuf,
}

impl Cargo {
    /// `cargo ARGS`, to run in `directory`.
    pub(crate) fn new<S: AsRef<str>>(directory: &Path, args: &[S]) -> Self {
        Self {
            args: args.iter().map(|arg| arg.as_ref().to_owned()).collect(),
            env: Vec::new(),
            directory: directory.to_owned(),
        }
    }

    /// The same command with one more variable.
    #[must_use]
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same command with more variables.
    #[must_use]
    pub(crate) fn envs(self, variables: &[(&str, &str)]) -> Self {
        variables
            .iter()
            .fold(self, |command, (name, value)| command.env(name, value))
    }

    /// The line that a user pastes to run this again from the workspace's root.
    pub(crate) fn shown(&self) -> String {
        let variables = self
            .env
            .iter()
            .map(|(name, value)| format!("{name}={}", quoted(value)));
        let args = self.args.iter().map(|arg| quoted(arg));
        variables
            .chain(["cargo".to_owned()])
            .chain(args)
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn command(&self) -> Command {
        // The cargo that runs us, not another of the same name further along the path.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.directory);
        command
    }

    /// Runs in the foreground, with our terminal.
    pub(crate) fn foreground(&self) -> Result<ExitStatus, String> {
        self.command()
            .status()
            .map_err(|error| format!("cannot run `{}`: {error}", self.shown()))
    }

    /// Whether the command succeeds; shows nothing.
    pub(crate) fn succeeds_quietly(&self) -> bool {
        self.command()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    /// Runs in a process group of its own and hands every line of its standard output to
    /// `on_line`. Ends the group at the bound.
    pub(crate) fn watched(
        &self,
        output: Output<'_>,
        bound: Option<Duration>,
        on_line: &mut dyn FnMut(&str),
    ) -> Result<Ending, String> {
        let failed = |error: io::Error| format!("cannot run `{}`: {error}", self.shown());
        let mut command = self.command();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0);
        if let Output::Log(log) = output {
            command.stderr(log.try_clone().map_err(failed)?);
        }
        let mut child = command.spawn().map_err(failed)?;
        let group = Group::of(&child);
        let ending = follow(&mut child, &group, output, bound, on_line);
        drop(group);
        ending.map_err(failed)
    }
}

/// Where the output of a watched child goes.
#[derive(Clone, Copy)]
pub(crate) enum Output<'a> {
    /// Through to ours.
    Shown,
    /// To a file.
    Log(&'a File),
}

/// How a watched child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// By itself, with success or without.
    Exited(bool),
    /// By us, at its bound.
    TimedOut,
}

/// A process that left the group's pipe open gets this long after its parent's end.
const STRAGGLERS: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(50);

fn follow(
    child: &mut Child,
    group: &Group,
    output: Output<'_>,
    bound: Option<Duration>,
    on_line: &mut dyn FnMut(&str),
) -> io::Result<Ending> {
    let started = Instant::now();
    let lines = lines_of(child);
    let mut ending = None;
    let mut ended = started;
    let mut stdout_open = true;
    loop {
        if stdout_open {
            match lines.recv_timeout(POLL) {
                Ok(bytes) => {
                    pass_on(output, &bytes)?;
                    on_line(String::from_utf8_lossy(&bytes).trim_end_matches('\n'));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => stdout_open = false,
            }
        } else if ending.is_none() {
            thread::sleep(POLL);
        }
        if ending.is_none() {
            if let Some(status) = child.try_wait()? {
                ending = Some(Ending::Exited(status.success()));
                ended = Instant::now();
            } else if bound.is_some_and(|bound| started.elapsed() >= bound) {
                group.end();
                child.wait()?;
                ending = Some(Ending::TimedOut);
                ended = Instant::now();
            }
        }
        match ending {
            Some(ending) if !stdout_open => return Ok(ending),
            Some(ending) if ended.elapsed() >= 2 * STRAGGLERS => return Ok(ending),
            Some(_) if ended.elapsed() >= STRAGGLERS => group.end(),
            _ => {}
        }
    }
}

fn lines_of(child: &mut Child) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            loop {
                let mut line = Vec::new();
                match reader.read_until(b'\n', &mut line) {
                    Ok(read) if read > 0 && sender.send(line).is_ok() => {}
                    _ => return,
                }
            }
        });
    }
    receiver
}

fn pass_on(output: Output<'_>, bytes: &[u8]) -> io::Result<()> {
    match output {
        Output::Shown => {
            let mut stdout = io::stdout().lock();
            stdout.write_all(bytes)?;
            stdout.flush()
        }
        Output::Log(mut log) => log.write_all(bytes),
    }
}

/// The groups that are ended when we are.
static GROUPS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// A live process group, named by its leader.
struct Group(u32);

impl Group {
    fn of(child: &Child) -> Self {
        let leader = child.id();
        GROUPS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(leader);
        Self(leader)
    }

    fn end(&self) {
        end_group(self.0);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        GROUPS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.0);
    }
}

/// The shell's own `kill` knows groups on every system, and needs no unsafe code here.
fn end_group(leader: u32) {
    // A group that is gone already is what was wanted.
    let _ = Command::new("sh")
        .args(["-c", &format!("kill -s KILL -- -{leader}")])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

/// From here on, an interrupt ends every watched child before it ends us: they don't share our
/// process group, so the terminal doesn't tell them.
pub(crate) fn end_with_us() -> Result<(), String> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| format!("cannot watch for interrupts: {error}"))?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
            for leader in groups.iter() {
                end_group(*leader);
            }
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

/// A word as the shell needs it.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=,:+@%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Cargo, quoted};

    #[test]
    fn a_command_is_shown_as_a_line_to_paste() {
        let command = Cargo::new(Path::new("/"), &["test", "--test", "torture*"]).envs(&[
            ("RUSTFLAGS", "--cfg loom"),
            ("CARGO_TARGET_DIR", "target/loom"),
        ]);
        assert_eq!(
            command.shown(),
            "RUSTFLAGS='--cfg loom' CARGO_TARGET_DIR=target/loom cargo test --test 'torture*'"
        );
    }

    #[test]
    fn quoting_survives_quotes_and_nothing() {
        assert_eq!(quoted("plain-word_1.2"), "plain-word_1.2");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
