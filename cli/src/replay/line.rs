//! One line of an access log in the common or the combined format of Apache and nginx: owns where its
//! fields begin and end. Never copies, unescapes or judges what is in a field, and never reads input.
//!
//! ```text
//! host ident user [time] "request" status size "referer" "user-agent" …
//! ```
//!
//! Everything up to the size must be there. What follows is looked at only when it is asked for, so
//! that a line cut short by a logger, or one with fields of its own at the end, still counts.

use clap::ValueEnum;

use super::stamp::{self, STAMP_BYTES};

/// The most bytes that a key may have.
pub(crate) const KEY_BYTES_MAX: usize = sprag::NAME_BYTES_MAX;

/// The field that a limit is kept by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Field {
    /// The first field: the client's address or name
    #[value(aliases = ["ip", "client", "address", "addr", "remote-host", "remote-addr"])]
    Host,
    /// The authenticated user; `-`, where there is none, is a key like any other
    #[value(aliases = ["remote-user"])]
    User,
    /// The request's method
    #[value(aliases = ["verb"])]
    Method,
    /// The request's target without its query
    Path,
    /// The request's target with its query
    #[value(aliases = ["uri", "target"])]
    Url,
    /// The status code of the response
    #[value(aliases = ["code"])]
    Status,
    /// The referring page (combined format)
    #[value(aliases = ["referrer"])]
    Referer,
    /// The client's program (combined format)
    #[value(aliases = ["agent", "useragent", "user_agent"])]
    UserAgent,
}

impl Field {
    /// Its name on the command line and in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::User => "user",
            Self::Method => "method",
            Self::Path => "path",
            Self::Url => "url",
            Self::Status => "status",
            Self::Referer => "referer",
            Self::UserAgent => "user-agent",
        }
    }
}

/// The fields of one line, as the log writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    host: &'a [u8],
    user: &'a [u8],
    /// Nanoseconds since the Unix epoch.
    pub(crate) at_ns: i64,
    request: &'a [u8],
    status: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Line<'a> {
    /// The fields of `line`, which has no line feed; `None` where it is malformed.
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut cursor = Cursor { rest: line };
        let host = cursor.word()?;
        cursor.word()?;
        let user = cursor.user()?;
        let at_ns = stamp::unix_ns(cursor.bracketed()?)?;
        let request = cursor.quoted()?;
        let status = cursor.word()?;
        let size = cursor.word()?;
        if !(status == b"-" || status.len() == 3 && all_digits(status)) {
            return None;
        }
        if !(size == b"-" || all_digits(size)) {
            return None;
        }
        Some(Self {
            host,
            user,
            at_ns,
            request,
            status,
            rest: cursor.rest,
        })
    }

    /// The bytes of one field, exact; `None` where the line lacks it, or where it can't be a key:
    /// empty, or longer than [`KEY_BYTES_MAX`].
    pub(crate) fn key(&self, field: Field) -> Option<&'a [u8]> {
        let key = match field {
            Field::Host => self.host,
            Field::User => self.user,
            Field::Method => self.method_and_url()?.0,
            Field::Path => self
                .method_and_url()?
                .1
                .split(|&byte| byte == b'?')
                .next()?,
            Field::Url => self.method_and_url()?.1,
            Field::Status => self.status,
            Field::Referer => Cursor { rest: self.rest }.quoted()?,
            Field::UserAgent => {
                let mut cursor = Cursor { rest: self.rest };
                cursor.quoted()?;
                cursor.quoted()?
            }
        };
        (1..=KEY_BYTES_MAX).contains(&key.len()).then_some(key)
    }

    fn method_and_url(&self) -> Option<(&'a [u8], &'a [u8])> {
        let mut cursor = Cursor { rest: self.request };
        Some((cursor.word()?, cursor.word()?))
    }
}

fn all_digits(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_digit)
}

/// What is left of a line. Each method takes one field and the blanks before it, never nothing.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// A field that ends at the next blank or at the line's end.
    fn word(&mut self) -> Option<&'a [u8]> {
        // The first field begins the line: a blank there means that it is missing, and the same
        // holds inside a request, so blanks are skipped after a word and not before it.
        let end = self
            .rest
            .iter()
            .position(|&byte| byte == b' ')
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.skip_blanks();
        (!word.is_empty()).then_some(word)
    }

    /// The user, who may have blanks in the name: all that stands before the time.
    fn user(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.windows(2).position(|pair| pair == b" [")?;
        // A tab is a byte of the name like any other.
        let mut user = &self.rest[..end];
        while let [name @ .., b' '] = user {
            user = name;
        }
        self.rest = &self.rest[end..];
        self.skip_blanks();
        (!user.is_empty()).then_some(user)
    }

    /// The time, without its brackets.
    fn bracketed(&mut self) -> Option<&'a [u8]> {
        let inner = self.rest.strip_prefix(b"[")?;
        let (stamp, rest) = inner.split_at_checked(STAMP_BYTES)?;
        self.rest = rest.strip_prefix(b"]")?;
        self.skip_blanks();
        Some(stamp)
    }

    /// A quoted field, without its quotes: a backslash takes the byte after it along.
    fn quoted(&mut self) -> Option<&'a [u8]> {
        let inner = self.rest.strip_prefix(b"\"")?;
        let mut at = 0;
        loop {
            match inner.get(at)? {
                b'"' => break,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        self.rest = &inner[at + 1..];
        self.skip_blanks();
        Some(&inner[..at])
    }

    fn skip_blanks(&mut self) {
        while let [b' ', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COMBINED: &[u8] = br#"10.0.0.1 - alice [17/May/2015:10:05:03 +0000] "GET /a/b?c=d HTTP/1.1" 200 203023 "http://x.y/" "Mozilla/5.0 (\"Q\" \\)""#;

    fn key(line: &[u8], field: Field) -> Option<&[u8]> {
        Line::parse(line)?.key(field)
    }

    #[test]
    fn every_field_of_a_combined_line_is_found() {
        let cases: [(Field, &[u8]); 8] = [
            (Field::Host, b"10.0.0.1"),
            (Field::User, b"alice"),
            (Field::Method, b"GET"),
            (Field::Path, b"/a/b"),
            (Field::Url, b"/a/b?c=d"),
            (Field::Status, b"200"),
            (Field::Referer, b"http://x.y/"),
            (Field::UserAgent, br#"Mozilla/5.0 (\"Q\" \\)"#),
        ];
        for (field, expected) in cases {
            assert_eq!(key(COMBINED, field), Some(expected), "{}", field.name());
        }
        assert_eq!(
            Line::parse(COMBINED).map(|line| line.at_ns),
            Some(1_431_857_103_000_000_000)
        );
    }

    #[test]
    fn good_lines_are_keyed_by_their_exact_bytes() {
        let cases: [(&[u8], Field, &[u8]); 18] = [
            // Common format, with and without a carriage return.
            (
                b"h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" 304 -",
                Field::Host,
                b"h",
            ),
            (
                b"h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" 304 -\r",
                Field::Status,
                b"304",
            ),
            (
                b"h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" - -\r",
                Field::Status,
                b"-",
            ),
            (
                b"2001:db8::1 - - [17/May/2015:10:05:03 +0000] \"\" 408 0",
                Field::Host,
                b"2001:db8::1",
            ),
            // Not UTF-8, and control bytes.
            (
                b"\xff\xfe\x00 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" 200 1",
                Field::Host,
                b"\xff\xfe\x00",
            ),
            (
                b"h - \xe9\xe8 [17/May/2015:10:05:03 +0000] \"GET /\xff HTTP/1.0\" 200 1",
                Field::User,
                b"\xe9\xe8",
            ),
            (
                b"h - - [17/May/2015:10:05:03 +0000] \"GET /\xff?\xfe HTTP/1.0\" 200 1",
                Field::Path,
                b"/\xff",
            ),
            // Users.
            (
                b"h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" 200 1",
                Field::User,
                b"-",
            ),
            (
                b"h - Jo Do [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" 200 1",
                Field::User,
                b"Jo Do",
            ),
            (
                b"h - a[b] [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" 200 1",
                Field::User,
                b"a[b]",
            ),
            (
                b"h - u\t [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" 200 1",
                Field::User,
                b"u\t",
            ),
            // Odd requests.
            (
                b"h - - [17/May/2015:10:05:03 +0000] \"-\" 408 -",
                Field::Host,
                b"h",
            ),
            (
                b"h - - [17/May/2015:10:05:03 +0000] \"\\x16\\x03\" 400 226 \"-\" \"-\"",
                Field::UserAgent,
                b"-",
            ),
            (
                b"h - - [17/May/2015:10:05:03 +0000] \"GET /a\\\"b HTTP/1.0\" 200 1",
                Field::Url,
                b"/a\\\"b",
            ),
            (
                b"h - - [17/May/2015:10:05:03 +0000] \"GET /?x?y\" 200 1",
                Field::Path,
                b"/",
            ),
            // Extra blanks, fields of one's own at the end, an end that was cut off.
            (
                b"h  -  u  [17/May/2015:10:05:03 +0000]  \"GET / HTTP/1.0\"  200  1",
                Field::User,
                b"u",
            ),
            (
                b"h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" 200 1 \"r\" \"a\" 0.003 .",
                Field::UserAgent,
                b"a",
            ),
            (
                b"h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" 200 1 \"http://cut",
                Field::Host,
                b"h",
            ),
        ];
        for (line, field, expected) in cases {
            assert_eq!(key(line, field), Some(expected), "{}", line.escape_ascii());
        }
    }

    #[test]
    fn bad_lines_are_malformed() {
        let cases: [&[u8]; 22] = [
            b"",
            b"\r",
            b" ",
            b"h",
            b"h - -",
            b"h - - ",
            b" h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" 200 1",
            b"h - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" 200 1",
            b"h - - [17/May/2015:10:05:03 +0000]",
            b"h - - [17/May/2015:10:05:03 +0000] ",
            b"h - - [17/May/2015:10:05:03 +0000] GET / HTTP/1.0 200 1",
            b"h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0",
            b"h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\\\" 200 1",
            b"h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\\",
            b"h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\"",
            b"h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" 200",
            b"h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" 20 1",
            b"h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" 2x0 1",
            b"h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" 200 1k",
            b"h - - [17/May/2015:10:05:03 +0000 \"GET / HTTP/1.0\" 200 1",
            b"h - - [32/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" 200 1",
            b"h - - 17/May/2015:10:05:03 +0000 \"GET / HTTP/1.0\" 200 1",
        ];
        for line in cases {
            assert_eq!(Line::parse(line), None, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn a_line_without_the_field_has_no_key() {
        let common = b"h - - [17/May/2015:10:05:03 +0000] \"-\" 408 -";
        let cases: [(&[u8], Field); 9] = [
            (common, Field::Method),
            (common, Field::Path),
            (common, Field::Url),
            (common, Field::Referer),
            (common, Field::UserAgent),
            (
                b"h - - [17/May/2015:10:05:03 +0000] \"GET ?q HTTP/1.0\" 200 1",
                Field::Path,
            ),
            (
                b"h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" 200 1 \"\" \"a\"",
                Field::Referer,
            ),
            (
                b"h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" 200 1 \"r\"",
                Field::UserAgent,
            ),
            (
                b"h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" 200 1 \"r\" \"cut",
                Field::UserAgent,
            ),
        ];
        for (line, field) in cases {
            assert!(Line::parse(line).is_some(), "{}", line.escape_ascii());
            assert_eq!(key(line, field), None, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn a_key_has_at_most_1024_bytes() {
        for (length, fits) in [(1, true), (1_024, true), (1_025, false), (70_000, false)] {
            let mut line = vec![b'k'; length];
            line.extend_from_slice(b" - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.0\" 200 1");
            assert_eq!(key(&line, Field::Host).is_some(), fits, "{length}");
            assert_eq!(key(&line, Field::Path), Some(&b"/"[..]), "{length}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            for field in Field::value_variants() {
                let _ = key(&line, *field);
            }
        }

        #[test]
        fn no_damage_to_a_good_line_makes_the_parser_panic(
            cut in 0..COMBINED.len(),
            edits in proptest::collection::vec((0..COMBINED.len(), any::<u8>()), 0..6),
        ) {
            let mut line = COMBINED.to_vec();
            for (at, byte) in edits {
                line[at] = byte;
            }
            for line in [&line[..], &line[..cut], &line[cut..]] {
                for field in Field::value_variants() {
                    if let Some(key) = key(line, *field) {
                        prop_assert!((1..=KEY_BYTES_MAX).contains(&key.len()));
                    }
                }
            }
        }
    }
}
