//! Running mutants: first the tests as they are, which must be green, then each break.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::scratch::Scratch;
use super::table::Mutant;
use super::test_command::TestCommand;
use crate::child::{Cargo, Ending, Output};
use crate::counts::{self, Counts};
use crate::step::seconds;
use crate::workspace::Workspace;

/// No build of this tree takes so long; one that does is stuck.
const BUILD_MAX: Duration = Duration::from_mins(30);
/// The unbroken test may take this long.
const GREEN_MAX: Duration = Duration::from_mins(15);
/// A broken test is taken to hang after this, or after `HANG_FACTOR` times what it takes unbroken.
const HANG_MIN: Duration = Duration::from_mins(2);
const HANG_FACTOR: u32 = 10;

/// What a break led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// These tests failed.
    Red(Vec<String>),
    /// These tests failed, and none of them said what the table expects.
    RedOtherwise(Vec<String>),
    /// The test's process died without a verdict: an abort or a signal.
    Died,
    /// The test hung and was ended.
    Hung,
    /// The test held: it doesn't see the break.
    Survived,
    /// The broken code doesn't compile; the compiler's words are in the file.
    DoesNotCompile(PathBuf),
    /// No test ran.
    NoTestRan,
}

impl Outcome {
    /// Whether the test saw the break.
    pub(super) fn is_caught(&self) -> bool {
        matches!(self, Self::Red(_) | Self::Died | Self::Hung)
    }

    /// The result, and the tests that went red.
    pub(super) fn in_words(&self) -> (&'static str, String) {
        match self {
            Self::Red(tests) => ("red", tests.join(", ")),
            Self::RedOtherwise(tests) => ("RED OTHERWISE", tests.join(", ")),
            Self::Died => ("red, process died", String::new()),
            Self::Hung => ("red, hung", String::new()),
            Self::Survived => ("SURVIVED", String::new()),
            Self::DoesNotCompile(_) => ("ERROR, does not compile", String::new()),
            Self::NoTestRan => ("ERROR, no test ran", String::new()),
        }
    }

    /// What to do about a mutant that wasn't caught.
    pub(super) fn advice(&self) -> Option<String> {
        match self {
            Self::Red(_) | Self::Died | Self::Hung => None,
            Self::RedOtherwise(_) => Some(
                "failed of something else: name the assertion in `says`, or break the code otherwise"
                    .to_owned(),
            ),
            Self::Survived => {
                Some("survived: sharpen the test, or break the code harder".to_owned())
            }
            Self::DoesNotCompile(log) => Some(format!(
                "does not compile: mend the mutated line, see {}",
                log.display()
            )),
            Self::NoTestRan => Some("no test ran: name one that exists".to_owned()),
        }
    }
}

/// How long each test command takes on unbroken code.
pub(super) type Green<'a> = BTreeMap<&'a TestCommand, Duration>;

/// Runs tests in scratch copies of one workspace.
pub(super) struct Runner<'a> {
    workspace: &'a Workspace,
}

impl<'a> Runner<'a> {
    /// A runner for a workspace.
    pub(super) fn new(workspace: &'a Workspace) -> Self {
        Self { workspace }
    }

    /// Runs every test that the mutants name on the unbroken code; any that isn't green is an error,
    /// since it would take every break for caught.
    pub(super) fn baselines<'m>(&self, mutants: &[&'m Mutant]) -> Result<Green<'m>, String> {
        let scratch = Scratch::open(self.workspace, 0)?;
        let mut green = Green::new();
        for mutant in mutants {
            if green.contains_key(&mutant.test) {
                continue;
            }
            println!("unbroken: {}", mutant.test);
            let log = scratch.log("unbroken.log");
            let (outcome, took) = attempt(&scratch, &mutant.test, None, GREEN_MAX, &log)?;
            // On unbroken code, surviving is what the test should do.
            if outcome != Outcome::Survived {
                return Err(format!(
                    "`{}` is not green on unbroken code ({}): mend it first, see {}",
                    mutant.test,
                    outcome.in_words().0,
                    log.display()
                ));
            }
            green.insert(&mutant.test, took);
        }
        Ok(green)
    }

    /// Tries every mutant; the outcomes are in the mutants' order.
    pub(super) fn outcomes(
        &self,
        mutants: &[&Mutant],
        green: &Green<'_>,
        jobs: usize,
    ) -> Result<Vec<(Outcome, Duration)>, String> {
        let next = AtomicUsize::new(0);
        let done = Mutex::new(BTreeMap::new());
        let work = |worker: usize| -> Result<(), String> {
            let scratch = Scratch::open(self.workspace, worker)?;
            loop {
                // Relaxed: the counter alone decides who takes which mutant.
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(mutant) = mutants.get(index) else {
                    return Ok(());
                };
                let outcome = self.outcome(&scratch, mutant, green, index)?;
                println!(
                    "{}: {} in {}",
                    mutant.breaks,
                    outcome.0.in_words().0,
                    seconds(outcome.1)
                );
                done.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(index, outcome);
            }
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs.min(mutants.len()))
                .map(|worker| scope.spawn(move || work(worker)))
                .collect();
            workers.into_iter().try_for_each(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|_| Err("a worker panicked: report it".to_owned()))
            })
        })?;
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(done.into_values().collect())
    }

    fn outcome(
        &self,
        scratch: &Scratch,
        mutant: &Mutant,
        green: &Green<'_>,
        index: usize,
    ) -> Result<(Outcome, Duration), String> {
        let broken = mutant.applied_to(&self.workspace.read(&mutant.file)?)?;
        let usual = green.get(&mutant.test).copied().unwrap_or_default();
        let bound = HANG_MIN.max(usual * HANG_FACTOR);
        let log = scratch.log(&format!("{index:03}.log"));
        scratch.with_file(&mutant.file, &broken, || {
            attempt(scratch, &mutant.test, mutant.says.as_deref(), bound, &log)
        })
    }
}

/// Builds, then runs; the time is the run's alone.
fn attempt(
    scratch: &Scratch,
    test: &TestCommand,
    says: Option<&str>,
    bound: Duration,
    log: &Path,
) -> Result<(Outcome, Duration), String> {
    let output =
        File::create(log).map_err(|error| format!("cannot write {}: {error}", log.display()))?;
    let build = test.build(scratch.tree(), scratch.target());
    let built = build.watched(Output::Log(&output), Some(BUILD_MAX), &mut |_| {})?;
    if built != Ending::Exited(true) {
        return Ok((Outcome::DoesNotCompile(log.to_owned()), Duration::ZERO));
    }
    let started = Instant::now();
    let run = test.run(scratch.tree(), scratch.target());
    let outcome = run_and_judge(&run, says, &output, bound)?;
    Ok((outcome, started.elapsed()))
}

fn run_and_judge(
    run: &Cargo,
    says: Option<&str>,
    output: &File,
    bound: Duration,
) -> Result<Outcome, String> {
    let mut counts = Counts::default();
    let mut failed = Vec::new();
    let mut is_said = says.is_none();
    let ending = run.watched(Output::Log(output), Some(bound), &mut |line| {
        counts += Counts::of_line(line).unwrap_or_default();
        failed.extend(counts::failed_test(line).map(ToOwned::to_owned));
        // The runner shows what a failed test printed, its panic's text among it.
        is_said |= says.is_some_and(|says| line.contains(says));
    })?;
    Ok(match judge(ending, counts, failed) {
        Outcome::Red(tests) if !is_said => Outcome::RedOtherwise(tests),
        outcome => outcome,
    })
}

fn judge(ending: Ending, counts: Counts, failed: Vec<String>) -> Outcome {
    match ending {
        Ending::TimedOut => Outcome::Hung,
        _ if counts.failed > 0 || !failed.is_empty() => Outcome::Red(failed),
        Ending::Exited(false) => Outcome::Died,
        Ending::Exited(true) if counts.ran() == 0 => Outcome::NoTestRan,
        Ending::Exited(true) => Outcome::Survived,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::{Outcome, Scratch, TestCommand, attempt, judge};
    use crate::child::Ending;
    use crate::counts::Counts;
    use crate::workspace::Workspace;

    #[test]
    fn only_a_failure_a_death_or_a_hang_is_a_catch() {
        let red = Outcome::Red(vec!["tokens_rise".to_owned()]);
        let cases = [
            (
                Ending::Exited(false),
                (0, 1),
                vec!["tokens_rise"],
                red,
                true,
            ),
            (Ending::Exited(false), (0, 0), vec![], Outcome::Died, true),
            (Ending::TimedOut, (0, 0), vec![], Outcome::Hung, true),
            (
                Ending::Exited(true),
                (1, 0),
                vec![],
                Outcome::Survived,
                false,
            ),
            (
                Ending::Exited(true),
                (0, 0),
                vec![],
                Outcome::NoTestRan,
                false,
            ),
        ];
        for (ending, (passed, failed), names, expected, caught) in cases {
            let counts = Counts {
                passed,
                failed,
                skipped: 0,
            };
            let names = names.into_iter().map(str::to_owned).collect();
            let outcome = judge(ending, counts, names);
            assert_eq!(outcome, expected);
            assert_eq!(outcome.is_caught(), caught, "{outcome:?}");
            assert_eq!(outcome.advice().is_none(), caught, "{outcome:?}");
        }
    }

    #[test]
    fn each_kind_of_break_is_told_apart_by_a_real_build_and_run() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let manifest = "[package]\nname = \"tiny\"\nedition = \"2024\"\n[workspace]\n";
        let source = "pub fn one() -> u8 { 1 }\n#[test]\nfn it_is_one() { assert_eq!(one(), 1, \"count: one\"); }\n";
        fs::create_dir(directory.path().join("src")).expect("create");
        fs::write(directory.path().join("Cargo.toml"), manifest).expect("write");
        fs::write(directory.path().join("src/lib.rs"), source).expect("write");
        let scratch = Scratch::open(&Workspace::at(directory.path()), 0).expect("a copy");
        let log = scratch.log("test.log");

        let whole = "{ 1 }";
        let one = || vec!["it_is_one".to_owned()];
        let cases = [
            (whole, "it_is_one", None, Outcome::Survived),
            (whole, "no_such_test", None, Outcome::NoTestRan),
            ("{ 2 }", "it_is_one", None, Outcome::Red(one())),
            (
                "{ 2 }",
                "it_is_one",
                Some("count: one"),
                Outcome::Red(one()),
            ),
            (
                "{ panic!(\"elsewhere\") }",
                "it_is_one",
                Some("count: one"),
                Outcome::RedOtherwise(one()),
            ),
            (
                "{ std::process::abort() }",
                "it_is_one",
                None,
                Outcome::Died,
            ),
            (
                "{ loop { std::hint::spin_loop() } }",
                "it_is_one",
                None,
                Outcome::Hung,
            ),
            (
                "{ one }",
                "it_is_one",
                None,
                Outcome::DoesNotCompile(log.clone()),
            ),
        ];
        for (body, name, says, expected) in cases {
            let test = TestCommand::try_from(format!("cargo test -p tiny --lib {name}"));
            let test = test.expect("a command");
            // Only the break that hangs waits for its bound; the others end long before theirs.
            let bound = if expected == Outcome::Hung {
                Duration::from_secs(1)
            } else {
                Duration::from_mins(5)
            };
            let (outcome, _) = scratch
                .with_file("src/lib.rs", &source.replace(whole, body), || {
                    attempt(&scratch, &test, says, bound, &log)
                })
                .expect("an attempt");
            assert_eq!(outcome, expected, "{body}");
        }
    }
}
