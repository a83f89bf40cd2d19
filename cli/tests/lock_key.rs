//! `sprag lock --key`: so many at once of each key of a limiter, from scripts and around commands.
#![cfg(target_os = "linux")]

mod lock {
    pub(crate) mod world;
}

use lock::world::World;
use serde_json::Value;

// property 12
#[test]
fn a_script_takes_permits_of_a_key_and_no_more_than_the_limiter_allows() {
    let world = World::new();
    let finished = world.script(
        r#"set -eu
two=$(sprag --at "$AT" lock --acquire --of 3 --key ann --permits 2 --ttl 10m uploads)
sprag --at "$AT" lock --try --of 3 --key ann -p 2 uploads -- echo overlap || echo "two more: $?"
sprag --at "$AT" lock --try --key ann uploads -- echo "one more"
sprag --at "$AT" lock --try --of 3 --key bob -p 3 uploads -- echo "another key"
sprag --at "$AT" lock --wait 50ms --of 3 --key ann -p 3 uploads -- echo overlap || echo "all: $?"
sprag --at "$AT" lock --try --of 3 uploads -- echo "a semaphore of that name"
sprag --at "$AT" lock --renew "$two" --key ann uploads
sprag --at "$AT" lock --release "$two" --key bob uploads || echo "another's: $?"
sprag --at "$AT" lock --release "$two" --of 3 --key ann --json uploads | grep -o '"key":"ann"'
sprag --at "$AT" lock --try --of 3 --key ann -p 3 uploads -- echo "all"
sprag --at "$AT" lock --try --key ann -p 3 uploads -- echo "as many as it allows"
sprag --at "$AT" lock --key ann -p 4 uploads -- echo never || echo "more than it allows: $?"
"#,
    );
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    assert_eq!(
        finished.out,
        "two more: 75\none more\nanother key\nall: 124\na semaphore of that name\nanother's: 123\n\
         \"key\":\"ann\"\nall\nas many as it allows\nmore than it allows: 125\n"
    );
    for told in [
        "the key 'ann' of 'uploads' is not free",
        "allows 3 at once of each key, so 4 can never be had",
    ] {
        assert!(finished.err.contains(told), "{}", finished.err);
    }
}

#[test]
fn how_many_a_limiter_allows_is_changed_on_request_alone() {
    let world = World::new();
    let finished = world.script(
        r#"
lock() { sprag --at "$AT" lock "$@"; }
lock --key ann uploads -- echo never || echo "nobody said how many: $?"
lock --release 7 --key ann uploads || echo "nothing is held: $?"
lock --of 2 --key ann uploads -- echo "two"
lock --of 3 --key ann uploads -- echo never || echo "another number: $?"
lock --of 3 --key ann --update uploads -- echo "three"
lock --key ann -p 3 uploads -- echo "all of them"
lock --key ann -p 4 uploads -- echo never || echo "more than there are: $?"
lock --of 2 --key ann --update uploads -- sprag --at "$AT" lock --try --of 2 --key ann uploads -- echo "two again"
lock --of 2 --key ann uploads -- sprag --at "$AT" lock --of 2 -p 2 --key ann uploads -- echo never || echo "itself: $?"
"#,
    );
    assert_eq!(
        finished.out,
        "nobody said how many: 64\nnothing is held: 123\ntwo\nanother number: 125\nthree\nall of them\n\
         more than there are: 125\ntwo again\nitself: 64\n",
        "{}",
        finished.err
    );
    for told in [
        "there is no limiter 'uploads'; say with --of",
        "allows 2 at once of each key and was opened with 3",
        "--update",
    ] {
        assert!(finished.err.contains(told), "{}", finished.err);
    }
}

#[test]
fn a_command_is_told_its_key_and_waits_for_another_of_the_same_token() {
    let world = World::new();
    let finished = world.script(
        r#"
lock() { sprag --at "$AT" lock "$@"; }
bob=$(lock --acquire --of 1 --key bob uploads)
lock --key ann uploads -- sh -c 'echo "$SPRAG_KEY of $SPRAG_LIMITER, $(($SPRAG_TOKEN - $1))"
sprag --at "$AT" lock --wait 50ms --key bob uploads -- echo never || echo "another key: $?"
sprag --at "$AT" lock --wait 50ms --key ann uploads -- echo never || echo "itself: $?"' sh "$bob"
"#,
    );
    assert_eq!(
        finished.out, "ann of uploads, 0\nanother key: 124\nitself: 64\n",
        "{}",
        finished.err
    );
}

#[test]
fn what_makes_no_sense_is_told() {
    let world = World::new();
    let cases: [(&[&str], &str); 6] = [
        (
            &["--of", "2", "--key", "", "l", "--", "true"],
            "key is 0 bytes",
        ),
        (
            &["--of", "2", "--key", "k", "-p", "3", "l", "--", "true"],
            "--permits is 3",
        ),
        (&["--key", "k", "--update", "l", "--", "true"], "--of"),
        (&["--of", "2", "--update", "l", "--", "true"], "--key"),
        (
            &["--of", "2", "--key", "k", "--shared", "l", "--", "true"],
            "--shared",
        ),
        (
            &["--of", "2", "--key", "k", "l", "m", "--", "true"],
            "several names",
        ),
    ];
    for (args, error) in cases {
        let finished = world.run(args);
        assert_eq!(finished.code, Some(64), "{args:?}: {}", finished.err);
        assert!(finished.err.contains(error), "{args:?}: {}", finished.err);
    }
}

#[test]
fn an_inspection_shows_what_is_held_of_each_key() {
    let world = World::new();
    let space = world.space();
    let uploads = space.concurrency("uploads", 5).unwrap();
    let hold = uploads.key("ann").unwrap().acquire(2).unwrap();
    drop(uploads.key("bob").unwrap().acquire(1).unwrap());
    let inspect = |args: &str| {
        let script = format!("sprag --at \"$AT\" inspect {args}");
        let finished = world.script(&script);
        assert_eq!(finished.code, Some(0), "{}", finished.err);
        finished.out
    };
    let text = inspect("--concurrency");
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0] == "AT ONCE  KEYS  LIMITER" && lines[1] == "5        2     uploads",
        "{text}"
    );
    assert!(lines[3].starts_with("HELD    HOLDER"), "{text}");
    assert!(lines[3].ends_with("LIMITER  KEY"), "{text}");
    assert!(lines[4].starts_with("2 of 5  pid "), "{text}");
    assert!(lines[4].ends_with("  uploads  ann"), "{text}");
    assert!(lines[5].starts_with("0 of 5  - "), "{text}");
    assert!(!inspect("--held").contains("bob"));
    let json: Value = serde_json::from_str(&inspect("--json --held")).unwrap();
    let limiter = &json["concurrency"][0];
    assert_eq!(
        (&limiter["name"], &limiter["permits"]),
        (&"uploads".into(), &5.into())
    );
    let key = &limiter["keys"][0];
    assert_eq!((&key["key"], &key["taken"]), (&"ann".into(), &2.into()));
    assert_eq!(key["holds"][0]["token"], hold.token());
    assert_eq!(limiter["keys"].as_array().unwrap().len(), 1);
}
