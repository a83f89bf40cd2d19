//! `sprag override` as a shell script meets it.

mod support;

use serde_json::json;
use sprag::Space;
use support::Regions;

#[test]
fn an_override_is_set_seen_by_a_check_listed_and_cleared() {
    let regions = Regions::new();
    let none = regions.sprag("override ls");
    assert_eq!(none.answer(0), "no overrides\n");
    regions.sprag("limit api 3/day --key ann").answer(0);
    for (words, code, line) in [
        (
            "set api 9/day --key big",
            0,
            "big has 9/day in place of 3/day",
        ),
        (
            "set api 0/second --key bot",
            0,
            "bot has 0/second in place of 3/day",
        ),
        (
            "set api 8/day --key big",
            0,
            "big has 8/day in place of 3/day",
        ),
        ("clear api --key bot", 0, "bot has 3/day again, as all"),
        ("clear api --key bot", 1, "bot had no limit of its own"),
        ("clear none --key bot", 1, "bot had no limit of its own"),
    ] {
        let finished = regions.sprag(&format!("override {words}"));
        assert_eq!(finished.answer(code), format!("{line}\n"), "{words}");
    }
    let big = regions.sprag("limit api 3/day --key big");
    assert!(
        big.answer(0).starts_with("allowed, 7 of 8 left"),
        "{}",
        big.out
    );
    let table = "OVERRIDE  LIMITER  KEY\n8/day     api      big\n";
    assert_eq!(regions.sprag("override ls").answer(0), table);
    assert_eq!(
        regions.sprag("override ls other").answer(0),
        "no overrides\n"
    );
    let inspected = regions.sprag("inspect --limiters");
    assert!(
        inspected.answer(0).ends_with(&format!("\n\n{table}")),
        "{}",
        inspected.out
    );
    let row = json!([{"name": "api", "key": "big", "limit": "8/day"}]);
    assert_eq!(regions.sprag("override ls --json").json(), row);
    assert_eq!(regions.sprag("inspect --json").json()["overrides"], row);
    let set = regions.sprag("override set api 5/day --key big --json");
    assert_eq!(set.json(), json!({"limit": "5/day", "done": true}));
    let cleared = regions.sprag("override clear api --key big --json");
    assert_eq!(cleared.json(), json!({"limit": null, "done": true}));
    let again = regions.sprag("override clear api --key big --json");
    assert_eq!(again.code, Some(1));
    assert_eq!(again.json(), json!({"limit": null, "done": false}));
}

#[test]
fn keys_are_bytes_and_what_can_not_be_shown_is_escaped() {
    let regions = Regions::new();
    let url = regions.url("r");
    let space = Space::open(&url).unwrap();
    let api = space.limiter("api", "3/day").unwrap();
    let key: &[u8] = &[0xff, 0x1b];
    api.set_override(key, "4/day").unwrap();
    let rows = regions
        .sprag(&format!("override ls --at {url} --json"))
        .json();
    assert_eq!(rows[0]["key_hex"], "ff1b");
    let text = regions.sprag(&format!("override ls --at {url}"));
    assert!(
        text.answer(0).ends_with("api      \\xff\\x1b\n"),
        "{}",
        text.out
    );
}

#[test]
fn what_is_wrong_is_one_line_and_changes_nothing() {
    let regions = Regions::new();
    for (words, part) in [
        (
            "set api 9/day --key k",
            "there is no limiter api in shm:default",
        ),
        ("set api 9/day --key k", "of several limits (--and)"),
        (
            "set api 9/day --key k --at shm:nobodys",
            "there is no region",
        ),
        ("set api 9/fortnight --key k", "fortnight"),
        ("set api 9/day", "--key"),
        ("ls --at mem:", "--at shm:NAME"),
        ("ls --at shm:nobodys", "there is no region"),
    ] {
        let finished = regions.sprag(&format!("override {words}"));
        assert!(
            finished.error(2).contains(part),
            "{words}: {}",
            finished.err
        );
    }
    for words in [&["set", "api", "9/day"][..], &["clear", "api"]] {
        let key = "x".repeat(1_025);
        let long = regions.run(
            ["override"]
                .iter()
                .chain(words)
                .copied()
                .chain(["--key", &key]),
        );
        assert!(long.error(2).contains("1 to 1024 bytes"), "{}", long.err);
    }
    assert_eq!(regions.sprag("region ls").answer(0), "no regions\n");
}
