//! The quick starts of the README, as they are printed: what a reader types, in a home where Sprag is installed.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::Place;
use crate::tally::Tally;
use crate::tool;

/// A quick start: its heading, the language of its program, and the file that its commands expect.
const QUICK_STARTS: [(&str, &str, &str); 2] =
    [("## In C", "c", "app.c"), ("## In C++", "cpp", "app.cpp")];

/// What stands for itself: it has been done.
const INSTALLING: &str = "cargo xtask install";

/// Runs the tests.
pub(super) fn run(place: &Place, tally: &mut Tally) {
    if !tool::is_there("pkg-config") {
        tally.skip("quick starts of the README", "pkg-config is missing");
        return;
    }
    for (heading, language, file) in QUICK_STARTS {
        tally.check(&format!("the README's quick start in {file}"), || {
            let readme = place.workspace.read("README.md")?;
            let section = section(&readme, heading)
                .ok_or_else(|| format!("README.md has no section `{heading}`"))?;
            quick_start(place, section, language, file)
        });
    }
}

fn quick_start(place: &Place, section: &str, language: &str, file: &str) -> Result<(), String> {
    let home = place.directory(&format!("home-{language}"))?;
    let failed = |error: std::io::Error| format!("cannot make ready {}: {error}", home.display());
    symlink(&place.prefix, home.join(".local")).map_err(failed)?;
    let program = blocks(section, language).concat();
    fs::write(home.join(file), program).map_err(failed)?;
    let (commands, expected) = session(&blocks(section, "console").concat());
    let mut shell = Command::new("sh");
    shell
        .args(["-e", "-c", &commands])
        .current_dir(&home)
        .env("HOME", &home);
    let printed = tool::run(&mut shell)?;
    if printed == expected {
        Ok(())
    } else {
        Err(format!("it printed\n{printed}instead of\n{expected}"))
    }
}

/// What stands under a heading, up to the next.
fn section<'a>(page: &'a str, heading: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!("\n{heading}\n"))?;
    Some(rest.split("\n## ").next().unwrap_or(rest))
}

/// The code blocks of a language.
fn blocks<'a>(section: &'a str, language: &str) -> Vec<&'a str> {
    section
        .split(&format!("\n```{language}\n"))
        .skip(1)
        .filter_map(|rest| rest.split("```\n").next())
        .collect()
}

/// The commands of a session, and what they print.
fn session(text: &str) -> (String, String) {
    let (mut commands, mut printed) = (String::new(), String::new());
    for line in text.lines() {
        match line.strip_prefix("$ ") {
            Some(command) if command.starts_with(INSTALLING) => {}
            Some(command) => commands.extend([command, "\n"]),
            None => printed.extend([line, "\n"]),
        }
    }
    (commands, printed)
}

#[cfg(test)]
mod tests {
    use super::{blocks, section, session};

    const PAGE: &str = "# A\n\n## In C\n\n```c\nint x;\n```\n\n```console\n$ cargo xtask install --prefix x\n$ cc\nyes\n```\n\
                        \n## In D\n\n```c\nint y;\n```\n";

    #[test]
    fn a_section_ends_where_the_next_begins() {
        let section = section(PAGE, "## In C").expect("a section");
        assert_eq!(blocks(section, "c"), ["int x;\n"]);
        assert_eq!(blocks(section, "console").len(), 1);
    }

    #[test]
    fn a_session_is_commands_and_what_they_print() {
        let told = session("$ cargo xtask install --prefix x\n$ cc\nyes\n");
        assert_eq!(told, ("cc\n".to_owned(), "yes\n".to_owned()));
    }
}
