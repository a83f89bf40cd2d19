//! Removing and resizing: only while nobody uses it, all at once, and those who had it open find out.

use crate::support::*;
use sprag_core::admission::Wants;
use sprag_core::lock::{Attempt, Coarse};
use sprag_core::once::Begun;
use sprag_core::region::Caps;
use sprag_core::region::file::{self, OpenOptions};
use sprag_core::session::Process;
use sprag_core::{Error, Limit, SessionId};
use std::fs;

const LARGER: Caps = Caps {
    objects: 1_000,
    limiter_keys: 2_000,
    joint_keys: 2_000,
    sessions: 20,
    waiters: 30,
    permits: 30,
    key_chunks: 400,
};

#[test]
fn a_removed_or_replaced_region_is_found_out() {
    let (_directory, path) = place();
    for replace in [false, true] {
        let engine = open(&path);
        let late = open(&path);
        engine.region().check_in_place().unwrap();
        session(&engine);
        assert!(matches!(
            file::remove(&path, false, BIRTH),
            Err(Error::InUse { sessions: 1, .. })
        ));
        engine.region().check_in_place().unwrap();
        file::remove(&path, true, BIRTH).unwrap();
        if replace {
            open(&path);
        }
        let result = engine.region().check_in_place();
        assert!(matches!(result, Err(Error::Replaced { .. })));
        let result = late.open_session(Process::default(), 0);
        assert!(matches!(result, Err(Error::Replaced { .. })));
    }
    drop(open(&path));
    file::remove(&path, false, BIRTH).unwrap();
    assert!(!path.exists());
}

#[test]
fn a_damaged_region_can_be_removed_and_a_foreign_file_not() {
    let (_directory, path) = place();
    open(&path);
    scribble(&path, 40, &[0xff]);
    assert!(matches!(file::probe(&path), Err(Error::Damaged { .. })));
    file::remove(&path, false, BIRTH).unwrap();
    assert!(!path.exists());
    fs::write(&path, "hello".repeat(100)).unwrap();
    for even_if_in_use in [false, true] {
        let result = file::remove(&path, even_if_in_use, BIRTH);
        assert!(matches!(result, Err(Error::NotARegion { .. })));
    }
    assert!(path.exists());
}

#[test]
fn resizing_is_refused_while_a_session_lives_or_a_detached_hold_runs() {
    let (directory, path) = place();
    let engine = open(&path);
    let me = session(&engine);
    let other = open(&path);
    session(&other);
    let resize = || file::resize(&path, LARGER, BIRTH);
    assert!(matches!(resize(), Err(Error::InUse { sessions: 2, .. })));
    drop(other);
    assert!(matches!(resize(), Err(Error::InUse { sessions: 1, .. })));
    acquire(&engine, SessionId::DETACHED, b"a", 0).unwrap();
    engine.close_session(me);
    let result = resize();
    assert!(matches!(
        result,
        Err(Error::InUse {
            sessions: 0,
            detached: 1,
            ..
        })
    ));
    engine.region().check_in_place().unwrap();
    assert_eq!(names_in(directory.path()), ["region"]);
    let by = SessionId::DETACHED;
    // What is held with the table is one hold.
    let coarse = Wants::Coarse(Coarse::Table);
    let name = engine.lock_name(b"-").unwrap();
    engine
        .try_get(&name, coarse, by, 31 * SECOND, 5 * SECOND)
        .unwrap();
    let mut soon = BIRTH;
    soon.boot_ns += 32 * SECOND;
    let result = file::resize(&path, LARGER, soon);
    assert!(matches!(result, Err(Error::InUse { detached: 1, .. })));
    let once = engine.once_name(b"once").unwrap();
    let begun = engine.begin(&once, by, 0, 40 * SECOND).unwrap();
    let mut later = BIRTH;
    later.boot_ns += 37 * SECOND;
    let result = file::resize(&path, LARGER, later);
    assert!(
        matches!(result, Err(Error::InUse { detached: 1, .. })),
        "{begun:?}"
    );
    later.boot_ns += 10 * SECOND;
    file::resize(&path, LARGER, later).unwrap();
    let result = engine.region().check_in_place();
    assert!(matches!(result, Err(Error::Replaced { .. })));
}

#[test]
fn resizing_keeps_fences_counters_limiters_results_time_and_that_tokens_rise() {
    let (directory, path) = place();
    let shared = OpenOptions {
        group_shared: true,
        caps: Caps {
            key_chunks: 100,
            ..CAPS
        },
        ..OPTIONS
    };
    let before = try_open(&path, &shared).unwrap();
    let me = session(&before);
    let long = vec![b'x'; 300];
    let mut last = 0;
    for _ in 0..50 {
        let hold = acquire(&before, me, &long, 0).unwrap();
        before.release(&hold, || 0);
        last = hold.token;
    }
    for i in 0..10u64 {
        let name = before.fence_name(&i.to_le_bytes()).unwrap();
        before.admit(&name, me, 0, 100 + i, false).unwrap().unwrap();
    }
    let name = before.fence_name(&long).unwrap();
    before.admit(&name, me, 0, 7, false).unwrap().unwrap();
    let counters = [(&b"hits"[..], -7), (&long, i64::MAX), (b"none", 0)];
    for (name, number) in counters {
        let counter = before.counter(name).unwrap();
        before.counter_add(&counter, 1, me, 0).unwrap();
        before.counter_swap(&counter, number, me, 0).unwrap();
    }
    let counter = before.counter(b"striped").unwrap();
    let striped = before.counter_striped(&counter, me, 0).unwrap();
    for lane in 0..40 {
        before.striped_add(&striped, lane, 3).unwrap();
    }
    let results = [&b"orders"[..], &long].map(|name| {
        let result = name[..name.len().min(60)].repeat(2);
        let token = store(&before, me, name, &result, 0);
        (name, result, token)
    });
    let limit: Limit = "10/h".parse().unwrap();
    let limiter = before.open_limiter(b"api", limit, false, me, 0).unwrap();
    let allowed = |engine: &sprag_core::Engine, limiter, key: &[u8], by, cost| {
        let checked = engine.check(limiter, key, cost, by, SECOND).unwrap();
        assert!(!checked.is_overflow, "there is room for every key");
        checked.decision.is_allowed()
    };
    for (name, capacity) in [(&b"a limiter whose name is long"[..], 3), (b"api", 7)] {
        let limiter = before.open_concurrency(name, capacity, false, me, 0, |_| {});
        let limiter = limiter.unwrap();
        let key = before.slots_name(limiter, name).unwrap();
        let wants = Wants::slots(capacity, limiter).unwrap();
        let attempt = before.try_get(&key, wants, me, 0, SECOND).unwrap();
        assert!(matches!(attempt, Attempt::Granted(_)));
    }
    assert!(allowed(&before, &limiter, b"used up", me, 10));
    assert!(allowed(&before, &limiter, &long, me, 9));
    assert!(!allowed(&before, &limiter, b"used up", me, 1));
    let own = "3/h".parse::<Limit>().unwrap();
    for key in [&b"own"[..], b"idle", b"cleared"] {
        before
            .set_override(&limiter, key, own, me, || SECOND)
            .unwrap();
    }
    assert!(allowed(&before, &limiter, b"own", me, 2));
    assert!(allowed(&before, &limiter, b"cleared", me, 2));
    before
        .clear_override(&limiter, b"cleared", || SECOND)
        .unwrap();
    drop(before);

    let mut later = BIRTH;
    later.boot_ns += SECOND;
    later.hash_seed = 99;
    file::resize(&path, LARGER, later).unwrap();
    assert_eq!(names_in(directory.path()), ["region"]);
    let info = file::probe(&path).unwrap();
    assert_eq!((info.caps, info.group_shared), (LARGER, true));

    let after = try_open(&path, &shared).unwrap();
    assert_eq!(after.region().caps(), LARGER);
    assert_eq!(after.region().base_unix_ns(), UNIX_NS);
    assert_eq!(after.region().base_boot_ns(), 1_000 * SECOND.cast_signed());
    let me = session(&after);
    assert!(acquire(&after, me, &long, SECOND).unwrap().token > last);
    assert!(acquire(&after, me, b"new", SECOND).unwrap().token > last);
    for i in 0..10u64 {
        let name = after.fence_name(&i.to_le_bytes()).unwrap();
        assert_eq!(after.fence_highest(&name), 100 + i);
    }
    let name = after.fence_name(&long).unwrap();
    assert_eq!(after.fence_highest(&name), 7);
    for (name, number) in counters {
        assert_eq!(after.counter_get(&after.counter(name).unwrap()), number);
    }
    assert_eq!(after.counter_get(&after.counter(b"striped").unwrap()), 120);
    for (name, result, token) in results {
        let once = after.once_name(name).unwrap();
        let kept = after.begin(&once, me, 3_599 * SECOND, SECOND).unwrap();
        assert_eq!(kept, Begun::Done(result));
        assert!(store(&after, me, name, b"", 3_601 * SECOND) > token);
    }
    for (name, capacity) in [(&b"a limiter whose name is long"[..], 3), (b"api", 7)] {
        let limiter = after.concurrency(name).unwrap().unwrap();
        assert_eq!(after.concurrency_capacity(limiter).unwrap(), capacity);
        let key = after.slots_name(limiter, name).unwrap();
        let wants = Wants::slots(capacity, limiter).unwrap();
        let attempt = after.try_get(&key, wants, me, SECOND, SECOND).unwrap();
        assert!(matches!(attempt, Attempt::Granted(_)), "nobody has any");
    }
    let limiter = after.limiter(b"api").unwrap().unwrap();
    assert_eq!(limiter.limit(), limit);
    assert!(!allowed(&after, &limiter, b"used up", me, 1));
    assert!(!allowed(&after, &limiter, &long, me, 2));
    assert!(allowed(&after, &limiter, &long, me, 1));
    assert!(allowed(&after, &limiter, b"fresh", me, 10));
    for (key, left) in [(&b"own"[..], 1), (b"idle", 3), (b"cleared", 8)] {
        let peeked = after.peek(&limiter, key, SECOND).unwrap();
        assert_eq!(peeked.decision.remaining(), left, "{}", key.escape_ascii());
        assert!(allowed(&after, &limiter, key, me, left));
        assert!(!allowed(&after, &limiter, key, me, 1));
    }
    assert_eq!(after.check_region().findings, []);
}

#[test]
fn caps_too_small_for_what_is_there_change_nothing() {
    let (directory, path) = place();
    let engine = open(&path);
    let me = session(&engine);
    for i in 0..20u64 {
        let name = engine.fence_name(&i.to_le_bytes()).unwrap();
        engine.admit(&name, me, 0, 1 + i, false).unwrap().unwrap();
    }
    engine.close_session(me);
    let small = Caps {
        objects: 10,
        ..CAPS
    };
    let result = file::resize(&path, small, BIRTH);
    assert!(matches!(result, Err(Error::Full { .. })), "{result:?}");
    engine.region().check_in_place().unwrap();
    assert_eq!(names_in(directory.path()), ["region"]);
}

#[test]
fn a_process_killed_at_any_system_call_of_resizing_leaves_the_old_region_or_the_new() {
    let (directory, path) = place();
    let engine = open(&path);
    let me = session(&engine);
    let name = engine.fence_name(b"fence").unwrap();
    engine.admit(&name, me, 0, 7, false).unwrap().unwrap();
    drop(engine);
    let good = fs::read(&path).unwrap();
    let (mut old, mut new) = (0, 0);
    kill_at_each_system_call(
        || file::resize(&path, LARGER, BIRTH).unwrap(),
        |_| {
            let engine = open(&path);
            let me = session(&engine);
            let name = engine.fence_name(b"fence").unwrap();
            assert_eq!(engine.fence_highest(&name), 7);
            assert!(acquire(&engine, me, b"a", 0).is_some());
            if engine.region().caps() == LARGER {
                new += 1;
            } else {
                old += 1;
            }
            drop(engine);
            for name in names_in(directory.path()) {
                fs::remove_file(directory.path().join(name)).unwrap();
            }
            drop(open(&path));
            fs::write(&path, &good).unwrap();
        },
    );
    assert!(old > 10 && new > 2, "{old} and {new}");
}
