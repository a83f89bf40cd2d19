//! The README's commands and the ones that the checks of a clean clone run are the same, so that
//! what a reader types is what is known to work.

use super::Violation;
use crate::workspace::Workspace;

const SCRIPT: &str = ".ci/run";
const README: &str = "README.md";

/// What the script runs, in this order and with nothing after it: its last line of output is the
/// count of tests.
const COMMANDS: [&str; 2] = ["cargo xtask verify", "cargo xtask test"];

/// Checks the tree.
pub(super) fn check(workspace: &Workspace) -> Result<Vec<Violation>, String> {
    Ok(compare(&workspace.read(SCRIPT)?, &workspace.read(README)?))
}

fn compare(script: &str, readme: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    let run: Vec<&str> = script
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("cargo xtask"))
        .collect();
    let last = script.trim_end().lines().next_back().map(str::trim);
    if run != COMMANDS || last != Some(COMMANDS[1]) {
        let what = format!(
            "must run `{}` and end with that",
            COMMANDS.join("`, then `")
        );
        violations.push(Violation::of(SCRIPT, what));
    }
    for command in COMMANDS {
        if !shows(readme, command) {
            let what = format!("doesn't show `{command}`, which {SCRIPT} runs");
            violations.push(Violation::of(README, what));
        }
    }
    violations
}

/// Whether a page shows exactly this command: in backticks, or on a line of a code block, after a
/// prompt or before a comment if it likes.
fn shows(page: &str, command: &str) -> bool {
    let mut in_block = false;
    page.lines().any(|line| {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
            return false;
        }
        if !in_block {
            return line.contains(&format!("`{command}`"));
        }
        let line = line.split(" #").next().unwrap_or_default().trim();
        line.strip_prefix("$ ").unwrap_or(line) == command
    })
}

#[cfg(test)]
mod tests {
    use super::compare;

    const README: &str = "`cargo xtask verify`, `cargo xtask test`";
    const SCRIPT: &str = "set -e\n\ncargo xtask verify\ncargo xtask test\n";

    #[test]
    fn the_script_runs_both_commands_in_order_and_ends_there() {
        let cases = [
            (SCRIPT, 0),
            ("cargo xtask test\ncargo xtask verify\n", 1),
            ("cargo xtask verify\ncargo xtask test --only lock\n", 1),
            ("cargo xtask verify\ncargo xtask test\necho done\n", 1),
            ("# cargo xtask verify\ncargo xtask test\n", 1),
        ];
        for (script, expected) in cases {
            assert_eq!(compare(script, README).len(), expected, "{script}");
        }
    }

    #[test]
    fn the_readme_shows_the_commands_as_they_are_run() {
        let cases = [
            (
                "```sh\ncargo xtask verify\n$ cargo xtask test   # all\n```\n",
                0,
            ),
            ("Run `cargo xtask verify` and `cargo xtask test`.\n", 0),
            (
                "```\ncargo xtask verify\ncargo xtask test --only lock\n```\n",
                1,
            ),
            ("cargo xtask verify, cargo xtask test\n", 2),
        ];
        for (readme, expected) in cases {
            assert_eq!(compare(SCRIPT, readme).len(), expected, "{readme}");
        }
    }
}
