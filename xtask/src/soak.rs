//! `cargo xtask soak`: the long forms of the torture, churn and fuzz tests, of histories and models, and of the programs
//! in C and C++ under sanitizers, of the stress of one region from every language, and new seeds of simulated clusters,
//! round after round until the time is up. The tests read `SPRAG_SOAK=1` as "take the long form" and may mix
//! `SPRAG_SOAK_ROUND` (1, 2, ...) into their seeds.

use std::time::{Duration, Instant};

use clap::Args;

use crate::child::Cargo;
use crate::step::{self, Outcome};
use crate::workspace::{Member, Workspace};

/// Options of `soak`.
#[derive(Args)]
pub(crate) struct Options {
    /// Start no new round after this many hours; the first always runs.
    #[arg(long, default_value_t = 1.0, value_name = "HOURS", value_parser = hours)]
    hours: f64,
    /// Run only the test targets whose name contains this.
    #[arg(long, value_name = "PATTERN")]
    only: Option<String>,
}

/// The starts of the names of test targets that have a long form.
const PREFIXES: [&str; 10] = [
    "torture",
    "churn",
    "fuzz",
    "linearizable",
    "lock_model",
    "fence_model",
    "counter_",
    "limiter_model",
    "conformance",
    "consensus",
];

/// What is run besides test targets.
const SANITIZED_C: &str = "programs in C and C++, sanitized";
const STRESS: &str = "one region in every language";
/// How long the latter takes in each round, in seconds.
const STRESS_SECONDS: &str = "300";
const CLUSTERS: &str = "simulated clusters";
/// Every round runs so many of them that none before it ran, nor do tests.
const CLUSTER_SEEDS: u64 = 50_000;

/// Runs rounds until the time is up or something failed: what failed is worth more than more rounds.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, String> {
    let only = options.only.as_deref();
    let targets = targets(workspace, only)?;
    let with_c = only.is_none_or(|pattern| SANITIZED_C.contains(pattern));
    let with_stress = only.is_none_or(|pattern| STRESS.contains(pattern));
    let with_clusters = only.is_none_or(|pattern| CLUSTERS.contains(pattern));
    if targets.is_empty() && !with_c && !with_stress && !with_clusters {
        return Err("no test target with a long form fits: loosen --only".to_owned());
    }
    let started = Instant::now();
    let length = Duration::from_secs_f64(options.hours * 3600.0);
    let mut reports = Vec::new();
    for round in 1_u64.. {
        for target in &targets {
            let command = target.command(workspace, round);
            let name = format!("round {round}: {} {}", target.package, target.test);
            reports.push(step::run_tests(&name, &command, None, true)?);
        }
        if with_c {
            let command = long_form(workspace, &["xtask", "c", "--sanitized"], round);
            let name = format!("round {round}: {SANITIZED_C}");
            // Where no compiler has sanitizers, no test is run.
            reports.push(step::run_tests(&name, &command, None, false)?);
        }
        if with_stress {
            let seed = round.to_string();
            let args = [
                "xtask",
                "stress",
                "--seconds",
                STRESS_SECONDS,
                "--seed",
                &seed,
            ];
            let command = long_form(workspace, &args, round);
            let name = format!("round {round}: {STRESS}");
            reports.push(step::run_tests(&name, &command, None, true)?);
        }
        if with_clusters {
            let (seeds, from) = (CLUSTER_SEEDS, CLUSTER_SEEDS * round);
            let (seeds, from) = (seeds.to_string(), from.to_string());
            let args = ["xtask", "sim", "--seeds", &seeds, "--from", &from];
            let command = long_form(workspace, &args, round);
            let name = format!("round {round}: {CLUSTERS}");
            reports.push(step::run_tests(&name, &command, None, true)?);
        }
        let failed = reports
            .iter()
            .any(|report| matches!(report.result, Outcome::Failed(_)));
        if failed || started.elapsed() >= length {
            break;
        }
    }
    Ok(step::conclude(&reports))
}

fn hours(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(hours) if (0.0..=1000.0).contains(&hours) => Ok(hours),
        _ => Err("hours are a number from 0 to 1000".to_owned()),
    }
}

struct Target {
    package: String,
    test: String,
    with_steps: bool,
}

impl Target {
    fn command(&self, workspace: &Workspace, round: u64) -> Cargo {
        let mut args = vec![
            "test",
            "--release",
            "-p",
            &self.package,
            "--test",
            &self.test,
        ];
        if self.with_steps {
            args.extend(["--features", "steps"]);
        }
        args.push("--no-fail-fast");
        long_form(workspace, &args, round)
    }
}

fn long_form(workspace: &Workspace, args: &[&str], round: u64) -> Cargo {
    Cargo::new(workspace.root(), args).envs(&[
        ("SPRAG_SOAK", "1"),
        ("SPRAG_SOAK_ROUND", &round.to_string()),
        ("CARGO_TARGET_DIR", "target/soak"),
        // What only a debug build says of a sum is said here too.
        ("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true"),
        ("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true"),
    ])
}

fn targets(workspace: &Workspace, only: Option<&str>) -> Result<Vec<Target>, String> {
    let mut targets = Vec::new();
    for member in workspace.members()? {
        for prefix in PREFIXES {
            for test in workspace.test_targets(&member.directory, prefix) {
                if only.is_none_or(|pattern| test.contains(pattern)) {
                    targets.push(Target {
                        package: member.package.clone(),
                        test,
                        with_steps: prefix == "torture" && has_steps(&member),
                    });
                }
            }
        }
    }
    Ok(targets)
}

fn has_steps(member: &Member) -> bool {
    member
        .manifest
        .get("features")
        .is_some_and(|features| features.get("steps").is_some())
}

#[cfg(test)]
mod tests {
    use super::hours;

    #[test]
    fn hours_are_bounded_and_never_negative_or_nothing() {
        assert_eq!(hours("0.5"), Ok(0.5));
        for text in ["-1", "NaN", "inf", "1e9", "soon"] {
            assert!(hours(text).is_err(), "{text}");
        }
    }
}
