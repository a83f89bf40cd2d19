//! A region whose words are anything at all: answers may be wrong, but each comes, and none is a panic,
//! an access outside the region, or a loop without end.

use crate::everything::use_everything;
use crate::fuzz::interesting;
use crate::support::*;
use sprag_core::admission::Wants;
use sprag_core::region::file;
use sprag_core::session::Process;
use sprag_core::{Error, Finding, Limit, TOKEN_MAX};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Fills a file with noise from `at` on: all of it, or a word here and there.
fn spoil(path: &Path, at: u64, every: usize, random: &mut fastrand::Rng) {
    let file = File::options().write(true).open(path).unwrap();
    let len = file.metadata().unwrap().len();
    let noise: Vec<u8> = (0..(len - at) / 8)
        .flat_map(|_| interesting(random).to_le_bytes())
        .collect();
    if every == 1 {
        file.write_all_at(&noise, at).unwrap();
        return;
    }
    for (i, word) in noise.chunks(8).enumerate() {
        if random.usize(..every) == 0 {
            file.write_all_at(word, at + i as u64 * 8).unwrap();
        }
    }
}

#[test]
fn hints_next_to_an_overflow_are_only_hints() {
    let (_directory, path) = place();
    for hint in [u64::MAX, u64::MAX - 1, u64::from(u32::MAX), 1 << 63] {
        for at in (192..256).chain(256..448).step_by(8) {
            let _ = std::fs::remove_file(&path);
            drop(open(&path));
            scribble(&path, at, &hint.to_le_bytes());
            let engine = open(&path);
            let me = session(&engine);
            assert!(acquire(&engine, me, b"a", 0).is_some(), "{at}: {hint}");
            assert!(
                acquire(&engine, me, &[b'x'; 500], 0).is_some(),
                "{at}: {hint}"
            );
            let name = engine.lock_name(b"a").unwrap();
            engine.break_lock(&name, Process::default(), 0).unwrap();
            assert!(engine.breaks().len() <= 64);
            let ticket = engine.enqueue(&name, me, 0, SECOND).unwrap();
            engine.cancel(ticket, 0, |_| {});
        }
    }
}

#[test]
fn a_floor_past_the_highest_token_leaves_no_tokens_rather_than_old_ones() {
    let (_directory, path) = place();
    for floor in [TOKEN_MAX, TOKEN_MAX + 1, TOKEN_MAX + 8, u64::MAX] {
        let _ = std::fs::remove_file(&path);
        let engine = open(&path);
        let me = session(&engine);
        for partition in 0..64 {
            scribble(&path, 4_096 + partition * 8, &floor.to_le_bytes());
        }
        for name in [b"a", b"b", b"c"] {
            let name = engine.lock_name(name).unwrap();
            let result = engine.try_acquire(&name, me, 0, SECOND);
            assert!(
                matches!(result, Err(Error::TokensExhausted { .. })),
                "{floor}: {result:?}"
            );
        }
    }
}

#[test]
fn a_time_past_all_times_ends_a_lease_no_later_than_it_says() {
    let (_directory, path) = place();
    let engine = open(&path);
    let me = session(&engine);
    let name = engine.lock_name(b"a").unwrap();
    for now_ns in [1 << 62, u64::MAX - SECOND, u64::MAX] {
        if let Ok(sprag_core::lock::Attempt::Granted(grant)) =
            engine.try_acquire(&name, me, now_ns, 30 * SECOND)
        {
            assert!(!engine.is_held(&grant, grant.deadline_ns));
            assert!(engine.is_held(&grant, grant.deadline_ns - 1_000));
            engine.release(&grant, || now_ns);
        }
    }
}

#[test]
fn a_search_ends_with_its_partition_however_far_the_words_say_that_it_goes() {
    let (_directory, path) = place();
    let engine = open(&path);
    let me = session(&engine);
    let name = b"the only name in it";
    acquire(&engine, me, name, 0).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(name.len()).position(|part| part == name);
    // The whole of the table, in which the name is: blocks of 576 bytes, and there are 16.
    let table = at.unwrap() as u64 - 16 * 576;
    scribble(&path, table, &vec![0xff; 2 * 16 * 576]);
    for name in [b"a", b"b", b"c"] {
        let name = engine.lock_name(name).unwrap();
        assert_eq!(engine.lock_status(&name, 0), None);
    }
}

#[test]
fn a_region_of_random_words_gives_wrong_answers_but_answers() {
    let (_directory, path) = place();
    let mut random = fastrand::Rng::with_seed(42);
    for round in 0..20u64 {
        // From after what is checked; then with the boot and the clock's words kept; then all of it
        // after the header page.
        for (at, every) in [(104, 1), (160, 1), (4_096, 1), (160, 3), (4_096, 50)] {
            let _ = std::fs::remove_file(&path);
            drop(open(&path));
            spoil(&path, at, every, &mut random);
            let Ok(engine) = try_open(&path, &OPTIONS) else {
                assert_eq!(at, 104, "only the clock's words can keep it from opening");
                continue;
            };
            use_everything(&engine, 40, &mut random);
            assert!(
                round > 0 || !engine.check_region().findings.is_empty(),
                "noise is noticed"
            );
        }
    }
}

#[test]
fn a_used_region_that_is_spoilt_gives_wrong_answers_but_answers() {
    let (_directory, path) = place();
    let mut random = fastrand::Rng::with_seed(43);
    for _ in 0..20 {
        let _ = std::fs::remove_file(&path);
        let engine = open(&path);
        use_everything(&engine, 40, &mut random);
        for every in [500, 50, 5] {
            spoil(&path, 160, every, &mut random);
            use_everything(&engine, 40, &mut random);
            engine.check_region();
        }
    }
}

#[test]
fn a_spoilt_region_can_be_brought_to_another_boot_and_resized_or_says_why_not() {
    let (_directory, path) = place();
    let mut random = fastrand::Rng::with_seed(44);
    let mut options = OPTIONS;
    for round in 0..15 {
        for every in [1, 3, 50] {
            let _ = std::fs::remove_file(&path);
            let engine = open(&path);
            use_everything(&engine, 40, &mut random);
            drop(engine);
            spoil(&path, 160, every, &mut random);
            options.birth.boot_id = [round, every as u64];
            if let Ok(engine) = try_open(&path, &options) {
                use_everything(&engine, 40, &mut random);
            }
            let _ = file::resize(&path, CAPS, options.birth);
        }
    }
}

#[test]
fn a_region_scribbled_on_while_it_is_used_gives_wrong_answers_but_answers() {
    let (_directory, path) = place();
    let engine = open(&path);
    let len = engine.region().len_bytes();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = File::options().write(true).open(&path).unwrap();
            let mut random = fastrand::Rng::with_seed(45);
            while !is_over.load(Relaxed) {
                let at = random.u64(20..len / 8) * 8;
                file.write_all_at(&interesting(&mut random).to_le_bytes(), at)
                    .unwrap();
            }
        });
        let threads: Vec<_> = (0..2)
            .map(|seed| {
                let engine = &engine;
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    for _ in 0..20 {
                        use_everything(engine, 40, &mut random);
                    }
                })
            })
            .collect();
        let results: Vec<_> = threads
            .into_iter()
            .map(std::thread::ScopedJoinHandle::join)
            .collect();
        is_over.store(true, Relaxed);
        assert!(results.iter().all(Result::is_ok));
    });
}

/// What is spoilt, where, by which bytes, and how it is found.
type Case = (&'static str, u64, Vec<u8>, fn(&Finding) -> bool);

#[test]
fn a_sound_region_has_no_findings_and_each_fault_has_its_own() {
    let (_directory, path) = place();
    let engine = open(&path);
    let me = session(&engine);
    for i in 0..20u64 {
        acquire(&engine, me, &i.to_le_bytes(), 0).unwrap();
    }
    acquire(&engine, me, &[b'x'; 200], 0).unwrap();
    let limiter = engine
        .open_limiter(b"api", "10/h".parse::<Limit>().unwrap(), false, me, 0)
        .unwrap();
    for key in [b"key", b"kez"] {
        let _ = engine.check(&limiter, key, 1, me, 0).unwrap();
    }
    let own = "20/h".parse::<Limit>().unwrap();
    engine
        .set_override(&limiter, b"own", own, me, || 0)
        .unwrap();
    store(&engine, me, b"done", &[b'r'; 60], 0);
    let uploads = engine
        .open_concurrency(b"uploads", 2, false, me, 0, |_| {})
        .unwrap();
    let key = engine.slots_name(uploads, b"ann").unwrap();
    let wants = Wants::slots(1, uploads).unwrap();
    engine.try_get(&key, wants, me, 0, SECOND).unwrap();
    let limits = ["1/s", "10/h"].map(|limit| limit.parse().unwrap());
    let joint = engine.open_joint(b"both", &limits, me, 0).unwrap();
    let _ = engine.check_joint(&joint, b"joint key", 1, me, 0).unwrap();
    let check = engine.check_region();
    assert_eq!(check.findings, []);
    assert_eq!((check.live, check.claimed, check.retired), (27, 0, 0));
    assert_eq!((check.limiter_keys, check.joint_keys), (2, 1));
    assert_eq!(check.waits, 0);

    let good = std::fs::read(&path).unwrap();
    let find = |text: &[u8]| {
        // After the header page, the floors and the bits that say what is allocated.
        let from = 8_192;
        let at = good[from..]
            .windows(text.len())
            .position(|window| window == text);
        (from + at.unwrap()) as u64
    };
    // A short name lies 24 bytes into its cell.
    let cell = |i: u64| find(&[&i.to_le_bytes()[..], &[0; 16]].concat()) - 24;
    let result = find(&[b'r'; 48]);
    // What it says of its slot lies 8 bytes into the cell of an override.
    let own = find(b"\x03\0apiown") - 24;
    let key = find(b"kez\0\0\0\0\0\0\0\0\0\0\0\0\0");
    let cases: [Case; 12] = [
        ("an override's limit", own + 8, vec![99], |f| {
            matches!(f, Finding::Override { slot: 98, .. })
        }),
        ("a limiter's key twice", key, b"key".to_vec(), |f| {
            matches!(f, Finding::KeyTwice { .. })
        }),
        ("a phase", cell(11), vec![7], |f| {
            matches!(f, Finding::Phase { phase: 7, .. })
        }),
        ("a kind", cell(12) + 16, vec![99], |f| {
            matches!(f, Finding::Kind { kind: 99, .. })
        }),
        ("an empty name", cell(13) + 17, vec![0, 0], |f| {
            matches!(f, Finding::Name { .. })
        }),
        (
            "a name twice",
            cell(14) + 24,
            15u64.to_le_bytes().to_vec(),
            |f| matches!(f, Finding::Twice { .. }),
        ),
        ("a long name's chunk", find(&[b'x'; 48]), vec![b'y'], |f| {
            matches!(f, Finding::Name { .. })
        }),
        (
            "a result's chunk that is another's",
            result - 16,
            vec![9],
            |f| matches!(f, Finding::Result { .. }),
        ),
        ("a result's length", result - 2, vec![0xff], |f| {
            matches!(f, Finding::Result { .. })
        }),
        (
            "a limiter that allows none",
            find(b"uploads") - 16,
            vec![0; 8],
            |f| matches!(f, Finding::Definition { .. }),
        ),
        (
            "what a joint key has used",
            find(b"joint key\0\0\0\0\0\0\0") + 16,
            vec![7],
            |f| matches!(f, Finding::Joint { .. }),
        ),
        ("a counter", 256, vec![99], |f| {
            matches!(f, Finding::Count { counted: 99, .. })
        }),
    ];
    for (what, at, bytes, is_expected) in cases {
        scribble(&path, at, &bytes);
        let findings = engine.check_region().findings;
        assert!(findings.iter().any(is_expected), "{what}: {findings:?}");
        assert!(
            findings
                .iter()
                .all(|finding| !finding.to_string().is_empty())
        );
        std::fs::write(&path, &good).unwrap();
    }
    assert_eq!(engine.check_region().findings, []);
}
