//! How the command ends.

use std::process::ExitCode;

use sprag_sim::FailureKind;

/// What the exit code says. Where several hold, the least of them by this order of listing is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// Something happened that never may; or a planted bug wasn't found, or a regression differs.
    Safety,
    /// A panic.
    Crash,
    /// A sound quorum left somebody without an answer.
    Liveness,
    /// Nothing failed, but too little was tried for that to mean much.
    TooRough,
    /// An argument or a file was wrong.
    Usage,
    /// All is well.
    Clean,
}

/// The exit codes, for the help.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  clean
  1  safety: something happened that never may, a planted bug was not found, or a regression differs
  2  usage: an argument or a file is wrong; standard error says which
  3  liveness: a sound quorum left somebody without an answer
  4  crash: a panic
  5  too rough: less than half of the calls were answered, or a state that must be reached was not
Where several hold: the first of 1, 4, 3, 5.";

impl Verdict {
    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(match self {
            Verdict::Clean => 0,
            Verdict::Safety => 1,
            Verdict::Usage => 2,
            Verdict::Liveness => 3,
            Verdict::Crash => 4,
            Verdict::TooRough => 5,
        })
    }

    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Verdict::Clean => "clean",
            Verdict::Safety => "NOT SAFE",
            Verdict::Usage => "not run",
            Verdict::Liveness => "NOT LIVE",
            Verdict::Crash => "CRASHED",
            Verdict::TooRough => "TOO ROUGH",
        }
    }
}

impl From<FailureKind> for Verdict {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Safety => Verdict::Safety,
            FailureKind::Liveness => Verdict::Liveness,
            FailureKind::Crash => Verdict::Crash,
        }
    }
}
