//! The command as its users see it: what it prints, and how it ends.

use std::fs;
use std::process::{Command, Output};

use sprag_paxos::simulation::Bug;
use sprag_sim::Class;

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
    let bug = "chosen-without-a-quorum";
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
fn what_clients_see_is_enough_to_find_a_bug() {
    let output = sim("--seeds 30 --black-box --bug chosen-without-a-quorum");
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(" is broken: "), "{text}");
}

/// Whether each bug has one is for the command to say: a new bug gets its script once it is found.
#[test]
fn every_script_of_a_bug_fails_with_it_and_passes_without() {
    let output = sim("--regressions");
    let text = stdout(&output);
    assert!(text.contains(" faults, ok\n"), "{text}");
    for line in text.lines().filter(|line| line.contains(": FAILED")) {
        assert!(line.contains("No such file or directory"), "{line}");
    }
}

#[test]
fn a_bug_is_hunted_and_its_row_printed_alike_whatever_the_number_of_jobs() {
    let hunt = "--mutants --matrix --seeds 20 --bug chosen-without-a-quorum";
    let one = sim(&format!("{hunt} --jobs 1"));
    assert_eq!(one.status.code(), Some(0), "{}", stdout(&one));
    let text = stdout(&one);
    assert!(text.contains("| chosen-without-a-quorum "), "{text}");
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

#[test]
fn the_readme_names_every_class_and_tells_of_no_bug_that_is_no_more() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let page = fs::read_to_string(path).unwrap();
    let (faults, rest) = page.split_once("\n## Scripts\n").unwrap();
    for class in Class::ALL {
        let row = format!("| `{}` |", class.name());
        assert!(faults.contains(&row), "{row}");
    }
    let (_, rest) = rest.split_once("<!-- planted bugs: written -->").unwrap();
    let (table, _) = rest.split_once("<!-- planted bugs: end -->").unwrap();
    let first_cells = table.lines().filter_map(|line| line.split('|').nth(1));
    for name in first_cells.map(str::trim) {
        let is_bug = Bug::ALL.iter().any(|bug| bug.name() == name);
        let is_class = Class::ALL.iter().any(|class| class.name() == name);
        let is_head = ["bug", "without"].contains(&name) || name.starts_with("---");
        assert!(is_bug || is_class || is_head, "{name}");
    }
}
