//! `cargo xtask c`: the C library as its users get it. It is installed into a directory that is then moved, and from there
//! programs are built and run in each way that there is.

mod compilers;
mod consumers;
mod headers;
mod library;
mod programs;
mod readme;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::install;
use crate::library::Library;
use crate::tally::Tally;
use crate::workspace::Workspace;
use compilers::Compiler;

/// Options of `c`.
#[derive(Args)]
pub(crate) struct Options {
    /// Run the examples and the test programs only, watched by the address and undefined-behaviour sanitizers.
    #[arg(long)]
    sanitized: bool,
}

/// Runs the tests.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, String> {
    let compilers = compilers::find()?;
    let library = Library::build(workspace)?;
    let place = Place::make(workspace, &library)?;
    if options.sanitized {
        return programs::run_sanitized(&place, &compilers);
    }
    let mut tally = Tally::default();
    headers::run(&place, &compilers, &mut tally);
    library::run(&place, &library, &mut tally);
    consumers::run(&place, &compilers, &mut tally)?;
    let elsewhere = place.with_libraries_elsewhere(&library)?;
    consumers::run_elsewhere(&elsewhere, &compilers, &mut tally)?;
    readme::run(&place, &mut tally);
    programs::run(&place, &compilers, &mut tally)?;
    Ok(tally.conclude())
}

/// Where the tests work.
struct Place {
    workspace: Workspace,
    /// Where Sprag is installed by now.
    prefix: PathBuf,
    /// Its directory of libraries, below that.
    libdir: &'static str,
    /// What is built goes here.
    built: PathBuf,
    /// Regions of the programs.
    regions: PathBuf,
}

impl Place {
    /// Clears the place of an earlier run, installs there, and moves what was installed.
    fn make(workspace: &Workspace, library: &Library) -> Result<Self, String> {
        let root = workspace.target().join("c");
        let failed =
            |error: std::io::Error| format!("cannot make ready {}: {error}", root.display());
        if root.exists() {
            fs::remove_dir_all(&root).map_err(failed)?;
        }
        let place = Self {
            workspace: workspace.clone(),
            prefix: root.join("moved"),
            libdir: "lib",
            built: root.join("built"),
            regions: root.join("regions"),
        };
        fs::create_dir_all(&place.built).map_err(failed)?;
        fs::create_dir_all(&place.regions).map_err(failed)?;
        let first = root.join("installed");
        install::lay_down(workspace, library, &first, Path::new(place.libdir))?;
        fs::rename(&first, &place.prefix).map_err(failed)?;
        Ok(place)
    }

    /// The same with another installation, as systems have it that keep libraries by their kind of machine.
    fn with_libraries_elsewhere(&self, library: &Library) -> Result<Self, String> {
        let elsewhere = Self {
            workspace: self.workspace.clone(),
            prefix: self.prefix.with_file_name("elsewhere"),
            libdir: "lib/some-machine",
            built: self.built.join("elsewhere"),
            regions: self.regions.clone(),
        };
        let libdir = Path::new(elsewhere.libdir);
        install::lay_down(&self.workspace, library, &elsewhere.prefix, libdir)?;
        Ok(elsewhere)
    }

    fn libraries(&self) -> PathBuf {
        self.prefix.join(self.libdir)
    }

    fn include(&self) -> PathBuf {
        self.prefix.join("include")
    }

    /// A directory of its own for what is built in one way.
    fn directory(&self, name: &str) -> Result<PathBuf, String> {
        let directory = self.built.join(name);
        fs::create_dir_all(&directory)
            .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
        Ok(directory)
    }
}

/// A language that the header is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    C,
    Cpp,
}

impl Language {
    /// How compilers name it.
    fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Cpp => "c++",
        }
    }

    /// The standards that programs may be written to.
    fn standards(self) -> &'static [&'static str] {
        match self {
            Self::C => &["c11", "c17"],
            Self::Cpp => &["c++17", "c++20"],
        }
    }
}
