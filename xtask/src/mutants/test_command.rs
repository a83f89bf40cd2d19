//! A test command of the table: `[NAME=VALUE ...] cargo test -p CRATE --test TARGET ... TEST`, as one
//! would type it at the workspace's root.

use std::fmt;
use std::path::Path;

use serde::Deserialize;

use crate::child::Cargo;

/// A command that names one crate, one target and the test.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(try_from = "String")]
pub(super) struct TestCommand {
    typed: String,
    env: Vec<(String, String)>,
    args: Vec<String>,
}

/// Options of `cargo test` whose next word is their value.
const WITH_VALUE: [&str; 9] = [
    "-p",
    "--package",
    "--test",
    "--bin",
    "--example",
    "-F",
    "--features",
    "--profile",
    "-j",
];

impl TryFrom<String> for TestCommand {
    type Error = String;

    fn try_from(typed: String) -> Result<Self, String> {
        let mut words = words(&typed)?.into_iter().peekable();
        let mut env = Vec::new();
        while let Some((name, value)) = words.peek().and_then(|word| word.split_once('=')) {
            env.push((name.to_owned(), value.to_owned()));
            words.next();
        }
        if (words.next().as_deref(), words.next().as_deref()) != (Some("cargo"), Some("test")) {
            return Err(format!("`{typed}` is no `cargo test` command"));
        }
        let command = Self {
            typed,
            env,
            args: words.collect(),
        };
        let typed = &command.typed;
        let has = |options: &[&str]| {
            command
                .args
                .iter()
                .any(|arg| options.contains(&arg.as_str()))
        };
        if !has(&["-p", "--package"]) {
            return Err(format!("`{typed}` names no crate: add `-p CRATE`"));
        }
        // Without a target, doc tests run too, and those are built only when they run: what does
        // not compile would look like a test that went red.
        if !has(&["--test", "--lib", "--bin", "--bins"]) {
            return Err(format!(
                "`{typed}` names no target: add `--test TARGET` or `--lib`"
            ));
        }
        if command.filter().is_none() {
            return Err(format!("`{typed}` names no test: add its name"));
        }
        Ok(command)
    }
}

impl TestCommand {
    /// The command in a directory, with a target directory.
    pub(super) fn run(&self, directory: &Path, target: &Path) -> Cargo {
        self.cargo(&self.args, directory, target)
    }

    /// The same build without the run.
    pub(super) fn build(&self, directory: &Path, target: &Path) -> Cargo {
        let mut args = self.args.clone();
        args.insert(0, "--no-run".to_owned());
        self.cargo(&args, directory, target)
    }

    fn cargo(&self, args: &[String], directory: &Path, target: &Path) -> Cargo {
        let args: Vec<&str> = ["test"]
            .into_iter()
            .chain(args.iter().map(String::as_str))
            .collect();
        self.env
            .iter()
            .fold(Cargo::new(directory, &args), |cargo, (name, value)| {
                cargo.env(name, value)
            })
            .env("CARGO_TARGET_DIR", &target.to_string_lossy())
    }

    /// The test's name: the first word that is no option, nor an option's value.
    fn filter(&self) -> Option<&str> {
        let mut words = self.args.iter().map(String::as_str);
        while let Some(word) = words.next() {
            if WITH_VALUE.contains(&word) {
                words.next();
            } else if !word.starts_with('-') {
                return Some(word);
            }
        }
        None
    }
}

impl fmt::Display for TestCommand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.typed)
    }
}

/// Splits a line as a shell does, as far as quotes go.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word = None::<String>;
    let mut quote = None;
    for letter in line.chars() {
        match (letter, quote) {
            (_, Some(open)) if letter == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (_, None) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        return Err(format!("`{line}` opens a quote that it doesn't close"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::TestCommand;

    fn command(typed: &str) -> Result<TestCommand, String> {
        TestCommand::try_from(typed.to_owned())
    }

    #[test]
    fn a_command_runs_as_typed_in_a_target_directory_of_its_own() {
        let typed = "RUSTFLAGS='--cfg loom' cargo test --release -p sprag-loom-tests --lib handoff";
        let command = command(typed).expect("a command");
        let (directory, target) = (Path::new("/tree"), Path::new("/target"));
        assert_eq!(
            command.run(directory, target).shown(),
            "RUSTFLAGS='--cfg loom' CARGO_TARGET_DIR=/target \
             cargo test --release -p sprag-loom-tests --lib handoff"
        );
        assert_eq!(
            command.build(directory, target).shown(),
            "RUSTFLAGS='--cfg loom' CARGO_TARGET_DIR=/target \
             cargo test --no-run --release -p sprag-loom-tests --lib handoff"
        );
        assert_eq!(command.to_string(), typed);
    }

    #[test]
    fn the_test_may_be_named_before_or_after_the_options() {
        for typed in [
            "cargo test -p a --test locks tokens_rise",
            "cargo test tokens_rise -p a --test locks",
            "cargo test -p a --lib -- --exact lock::tokens_rise",
            "cargo test -p a --features steps --test torture kill",
        ] {
            assert!(command(typed).is_ok(), "{typed}");
        }
    }

    #[test]
    fn a_command_that_names_too_little_is_an_error_that_says_what_to_add() {
        for (typed, expected) in [
            ("", "no `cargo test`"),
            ("cargo nextest run -p a", "no `cargo test`"),
            ("cargo test --lib name", "add `-p"),
            ("cargo test -p a name", "add `--test"),
            ("cargo test -p a --test locks", "add its name"),
            ("cargo test -p a --lib 'name", "quote"),
        ] {
            let error = command(typed).expect_err(typed);
            assert!(error.contains(expected), "{typed}: {error}");
        }
    }
}
