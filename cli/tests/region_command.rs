//! `sprag region` as an operator meets it.

#![cfg(target_os = "linux")]

mod support;

use serde_json::json;
use sprag::Space;
use support::Regions;

#[test]
fn regions_are_listed_with_their_size_and_who_uses_them() {
    let regions = Regions::new();
    assert_eq!(regions.sprag("region ls").answer(0), "no regions\n");
    assert_eq!(regions.sprag("region ls --json").json(), json!([]));
    let space = Space::open(&regions.url("b")).unwrap();
    Space::open(&regions.url("a")).unwrap();
    std::fs::write(regions.path().join("c.sprag"), "not one").unwrap();
    std::fs::write(regions.path().join("notes.txt"), "nor this").unwrap();
    let list = regions.sprag("region ls --json").json();
    let [a, b, c] = &list.as_array().unwrap()[..] else {
        panic!("{list}");
    };
    assert_eq!((&a["name"], &a["sessions"]), (&json!("a"), &json!(0)));
    assert_eq!((&b["name"], &b["sessions"]), (&json!("b"), &json!(1)));
    assert!(b["allocated_bytes"].as_u64() > Some(0));
    assert!(b["allocated_bytes"].as_u64() < b["len_bytes"].as_u64());
    assert_eq!(b["locks_cap"], 65_536);
    assert_eq!(b["sessions_cap"], 1_024);
    assert_eq!(b["waiters_cap"], 4_096);
    assert_eq!(b["key_chunks_cap"], 262_144);
    assert!(
        c["error"].as_str().unwrap().contains("not a Sprag region"),
        "{c}"
    );
    let text = regions.sprag("region ls");
    let lines: Vec<&str> = text.answer(0).lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(
        lines[0].starts_with("NAME  SESSIONS  ALLOCATED"),
        "{lines:?}"
    );
    assert!(lines[2].starts_with("b     1         ") && lines[2].ends_with("/b.sprag"));
    drop(space);
}

#[test]
fn a_region_in_use_is_removed_by_force_only() {
    let regions = Regions::new();
    let space = Space::open(&regions.url("r")).unwrap();
    let hold = space.lock("a").unwrap().acquire().unwrap();
    for words in ["region rm r", "region resize r --locks 100"] {
        let refused = regions.sprag(words);
        assert!(
            refused.error(1).contains("in use by 1 open sessions"),
            "{}",
            refused.err
        );
        let is_offered = refused.err.contains("--force");
        assert_eq!(is_offered, words.contains("rm"), "{}", refused.err);
    }
    assert!(hold.is_held());
    let removed = regions.sprag("region rm r --force --json");
    assert_eq!(removed.json(), json!({"url": "shm:r", "removed": true}));
    assert!(!hold.is_held());
    assert!(regions.sprag("region rm r").error(2).contains("no region"));
    drop(hold);
    drop(space);

    for name in ["r", "shm:r"] {
        Space::open(&regions.url("r")).unwrap();
        let removed = regions.sprag(&format!("region rm {name}"));
        assert_eq!(removed.answer(0), "removed shm:r\n");
    }
    Space::open(&regions.url("r")).unwrap();
    let path = regions.path().join("r.sprag");
    regions
        .sprag(&format!("region rm {}", path.display()))
        .answer(0);
    assert!(!path.exists());
    // What is no region stays.
    std::fs::write(&path, "dear diary").unwrap();
    regions.sprag("region rm r --force").error(2);
    assert!(path.exists());
    assert!(regions.sprag("region rm mem:").error(2).contains("shm:"));
}

#[test]
fn resizing_keeps_what_limiters_know_and_tokens_rise() {
    let regions = Regions::new();
    let url = regions.url("r");
    let limit = "limit mail 1/day;burst=2 --key k --at shm:r";
    regions.sprag(limit).answer(0);
    let token = {
        let space = Space::open(&url).unwrap();
        let hold = space.lock("a").unwrap().acquire().unwrap();
        hold.token()
    };
    let resized = regions.sprag("region resize r --locks 500 --limiter-keys 100000");
    assert_eq!(
        resized.answer(0),
        "shm:r: locks 65536 to 500, limiter keys 262144 to 100000\n"
    );
    let again = regions.sprag("region resize r --sessions 7 --json").json();
    assert_eq!(
        (
            &again["name"],
            &again["locks_cap"],
            &again["limiter_keys_cap"]
        ),
        (&json!("r"), &json!(500), &json!(100_000))
    );
    regions.sprag(limit).answer(0);
    regions.sprag(limit).answer(1);
    let space = Space::open(&url).unwrap();
    assert!(space.lock("a").unwrap().acquire().unwrap().token() > token);
    drop(space);

    for (words, code, part) in [
        ("region resize r", 2, "--locks"),
        ("region resize r --locks 500", 2, "does not have yet"),
        (
            "region resize r --locks 0",
            2,
            "--locks 0 is out of bounds; it must be 1 to 67108864",
        ),
        ("region resize r --limiter-keys 0", 2, "--limiter-keys 0 is"),
        (
            "region resize r --sessions 4096",
            2,
            "--sessions 4096 is out of bounds; it must be 1 to 4095",
        ),
        ("region resize r --waiters 65537", 2, "--waiters 65537 is"),
        ("region resize r --permits 65537", 2, "--permits 65537 is"),
        ("region resize r --key-chunks 0", 2, "--key-chunks 0 is"),
        ("region resize nosuch --locks 9", 2, "no region"),
    ] {
        let finished = regions.sprag(words);
        assert!(
            finished.error(code).contains(part),
            "{words}: {}",
            finished.err
        );
    }
}

#[test]
fn a_check_of_a_sound_region_finds_nothing_and_of_a_damaged_one_something() {
    let regions = Regions::new();
    let space = Space::open(&regions.url("default")).unwrap();
    let hold = space.lock("a").unwrap().acquire().unwrap();
    regions.sprag("limit mail 1/day --key k").answer(0);
    let check = regions.sprag("region check");
    let sound = "shm:default: sound; 2 locks, fences, counters and limiters, 1 limiter keys, 0 joint keys, 0 waits\n";
    assert_eq!(check.answer(0), sound);
    let check = regions.sprag("region check default --json").json();
    assert_eq!(
        (&check["objects"], &check["limiter_keys"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(check["findings"], json!([]));
    drop(hold);
    drop(space);

    // A header whose checksum no longer fits.
    let path = regions.path().join("default.sprag");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[64] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let check = regions.sprag("region check");
    assert!(check.answer(1).contains("checksum"), "{}", check.out);
    let check = regions.sprag("region check --json");
    assert_eq!(check.code, Some(1));
    assert_eq!(check.json()["findings"].as_array().map(Vec::len), Some(1));
    // Something that is no region at all is not what was asked about.
    std::fs::write(&path, "dear diary").unwrap();
    regions.sprag("region check").error(2);
}

#[test]
fn a_resize_below_what_there_is_says_which_option_to_raise_and_changes_nothing() {
    let regions = Regions::new();
    let space = Space::open(&regions.url("r")).unwrap();
    let limiter = space.limiter("mail", "1/day").unwrap();
    for key in 0..64_u32 {
        let long = [key.to_le_bytes(); 8].concat();
        assert!(limiter.check(&long, 1).unwrap().is_allowed());
        let name = format!("a limiter with a long name, {key}");
        space.limiter(&name, "1/day").unwrap();
    }
    drop((limiter, space));
    for (option, now) in [
        ("--locks", 65_536),
        ("--limiter-keys", 262_144),
        ("--key-chunks", 262_144),
    ] {
        let finished = regions.sprag(&format!("region resize r {option} 8"));
        let error = finished.error(2);
        assert!(
            error.starts_with(&format!("{option} 8 has no room")),
            "{error}"
        );
        assert!(error.contains(&format!("it is {now} now")), "{error}");
    }
    assert_eq!(
        regions.sprag("region ls --json").json()[0]["locks_cap"],
        65_536
    );
}

#[test]
fn a_path_may_have_a_colon_in_it() {
    let regions = Regions::new();
    let path = regions.path().join("a:b");
    Space::open(&format!("shm:{}", path.display())).unwrap();
    let check = regions.sprag(&format!("region check {}", path.display()));
    assert!(check.answer(0).contains("sound"), "{}", check.out);
}

#[test]
fn a_region_with_a_lock_that_a_script_holds_is_in_use() {
    let regions = Regions::new();
    let token = regions.sprag("lock --acquire --ttl 1h --at shm:r deploy");
    let token = token.answer(0).trim();
    for (words, has_force) in [
        ("region rm r", true),
        ("region resize r --locks 100", false),
    ] {
        let refused = regions.sprag(words);
        let error = refused.error(1);
        for part in ["1 detached holds", "token", "sprag break", "its lease end"] {
            assert!(error.contains(part), "{error}");
        }
        assert!(!error.contains("stop its users"), "{error}");
        assert_eq!(error.contains("--force"), has_force, "{error}");
    }
    regions
        .sprag(&format!("lock --release {token} --at shm:r deploy"))
        .answer(0);
    regions.sprag("region rm r").answer(0);
}

#[test]
fn what_is_not_there_is_not_to_be_created_for_its_removal() {
    let regions = Regions::new();
    for words in ["region rm r", "region resize r --locks 9", "region check r"] {
        let refused = regions.sprag(words);
        let error = refused.error(2);
        assert!(error.contains("sprag region ls"), "{error}");
        assert!(!error.contains("once"), "{error}");
    }
}

#[test]
fn a_region_is_shared_with_its_group_from_the_start_or_not() {
    let regions = Regions::new();
    let limit = "limit mail 9/day --key k --at shm:r";
    regions.sprag(limit).answer(0);
    let shared = format!("{limit} --group-shared");
    let refused = regions.sprag(&shared);
    assert!(refused.error(2).contains("chmod 660"), "{}", refused.err);
    let refused = regions.sprag("lock a --at shm:r --group-shared -- true");
    assert!(refused.error(64).contains("chmod 660"), "{}", refused.err);
    let path = regions.path().join("r.sprag");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o660);
    std::fs::set_permissions(path, mode).unwrap();
    regions.sprag(&shared).answer(0);
    let refused = regions.sprag(limit);
    assert!(
        refused.error(2).contains("--group-shared"),
        "{}",
        refused.err
    );
}
