//! `sprag bench` as a user meets it: that it measures and cleans up, never how fast anything is.

mod support;

use serde_json::Value;
use support::Regions;

fn rows(report: &Value) -> Vec<(&str, u64)> {
    let rows = report["rows"].as_array().unwrap().iter();
    rows.map(|row| {
        (
            row["what"].as_str().unwrap(),
            row["contenders"].as_u64().unwrap(),
        )
    })
    .collect()
}

fn check(report: &Value) {
    assert!(report["clock_reading_ns"].as_u64() > Some(0), "{report}");
    for row in report["rows"].as_array().unwrap() {
        let samples = row["samples"].as_u64().unwrap();
        let mut last_ns = 0;
        for (key, needed) in [
            ("p50_ns", 2),
            ("p90_ns", 10),
            ("p99_ns", 100),
            ("p999_ns", 1_000),
            ("max_ns", 1),
        ] {
            match row[key].as_u64() {
                Some(ns) => {
                    assert!(samples >= needed && ns >= last_ns, "{row}");
                    last_ns = ns;
                }
                None => assert!(samples < needed && row[key].is_null(), "{row}"),
            }
        }
        if row["what"] != "hand-off" {
            assert!(samples > 0 && last_ns > 0, "{row}");
        }
    }
}

#[test]
fn threads_are_measured_in_memory() {
    let regions = Regions::new();
    let lock = regions
        .sprag("bench lock --at mem: --contenders 1,2 --json")
        .json();
    assert_eq!(
        rows(&lock),
        [("acquire", 1), ("acquire", 2), ("hand-off", 2)]
    );
    check(&lock);
    assert_eq!(lock["rows"][1]["workers"], "threads");
    let limit = regions
        .sprag("bench limit --at mem: --contenders 1,2 --keys 3 --seconds 0.1 --json")
        .json();
    assert_eq!(rows(&limit), [("check", 1), ("check", 2)]);
    check(&limit);
    let text = regions.sprag("bench limit --at mem: --contenders 1");
    let text = text.answer(0);
    assert!(text.starts_with("WHAT   WORKERS   SAMPLES"), "{text}");
    assert!(text.contains("\ncheck  1 thread  "), "{text}");
    assert!(text.contains("a reading of the clock costs "), "{text}");
}

#[test]
#[cfg(target_os = "linux")]
fn processes_are_measured_in_a_region_of_their_own_that_is_removed() {
    let regions = Regions::new();
    let lock = regions
        .sprag("bench lock --contenders 1,2 --kills 2 --json")
        .json();
    let expected = [
        ("acquire", 1),
        ("acquire", 2),
        ("hand-off", 2),
        ("after kill -9", 1),
    ];
    assert_eq!(rows(&lock), expected);
    check(&lock);
    assert_eq!(lock["rows"][1]["workers"], "processes");
    // Two deaths have a middle and a worst, and no more.
    assert_eq!(lock["rows"][3]["samples"], 2);
    assert!(lock["rows"][3]["p50_ns"].is_u64() && lock["rows"][3]["p90_ns"].is_null());
    let limit = regions
        .sprag("bench limit --contenders 2 --keys 1 --json")
        .json();
    assert_eq!(rows(&limit), [("check", 2)]);
    check(&limit);
    assert_eq!(std::fs::read_dir(regions.path()).unwrap().count(), 0);
}

#[test]
#[cfg(target_os = "linux")]
fn a_space_that_is_named_stays() {
    let regions = Regions::new();
    let words = "bench limit --at shm:kept --contenders 2 --keys 4 --json";
    check(&regions.sprag(words).json());
    assert!(regions.path().join("kept.sprag").exists());
    let limiters = regions.sprag("inspect --at shm:kept --json").json();
    assert_eq!(limiters["limiters"][0]["keys"], 4);
}

#[test]
fn numbers_out_of_bounds_are_usage_errors() {
    let regions = Regions::new();
    for (words, part) in [
        ("bench lock --contenders 0", "from 1 to 256"),
        ("bench lock --contenders 1,257", "from 1 to 256"),
        ("bench lock --seconds 0", "10ms to 1h"),
        ("bench lock --kills -1", "from 0 to 1000000"),
        ("bench limit --keys 0", "from 1 to 4294967295"),
    ] {
        let finished = regions.sprag(words);
        assert!(
            finished.error(2).contains(part),
            "{words}: {}",
            finished.err
        );
    }
}
