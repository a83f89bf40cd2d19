//! `cargo xtask test`: every test there is, from a clean checkout, out of one table of steps.

use clap::Args;

use crate::step::{self, Step};
use crate::workspace::Workspace;

/// Options of `test`.
#[derive(Args)]
pub(crate) struct Options {
    /// Run only the steps whose name contains this.
    #[arg(long, value_name = "PATTERN")]
    only: Option<String>,
}

/// Builds with other flags or features have target directories of their own, so that no step
/// throws away what another has built.
const STEPS: &[Step] = &[
    Step {
        name: "unit and integration tests",
        cargo: &[
            "test",
            "--workspace",
            "--lib",
            "--bins",
            "--tests",
            "--examples",
            "--no-fail-fast",
        ],
        env: &[],
        must_run_tests: true,
        minutes_max: 15,
    },
    Step {
        name: "examples in the docs",
        cargo: &["test", "--workspace", "--doc", "--no-fail-fast"],
        env: &[],
        must_run_tests: false,
        minutes_max: 10,
    },
    Step {
        name: "interleaving models",
        cargo: &[
            "test",
            "--profile",
            "models",
            "-p",
            "sprag-loom-tests",
            "--no-fail-fast",
            "--",
            // Each model says how many executions it took.
            "--nocapture",
        ],
        env: &[
            ("RUSTFLAGS", "--cfg loom"),
            ("LOOM_MAX_PREEMPTIONS", "3"),
            ("CARGO_TARGET_DIR", "target/loom"),
        ],
        must_run_tests: true,
        minutes_max: 10,
    },
    Step {
        name: "torture, step by step",
        cargo: &[
            "test",
            "-p",
            "sprag",
            "--features",
            "steps",
            "--test",
            "torture*",
            "--no-fail-fast",
        ],
        env: &[("CARGO_TARGET_DIR", "target/steps")],
        must_run_tests: true,
        minutes_max: 10,
    },
    Step {
        name: "C library, as installed",
        cargo: &["xtask", "c"],
        env: &[],
        must_run_tests: true,
        minutes_max: 10,
    },
    Step {
        name: "Python package",
        cargo: &["xtask", "python"],
        env: &[],
        must_run_tests: true,
        minutes_max: 15,
    },
    // After the package, whose worker takes part.
    Step {
        name: "one region in every language",
        cargo: &["xtask", "stress"],
        env: &[],
        must_run_tests: true,
        minutes_max: 10,
    },
    Step {
        name: "simulated clusters",
        cargo: &["xtask", "sim"],
        env: &[],
        must_run_tests: true,
        minutes_max: 15,
    },
    Step {
        name: "panics in the C ABI, step by step",
        cargo: &[
            "test",
            "-p",
            "sprag-ffi",
            "--features",
            "steps",
            "--lib",
            "--no-fail-fast",
            "panics",
        ],
        env: &[("CARGO_TARGET_DIR", "target/steps")],
        must_run_tests: true,
        minutes_max: 10,
    },
];

/// Runs the steps and prints the sum as the last line.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, String> {
    let reports = STEPS
        .iter()
        .filter(|step| {
            options
                .only
                .as_deref()
                .is_none_or(|pattern| step.name.contains(pattern))
        })
        .map(|step| step.run(workspace))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(step::conclude(&reports))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::STEPS;

    #[test]
    fn every_step_has_a_name_of_its_own_and_a_bound() {
        let names: BTreeSet<_> = STEPS.iter().map(|step| step.name).collect();
        assert_eq!(names.len(), STEPS.len());
        assert!(STEPS.iter().all(|step| step.minutes_max > 0));
    }

    #[test]
    fn every_step_goes_on_after_its_first_failure() {
        // Chores of our own go on by themselves.
        for step in STEPS.iter().filter(|step| step.cargo[0] != "xtask") {
            assert!(step.cargo.contains(&"--no-fail-fast"), "{}", step.name);
        }
    }

    #[test]
    fn builds_with_other_flags_or_features_have_a_target_directory_of_their_own() {
        for step in STEPS {
            let differs = step.env.iter().any(|(name, _)| *name == "RUSTFLAGS")
                || step.cargo.contains(&"--features");
            let apart = step.env.iter().any(|(name, _)| *name == "CARGO_TARGET_DIR");
            assert_eq!(differs, apart, "{}", step.name);
        }
    }
}
