//! The compilers that there are.

use std::process::Command;

use super::Language;
use crate::tool;

/// A compiler of C and one of C++ that belong together.
pub(super) struct Compiler {
    c: &'static str,
    cpp: &'static str,
}

const GCC: Compiler = Compiler {
    c: "gcc",
    cpp: "g++",
};
const CLANG: Compiler = Compiler {
    c: "clang",
    cpp: "clang++",
};

/// What is complained about is an error.
pub(super) const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// What the headers must stand besides: their users compile with what they like.
pub(super) const STRICT: [&str; 2] = ["-Wconversion", "-Wshadow"];

/// The compilers, the one that must be there first.
pub(super) fn find() -> Result<Vec<Compiler>, String> {
    if !GCC.is_there() {
        return Err(
            "gcc and g++ are missing: install them, on Debian by `apt-get install g++`".to_owned(),
        );
    }
    let others = [CLANG].into_iter().filter(Compiler::is_there);
    Ok([GCC].into_iter().chain(others).collect())
}

impl Compiler {
    /// The name of the one for a language.
    pub(super) fn name(&self, language: Language) -> &'static str {
        match language {
            Language::C => self.c,
            Language::Cpp => self.cpp,
        }
    }

    /// The one for a language, as a command that takes no warning.
    pub(super) fn command(&self, language: Language) -> Command {
        let mut command = Command::new(self.name(language));
        command.args(WARNINGS);
        command
    }

    fn is_there(&self) -> bool {
        tool::is_there(self.c) && tool::is_there(self.cpp)
    }
}
