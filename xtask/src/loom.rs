//! `cargo xtask loom`: runs the interleaving models and tells how many executions each took. A model
//! says so itself, in a line `loom: NAME N executions` on its standard output.

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
        "--release",
        "-p",
        "sprag-loom-tests",
        "--no-fail-fast",
    ];
    args.extend(options.model.as_deref());
    args.extend(["--", "--nocapture", "--test-threads=1"]);
    let command = Cargo::new(workspace.root(), &args).envs(&[
        ("RUSTFLAGS", "--cfg loom"),
        ("LOOM_MAX_PREEMPTIONS", &options.preemptions.to_string()),
        ("CARGO_TARGET_DIR", "target/loom"),
    ]);
    println!("==> {}", command.shown());
    let mut models = Vec::new();
    let mut counts = Counts::default();
    let ending = command.watched(crate::child::Output::Shown, None, &mut |line| {
        models.extend(executions(line));
        counts += Counts::of_line(line).unwrap_or_default();
    })?;
    let result = step::judge(ending, counts, true, None);
    println!("\nExecutions per model:");
    let width = models.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, executions) in &models {
        println!("  {name:<width$}  {executions:>10}");
    }
    if let Outcome::Failed(what) = &result {
        println!("Failed: {what}; run again: {}", command.shown());
    }
    println!("{counts}");
    Ok(result == Outcome::Passed)
}

/// Reads a model's line. Uncaptured output may follow the runner's `test NAME ... ` on one line.
fn executions(line: &str) -> Option<(String, u64)> {
    let (_, report) = line.split_once("loom: ")?;
    let (model, executions) = report
        .trim_end()
        .strip_suffix(" executions")?
        .rsplit_once(' ')?;
    Some((model.to_owned(), executions.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::executions;

    #[test]
    fn a_models_line_gives_its_name_and_executions_wherever_it_starts() {
        let cases = [
            (
                "loom: release_and_steal 1234 executions",
                Some(("release_and_steal", 1234)),
            ),
            (
                "test handoff ... loom: hand off 7 executions",
                Some(("hand off", 7)),
            ),
            ("loom: handoff many executions", None),
            ("loom: 7 executions", None),
            ("bloom is no model", None),
        ];
        for (line, expected) in cases {
            let expected = expected.map(|(name, number): (&str, u64)| (name.to_owned(), number));
            assert_eq!(executions(line), expected, "{line}");
        }
    }
}
