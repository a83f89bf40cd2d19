//! `cargo xtask fix`: applies what `verify` would complain about and a tool can repair.

use crate::child::Cargo;
use crate::workspace::Workspace;

const COMMANDS: [&[&str]; 2] = [
    // Dirty trees are what one fixes.
    &[
        "clippy",
        "--fix",
        "--allow-dirty",
        "--allow-staged",
        "--workspace",
        "--all-targets",
    ],
    // Last, since lint fixes leave lines as they fall.
    &["fmt", "--all"],
];

/// Runs the repairs, each even if the one before could not finish.
pub(crate) fn run(workspace: &Workspace) -> Result<bool, String> {
    let mut fixed = true;
    for args in COMMANDS {
        let command = Cargo::new(workspace.root(), args);
        println!("==> {}", command.shown());
        fixed &= command.foreground()?.success();
    }
    println!("Now look at the difference, then run `cargo xtask verify`.");
    Ok(fixed)
}
