//! `sprag metrics` as an operator meets it: on a region that this test's process fills.

mod support;

use serde_json::json;
use sprag::{Caps, Space};
use support::Regions;

#[test]
fn a_space_shows_how_full_it_is() {
    let regions = Regions::new();
    let url = regions.url("r");
    let caps = Caps {
        objects: 40,
        limiter_keys: 4,
        ..Caps::default()
    };
    let space = Space::builder().caps(caps).open(&url).unwrap();
    let limiter = space.limiter("api", "100/minute").unwrap();
    for key in ["ann", "a key that needs a chunk"] {
        assert!(limiter.check(key, 1).unwrap().is_allowed());
    }
    let _hold = space.lock("a").unwrap().acquire_shared().unwrap();

    let of = |used: u64, cap: u64| json!({ "used": used, "cap": cap });
    let shown = regions.sprag(&format!("metrics --at {url} --json")).json();
    let expected = json!({
        "objects": of(2, 40),
        "limiter_keys": of(2, 4),
        "joint_keys": of(0, 65_536),
        // The command has none of its own.
        "sessions": of(1, 1_024),
        "waiters": of(0, 4_096),
        "permits": of(1, 8_192),
        "key_chunks": of(1, 262_144),
        "limits": of(1, 1_024),
        "joint_limiters": of(0, 256),
    });
    assert_eq!(shown, expected);

    let text = regions.sprag(&format!("metrics --at {url}"));
    let lines: Vec<&str> = text.answer(0).lines().collect();
    assert_eq!(lines[0], "USED  CAP     FULL  OF");
    assert_eq!(lines[1], "2     40      5 %   objects");
    assert_eq!(lines[2], "2     4       50 %  limiter keys");
    assert_eq!(lines.len(), 10);
}

#[test]
fn a_space_that_is_not_there_is_an_error_and_is_not_created() {
    let regions = Regions::new();
    let url = regions.url("r");
    regions.sprag(&format!("metrics --at {url}")).error(2);
    assert_eq!(std::fs::read_dir(regions.path()).unwrap().count(), 0);
    let refused = regions.sprag("metrics --at mem:");
    assert!(refused.error(2).contains("begins empty"));
}
