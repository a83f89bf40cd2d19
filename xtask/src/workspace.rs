//! The tree that the chores work on: where it is, which files belong to it, which crates it has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The workspace's root directory.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
}

/// One crate of the workspace.
#[derive(Debug)]
pub(crate) struct Member {
    /// Its directory, relative to the root.
    pub(crate) directory: String,
    /// The package's name.
    pub(crate) package: String,
    /// Its manifest.
    pub(crate) manifest: toml::Table,
}

impl Workspace {
    /// The workspace that this binary belongs to.
    pub(crate) fn find() -> Result<Self, String> {
        let here = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        match here.parent() {
            Some(root) if root.join("Cargo.toml").is_file() => Ok(Self::at(root)),
            _ => Err("cannot find the workspace: run this as `cargo xtask` inside it".to_owned()),
        }
    }

    /// The workspace at a given root.
    pub(crate) fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// The root directory.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A path below the root.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Where cargo puts what it builds.
    pub(crate) fn target(&self) -> PathBuf {
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(
            || self.path("target"),
            |directory| self.root.join(directory),
        )
    }

    /// The text of a file below the root.
    pub(crate) fn read(&self, relative: &str) -> Result<String, String> {
        fs::read_to_string(self.path(relative))
            .map_err(|error| format!("cannot read {relative}: {error}"))
    }

    /// A TOML file below the root.
    pub(crate) fn read_toml(&self, relative: &str) -> Result<toml::Table, String> {
        self.read(relative)?
            .parse()
            .map_err(|error| format!("{relative} is not valid TOML: {error}"))
    }

    /// The crates, in the manifest's order.
    pub(crate) fn members(&self) -> Result<Vec<Member>, String> {
        let manifest = self.read_toml("Cargo.toml")?;
        let directories = manifest
            .get("workspace")
            .and_then(|workspace| workspace.get("members"))
            .and_then(toml::Value::as_array)
            .ok_or("Cargo.toml names no workspace members")?;
        directories
            .iter()
            .filter_map(toml::Value::as_str)
            .map(|directory| {
                let path = format!("{directory}/Cargo.toml");
                let manifest = self.read_toml(&path)?;
                let package = manifest
                    .get("package")
                    .and_then(|package| package.get("name"))
                    .and_then(toml::Value::as_str)
                    .ok_or_else(|| format!("{path} names no package"))?
                    .to_owned();
                Ok(Member {
                    directory: directory.to_owned(),
                    package,
                    manifest,
                })
            })
            .collect()
    }

    /// The names of a crate's integration test targets that start with `prefix`, sorted.
    pub(crate) fn test_targets(&self, directory: &str, prefix: &str) -> Vec<String> {
        let tests = self.path(directory).join("tests");
        let mut targets: Vec<String> = fs::read_dir(tests)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let path = entry.path();
                let is_target = path.extension().is_some_and(|extension| extension == "rs")
                    || path.join("main.rs").is_file();
                let name = path.file_stem()?.to_str()?.to_owned();
                (is_target && name.starts_with(prefix)).then_some(name)
            })
            .collect();
        targets.sort();
        targets
    }

    /// Every file that belongs to the tree, relative to the root, sorted: what git tracks or would
    /// track; without git, everything but build output.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut files = self.files_by_git().unwrap_or_else(|| {
            let mut found = Vec::new();
            walk(&self.root, &mut found);
            found
                .iter()
                .filter_map(|path| Some(path.strip_prefix(&self.root).ok()?.to_str()?.to_owned()))
                .collect()
        });
        // A file that was deleted and not yet committed is still in git's list.
        files.retain(|file| self.path(file).is_file());
        files.sort();
        files.dedup();
        files
    }

    fn files_by_git(&self) -> Option<Vec<String>> {
        let listing = Command::new("git")
            // A clone checked by another user than its owner is no reason to refuse a listing.
            .args(["-c", "safe.directory=*", "ls-files", "-z"])
            .args(["--cached", "--others", "--exclude-standard"])
            .current_dir(&self.root)
            .stderr(Stdio::null())
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        let names = String::from_utf8(listing.stdout).ok()?;
        let files: Vec<String> = names
            .split_terminator('\0')
            .map(ToOwned::to_owned)
            .collect();
        (!files.is_empty()).then_some(files)
    }
}

/// Collects the files under a directory, except build output and git's own.
pub(crate) fn walk(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        // Links are not followed: one to a parent would never end.
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        let is_output = entry.file_name() == "target" || entry.file_name() == ".git";
        if kind.is_dir() && !is_output {
            walk(&path, files);
        } else if kind.is_file() {
            files.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Workspace;

    fn tree(files: &[&str]) -> (tempfile::TempDir, Workspace) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for file in files {
            let path = directory.path().join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("create");
            fs::write(path, "").expect("write");
        }
        let workspace = Workspace::at(directory.path());
        (directory, workspace)
    }

    #[test]
    fn test_targets_are_files_and_directories_with_a_main() {
        let (_kept, workspace) = tree(&[
            "api/tests/torture_locks.rs",
            "api/tests/torture/main.rs",
            "api/tests/torture_data/values.txt",
            "api/tests/locks.rs",
        ]);
        assert_eq!(
            workspace.test_targets("api", "torture"),
            ["torture", "torture_locks"]
        );
        assert!(workspace.test_targets("core", "torture").is_empty());
    }

    #[test]
    fn without_git_the_tree_is_everything_but_build_output() {
        let (_kept, workspace) = tree(&["a/b.rs", "target/debug/x", "c.md"]);
        assert_eq!(workspace.files(), ["a/b.rs", "c.md"]);
    }

    #[test]
    fn this_workspace_has_this_crate() {
        let workspace = Workspace::find().expect("the workspace");
        let members = workspace.members().expect("its members");
        assert!(members.iter().any(|member| member.package == "xtask"));
    }
}
