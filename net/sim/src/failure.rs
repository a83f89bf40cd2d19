//! What can be wrong with a run.

use std::fmt;

use crate::invariant::Broken;

/// What is wrong with a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Something happened that never may.
    Safety(Broken),
    /// A quorum was sound again, and somebody got no answer.
    Liveness(String),
    /// The code panicked.
    Crash(String),
}

/// The kinds of failures, which a command tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureKind {
    /// Of [`Failure::Safety`].
    Safety,
    /// Of [`Failure::Liveness`].
    Liveness,
    /// Of [`Failure::Crash`].
    Crash,
}

impl FailureKind {
    /// All of them.
    pub const ALL: [FailureKind; 3] = [
        FailureKind::Safety,
        FailureKind::Liveness,
        FailureKind::Crash,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::Safety => "safety",
            FailureKind::Liveness => "liveness",
            FailureKind::Crash => "crash",
        }
    }
}

impl Failure {
    /// Its kind.
    pub fn kind(&self) -> FailureKind {
        match self {
            Failure::Safety(_) => FailureKind::Safety,
            Failure::Liveness(_) => FailureKind::Liveness,
            Failure::Crash(_) => FailureKind::Crash,
        }
    }

    /// The way in which the run failed: two failures of the same way are of the same kind, and of the same invariant.
    pub fn way(&self) -> String {
        match self {
            Failure::Safety(broken) => format!("safety: {}", broken.invariant),
            Failure::Liveness(_) => "liveness".to_owned(),
            Failure::Crash(_) => "crash".to_owned(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = self.way();
        match self {
            Failure::Safety(broken) => {
                write!(f, "{way} is broken: {} ({})", broken.what, broken.source)
            }
            Failure::Liveness(what) | Failure::Crash(what) => write!(f, "{way}: {what}"),
        }
    }
}
