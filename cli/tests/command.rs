//! What all of `sprag` has in common: help, version, completions, and output that nobody reads.

mod support;

use std::process::Stdio;

use support::Regions;

#[test]
fn help_names_every_subcommand_and_the_exit_codes() {
    let regions = Regions::new();
    let help = regions.sprag("--help");
    let help = help.answer(0);
    for word in [
        "limit",
        "override",
        "counter",
        "once",
        "inspect",
        "metrics",
        "break",
        "replay",
        "bench",
        "completions",
        "--at",
        "Exit codes",
        "shm:default",
    ] {
        assert!(help.contains(word), "{word}: {help}");
    }
    for words in [
        "limit --help",
        "override set --help",
        "counter add --help",
        "once --help",
        "inspect --help",
        "metrics --help",
        "break --help",
    ] {
        let help = regions.sprag(words);
        assert!(help.answer(0).contains("Exit codes:"), "{words}");
        assert!(help.out.contains("--json"), "{words}");
    }
    // What only the command itself runs.
    let bench = regions.sprag("bench --help");
    assert!(!bench.answer(0).contains("holder "), "{}", bench.out);
    let version = regions.sprag("--version");
    assert_eq!(
        version.answer(0),
        format!("sprag {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn completions_are_printed_for_each_shell() {
    let regions = Regions::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = regions.sprag(&format!("completions {shell}"));
        let script = script.answer(0);
        for word in ["inspect", "limiters", "peek"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let zsh = regions.sprag("completions zsh");
    let command = "*::rest -- The command and its arguments:_cmdambivalent";
    assert!(zsh.answer(0).contains(command), "CMD is a command");
    let unknown = regions.sprag("completions tcsh");
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.err.contains("bash"), "{}", unknown.err);
}

#[test]
fn wrong_arguments_are_told_in_one_line_with_the_way_out() {
    let regions = Regions::new();
    for (words, code, part) in [
        ("lok a", 2, "a similar subcommand exists: 'lock'"),
        (
            "limit a 1/s",
            2,
            "not provided: --key <KEY>; sprag limit --help has more",
        ),
        ("limit a -1/s --key k", 2, "negative"),
        (
            "limit a 1/s --key k --cost -1",
            2,
            "from 0 to 18446744073709551615",
        ),
        (
            "limit a 1/s --key k --cots 1",
            2,
            "similar argument exists: '--cost'",
        ),
        ("limit a 1/0s --key k", 2, "it must be from 1ns to 366d"),
        (
            "limit a 1/367d --key k",
            2,
            "a period of 367d is out of bounds",
        ),
        ("replay log --limit -5/minute", 2, "count = \"-5\""),
        (
            "replay log --limit 5/minute --top -1",
            2,
            "'--top <COUNT>': it must be",
        ),
        ("replay log --limit 5/minute --cost 0", 2, "from 1 to"),
        ("region rm", 2, "sprag region rm --help has more"),
        (
            "region resize r --locks -1",
            2,
            "'--locks <COUNT>': it must be",
        ),
        ("break -name", 2, "use '-- -n'"),
        (
            "lock a true -x",
            64,
            "unexpected argument '-x' found; to pass '-x' as a value, use '-- -x'; sprag lock --help",
        ),
        ("--at shm:x lock a true", 64, "goes behind --"),
        ("lock --try -5 -- true", 64, "'-5' is negative"),
        (
            "lock --wait -5s a -- true",
            64,
            "'--wait <DURATION>': it must be 1ms to 366d",
        ),
        ("lock --ttl -1 a -- true", 64, "it must be 1ms to 366d"),
        ("lock --renew -5 a", 64, "not a token"),
        ("lock -E -1 a -- true", 64, "from 0 to 255"),
    ] {
        let finished = regions.sprag(words);
        assert!(
            finished.error(code).contains(part),
            "{words}: {}",
            finished.err
        );
    }
    #[cfg(unix)]
    for args in [
        [&b"inspect"[..], b"--at", b"shm:\xff"],
        [b"limit", b"a", b"\xff/s"],
    ] {
        let args = args.map(std::os::unix::ffi::OsStrExt::from_bytes);
        let finished = regions.run::<&std::ffi::OsStr>(args);
        assert!(finished.error(2).contains("\\xff"), "{}", finished.err);
        assert!(finished.err.contains("is not UTF-8"), "{}", finished.err);
    }
    let long = "n".repeat(1_025);
    for (name, key) in [("", "k"), (&long, "k"), ("a", ""), ("a", &long)] {
        let finished = regions.run(["limit", name, "1/s", "--key", key]);
        assert!(
            finished.error(2).contains("1 to 1024 bytes"),
            "{}",
            finished.err
        );
    }
    let odd = regions.run(["limit", "a", "1/\n\u{1b}[31m\nUsage: x", "--key", "k"]);
    assert!(!odd.error(2).contains(char::is_control), "{}", odd.err);
    assert_eq!(std::fs::read_dir(regions.path()).unwrap().count(), 0);
}

#[test]
fn a_space_is_refused_where_it_has_no_meaning() {
    let regions = Regions::new();
    regions.sprag("limit mail 1/day --key k").answer(0);
    for (words, code, part) in [
        ("replay --at shm:x log --limit 1/s", 2, "leave --at out"),
        (
            "replay --group-shared log --limit 1/s",
            2,
            "leave --group-shared out",
        ),
        ("--at mem: replay log --limit 1/s", 2, "leave --at out"),
        ("completions bash --at shm:x", 2, "leave --at out"),
        (
            "completions --group-shared bash",
            2,
            "leave --group-shared out",
        ),
        ("region ls --at mem:", 2, "leave --at out"),
        ("region ls --at shm:default", 2, "leave --at out"),
        ("region check default --at shm:default", 2, "leave --at out"),
        ("region rm default --at shm:default", 2, "leave --at out"),
        (
            "region resize default --locks 5 --at shm:x",
            2,
            "leave --at out",
        ),
        ("region check --at mem:", 2, "use --at shm:NAME"),
        ("region check mem:", 2, "name a shm: region"),
        ("inspect --at mem:", 2, "use --at shm:NAME"),
        ("break a --at mem:", 2, "use --at shm:NAME"),
        ("limit l 1/s --key k --at mem:", 2, "use --at shm:NAME"),
        ("lock --at mem: a -- true", 64, "use --at shm:NAME"),
        ("lock --at mem: --acquire a", 64, "use --at shm:NAME"),
        ("lock --at mem: --release 5 a", 64, "use --at shm:NAME"),
        ("lock --at mem: --renew 5 a", 64, "use --at shm:NAME"),
        (
            "limit l 1/s --key k --at mem: --group-shared",
            2,
            "leave it out",
        ),
        ("bench lock --at mem: --group-shared", 2, "leave it out"),
        (
            "lock --at mem: --group-shared a -- true",
            64,
            "leave it out",
        ),
    ] {
        let finished = regions.sprag(words);
        assert!(
            finished.error(code).contains(part),
            "{words}: {}",
            finished.err
        );
    }
    assert!(regions.path().join("default.sprag").exists());
}

#[test]
fn output_that_nobody_reads_is_no_error_and_a_full_disk_is() {
    let regions = Regions::new();
    regions.sprag("limit mail 1/day --key k").answer(0);
    for words in [
        "inspect",
        "inspect --json",
        "break a",
        "completions bash",
        "region ls",
        "--help",
    ] {
        let code = i32::from(words.starts_with("break"));
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = regions.command(words.split(' '));
        command.stdout(writer).stderr(Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{words}");
        assert_eq!(output.status.code(), Some(code), "{words}");
    }
    let full = std::fs::File::options().write(true).open("/dev/full");
    let Ok(full) = full else { return };
    let mut command = regions.command(["inspect"]);
    command.stdout(full).stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.starts_with("sprag: cannot write to standard output"),
        "{error}"
    );
    assert_eq!(output.status.code(), Some(2));
}
