//! What a replay found, as text for people and as JSON for programs: owns the words and the layout,
//! never a number in them.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use super::tally::Count;
use crate::printable::{harmless, hex, readable};
use crate::span;

/// The findings of a replay.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Well-formed lines that were decided.
    pub(crate) requests: u64,
    /// Lines that were not: with the requests, all lines that were read.
    pub(crate) malformed: u64,
    /// Requests with a time before that of one above them, which were decided at that one's.
    pub(crate) late: u64,
    /// By how much, at most, in nanoseconds.
    pub(crate) late_ns_max: u64,
    /// Different keys among the requests.
    pub(crate) keys: u64,
    /// Requests that the limit would have let pass.
    pub(crate) allowed: u64,
    /// Requests that it would have refused.
    pub(crate) refused: u64,
    /// The keys that were refused most.
    pub(crate) refused_keys: Vec<RefusedKey>,
    /// Time per decision in nanoseconds, reading and parsing not counted; none without requests.
    pub(crate) ns_per_decision: Option<f64>,
    /// Memory per key that the limiter holds, in bytes; none without requests.
    pub(crate) bytes_per_key: Option<f64>,
    /// The limits, in the order they were given.
    pub(crate) limits: Vec<LimitCount>,
    /// The name of the field that the limit is kept by.
    pub(crate) by: &'static str,
    /// The cost of each request.
    pub(crate) cost: u64,
    /// Whether the log was read and decided to its end.
    pub(crate) complete: bool,
}

/// One of the limits.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LimitCount {
    /// The limit's text.
    pub(crate) limit: String,
    /// The algorithm's name.
    pub(crate) algorithm: &'static str,
    /// Requests that it had no room for, other limits or not.
    pub(crate) refused: u64,
}

/// One of the keys that were refused most.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RefusedKey {
    /// The key; bytes that are not UTF-8 are written `\xNN`.
    key: String,
    /// The key's exact bytes in hexadecimal, where they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_hex: Option<String>,
    requests: u64,
    refused: u64,
}

impl RefusedKey {
    /// The entry of `key`.
    pub(crate) fn new(key: &[u8], count: Count) -> Self {
        let exact = std::str::from_utf8(key).ok();
        Self {
            key: exact.map_or_else(|| readable(key), str::to_owned),
            key_hex: exact.is_none().then(|| hex(key)),
            requests: count.requests,
            refused: count.refused,
        }
    }
}

impl Report {
    /// Writes it as one JSON object on one line.
    pub(crate) fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }

    /// Writes it for people. A key's control bytes, and what is not UTF-8, come as `\xNN`, so that a
    /// log can't write to the terminal.
    pub(crate) fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        for count in &self.limits {
            let LimitCount {
                limit,
                algorithm,
                refused,
            } = count;
            let by = self.by;
            write!(out, "limit              {limit} by {by}, {algorithm}")?;
            if self.limits.len() > 1 {
                write!(out, ", no room for {refused}")?;
            }
            writeln!(out)?;
        }
        for (name, count) in [
            ("requests", self.requests),
            ("malformed", self.malformed),
            ("keys", self.keys),
            ("allowed", self.allowed),
            ("refused", self.refused),
        ] {
            writeln!(out, "{name:<16}{count:>12}")?;
        }
        if self.late > 0 {
            // One stamp from the future holds the time for all that come after it.
            let by = span::to_wait(Duration::from_nanos(self.late_ns_max));
            writeln!(out, "{:<16}{:>12}  by up to {by}", "late", self.late)?;
        }
        for (name, value) in [
            ("ns per decision", self.ns_per_decision),
            ("bytes per key", self.bytes_per_key),
        ] {
            match value {
                Some(value) => writeln!(out, "{name:<16}{value:>12.1}")?,
                None => writeln!(out, "{name:<16}{:>12}", "-")?,
            }
        }
        if self.refused_keys.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\n{:>12} of {:>12}  most refused",
            "refused", "requests"
        )?;
        for entry in &self.refused_keys {
            let RefusedKey {
                requests, refused, ..
            } = entry;
            let key = harmless(&entry.key);
            writeln!(out, "{refused:>12} of {requests:>12}  {key}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: Count = Count {
        requests: 9,
        refused: 4,
    };

    fn report(keys: &[&[u8]]) -> Report {
        Report {
            requests: 12,
            malformed: 1,
            late: 0,
            late_ns_max: 0,
            keys: 3,
            allowed: 8,
            refused: 4,
            refused_keys: keys.iter().map(|key| RefusedKey::new(key, COUNT)).collect(),
            ns_per_decision: Some(41.25),
            bytes_per_key: None,
            limits: vec![LimitCount {
                limit: "3/day;burst=4".to_owned(),
                algorithm: "token-bucket",
                refused: 4,
            }],
            by: "host",
            cost: 1,
            complete: true,
        }
    }

    fn text(report: &Report) -> String {
        let mut out = Vec::new();
        report.write_text(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_text_lines_up() {
        let expected = "\
limit              3/day;burst=4 by host, token-bucket
requests                  12
malformed                  1
keys                       3
allowed                    8
refused                    4
ns per decision         41.2
bytes per key              -

     refused of     requests  most refused
           4 of            9  10.0.0.1
";
        assert_eq!(text(&report(&[b"10.0.0.1"])), expected);
        assert!(!text(&report(&[])).contains("most"));
        let late = Report {
            late: 7,
            late_ns_max: 90_000_000_000,
            ..report(&[])
        };
        let line = "late                       7  by up to 1 min 30 s\n";
        assert!(text(&late).contains(line), "{}", text(&late));
        let mut several = report(&[]);
        several.limits.push(LimitCount {
            limit: "9/year;window=fixed".to_owned(),
            algorithm: "fixed-window",
            refused: 0,
        });
        let lines = "\
limit              3/day;burst=4 by host, token-bucket, no room for 4
limit              9/year;window=fixed by host, fixed-window, no room for 0
requests ";
        assert!(text(&several).starts_with(lines), "{}", text(&several));
    }

    #[test]
    fn keys_can_not_write_to_the_terminal() {
        let keys: [(&[u8], &str); 6] = [
            (b"plain \\x41", "plain \\x41"),
            ("é→𝄞".as_bytes(), "é→𝄞"),
            (b"\x1b[31mred\x07", "\\x1b[31mred\\x07"),
            (b"a\r\tb\x7f", "a\\x0d\\x09b\\x7f"),
            (b"\xff\xc3(\xe2\x82", "\\xff\\xc3(\\xe2\\x82"),
            ("\u{9b}1m\u{202e}".as_bytes(), "\\xc2\\x9b1m\\xe2\\x80\\xae"),
        ];
        for (key, expected) in keys {
            let text = text(&report(&[key]));
            let line = text.lines().last().unwrap_or_default();
            assert_eq!(line.split_once("9  ").map(|(_, key)| key), Some(expected));
        }
    }

    #[test]
    fn the_json_is_one_object_that_keeps_keys_exact() {
        let mut out = Vec::new();
        let keys: [&[u8]; 3] = [b"q\"\\\x01", "é".as_bytes(), b"\xffa"];
        report(&keys).write_json(&mut out).unwrap();
        assert_eq!(out.split_inclusive(|&byte| byte == b'\n').count(), 1);
        let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let expected = serde_json::json!({
            "requests": 12, "malformed": 1,
                "late": 0,
                "late_ns_max": 0, "keys": 3, "allowed": 8, "refused": 4,
            "refused_keys": [
                {"key": "q\"\\\u{1}", "requests": 9, "refused": 4},
                {"key": "é", "requests": 9, "refused": 4},
                {"key": "\\xffa", "key_hex": "ff61", "requests": 9, "refused": 4},
            ],
            "ns_per_decision": 41.25, "bytes_per_key": null,
            "limits": [{"limit": "3/day;burst=4", "algorithm": "token-bucket", "refused": 4}],
            "by": "host", "cost": 1,
            "complete": true,
        });
        assert_eq!(json, expected);
    }
}
