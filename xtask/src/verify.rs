//! `cargo xtask verify`: everything that can be judged without running a test. Writes nothing but
//! build output; `--locked` keeps even the lock file as it is.

use std::time::Instant;

use crate::child::Cargo;
use crate::header;
use crate::house;
use crate::step::seconds;
use crate::symbols;
use crate::workspace::Workspace;

struct Check {
    name: &'static str,
    cargo: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
}

const CHECKS: &[Check] = &[
    Check {
        name: "format",
        cargo: &["fmt", "--all", "--check"],
        env: &[],
    },
    Check {
        name: "lints",
        cargo: &[
            "clippy",
            "--locked",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
        env: &[],
    },
    Check {
        name: "lints with the step hooks",
        cargo: &[
            "clippy",
            "--locked",
            "--workspace",
            "--all-targets",
            "--features",
            "sprag-core/steps,sprag/steps",
            "--",
            "-D",
            "warnings",
        ],
        env: &[],
    },
    Check {
        name: "lints of the models",
        cargo: &[
            "clippy",
            "--locked",
            "-p",
            "sprag-loom-tests",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
        env: &[
            ("RUSTFLAGS", "--cfg loom"),
            ("CARGO_TARGET_DIR", "target/loom"),
        ],
    },
    // The command's docs would land on the library's: both are named `sprag`.
    Check {
        name: "docs",
        cargo: &[
            "doc",
            "--locked",
            "--workspace",
            "--exclude",
            "sprag-cli",
            "--no-deps",
        ],
        env: &[("RUSTDOCFLAGS", "-D warnings")],
    },
];

const DENY: Check = Check {
    name: "dependencies",
    cargo: &["deny", "check", "bans", "licenses", "sources"],
    env: &[],
};

/// Runs every check, then says which failed and what to do.
pub(crate) fn run(workspace: &Workspace) -> Result<bool, String> {
    let mut failed = Vec::new();
    for check in CHECKS {
        if !check.holds(workspace)? {
            failed.push(check.name);
        }
    }
    let deny_installed = Cargo::new(workspace.root(), &["deny", "--version"]).succeeds_quietly();
    if !deny_installed {
        println!(
            "\n==> dependencies: skipped, install it with `cargo install --locked cargo-deny`"
        );
    } else if !DENY.holds(workspace)? {
        failed.push(DENY.name);
    }
    println!("\n==> C header and symbols");
    let is_header_right = header::is_up_to_date(workspace)?;
    if !(symbols::match_header(workspace)? && is_header_right) {
        failed.push("C header and symbols");
    }
    println!("\n==> house rules");
    let violations = house::violations(workspace)?;
    for violation in &violations {
        println!("{violation}");
    }
    if !violations.is_empty() {
        failed.push("house rules");
    }
    if failed.is_empty() {
        println!("\nverify: all checks hold");
    } else {
        println!(
            "\nverify: failed: {}; `cargo xtask fix` repairs format and simple lints",
            failed.join(", ")
        );
    }
    Ok(failed.is_empty())
}

impl Check {
    fn holds(&self, workspace: &Workspace) -> Result<bool, String> {
        let command = Cargo::new(workspace.root(), self.cargo).envs(self.env);
        println!("\n==> {}\n    {}", self.name, command.shown());
        let started = Instant::now();
        let holds = command.foreground()?.success();
        let word = if holds { "ok" } else { "FAILED" };
        println!(
            "<== {}: {word} in {}",
            self.name,
            seconds(started.elapsed())
        );
        Ok(holds)
    }
}

#[cfg(test)]
mod tests {
    use super::CHECKS;

    #[test]
    fn no_check_may_write_the_lock_file() {
        for check in CHECKS.iter().filter(|check| check.cargo[0] != "fmt") {
            assert!(check.cargo.contains(&"--locked"), "{}", check.name);
        }
    }
}
