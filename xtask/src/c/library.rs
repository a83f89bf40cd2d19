//! The installed libraries themselves: what they export, and how they were linked.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use super::Place;
use crate::library::Library;
use crate::symbols::{self, Symbol};
use crate::tally::Tally;
use crate::tool;

/// Runs the tests.
pub(super) fn run(place: &Place, library: &Library, tally: &mut Tally) {
    let shared = place.libraries().join("libsprag.so");
    tally.check(
        "the shared library exports what is listed, with versions",
        || exports_what_is_listed(place, &shared),
    );
    tally.check("the static library has what is listed", || {
        has_what_is_listed(place)
    });
    tally.check("links lead to the shared library by its name", || {
        is_linked_by_name(&shared, library)
    });
    tally.check("the shared library is linked as it must be", || {
        is_linked_as_it_must(&shared, library)
    });
}

fn exports_what_is_listed(place: &Place, shared: &Path) -> Result<(), String> {
    let listed = symbols::listed(&place.workspace)?;
    let nodes: BTreeSet<&str> = listed.iter().map(|symbol| symbol.node.as_str()).collect();
    let expected = listed
        .iter()
        .map(|Symbol { name, node }| format!("{name}@@{node}"))
        .collect();
    let mut exported = names(
        Command::new("nm")
            .args(["--dynamic", "--defined-only", "--format=posix"])
            .arg(shared),
    )?;
    // Some linkers have the nodes themselves among the symbols, some don't.
    exported.retain(|name| !nodes.contains(name.as_str()));
    told(&symbols::differences(&exported, &expected))
}

fn has_what_is_listed(place: &Place) -> Result<(), String> {
    let listed = symbols::listed(&place.workspace)?
        .into_iter()
        .map(|symbol| symbol.name)
        .collect();
    let archive = place.libraries().join("libsprag.a");
    let mut defined = names(
        Command::new("nm")
            .args(["--extern-only", "--defined-only", "--format=posix"])
            .arg(archive),
    )?;
    defined.retain(|name| name.starts_with("sprag_"));
    told(&symbols::differences(&defined, &listed))
}

/// The first words of the lines that a command prints.
fn names(command: &mut Command) -> Result<BTreeSet<String>, String> {
    let lines = tool::run(command)?;
    let first = |line: &str| line.split(' ').next().map(ToOwned::to_owned);
    Ok(lines.lines().filter_map(first).collect())
}

fn told(differences: &[String]) -> Result<(), String> {
    match differences {
        [] => Ok(()),
        _ => Err(differences.join("\n")),
    }
}

fn is_linked_by_name(shared: &Path, library: &Library) -> Result<(), String> {
    let leads_to = |link: &Path, file: &str| match link.read_link().as_deref().map(Path::as_os_str)
    {
        Ok(target) if target == file => Ok(()),
        other => Err(format!(
            "{} leads to {other:?}, not to {file}",
            link.display()
        )),
    };
    leads_to(shared, &library.soname())?;
    leads_to(
        &shared.with_file_name(library.soname()),
        &library.file_name(),
    )
}

/// What the dynamic section and the program headers say, or must not.
fn is_linked_as_it_must(shared: &Path, library: &Library) -> Result<(), String> {
    let dynamic = tool::run(
        Command::new("readelf")
            .args(["-W", "--dynamic"])
            .arg(shared),
    )?;
    let segments = tool::run(
        Command::new("readelf")
            .args(["-W", "--segments"])
            .arg(shared),
    )?;
    let soname = format!("Library soname: [{}]", library.soname());
    let must = [
        (&dynamic, soname.as_str(), "has another name"),
        (&dynamic, "NODELETE", "could be unloaded under its threads"),
        (
            &dynamic,
            "BIND_NOW",
            "looks for functions when they are first called",
        ),
        (&segments, "GNU_RELRO", "leaves its tables writable"),
    ];
    let must_not = [
        (&dynamic, "TEXTREL", "has code that is relocated"),
        (
            &dynamic,
            "STATIC_TLS",
            "may find no room when it is loaded late",
        ),
        (&segments, "RWE", "has memory that is both written and run"),
    ];
    let wrong: Vec<String> = must
        .iter()
        .filter(|(text, sign, _)| !text.contains(sign))
        .chain(
            must_not
                .iter()
                .filter(|(text, sign, _)| text.contains(sign)),
        )
        .map(|(_, sign, what)| format!("it {what} ({sign})"))
        .collect();
    told(&wrong)
}
