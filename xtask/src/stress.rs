//! `cargo xtask stress`: drives one region from processes in C, C++, Rust and Python at once, and kills some of them at
//! random. What they do and what must hold is in `ffi/tests/stress/page.h`.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::child::Cargo;
use crate::library::{Library, SYSTEM_LIBRARIES};
use crate::tally::Tally;
use crate::tool;
use crate::workspace::Workspace;

/// Options of `stress`.
#[derive(Args)]
pub(crate) struct Options {
    /// How long the workers work, once each has done everything.
    #[arg(long, default_value_t = 15)]
    seconds: u64,
    /// Which workers are killed, and when.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

const SOURCES: &str = "ffi/tests/stress";

/// Builds the driver and the workers, and runs them.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, String> {
    let library = Library::build(workspace)?;
    let built = workspace.target().join("stress");
    std::fs::create_dir_all(&built)
        .map_err(|error| format!("cannot make {}: {error}", built.display()))?;
    let compile = |compiler: &str, standard: &str, source: &str| {
        let made = built.join(source.replace('.', "-"));
        let source = workspace.path(SOURCES).join(source);
        let include = workspace.path("include");
        compile(compiler, standard, &source, &include, &library, &made).map(|()| made)
    };
    let driver = compile("gcc", "c11", "stress.c")?;
    let workers = [
        Some(compile("gcc", "c11", "worker.c")?.display().to_string()),
        Some(compile("g++", "c++17", "worker.cpp")?.display().to_string()),
        Some(in_rust(workspace)?.display().to_string()),
        in_python(workspace),
    ];
    let mut tally = Tally::default();
    if workers[3].is_none() {
        tally.skip(
            "a worker in Python",
            "its package is not built: run `cargo xtask python` first",
        );
    }
    let mut command = Command::new(driver);
    command
        .args([options.seconds.to_string(), options.seed.to_string()])
        .args(workers.iter().flatten());
    let ending = tool::run(&mut command);
    if let Ok(told) = &ending {
        print!("{told}");
    }
    tally.add("one region in every language", &ending);
    Ok(tally.conclude())
}

fn compile(
    compiler: &str,
    standard: &str,
    source: &Path,
    include: &Path,
    library: &Library,
    made: &Path,
) -> Result<(), String> {
    if !tool::is_there(compiler) {
        return Err(format!(
            "{compiler} is missing: install it, on Debian by `apt-get install g++`"
        ));
    }
    let mut command = Command::new(compiler);
    command
        .arg(format!("-std={standard}"))
        .args([
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-O1",
            "-g",
            "-I",
        ])
        .arg(include)
        .arg("-o")
        .arg(made)
        .arg(source)
        .arg(library.archive())
        .args(SYSTEM_LIBRARIES.map(|library| format!("-l{library}")));
    tool::run(&mut command).map(drop)
}

/// The worker in Rust, as `cargo test` builds it.
fn in_rust(workspace: &Workspace) -> Result<PathBuf, String> {
    let example = ["--package", "sprag-ffi", "--example", "stress_worker"];
    let arguments = [&["build", "--locked"], &example[..]].concat();
    let cargo = Cargo::new(workspace.root(), &arguments);
    if !cargo.foreground()?.success() {
        return Err(format!("`{}` failed", cargo.shown()));
    }
    Ok(workspace.target().join("debug/examples/stress_worker"))
}

/// The worker in Python as a command, if the package is installed where its tests run.
fn in_python(workspace: &Workspace) -> Option<String> {
    // Builds with other flags have a target directory of their own, and no Python.
    let targets = [workspace.target(), workspace.path("target")];
    let mut pythons = targets
        .map(|target| target.join("python/venv/bin/python"))
        .into_iter();
    let python = pythons
        .find(|python| tool::run(Command::new(python).args(["-c", "import sprag"])).is_ok())?;
    let worker = workspace.path(SOURCES).join("worker.py");
    Some(format!("{} {}", python.display(), worker.display()))
}
