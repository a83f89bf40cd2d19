//! The command as its users see it: what it prints, and how it ends.

use std::fs;
use std::process::{Command, Output};

fn sim(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sprag-sim"))
        .args(arguments.split_whitespace())
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn seeds_are_told_alike_whatever_the_number_of_jobs() {
    let one = sim("--seeds 30 --jobs 1");
    assert_eq!(one.status.code(), Some(0), "{}", stdout(&one));
    for jobs in [2, 5] {
        let more = sim(&format!("--seeds 30 --jobs {jobs}"));
        assert_eq!(stdout(&more), stdout(&one), "{jobs}");
    }
}

#[test]
fn the_last_line_says_what_it_came_to() {
    let output = sim("--seeds 3 --from 5 --faults none");
    let text = stdout(&output);
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("3 seeds from 5, traces "), "{last}");
    assert!(
        last.ends_with("failed: safety 0, liveness 0, crash 0: clean"),
        "{last}"
    );
}

#[test]
fn a_seed_that_fails_is_told_with_the_command_and_the_script_that_repeat_it() {
    let bug = "own-value-over-the-bound";
    let output = sim(&format!("--seeds 10 --bug {bug}"));
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let (_, again) = text
        .split_once("cargo run --release -p sprag-sim -- ")
        .unwrap();
    let again = again.lines().next().unwrap();
    assert_eq!(sim(again).status.code(), Some(1), "{again}");

    let (_, rest) = text.split_once("As a script, for --script:\n\n").unwrap();
    let (script, events) = rest.split_once("\n\n").unwrap();
    let (_, way) = script.split_once("fails ").unwrap();
    let way = way.lines().next().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("it.script");
    fs::write(&path, script).unwrap();
    let replayed = sim(&format!("--script {}", path.display()));
    assert_eq!(replayed.status.code(), Some(1));
    assert!(
        stdout(&replayed).contains(&format!("{way} is broken")),
        "{way}"
    );
    let table = events.split_once("\n\n").unwrap().0;
    assert!(stdout(&replayed).starts_with(table), "{table}");
}

#[test]
fn every_script_of_a_bug_fails_with_it_and_passes_without() {
    let output = sim("--regressions");
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.lines().last().unwrap().ends_with(" 0 failed: clean"),
        "{text}"
    );
}

#[test]
fn a_bug_is_hunted_and_its_row_printed_alike_whatever_the_number_of_jobs() {
    let hunt = "--mutants --matrix --seeds 20 --bug own-value-over-the-bound";
    let one = sim(&format!("{hunt} --jobs 1"));
    assert_eq!(one.status.code(), Some(0), "{}", stdout(&one));
    let text = stdout(&one);
    assert!(text.contains("| own-value-over-the-bound "), "{text}");
    assert_eq!(stdout(&sim(&format!("{hunt} --jobs 3"))), text);
}

#[test]
fn what_is_wrong_is_named_with_what_would_be_right() {
    let cases = [
        ("--seeds 0", "'--seeds <N>': 0 is not in 1.."),
        ("--nodes 16", "'--nodes <N>': 16 is not in 1..=15"),
        ("--jobs 0", "'--jobs <N>': 0 is not in 1..=1024"),
        ("--faults fire", "the classes are loss, "),
        ("--bug none", "there are "),
        (
            "--from 18446744073709551615 --seeds 2",
            "begin lower, or run fewer",
        ),
        ("--mutants --black-box", "cannot be used with"),
        ("--mutants --regressions", "cannot be used with"),
        ("--write", "required"),
        ("--script no/such.script", "no/such.script: No such file"),
        ("--script Cargo.toml", "Cargo.toml: script, line 1: "),
    ];
    for (arguments, part) in cases {
        let output = sim(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(
            stderr(&output).contains(part),
            "{arguments}: {}",
            stderr(&output)
        );
        assert_eq!(stdout(&output), "", "{arguments}");
    }
}
