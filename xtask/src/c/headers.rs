//! The headers alone, as each standard and each compiler reads them.

use std::fs;
use std::path::Path;

use super::compilers::STRICT;
use super::{Compiler, Language, Place};
use crate::install;
use crate::tally::Tally;
use crate::tool;

/// Runs the tests.
pub(super) fn run(place: &Place, compilers: &[Compiler], tally: &mut Tally) {
    for header in install::headers(&place.workspace) {
        // A header of C is one of C++ too.
        let languages: &[Language] = if Path::new(&header).extension() == Some("hpp".as_ref()) {
            &[Language::Cpp]
        } else {
            &[Language::C, Language::Cpp]
        };
        // What another header includes is read in every way with that: alone, one is enough.
        let ways = if header.contains('/') { 1 } else { usize::MAX };
        for compiler in compilers.iter().take(ways) {
            for &language in languages {
                for standard in language.standards().iter().take(ways) {
                    let name = format!(
                        "{header} compiles alone, {} as {standard}",
                        compiler.name(language)
                    );
                    tally.check(&name, || {
                        compiles(place, compiler, language, standard, &header)
                    });
                }
            }
        }
    }
}

fn compiles(
    place: &Place,
    compiler: &Compiler,
    language: Language,
    standard: &str,
    header: &str,
) -> Result<(), String> {
    let source = place.built.join("alone");
    fs::write(
        &source,
        format!("#include <{header}>\n#include <{header}>\n"),
    )
    .map_err(|error| format!("cannot write {}: {error}", source.display()))?;
    let mut command = compiler.command(language);
    command
        .args(STRICT)
        .args([
            "-fsyntax-only",
            &format!("-std={standard}"),
            "-x",
            language.name(),
        ])
        .arg("-I")
        .arg(place.include())
        .arg(&source);
    tool::run(&mut command).map(drop)
}
