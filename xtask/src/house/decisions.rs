//! Records of decisions are numbered in order, each number once, and their titles begin with it.

use super::Violation;
use crate::workspace::Workspace;

const FOLDER: &str = "docs/decisions/";

/// Checks the tree.
pub(super) fn check(workspace: &Workspace) -> Result<Vec<Violation>, String> {
    let mut records = Vec::new();
    for file in workspace.files() {
        let is_record = file.starts_with(FOLDER) && !file.ends_with("/README.md");
        if is_record {
            let text = workspace.read(&file)?;
            records.push((file, text));
        }
    }
    records.sort();
    Ok(judge(&records))
}

/// What is wrong with records, given by file and text in the order of their names.
fn judge(records: &[(String, String)]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, (file, text)) in (1..).zip(records) {
        let number = format!("{number:04}");
        if !file.starts_with(&format!("{FOLDER}{number}-")) {
            violations.push(Violation::of(
                file,
                format!("must be number {number}: one after the other, and each once"),
            ));
        } else if !text.starts_with(&format!("# {number}: ")) {
            violations.push(Violation::at(
                file,
                1,
                format!("the title must begin with `# {number}: `"),
            ));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::judge;

    #[test]
    fn a_number_is_the_next_one_and_stands_in_the_title() {
        let cases: [(&[(&str, &str)], usize); 4] = [
            (&[("0001-a", "# 0001: A"), ("0002-b", "# 0002: B")], 0),
            (&[("0001-a", "# 0001: A"), ("0001-b", "# 0001: B")], 1),
            (&[("0001-a", "# 0001: A"), ("0003-b", "# 0003: B")], 1),
            (&[("0001-a", "# 1. A")], 1),
        ];
        for (records, expected) in cases {
            let records: Vec<_> = records
                .iter()
                .map(|(file, text)| (format!("docs/decisions/{file}.md"), (*text).to_owned()))
                .collect();
            assert_eq!(judge(&records).len(), expected, "{records:?}");
        }
    }
}
