//! `sprag replay` as a user meets it: compressed and broken input, errors, exit codes, help.

mod replay {
    pub(crate) mod command;
}

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use replay::command::{self, Finished, REAL_LOG};
use serde_json::Value;

const LINE: &[u8] = b"h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1\n";

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

fn json(finished: &Finished) -> Value {
    serde_json::from_slice(&finished.out).expect("the report is JSON")
}

/// Standard error of a failure: one line.
fn one_line(finished: &Finished) -> &str {
    let line = finished.err.strip_suffix('\n').expect("a whole line");
    assert!(
        !line.contains('\n') && line.starts_with("sprag: "),
        "{line}"
    );
    line
}

#[test]
fn plain_and_compressed_logs_give_the_same_decisions() {
    let plain = [LINE.repeat(40), b"garbage\n\n".to_vec(), LINE.repeat(3)].concat();
    let args = "- --limit 7/day --decisions";
    let expected = command::replay(args, &plain).out;
    assert_eq!(expected.split_inclusive(|&byte| byte == b'\n').count(), 45);
    let (head, tail) = plain.split_at(1_000);
    for input in [gzip(&plain), [gzip(head), gzip(b""), gzip(tail)].concat()] {
        assert_eq!(command::replay(args, &input).out, expected);
    }
}

#[test]
fn a_log_that_breaks_off_is_reported_up_to_there_and_is_an_error() {
    let bytes = std::fs::read(REAL_LOG).expect("the real log is there");
    let finished = command::replay("- --limit 7/day --json", &bytes[..bytes.len() / 2]);
    assert_eq!(finished.code, Some(1));
    let report = json(&finished);
    let requests = report["requests"].as_u64().unwrap_or_default();
    assert!((4_000..6_000).contains(&requests), "{requests}");
    assert_eq!(report["malformed"], 0);
    assert_eq!(report["complete"], false);
    let error = one_line(&finished);
    assert!(
        error.contains(&format!("after line {requests};")),
        "{error}"
    );

    let mut damaged = gzip(&LINE.repeat(500));
    let at = damaged.len() - 6;
    damaged[at] ^= 0x40;
    let finished = command::replay("- --limit 7/day --json", &damaged);
    assert_eq!(finished.code, Some(1));
    assert_eq!(json(&finished)["requests"], 500);
    assert!(one_line(&finished).contains("past line 500"));
}

#[test]
fn an_empty_log_is_no_error_and_one_without_a_request_is() {
    for args in ["- --limit 7/day --json", "- --limit 7/day --decisions"] {
        let finished = command::replay(args, b"");
        assert_eq!((finished.code, finished.err.as_str()), (Some(0), ""));
    }
    let report = json(&command::replay("- --limit 7/day --json", b""));
    for count in ["requests", "malformed", "keys", "allowed", "refused"] {
        assert_eq!(report[count], 0, "{count}");
    }
    assert_eq!(report["refused_keys"], Value::Array(Vec::new()));
    assert_eq!(report["ns_per_decision"], Value::Null);
    assert_eq!(report["bytes_per_key"], Value::Null);
    assert_eq!(report["complete"], true);

    let cases: [(&str, &[u8], u64, &str); 4] = [
        ("referer", LINE, 1, "a request with a referer, of 1 read"),
        ("host", b"\n\n", 2, "\"REQUEST\" STATUS SIZE"),
        ("host", b"{\"time\": 1}", 1, "convert the log"),
        (
            "host",
            b"\x00\xff\n\x1b[31m",
            2,
            "choose another field with --by",
        ),
    ];
    for (field, log, lines, part) in cases {
        let args = format!("- --limit 7/day --by {field}");
        let finished = command::replay(&format!("{args} --json"), log);
        assert_eq!(finished.code, Some(1), "{part}");
        let error = one_line(&finished);
        assert!(error.contains(part), "{error}");
        let report = json(&finished);
        assert_eq!(
            (&report["requests"], &report["malformed"]),
            (&0.into(), &lines.into())
        );
        assert_eq!(report["complete"], true);
        let finished = command::replay(&format!("{args} --decisions"), log);
        assert_eq!(finished.code, Some(1), "{part}");
        one_line(&finished);
    }
}

#[test]
fn limits_are_those_of_the_engine() {
    // Six requests within a minute of each other, the last two in the next ten seconds.
    let log: Vec<u8> = [0, 0, 1, 2, 10, 11]
        .iter()
        .flat_map(|second| {
            format!("h - - [17/May/2015:10:05:{second:02} +0000] \"GET / HTTP/1.1\" 200 1\n")
                .into_bytes()
        })
        .collect();
    let cases = [
        (
            "2/10s;window=fixed",
            4,
            "2/10s;window=fixed",
            "fixed-window",
        ),
        (
            "2/10s;window=fixed --algorithm fixed-window",
            4,
            "2/10s;window=fixed",
            "fixed-window",
        ),
        (
            "2/10s --algorithm fixed-window",
            4,
            "2/10s;window=fixed",
            "fixed-window",
        ),
        (
            "2/10s;window=sliding",
            2,
            "2/10s;window=sliding",
            "sliding-window",
        ),
        (
            "2/10s --algorithm sliding-window",
            2,
            "2/10s;window=sliding",
            "sliding-window",
        ),
        ("1/10s;burst=2", 3, "1/10s;burst=2", "token-bucket"),
        ("2/weeks", 2, "2/week", "token-bucket"),
        ("0/minute", 0, "0/minute", "token-bucket"),
        (
            "0/minute;window=fixed",
            0,
            "0/minute;window=fixed",
            "fixed-window",
        ),
        ("2/days", 2, "2/day", "token-bucket"),
    ];
    for (limit, allowed, canonical, algorithm) in cases {
        let finished = command::replay(&format!("- --json --limit {limit}"), &log);
        assert_eq!(
            (finished.err.as_str(), finished.code),
            ("", Some(0)),
            "{limit}"
        );
        let report = json(&finished);
        assert_eq!(report["allowed"], allowed, "{limit}");
        assert_eq!(
            (
                &report["limits"][0]["limit"],
                &report["limits"][0]["algorithm"]
            ),
            (&canonical.into(), &algorithm.into())
        );
    }
}

#[test]
fn lines_over_the_bound_are_malformed() {
    let mut log = LINE.to_vec();
    log.extend(std::iter::repeat_n(b'x', 3 << 20));
    log.push(b'\n');
    log.extend_from_slice(LINE);
    let finished = command::replay("- --limit 7/day --json", &log);
    let report = json(&finished);
    assert_eq!(
        (&report["requests"], &report["malformed"]),
        (&2.into(), &1.into())
    );
}

#[test]
fn failures_say_what_to_do_and_tell_usage_from_input() {
    let cases = [
        ("/no/such/log --limit 7/day", 1, "name a log"),
        ("/ --limit 7/day", 1, "name a log"),
        ("- --limit 7/day --cost 8", 2, "lower the cost"),
        (
            "- --limit 7/day;burst=9 --algorithm fixed-window",
            2,
            "leave",
        ),
    ];
    for (args, code, part) in cases {
        let finished = command::replay(args, LINE);
        assert_eq!(finished.code, Some(code), "{args}");
        assert!(finished.out.is_empty(), "{args}");
        let error = one_line(&finished);
        assert!(error.contains(part), "{args}: {error}");
    }
    for (args, part) in [
        ("-", "--limit"),
        (
            "- --limit 7/fortnight",
            "second, minute, hour, day, week or year",
        ),
        ("- --limit 7", "write COUNT/PERIOD"),
        ("- --limit 7/day --by colour", "host, user, method"),
    ] {
        let finished = command::replay(args, LINE);
        assert_eq!(finished.code, Some(2), "{args}");
        assert!(finished.err.contains(part), "{args}: {}", finished.err);
    }
}

#[test]
fn help_names_every_choice() {
    let finished = command::replay("--help", b"");
    assert_eq!(finished.code, Some(0));
    let help = String::from_utf8(finished.out).expect("help is text");
    for word in [
        "token-bucket",
        "fixed-window",
        "user-agent",
        "burst=COUNT",
        "malformed",
        "Exit codes:",
        "--decisions",
    ] {
        assert!(help.contains(word), "{word}");
    }
}
