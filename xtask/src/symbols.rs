//! What the shared library exports: the list that is kept in [`MAP`], which is the linker's version script as well, and
//! what the header declares.

use std::collections::BTreeSet;

use crate::header;
use crate::workspace::Workspace;

/// The list. A name that is in a release stays, in the node that it came with.
pub(crate) const MAP: &str = "ffi/symbols.map";

/// An exported name and the node that gives it its version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Symbol {
    /// The function's name.
    pub(crate) name: String,
    /// The version's.
    pub(crate) node: String,
}

/// The list as it is kept.
pub(crate) fn listed(workspace: &Workspace) -> Result<BTreeSet<Symbol>, String> {
    Ok(parse(&workspace.read(MAP)?))
}

/// Whether the list names what the header declares, all of it and nothing else. Prints what differs.
pub(crate) fn match_header(workspace: &Workspace) -> Result<bool, String> {
    let listed: BTreeSet<String> = listed(workspace)?
        .into_iter()
        .map(|symbol| symbol.name)
        .collect();
    let declared = declared(&workspace.read(header::HEADER)?);
    let differences = differences(&declared, &listed);
    for difference in &differences {
        println!("{difference}");
    }
    Ok(differences.is_empty())
}

/// Adds what the header declares and the list has not to the newest node. Takes nothing out: that is for whoever
/// decides that old programs need not run.
pub(crate) fn add_declared(workspace: &Workspace) -> Result<(), String> {
    let map = workspace.read(MAP)?;
    let listed = parse(&map).into_iter().map(|symbol| symbol.name).collect();
    let declared = declared(&workspace.read(header::HEADER)?);
    let new: BTreeSet<&str> = declared.difference(&listed).map(String::as_str).collect();
    std::fs::write(workspace.path(MAP), with(&map, new))
        .map_err(|error| format!("cannot write {MAP}: {error}"))
}

/// The version script with more names in its last node, in order.
fn with<'a>(map: &'a str, mut names: BTreeSet<&'a str>) -> String {
    let Some((before, node)) = map.rsplit_once("global:\n") else {
        return map.to_owned();
    };
    let is_name = |line: &&str| line.trim().starts_with("sprag_");
    let old = node.lines().take_while(is_name);
    names.extend(old.map(|line| line.trim().trim_end_matches(';')));
    let names = names.iter().flat_map(|name| ["    ", name, ";\n"]);
    let rest = node
        .lines()
        .skip_while(is_name)
        .flat_map(|line| [line, "\n"]);
    [before, "global:\n"]
        .into_iter()
        .chain(names)
        .chain(rest)
        .collect()
}

/// What is there and not listed, and the other way round, a line each.
pub(crate) fn differences(found: &BTreeSet<String>, listed: &BTreeSet<String>) -> Vec<String> {
    let unlisted = found
        .difference(listed)
        .map(|name| format!("{name} is not in {MAP}: run `cargo xtask header`, which adds it"));
    let vanished = listed
        .difference(found)
        .map(|name| format!("{name} is in {MAP} and no longer there: no released name may go"));
    unlisted.chain(vanished).collect()
}

/// The names of a version script, with their nodes.
fn parse(map: &str) -> BTreeSet<Symbol> {
    let mut symbols = BTreeSet::new();
    let mut node = "";
    for line in map.lines().map(str::trim) {
        if let Some(opened) = line.strip_suffix('{') {
            node = opened.trim();
        } else if let Some(name) = line.strip_suffix(';')
            && name.starts_with("sprag_")
        {
            symbols.insert(Symbol {
                name: name.to_owned(),
                node: node.to_owned(),
            });
        }
    }
    symbols
}

/// The functions that a header declares: the names before a parenthesis, outside comments.
fn declared(header: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut is_comment = false;
    for line in header.lines() {
        is_comment |= line.starts_with("/*");
        if !is_comment && !line.trim_start().starts_with("//") {
            names.extend(called(line));
        }
        is_comment &= !line.ends_with("*/");
    }
    names
}

fn called(line: &str) -> impl Iterator<Item = String> {
    line.match_indices('(').filter_map(|(open, _)| {
        let is_in_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let before = &line[..open];
        let name = &before[before.trim_end_matches(is_in_name).len()..];
        name.starts_with("sprag_").then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Symbol, declared, differences, parse, with};

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn a_version_script_gives_names_with_their_nodes() {
        let map = "SPRAG_0 {\n  global:\n    sprag_a;\n  local: *;\n};\nSPRAG_1 {\n  sprag_b;\n} SPRAG_0;\n";
        let symbol = |name: &str, node: &str| Symbol {
            name: name.to_owned(),
            node: node.to_owned(),
        };
        assert_eq!(
            parse(map),
            [symbol("sprag_a", "SPRAG_0"), symbol("sprag_b", "SPRAG_1")].into()
        );
    }

    #[test]
    fn new_names_go_to_the_last_node_and_none_goes_away() {
        let map = "A {\n  global:\n    sprag_b;\n  local:\n    *;\n};\nB {\n  global:\n    sprag_d;\n} A;\n";
        let more = "A {\n  global:\n    sprag_b;\n  local:\n    *;\n};\nB {\n  global:\n    sprag_c;\n    sprag_d;\n} A;\n";
        assert_eq!(with(map, ["sprag_c"].into()), more);
        assert_eq!(with(map, BTreeSet::new()), map);
    }

    #[test]
    fn a_header_declares_its_functions_and_not_what_its_comments_or_types_name() {
        let header = "/*\n * sprag_told(x)\n */\n// sprag_said() too.\nvoid sprag_close(sprag_space *space);\n\
                      const char *sprag_text(int32_t status);\ntypedef bool (*sprag_visitor)(void *context);\n";
        assert_eq!(declared(header), names(&["sprag_close", "sprag_text"]));
    }

    #[test]
    fn a_name_that_came_and_one_that_went_are_both_told() {
        let told = differences(
            &names(&["sprag_a", "sprag_b"]),
            &names(&["sprag_b", "sprag_c"]),
        );
        assert_eq!(told.len(), 2);
        assert!(told[0].starts_with("sprag_a is not in"), "{told:?}");
        assert!(told[1].starts_with("sprag_c is in"), "{told:?}");
    }
}
