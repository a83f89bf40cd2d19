//! `sprag once` as a user meets it: who runs, what is stored and shown again, exit codes, and scripts.
#![cfg(target_os = "linux")]

mod lock {
    pub(crate) mod world;
}

use lock::world::{Finished, Running, World, number, send, until};
use sprag::OnceStatus;

impl World {
    /// Starts `sprag once` with these arguments and then `-- sh -c SCRIPT`.
    fn start_once(&self, args: &[&str], script: &str) -> Running {
        Running::start(self.once().args(args).args(["--", "sh", "-c", script]))
    }

    fn run_once(&self, args: &[&str], script: &str) -> Finished {
        self.start_once(args, script).finish()
    }

    fn once_with(&self, args: &[&str]) -> Finished {
        Running::start(self.once().args(args)).finish()
    }

    fn status(&self, key: &str) -> OnceStatus {
        let space = self.space();
        space.once(key).unwrap().status().unwrap()
    }
}

#[test]
fn a_command_runs_once_and_its_output_and_code_come_again() {
    let world = World::new();
    for (key, script, out, code) in [
        ("fails", "echo out; echo err >&2; exit 7", "out\n", 7),
        ("silent", "true", "", 0),
        (
            "bytes",
            r"printf '\377s\0\n%.0s' 1 2 3",
            "\u{fffd}s\0\n\u{fffd}s\0\n\u{fffd}s\0\n",
            0,
        ),
    ] {
        let first = world.run_once(&[key], script);
        assert_eq!((first.out.as_str(), first.code), (out, Some(code)), "{key}");
        let again = world.run_once(&[key], "echo ran again");
        assert_eq!((again.out.as_str(), again.code), (out, Some(code)), "{key}");
        assert_eq!(again.err, "", "standard error is not stored");
    }
    // Not kept any more, it runs again.
    assert_eq!(
        world.run_once(&["short", "--keep", "1ms"], "echo 1").out,
        "1\n"
    );
    until("it is forgotten", || {
        world.status("short") == OnceStatus::New
    });
    assert_eq!(world.run_once(&["short"], "echo 2").out, "2\n");
}

#[test]
fn a_command_under_way_is_in_progress_for_others_who_get_what_it_printed_when_it_is_done() {
    let world = World::new();
    let mut first = world.start_once(&["a", "--ttl", "100ms"], "echo in; read go; echo out");
    assert_eq!(first.line(), "in", "what it prints is passed on at once");
    for (args, code) in [(&["a"][..], 75), (&["a", "-E", "9"], 9)] {
        let busy = world.run_once(args, "echo ran");
        assert_eq!((busy.out.as_str(), busy.code), ("", Some(code)));
        assert!(
            busy.error().contains("'a' is in progress in process"),
            "{}",
            busy.err
        );
    }
    // For several times as long as --ttl, by renewal.
    let begun = std::time::Instant::now();
    until("its first time is over", || {
        begun.elapsed().as_millis() > 300
    });
    assert!(matches!(world.status("a"), OnceStatus::InProgress { .. }));
    first.write("go\n");
    let finished = first.finish();
    assert_eq!((finished.out.as_str(), finished.code), ("out\n", Some(0)));
    assert_eq!(world.run_once(&["a"], "echo ran").out, "in\nout\n");
}

#[test]
fn a_command_that_a_signal_ended_is_not_done_and_the_next_one_is_told() {
    let world = World::new();
    let told = "echo ${SPRAG_UNFINISHED-none} $SPRAG_KEY $SPRAG_TOKEN";
    let killed = world.run_once(&["a"], "echo out; kill -9 $$");
    assert_eq!((killed.out.as_str(), killed.code), ("out\n", Some(137)));
    assert_eq!(world.status("a"), OnceStatus::Unfinished);
    let next = world.run_once(&["a"], told);
    let words: Vec<&str> = next.out.split_whitespace().collect();
    assert_eq!(words[..2], ["1", "a"]);
    assert!(number::<u64>(words[2]) > 0);
    // Of one whose sprag is killed too, and CMD is killed with it.
    let second = world.start_once(&["b"], "echo $$; exec cat");
    let pid: i32 = number(&second.line());
    second.signal(libc::SIGKILL);
    until("the command is killed with it", || {
        lock::world::has_ended(pid)
    });
    second.finish_with_open_input();
    assert_eq!(world.status("b"), OnceStatus::Unfinished);
    assert!(world.run_once(&["b"], told).out.starts_with("1 b "));
    // And not of one that could not be started at all.
    let missing = world.once_with(&["c", "--", "no-such-program"]);
    assert_eq!(missing.code, Some(127));
    assert!(world.run_once(&["c"], told).out.starts_with("none c "));
}

#[test]
fn a_signal_goes_to_the_command_and_what_it_makes_of_it_is_stored() {
    let world = World::new();
    let first = world.start_once(
        &["a"],
        "trap 'echo told; kill $!; exit 4' TERM; sleep 100 & echo in; wait",
    );
    assert_eq!(first.line(), "in");
    send(first.pid(), libc::SIGTERM);
    assert_eq!(first.line(), "told");
    assert_eq!(first.finish().code, Some(4));
    let again = world.run_once(&["a"], "echo ran");
    assert_eq!((again.out.as_str(), again.code), ("in\ntold\n", Some(4)));
}

#[test]
fn an_attempt_that_was_ended_by_its_token_ends_its_command_and_nothing_is_stored() {
    let world = World::new();
    let first = world.start_once(&["a"], "echo $SPRAG_TOKEN; read go; echo never");
    let token = first.line();
    assert_eq!(world.once_with(&["--abandon", &token, "a"]).code, Some(0));
    let finished = first.finish_with_open_input();
    assert_eq!((finished.out.as_str(), finished.code), ("", Some(123)));
    assert!(
        finished.error().contains("nothing was stored"),
        "{}",
        finished.err
    );
    assert_eq!(world.status("a"), OnceStatus::New);
}

#[test]
fn of_a_long_output_the_beginning_is_stored_and_all_is_passed_on() {
    let world = World::new();
    // More than a pipe holds.
    let first = world.run_once(&["a"], "seq 1 20000; exit 2");
    let lines: Vec<String> = (1..=20_000).map(|i| i.to_string()).collect();
    let whole = lines.join("\n") + "\n";
    assert!(first.out == whole && first.code == Some(2));
    let again = world.run_once(&["a"], "echo ran");
    assert_eq!((again.out.as_str(), again.code), (&whole[..1_020], Some(2)));
    assert!(again.error().contains("1020 bytes"), "{}", again.err);
}

#[test]
fn what_a_command_left_running_holds_nobody_up() {
    let world = World::new();
    let first = world.run_once(&["a"], "echo out; sleep 100 2>&- <&- & echo $!");
    let words: Vec<&str> = first.out.split_whitespace().collect();
    assert_eq!((words[0], first.code), ("out", Some(0)));
    send(number(words[1]), libc::SIGKILL);
    assert!(world.run_once(&["a"], "").out.starts_with("out\n"));
}

#[test]
fn a_script_begins_extends_and_finishes_by_the_token() {
    let world = World::new();
    let script = r#"
        sprag --at "$AT" once --status a; echo "code $?"
        token=$(sprag --at "$AT" once --begin a --ttl 10s) || exit
        sprag --at "$AT" once --begin a 2>/dev/null; echo "code $?"
        sprag --at "$AT" once --extend "$token" a --ttl 1h || exit
        sprag --at "$AT" once --status a; echo "code $?"
        printf 'the result' | sprag --at "$AT" once --finish "$token" a --keep 1h || exit
        sprag --at "$AT" once --begin a; echo "; code $?"
        sprag --at "$AT" once --status a; echo "code $?"
        sprag --at "$AT" once a -- echo ran; echo "; code $?"
        sprag --at "$AT" once --abandon "$token" a; echo "code $?"
    "#;
    let finished = world.script(script);
    let expected = "new|code 1|code 75|in progress, detached, 59 min 59 s left|code 1|the result; code 1\
        |done, 10 bytes kept for 59 min 59 s|code 0|the result; code 0|code 123|";
    assert_eq!(
        finished.out.replace('\n', "|"),
        expected,
        "{}",
        finished.err
    );
}

#[test]
fn json_tells_what_was_done_and_what_is_known() {
    let world = World::new();
    let json = |args: &[&str]| -> serde_json::Value {
        let finished = world.once_with(&[args, &["--json"]].concat());
        serde_json::from_str(&finished.out).unwrap_or_else(|_| panic!("{finished:?}"))
    };
    let begun = json(&["--begin", "a"]);
    assert_eq!(
        (&begun["status"], &begun["after_unfinished"]),
        (&"begun".into(), &false.into())
    );
    let token = begun["token"].to_string();
    assert_eq!(json(&["--status", "a"])["status"], "in progress");
    assert_eq!(
        json(&["--extend", &token, "a"])["left_ns"],
        30_000_000_000_u64
    );
    let inspected = world.sprag_inspect();
    assert_eq!(inspected["onces"][0]["status"], "in progress");
    assert_eq!(inspected["onces"][0]["holder_pid"], serde_json::Value::Null);
    assert_eq!(json(&["--finish", &token, "a"])["status"], "finished");
    let done = json(&["--begin", "a"]);
    assert_eq!(
        (&done["status"], &done["result"]),
        (&"done".into(), &"".into())
    );
    assert_eq!(world.sprag_inspect()["onces"][0]["result_bytes"], 0);
}

impl World {
    fn sprag_inspect(&self) -> serde_json::Value {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_sprag"));
        let finished =
            Running::start(command.args(["--at", &self.url(), "inspect", "--json"])).finish();
        serde_json::from_str(&finished.out).expect("an object")
    }
}

#[test]
fn what_is_asked_wrongly_is_one_line_and_runs_nothing() {
    let world = World::new();
    let cases: [(&[&str], i32, &str); 11] = [
        (&[], 64, "no key is named"),
        (&["a"], 64, "nothing to run"),
        (
            &["a", "--ttl", "99ms", "--", "echo", "ran"],
            64,
            "--ttl is 99ms",
        ),
        (
            &["a", "--keep", "0", "--", "echo", "ran"],
            64,
            "1ms to 366d",
        ),
        (&["--begin", "a", "--", "echo", "ran"], 64, "leave it out"),
        (&["--begin", "--status", "a"], 64, "cannot be used with"),
        (&["--finish", "a", "key"], 64, "not a token"),
        (&["--finish", "7", "a"], 123, "no attempt at 'a'"),
        (&["--abandon", "7", "a"], 123, "no attempt at 'a'"),
        (&["a", "--json", "--", "echo", "ran"], 64, "--begin"),
        (&["", "--", "echo", "ran"], 64, "0 bytes long"),
    ];
    for (args, code, part) in cases {
        let finished = world.once_with(args);
        assert_eq!(
            (finished.out.as_str(), finished.code),
            ("", Some(code)),
            "{args:?}"
        );
        assert!(
            finished.error().contains(part),
            "{args:?}: {}",
            finished.err
        );
    }
    let mut long = Running::start(world.once().args(["--finish", "7", "a"]));
    long.write(&"x".repeat(1_025));
    let finished = long.finish();
    assert!(finished.code != Some(0) && finished.error().len() > 10);
}
