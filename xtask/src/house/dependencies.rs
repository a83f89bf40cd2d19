//! The workspace table, the crates, what Python's tests install and the page of reasons agree: a version stands in one
//! place, nothing is declared that nobody uses, and each dependency has its line of reason.

use std::collections::BTreeSet;

use super::Violation;
use crate::workspace::{Member, Workspace};

const MANIFEST: &str = "Cargo.toml";
const PAGE: &str = "docs/DEPENDENCIES.md";
const REQUIREMENTS: [&str; 2] = [
    "python/requirements-test.txt",
    "python/requirements-bench.txt",
];

/// Checks the tree.
pub(super) fn check(workspace: &Workspace) -> Result<Vec<Violation>, String> {
    let declared = declared(&workspace.read_toml(MANIFEST)?);
    let mut explained = declared.clone();
    for file in REQUIREMENTS {
        explained.extend(pinned(&workspace.read(file)?));
    }
    let mut violations = compare(&explained, &workspace.read(PAGE)?);
    let mut used = BTreeSet::new();
    for member in workspace.members()? {
        for (name, from_workspace) in dependencies(&member) {
            if !from_workspace {
                let file = format!("{}/Cargo.toml", member.directory);
                let what = format!("`{name}` has a version of its own: take it from the workspace");
                violations.push(Violation::of(&file, what));
            }
            used.insert(name);
        }
    }
    for name in declared.difference(&used) {
        let what = format!("no crate uses `{name}`: take it out of the workspace table");
        violations.push(Violation::of(MANIFEST, what));
    }
    Ok(violations)
}

/// The dependencies in the workspace table, except our own crates.
fn declared(manifest: &toml::Table) -> BTreeSet<String> {
    manifest
        .get("workspace")
        .and_then(|workspace| workspace.get("dependencies"))
        .and_then(toml::Value::as_table)
        .into_iter()
        .flatten()
        .filter(|(_, value)| value.get("path").is_none())
        .map(|(name, _)| name.clone())
        .collect()
}

/// The packages that a file of requirements pins, one a line.
fn pinned(requirements: &str) -> impl Iterator<Item = String> {
    requirements
        .lines()
        .filter_map(|line| Some(line.split_once("==")?.0.to_owned()))
}

/// Holds the page against what is declared. A line of the page is "- `name`: reason".
fn compare(declared: &BTreeSet<String>, page: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut explained = BTreeSet::new();
    for (index, line) in page.lines().enumerate() {
        let Some((name, reason)) = line
            .strip_prefix("- `")
            .and_then(|rest| rest.split_once('`'))
        else {
            continue;
        };
        if reason.trim_start_matches(':').trim().is_empty() {
            let what = format!("`{name}` has no reason: say why it is there");
            violations.push(Violation::at(PAGE, index + 1, what));
        }
        if !declared.contains(name) {
            let what = format!("`{name}` is declared nowhere: take the line out");
            violations.push(Violation::at(PAGE, index + 1, what));
        }
        if !explained.insert(name.to_owned()) {
            let what = format!("`{name}` is explained twice: keep one line");
            violations.push(Violation::at(PAGE, index + 1, what));
        }
    }
    for name in declared.difference(&explained) {
        violations.push(Violation::of(
            PAGE,
            format!("`{name}` is missing: add a line that says why it is there"),
        ));
    }
    violations
}

/// A crate's dependencies of every kind and target, and whether each comes from the workspace.
fn dependencies(member: &Member) -> Vec<(String, bool)> {
    let targets = member
        .manifest
        .get("target")
        .and_then(toml::Value::as_table)
        .into_iter()
        .flatten()
        .filter_map(|(_, target)| target.as_table());
    let mut found = Vec::new();
    for table in targets.chain([&member.manifest]) {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let entries = table
                .get(kind)
                .and_then(toml::Value::as_table)
                .into_iter()
                .flatten();
            for (name, value) in entries {
                let from_workspace = value
                    .get("workspace")
                    .and_then(toml::Value::as_bool)
                    .unwrap_or(false);
                found.push((name.clone(), from_workspace));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{compare, declared, dependencies, pinned};
    use crate::workspace::Member;

    fn table(text: &str) -> toml::Table {
        text.parse().expect("valid TOML")
    }

    #[test]
    fn our_own_crates_need_no_reason() {
        let manifest = table("[workspace.dependencies]\nours = { path = \"a\" }\nlibc = \"0.2\"");
        assert_eq!(
            declared(&manifest).into_iter().collect::<Vec<_>>(),
            ["libc"]
        );
    }

    #[test]
    fn page_and_table_must_name_the_same_dependencies_once_each_with_a_reason() {
        let manifest = table("[workspace.dependencies]\nlibc = \"0.2\"\nloom = \"0.7\"");
        let cases = [
            ("- `libc`: futex\n- `loom`: models\n", 0),
            ("Some `prose`.\n- `libc`: futex\n- `loom`: models\n", 0),
            ("- `libc`: futex\n", 1),
            ("- `libc`: futex\n- `loom`: models\n- `gone`: was used\n", 1),
            ("- `libc`:\n- `loom`: models\n", 1),
            ("- `libc`: futex\n- `libc`: again\n- `loom`: models\n", 1),
        ];
        for (page, expected) in cases {
            assert_eq!(
                compare(&declared(&manifest), page).len(),
                expected,
                "{page}"
            );
        }
    }

    #[test]
    fn what_requirements_pin_is_declared() {
        let requirements = "# Of the tests.\npytest==9.2.0\n\nuvloop==0.23.0; os == \"linux\"\n";
        assert_eq!(
            pinned(requirements).collect::<Vec<_>>(),
            ["pytest", "uvloop"]
        );
    }

    #[test]
    fn dependencies_of_every_kind_and_target_are_seen() {
        let member = Member {
            directory: "a".to_owned(),
            package: "a".to_owned(),
            manifest: table(
                "[dependencies]\na.workspace = true\n[dev-dependencies]\nb = \"1\"\n\
                 [target.'cfg(loom)'.dependencies]\nc.workspace = true",
            ),
        };
        let mut found = dependencies(&member);
        found.sort();
        let expected = [("a", true), ("b", false), ("c", true)];
        assert_eq!(
            found,
            expected.map(|(name, workspace)| (name.to_owned(), workspace))
        );
    }
}
