//! Every argument of the command that is more than a word, spoilt anywhere: the exit code is one that the
//! help has, an error is one line, and what is asked for as JSON is JSON.
#![cfg(target_os = "linux")]

#[path = "../../core/tests/fuzz/mod.rs"]
mod fuzz;
mod support;

use fastrand::Rng;
use fuzz::{Campaign, Input, literal, mutate_bytes, simpler_bytes};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::process::{Output, Stdio};
use support::Regions;

/// A value for the place that is left open in one of the commands.
#[derive(Clone)]
struct Argument {
    /// An index into [`COMMANDS`].
    command: usize,
    value: Vec<u8>,
}

/// A command with `{}` in one place; the exit codes that it may have.
type Form = (&'static str, &'static [i32]);

/// Usage error or anything else that is wrong.
const LOCK: &[i32] = &[0, 64];
/// Those of one batch wait for each other.
const WAIT: &[i32] = &[0, 64, 124];
/// Those of one batch may meet.
const ONCE: &[i32] = &[0, 64, 75];
const ANSWER: &[i32] = &[0, 1, 2];
/// Something else is wrong with these, so that nothing is measured and nothing made.
const NEVER: &[i32] = &[2];

const COMMANDS: [Form; 41] = [
    ("{}", &[0, 2, 64]),
    ("replay LOG --json --limit={}", ANSWER),
    ("replay LOG --json --limit=5/s --by={}", ANSWER),
    ("replay LOG --json --limit=5/s --algorithm={}", ANSWER),
    ("replay LOG --json --limit=5/s --cost={}", ANSWER),
    ("replay LOG --json --limit=5/s --top={}", ANSWER),
    ("replay {} --json --limit=5/s", ANSWER),
    ("limit l {} --key=k --at=SPACE --json", ANSWER),
    ("limit {} 5/s --key=k --at=SPACE --json", ANSWER),
    ("limit l 5/s --key={} --at=SPACE --json", ANSWER),
    ("limit l 5/s --key=k --at=SPACE --json --cost={}", ANSWER),
    ("override set l {} --key=k --at=SPACE --json", ANSWER),
    ("override set {} 5/s --key=k --at=SPACE --json", ANSWER),
    ("override set l 5/s --key={} --at=SPACE --json", ANSWER),
    ("inspect --json --at={}", ANSWER),
    ("break {} --json", ANSWER),
    ("break a --json --at={}", ANSWER),
    ("region check {} --json", ANSWER),
    ("region check --json --at={}", ANSWER),
    ("region resize none --locks={}", NEVER),
    ("region resize none --limiter-keys={}", NEVER),
    ("region resize none --sessions={}", NEVER),
    ("region resize none --waiters={}", NEVER),
    ("region resize none --key-chunks={}", NEVER),
    ("bench lock --contenders=0 --seconds={}", NEVER),
    ("bench lock --seconds=0 --contenders={}", NEVER),
    ("bench lock --seconds=0 --kills={}", NEVER),
    ("bench limit --seconds=0 --keys={}", NEVER),
    ("completions {}", &[0, 2]),
    ("lock --at=SPACE --ttl={} a -- true", LOCK),
    ("lock --at=SPACE --wait={} a -- true", WAIT),
    ("lock --at=SPACE --kill-after={} a -- true", LOCK),
    ("lock --at=SPACE --conflict-exit-code={} a -- true", LOCK),
    ("lock --renew={} a --json", &[64, 123]),
    ("lock --release={} a --json", &[64, 123]),
    ("once --at=SPACE --ttl={} a -- true", ONCE),
    ("once --at=SPACE --keep={} a -- true", ONCE),
    ("once --at=SPACE {} -- true", ONCE),
    ("once --at=SPACE --status {} --json", &[0, 1, 64]),
    ("once --at=SPACE --abandon={} a --json", &[64, 123]),
    ("once --at=SPACE --extend={} a --json", &[64, 123]),
];

/// The corpus: each of the commands with a few values that it takes.
fn valid() -> Vec<Argument> {
    let mut valid = Vec::new();
    for (command, (text, _)) in COMMANDS.iter().enumerate() {
        let has = |part: &str| text.contains(part);
        let values: &[&str] = if *text == "{}" {
            &["inspect", "--version", "lock"]
        } else if has("--limit={}") || has("limit l {}") || has("set l {}") {
            &[
                "30/second;burst=5",
                "1000/day;window=fixed",
                "9/2w;window=sliding",
            ]
        } else if has("--by={}") {
            &["host", "user-agent", "referrer"]
        } else if has("--algorithm={}") {
            &["fixed-window", "sliding-window"]
        } else if has("at={}") || has("check {}") {
            &["shm:orders", "mem:", "shm:/sprag-is-not-here/region"]
        } else if has("ttl={}") || has("keep={}") || has("wait={}") || has("after={}") {
            &["500ms", "1h30m", "0.25", "2 days 3h", "366d"]
        } else if has("completions") {
            &["bash"]
        } else if has("replay {}") {
            &["-", "/sprag-is-not-here/log"]
        } else if has("contenders={}") {
            &["1,2,8"]
        } else {
            &["1", "4096"]
        };
        valid.extend(values.iter().map(|value| Argument {
            command,
            value: value.as_bytes().to_vec(),
        }));
    }
    valid
}

/// A line of the table of regressions.
fn argument(command: &str, value: &[u8]) -> Argument {
    let known = COMMANDS.iter().position(|(text, _)| *text == command);
    Argument {
        command: known.expect("a command of the table"),
        value: value.to_vec(),
    }
}

impl Input for Argument {
    fn mutate(&mut self, other: &Self, dictionary: &[&[u8]], random: &mut Rng) {
        if random.u32(..16) == 0 {
            self.command = random.usize(..COMMANDS.len());
        } else {
            mutate_bytes(&mut self.value, &other.value, dictionary, random);
            // What an argument can be: no zero byte, and not endless.
            self.value.retain(|byte| *byte != 0);
            self.value.truncate(5_000);
        }
    }

    fn simpler(&self) -> Vec<Self> {
        simpler_bytes(&self.value)
            .into_iter()
            .map(|value| Self { value, ..*self })
            .collect()
    }

    fn paste(&self) -> String {
        let (command, _) = COMMANDS[self.command];
        format!("argument({command:?}, {}),", literal(&self.value))
    }
}

#[test]
fn no_argument_leads_to_more_than_one_line_or_an_unknown_exit_code() {
    let regions = Regions::new();
    let log = regions.path().join("log");
    let line = "h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1 \"r\" \"a\"\n";
    std::fs::write(&log, line.repeat(3)).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let space = format!("--at=shm:{}", elsewhere.path().join("region").display());
    Campaign {
        test: "no_argument_leads_to_more_than_one_line_or_an_unknown_exit_code",
        corpus: valid(),
        regressions: vec![
            argument("{}", b""),
            argument(
                "limit l {} --key=k --at=SPACE --json",
                b"1/\n\x1b[31m\nUsage: x",
            ),
            argument("inspect --json --at={}", b"shm:/a\nb"),
            argument("lock --at=SPACE --ttl={} a -- true", b"\n\nUsage: "),
        ],
        dictionary: &[
            b"/",
            b";",
            b"=",
            b"-",
            b"--",
            b",",
            b".",
            b":",
            b"\n",
            b"\n\nUsage: ",
            b"error: ",
            b"\xff",
            b"\xc3\xa9",
            b"\xe2\x80\xae",
            b"\x1b[31m",
            b"ns",
            b"ms",
            b"s",
            b"min",
            b"h",
            b"d",
            b"w",
            b"mo",
            b"y",
            b" ",
            b"+",
            b"0",
            b"1e3",
            b"burst=",
            b"window=fixed",
            b"window=sliding",
            b"P1DT1H",
            b"01:30:00",
            b"ago",
            b"9223372036854775808",
            b"18446744073709551616",
            b"4294967296",
            b"shm:",
            b"mem:",
            b"help",
            b"--help",
            b"--json",
        ],
        inputs: 300,
        soak_times: 60,
        batch: 4,
    }
    .run_batched(|arguments| {
        // Side by side: most of a case is the start of a process.
        let children: Vec<_> = arguments
            .iter()
            .map(|argument| {
                let mut command = regions.command(argument.words(&log, &space));
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
                command.spawn()
            })
            .collect();
        let ends = arguments.iter().zip(children).map(|(argument, child)| {
            let outcome = match child {
                Ok(child) => argument.judge(&child.wait_with_output().unwrap()),
                Err(error) => panic!("{error}"),
            };
            (argument.command, outcome)
        });
        let ends = ends.collect();
        let names = std::fs::read_dir(regions.path()).unwrap().count();
        assert_eq!(names, 1, "nothing is created");
        ends
    });
}

impl Argument {
    fn words(&self, log: &std::path::Path, space: &str) -> Vec<OsString> {
        let (command, _) = COMMANDS[self.command];
        let word = |word: &str| match word.split_once("{}") {
            Some((before, _)) => OsString::from_vec([before.as_bytes(), &self.value].concat()),
            None if word == "LOG" => log.into(),
            None if word == "--at=SPACE" => space.into(),
            None => word.into(),
        };
        command.split(' ').map(word).collect()
    }

    /// The exit code and what of the error is not the value's.
    fn judge(&self, output: &Output) -> (i32, BTreeSet<String>) {
        let (command, codes) = COMMANDS[self.command];
        let err = std::str::from_utf8(&output.stderr).expect("errors are text");
        let out = std::str::from_utf8(&output.stdout).expect("output is text");
        let code = output.status.code().expect("no signal ended it");
        assert!(!err.contains("panicked"), "{err}");
        // A value may be an option that changes what is asked for.
        let is_option = command.contains(" {}") && self.value.starts_with(b"-");
        assert!(
            codes.contains(&code) || is_option && code == 0,
            "{code}: {err}"
        );
        // What stands in place of missing words.
        let is_help = command == "{}" && err.contains("\n\nUsage: ");
        if !is_help && !err.is_empty() {
            let line = err.strip_suffix('\n').expect("a whole line");
            assert!(line.starts_with("sprag: "), "{line:?}");
            assert!(!line.contains(char::is_control), "{line:?}");
        }
        let is_answer = err.is_empty();
        assert!(is_answer || code != 0, "{err}");
        assert!(code < 2 || !is_answer && out.is_empty(), "{out}");
        if is_answer && command.contains("--json") && !is_option {
            assert_eq!(out.lines().count(), 1, "{out}");
            serde_json::from_str::<serde_json::Value>(out).expect("the answer is JSON");
        }
        let value = String::from_utf8_lossy(&self.value);
        let words = err
            .split(|character: char| !character.is_ascii_alphabetic())
            .filter(|word| word.len() > 3 && !value.contains(word));
        (code, words.take(12).map(str::to_owned).collect())
    }
}
