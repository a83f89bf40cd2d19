//! `sprag lock --shared` and `--of`: several at once, from scripts and around commands.
#![cfg(target_os = "linux")]

mod lock {
    pub(crate) mod world;
}

use lock::world::World;
use serde_json::Value;

#[test]
fn a_script_shares_a_lock_and_keeps_out_who_wants_it_alone() {
    let world = World::new();
    let finished = world.script(
        r#"set -eu
one=$(sprag --at "$AT" lock --acquire --shared --ttl 10m catalog)
two=$(sprag --at "$AT" lock --acquire -s --ttl 10m catalog)
test "$two" -gt "$one" && echo "rises"
sprag --at "$AT" lock --try catalog -- echo overlap || echo "shared: $?"
sprag --at "$AT" lock --try --shared catalog -- echo "a third beside them"
sprag --at "$AT" lock --renew "$one" --ttl 20m catalog
sprag --at "$AT" lock --release "$one" catalog
sprag --at "$AT" lock --release "$one" catalog || echo "twice: $?"
sprag --at "$AT" lock --try catalog -- echo overlap || echo "shared: $?"
sprag --at "$AT" lock --release "$two" catalog
sprag --at "$AT" lock --try catalog -- sprag --at "$AT" lock --try --shared catalog -- echo overlap || echo "alone: $?"
"#,
    );
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    assert_eq!(
        finished.out,
        "rises\nshared: 75\na third beside them\ntwice: 123\nshared: 75\nalone: 75\n"
    );
}

#[test]
fn a_script_takes_permits_and_no_more_than_there_are() {
    let world = World::new();
    let finished = world.script(
        r#"set -eu
two=$(sprag --at "$AT" lock --acquire --of 3 --permits 2 --ttl 10m encode)
sprag --at "$AT" lock --try --of 3 -p 2 encode -- echo overlap || echo "two more: $?"
sprag --at "$AT" lock --try --of 3 encode -- echo "one more"
sprag --at "$AT" lock --wait 50ms --of 3 --permits 3 encode -- echo overlap || echo "all: $?"
sprag --at "$AT" lock --renew "$two" --of 3 encode
sprag --at "$AT" lock --release "$two" encode || echo "no lock: $?"
sprag --at "$AT" lock --release "$two" --of 3 encode
sprag --at "$AT" lock --try --of 3 --permits 3 encode -- echo "all"
"#,
    );
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    assert_eq!(
        finished.out,
        "two more: 75\none more\nall: 124\nno lock: 123\nall\n"
    );
    assert!(
        finished.err.contains("the semaphore 'encode' is not free"),
        "{}",
        finished.err
    );
}

#[test]
fn what_makes_no_sense_is_told_with_its_bounds() {
    let world = World::new();
    let token = world.run(["--acquire", "--of", "2", "encode"]);
    assert_eq!(token.code, Some(0), "{}", token.err);
    let cases: [(&[&str], i32, &str); 7] = [
        (
            &["--of", "2", "--permits", "3", "encode", "--", "true"],
            64,
            "--permits is 3; it must be 1 to 2",
        ),
        (&["--of", "0", "encode", "--", "true"], 64, "1 to 16777215"),
        (
            &["--of", "16777216", "encode", "--", "true"],
            64,
            "1 to 16777215",
        ),
        (&["--permits", "1", "encode", "--", "true"], 64, "--of"),
        (
            &["--shared", "--of", "2", "encode", "--", "true"],
            64,
            "--of",
        ),
        (&["--shared", "--release", "7", "encode"], 64, "--release"),
        (
            &["--of", "3", "encode", "--", "true"],
            125,
            "exists with 2 permits and was asked for with 3",
        ),
    ];
    for (args, code, error) in cases {
        let finished = world.run(args);
        assert_eq!(finished.code, Some(code), "{args:?}: {}", finished.err);
        assert!(finished.err.contains(error), "{args:?}: {}", finished.err);
        assert_eq!(finished.out, "");
    }
}

#[test]
fn one_that_would_wait_for_itself_is_told_and_one_that_would_not_runs() {
    let world = World::new();
    let finished = world.script(
        r#"
sprag --at "$AT" lock -s a -- sprag --at "$AT" lock -s a -- echo "both share"
sprag --at "$AT" lock -s a -- sprag --at "$AT" lock a -- echo never || echo "alone: $?"
sprag --at "$AT" lock --of 2 b -- sprag --at "$AT" lock --of 2 b -- echo "there are two"
sprag --at "$AT" lock --of 2 b -- sprag --at "$AT" lock --of 2 -p 2 b -- echo never || echo "two: $?"
"#,
    );
    assert_eq!(
        finished.out, "both share\nalone: 64\nthere are two\ntwo: 64\n",
        "{}",
        finished.err
    );
}

#[test]
fn an_inspection_shows_each_who_shares_and_each_who_has_permits() {
    let world = World::new();
    let space = world.space();
    let one = space.lock("catalog").unwrap().acquire_shared().unwrap();
    let two = space.lock("catalog").unwrap().acquire_shared().unwrap();
    let permits = space.semaphore("encode", 5).unwrap().acquire(2).unwrap();
    let inspect = |args: &str| {
        let script = format!("sprag --at \"$AT\" inspect {args}");
        let finished = world.script(&script);
        assert_eq!(finished.code, Some(0), "{}", finished.err);
        finished.out
    };
    let text = inspect("");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("LOCK    HOLDER"), "{text}");
    for (line, token) in [(lines[1], one.token()), (lines[2], two.token())] {
        assert!(line.starts_with("shared  pid "), "{text}");
        assert!(line.contains(&token.to_string()) && line.ends_with("  catalog"));
    }
    assert!(lines[4].starts_with("SEMAPHORE  HOLDER"), "{text}");
    assert!(
        lines[5].starts_with("2 of 5     pid ") && lines[5].ends_with("  encode"),
        "{text}"
    );
    let json: Value = serde_json::from_str(&inspect("--json")).unwrap();
    let lock = &json["locks"][0];
    assert_eq!(
        (&lock["held"], &lock["shared"]),
        (&true.into(), &true.into())
    );
    let tokens: Vec<&Value> = lock["holds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hold| &hold["token"])
        .collect();
    assert_eq!(tokens, [one.token(), two.token()]);
    let semaphore = &json["semaphores"][0];
    assert_eq!(
        (&semaphore["permits"], &semaphore["taken"]),
        (&5.into(), &2.into())
    );
    let hold = &semaphore["holds"][0];
    assert_eq!(
        (&hold["token"], &hold["permits"], &hold["pid"]),
        (
            &permits.token().into(),
            &2.into(),
            &std::process::id().into()
        )
    );
    drop((one, two, permits));
    assert_eq!(inspect("--held --locks --semaphores"), "nothing to show\n");
    assert!(inspect("--semaphores").contains("0 of 5"));
}
