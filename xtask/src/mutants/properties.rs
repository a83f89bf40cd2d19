//! The properties that always hold, by number, and how a test names one.

use std::collections::BTreeSet;

const NAMES: [&str; 16] = [
    "Exclusion",
    "Tokens",
    "Only the holder",
    "Grant means alive",
    "Leases are honest",
    "Cancelling is an operation",
    "Time never goes back",
    "No silent change",
    "Names are bytes",
    "All or nothing",
    "Bounded",
    "Limits are exact",
    "Unknown is a result",
    "Deadlock is found",
    "Fork, crash, stop",
    "Nothing panics across the C ABI",
];

/// A property's name; `None` for a number that names none.
pub(super) fn name(number: u8) -> Option<&'static str> {
    NAMES.get(usize::from(number).checked_sub(1)?).copied()
}

/// The properties that a source text names: `property 7` in a comment or `property_7_` in a name,
/// in any case.
pub(super) fn named_in(source: &str) -> BTreeSet<u8> {
    let source = source.to_ascii_lowercase();
    source
        .match_indices("property")
        .filter_map(|(start, word)| {
            let rest = source[start + word.len()..].strip_prefix([' ', '_'])?;
            let digits = rest
                .find(|letter: char| !letter.is_ascii_digit())
                .map_or(rest, |end| &rest[..end]);
            digits.parse().ok().filter(|number| name(*number).is_some())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{name, named_in};

    #[test]
    fn the_numbers_are_one_to_sixteen() {
        assert_eq!(name(1), Some("Exclusion"));
        assert_eq!(name(16), Some("Nothing panics across the C ABI"));
        assert_eq!(name(0), None);
        assert_eq!(name(17), None);
    }

    #[test]
    fn a_property_is_named_in_a_comment_or_in_a_function() {
        let source = "/// Property 2: tokens rise.\nfn property_12_bucket_is_exact() {}\n\
                      // property 99, property of nothing, properties 3";
        assert_eq!(named_in(source).into_iter().collect::<Vec<_>>(), [2, 12]);
    }
}
