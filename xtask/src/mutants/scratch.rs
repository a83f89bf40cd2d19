//! A scratch copy of the tree, where lines are broken. It is kept from run to run and only what
//! differs is written, so that unchanged crates stay built.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace::{self, Workspace};

/// A copy of the tree with a target directory beside it.
pub(super) struct Scratch {
    tree: PathBuf,
    target: PathBuf,
    logs: PathBuf,
}

impl Scratch {
    /// The scratch copy of one worker, brought up to date; what a killed run left broken is whole.
    pub(super) fn open(workspace: &Workspace, worker: usize) -> Result<Self, String> {
        let base = workspace.path(&format!("target/mutants/{worker}"));
        let scratch = Self {
            tree: base.join("tree"),
            target: base.join("target"),
            logs: base.join("logs"),
        };
        let described = |error| format!("cannot copy the tree to {}: {error}", base.display());
        fs::create_dir_all(&scratch.logs).map_err(described)?;
        copy_differing(workspace, &scratch.tree).map_err(described)?;
        Ok(scratch)
    }

    /// Where to run.
    pub(super) fn tree(&self) -> &Path {
        &self.tree
    }

    /// Where to build.
    pub(super) fn target(&self) -> &Path {
        &self.target
    }

    /// The file that takes the output of one run.
    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.logs.join(name)
    }

    /// Runs `work` while a file of the copy reads `text`, and makes the file whole again.
    pub(super) fn with_file<T>(
        &self,
        file: &str,
        text: &str,
        work: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        let path = self.tree.join(file);
        let described = |error| format!("cannot write {}: {error}", path.display());
        let whole = fs::read(&path).map_err(described)?;
        fs::write(&path, text).map_err(described)?;
        let result = work();
        fs::write(&path, whole).map_err(described)?;
        result
    }
}

fn copy_differing(workspace: &Workspace, tree: &Path) -> std::io::Result<()> {
    let files: BTreeSet<String> = workspace.files().into_iter().collect();
    let mut old = Vec::new();
    workspace::walk(tree, &mut old);
    for path in old {
        let belongs = path
            .strip_prefix(tree)
            .ok()
            .and_then(Path::to_str)
            .is_some_and(|relative| files.contains(relative));
        if !belongs {
            fs::remove_file(path)?;
        }
    }
    for file in &files {
        let (from, to) = (workspace.path(file), tree.join(file));
        let text = fs::read(&from)?;
        if fs::read(&to).is_ok_and(|old| old == text) {
            continue;
        }
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::copy(&from, &to)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::SystemTime;

    use super::Scratch;
    use crate::workspace::Workspace;

    #[test]
    fn the_copy_follows_the_tree_and_is_whole_after_a_break() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = directory.path();
        fs::create_dir(root.join("src")).expect("create");
        fs::write(root.join("src/a.rs"), "whole").expect("write");
        fs::write(root.join("gone.rs"), "old").expect("write");
        let workspace = Workspace::at(root);

        let scratch = Scratch::open(&workspace, 0).expect("a copy");
        let copy = scratch.tree().join("src/a.rs");
        let seen = scratch
            .with_file("src/a.rs", "broken", || Ok(fs::read_to_string(&copy)))
            .expect("written")
            .expect("read");
        assert_eq!(seen, "broken");
        assert_eq!(fs::read_to_string(&copy).expect("read"), "whole");

        fs::write(&copy, "left broken by a killed run").expect("write");
        fs::remove_file(root.join("gone.rs")).expect("remove");
        let scratch = Scratch::open(&workspace, 0).expect("a copy");
        assert_eq!(fs::read_to_string(&copy).expect("read"), "whole");
        assert!(!scratch.tree().join("gone.rs").exists());
    }

    #[test]
    fn a_copy_that_is_up_to_date_is_not_written_again() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::write(directory.path().join("a.rs"), "whole").expect("write");
        let workspace = Workspace::at(directory.path());
        let scratch = Scratch::open(&workspace, 0).expect("a copy");
        let copy = fs::File::options()
            .write(true)
            .open(scratch.tree().join("a.rs"))
            .expect("open");
        copy.set_modified(SystemTime::UNIX_EPOCH).expect("set");

        Scratch::open(&workspace, 0).expect("a copy");
        let modified = copy.metadata().and_then(|metadata| metadata.modified());
        assert_eq!(modified.expect("a time"), SystemTime::UNIX_EPOCH);
    }
}
