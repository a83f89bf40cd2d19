//! Runs the built command on bytes: owns the process, never what is right.

use std::io::Write;
use std::process::{Command, Stdio};

/// The access log of a real site: 9,999 requests over four days.
pub(crate) const REAL_LOG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/access.log.gz");

/// What the command printed and how it ended.
#[derive(Debug)]
pub(crate) struct Finished {
    /// All of standard output.
    pub(crate) out: Vec<u8>,
    /// All of standard error.
    pub(crate) err: String,
    /// The exit code.
    pub(crate) code: Option<i32>,
}

/// `sprag replay` with `args`, a blank between each two, given `input` on standard input.
pub(crate) fn replay(args: &str, input: &[u8]) -> Finished {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sprag"))
        .arg("replay")
        .args(args.split(' '))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    let output = std::thread::scope(|scope| {
        // A command that has no use for its input closes it, which is its own affair.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().expect("the command ends")
    });
    Finished {
        out: output.stdout,
        err: String::from_utf8(output.stderr).expect("errors are text"),
        code: output.status.code(),
    }
}
