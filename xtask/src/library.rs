//! The C library as it is delivered. cargo builds the static one; the shared one is linked from it here, since rustc gives
//! the linker a list of symbols that have no version, beside which there can be none that have.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::child::Cargo;
use crate::symbols;
use crate::tool;
use crate::workspace::Workspace;

/// What the library's own code needs of the system, as `rustc --print native-static-libs` names it; but for `libgcc_s`
/// and `libc`, which compilers add themselves, and each in its own way when all is linked statically.
pub(crate) const SYSTEM_LIBRARIES: [&str; 5] = ["util", "rt", "pthread", "m", "dl"];

/// The built library.
pub(crate) struct Library {
    archive: PathBuf,
    symbols: PathBuf,
    version: String,
}

impl Library {
    /// Builds the library for release.
    pub(crate) fn build(workspace: &Workspace) -> Result<Self, String> {
        let target = workspace.target();
        let cargo = Cargo::new(
            workspace.root(),
            &["build", "--locked", "--release", "--package", "sprag-ffi"],
        );
        if !cargo.foreground()?.success() {
            return Err(format!("`{}` failed", cargo.shown()));
        }
        Ok(Self {
            archive: target.join("release/libsprag_ffi.a"),
            symbols: workspace.path(symbols::MAP),
            version: version(workspace)?,
        })
    }

    /// The static library.
    pub(crate) fn archive(&self) -> &Path {
        &self.archive
    }

    /// The release that this is.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// The name by which programs that were linked to the shared library find it: a new one for each release that old
    /// programs do not run with.
    pub(crate) fn soname(&self) -> String {
        let major = self.version.split('.').next().unwrap_or_default();
        format!("libsprag.so.{major}")
    }

    /// The name of the shared library's file.
    pub(crate) fn file_name(&self) -> String {
        format!("libsprag.so.{}", self.version)
    }

    /// Links the shared library.
    pub(crate) fn link_shared(&self, file: &Path) -> Result<(), String> {
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let mut command = Command::new(compiler);
        command
            .arg("-shared")
            .arg("-o")
            .arg(file)
            .arg(format!("-Wl,-soname,{}", self.soname()))
            .arg(format!("-Wl,--version-script={}", self.symbols.display()))
            .arg("-Wl,--whole-archive")
            .arg(&self.archive)
            .arg("-Wl,--no-whole-archive,--gc-sections,--as-needed,--build-id")
            .args(LINKED)
            .args(SYSTEM_LIBRARIES.map(|library| format!("-l{library}")));
        tool::run(&mut command)
            .map(drop)
            .map_err(|error| format!("cannot link the shared library: {error}"))
    }
}

/// How the shared library is linked: nothing in it is both written and run, nothing is left to be found or relocated at the
/// first call, and it stays loaded, since its threads and fork handlers would else go on in what is no longer there.
const LINKED: [&str; 6] = [
    "-Wl,-z,defs",
    "-Wl,-z,text",
    "-Wl,-z,relro",
    "-Wl,-z,now",
    "-Wl,-z,noexecstack",
    "-Wl,-z,nodelete",
];

fn version(workspace: &Workspace) -> Result<String, String> {
    let manifest = workspace.read_toml("Cargo.toml")?;
    manifest
        .get("workspace")
        .and_then(|workspace| workspace.get("package"))
        .and_then(|package| package.get("version"))
        .and_then(toml::Value::as_str)
        .map(ToOwned::to_owned)
        .ok_or_else(|| "Cargo.toml names no version".to_owned())
}
