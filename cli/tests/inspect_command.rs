//! `sprag inspect` and `sprag break` as an operator meets them: on locks that this test's process holds.

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use sprag::Space;
use support::Regions;

fn inspect(regions: &Regions, url: &str, words: &str) -> Value {
    regions
        .sprag(&format!("inspect --at {url} --json{words}"))
        .json()
}

#[test]
fn a_lock_shows_its_holder_token_lease_and_waiters() {
    let regions = Regions::new();
    let url = regions.url("r");
    let space = Space::open(&url).unwrap();
    let ttl = Duration::from_hours(1);
    let lock = |name| space.lock(name).unwrap().ttl(ttl).unwrap();
    let hold = lock("orders/1").acquire().unwrap();
    let freed = lock("orders/2").acquire().unwrap();
    let freed_token = freed.token();
    freed.release().unwrap();
    let detached_token = lock("orders/3").acquire().unwrap().detach().unwrap();
    lock("other").acquire().unwrap().release().unwrap();

    let locks = inspect(&regions, &url, " orders/");
    let [held, free, detached] = &locks["locks"].as_array().unwrap()[..] else {
        panic!("{locks}");
    };
    assert_eq!(held["name"], "orders/1");
    assert_eq!(held["held"], true);
    assert_eq!(held["holder_pid"], std::process::id());
    assert_eq!(held["detached"], false);
    assert_eq!(held["token"], hold.token());
    assert_eq!(held["waiters"], 0);
    let left_ns = held["lease_left_ns"].as_u64().unwrap();
    assert!((1..=3_600_000_000_000).contains(&left_ns), "{left_ns}");
    assert!(held["held_for_ns"].is_u64());
    assert_eq!(free["name"], "orders/2");
    assert_eq!(
        (&free["held"], &free["token"]),
        (&json!(false), &json!(freed_token))
    );
    assert_eq!(
        (&free["holder_pid"], &free["held_for_ns"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(free["lease_left_ns"], 0);
    assert_eq!(
        (&detached["held"], &detached["detached"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(
        (&detached["holder_pid"], &detached["token"]),
        (&Value::Null, &json!(detached_token))
    );

    // One who waits, seen as soon as it does.
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| lock("orders/1").acquire().unwrap().release().unwrap());
        while inspect(&regions, &url, " orders/1")["locks"][0]["waiters"] != 1 {}
        hold.release().unwrap();
        waiter.join().unwrap();
    });

    let text = regions.sprag(&format!("inspect --at {url} --held"));
    let lines: Vec<&str> = text.answer(0).lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("LOCK  HOLDER    TOKEN"), "{lines:?}");
    assert!(lines[1].starts_with("held  detached  ") && lines[1].ends_with("  orders/3"));
}

#[test]
fn kinds_are_shown_as_asked_for() {
    let regions = Regions::new();
    let url = regions.url("r");
    let space = Space::open(&url).unwrap();
    let hold = space.lock("a").unwrap().acquire().unwrap();
    let limiter = space.limiter("api", "7/day;burst=9").unwrap();
    for key in ["x", "y", "z"] {
        assert!(limiter.check(key, 1).unwrap().is_allowed());
    }
    space.limiter("none", "1/s").unwrap();
    let other = space.limiter("other", "1/s").unwrap();
    assert!(other.check("x", 1).unwrap().is_allowed());
    space.counter("hits").unwrap().add(-3).unwrap();
    space.counter("none").unwrap().add(1).unwrap();
    space.counter("none").unwrap().add(-1).unwrap();
    let all = inspect(&regions, &url, "");
    let keys: Vec<&String> = all.as_object().unwrap().keys().collect();
    let all_keys = [
        "breaks",
        "concurrency",
        "counters",
        "limiters",
        "locks",
        "onces",
        "semaphores",
    ];
    assert_eq!(keys, all_keys);
    assert_eq!(all["counters"], json!([{"name": "hits", "number": -3}]));
    assert_eq!(
        all["limiters"],
        json!([
            {"name": "api", "limit": "7/day;burst=9", "keys": 3},
            {"name": "none", "limit": "1/second", "keys": 0},
            {"name": "other", "limit": "1/second", "keys": 1},
        ])
    );
    assert_eq!(all["breaks"], json!([]));
    for (flag, key) in [
        (" --locks", "locks"),
        (" --limiters", "limiters"),
        (" --concurrency", "concurrency"),
        (" --counters", "counters"),
        (" --onces", "onces"),
        (" --breaks", "breaks"),
    ] {
        let one = inspect(&regions, &url, flag);
        let keys: Vec<&String> = one.as_object().unwrap().keys().collect();
        assert_eq!(keys, [key]);
    }
    assert_eq!(inspect(&regions, &url, " ap")["locks"], json!([]));
    let text = regions.sprag(&format!("inspect --at {url}"));
    let text = text.answer(0);
    assert!(
        text.contains(
            "\n\nLIMITER        KEYS  NAME\n7/day;burst=9  3     api\n1/second       0     none\n"
        ) && text.ends_with("\n\nCOUNTER  NAME\n-3       hits\n"),
        "{text}"
    );
    let nothing = regions.sprag(&format!("inspect nothing-like-it --at {url}"));
    assert_eq!(nothing.answer(0), "nothing to show\n");
    hold.release().unwrap();
}

#[test]
fn breaking_a_lock_ends_the_token_and_leaves_a_record() {
    let regions = Regions::new();
    let url = regions.url("r");
    let space = Space::open(&url).unwrap();
    let hold = space.lock("a").unwrap().acquire().unwrap();
    let token = hold.token();
    let broken = regions.sprag(&format!("break a --at {url}"));
    assert_eq!(broken.answer(0), format!("broke a: ended token {token}\n"));
    assert!(!hold.is_held());
    assert!(hold.release().is_err());
    let again = regions.sprag(&format!("break a --at {url}"));
    assert_eq!(again.answer(1), "the lock a is not held\n");

    let next = space.lock("a").unwrap().acquire().unwrap();
    assert!(next.token() > token);
    let broken = regions.sprag(&format!("break a --json --at {url}"));
    assert_eq!(broken.json(), json!({"name": "a", "token": next.token()}));
    let absent = regions.sprag(&format!("break b --json --at {url}"));
    assert_eq!(absent.code, Some(1));
    assert_eq!(absent.json(), json!({"name": "b", "token": null}));

    let breaks = inspect(&regions, &url, " --breaks");
    let breaks = breaks["breaks"].as_array().unwrap();
    assert_eq!(breaks.len(), 2, "a lock that is not held leaves none");
    assert_eq!(
        (&breaks[0]["name"], &breaks[0]["token"]),
        (&json!("a"), &json!(token))
    );
    assert!(breaks[0]["by_pid"].as_u64() > Some(0));
    assert!(breaks[0]["at_unix_ns"].as_u64() > Some(1_700_000_000_000_000_000));
}

#[test]
fn a_broken_lock_goes_to_who_waits_for_it() {
    let regions = Regions::new();
    let url = regions.url("r");
    let space = Space::open(&url).unwrap();
    let hold = space.lock("a").unwrap().acquire().unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| space.lock("a").unwrap().acquire().unwrap().token());
        while space.inspect("a").unwrap()[0].waiters != 1 {
            std::thread::yield_now();
        }
        regions.sprag(&format!("break a --at {url}")).answer(0);
        assert!(waiter.join().unwrap() > hold.token());
    });
}

#[test]
fn names_can_not_write_to_the_terminal_and_are_exact_in_json() {
    let regions = Regions::new();
    let url = regions.url("r");
    let space = Space::open(&url).unwrap();
    let names: [&[u8]; 3] = [b"\x1b[31mred\n", b"\xff\x00", "é".as_bytes()];
    let holds = names.map(|name| space.lock(name).unwrap().acquire().unwrap());
    let text = regions.sprag(&format!("inspect --at {url}"));
    let text = text.answer(0);
    for shown in ["  \\x1b[31mred\\x0a\n", "  \\xff\\x00\n", "  é\n"] {
        assert!(text.contains(shown), "{text}");
    }
    assert_eq!(text.lines().count(), 4);
    let locks = inspect(&regions, &url, "");
    assert_eq!(locks["locks"][0]["name"], "\u{1b}[31mred\n");
    assert_eq!(locks["locks"][0]["name_hex"], Value::Null);
    assert_eq!(locks["locks"][2]["name_hex"], "ff00");
    drop(holds);
}

#[test]
fn looking_and_breaking_create_nothing() {
    let regions = Regions::new();
    let missing = regions.path().join("missing");
    for directory in [regions.path(), &missing] {
        let run = |words: &str| {
            let mut command = regions.command(words.split(' '));
            let output = command.env("SPRAG_DIR", directory).output().unwrap();
            let text = |bytes| String::from_utf8(bytes).unwrap();
            (
                output.status.code(),
                text(output.stdout),
                text(output.stderr),
            )
        };
        // Of the space that is used when none is named, nobody needs to have made anything.
        for (words, out) in [
            ("inspect", "nothing to show\n"),
            ("inspect --held jobs/", "nothing to show\n"),
            (
                "inspect --json",
                "{\"locks\":[],\"semaphores\":[],\"limiters\":[],\"concurrency\":[],\"counters\":[],\"onces\":[],\"breaks\":[]}\n",
            ),
            ("inspect --json --locks", "{\"locks\":[]}\n"),
            ("region ls", "no regions\n"),
            ("region ls --json", "[]\n"),
        ] {
            assert_eq!(run(words), (Some(0), out.to_owned(), String::new()));
        }
        for (words, code, part) in [
            ("inspect --at shm:nosuch", 2, "there is no region at"),
            (
                "inspect --at shm:/no/such/region",
                2,
                "there is no region at",
            ),
            ("metrics", 2, "there is no region at"),
            ("break a", 2, "there is no region at"),
            ("region check", 2, "there is no region at"),
            ("region check nosuch", 2, "there is no region at"),
            ("region rm nosuch", 2, "there is no region at"),
            ("region resize nosuch --locks 5", 2, "there is no region at"),
            ("lock --release 5 a", 123, "is not held under token 5"),
            ("lock --renew 5 a", 123, "is not held under token 5"),
        ] {
            let (found, out, error) = run(words);
            assert_eq!((found, out.as_str()), (Some(code), ""), "{words}: {error}");
            assert!(error.contains(part), "{words}: {error}");
            assert_eq!(error.lines().count(), 1, "{words}: {error}");
        }
    }
    assert_eq!(std::fs::read_dir(regions.path()).unwrap().count(), 0);
    for url in ["redis://h", "shm:", "mem:x", "quic://a:1"] {
        let error = regions.run(["inspect", "--at", url]).error(2).to_owned();
        assert!(
            error.contains("shm:NAME") || error.contains("name"),
            "{url}: {error}"
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_holder_and_a_waiter_that_were_killed_are_shown_as_dead() {
    let regions = Regions::new();
    let url = regions.url("r");
    let start = |words: &str| {
        let words = format!("lock --at {url} {words}");
        let mut command = regions.command(words.split(' '));
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    let kill = |child: &mut Child| {
        child.kill().unwrap();
        child.wait().unwrap();
    };
    let mut holder = start("--ttl 1h jobs/1 -- yes");
    let mut line = String::new();
    // Kept open, or the command would end.
    let mut output = BufReader::new(holder.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let mut dies = start("jobs/1 -- true");
    let waits = |alive, dead| {
        let lock = &inspect(&regions, &url, "")["locks"][0];
        (&lock["waiters"], &lock["waiters_dead"]) == (&json!(alive), &json!(dead))
    };
    while !waits(1, 0) {}
    kill(&mut dies);
    assert!(waits(0, 1));
    let text = regions.sprag(&format!("inspect --at {url}"));
    assert!(
        text.answer(0).contains("  0 + 1 dead  jobs/1"),
        "{}",
        text.out
    );

    let pid = holder.id();
    assert_eq!(
        inspect(&regions, &url, "")["locks"][0]["holder_dead"],
        false
    );
    kill(&mut holder);
    // Looking changes nothing.
    for _ in 0..2 {
        let lock = &inspect(&regions, &url, " --held")["locks"][0];
        assert_eq!(
            (&lock["held"], &lock["holder_dead"], &lock["holder_pid"]),
            (&json!(false), &json!(true), &json!(pid))
        );
        assert!(waits(0, 1));
    }
    let text = regions.sprag(&format!("inspect --held --at {url}"));
    let line = text.answer(0).lines().nth(1).unwrap();
    assert!(line.starts_with(&format!("dead  pid {pid}")), "{line}");
    let next = regions.sprag(&format!("lock --try --at {url} jobs/1 -- true"));
    assert_eq!(next.answer(0), "");
    let lock = &inspect(&regions, &url, "")["locks"][0];
    assert_eq!(
        (&lock["holder_dead"], &lock["holder_pid"]),
        (&json!(false), &Value::Null)
    );
    assert!(waits(0, 0));
}

#[test]
fn partitions_and_the_table_are_shown_while_they_are_held() {
    let regions = Regions::new();
    let url = regions.url("r");
    let space = Space::open(&url).unwrap();
    let seen = || inspect(&regions, &url, " --locks");
    assert_eq!(seen().get("coarse_locks"), None);
    let hold = space.partition(3).unwrap().acquire().unwrap();
    let locks = seen();
    let [partition] = &locks["coarse_locks"].as_array().unwrap()[..] else {
        panic!("{locks}");
    };
    assert_eq!(partition["name"], "partition 3");
    assert_eq!(partition["token"], hold.token());
    assert_eq!(partition["holder_pid"], std::process::id());
    hold.release().unwrap();
    let hold = space.table().unwrap().acquire().unwrap();
    let locks = seen();
    let [table] = &locks["coarse_locks"].as_array().unwrap()[..] else {
        panic!("{locks}");
    };
    assert_eq!(
        (&table["name"], &table["token"]),
        (&json!("the table"), &json!(hold.token()))
    );
    let text = regions.sprag(&format!("inspect --at {url}"));
    let text = text.answer(0);
    assert!(
        text.contains("COARSE") && text.contains("the table"),
        "{text}"
    );
    drop(hold);
    assert_eq!(seen().get("coarse_locks"), None);
}
