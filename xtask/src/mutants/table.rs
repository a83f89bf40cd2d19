//! The table of mutants: what it may say, and whether it still fits the sources.

use std::path::Path;

use serde::Deserialize;

use super::properties;
use super::test_command::TestCommand;
use crate::workspace::Workspace;

/// Where the tables are, one file for each noun.
pub(super) const DIRECTORY: &str = "xtask/mutants";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    mutant: Vec<Mutant>,
}

/// One break of one line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mutant {
    /// The file that it stands in, from the workspace's root.
    #[serde(skip)]
    pub(super) table: String,
    /// The number of the property that the break violates.
    pub(super) property: u8,
    /// What is wrong with the broken code, in a few words.
    pub(super) breaks: String,
    /// The file, from the workspace's root.
    pub(super) file: String,
    /// An earlier line that occurs once, when `original` itself occurs more than once: the first
    /// `original` after it is meant.
    after: Option<String>,
    /// The line to break, without its indentation.
    original: String,
    /// What it becomes.
    mutated: String,
    /// The command whose test must go red.
    pub(super) test: TestCommand,
    /// What the failing assertion's text must contain, for a test that could fail of many things.
    pub(super) says: Option<String>,
}

/// Reads the tables.
pub(super) fn read(workspace: &Workspace) -> Result<Vec<Mutant>, String> {
    let is_table = |file: &String| {
        let path = Path::new(file);
        path.parent() == Some(Path::new(DIRECTORY)) && path.extension() == Some("toml".as_ref())
    };
    let mut mutants = Vec::new();
    for file in workspace.files().into_iter().filter(is_table) {
        mutants.extend(parse(&file, &workspace.read(&file)?)?);
    }
    Ok(mutants)
}

fn parse(file: &str, text: &str) -> Result<Vec<Mutant>, String> {
    let table = toml::from_str::<Table>(text).map_err(|error| format!("{file}: {error}"))?;
    let of_file = |mutant| Mutant {
        table: file.to_owned(),
        ..mutant
    };
    Ok(table.mutant.into_iter().map(of_file).collect())
}

impl Mutant {
    /// What is wrong with this line of the table, in words that say what to do.
    pub(super) fn faults(&self, workspace: &Workspace) -> Vec<String> {
        let mut faults = Vec::new();
        if properties::name(self.property).is_none() {
            faults.push(format!("no property has the number {}", self.property));
        }
        if self
            .says
            .as_ref()
            .is_some_and(|says| says.trim().is_empty())
        {
            faults.push("`says` is empty: leave it out, or copy the assertion's text".to_owned());
        }
        if self.original.trim() == self.mutated.trim() {
            faults.push("the mutated line is the original: break it".to_owned());
        }
        match workspace.read(&self.file) {
            Ok(source) => faults.extend(self.applied_to(&source).err()),
            Err(error) => faults.push(format!("stale: {error}")),
        }
        faults
    }

    /// The source with the line broken. Indentation is the source's own, so that moving a line into
    /// a block doesn't make its mutant stale.
    pub(super) fn applied_to(&self, source: &str) -> Result<String, String> {
        for (name, text) in [("original", &self.original), ("mutated", &self.mutated)] {
            if text.trim().lines().count() > 1 {
                return Err(format!("`{name}` has several lines: break one line"));
            }
        }
        let start = match &self.after {
            Some(anchor) => once(source, anchor, "after")? + 1,
            None => 0,
        };
        let original = self.original.trim();
        let target = if self.after.is_some() {
            source
                .lines()
                .enumerate()
                .skip(start)
                .find(|(_, line)| line.trim() == original)
                .map(|(index, _)| index)
                .ok_or("stale: `original` does not occur after `after`")?
        } else {
            once(source, original, "original")?
        };
        let mut broken = String::with_capacity(source.len() + self.mutated.len());
        for (index, line) in source.split_inclusive('\n').enumerate() {
            if index == target {
                let indentation = line.len() - line.trim_start().len();
                broken.push_str(&line[..indentation]);
                broken.push_str(self.mutated.trim());
                broken.push('\n');
            } else {
                broken.push_str(line);
            }
        }
        Ok(broken)
    }

    /// Whether a pattern of the command line means this mutant.
    pub(super) fn fits(&self, pattern: &str) -> bool {
        if let Ok(number) = pattern.parse::<u8>() {
            return number == self.property;
        }
        let pattern = pattern.to_lowercase();
        [
            properties::name(self.property).unwrap_or_default(),
            &self.breaks,
            &self.file,
            &self.test.to_string(),
        ]
        .iter()
        .any(|text| text.to_lowercase().contains(&pattern))
    }
}

/// The index of the one line that reads so.
fn once(source: &str, wanted: &str, name: &str) -> Result<usize, String> {
    let wanted = wanted.trim();
    if wanted.is_empty() {
        return Err(format!("`{name}` is empty: copy the line"));
    }
    let mut found = source
        .lines()
        .enumerate()
        .filter(|(_, line)| line.trim() == wanted)
        .map(|(index, _)| index);
    match (found.next(), found.count()) {
        (Some(index), 0) => Ok(index),
        (None, _) => Err(format!(
            "stale: `{name}` does not occur: copy the line anew"
        )),
        (Some(_), more) => Err(format!(
            "`{name}` occurs {} times: name an earlier line that occurs once as `after`",
            more + 1
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{Mutant, parse};

    const SOURCE: &str = "fn a() {\n    step();\n    done();\n}\n\nfn b() {\n    step();\n}\n";

    fn mutant(extra: &str) -> Mutant {
        let text = format!(
            "[[mutant]]\nproperty = 2\nbreaks = \"steps twice\"\nfile = \"core/src/a.rs\"\n\
             mutated = \"step(); step();\"\ntest = \"cargo test -p sprag-core --lib steps_once\"\n{extra}"
        );
        parse("t", &text).expect("a table").remove(0)
    }

    #[test]
    fn the_one_line_is_broken_and_keeps_its_indentation() {
        let broken = mutant("original = 'done();'").applied_to(SOURCE);
        assert_eq!(broken, Ok(SOURCE.replace("done();", "step(); step();")));
    }

    #[test]
    fn an_anchor_chooses_among_equal_lines() {
        let broken = mutant("after = 'fn b() {'\noriginal = 'step();'").applied_to(SOURCE);
        let expected = SOURCE.replace("fn b() {\n    step();", "fn b() {\n    step(); step();");
        assert_eq!(broken, Ok(expected));
    }

    #[test]
    fn a_line_that_is_gone_ambiguous_or_longer_than_a_line_is_an_error() {
        let cases = [
            ("original = 'gone();'", "stale"),
            ("original = 'step();'", "occurs 2 times"),
            ("original = 'done'", "stale"),
            ("original = ' '", "empty"),
            ("original = '''a\nb'''", "several lines"),
            ("after = 'gone'\noriginal = 'step();'", "stale"),
            ("after = 'step();'\noriginal = 'done();'", "occurs 2 times"),
            ("after = 'done();'\noriginal = 'done();'", "stale"),
        ];
        for (extra, expected) in cases {
            let error = mutant(extra).applied_to(SOURCE).expect_err(extra);
            assert!(error.contains(expected), "{extra}: {error}");
        }
    }

    #[test]
    fn a_misspelt_or_missing_field_is_an_error_that_names_it() {
        let whole = "[[mutant]]\nproperty = 1\nbreaks = 'b'\nfile = 'f'\noriginal = 'o'\n\
                     mutated = 'm'\ntest = 'cargo test -p a --lib t'\n";
        assert_eq!(parse("t", whole).map(|mutants| mutants.len()), Ok(1));
        assert_eq!(parse("t", "").map(|mutants| mutants.len()), Ok(0));
        let misspelt = parse("t", &format!("{whole}mutatde = 'x'\n")).expect_err("unknown field");
        assert!(misspelt.contains("mutatde"), "{misspelt}");
        let missing = parse("t", &whole.replace("file = 'f'\n", "")).expect_err("missing field");
        assert!(missing.contains("file"), "{missing}");
    }

    #[test]
    fn a_pattern_is_a_property_number_or_part_of_any_text() {
        let mutant = mutant("original = 'done();'");
        for pattern in ["2", "tokens", "Twice", "src/a.rs", "steps_once"] {
            assert!(mutant.fits(pattern), "{pattern}");
        }
        for pattern in ["1", "12", "exclusion"] {
            assert!(!mutant.fits(pattern), "{pattern}");
        }
    }
}
