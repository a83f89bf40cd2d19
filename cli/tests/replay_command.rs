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
fn a_log_without_requests_is_reported_and_remarked_on() {
    let finished = command::replay("- --limit 7/day --json", b"");
    assert_eq!((finished.code, finished.err.as_str()), (Some(0), ""));
    let report = json(&finished);
    for count in ["requests", "malformed", "keys", "allowed", "refused"] {
        assert_eq!(report[count], 0, "{count}");
    }
    assert_eq!(report["refused_keys"], Value::Array(Vec::new()));
    assert_eq!(report["ns_per_decision"], Value::Null);
    assert_eq!(report["bytes_per_key"], Value::Null);
    assert_eq!(report["complete"], true);

    let finished = command::replay("- --limit 7/day --json --by referer", LINE);
    assert_eq!(finished.code, Some(0));
    assert_eq!(json(&finished)["malformed"], 1);
    assert!(one_line(&finished).contains("referer"));
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
        ("- --limit 7/fortnight", "second, minute, hour, day"),
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
        "exit code",
        "--decisions",
    ] {
        assert!(help.contains(word), "{word}");
    }
}
