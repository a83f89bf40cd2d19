//! What the tests of regions in files share: small regions, short calls, children.

use sprag_core::lock::{Attempt, Grant};
use sprag_core::once::Begun;
use sprag_core::region::file::{self, OpenOptions};
use sprag_core::region::{Birth, Caps};
use sprag_core::session::Process;
use sprag_core::{Engine, Result, SessionId};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const UNIX_NS: u64 = 1_800_000_000 * SECOND;

/// Byte offsets of header words, frozen with the layout.
pub(crate) const CHECKSUM: usize = 104;
pub(crate) const LATEST: u64 = 152;

pub(crate) const CAPS: Caps = Caps {
    objects: 64,
    limiter_keys: 64,
    joint_keys: 64,
    sessions: 16,
    waiters: 16,
    permits: 16,
    key_chunks: 64,
};

pub(crate) const BIRTH: Birth = Birth {
    hash_seed: 7,
    unix_ns: UNIX_NS,
    boot_ns: 1_000 * SECOND,
    boot_id: [1, 2],
    floor: 0,
};

pub(crate) const OPTIONS: OpenOptions = OpenOptions {
    caps: CAPS,
    create: true,
    group_shared: false,
    birth: BIRTH,
};

/// A test's own directory. One test at a time has one: a child that another test forks would keep
/// this one's sessions alive.
pub(crate) struct Directory {
    directory: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Directory {
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// A directory of its own, and the path of a region in it.
pub(crate) fn place() -> (Directory, PathBuf) {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("region");
    (
        Directory {
            directory,
            _turn: turn,
        },
        path,
    )
}

pub(crate) fn open(path: &Path) -> Engine {
    try_open(path, &OPTIONS).unwrap()
}

pub(crate) fn try_open(path: &Path, options: &OpenOptions) -> Result<Engine> {
    let region = file::open(path, options)?;
    let session_file = Box::new(region.reopen()?);
    Engine::shared(region, 50, session_file)
}

pub(crate) fn session(engine: &Engine) -> SessionId {
    engine.open_session(Process::default(), UNIX_NS).unwrap()
}

pub(crate) fn acquire(engine: &Engine, by: SessionId, name: &[u8], now_ns: u64) -> Option<Grant> {
    let name = engine.lock_name(name).unwrap();
    match engine.try_acquire(&name, by, now_ns, 30 * SECOND).unwrap() {
        Attempt::Granted(grant) => Some(grant),
        Attempt::Busy => None,
    }
}

/// What `threads` threads that start at once each get from `body`.
pub(crate) fn at_once<T: Send>(threads: u8, body: impl Fn(u8) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(threads.into());
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads)
            .map(|i| {
                let (barrier, body) = (&barrier, &body);
                scope.spawn(move || {
                    barrier.wait();
                    body(i)
                })
            })
            .collect();
        started.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

/// Overwrites part of a file, as something that is no Sprag would.
pub(crate) fn scribble(path: &Path, at: u64, bytes: &[u8]) {
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(bytes, at).unwrap();
}

/// The names in a directory.
pub(crate) fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// This test program once more, in a role of its own.
pub(crate) struct Actor {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// Which role a child plays, and on which file.
pub(crate) const ROLE: &str = "SPRAG_TEST_ROLE";
pub(crate) const PATH: &str = "SPRAG_TEST_PATH";
/// What a role's lines begin with, to tell them from the test harness's.
const MARK: &str = "role: ";

/// The command that starts this program in a role.
pub(crate) fn role_arguments() -> [&'static str; 4] {
    ["--exact", "processes::roles", "--nocapture", "--quiet"]
}

impl Actor {
    pub(crate) fn start(role: &str, path: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(role_arguments())
            .env(ROLE, role)
            .env(PATH, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    /// The next line that the role says.
    pub(crate) fn hear(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(
                self.output.read_line(&mut line).unwrap() > 0,
                "the child ended early"
            );
            if let Some((_, said)) = line.split_once(MARK) {
                return said.trim_end().to_owned();
            }
        }
    }

    /// Lets the role go on.
    pub(crate) fn nudge(&mut self) {
        self.input.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    pub(crate) fn kill(mut self) -> Option<ChildStdin> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.input.take()
    }

    pub(crate) fn finish(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

/// In a role: says a line to the test.
pub(crate) fn say(line: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{MARK}{line}").unwrap();
    out.flush().unwrap();
}

/// In a role: waits for a nudge; `false` when the test is over.
pub(crate) fn listen() -> bool {
    let mut byte = [0];
    // SAFETY: `byte` is valid for one byte of writes. Read without a buffer, so that what a forked
    // child reads is not what its parent has read ahead.
    unsafe { libc::read(0, byte.as_mut_ptr().cast(), 1) == 1 }
}

/// Runs `body` in a forked child, and says how it ended: its exit code, or `None` if it panicked or
/// was killed.
pub(crate) fn in_child(body: impl FnOnce() -> i32) -> Option<i32> {
    // SAFETY: the child runs `body` on the only thread it has and ends without running anything else.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(code.unwrap_or(101)) }
    }
    let mut status = 0;
    // SAFETY: `status` is valid for writes; the child is this process's own.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    (libc::WIFEXITED(status) && libc::WEXITSTATUS(status) != 101).then(|| libc::WEXITSTATUS(status))
}

/// Runs `body` in forked children, each killed one system call stop later than the one before, until
/// one gets to its end. After each, `look` is told how many stops it lived.
pub(crate) fn kill_at_each_system_call(body: impl Fn(), mut look: impl FnMut(u32)) -> u32 {
    for stops in 0.. {
        // SAFETY: as in `in_child`.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            // SAFETY: takes no pointers here; stops until the parent lets it go on.
            unsafe {
                libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
                libc::raise(libc::SIGSTOP);
            }
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&body));
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(ended.is_err())) }
        }
        let wait = || {
            let mut status = 0;
            // SAFETY: `status` is valid for writes; the child is this process's own.
            assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
            status
        };
        assert!(libc::WIFSTOPPED(wait()), "tracing is not allowed here");
        let mut ended = None;
        for _ in 0..stops {
            // SAFETY: the child is stopped, and traced by this thread.
            unsafe { libc::ptrace(libc::PTRACE_SYSCALL, pid, 0, 0) };
            let status = wait();
            if !libc::WIFSTOPPED(status) {
                ended = Some(status);
                break;
            }
        }
        if let Some(status) = ended {
            assert!(
                libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
                "the child failed"
            );
            look(stops);
            return stops;
        }
        // SAFETY: takes no pointers; the child is this process's own and not yet waited for.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        wait();
        look(stops);
    }
    unreachable!("the loop has no end")
}

/// Stores a result for an hour; the attempt's token.
pub(crate) fn store(
    engine: &Engine,
    by: SessionId,
    name: &[u8],
    result: &[u8],
    now_ns: u64,
) -> u64 {
    let name = engine.once_name(name).unwrap();
    let Begun::Started(attempt) = engine.begin(&name, by, now_ns, SECOND).unwrap() else {
        panic!("it is in progress or done");
    };
    let stored = engine.finish(&attempt, by, result, now_ns, 3_600 * SECOND);
    assert!(stored.unwrap());
    attempt.token
}

/// How far the call was whose process died in it: no further than engaging its words, decided, or called off.
pub(crate) const UNDECIDED: u64 = 1;
pub(crate) const DECIDED: u64 = 2;
pub(crate) const CALLED_OFF: u64 = 3;

/// Takes `cost` of two keys of at most 16 bytes in one call, and leaves them in the file as a process does that
/// dies in it when it is so far. The session's first call must be this one, and no other must have come before.
pub(crate) fn leave_call(
    engine: &Engine,
    path: &Path,
    limiter: &sprag_core::LimiterRef,
    keys: [&[u8]; 2],
    cost: u64,
    by: SessionId,
    phase: u64,
) {
    let asked = keys.map(|key| sprag_core::limiter::Asked { limiter, key, cost });
    let taken = engine.check_all(asked, by, 0, SECOND, |_, _| {});
    assert!(taken.unwrap());
    let bytes = std::fs::read(path).unwrap();
    let find = |what: &[u8], align: usize| {
        let at = bytes.windows(what.len()).enumerate();
        let mut at = at.filter(|(at, window)| at % align == 0 && *window == what);
        at.next().expect("it is in the file").0
    };
    // A key lies 16 bytes into its cell, and an entry begins with the place of its word.
    let cells = keys.map(|key| find(&[key, &[0; 16]].concat()[..16], 16) - 16);
    let entries = cells.map(|cell| find(&(cell as u64).to_le_bytes(), 8));
    let control = entries[0].min(entries[1]) - 64;
    let read = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let number = read(control) >> 20;
    let index = u64::from(by.index()) * 16;
    let put = |at: usize, value: &[u8]| scribble(path, at as u64, value);
    put(
        control,
        &(phase | u64::from(by.index()) << 8 | number << 20).to_le_bytes(),
    );
    for (cell, entry) in cells.into_iter().zip(entries) {
        let entry = (entry - control - 64) as u64 / 40;
        let mark = u128::from(index | entry << 10 | number << 13);
        let state = u128::from(read(cell)) & ((1 << 43) - 1) | 1 << 9 | mark << 43;
        put(cell, &state.to_le_bytes());
    }
}
