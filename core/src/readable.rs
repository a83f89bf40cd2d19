//! Names are bytes: owns how errors and debug output show them. Never parses one.

use std::fmt::{self, Write as _};

/// The bytes of a name as people can read them: what is UTF-8 as text; what is not, and characters that
/// control a terminal, as `\xNN`. Debug output has quotes around it.
#[derive(Clone, Copy)]
pub struct Readable<'a>(pub &'a [u8]);

impl fmt::Display for Readable<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                if is_harmless(character) {
                    formatter.write_char(character)?;
                } else {
                    let mut bytes = [0; 4];
                    escape(formatter, character.encode_utf8(&mut bytes).as_bytes())?;
                }
            }
            escape(formatter, chunk.invalid())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Readable<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{self}\"")
    }
}

fn escape(formatter: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes
        .iter()
        .try_for_each(|byte| write!(formatter, "\\x{byte:02x}"))
}

/// Not one that controls a terminal, or reorders or hides the text around it.
fn is_harmless(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::Readable;

    #[test]
    fn a_name_is_text_where_it_is_utf_8_and_escaped_elsewhere() {
        let cases: [(&[u8], &str); 5] = [
            (b"orders/42", "orders/42"),
            ("\u{e9}\u{2192}".as_bytes(), "\u{e9}\u{2192}"),
            (b"\x1b[31m\n", "\\x1b[31m\\x0a"),
            (b"\xff\xc3(", "\\xff\\xc3("),
            ("\u{202e}".as_bytes(), "\\xe2\\x80\\xae"),
        ];
        for (name, text) in cases {
            assert_eq!(Readable(name).to_string(), text);
            assert_eq!(format!("{:?}", Readable(name)), format!("\"{text}\""));
        }
    }
}
