//! `cargo xtask sim`: runs the cluster simulator's seeds and the scripts of its planted bugs, and compares a debug build's
//! runs with a release build's.

use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::child::Cargo;
use crate::tally::Tally;
use crate::tool;
use crate::workspace::Workspace;

/// Options of `sim`.
#[derive(Args)]
pub(crate) struct Options {
    /// How many seeds to run.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    from: u64,
}

/// A debug build is some ten times slower.
const SEEDS_COMPARED: u64 = 100;

/// Builds the simulator twice and runs it.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, String> {
    let release = build(workspace, true)?;
    let debug = build(workspace, false)?;
    let (seeds, from) = (options.seeds.to_string(), options.from.to_string());
    let compared = SEEDS_COMPARED.min(options.seeds).to_string();
    let mut tally = Tally::default();
    tally.check(&format!("{seeds} seeds from {from} are clean"), || {
        let told = simulate(&release, &["--seeds", &seeds, "--from", &from])?;
        println!("{told}");
        Ok(())
    });
    tally.check("each planted bug makes its script fail", || {
        simulate(&release, &["--regressions"]).map(drop)
    });
    tally.check("debug and release builds run alike", || {
        let arguments = ["--seeds", &compared, "--from", &from];
        let (one, other) = (
            simulate(&debug, &arguments)?,
            simulate(&release, &arguments)?,
        );
        if one == other {
            return Ok(());
        }
        Err(format!("debug:\n{one}\nrelease:\n{other}"))
    });
    Ok(tally.conclude())
}

fn simulate(program: &PathBuf, arguments: &[&str]) -> Result<String, String> {
    tool::run(Command::new(program).args(arguments))
}

fn build(workspace: &Workspace, is_release: bool) -> Result<PathBuf, String> {
    let mut arguments = vec!["build", "--locked", "--package", "sprag-sim"];
    arguments.extend(is_release.then_some("--release"));
    let cargo = Cargo::new(workspace.root(), &arguments);
    if !cargo.foreground()?.success() {
        return Err(format!("`{}` failed", cargo.shown()));
    }
    let profile = if is_release { "release" } else { "debug" };
    Ok(workspace.target().join(profile).join("sprag-sim"))
}
