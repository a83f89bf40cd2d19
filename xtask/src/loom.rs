//! `cargo xtask loom`: runs the interleaving models and tells how many executions each took. A model
//! says so itself, in a line `loom: NAME N executions in S s` on its standard output.

use clap::Args;

use crate::child::Cargo;
use crate::counts::Counts;
use crate::step::{self, Outcome};
use crate::workspace::Workspace;

/// Options of `loom`.
#[derive(Args)]
pub(crate) struct Options {
    /// Run only the models whose test's name contains this.
    model: Option<String>,
    /// How often a model may preempt a thread; more finds more and takes much longer.
    #[arg(long, default_value_t = 3, value_name = "N")]
    preemptions: u32,
}

/// Runs the models.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, String> {
    let mut args = vec![
        "test",
        "--profile",
        "models",
        "-p",
        "sprag-loom-tests",
        "--no-fail-fast",
    ];
    args.extend(options.model.as_deref());
    args.extend(["--", "--nocapture"]);
    let command = Cargo::new(workspace.root(), &args).envs(&[
        ("RUSTFLAGS", "--cfg loom"),
        ("LOOM_MAX_PREEMPTIONS", &options.preemptions.to_string()),
        ("CARGO_TARGET_DIR", "target/loom"),
    ]);
    println!("==> {}", command.shown());
    let mut models = Vec::new();
    let mut counts = Counts::default();
    let ending = command.watched(crate::child::Output::Shown, None, &mut |line| {
        models.extend(Model::of_line(line));
        counts += Counts::of_line(line).unwrap_or_default();
    })?;
    let result = step::judge(ending, counts, true, None);
    println!("\nExecutions per model:");
    let width = models
        .iter()
        .map(|model| model.name.len())
        .max()
        .unwrap_or(0);
    for model in &models {
        let Model {
            name,
            executions,
            seconds,
        } = model;
        println!("  {name:<width$}  {executions:>10}  {seconds:>6} s");
    }
    if let Outcome::Failed(what) = &result {
        println!("Failed: {what}; run again: {}", command.shown());
    }
    println!("{counts}");
    Ok(result == Outcome::Passed)
}

/// What a model says of itself.
#[derive(Debug, PartialEq, Eq)]
struct Model {
    name: String,
    executions: u64,
    /// As it says them.
    seconds: String,
}

impl Model {
    /// Reads a model's line. Uncaptured output may follow the runner's `test NAME ... ` on one line.
    fn of_line(line: &str) -> Option<Self> {
        let (_, report) = line.split_once("loom: ")?;
        let (report, seconds) = report
            .trim_end()
            .strip_suffix(" s")?
            .rsplit_once(" executions in ")?;
        let (name, executions) = report.rsplit_once(' ')?;
        Some(Self {
            name: name.to_owned(),
            executions: executions.parse().ok()?,
            seconds: seconds.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Model;

    #[test]
    fn a_models_line_gives_its_name_and_executions_wherever_it_starts() {
        let cases = [
            (
                "loom: release_and_steal 1234 executions in 5.6 s",
                Some(("release_and_steal", 1234, "5.6")),
            ),
            (
                "test handoff ... loom: hand off 7 executions in 0.0 s",
                Some(("hand off", 7, "0.0")),
            ),
            ("loom: handoff many executions in 0.1 s", None),
            ("loom: 7 executions in 0.1 s", None),
            ("loom: handoff 7 executions", None),
            ("bloom is no model", None),
        ];
        for (line, expected) in cases {
            let expected = expected.map(|(name, executions, seconds)| Model {
                name: String::from(name),
                executions,
                seconds: String::from(seconds),
            });
            assert_eq!(Model::of_line(line), expected, "{line}");
        }
    }
}
