//! `sprag counter` as a shell script meets it.

mod support;

use serde_json::json;
use sprag::Space;
use support::Regions;

#[test]
fn each_form_prints_the_number_and_its_exit_code_is_the_answer() {
    let regions = Regions::new();
    for (words, code, number) in [
        ("get hits", 0, "0"),
        ("add hits", 0, "1"),
        ("add hits 41", 0, "42"),
        ("add hits -2", 0, "40"),
        ("get hits", 0, "40"),
        ("add --max 45 hits 5", 0, "45"),
        ("add --max 45 hits", 1, "45"),
        ("add hits -46 --min 0", 1, "45"),
        ("add hits -50 --min -5 --max -5", 0, "-5"),
        ("swap hits 7", 0, "-5"),
        ("compare-exchange hits 8 9", 1, "7"),
        ("compare-exchange hits 7 -9", 0, "-9"),
        ("swap hits 0", 0, "-9"),
        ("add other", 0, "1"),
    ] {
        let finished = regions.sprag(&format!("counter {words}"));
        assert_eq!(finished.answer(code), format!("{number}\n"), "{words}");
    }
    let refused = regions.sprag("counter add other --max 0 --json");
    assert_eq!(refused.code, Some(1));
    assert_eq!(refused.json(), json!({"number": 1, "done": false}));
}

#[test]
fn what_is_wrong_is_one_line_and_changes_nothing() {
    let regions = Regions::new();
    for (words, part) in [
        (
            "add hits x",
            "it must be a whole number from -9223372036854775808 to",
        ),
        ("add hits 9223372036854775808", "it must be a whole number"),
        ("add hits --min", "--min"),
        ("add hits --min 3 --max 2", "the bounds are 3 to 2"),
        ("swap hits", "<NEW>"),
        ("get hits --at mem:", "--at shm:NAME"),
        ("get hits --at shm:nobodys", "there is no region"),
    ] {
        let finished = regions.sprag(&format!("counter {words}"));
        assert!(
            finished.error(2).contains(part),
            "{words}: {}",
            finished.err
        );
    }
    let long = regions.run(["counter", "add", &"x".repeat(1_025)]);
    assert!(long.error(2).contains("1 to 1024 bytes"), "{}", long.err);
    regions
        .sprag("counter swap hits 9223372036854775807")
        .answer(0);
    let over = regions.sprag("counter add hits");
    assert!(
        over.error(2).contains("hits is at 9223372036854775807"),
        "{}",
        over.err
    );
    let still = regions.sprag("counter get hits");
    assert_eq!(still.answer(0), "9223372036854775807\n");
}

#[test]
fn looking_creates_nothing_and_programs_share_the_number() {
    let regions = Regions::new();
    assert_eq!(regions.sprag("counter get hits").answer(0), "0\n");
    assert_eq!(std::fs::read_dir(regions.path()).unwrap().count(), 0);
    let url = regions.url("r");
    let space = Space::open(&url).unwrap();
    assert_eq!(space.counter("hits").unwrap().add(5).unwrap(), 5);
    let added = regions.sprag(&format!("counter add hits --at {url}"));
    assert_eq!(added.answer(0), "6\n");
    assert_eq!(space.counter("hits").unwrap().get().unwrap(), 6);
}
