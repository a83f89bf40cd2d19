//! The house rules that no linter knows, as code: one file per rule. A rule looks at text and
//! says where it is broken and what to do; it never writes.

mod decisions;
mod dependencies;
mod length;
mod readme;
mod rust_text;
mod sleeps;
mod unsafe_notes;
mod words;

use std::fmt;

use crate::mutants;
use crate::workspace::Workspace;

/// A place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    file: String,
    /// The line, from 1; `None` when the file as a whole is meant.
    line: Option<usize>,
    what: String,
}

impl Violation {
    /// A violation at a line, from 1.
    pub(crate) fn at(file: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: Some(line),
            what: what.into(),
        }
    }

    /// A violation of a whole file.
    pub(crate) fn of(file: &str, what: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            what: what.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(formatter, "{}:{line}: {}", self.file, self.what),
            None => write!(formatter, "{}: {}", self.file, self.what),
        }
    }
}

/// Every violation in the tree, by file.
pub(crate) fn violations(workspace: &Workspace) -> Result<Vec<Violation>, String> {
    let mut violations = Vec::new();
    for file in workspace.files() {
        // What is not text has no lines to judge.
        let Ok(text) = std::fs::read_to_string(workspace.path(&file)) else {
            continue;
        };
        violations.extend(length::check(&file, &text));
        violations.extend(words::check(&file, &text));
        if is_rust(&file) {
            let source = rust_text::RustText::of(&text);
            violations.extend(unsafe_notes::check(&file, &source));
            violations.extend(sleeps::check(&file, &source));
        }
    }
    violations.extend(decisions::check(workspace)?);
    violations.extend(dependencies::check(workspace)?);
    violations.extend(readme::check(workspace)?);
    violations.extend(mutants::check(workspace)?);
    Ok(violations)
}

/// Whether a file is Rust source.
pub(crate) fn is_rust(file: &str) -> bool {
    std::path::Path::new(file)
        .extension()
        .is_some_and(|extension| extension == "rs")
}

#[cfg(test)]
mod tests {
    use super::Violation;

    #[test]
    fn a_violation_says_where_in_the_form_that_editors_open() {
        assert_eq!(Violation::at("a.rs", 7, "no").to_string(), "a.rs:7: no");
        assert_eq!(Violation::of("a.rs", "no").to_string(), "a.rs: no");
    }
}
