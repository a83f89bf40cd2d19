//! One step of a chore that runs tests: what it runs, and what came of it. All steps run even after one failed;
//! the summary says how to run a failed one again.

use std::time::{Duration, Instant};

use crate::child::{Cargo, Ending, Output};
use crate::counts::Counts;
use crate::workspace::Workspace;

/// A line of a table of steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// What the step tests, in a few words.
    pub(crate) name: &'static str,
    /// The arguments to cargo.
    pub(crate) cargo: &'static [&'static str],
    /// Variables on top of our own environment.
    pub(crate) env: &'static [(&'static str, &'static str)],
    /// Whether a run without a single test is a failure: it means that a filter or a flag has
    /// stopped matching, which would else pass for success for ever.
    pub(crate) must_run_tests: bool,
    /// The bound at which a hanging step is ended, build included.
    pub(crate) minutes_max: u64,
}

/// What came of one step.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    name: String,
    rerun: String,
    took: Duration,
    /// What the runners' lines say.
    pub(crate) counts: Counts,
    /// How it went.
    pub(crate) result: Outcome,
}

/// How a step went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Every test held.
    Passed,
    /// What went wrong.
    Failed(String),
}

impl Step {
    /// Runs the step.
    pub(crate) fn run(&self, workspace: &Workspace) -> Result<Report, String> {
        let command = Cargo::new(workspace.root(), self.cargo).envs(self.env);
        let bound = Duration::from_mins(self.minutes_max);
        run_tests(self.name, &command, Some(bound), self.must_run_tests)
    }
}

/// Runs a test command with its output shown, sums its result lines and prints its name and time.
pub(crate) fn run_tests(
    name: &str,
    command: &Cargo,
    bound: Option<Duration>,
    must_run_tests: bool,
) -> Result<Report, String> {
    println!("\n==> {name}\n    {}", command.shown());
    let started = Instant::now();
    let mut counts = Counts::default();
    let ending = command.watched(Output::Shown, bound, &mut |line| {
        counts += Counts::of_line(line).unwrap_or_default();
    })?;
    let report = Report {
        name: name.to_owned(),
        rerun: command.shown(),
        took: started.elapsed(),
        counts,
        result: judge(ending, counts, must_run_tests, bound),
    };
    println!("<== {name}: {}", report.in_words());
    Ok(report)
}

/// How a run went, given how it ended and what its runners said.
pub(crate) fn judge(
    ending: Ending,
    counts: Counts,
    must_run_tests: bool,
    bound: Option<Duration>,
) -> Outcome {
    let failed = |what: &str| Outcome::Failed(what.to_owned());
    match ending {
        Ending::TimedOut => Outcome::Failed(format!(
            "ended at its bound of {} minutes",
            bound.unwrap_or_default().as_secs() / 60
        )),
        Ending::Exited(_) if counts.failed > 0 => failed("tests failed"),
        Ending::Exited(false) => failed("did not build, or ended without a result"),
        Ending::Exited(true) if must_run_tests && counts.ran() == 0 => {
            failed("ran no test: a filter or flag no longer matches")
        }
        Ending::Exited(true) => Outcome::Passed,
    }
}

impl Report {
    fn in_words(&self) -> String {
        match &self.result {
            Outcome::Passed => format!("{} in {}", self.counts, seconds(self.took)),
            Outcome::Failed(what) => {
                format!("FAILED, {what}; {} in {}", self.counts, seconds(self.took))
            }
        }
    }
}

/// A duration as a reader of a log wants it.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// Sums reports. A step that failed without a failed test (it did not build, it hung) counts as one
/// failure: the sum must never look like success.
pub(crate) fn sum(reports: &[Report]) -> Counts {
    let mut sum = Counts::default();
    for report in reports {
        sum += report.counts;
        if matches!(report.result, Outcome::Failed(_)) && report.counts.failed == 0 {
            sum.failed += 1;
        }
    }
    sum
}

/// Prints a line per step, the commands that run failed steps again, and the sum alone on the last
/// line. Returns whether tests ran and all held.
pub(crate) fn conclude(reports: &[Report]) -> bool {
    println!("\nSteps:");
    let width = reports
        .iter()
        .map(|report| report.name.chars().count())
        .max()
        .unwrap_or(0);
    for report in reports {
        println!("  {:<width$}  {}", report.name, report.in_words());
    }
    for report in reports {
        if matches!(report.result, Outcome::Failed(_)) {
            println!("Run again: {}", report.rerun);
        }
    }
    let sum = sum(reports);
    if sum.ran() == 0 {
        println!("No test ran: loosen the pattern, or add the missing tests.");
    }
    println!("{sum}");
    sum.failed == 0 && sum.passed > 0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Outcome, Report, judge, sum};
    use crate::child::Ending;
    use crate::counts::Counts;

    fn counts(passed: u64, failed: u64) -> Counts {
        Counts {
            passed,
            failed,
            skipped: 0,
        }
    }

    fn report(counts: Counts, result: Outcome) -> Report {
        Report {
            name: "step".to_owned(),
            rerun: String::new(),
            took: Duration::ZERO,
            counts,
            result,
        }
    }

    #[test]
    fn only_a_clean_exit_after_tests_that_held_is_success() {
        let bound = Some(Duration::from_mins(1));
        let cases = [
            (Ending::Exited(true), counts(3, 0), true, true),
            (Ending::Exited(true), counts(0, 0), false, true),
            (Ending::Exited(true), counts(0, 0), true, false),
            (Ending::Exited(false), counts(3, 0), true, false),
            (Ending::Exited(false), counts(3, 1), true, false),
            (Ending::Exited(true), counts(3, 1), true, false),
            (Ending::TimedOut, counts(3, 0), true, false),
        ];
        for (ending, counts, must_run_tests, passes) in cases {
            let outcome = judge(ending, counts, must_run_tests, bound);
            assert_eq!(
                outcome == Outcome::Passed,
                passes,
                "{ending:?} {counts:?} {must_run_tests}"
            );
        }
    }

    #[test]
    fn a_step_that_failed_without_a_failed_test_counts_as_one_failure() {
        let failed = || Outcome::Failed("did not build".to_owned());
        let reports = [
            report(counts(5, 0), Outcome::Passed),
            report(counts(0, 0), failed()),
            report(counts(2, 3), failed()),
        ];
        assert_eq!(sum(&reports), counts(7, 4));
    }
}
