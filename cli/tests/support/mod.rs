//! Runs the built command with regions in a directory of the test's own: owns the process and the
//! directory, never what is right.

// Each test file uses its own part.
#![allow(dead_code)]

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A directory for regions, gone at the end.
pub(crate) struct Regions(TempDir);

/// What the command printed and how it ended.
#[derive(Debug)]
pub(crate) struct Finished {
    /// All of standard output.
    pub(crate) out: String,
    /// All of standard error.
    pub(crate) err: String,
    /// The exit code.
    pub(crate) code: Option<i32>,
}

impl Regions {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("there is room for a directory"))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The URL of the region `name`, by its path.
    pub(crate) fn url(&self, name: &str) -> String {
        format!("shm:{}/{name}.sprag", self.path().display())
    }

    /// The command, not started yet.
    pub(crate) fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sprag"));
        command
            .args(args)
            .env("SPRAG_DIR", self.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs the command to its end.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Finished {
        let output = self.command(args).output().expect("the command starts");
        Finished {
            out: String::from_utf8(output.stdout).expect("output is text"),
            err: String::from_utf8(output.stderr).expect("errors are text"),
            code: output.status.code(),
        }
    }

    /// [`Regions::run`] with words that have a blank between each two.
    pub(crate) fn sprag(&self, words: &str) -> Finished {
        self.run(words.split(' '))
    }
}

impl Finished {
    /// The JSON object or array that was printed on one line; nothing may be on standard error.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.err, "");
        assert_eq!(self.out.lines().count(), 1, "{}", self.out);
        serde_json::from_str(&self.out).expect("the output is JSON")
    }

    /// Standard error of a failure with `code`: one line that begins with the command's name.
    pub(crate) fn error(&self, code: i32) -> &str {
        assert_eq!(
            (self.code, self.out.as_str()),
            (Some(code), ""),
            "{}",
            self.err
        );
        let line = self.err.strip_suffix('\n').expect("a whole line");
        assert!(!line.contains('\n'), "{line}");
        line.strip_prefix("sprag: ").expect("the command's name")
    }

    /// Standard output of a run that ended with `code`.
    pub(crate) fn answer(&self, code: i32) -> &str {
        assert_eq!(
            (self.code, self.err.as_str()),
            (Some(code), ""),
            "{}",
            self.out
        );
        &self.out
    }
}
