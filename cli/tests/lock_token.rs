//! `sprag lock --acquire`, `--release` and `--renew`, out of real shell scripts.
#![cfg(target_os = "linux")]

mod lock {
    pub(crate) mod world;
}

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use lock::world::{Running, World, number};
use serde_json::Value;

#[test]
fn a_script_holds_a_lock_between_its_commands() {
    let world = World::new();
    let finished = world.script(
        r#"set -eu
token=$(sprag --at "$AT" lock --acquire --ttl 10m deploy)
sprag --at "$AT" lock --try deploy -- echo overlap || echo "held: $?"
sprag --at "$AT" lock --renew "$token" --ttl 20m deploy
sprag --at "$AT" lock --release "$token" deploy
sprag --at "$AT" lock --try deploy -- echo "free again"
next=$(sprag --at "$AT" lock --acquire deploy)
test "$next" -gt "$token" && echo "rises"
sprag --at "$AT" lock --release "$token" deploy || echo "old token: $?"
sprag --at "$AT" lock --release "$next" deploy
sprag --at "$AT" lock --release "$next" deploy || echo "twice: $?"
"#,
    );
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    assert_eq!(
        finished.out,
        "held: 75\nfree again\nrises\nold token: 123\ntwice: 123\n"
    );
}

#[test]
fn a_wrong_token_is_refused_and_changes_nothing() {
    let world = World::new();
    let held = world.run(["--acquire", "ours"]);
    let token: u64 = number(&held.out);
    for (mode, wrong) in [
        ("--release", token - 1),
        ("--renew", token - 1),
        ("--release", u64::MAX),
        ("--renew", 1),
    ] {
        let finished = world.run([mode, &wrong.to_string(), "ours"]);
        assert_eq!(
            (finished.out.as_str(), finished.code),
            ("", Some(123)),
            "{mode} {wrong}"
        );
        let error = finished.error();
        assert!(
            error.contains(&format!("'ours' is not held under token {wrong}")),
            "{error}"
        );
        assert!(!world.is_free("ours"));
    }
    let finished = world.run(["--release", &token.to_string(), "others"]);
    assert_eq!(finished.code, Some(123));
    assert_eq!(
        world.run(["--release", &token.to_string(), "ours"]).code,
        Some(0)
    );
}

#[test]
fn a_lock_left_held_is_free_when_its_lease_is_over_and_renewal_puts_that_off() {
    let world = World::new();
    let token: u64 = number(&world.run(["--acquire", "--ttl", "50ms", "brief"]).out);
    let finished = world.run(["--wait", "2m", "brief", "--", "echo", "mine"]);
    assert_eq!((finished.out.as_str(), finished.code), ("mine\n", Some(0)));
    assert_eq!(
        world.run(["--renew", &token.to_string(), "brief"]).code,
        Some(123)
    );

    let token = world.run(["--acquire", "--ttl", "1m", "long"]).out;
    let token = token.trim();
    assert_eq!(
        world.run(["--renew", token, "--ttl", "1h", "long"]).code,
        Some(0)
    );
    let locks = world
        .space()
        .inspect("long")
        .expect("the space can be read");
    assert!(locks[0].is_detached && locks[0].is_held);
    assert!(
        locks[0].lease_left > std::time::Duration::from_mins(1),
        "{locks:?}"
    );
}

#[test]
fn acquiring_waits_its_turn_or_gives_up_as_told() {
    let world = World::new();
    let mut holder = world.start(&["turn"], "echo in; read go");
    holder.line();
    for (args, code) in [
        (&["--try"][..], 75),
        (&["--wait", "10ms"], 124),
        (&["--try", "-E", "1"], 1),
    ] {
        let finished = world.run([&["--acquire"], args, &["turn"]].concat());
        assert_eq!(
            (finished.out.as_str(), finished.code),
            ("", Some(code)),
            "{args:?}"
        );
        finished.error();
    }
    let waiting = Running::start(world.lock().args(["--acquire", "turn"]));
    holder.write("go\n");
    assert_eq!(holder.finish().code, Some(0));
    let token: u64 = number(&waiting.line());
    assert_eq!(waiting.finish().code, Some(0));
    assert_eq!(
        world.run(["--release", &token.to_string(), "turn"]).code,
        Some(0)
    );
}

#[test]
fn json_is_one_object_for_each() {
    let world = World::new();
    let json = |args: &[&OsStr]| -> Value {
        let finished = world.run(args);
        assert_eq!(finished.code, Some(0), "{}", finished.err);
        assert_eq!(finished.out.lines().count(), 1, "{}", finished.out);
        serde_json::from_str(&finished.out).expect("one object")
    };
    for (name, shown, hex) in [
        (&b"plain"[..], "plain", None),
        (b"a\xff", "a\\xff", Some("61ff")),
    ] {
        let name = OsStr::from_bytes(name);
        let arg = OsStr::new;
        let acquired = json(&[
            arg("--acquire"),
            arg("--json"),
            arg("--ttl"),
            arg("2m"),
            name,
        ]);
        let token = acquired["token"].as_u64().expect("a number");
        assert_eq!(acquired["did"], "acquired");
        assert_eq!(acquired["name"], shown);
        assert_eq!(acquired.get("name_hex").and_then(Value::as_str), hex);
        assert_eq!(acquired["ttl_ns"], 120_000_000_000_u64);
        let text = token.to_string();
        let renewed = json(&[arg("--renew"), arg(&text), arg("--json"), name]);
        assert_eq!(
            (&renewed["did"], &renewed["token"], &renewed["ttl_ns"]),
            (&"renewed".into(), &token.into(), &30_000_000_000_u64.into())
        );
        let released = json(&[arg("--json"), arg("--release"), arg(&text), name]);
        assert_eq!(
            (&released["did"], &released["token"]),
            (&"released".into(), &token.into())
        );
        assert!(released.get("ttl_ns").is_none());
    }
}

#[test]
fn a_token_that_cannot_be_told_is_no_hold() {
    let world = World::new();
    for args in [&["--acquire"][..], &["--acquire", "--json"]] {
        let full = File::options()
            .write(true)
            .open("/dev/full")
            .expect("it is there");
        let mut command = world.lock();
        command
            .args(args)
            .arg("told")
            .stdout(full)
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        let output = command.output().expect("it runs");
        assert_eq!(output.status.code(), Some(125));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            error.contains("released again") && error.lines().count() == 1,
            "{error}"
        );
        assert!(world.is_free("told"));
    }
    // A reader that has gone away is no different.
    let finished = world.script("sprag --at \"$AT\" lock --acquire piped | exec true; sprag --at \"$AT\" lock --wait 1h piped -- echo free");
    assert_eq!(finished.code, Some(0), "{}", finished.err);
}
