//! Programs that are built against the installed tree by what users build with: `make`, `pkg-config` and `cmake`, in C
//! and C++, shared and static.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::compilers::WARNINGS;
use super::{Compiler, Language, Place};
use crate::tally::Tally;
use crate::tool;

const SOURCES: &str = "ffi/tests/consumer";

/// What each way of building makes of the sources, and whether it needs the shared library to run.
const PROGRAMS: [(&str, bool); 4] = [
    ("c-shared", true),
    ("c-static", false),
    ("cpp-shared", true),
    ("cpp-static", false),
];

/// Runs the tests.
pub(super) fn run(place: &Place, compilers: &[Compiler], tally: &mut Tally) -> Result<(), String> {
    if tool::is_there("make") {
        let built = place.directory("make")?;
        if tally.check("a plain Makefile builds", || make(place, &built)) {
            run_all(place, "make", &built, tally);
        }
    } else {
        tally.skip("a plain Makefile builds", "make is missing");
    }
    let by_prefix = format!("-DCMAKE_PREFIX_PATH={}", place.prefix.display());
    find(place, compilers, &by_prefix, tally)?;
    if tool::is_there("cmake") {
        tally.check(
            "CMake refuses a release that is not this",
            || match configure(
                place,
                &place.built.join("refused"),
                &[&by_prefix, "-DWANTED=1.0"],
            ) {
                Ok(_) => Err("it accepted it".to_owned()),
                Err(why) if why.contains("considered but not accepted") => Ok(()),
                Err(why) => Err(why),
            },
        );
    }
    tally.check("the library stays when it is unloaded", || {
        is_not_unloaded(place, &compilers[0])
    });
    Ok(())
}

/// Runs the tests for libraries in a directory that build systems do not look into by themselves.
pub(super) fn run_elsewhere(
    place: &Place,
    compilers: &[Compiler],
    tally: &mut Tally,
) -> Result<(), String> {
    let package = place.libraries().join("cmake/Sprag");
    let by_package = format!("-DSprag_DIR={}", package.display());
    find(place, &compilers[..1], &by_package, tally)
}

/// Runs the tests of what asks where the library is.
fn find(
    place: &Place,
    compilers: &[Compiler],
    to_cmake: &str,
    tally: &mut Tally,
) -> Result<(), String> {
    if tool::is_there("pkg-config") {
        let built = place.directory("pkg-config")?;
        for compiler in compilers {
            let name = compiler.name(Language::C);
            let way = format!("{name} and pkg-config, from {}", place.libdir);
            if tally.check(&format!("{way}: builds"), || {
                pkg_config(place, &built, compiler)
            }) {
                run_all(place, &way, &built, tally);
            }
        }
    } else {
        tally.skip("pkg-config builds", "pkg-config is missing");
    }
    if tool::is_there("cmake") {
        let built = place.directory("cmake")?;
        let way = format!("CMake, from {}", place.libdir);
        if tally.check(&format!("{way}: builds"), || cmake(place, &built, to_cmake)) {
            run_all(place, &way, &built, tally);
        }
    } else {
        tally.skip("CMake builds", "cmake is missing");
    }
    Ok(())
}

fn sources(place: &Place) -> PathBuf {
    place.workspace.path(SOURCES)
}

fn run_all(place: &Place, way: &str, built: &Path, tally: &mut Tally) {
    for (program, is_shared) in PROGRAMS {
        tally.check(&format!("{way}: {program} runs"), || {
            let program = built.join(program);
            let needed = tool::run(Command::new("readelf").arg("--dynamic").arg(&program))?;
            if needed.contains("[libsprag.so.") != is_shared {
                return Err(format!("linked the other way:\n{needed}"));
            }
            let mut command = Command::new(&program);
            tool::run(command.env("LD_LIBRARY_PATH", place.libraries())).map(drop)
        });
    }
}

fn make(place: &Place, built: &Path) -> Result<(), String> {
    let flags = WARNINGS.join(" ");
    let mut command = Command::new("make");
    command
        .arg("-C")
        .arg(built)
        .arg("-f")
        .arg(sources(place).join("Makefile"))
        .arg(format!("SOURCES={}", sources(place).display()))
        .arg(format!("PREFIX={}", place.prefix.display()))
        .arg(format!("CFLAGS=-std=c11 {flags}"))
        .arg(format!("CXXFLAGS=-std=c++17 {flags}"));
    tool::run(&mut command).map(drop)
}

/// What `pkg-config` says is used as a shell would: word by word.
fn pkg_config(place: &Place, built: &Path, compiler: &Compiler) -> Result<(), String> {
    let asked = |arguments: &[&str]| {
        let mut command = Command::new("pkg-config");
        command
            .env("PKG_CONFIG_PATH", place.libraries().join("pkgconfig"))
            .args(arguments)
            .arg("sprag");
        tool::run(&mut command)
    };
    let cflags = asked(&["--cflags"])?;
    let shared = asked(&["--libs"])?;
    let all_static = format!("-static {}", asked(&["--static", "--libs"])?);
    let second = built.join("second.o");
    let mut command = compiler.command(Language::C);
    command
        .args(["-std=c11", "-c", "-o"])
        .arg(&second)
        .arg(sources(place).join("second.c"))
        .args(cflags.split_whitespace());
    tool::run(&mut command)?;
    for (program, is_shared) in PROGRAMS {
        let (language, source) = if program.starts_with("cpp") {
            (Language::Cpp, "consumer.cpp")
        } else {
            (Language::C, "consumer.c")
        };
        let libraries = if is_shared { &shared } else { &all_static };
        let mut command = compiler.command(language);
        command
            .arg("-o")
            .arg(built.join(program))
            .arg(sources(place).join(source))
            .arg(&second)
            .args(cflags.split_whitespace())
            .args(libraries.split_whitespace());
        tool::run(&mut command)?;
    }
    Ok(())
}

fn cmake(place: &Place, built: &Path, option: &str) -> Result<(), String> {
    configure(place, built, &[option])?;
    let mut command = Command::new("cmake");
    command.arg("--build").arg(built).args(["--parallel", "2"]);
    tool::run(&mut command).map(drop)
}

fn configure(place: &Place, built: &Path, options: &[&str]) -> Result<String, String> {
    let mut command = Command::new("cmake");
    command
        .arg("-S")
        .arg(sources(place))
        .arg("-B")
        .arg(built)
        .args(options);
    tool::run(&mut command)
}

fn is_not_unloaded(place: &Place, compiler: &Compiler) -> Result<(), String> {
    let program = place.built.join("unloading");
    let mut command = compiler.command(Language::C);
    command
        .args(["-std=c11", "-o"])
        .arg(&program)
        .arg(sources(place).join("unloading.c"))
        .arg("-I")
        .arg(place.include())
        .arg("-ldl");
    tool::run(&mut command)?;
    tool::run(Command::new(program).arg(place.libraries().join("libsprag.so"))).map(drop)
}
