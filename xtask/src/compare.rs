//! `cargo xtask compare`: the side-by-side comparison with peers, in release mode.

use clap::Args;

use crate::child::Cargo;
use crate::python;
use crate::workspace::Workspace;

/// Options of `compare`.
#[derive(Args)]
pub(crate) struct Options {
    /// Compare the Python package with its peers, in place of the Rust library with its own.
    #[arg(long)]
    python: bool,
    /// Arguments to the comparison; `--help` after `--` lists them.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGS"
    )]
    args: Vec<String>,
}

/// Builds and runs the comparison.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, String> {
    if options.python {
        return python::compare(workspace, &options.args);
    }
    let mut args = vec![
        "run",
        "--release",
        "-p",
        "sprag-benches",
        "--bin",
        "compare",
        "--",
    ];
    args.extend(options.args.iter().map(String::as_str));
    Ok(Cargo::new(workspace.root(), &args).foreground()?.success())
}
