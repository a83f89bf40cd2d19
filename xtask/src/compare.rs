//! `cargo xtask compare`: the side-by-side comparison with peers, in release mode.

use clap::Args;

use crate::child::Cargo;
use crate::python;
use crate::workspace::Workspace;

/// Options of `compare`.
#[derive(Args)]
pub(crate) struct Options {
    /// Leave out the rows of the Python package, which is built and installed for them otherwise.
    #[arg(long)]
    without_python: bool,
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
    // What the rows of calls through C load.
    let library = ["build", "--release", "-p", "sprag-ffi"];
    if !Cargo::new(workspace.root(), &library)
        .foreground()?
        .success()
    {
        return Ok(false);
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
    let python = if options.without_python {
        None
    } else {
        match python::for_benches(workspace) {
            Ok(python) => Some(python),
            Err(why) => {
                println!("without the rows of the Python package: {why}");
                None
            }
        }
    };
    if let Some(python) = &python {
        args.extend(["--python", python]);
    }
    Ok(Cargo::new(workspace.root(), &args).foreground()?.success())
}
