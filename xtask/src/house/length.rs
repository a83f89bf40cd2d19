//! No file over 1,000 lines: past half of that, look for the second noun.

use super::Violation;

const LINES_MAX: usize = 1_000;

/// What is generated, and has as many lines as it needs.
const GENERATED: [&str; 2] = ["Cargo.lock", "include/sprag.h"];

/// Checks one file.
pub(super) fn check(file: &str, text: &str) -> Option<Violation> {
    let lines = text.lines().count();
    let is_generated = GENERATED.iter().any(|name| file.ends_with(name));
    (lines > LINES_MAX && !is_generated).then(|| {
        Violation::of(
            file,
            format!("{lines} lines, over {LINES_MAX}: split it by noun"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{GENERATED, LINES_MAX, check};

    #[test]
    fn the_limit_itself_is_allowed_and_one_more_line_is_not() {
        let longest = "x\n".repeat(LINES_MAX);
        assert!(check("a.rs", &longest).is_none());
        let longer = "x\n".repeat(LINES_MAX + 1);
        assert!(check("a.rs", &longer).is_some());
        for generated in GENERATED {
            assert!(check(generated, &longer).is_none());
        }
    }
}
