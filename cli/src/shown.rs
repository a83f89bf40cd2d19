//! How names and commands stand in messages: quoted, on one line, cut when long.

use std::ffi::OsStr;
use std::fmt;

use crate::printable;

/// The longest part of a text that a message shows, in bytes.
const BYTES_MAX: usize = 100;

/// A name or an argument as messages show it.
#[derive(Debug)]
pub(crate) struct Shown(String);

impl Shown {
    /// Of an argument.
    pub(crate) fn of(text: &OsStr) -> Self {
        Self::of_bytes(printable::bytes(text))
    }

    /// Of a lock's name.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        let (head, tail) = bytes.split_at(bytes.len().min(BYTES_MAX));
        let more = if tail.is_empty() { "" } else { "…" };
        Self(format!("'{}{more}'", printable::name(head)))
    }

    /// With the limiter that it is a key of.
    pub(crate) fn of_limiter(self, limiter: &[u8]) -> Self {
        Self(format!("{self} of {}", Self::of_bytes(limiter)))
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, Shown};

    #[test]
    fn what_is_shown_is_one_short_line() {
        let long = vec![b'n'; BYTES_MAX + 1];
        let cases: [(&[u8], &str); 4] = [
            (b"nightly", "'nightly'"),
            (b"a\nb\x1b[2J", "'a\\x0ab\\x1b[2J'"),
            (b"a\xffz", "'a\\xffz'"),
            (&long, &format!("'{}…'", "n".repeat(BYTES_MAX))),
        ];
        for (bytes, expected) in cases {
            assert_eq!(Shown::of_bytes(bytes).to_string(), expected);
        }
    }
}
