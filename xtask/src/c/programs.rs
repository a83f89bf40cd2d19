//! The examples, and the tests that are programs in C or C++: each is built against the installed shared library and run,
//! plainly and then under `valgrind`, or by `--sanitized` with the compiler's own sanitizers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::compilers::STRICT;
use super::{Compiler, Language, Place};
use crate::tally::Tally;
use crate::tool;
use crate::workspace::Workspace;

/// The directories that hold programs, one a file.
const DIRECTORIES: [&str; 3] = ["ffi/examples", "ffi/tests/c", "ffi/tests/cpp"];

/// What the programs that want it are given as their argument: the cases that all languages share.
const CASES: &str = "api/tests/cases";

/// One program.
struct Program {
    source: PathBuf,
    name: String,
    language: Language,
    /// What it prints, if it is there to be read rather than to test.
    expected: Option<String>,
    /// Whether it reads JSON, by a library that has to be there.
    reads_json: bool,
}

/// A way to build a program.
struct Build {
    name: &'static str,
    language: Language,
    flags: &'static [&'static str],
    /// Whether it is the plain one: all programs are built so, and are run under `valgrind` too.
    is_plain: bool,
}

const BUILDS: [Build; 3] = [
    Build {
        name: "as C11",
        language: Language::C,
        flags: &["-std=c11", "-O1", "-g"],
        is_plain: true,
    },
    Build {
        name: "as C++17",
        language: Language::Cpp,
        flags: &["-std=c++17", "-O2", "-g"],
        is_plain: true,
    },
    Build {
        name: "as C++20 without exceptions",
        language: Language::Cpp,
        flags: &["-std=c++20", "-fno-exceptions", "-fno-rtti"],
        is_plain: false,
    },
];

/// An error or a leak ends in failure, in forked processes as well. What static variables still reach is no leak. Threads
/// take turns: it runs one at a time, and one that looks for what others do would keep them from it.
const VALGRIND: [&str; 6] = [
    "valgrind",
    "--quiet",
    "--fair-sched=yes",
    "--leak-check=full",
    "--errors-for-leak-kinds=definite,indirect",
    "--error-exitcode=9",
];

/// What a sanitizer finds ends the program.
const SANITIZERS: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// Runs every program in each way, and under `valgrind` if that is there.
pub(super) fn run(place: &Place, compilers: &[Compiler], tally: &mut Tally) -> Result<(), String> {
    let has_valgrind = tool::is_there("valgrind");
    if !has_valgrind {
        tally.skip("programs under valgrind", "valgrind is missing");
    }
    let compiler = &compilers[0];
    each(place, tally, |program, build, tally| {
        let built = place.directory("programs")?;
        let name = format!("{} {}", program.name, build.name);
        let file = match program.build(place, compiler, &built, build.flags) {
            Ok(file) => file,
            Err(why) => {
                tally.check(&name, || Err(why));
                return Ok(());
            }
        };
        program.judge(&name, tool::run(&mut runs(place, &file, &[])), tally);
        if has_valgrind && build.is_plain {
            let name = format!("{} under valgrind", program.name);
            program.judge(&name, tool::run(&mut runs(place, &file, &VALGRIND)), tally);
        }
        Ok(())
    })
}

/// Runs every program with sanitizers, if a compiler has them. Returns whether all held.
pub(super) fn run_sanitized(place: &Place, compilers: &[Compiler]) -> Result<bool, String> {
    let built = place.directory("sanitized")?;
    let mut tally = Tally::default();
    let Some(compiler) = compilers
        .iter()
        .find(|compiler| has_sanitizers(compiler, &built))
    else {
        println!("Skipped: no compiler here has sanitizers");
        return Ok(true);
    };
    each(place, &mut tally, |program, build, tally| {
        let flags = [build.flags, &SANITIZERS].concat();
        let ending = program
            .build(place, compiler, &built, &flags)
            .and_then(|file| tool::run(&mut runs(place, &file, &[])));
        let name = format!("{} {}, sanitized", program.name, build.name);
        program.judge(&name, ending, tally);
        Ok(())
    })?;
    Ok(tally.conclude())
}

/// Hands over every program with every way to build it, but for those that need what is not there.
fn each(
    place: &Place,
    tally: &mut Tally,
    mut test: impl FnMut(&Program, &Build, &mut Tally) -> Result<(), String>,
) -> Result<(), String> {
    let has_json = tool::run(Command::new("pkg-config").args(["--exists", "libcjson"])).is_ok();
    for program in programs(&place.workspace)? {
        if program.reads_json && !has_json {
            tally.skip(&program.name, "libcjson is missing");
            continue;
        }
        for build in BUILDS
            .iter()
            .filter(|build| build.language == program.language)
            .filter(|build| build.is_plain || program.expected.is_none())
        {
            test(&program, build, tally)?;
        }
    }
    Ok(())
}

/// The programs of every directory. One that has none is a mistake: nothing would be run, and nothing fail.
fn programs(workspace: &Workspace) -> Result<Vec<Program>, String> {
    let mut programs = Vec::new();
    for directory in DIRECTORIES {
        let entries = fs::read_dir(workspace.path(directory))
            .map_err(|error| format!("cannot read {directory}: {error}"))?;
        let mut sources: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        sources.sort();
        let before = programs.len();
        programs.extend(sources.into_iter().filter_map(Program::of));
        if programs.len() == before {
            return Err(format!("there is no program in {directory}"));
        }
    }
    Ok(programs)
}

fn has_sanitizers(compiler: &Compiler, built: &Path) -> bool {
    let source = built.join("probe.cpp");
    let mut command = compiler.command(Language::Cpp);
    command
        .args(SANITIZERS)
        .arg("-o")
        .arg(built.join("probe"))
        .arg(&source);
    fs::write(&source, "int main() { return 0; }\n").is_ok()
        && tool::run(&mut command).is_ok()
        && tool::run(&mut Command::new(built.join("probe"))).is_ok()
}

/// The program as a command, under another one if that is named.
fn runs(place: &Place, file: &Path, under: &[&str]) -> Command {
    let mut command = match under {
        [] => Command::new(file),
        [tool, arguments @ ..] => {
            let mut command = Command::new(tool);
            command.args(arguments).arg(file);
            command
        }
    };
    command
        .arg(place.workspace.path(CASES))
        .env("LD_LIBRARY_PATH", place.libraries())
        .env("SPRAG_DIR", &place.regions);
    command
}

impl Program {
    fn of(source: PathBuf) -> Option<Self> {
        let language = match source.extension()?.to_str()? {
            "c" => Language::C,
            "cpp" => Language::Cpp,
            _ => return None,
        };
        let name = source.file_name()?.to_str()?.to_owned();
        let text = fs::read_to_string(&source).ok()?;
        Some(Self {
            expected: fs::read_to_string(source.with_extension("expected")).ok(),
            reads_json: text.contains("cJSON"),
            source,
            name,
            language,
        })
    }

    fn build(
        &self,
        place: &Place,
        compiler: &Compiler,
        built: &Path,
        flags: &[&str],
    ) -> Result<PathBuf, String> {
        let file = built.join(self.name.replace('.', "-"));
        let mut command = compiler.command(self.language);
        if self.language == Language::Cpp {
            command.args(STRICT);
        }
        command
            .args(flags)
            .arg("-o")
            .arg(&file)
            .arg(&self.source)
            .arg("-I")
            .arg(place.include())
            .arg("-L")
            .arg(place.libraries())
            .args(["-lsprag", "-lpthread"]);
        if self.reads_json {
            command.arg("-lcjson");
        }
        tool::run(&mut command)?;
        Ok(file)
    }

    /// A program with a file of what it prints beside it must print that; another counts its tests itself.
    fn judge(&self, name: &str, ending: Result<String, String>, tally: &mut Tally) {
        match &self.expected {
            Some(expected) => {
                tally.check(name, || match ending? {
                    printed if printed == *expected => Ok(()),
                    printed => Err(format!("it printed\n{printed}instead of\n{expected}")),
                });
            }
            None => tally.add(name, &ending),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DIRECTORIES, programs};
    use crate::workspace::Workspace;
    use std::fs;

    #[test]
    fn a_directory_without_programs_is_found_out() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let workspace = Workspace::at(root.path());
        assert!(programs(&workspace).is_err());
        for directory in DIRECTORIES {
            let path = root.path().join(directory);
            fs::create_dir_all(&path).expect("a directory");
            fs::write(path.join("Makefile"), "").expect("write");
            assert!(programs(&workspace).is_err());
            fs::write(path.join("a.c"), "").expect("write");
        }
        assert_eq!(programs(&workspace).map(|all| all.len()), Ok(3));
    }
}
