//! The course of a replay against an engine that only writes down what it is asked.

use std::cell::RefCell;
use std::io::{BufReader, Read};

use clap::Parser;
use proptest::prelude::*;

use super::decide::RefusedBy;
use super::*;

/// What an engine was asked: key, time, cost.
type Asked = (Vec<u8>, i64, u64);

/// Refuses every third request and fails at one.
struct Scribe<'a> {
    asked: &'a RefCell<Vec<Asked>>,
    fails_at: usize,
}

impl Decide for Scribe<'_> {
    fn decide(&mut self, key: &[u8], at_ns: i64, cost: u64) -> Result<RefusedBy, String> {
        let mut asked = self.asked.borrow_mut();
        if asked.len() == self.fails_at {
            return Err("the table is full".to_owned());
        }
        asked.push((key.to_vec(), at_ns, cost));
        Ok(asked.len().is_multiple_of(3).into())
    }

    fn keys(&self) -> u64 {
        2
    }

    fn bytes(&self) -> u64 {
        192
    }
}

/// A replay of `text`: what was found, told and asked.
fn played(text: impl Read, fails_at: usize) -> (Played, Vec<(u64, Verdict)>, Vec<Asked>) {
    let asked = RefCell::new(Vec::new());
    let mut told = Vec::new();
    let plan = Plan {
        by: Field::Host,
        cost: 5,
    };
    let open = |_| {
        Ok(Scribe {
            asked: &asked,
            fails_at,
        })
    };
    let played = play(BufReader::new(text), &plan, open, |line, verdict| {
        told.push((line, verdict));
        Ok(())
    });
    let Ok(played) = played else {
        panic!("neither the engine nor the teller fails")
    };
    (played, told, asked.into_inner())
}

fn line(host: &str, second: u32) -> String {
    format!("{host} - - [01/Jan/1970:00:00:{second:02} +0000] \"GET / HTTP/1.1\" 200 1\n")
}

fn never() -> usize {
    usize::MAX
}

#[test]
fn time_never_goes_back() {
    let stamps = [5, 3, 9, 9, 0, 10];
    let text: String = stamps.map(|second| line("h", second)).concat();
    let (_, _, asked) = played(text.as_bytes(), never());
    let seconds: Vec<_> = asked
        .iter()
        .map(|(_, at_ns, _)| at_ns / 1_000_000_000)
        .collect();
    assert_eq!(seconds, [5, 5, 9, 9, 9, 10]);
}

#[test]
fn a_malformed_line_does_not_move_time() {
    let long_key = "k".repeat(1_025);
    let text = [line("a", 1), line(&long_key, 50), line("a", 2)].concat();
    let (played, told, asked) = played(text.as_bytes(), never());
    let seconds: Vec<_> = asked
        .iter()
        .map(|(_, at_ns, _)| at_ns / 1_000_000_000)
        .collect();
    assert_eq!(seconds, [1, 2]);
    assert_eq!((played.lines, played.tally.requests), (3, 2));
    assert_eq!(told[1], (2, Verdict::Malformed));
}

#[test]
fn every_line_is_told_once_and_in_order() {
    // More than two batches, with malformed lines at both ends and all between.
    let mut text = "garbage\n\n".to_owned();
    for number in 0..9_000 {
        text.push_str(&line(&format!("h{}", number % 7), 1));
        if number % 5 == 0 {
            text.push_str("garbage\n");
        }
    }
    text.push_str("\n\nno line feed");
    let (played, told, asked) = played(text.as_bytes(), never());
    assert!(played.stop.is_none());
    assert_eq!(played.lines, 9_000 + 1_800 + 5);
    assert_eq!(played.tally.requests, 9_000);
    assert_eq!(played.tally.refused, 3_000);
    assert_eq!(played.tally.keys(), 7);
    assert_eq!(played.bytes_per_key, Some(96.0));
    assert_eq!(asked.len(), 9_000);
    assert!(asked.iter().all(|(_, _, cost)| *cost == 5));
    let mut requests = 0;
    for ((number, text), told) in (1..).zip(text.lines()).zip(&told) {
        let verdict = if text.starts_with('h') {
            requests += 1;
            if requests % 3 == 0 {
                Verdict::Refused
            } else {
                Verdict::Allowed
            }
        } else {
            Verdict::Malformed
        };
        assert_eq!(*told, (number, verdict));
    }
    assert_eq!(told.len() as u64, played.lines);
}

#[test]
fn a_failed_decision_ends_the_replay_before_its_line() {
    for fails_at in [0, 1, 10, 4_095, 4_096, 4_999] {
        let text = ["garbage\n".to_owned(), line("h", 1)]
            .concat()
            .repeat(5_000);
        let (played, told, asked) = played(text.as_bytes(), fails_at);
        let failed = fails_at as u64 * 2 + 2;
        let Some(Stop::Decide(failure)) = played.stop else {
            panic!("{fails_at} must fail")
        };
        assert_eq!(failure.line, failed);
        assert_eq!(failure.reason, "the table is full");
        assert_eq!(played.lines, failed - 1);
        assert_eq!(told.len() as u64, failed - 1);
        assert_eq!(played.tally.requests, fails_at as u64);
        assert_eq!(asked.len(), fails_at);
    }
}

#[test]
fn a_log_without_requests_opens_no_engine() {
    for (text, lines) in [("", 0), ("\n", 1), ("garbage", 1)] {
        let (played, told, _) = played(text.as_bytes(), 0);
        assert!(played.stop.is_none() && played.bytes_per_key.is_none());
        assert_eq!((played.lines, told.len()), (lines, lines as usize));
    }
}

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

fn args(text: &str) -> Result<Args, String> {
    let words = ["replay"].into_iter().chain(text.split_whitespace());
    let command = Command::try_parse_from(words).map_err(|error| error.to_string())?;
    Ok(command.args)
}

#[test]
fn arguments_that_make_no_sense_are_refused_and_named() {
    let cases = [
        ("log", "--limit"),
        ("--limit 1/s", "FILE"),
        (
            "log --limit 1/month",
            "second, minute, hour, day, week or year",
        ),
        ("log --limit 1/s --by colour", "host, user, method, path"),
        (
            "log --limit 1/s --algorithm leaky",
            "token-bucket, fixed-window, sliding-window",
        ),
        ("log --limit 1/s --cost 0", "from 1 to"),
        ("log --limit 1/s --decisions --json", "cannot be used"),
        ("log --limit 1/s --decisions --top 3", "cannot be used"),
        ("log --limit 3/s --cost 4", "lower the cost"),
        ("log --limit 9/s;burst=3 --cost 4", "lower the cost"),
        (
            "log --limit 3/s --cost 4 --algorithm fixed-window",
            "lower the cost",
        ),
        (
            "log --limit 3/s;burst=3 --algorithm fixed-window",
            "leave the burst out",
        ),
        (
            "log --limit 3/s;window=fixed --algorithm token-bucket",
            "leave one of them out",
        ),
        (
            "log --limit 3/s --limit 9/h --cost 4",
            "--limit 3/second can grant",
        ),
        (
            "log --limit 3/s --limit 9/h;window=fixed --algorithm token-bucket",
            "--limit 9/h;window=fixed: says window=fixed",
        ),
        (
            "log --limit 3/s;window=sliding --algorithm fixed-window",
            "says window=sliding and --algorithm fixed-window says otherwise",
        ),
    ];
    for (text, part) in cases {
        let result = args(text).and_then(|args| {
            limits(&args).map_err(|error| {
                assert_eq!(error.exit_code(), ExitCode::from(2));
                error.to_string()
            })
        });
        let error = result.expect_err(text);
        assert!(error.contains(part), "{text}: {error}");
    }
    let many = format!("log{}", " --limit 1/s".repeat(33));
    let error = limits(&args(&many).expect("33 limits")).expect_err("33 limits");
    assert!(error.to_string().contains("32 limits are the most"));
    for text in [
        "log --limit 3/s --cost 3",
        "log --limit 1/s;burst=4 --cost 4 --top 0",
        "- --limit 3/d --algorithm fixed-window --by ip --json",
        "- --limit 3/d --decisions",
        "- --limit 3/10s;window=fixed --cost 3",
        "- --limit 0/minute --cost 3",
    ] {
        assert!(limits(&args(text).expect(text)).is_ok(), "{text}");
    }
}

/// A writer whose reader has gone away.
struct Gone(io::ErrorKind);

impl Write for Gone {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_that_has_gone_away_is_no_error_and_a_full_disk_is() {
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/access.log.gz");
    for flag in ["--json", "--decisions", ""] {
        let args = args(&format!("{log} --limit 3/s {flag}")).expect("good arguments");
        let gone = run(&args, &mut Gone(io::ErrorKind::BrokenPipe));
        assert!(gone.is_ok(), "{gone:?}");
        let full = run(&args, &mut Gone(io::ErrorKind::StorageFull));
        assert!(matches!(full, Err(Error::Write(_))), "{full:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_a_replay_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        feeds in proptest::collection::vec(0..400_usize, 0..9),
    ) {
        let mut bytes = bytes;
        for at in feeds {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = b'\n';
            }
        }
        let (played, told, asked) = played(&bytes[..], never());
        prop_assert!(played.stop.is_none());
        prop_assert_eq!(played.lines, told.len() as u64);
        prop_assert_eq!(played.tally.requests, asked.len() as u64);
    }
}
