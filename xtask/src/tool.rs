//! Tools that a chore runs quietly: what one printed is shown only if it failed.

use std::process::{Command, Stdio};

/// Runs to the end and returns what was printed on standard output; or the command line and all that was printed, if it
/// fails.
pub(crate) fn run(command: &mut Command) -> Result<String, String> {
    let shown = shown(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run `{shown}`: {error}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("`{shown}`: {}\n{stdout}{stderr}", output.status))
}

/// Whether there is a program of this name that runs.
pub(crate) fn is_there(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{is_there, run};

    #[test]
    fn what_a_tool_printed_is_returned_or_told_with_its_command() {
        let told = run(Command::new("sh").args(["-c", "echo yes"]));
        assert_eq!(told.as_deref(), Ok("yes\n"));
        let told = run(Command::new("sh").args(["-c", "echo no; echo why >&2; exit 3"]));
        let why = told.expect_err("it failed");
        assert!(
            why.starts_with("`sh -c echo no;") && why.ends_with("no\nwhy\n"),
            "{why}"
        );
    }

    #[test]
    fn a_program_that_is_not_there_is_known() {
        assert!(is_there("sh") || is_there("cargo"));
        assert!(!is_there("no-program-of-this-name"));
    }
}
