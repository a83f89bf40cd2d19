//! Access logs and gzip files spoilt anywhere: `sprag replay` decides on each line or calls it malformed,
//! and its counts always add up.

#[path = "../../core/tests/fuzz/mod.rs"]
mod fuzz;
mod replay {
    #[allow(dead_code)]
    pub(crate) mod command;
    #[allow(dead_code)]
    pub(crate) mod oracle;
}

use std::io::{Read, Write};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use fuzz::{Bytes, Campaign};
use replay::command::{self, Finished};
use replay::oracle::{self, Limit, Verdict};
use serde_json::Value;

const FIELDS: [&str; 8] = [
    "host",
    "user",
    "method",
    "path",
    "url",
    "status",
    "referer",
    "user-agent",
];

/// A request by every field; keeps a log from beginning as gzip does.
const FIRST: &[u8] = b"h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1 \"r\" \"a\"";

#[test]
fn each_line_is_decided_as_an_oracle_does_or_is_malformed() {
    // A few bytes short of the longest keys.
    let long = "k".repeat(1_020);
    let long = format!(
        "{long} - {long} [17/May/2015:10:05:03 +0000] \"GET {long} HTTP/1.1\" 200 1 \"{long}\" \"{long}\""
    );
    Campaign {
        test: "each_line_is_decided_as_an_oracle_does_or_is_malformed",
        corpus: Bytes::all(&[
            FIRST,
            long.as_bytes(),
            br#"10.0.0.1 - alice [17/May/2015:10:05:03 +0000] "GET /a/b?c=d HTTP/1.1" 200 203023 "http://x.y/" "Mozilla/5.0 (\"Q\" \\)""#,
            br#"2001:db8::1 - Jo Do [31/Dec/2016:23:59:60 -0330] "" 408 - "-" "-" 0.003 ."#,
            br#"h  -  a[b]  [01/Jan/1970:00:00:00 +2359]  "-"  -  0"#,
            b"h - - [29/Feb/2000:00:00:00 +0000] \"GET /\xff?\xfe HTTP/1.0\" 304 -\r",
        ]),
        regressions: Bytes::all(&[
            b"",
            b"\r",
            b"\x1f\x8b",
            b"h - - [17/May/2015:10:05:03 +0000] \"\\",
            b"h - - [17/May/2015:10:05:03 +0000] \"\" 200 1 \"\\",
            b"h - - [11/Apr/2262:23:47:17 +0000] \"\" 200 1",
            b"h - \t [17/May/2015:10:05:03 +0000] \"\" 200 1",
            b"h - - [21/Sep/1677:00:12:43 -2359] \"\" 200 1",
        ]),
        dictionary: &[
            b" ", b"\"", b"[", b"]", b"\\", b"\\\"", b"-", b" [", b"] \"", b"\" 200 1", b"\r", b"\t",
            b"17/May/2015:10:05:03 +0000", b"/Feb/", b"/Jun/", b":60 ", b" +1400", b" -2359", b"2262",
            b"1677", b"0000", b"29", b"30", b"31", b"24", b"99", b"HTTP/1.1", b"?", b"\xff", b"\0",
        ],
        inputs: 6_000,
        soak_times: 100,
        batch: 200,
    }
    .run_batched(|inputs| {
        let lines: Vec<Vec<u8>> = inputs.iter().map(|input| line(&input.0)).collect();
        try_lines(&lines)
    });
}

/// One line of what was made of it.
fn line(bytes: &[u8]) -> Vec<u8> {
    bytes
        .iter()
        .copied()
        .filter(|byte| *byte != b'\n')
        .collect()
}

fn log(lines: &[Vec<u8>]) -> Vec<u8> {
    let mut log = [FIRST, b"\n"].concat();
    for line in lines {
        log.extend_from_slice(line);
        log.push(b'\n');
    }
    log
}

const ASKED: &str = "7/minute;burst=3";
const LIMIT: Limit = Limit {
    count: 7,
    period_s: 60,
    burst: 3,
};

/// Of each line, by which fields it is a request, and how much of one it looks like.
fn try_lines(lines: &[Vec<u8>]) -> Vec<(u8, [usize; 4])> {
    let text = log(lines);
    let expected = &oracle::requests(&text, 0)[1..];
    let mut by_fields = vec![0_u8; lines.len()];
    let mut agreed = Vec::new();
    for (bit, field) in FIELDS.iter().enumerate() {
        let args = format!("- --limit {ASKED} --by {field}");
        let told = decisions(&command::replay(&format!("{args} --decisions"), &text));
        assert_eq!(told.len(), lines.len() + 1, "{field}");
        check_counts(&command::replay(&format!("{args} --json"), &text), &told);
        for (line, verdict) in told[1..].iter().enumerate() {
            let is_request = *verdict != Verdict::Malformed;
            by_fields[line] |= u8::from(is_request) << bit;
            if bit == 0 {
                let shown = lines[line].escape_ascii();
                assert!(is_request || expected[line].is_none(), "a request: {shown}");
                // Only a user with blanks in the name is read in more ways than one.
                if is_request == expected[line].is_some() {
                    agreed.push(lines[line].clone());
                }
            }
        }
    }
    let text = log(&agreed);
    let args = format!("- --limit {ASKED} --decisions");
    let told = decisions(&command::replay(&args, &text));
    let expected = oracle::token_bucket(&oracle::requests(&text, 0), LIMIT, 1);
    for (index, (told, expected)) in told.iter().zip(&expected).enumerate() {
        assert_eq!(told, expected, "line {index} of {}", text.escape_ascii());
    }
    assert_eq!(told.len(), expected.len());

    let shape = |line: &[u8]| {
        [(b' ', 9), (b'"', 7), (b'[', 2), (b'\\', 2)]
            .map(|(mark, most)| count(line, mark).min(most))
    };
    let shapes = lines.iter().map(|line| shape(line));
    by_fields.into_iter().zip(shapes).collect()
}

fn count(bytes: &[u8], wanted: u8) -> usize {
    bytes.split(|byte| *byte == wanted).count() - 1
}

fn decisions(finished: &Finished) -> Vec<Verdict> {
    assert_eq!((finished.code, &*finished.err), (Some(0), ""));
    let text = std::str::from_utf8(&finished.out).expect("text");
    let lines = text.lines().enumerate().map(|(index, line)| {
        let (number, verdict) = line.split_once(' ').expect("two words");
        assert_eq!(number, (index + 1).to_string());
        match verdict {
            "allowed" => Verdict::Allowed,
            "refused" => Verdict::Refused,
            "malformed" => Verdict::Malformed,
            other => panic!("{other}"),
        }
    });
    lines.collect()
}

/// The report of a log whose lines were decided so.
fn check_counts(finished: &Finished, told: &[Verdict]) {
    assert_eq!((finished.code, &*finished.err), (Some(0), ""));
    let report = json(finished);
    let count = |verdict| told.iter().filter(|told| **told == verdict).count() as u64;
    assert_eq!(number(&report, "allowed"), count(Verdict::Allowed));
    assert_eq!(number(&report, "refused"), count(Verdict::Refused));
    assert_eq!(number(&report, "malformed"), count(Verdict::Malformed));
    assert_eq!(report["complete"], true);
    check_sums(&report);
}

fn check_sums(report: &Value) {
    let requests = number(report, "requests");
    let refused = number(report, "refused");
    assert_eq!(number(report, "allowed") + refused, requests);
    assert!(number(report, "keys") <= requests);
    let listed = report["refused_keys"].as_array().expect("an array");
    assert!(listed.iter().map(|key| number(key, "refused")).sum::<u64>() <= refused);
}

fn number(value: &Value, name: &str) -> u64 {
    value[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name}: {value}"))
}

fn json(finished: &Finished) -> Value {
    serde_json::from_slice(&finished.out).expect("the report is JSON")
}

fn gzip(text: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(text).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

#[test]
fn a_spoilt_gzip_file_gives_the_lines_before_the_fault_and_then_an_error() {
    let text = [FIRST, b"\n"].concat().repeat(30);
    let odd = [&text[..70], b"\n\n\xff\nno line feed"].concat();
    let members = [gzip(&text, 9), gzip(b"", 9), gzip(&odd, 0)].concat();
    Campaign {
        test: "a_spoilt_gzip_file_gives_the_lines_before_the_fault_and_then_an_error",
        corpus: vec![
            Bytes(gzip(&text, 9)),
            Bytes(gzip(&odd, 0)),
            Bytes(gzip(b"", 6)),
            Bytes(members),
            // With a name and a comment.
            Bytes(
                [
                    &b"\x1f\x8b\x08\x1c\0\0\0\0\0\x03\x02\0xxname\0comment\0"[..],
                    &gzip(&text, 6)[10..],
                ]
                .concat(),
            ),
        ],
        regressions: Bytes::all(&[
            b"\x1f",
            b"\x1f\x8b",
            b"\x1f\x8b\x08\x04\0\0\0\0\0\0\xff\xff",
        ]),
        dictionary: &[
            b"\x1f\x8b",
            b"\x1f\x8b\x08\0\0\0\0\0\0\x03",
            b"\x1f\x8b\x08\x1f",
            b"\0\0\xff\xff",
            b"\n",
        ],
        inputs: 600,
        soak_times: 100,
        batch: 1,
    }
    .run(|Bytes(bytes)| try_gzip(bytes));
}

/// The error, and roughly how many lines came before it.
fn try_gzip(bytes: &[u8]) -> (String, u32) {
    let finished = command::replay("- --limit 7/day --json", bytes);
    let mut text = Vec::new();
    let is_gzip = bytes.starts_with(b"\x1f\x8b");
    let result = if is_gzip {
        MultiGzDecoder::new(bytes).read_to_end(&mut text)
    } else {
        (&bytes[..]).read_to_end(&mut text)
    };
    let mut lines = count(&text, b'\n') as u64;
    if result.is_ok() && text.last().is_some_and(|last| *last != b'\n') {
        lines += 1;
    }
    let report = json(&finished);
    check_sums(&report);
    let requests = number(&report, "requests");
    assert_eq!(requests + number(&report, "malformed"), lines);
    assert_eq!(report["complete"], result.is_ok());
    let has_none = lines > 0 && requests == 0;
    assert_eq!(finished.code, Some(i32::from(result.is_err() || has_none)));
    let error = if finished.code == Some(0) {
        assert_eq!(finished.err, "");
        String::new()
    } else {
        let line = finished.err.strip_suffix('\n').expect("a whole line");
        assert!(
            line.starts_with("sprag: ") && !line.contains(char::is_control),
            "{line:?}"
        );
        assert!(
            line.contains(&format!("line {lines}")) || line.contains(&format!("of {lines} read")),
            "{line}"
        );
        line.replace(|character: char| character.is_ascii_digit(), "")
    };
    (error, lines.checked_ilog2().map_or(0, |bits| bits + 1))
}
