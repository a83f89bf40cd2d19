//! A space of its own for each test, and commands run in it: owns processes and files, never what is
//! right.

#![allow(dead_code)]

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use sprag::Space;
use tempfile::TempDir;

/// How long anything may take before it counts as hung.
pub(crate) const HUNG: Duration = Duration::from_mins(2);

/// A directory with a region in it.
pub(crate) struct World {
    dir: TempDir,
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub(crate) struct Finished {
    /// All of standard output that was not read before.
    pub(crate) out: String,
    /// All of standard error.
    pub(crate) err: String,
    /// The exit code; `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    /// The signal that ended it.
    pub(crate) signal: Option<i32>,
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().expect("a directory can be made");
        Self { dir }
    }

    /// A path in the directory.
    pub(crate) fn path(&self, name: &str) -> String {
        let path = self.dir.path().join(name);
        path.into_os_string().into_string().expect("paths are text")
    }

    /// The URL of the space.
    pub(crate) fn url(&self) -> String {
        format!("shm:{}", self.path("region"))
    }

    /// The space, opened by this process.
    pub(crate) fn space(&self) -> Space {
        Space::open(&self.url()).expect("the space opens")
    }

    /// `sprag --at URL lock`.
    pub(crate) fn lock(&self) -> Command {
        self.lock_at(&self.url())
    }

    /// `sprag --at URL lock` with another URL.
    pub(crate) fn lock_at(&self, url: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sprag"));
        command.args(["--at", url, "lock"]);
        command.current_dir(self.dir.path());
        command
    }

    /// `sprag --at URL once`.
    pub(crate) fn once(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sprag"));
        command.args(["--at", &self.url(), "once"]);
        command.current_dir(self.dir.path());
        command
    }

    /// Runs `sprag lock` with these arguments to its end.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Finished {
        Running::start(self.lock().args(args)).finish()
    }

    /// Starts `sprag lock` with these arguments and then `-- sh -c SCRIPT`.
    pub(crate) fn start(&self, args: &[&str], script: &str) -> Running {
        Running::start(self.lock().args(args).args(["--", "sh", "-c", script]))
    }

    /// Runs a script of `sh` that finds `sprag` in `PATH`, with the space's URL in `AT`.
    pub(crate) fn script(&self, text: &str) -> Finished {
        let file = self.path("script");
        std::fs::write(&file, text).expect("the script can be written");
        let mut command = Command::new("sh");
        let bin = std::path::Path::new(env!("CARGO_BIN_EXE_sprag"));
        let path = format!(
            "{}:{}",
            bin.parent().expect("it lies somewhere").display(),
            std::env::var("PATH").expect("there is a PATH")
        );
        command
            .arg(file)
            .env("PATH", path)
            .env("AT", self.url())
            .current_dir(self.dir.path());
        Running::start(&mut command).finish()
    }

    /// Whether the lock can be had, which is tried.
    pub(crate) fn is_free(&self, name: &str) -> bool {
        let space = self.space();
        let lock = space.lock(name).expect("a good name");
        lock.try_acquire().expect("the space works").is_some()
    }
}

/// A command under way, its standard input and output in our hands.
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    err: Option<thread::JoinHandle<String>>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        // Whoever runs the tests may ignore signals (nohup does), and what is ignored at the start is
        // not passed on.
        // SAFETY: `signal` is async-signal-safe, and the default action has no handler to name.
        unsafe {
            command.pre_exec(|| {
                for signal in 1..=libc::SIGRTMAX() {
                    libc::signal(signal, libc::SIG_DFL);
                }
                Ok(())
            });
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let stdin = child.stdin.take();
        let out = child.stdout.take().expect("standard output is a pipe");
        let mut err = child.stderr.take().expect("standard error is a pipe");
        let (sender, lines) = channel();
        thread::spawn(move || {
            let mut out = BufReader::new(out);
            let mut line = Vec::new();
            while out.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                if sender
                    .send(String::from_utf8_lossy(&line).into_owned())
                    .is_err()
                {
                    return;
                }
                line.clear();
            }
        });
        let err = thread::spawn(move || {
            let mut text = Vec::new();
            err.read_to_end(&mut text)
                .expect("standard error can be read");
            String::from_utf8_lossy(&text).into_owned()
        });
        Self {
            child,
            stdin,
            lines,
            err: Some(err),
        }
    }

    /// The process id of `sprag`.
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("process ids are small")
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: i32) {
        send(self.pid(), signal);
    }

    /// The next line of its output, without its end.
    #[track_caller]
    pub(crate) fn line(&self) -> String {
        match self.lines.recv_timeout(HUNG) {
            Ok(line) => line.trim_end_matches('\n').to_owned(),
            Err(error) => panic!("no line came: {error}"),
        }
    }

    /// Whether it has printed nothing that was not read.
    pub(crate) fn is_silent(&self) -> bool {
        self.lines.try_recv().is_err()
    }

    /// Writes to its standard input.
    pub(crate) fn write(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().expect("its input is still open");
        stdin.write_all(text.as_bytes()).expect("it reads");
    }

    /// Closes its standard input and waits for its end.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Finished {
        drop(self.stdin.take());
        self.finish_with_open_input()
    }

    /// Waits for its end, its standard input left open.
    #[track_caller]
    pub(crate) fn finish_with_open_input(mut self) -> Finished {
        let mut out = String::new();
        loop {
            match self.lines.recv_timeout(HUNG) {
                Ok(line) => out.push_str(&line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it hangs, having printed {out:?}"),
            }
        }
        let status = self.child.wait().expect("it can be waited for");
        let err = self.err.take().expect("it is finished once");
        Finished {
            out,
            err: err.join().expect("errors are read"),
            code: status.code(),
            signal: status.signal(),
        }
    }
}

/// A test that fails leaves nothing running.
impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Finished {
    /// Standard error of a failure: one line.
    #[track_caller]
    pub(crate) fn error(&self) -> &str {
        let line = self.err.strip_suffix('\n').expect("a whole line");
        assert!(
            line.starts_with("sprag: ") && !line.contains('\n'),
            "{line}"
        );
        line
    }
}

/// Sends a signal to a process.
#[track_caller]
pub(crate) fn send(pid: i32, signal: i32) {
    // SAFETY: no memory is involved.
    let failed = unsafe { libc::kill(pid, signal) } != 0;
    assert!(!failed, "{}", std::io::Error::last_os_error());
}

/// Looks at a condition again and again until it holds.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < HUNG, "it never came to this: {what}");
        thread::park_timeout(Duration::from_millis(2));
    }
}

/// The letter of a process's state, as in `T` for stopped; `None` once it is gone.
pub(crate) fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.chars().next()
}

/// Whether a process has ended, be it waited for or not.
pub(crate) fn has_ended(pid: i32) -> bool {
    matches!(state(pid), None | Some('Z' | 'X'))
}

/// The first number in a text.
#[track_caller]
pub(crate) fn number<N: std::str::FromStr>(text: &str) -> N {
    text.trim()
        .parse()
        .ok()
        .unwrap_or_else(|| panic!("not a number: {text:?}"))
}
