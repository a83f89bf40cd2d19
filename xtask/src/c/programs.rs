//! The examples, and the tests that are programs in C or C++: each is built against the installed shared library and run,
//! plainly and then under `valgrind`, or by `--sanitized` with the compiler's own sanitizers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Compiler, Language, Place};
use crate::tally::Tally;
use crate::tool;

/// The directories that hold programs, one a file.
const DIRECTORIES: [&str; 3] = ["ffi/examples", "ffi/tests/c", "ffi/tests/cpp"];

/// One program.
struct Program {
    source: PathBuf,
    name: String,
    language: Language,
}

/// Runs every program, with `valgrind` too if that is there.
pub(super) fn run(place: &Place, compilers: &[Compiler], tally: &mut Tally) -> Result<(), String> {
    let has_valgrind = tool::is_there("valgrind");
    if !has_valgrind {
        tally.skip("programs under valgrind", "valgrind is missing");
    }
    let built = place.directory("programs")?;
    for program in programs(place) {
        match program.build(place, &compilers[0], &built, &[]) {
            Ok(file) => {
                program.judge(
                    &program.name,
                    tool::run(&mut runs(place, &file, &[])),
                    tally,
                );
                if has_valgrind {
                    let name = format!("{} under valgrind", program.name);
                    program.judge(&name, tool::run(&mut runs(place, &file, &VALGRIND)), tally);
                }
            }
            Err(why) => {
                tally.check(&program.name, || Err(why));
            }
        }
    }
    Ok(())
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
    for program in programs(place) {
        let ending = program
            .build(place, compiler, &built, &SANITIZERS)
            .and_then(|file| tool::run(&mut runs(place, &file, &[])));
        let name = format!("{} with sanitizers", program.name);
        program.judge(&name, ending, &mut tally);
    }
    Ok(tally.conclude())
}

/// An error or a leak ends in failure, in forked processes as well.
const VALGRIND: [&str; 7] = [
    "valgrind",
    "--quiet",
    "--leak-check=full",
    "--errors-for-leak-kinds=definite,indirect",
    "--error-exitcode=99",
    "--trace-children=yes",
    "--fair-sched=yes",
];

/// What a sanitizer finds ends the program.
const SANITIZERS: [&str; 4] = [
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
    "-g",
];

fn programs(place: &Place) -> Vec<Program> {
    let mut sources: Vec<PathBuf> = DIRECTORIES
        .iter()
        .filter_map(|directory| fs::read_dir(place.workspace.path(directory)).ok())
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    sources.sort();
    sources.into_iter().filter_map(Program::of).collect()
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
        Some(Self {
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
        command
            .arg(format!("-std={}", self.language.standards()[0]))
            .args(flags)
            .arg("-o")
            .arg(&file)
            .arg(&self.source)
            .arg("-I")
            .arg(place.include())
            .arg("-L")
            .arg(place.libraries())
            .args(["-lsprag", "-lpthread"]);
        tool::run(&mut command)?;
        Ok(file)
    }

    /// A program with a file of what it prints beside it must print that; another counts its tests itself.
    fn judge(&self, name: &str, ending: Result<String, String>, tally: &mut Tally) {
        match fs::read_to_string(self.source.with_extension("expected")) {
            Ok(expected) => {
                tally.check(name, || match ending? {
                    printed if printed == expected => Ok(()),
                    printed => Err(format!("it printed\n{printed}instead of\n{expected}")),
                });
            }
            Err(_) => tally.add(name, &ending),
        }
    }
}
