//! `sprag lock NAME -- CMD` as a user meets it: turns, exit codes, names, what CMD is given.
#![cfg(target_os = "linux")]

mod lock {
    pub(crate) mod world;
}

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use lock::world::{Running, World, number, until};

#[test]
fn two_commands_exclude_each_other_and_the_second_waits_its_turn() {
    let world = World::new();
    let mut first = world.start(&["turn"], "echo in; read go");
    assert_eq!(first.line(), "in");
    let second = world.start(&["turn"], "echo in");
    let space = world.space();
    until("the second waits", || {
        let locks = space.inspect("turn").expect("the space can be read");
        locks.iter().any(|lock| lock.waiters == 1)
    });
    assert!(second.is_silent());
    first.write("go\n");
    assert_eq!(second.line(), "in");
    assert_eq!(first.finish().code, Some(0));
    assert_eq!(second.finish().code, Some(0));
}

#[test]
fn commands_that_many_start_at_once_never_overlap() {
    let world = World::new();
    let critical = "mkdir inside || echo overlap; rmdir inside || echo overlap; echo done";
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..8 {
                    let finished = world.start(&["many"], critical).finish();
                    assert_eq!((finished.out.as_str(), finished.code), ("done\n", Some(0)));
                }
            });
        }
    });
}

#[test]
fn a_lock_that_is_not_to_be_had_in_time_has_codes_of_its_own() {
    let world = World::new();
    let mut holder = world.start(&["busy"], "echo in; read go");
    assert_eq!(holder.line(), "in");
    let cases: [(&[&str], i32, &str); 6] = [
        (&["--try"], 75, "is not free"),
        (&["-n"], 75, "is not free"),
        (&["--wait", "20ms"], 124, "within 20ms"),
        (&["-w", "0.02"], 124, "within 20ms"),
        (&["--try", "-E", "9"], 9, "is not free"),
        (
            &["--wait", "1ms", "--conflict-exit-code", "0"],
            0,
            "within 1ms",
        ),
    ];
    for (args, code, part) in cases {
        let finished = world.run([args, &["busy", "--", "echo", "ran"]].concat());
        assert_eq!(finished.code, Some(code), "{args:?}");
        assert_eq!(finished.out, "", "{args:?}");
        assert!(
            finished.error().contains(part),
            "{args:?}: {}",
            finished.err
        );
    }
    holder.write("go\n");
    assert_eq!(holder.finish().code, Some(0));
    let finished = world.run(["--try", "busy", "--", "echo", "ran"]);
    assert_eq!((finished.out.as_str(), finished.code), ("ran\n", Some(0)));
}

#[test]
fn the_exit_code_is_that_of_the_command() {
    let world = World::new();
    let cases = [
        ("exit 0", 0),
        ("exit 1", 1),
        ("exit 75", 75),
        ("exit 255", 255),
        ("kill -TERM $$", 128 + 15),
        ("kill -KILL $$", 128 + 9),
        ("kill -INT $$", 128 + 2),
    ];
    for (script, code) in cases {
        let finished = world.start(&["codes"], script).finish();
        assert_eq!(finished.code, Some(code), "{script}");
        assert_eq!(
            (finished.out.as_str(), finished.err.as_str()),
            ("", ""),
            "{script}"
        );
    }
    assert!(world.is_free("codes"));
}

#[test]
fn a_command_that_cannot_be_run_leaves_the_lock_free() {
    let world = World::new();
    let plain = world.path("plain");
    std::fs::write(&plain, "no program").expect("the file can be written");
    std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o644)).expect("it is ours");
    let cases = [
        ("no-such-program-anywhere", 127, "PATH"),
        ("/no/such/program", 127, "cannot find"),
        ("", 127, "cannot find"),
        (plain.as_str(), 126, "Permission denied"),
        ("/", 126, "Permission denied"),
    ];
    for (command, code, part) in cases {
        let finished = world.run(["run", "--", command]);
        assert_eq!(finished.code, Some(code), "{command}");
        assert!(
            finished.error().contains(part),
            "{command}: {}",
            finished.err
        );
        assert!(world.is_free("run"), "{command}");
    }
}

#[test]
fn the_command_finds_the_name_and_a_token_that_rises_in_its_environment() {
    let world = World::new();
    let mut last = 0;
    for _ in 0..3 {
        let finished = world
            .start(
                &["jobs/nightly run"],
                r#"echo "$SPRAG_KEY"; echo "$SPRAG_TOKEN""#,
            )
            .finish();
        let (key, token) = finished.out.split_once('\n').expect("two lines");
        assert_eq!(key, "jobs/nightly run");
        let token: u64 = number(token);
        // Property 2: tokens are consecutive while the lock's entry lives.
        assert!(token > last, "{token} after {last}");
        assert!(last == 0 || token == last + 1, "{token} after {last}");
        last = token;
    }
}

#[test]
fn the_command_has_our_standard_input_and_output() {
    let world = World::new();
    let mut running = world.start(&["pipes"], "cat; echo oops >&2");
    running.write("one\ntwo");
    let finished = running.finish();
    assert_eq!(finished.out, "one\ntwo");
    assert_eq!(finished.err, "oops\n");
}

#[test]
fn the_command_is_given_no_descriptor_of_ours_and_all_of_the_callers() {
    let world = World::new();
    let list = "exec 3</proc/self/status; SPRAG ls -l /proc/self/fd | sed -n 's/.*-> //p'";
    let mut plain = std::process::Command::new("sh");
    let finished = Running::start(plain.args(["-c", &list.replace("SPRAG", "")])).finish();
    let counted = finished.out.lines().count();
    let under_lock = format!(
        "{} --at {} lock fds --",
        env!("CARGO_BIN_EXE_sprag"),
        world.url()
    );
    let mut locked = std::process::Command::new("sh");
    let finished =
        Running::start(locked.args(["-c", &list.replace("SPRAG", &under_lock)])).finish();
    assert_eq!(finished.out.lines().count(), counted, "{}", finished.out);
    assert!(finished.out.contains("/status"), "{}", finished.out);
    assert!(!finished.out.contains("region"), "{}", finished.out);
}

#[test]
fn a_name_is_any_1_to_1024_bytes() {
    let world = World::new();
    let longest = "n".repeat(1_024);
    let names: [&[u8]; 6] = [
        b"\xff\xfe",
        longest.as_bytes(),
        b" ",
        b"a\nb",
        b"$HOME;*",
        b"n",
    ];
    for name in names {
        let name = OsStr::from_bytes(name);
        let print = [
            OsStr::new("--"),
            OsStr::new("printenv"),
            OsStr::new("SPRAG_KEY"),
        ];
        let finished = Running::start(world.lock().arg(name).args(print)).finish();
        assert_eq!(finished.code, Some(0), "{name:?}");
        let expected = String::from_utf8_lossy(name.as_bytes()) + "\n";
        assert_eq!(finished.out, expected, "{name:?}");
    }
    let names = world.space().inspect("").expect("the space can be read");
    assert!(names.iter().any(|lock| lock.name == b"\xff\xfe"));

    for name in [String::new(), "n".repeat(1_025)] {
        let finished = world.run([&name, "--", "true"]);
        assert_eq!(finished.code, Some(64));
        let error = finished.error();
        assert!(error.contains(&format!("{} bytes", name.len())), "{error}");
        assert!(error.contains("1 to 1024"), "{error}");
    }
}

#[test]
fn a_name_that_begins_with_a_dash_stands_behind_two() {
    let world = World::new();
    for name in ["-n", "--try", "-", "--"] {
        let finished = world.run(["--try", "--", name, "--", "printenv", "SPRAG_KEY"]);
        assert_eq!(
            (finished.out, finished.code),
            (format!("{name}\n"), Some(0))
        );
    }
    // The command's own dashes are the command's.
    let finished = world.run(["n", "--", "printf", "%s.", "--try", "--", "-n"]);
    assert_eq!(finished.out, "--try.--.-n.");
}

#[test]
fn wrong_arguments_run_nothing_and_say_what_to_do() {
    let world = World::new();
    let cases: [(&[&str], &str); 22] = [
        (&[], "sprag lock NAME -- CMD"),
        (&["name"], "nothing to run"),
        (&["name", "--"], "nothing to run"),
        (&["--", "name"], "nothing to run"),
        (&["--", "name", "touch", "ran"], "nothing to run"),
        (&["name", "touch", "ran"], "sprag lock NAME -- CMD"),
        (
            &["--tyr", "name", "--", "touch", "ran"],
            "unexpected argument '--tyr'",
        ),
        (
            &["--try", "--wait", "1s", "name", "--", "touch", "ran"],
            "cannot be used with",
        ),
        (&["--wait", "0", "name", "--", "touch", "ran"], "use --try"),
        (
            &["--wait", "5x", "name", "--", "touch", "ran"],
            "500ms, 5s, 2m, 1h30m or 7d",
        ),
        (&["--ttl", "0", "name", "--", "touch", "ran"], "1ms to 366d"),
        (
            &["--ttl", "99ms", "name", "--", "touch", "ran"],
            "--ttl is 99ms; while a command runs it must be 100ms to 366d",
        ),
        (&["--ttl", "367d", "name", "--", "touch", "ran"], "--ttl"),
        (&["--json", "name", "--", "touch", "ran"], "--acquire"),
        (&["-E", "256", "name", "--", "touch", "ran"], "255"),
        (&["--acquire", "name", "--", "touch", "ran"], "leave it out"),
        (
            &["--acquire", "--release", "5", "name"],
            "cannot be used with",
        ),
        (&["--release", "0", "name"], "not a token"),
        (&["--release", "name"], "before the lock's name"),
        (
            &["--release", "5", "--wait", "1s", "name"],
            "cannot be used with",
        ),
        (
            &["--release", "5", "--ttl", "1s", "name"],
            "cannot be used with",
        ),
        (&["--renew", "-5", "name"], "not a token"),
    ];
    for (args, part) in cases {
        let finished = world.run(args);
        assert_eq!(finished.code, Some(64), "{args:?}: {}", finished.err);
        assert!(finished.err.contains(part), "{args:?}: {}", finished.err);
        assert_eq!(finished.out, "", "{args:?}");
    }
    for (url, code, part) in [
        ("redis://h", 64, "use mem:, shm:NAME"),
        ("shm:a/b", 64, "A-Z a-z"),
        ("quic://a:1", 64, "no cluster"),
        (
            "shm:/no/such/directory/region",
            125,
            "create that directory first",
        ),
    ] {
        let finished =
            Running::start(world.lock_at(url).args(["a", "--", "touch", "ran"])).finish();
        assert_eq!(finished.code, Some(code), "{url}");
        assert!(finished.error().contains(part), "{url}: {}", finished.err);
    }
    assert!(!std::path::Path::new(&world.path("ran")).exists());
}

#[test]
fn a_command_that_waits_for_the_lock_it_runs_under_is_told_at_once() {
    let world = World::new();
    for args in ["", "--wait 1h", "--acquire"] {
        let command = if args == "--acquire" {
            ""
        } else {
            "-- echo in"
        };
        let inner = format!("sprag --at \"$AT\" lock {args} self {command}");
        let finished = world.script(&format!("sprag --at \"$AT\" lock self -- sh -c '{inner}'"));
        assert_eq!((finished.out.as_str(), finished.code), ("", Some(64)));
        assert!(finished.error().contains("'self'"), "{}", finished.err);
        assert!(finished.error().contains("SPRAG_TOKEN"), "{}", finished.err);
    }
    let with_try = "sprag --at \"$AT\" lock self -- sprag --at \"$AT\" lock --try self -- true";
    assert_eq!(world.script(with_try).code, Some(75));
}

#[test]
fn other_locks_and_stale_environments_are_waited_for() {
    let world = World::new();
    let sprag = "sprag --at \"$AT\" lock";
    let other = world.script(&format!("{sprag} selfless -- {sprag} self -- echo in"));
    assert_eq!((other.out.as_str(), other.code), ("in\n", Some(0)));
    // The environment of a command whose lock is another's by now.
    let stale = world.script(&format!(
        "eval \"$({sprag} self -- sh -c 'echo export SPRAG_KIND=$SPRAG_KIND SPRAG_KEY=$SPRAG_KEY SPRAG_TOKEN=$SPRAG_TOKEN')\"
        token=$({sprag} --acquire self)
        {sprag} --wait 20ms self -- echo in
        echo $? $((token > SPRAG_TOKEN))
        {sprag} --release $token self
        {sprag} self -- echo in"
    ));
    assert_eq!(stale.out, "124 1\nin\n", "{}", stale.err);
    let elsewhere = world.path("elsewhere");
    let other_space = world.script(&format!(
        "{sprag} self -- sprag --at shm:{elsewhere} lock self -- echo in"
    ));
    assert_eq!(
        (other_space.out.as_str(), other_space.code),
        ("in\n", Some(0))
    );
}

#[test]
fn another_kind_of_the_same_name_and_token_is_waited_for() {
    let world = World::new();
    let finished = world.script(
        r#"
token=$(sprag --at "$AT" lock --acquire self)
inner='echo $SPRAG_KIND $((SPRAG_TOKEN - token)); sprag --at "$AT" lock --wait 20ms self -- echo in; echo $?'
export token
sprag --at "$AT" once self -- sh -c "$inner"
sprag --at "$AT" lock --of 1 self -- sh -c "$inner"
sprag --at "$AT" lock --of 1 --key self limiter -- sh -c "$inner"
"#,
    );
    assert_eq!(
        finished.out, "once 0\n124\nsemaphore 0\n124\nkey 0\n124\n",
        "{}",
        finished.err
    );
}

#[test]
fn help_names_every_code_and_every_way_to_call_it() {
    let world = World::new();
    for flag in ["-h", "--help"] {
        let help = world.run([flag]).out;
        for word in [
            "NAME -- CMD",
            "--acquire",
            "--release TOKEN",
            "--renew TOKEN",
            "128 + N",
            "64",
            "75",
            "123",
            "124",
            "125",
            "126",
            "127",
            "-E",
        ] {
            assert!(help.contains(word), "{flag}: {word}");
        }
    }
}
