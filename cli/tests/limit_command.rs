//! `sprag limit` as a shell script meets it.

mod support;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use serde_json::{Value, json};
use sprag::Space;
use support::Regions;

#[test]
fn the_exit_code_is_the_answer_and_the_line_says_how_it_stands() {
    let regions = Regions::new();
    // An hour for a unit: no test is so slow that one comes back.
    let limit = "limit mail 1/hour;burst=3 --key bob";
    let first = regions.sprag(limit);
    assert_eq!(first.answer(0), "allowed, 2 of 3 left, full again in 1 h\n");
    let rest = regions.sprag(&format!("{limit} --cost 2"));
    assert!(
        rest.answer(0)
            .starts_with("allowed, 0 of 3 left, full again in 3 h")
    );
    let refused = regions.sprag(limit);
    let line = refused.answer(1);
    assert!(
        line.starts_with("refused, retry after ") && line.contains("0 of 3 left"),
        "{line}"
    );
    let never = regions.sprag(&format!("{limit} --cost 4"));
    let line = never.answer(1);
    assert!(
        line.starts_with("never: the cost 4 is above the 3 "),
        "{line}"
    );
    // Another key has its own.
    regions
        .sprag("limit mail 1/hour;burst=3 --key eve")
        .answer(0);
    // A cost of nothing passes.
    regions.sprag(&format!("{limit} --cost 0")).answer(0);
}

// property 9
#[test]
fn a_key_may_look_like_an_option() {
    let regions = Regions::new();
    for key in ["-x", "--peek", "--", "-1"] {
        let asked = regions.sprag(&format!("limit mail 3/day --key {key}"));
        assert!(asked.answer(0).starts_with("allowed, 2 of 3"), "{key}");
        let set = regions.sprag(&format!("override set mail 5/day --key {key}"));
        assert!(set.answer(0).contains("5/day in place of 3/day"), "{key}");
        let asked = regions.sprag(&format!("limit mail 3/day --key {key} --cost 0"));
        assert!(asked.answer(0).starts_with("allowed, 4 of 5"), "{key}");
        regions
            .sprag(&format!("override clear mail --key {key}"))
            .answer(0);
    }
}

#[test]
fn the_json_has_every_part_of_the_decision() {
    let regions = Regions::new();
    let fixed = "limit f 2/day;window=fixed --key k --json";
    let allowed = regions.sprag(fixed).json();
    assert_eq!(allowed["allowed"], true);
    assert_eq!(
        (&allowed["limit"], &allowed["remaining"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(allowed["retry_after_ns"], 0);
    assert!(allowed["reset_after_ns"].as_u64() > Some(0));
    assert_eq!(allowed["overflow"], false);
    assert_eq!(allowed.as_object().map(serde_json::Map::len), Some(6));

    let never = regions.sprag(&format!("{fixed} --cost 3"));
    assert_eq!(never.code, Some(1));
    assert_eq!(never.json()["retry_after_ns"], Value::Null);

    let day_ns = 86_400_000_000_000;
    let bucket = "limit b 1/day --key k --json";
    regions.sprag(bucket).answer(0);
    let refused = regions.sprag(bucket);
    assert_eq!(refused.code, Some(1));
    let retry_ns = refused.json()["retry_after_ns"].as_u64().unwrap_or(0);
    assert!((day_ns / 2..=day_ns).contains(&retry_ns), "{retry_ns}");
}

#[test]
fn a_peek_takes_nothing_and_tells_what_a_check_would() {
    let regions = Regions::new();
    let limit = "limit mail 1/hour;burst=3 --key bob --json";
    for _ in 0..3 {
        let peek = regions.sprag(&format!("{limit} --peek --cost 3"));
        assert_eq!(peek.code, Some(0));
        assert_eq!(peek.json()["remaining"], 3);
    }
    regions.sprag(limit).answer(0);
    for (cost, code, wait_hours) in [(2, 0, Some(0)), (3, 1, Some(1)), (4, 1, None)] {
        let peek = regions.sprag(&format!("{limit} --peek --cost {cost}"));
        assert_eq!(peek.code, Some(code), "{cost}");
        let hours = peek.json()["retry_after_ns"].as_u64();
        let hours = hours.map(|ns| ns.div_ceil(3_600_000_000_000));
        assert_eq!(hours, wait_hours, "{cost}");
        assert_eq!(peek.json()["remaining"], 2, "{cost}");
    }
}

#[test]
fn another_limit_is_an_error_until_it_is_asked_for() {
    let regions = Regions::new();
    regions
        .sprag("limit mail 1/hour;burst=3 --key bob --cost 2")
        .answer(0);
    let other = regions.sprag("limit mail 5/hour --key bob");
    let error = other.error(2);
    for part in [
        "mail is 1/hour;burst=3",
        "not 5/hour",
        "--update",
        "shm:default",
    ] {
        assert!(error.contains(part), "{error}");
    }
    // The refused change changed nothing; an update keeps what was used.
    regions
        .sprag("limit mail 1/hour;burst=3 --key bob --peek")
        .answer(0);
    let updated = regions.sprag("limit mail 1/hour;burst=5 --key bob --peek --update --json");
    assert_eq!(updated.json()["remaining"], 3);
    regions
        .sprag("limit mail 1/hour;burst=3 --key bob")
        .error(2);
}

#[test]
fn what_is_no_limit_is_a_usage_error_that_names_it() {
    let regions = Regions::new();
    for (limit, part) in [
        ("5", "COUNT/PERIOD"),
        ("5/fortnight", "unit \"fortnight\""),
        ("x/s", "count = \"x\""),
        ("5/s;burst=0", "a burst of 0"),
        ("5/s;window=fixed;burst=2", "burst"),
        ("5/s;colour=red", "colour=red"),
    ] {
        let finished = regions.run(["limit", "mail", limit, "--key", "k"]);
        assert_eq!(finished.code, Some(2), "{limit}");
        assert!(finished.err.contains(part), "{limit}: {}", finished.err);
    }
    let long = "k".repeat(1_025);
    let finished = regions.run(["limit", "mail", "5/s", "--key", &long]);
    assert!(finished.error(2).contains("1025 bytes"), "{}", finished.err);
    let no_key = regions.sprag("limit mail 5/s");
    assert_eq!(no_key.code, Some(2));
    assert!(no_key.err.contains("--key"), "{}", no_key.err);
    assert_eq!(
        std::fs::read_dir(regions.path()).unwrap().count(),
        0,
        "nothing above was worth a region"
    );
}

#[test]
fn keys_and_names_are_bytes() {
    let regions = Regions::new();
    for key in [&b"\xff\xfe"[..], b"\xff\xfd", b"a b\n", "\u{e9}".as_bytes()] {
        let args = ["limit", "mail", "1/day", "--key"].map(OsStr::new);
        let args = args.into_iter().chain([OsStr::from_bytes(key)]);
        regions.run(args.clone()).answer(0);
        regions.run(args).answer(1);
    }
}

#[test]
fn programs_and_the_command_share_a_limiter() {
    let regions = Regions::new();
    let url = regions.url("shared");
    let space = Space::open(&url).unwrap();
    let limiter = space.limiter("api", "1/day;burst=2").unwrap();
    assert!(limiter.check("k", 1).unwrap().is_allowed());
    let words = format!("--at {url} limit api 1/day;burst=2 --key k");
    regions.sprag(&words).answer(0);
    assert!(!limiter.check("k", 1).unwrap().is_allowed());
    regions
        .sprag("limit api 1/day;burst=2 --key k --at shm:shared")
        .answer(1);
}

#[test]
fn the_answer_stands_when_nobody_reads_it() {
    let regions = Regions::new();
    // A count of 0 refuses everything.
    for (limit, code) in [("1/day", 0), ("0/day", 1)] {
        for form in ["--peek", "--json"] {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let name = format!("{limit}{form}");
            let mut command = regions.command(["limit", &name, limit, "--key", "k", form]);
            command.stdout(writer).stderr(Stdio::piped());
            let output = command.spawn().unwrap().wait_with_output().unwrap();
            assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
            assert_eq!(output.status.code(), Some(code));
        }
    }
}

#[test]
fn several_limits_are_asked_in_one_step_and_the_one_that_refuses_longest_is_named() {
    let regions = Regions::new();
    let limits = "limit api 2/hour --and 3/day --key ann";
    let first = regions.sprag(limits);
    assert_eq!(first.answer(0), "allowed, 1 of 2 left, full again in 8 h\n");
    regions.sprag(limits).answer(0);
    for _ in 0..2 {
        let refused = regions.sprag(limits);
        let line = refused.answer(1);
        assert!(
            line.starts_with("refused by 2/hour, retry after "),
            "{line}"
        );
        assert!(line.contains("0 of 2 left"), "{line}");
    }
    // What was refused took nothing of the day either.
    let peek = regions.sprag(&format!("{limits} --peek --cost 2 --json"));
    assert_eq!(peek.code, Some(1));
    let peek = peek.json();
    assert_eq!(peek["refused_by"], "3/day", "{peek}");
    assert_eq!(peek["remaining"], 0);
    let never = regions.sprag(&format!("{limits} --cost 3"));
    assert!(
        never
            .answer(1)
            .starts_with("never: the cost 3 is above the 2 ")
    );

    let shown = regions.sprag("inspect --limiters");
    let shown = shown.answer(0);
    assert!(shown.contains("2/hour and 3/day  1     api"), "{shown}");
    let shown = regions.sprag("inspect --json").json();
    let limiter = &shown["joint_limiters"][0];
    assert_eq!(limiter["limits"], json!(["2/hour", "3/day"]));
    assert_eq!(
        (&limiter["name"], &limiter["keys"]),
        (&json!("api"), &json!(1))
    );
}

#[test]
fn several_limits_are_not_changed_and_each_is_one_of_six() {
    let regions = Regions::new();
    regions
        .sprag("limit api 2/hour --and 3/day --key k")
        .answer(0);
    let other = regions.sprag("limit api 3/day --and 2/hour --key k");
    assert_eq!(other.code, Some(2));
    assert!(other.err.contains("another name"), "{}", other.err);
    let many = "--and 1/s ".repeat(6);
    let many = regions.sprag(&format!("limit many 2/hour {many}--key k"));
    assert_eq!(many.code, Some(2));
    assert!(many.err.contains('6'), "{}", many.err);
    let update = regions.sprag("limit api 2/hour --and 3/day --key k --update");
    assert_eq!(update.code, Some(2));
}
