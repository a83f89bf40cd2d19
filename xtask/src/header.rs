//! `cargo xtask header`: writes `include/sprag.h` from the source of the C ABI. Each file of `ffi/src` makes a section,
//! in the order below, with its own documentation as the section's text; `cbindgen` writes what is declared there.

use cbindgen::{Builder, Config, DocumentationStyle, ExportConfig, Language, Style};
use clap::Args;

use crate::symbols;
use crate::workspace::Workspace;

/// Options of `header`.
#[derive(Args)]
pub(crate) struct Options {
    /// Writes nothing, and fails if the header is not what would be written.
    #[arg(long)]
    check: bool,
}

/// The header.
pub(crate) const HEADER: &str = "include/sprag.h";

/// The sections, in the order in which they are read.
const SECTIONS: &[&str] = &[
    "version",
    "status",
    "error",
    "bytes",
    "duration",
    "clock",
    "space",
    "owner",
    "hold",
    "keep_alive",
    "lock",
    "fence",
    "semaphore",
    "stop",
    "decision",
    "limiter",
    "overrides",
    "check_all",
    "joint",
    "concurrency",
    "counter",
    "striped",
    "attempt",
    "once",
    "info",
    "inspect",
    "region",
    "metrics",
];

/// Writes the header and lists its functions, or tells whether it is up to date.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, String> {
    if options.check {
        return is_up_to_date(workspace);
    }
    std::fs::write(workspace.path(HEADER), generate(workspace)?)
        .map_err(|error| format!("cannot write {HEADER}: {error}"))?;
    symbols::add_declared(workspace)?;
    Ok(true)
}

/// Whether the header is what would be written. Says so if not.
pub(crate) fn is_up_to_date(workspace: &Workspace) -> Result<bool, String> {
    let header = generate(workspace)?;
    let is_up_to_date = workspace
        .read(HEADER)
        .is_ok_and(|committed| committed == header);
    if !is_up_to_date {
        println!("{HEADER} is not what the source declares: run `cargo xtask header`");
    }
    Ok(is_up_to_date)
}

fn generate(workspace: &Workspace) -> Result<String, String> {
    let (mut titles, mut sections) = (String::new(), String::new());
    for section in SECTIONS {
        let file = format!("ffi/src/{section}.rs");
        let source = workspace.read(&file)?;
        let title =
            title(&source).ok_or_else(|| format!("{file} must begin with `//! # TITLE`"))?;
        titles.extend([" *     ", title, "\n"]);
        sections.push('\n');
        sections.push_str(&introduction(&source));
        sections.push_str(&declarations(workspace, &file, &source)?);
    }
    let begin = workspace.read("ffi/header/begin.h")?;
    let listed = begin.replace(LISTED, &format!("{LISTED}{titles}"));
    let end = workspace.read("ffi/header/end.h")?;
    Ok(format!("{listed}{sections}\n{end}"))
}

/// After this line of the header's beginning, the sections are listed.
const LISTED: &str = " * SECTIONS\n";

/// The section's title.
fn title(source: &str) -> Option<&str> {
    source.lines().next()?.strip_prefix("//! # ")
}

/// The section's text: the file's own documentation.
fn introduction(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let mut text = String::from("/*\n");
    for line in lines {
        let line = match line.strip_prefix(" # ") {
            Some(title) => format!(" {}", title.to_uppercase()),
            None => line.to_owned(),
        };
        text.push_str(format!(" *{line}").trim_end());
        text.push('\n');
    }
    text.push_str(" */\n\n");
    text
}

/// What the file declares.
fn declarations(workspace: &Workspace, file: &str, source: &str) -> Result<String, String> {
    let config = Config {
        language: Language::C,
        style: Style::Both,
        no_includes: true,
        line_length: 110,
        documentation_style: DocumentationStyle::C99,
        usize_is_size_t: true,
        export: ExportConfig {
            include: types(source),
            ..ExportConfig::default()
        },
        ..Config::default()
    };
    let bindings = Builder::new()
        .with_config(config)
        .with_src(workspace.path(file))
        .generate()
        .map_err(|error| format!("cbindgen cannot read {file}: {error}"))?;
    let mut bytes = Vec::new();
    bindings.write(&mut bytes);
    let text = String::from_utf8(bytes)
        .map_err(|error| format!("cbindgen wrote no text for {file}: {error}"))?;
    let long = long_constants(source);
    let declared = without_c23(&text).map(|line| widened(plain(line), &long));
    let declared = declared.fold(opaque_types(source), |all, line| all + &line + "\n");
    // What was skipped stood between the two.
    Ok(declared.replace("enum\n {", "enum {"))
}

/// The types of a file that C sees the fields or values of: named here, they are declared also where only other sections
/// use them.
fn types(source: &str) -> Vec<String> {
    let declared = |line: &str| {
        let name = line
            .strip_prefix("pub struct ")
            .or_else(|| line.strip_prefix("pub enum "))?;
        let name = name.split([' ', '(']).next()?;
        name.starts_with("sprag_").then(|| name.to_owned())
    };
    source.lines().filter_map(declared).collect()
}

/// The lines but for what `cbindgen` adds for C23 alone: enumerations of a stated width. One width for all is a typedef.
fn without_c23(text: &str) -> impl Iterator<Item = &str> {
    let (mut is_skipped, mut is_within) = (false, false);
    text.lines().filter(move |line| {
        if line.starts_with("#if __STDC_VERSION__ >= 202311L") {
            (is_skipped, is_within) = (true, true);
            return false;
        }
        if is_within && (line.starts_with("#else") || line.starts_with("#endif")) {
            is_skipped = false;
            is_within = line.starts_with("#else");
            return false;
        }
        !is_skipped
    })
}

/// A line as it is read in C: types by their names alone, and values of enumerations that C++ reads as well.
fn plain(line: &str) -> String {
    if line.starts_with("typedef struct") {
        return line.to_owned();
    }
    match line {
        "enum sprag_status" => "enum".to_owned(),
        _ => line.replace("struct sprag_", "sprag_"),
    }
}

/// The constants of a file that have 64 bits.
fn long_constants(source: &str) -> Vec<&str> {
    source
        .lines()
        .filter_map(|line| line.strip_prefix("pub const ")?.split_once(": u64 ="))
        .map(|(name, _)| name)
        .collect()
}

/// A line in which one of those keeps its width: a number alone is an int in C, and `5 * SPRAG_SECOND` would overflow.
fn widened(line: String, long: &[&str]) -> String {
    let defined = line
        .strip_prefix("#define ")
        .and_then(|rest| rest.split_once(' '))
        .filter(|(name, value)| {
            long.contains(name) && value.bytes().all(|byte| byte.is_ascii_digit())
        });
    match defined {
        Some((name, value)) => format!("#define {name} UINT64_C({value})"),
        None => line,
    }
}

/// The types that a file declares by `opaque!`, which `cbindgen` does not see through.
fn opaque_types(source: &str) -> String {
    let mut text = String::new();
    let mut lines = source
        .lines()
        .skip_while(|line| *line != "opaque! {")
        .skip(1);
    for line in lines.by_ref().take_while(|line| *line != "}") {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix("///") {
            text.extend(["//", comment, "\n"]);
        } else if let Some(name) = line.split(',').next() {
            text.extend(["typedef struct ", name, " ", name, ";\n\n"]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_of_64_bits_keeps_its_width() {
        let source = "pub const A: u64 = 5;\npub const B: u32 = 5;\npub const C: u64 = u64::MAX;\n";
        let lines = ["#define A 5", "#define B 5", "#define C UINT64_MAX"];
        let lines = lines.map(|line| widened(line.to_owned(), &long_constants(source)));
        assert_eq!(
            lines,
            [
                "#define A UINT64_C(5)",
                "#define B 5",
                "#define C UINT64_MAX"
            ]
        );
    }
}
