//! No note to self is left in the tree: what is not done is either done now or written where users
//! of the tracker find it.

use super::Violation;

// Spelled in halves, so that this file passes its own rule.
const WORDS: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
];

/// Checks every line of one file, comments and strings included.
pub(super) fn check(file: &str, text: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for word in WORDS {
            if contains_word(line, word) {
                let what = format!("`{word}`: do it, or take the note out");
                violations.push(Violation::at(file, index + 1, what));
            }
        }
    }
    violations
}

/// Whether `word` stands in `line` with no letter, digit or underscore beside it.
pub(super) fn contains_word(line: &str, word: &str) -> bool {
    let part_of_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        let ends_open = word.ends_with(part_of_word) && after.is_some_and(part_of_word);
        !before.is_some_and(part_of_word) && !ends_open
    })
}

#[cfg(test)]
mod tests {
    use super::{WORDS, check};

    #[test]
    fn each_word_is_found_alone_and_not_inside_another() {
        for word in WORDS {
            assert_eq!(
                check("a.rs", &format!("fine\n// {word} later")).len(),
                1,
                "{word}"
            );
            assert_eq!(
                check("a.rs", &format!("{word}(\"later\")")).len(),
                1,
                "{word}"
            );
            assert!(check("a.rs", &format!("A{word}")).is_empty(), "{word}");
        }
        let template = WORDS[2].repeat(2);
        assert!(check("a.sh", &format!("mktemp lock.{template}")).is_empty());
    }
}
