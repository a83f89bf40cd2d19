//! `cargo xtask python`: builds the Python package as users get it, installs it into an environment of its own below
//! `target/`, and there runs its tests, checks its types, and holds its stubs against what was built. Or measures it
//! beside its peers there, for `cargo xtask compare`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;

use crate::workspace::Workspace;

/// Options of `python`.
#[derive(Args)]
pub(crate) struct Options {
    /// Arguments to pytest, such as `-k NAME`.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGS"
    )]
    args: Vec<String>,
}

const REQUIREMENTS: &str = "python/requirements-test.txt";
const PEERS: &str = "python/requirements-bench.txt";
const CONFIG: &str = "python/pyproject.toml";
/// What is checked for types beside the package itself.
const CHECKED: [&str; 2] = ["python/tests", "python/examples"];

const MISSING: &str = "Python 3.10 or later with its venv module is missing: install it (on Debian and Ubuntu \
                       `apt-get install python3 python3-venv`), or name one in $PYTHON, then run this again";

/// Runs everything; whether all held. What comes after a failed check runs all the same.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, String> {
    let environment = Environment::with_package(workspace)?;
    let mut pytest = vec!["--config-file", CONFIG, "python/tests"];
    pytest.extend(options.args.iter().map(String::as_str));
    let mut holds = environment.check("pytest", &pytest)?;
    let mut mypy = vec!["--config-file", CONFIG];
    mypy.extend(CHECKED);
    holds &= environment.check("mypy", &mypy)?;
    holds &= environment.check("mypy", &["--config-file", CONFIG, "-p", "sprag"])?;
    holds &= environment.check("stubtest", &["--mypy-config-file", CONFIG, "sprag"])?;
    Ok(holds)
}

/// An interpreter that has the package, and the peers that it is compared with.
pub(crate) fn for_benches(workspace: &Workspace) -> Result<String, String> {
    let environment = Environment::with_package(workspace)?;
    environment.pip(&["-r".as_ref(), PEERS.as_ref()])?;
    Ok(environment.venv().join("bin/python").display().to_string())
}

/// A Python of our own, with what the tests need.
struct Environment {
    root: PathBuf,
    /// Below `target/`.
    directory: PathBuf,
}

impl Environment {
    /// The environment, with the package as it is now.
    fn with_package(workspace: &Workspace) -> Result<Self, String> {
        let environment = Self::prepare(workspace)?;
        environment.install_package()?;
        Ok(environment)
    }

    /// The environment, made or brought up to date if need be.
    fn prepare(workspace: &Workspace) -> Result<Self, String> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
            || workspace.path("target"),
            |path| workspace.root().join(path),
        );
        let environment = Self {
            root: workspace.root().to_owned(),
            directory: target.join("python"),
        };
        let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
        let version = version_of(&python).ok_or(MISSING)?;
        let wanted = format!("{version}\n{}", workspace.read(REQUIREMENTS)?);
        let stamp = environment.directory.join("stamp");
        if fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) {
            return Ok(environment);
        }
        // One of another Python, or one whose making was interrupted, is no use.
        let mut venv = Command::new(&python);
        venv.args(["-m", "venv", "--clear"]).arg(environment.venv());
        environment.succeed(&mut venv)?;
        environment.pip(&["-r".as_ref(), REQUIREMENTS.as_ref()])?;
        fs::write(&stamp, wanted)
            .map_err(|error| format!("cannot write {}: {error}", stamp.display()))?;
        Ok(environment)
    }

    fn venv(&self) -> PathBuf {
        self.directory.join("venv")
    }

    /// A program of the environment's, to run in the workspace's root: where no source of the package is found
    /// instead of what was installed.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.venv().join("bin").join(program));
        command
            .current_dir(&self.root)
            .env("VIRTUAL_ENV", self.venv())
            .env_remove("PYTHONPATH")
            .env("MYPY_CACHE_DIR", self.directory.join("mypy"))
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    fn pip(&self, args: &[&OsStr]) -> Result<(), String> {
        let mut pip = self.command("python");
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]);
        pip.args(args);
        self.succeed(&mut pip)
    }

    /// Builds the package and installs it, in place of any that is there.
    fn install_package(&self) -> Result<(), String> {
        let wheel = self.build_wheel()?;
        self.pip(&[
            "--no-deps".as_ref(),
            "--force-reinstall".as_ref(),
            wheel.as_os_str(),
        ])
    }

    /// Builds the wheel, and nothing but the one.
    fn build_wheel(&self) -> Result<PathBuf, String> {
        let wheels = self.directory.join("wheels");
        if wheels.exists() {
            fs::remove_dir_all(&wheels)
                .map_err(|error| format!("cannot clear {}: {error}", wheels.display()))?;
        }
        let mut maturin = self.command("maturin");
        maturin.args([
            "build",
            "--release",
            "--locked",
            "--quiet",
            "-m",
            "python/Cargo.toml",
        ]);
        maturin
            .arg("--interpreter")
            .arg(self.venv().join("bin/python"));
        maturin.arg("--out").arg(&wheels);
        self.succeed(&mut maturin)?;
        only_file(&wheels)
    }

    /// Runs a check; whether it holds.
    fn check(&self, program: &str, args: &[&str]) -> Result<bool, String> {
        let mut command = self.command(program);
        command.args(args);
        println!("\n--> {program} {}", args.join(" "));
        status(&mut command)
    }

    fn succeed(&self, command: &mut Command) -> Result<(), String> {
        command.current_dir(&self.root);
        if status(command)? {
            Ok(())
        } else {
            Err(format!("failed: {command:?}"))
        }
    }
}

/// Which Python it is; `None` if it is too old, or has no venv.
fn version_of(python: &OsStr) -> Option<String> {
    let ask = "import ensurepip, sys, venv; assert sys.version_info >= (3, 10); print(sys.version, sys.executable)";
    let output = Command::new(python)
        .args(["-c", ask])
        .stdin(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

fn status(command: &mut Command) -> Result<bool, String> {
    let status = command.stdin(Stdio::null()).status();
    status
        .map(|status| status.success())
        .map_err(|error| format!("cannot run {command:?}: {error}"))
}

fn only_file(directory: &Path) -> Result<PathBuf, String> {
    let files = fs::read_dir(directory)
        .map_err(|error| format!("cannot read {}: {error}", directory.display()))?;
    let files: Vec<PathBuf> = files.flatten().map(|entry| entry.path()).collect();
    match <[PathBuf; 1]>::try_from(files) {
        Ok([file]) => Ok(file),
        Err(files) => Err(format!("{} files in {}", files.len(), directory.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::{only_file, version_of};
    use std::fs;

    #[test]
    fn what_is_no_python_has_no_version() {
        assert_eq!(version_of("/nowhere/python".as_ref()), None);
        assert_eq!(version_of("false".as_ref()), None);
    }

    #[test]
    fn only_one_wheel_is_a_wheel() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        assert!(only_file(directory.path()).is_err());
        let wheel = directory.path().join("a.whl");
        fs::write(&wheel, "").expect("write");
        assert_eq!(only_file(directory.path()), Ok(wheel));
        fs::write(directory.path().join("b.whl"), "").expect("write");
        assert!(only_file(directory.path()).is_err());
    }
}
