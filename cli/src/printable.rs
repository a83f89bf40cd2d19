//! Names and keys are bytes: owns how they are shown to people and kept exact for programs.

use std::ffi::OsStr;
use std::fmt::Write;

use serde::Serialize;

/// A name in JSON: exact as text, or readable with its bytes beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Name {
    name: String,
    /// All bytes in hexadecimal, where they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    name_hex: Option<String>,
}

impl Name {
    /// The name of these bytes.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let exact = std::str::from_utf8(bytes).ok();
        Self {
            name: exact.map_or_else(|| readable(bytes), str::to_owned),
            name_hex: exact.is_none().then(|| hex(bytes)),
        }
    }
}

/// A key in JSON, as a [`Name`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Key {
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_hex: Option<String>,
}

impl Key {
    /// The key of these bytes.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let Name { name, name_hex } = Name::new(bytes);
        Self {
            key: name,
            key_hex: name_hex,
        }
    }
}

/// The bytes of an argument.
#[cfg(unix)]
pub(crate) fn bytes(argument: &OsStr) -> &[u8] {
    std::os::unix::ffi::OsStrExt::as_bytes(argument)
}

/// The bytes of an argument: its text, which elsewhere than on Unix is all that a name can be.
#[cfg(not(unix))]
pub(crate) fn bytes(argument: &OsStr) -> &[u8] {
    argument.as_encoded_bytes()
}

/// The bytes as people can read them and a terminal can bear: what is not UTF-8, and characters that
/// control or reorder, come as `\xNN`.
pub(crate) fn name(bytes: &[u8]) -> String {
    harmless(&readable(bytes))
}

/// The bytes as text, with what is not UTF-8 escaped.
pub(crate) fn readable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            push_escaped(&mut text, *byte);
        }
    }
    text
}

/// The text with its control characters escaped.
pub(crate) fn harmless(text: &str) -> String {
    let mut harmless = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || is_bidirectional_control(character) {
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                push_escaped(&mut harmless, byte);
            }
        } else {
            harmless.push(character);
        }
    }
    harmless
}

/// The bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Whether a character reorders or hides the text around it.
fn is_bidirectional_control(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn push_escaped(text: &mut String, byte: u8) {
    // Writing to a string can't fail.
    let _ = write!(text, "\\x{byte:02x}");
}
