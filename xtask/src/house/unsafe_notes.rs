//! Every `unsafe` has a note near it that says why it is sound; an unsafe function or trait states
//! its contract. Clippy checks blocks and impls one by one; this rule adds functions, traits and
//! whatever a lint attribute has silenced.

use super::Violation;
use super::rust_text::RustText;

/// How many lines of other code may stand between the note and its `unsafe`.
const CODE_LINES_BETWEEN: usize = 5;

/// Checks one source file.
pub(super) fn check(file: &str, source: &RustText) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (line, code) in source.code.iter().enumerate() {
        for (column, _) in code.match_indices("unsafe") {
            let after = &code[column + "unsafe".len()..];
            let alone = !code[..column].ends_with(part_of_word) && !after.starts_with(part_of_word);
            if !alone || has_note(source, line) || is_exported(source, line) {
                continue;
            }
            let following = following(after, &source.code[line + 1..]);
            if let Some(what) = complaint(&following) {
                violations.push(Violation::at(file, line + 1, what));
            }
        }
    }
    violations
}

fn part_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The code that follows, as far as it takes to see what is unsafe.
fn following(after: &str, lines: &[String]) -> String {
    let mut text = after.to_owned();
    for line in lines.iter().take(3) {
        text.push(' ');
        text.push_str(line);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What to say about an `unsafe` without a note, by what follows it.
fn complaint(following: &str) -> Option<&'static str> {
    let item = following
        .strip_prefix("extern")
        .map_or(following, str::trim_start);
    if item.starts_with('{') {
        return Some("unsafe without a Safety note: say above it why it is sound here");
    }
    if item.starts_with("impl") {
        return Some("unsafe impl without a Safety note: say above it why the contract holds");
    }
    if item.starts_with("trait") {
        return Some("unsafe trait without a `# Safety` section: state its contract");
    }
    // Without a name it is a type; an attribute's parenthesis is no code that runs.
    let named = item
        .strip_prefix("fn ")
        .is_some_and(|name| name.starts_with(part_of_word));
    named.then_some("unsafe fn without a `# Safety` section: state its contract")
}

/// Whether the line is a function's of the C ABI: all of them share the contract that their crate states.
fn is_exported(source: &RustText, line: usize) -> bool {
    let above = line.checked_sub(1).map(|above| source.code[above].trim());
    above == Some("#[unsafe(no_mangle)]") && source.code[line].contains("extern")
}

/// Whether a comment on the line or above it speaks of safety. Comments and attributes above cost
/// nothing, however long; a few lines of the same statement may stand between.
fn has_note(source: &RustText, line: usize) -> bool {
    let mut between = 0;
    for above in (0..=line).rev() {
        let comment = source.comments[above].to_ascii_lowercase();
        if comment.contains("safety") {
            return true;
        }
        let code = source.code[above].trim();
        let free = above == line || !comment.is_empty() || code.starts_with("#[");
        if !free {
            between += 1;
            if between > CODE_LINES_BETWEEN {
                return false;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::house::rust_text::RustText;

    fn complaints(source: &str) -> usize {
        check("a.rs", &RustText::of(source)).len()
    }

    #[test]
    fn each_kind_of_unsafe_needs_a_note() {
        let cases = [
            ("unsafe { f() }", 1),
            ("let x = unsafe\n{ f() };", 1),
            ("unsafe impl Send for X {}", 1),
            ("pub unsafe fn f() {}", 1),
            ("unsafe extern \"C\" fn f() {}", 1),
            ("unsafe extern \"C\" {}", 1),
            ("unsafe trait T {}", 1),
            ("type F = unsafe fn(u8);", 0),
            ("type F = unsafe extern \"C\" fn(u8);", 0),
            ("#[unsafe(no_mangle)]", 0),
            ("#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn f() {}", 0),
            ("#[unsafe(no_mangle)]\npub fn f() { unsafe { g() } }", 1),
            ("#![forbid(unsafe_code)]", 0),
            ("// unsafe { f() }", 0),
            ("let message = \"unsafe { f() }\";", 0),
        ];
        for (source, expected) in cases {
            assert_eq!(complaints(source), expected, "{source}");
        }
    }

    #[test]
    fn a_note_counts_however_long_and_a_statement_may_stand_between() {
        let long = "// more\n".repeat(20);
        let cases = [
            ("// SAFETY: the slot is ours.\nunsafe { f() }".to_owned(), 0),
            ("unsafe { f() } // Safety: ours".to_owned(), 0),
            (format!("// Safety: ours\n{long}unsafe {{ f() }}"), 0),
            (
                "// SAFETY: ours\nlet x = a\n    .b()\n    .c(unsafe { f() });".to_owned(),
                0,
            ),
            (
                "/// # Safety\n/// Only once.\n#[inline]\npub unsafe fn f() {}".to_owned(),
                0,
            ),
            ("// Some other note\nunsafe { f() }".to_owned(), 1),
            (
                format!("// SAFETY: ours\n{}unsafe {{ f() }}", "g();\n".repeat(6)),
                1,
            ),
        ];
        for (source, expected) in cases {
            assert_eq!(complaints(&source), expected, "{source}");
        }
    }
}
