//! The rows of the Python package, which its own program measures, in the same way and with the same outcome.

use crate::Options;
use crate::report::Line;
use sprag_benches::Result;
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../python/benches/compare.py");

pub(crate) fn list(python: &Path) -> Result<()> {
    let status = Command::new(python).args([PROGRAM, "--list"]).status()?;
    if status.success() {
        Ok(())
    } else {
        Err("the rows of the Python package cannot be listed".into())
    }
}

pub(crate) fn measure(python: &Path, options: &Options) -> Result<Vec<Line>> {
    let mut command = Command::new(python);
    command.args([PROGRAM, "--json", "--rounds"]);
    command.arg(options.rounds.to_string());
    if options.quick {
        command.arg("--quick");
    }
    for only in &options.only {
        command.args(["--only", only]);
    }
    let output = command.stderr(std::process::Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err("the rows of the Python package cannot be measured".into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
