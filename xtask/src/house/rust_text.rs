//! Rust source with code and comments told apart, line by line. String and character contents are
//! blanked in the code, so that a rule looking for a word never finds it in a message.

/// A source file, split. Both sides have the file's lines; columns are kept in the code.
#[derive(Debug)]
pub(super) struct RustText {
    /// The code, with comments and the contents of literals blanked.
    pub(super) code: Vec<String>,
    /// The comments alone.
    pub(super) comments: Vec<String>,
}

#[derive(Clone, Copy)]
enum State {
    Code,
    LineComment,
    BlockComment { depth: usize },
    Text,
    RawText { hashes: usize },
}

impl RustText {
    /// Splits a source text.
    pub(super) fn of(text: &str) -> Self {
        let letters: Vec<char> = text.chars().collect();
        let at = |index: usize| letters.get(index).copied().unwrap_or('\0');
        let (mut code, mut comments) = (Vec::new(), Vec::new());
        let (mut code_line, mut comment_line) = (String::new(), String::new());
        let mut state = State::Code;
        let mut index = 0;
        while index < letters.len() {
            let letter = letters[index];
            if letter == '\n' {
                if matches!(state, State::LineComment) {
                    state = State::Code;
                }
                code.push(std::mem::take(&mut code_line));
                comments.push(std::mem::take(&mut comment_line));
                index += 1;
                continue;
            }
            // How many letters this turn takes, and the state after them.
            let (taken, next) = match state {
                State::Code => match (letter, at(index + 1)) {
                    ('/', '/') => (2, State::LineComment),
                    ('/', '*') => (2, State::BlockComment { depth: 1 }),
                    ('"', _) => (1, State::Text),
                    ('\'', _) => (character_length(&letters[index..]), State::Code),
                    ('r', '"' | '#') if !continues_word(&letters, index) => {
                        let hashes = letters[index + 1..]
                            .iter()
                            .take_while(|letter| **letter == '#')
                            .count();
                        if at(index + 1 + hashes) == '"' {
                            (hashes + 2, State::RawText { hashes })
                        } else {
                            (1, State::Code)
                        }
                    }
                    _ => (1, State::Code),
                },
                State::LineComment => (1, state),
                State::BlockComment { depth } => match (letter, at(index + 1)) {
                    ('*', '/') if depth == 1 => (2, State::Code),
                    ('*', '/') => (2, State::BlockComment { depth: depth - 1 }),
                    ('/', '*') => (2, State::BlockComment { depth: depth + 1 }),
                    _ => (1, state),
                },
                State::Text => match letter {
                    // An escaped line end is a line end still.
                    '\\' if at(index + 1) != '\n' => (2, state),
                    '"' => (1, State::Code),
                    _ => (1, state),
                },
                State::RawText { hashes } => {
                    let closes = letter == '"' && (1..=hashes).all(|step| at(index + step) == '#');
                    if closes {
                        (1 + hashes, State::Code)
                    } else {
                        (1, state)
                    }
                }
            };
            // Only single letters are plain code: longer takes open, close or are literals.
            let is_code = taken == 1 && matches!((state, next), (State::Code, State::Code));
            let is_comment = state.is_comment() || next.is_comment();
            for letter in letters.iter().skip(index).take(taken) {
                code_line.push(if is_code { *letter } else { ' ' });
                if is_comment {
                    comment_line.push(*letter);
                }
            }
            state = next;
            index += taken;
        }
        code.push(code_line);
        comments.push(comment_line);
        Self { code, comments }
    }
}

impl State {
    fn is_comment(self) -> bool {
        matches!(self, Self::LineComment | Self::BlockComment { .. })
    }
}

/// The length of the character literal that a quote opens, or 1 for a lifetime.
fn character_length(letters: &[char]) -> usize {
    match letters {
        ['\'', '\\', _, rest @ ..] => rest
            .iter()
            .position(|letter| *letter == '\'')
            .map_or(1, |position| position + 4),
        ['\'', _, '\'', ..] => 3,
        _ => 1,
    }
}

/// Whether the letter at `index` belongs to a word that began before it; `b` and `c` may stand before
/// a raw string's `r`.
fn continues_word(letters: &[char], index: usize) -> bool {
    let part_of_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let before = |back: usize| index.checked_sub(back).map(|index| letters[index]);
    match before(1) {
        Some('b' | 'c') => before(2).is_some_and(part_of_word),
        Some(letter) => part_of_word(letter),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::RustText;

    fn squeezed(lines: &[String]) -> String {
        let joined = lines.join("\n");
        joined
            .split(' ')
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn comments_and_literals_leave_the_code() {
        let cases = [
            ("let a = 1; // unsafe", "let a = 1;", "// unsafe"),
            (
                "a /* unsafe /* in */ still */ b",
                "a b",
                "/* unsafe /* in */ still */",
            ),
            (r#"f("unsafe \" // no", x)"#, "f( , x)", ""),
            (r##"f(r#"unsafe "quoted" // no"#, x)"##, "f( , x)", ""),
            (r#"f(br"\", x)"#, "f(b , x)", ""),
            ("f('\"', '\\'', '\\u{41}', b'/', x)", "f( , , , b , x)", ""),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}", ""),
            ("r#type + bar", "r#type + bar", ""),
        ];
        for (source, code, comments) in cases {
            let split = RustText::of(source);
            assert_eq!(squeezed(&split.code), code, "{source}");
            assert_eq!(squeezed(&split.comments), comments, "{source}");
        }
    }

    #[test]
    fn lines_stay_where_they_were() {
        let source = "a\n\"two\nlines\"\n/* three\nmore */ b\n\"x \\\n y\" c\n";
        let split = RustText::of(source);
        assert_eq!(split.code.len(), 8);
        assert_eq!(split.code[0], "a");
        assert_eq!(split.code[4].trim(), "b");
        assert_eq!(split.code[6].trim(), "c");
        assert_eq!(split.comments[3].trim(), "/* three");
    }
}
