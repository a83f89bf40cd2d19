//! A region from another boot: no live holds, no waits, tokens and time go on.

use crate::support::*;
use sprag_core::admission::Wants;
use sprag_core::lock::{Attempt, Coarse, Released};
use sprag_core::region::file::{self, OpenOptions};
use sprag_core::{Engine, Error, Limit, SessionId};

/// The next boot: another id, its clock near zero, wall time an hour on.
fn next_boot() -> OpenOptions {
    let mut options = OPTIONS;
    options.birth.boot_id = [3, 4];
    options.birth.boot_ns = 10 * SECOND;
    options.birth.unix_ns = UNIX_NS + 3_600 * SECOND;
    options
}

#[test]
fn after_another_boot_holds_and_waits_are_gone_and_tokens_go_on_upward() {
    let (_directory, path) = place();
    let before = open(&path);
    let me = session(&before);
    let held = acquire(&before, me, b"held", 0).unwrap();
    let free = acquire(&before, me, b"free", 0).unwrap();
    before.release(&free, || 0);
    let detached = acquire(&before, SessionId::DETACHED, b"detached", 0).unwrap();
    let long = vec![b'x'; 100];
    let with_long_name = acquire(&before, me, &long, 0).unwrap();
    let name = before.lock_name(b"held").unwrap();
    before.enqueue(&name, me, 0, u64::MAX).unwrap();
    let fence = before.fence_name(b"fence").unwrap();
    before.admit(&fence, me, 0, 77, false).unwrap().unwrap();
    let counter = before.counter(b"counter").unwrap();
    before.counter_add(&counter, -77, me, 0).unwrap();
    let many = before.counter(b"many").unwrap();
    let striped = before.counter_striped(&many, me, 0).unwrap();
    for lane in 0..40 {
        before.striped_add(&striped, lane, 3).unwrap();
    }
    let limiter = before
        .open_concurrency(b"limiter", 1, false, me, 0, |_| {})
        .unwrap();
    let key = before.slots_name(limiter, b"key").unwrap();
    let slots = Wants::slots(1, limiter).unwrap();
    let Attempt::Granted(slot) = before.try_get(&key, slots, me, 0, 7_200 * SECOND).unwrap() else {
        panic!("nobody has any");
    };
    let done = store(&before, me, b"done", b"result", 0);
    let several = [b"one".as_slice(), b"two"].map(|name| before.lock_name(name).unwrap());
    let Attempt::Granted(all) = before
        .try_acquire_all(&several, me, 0, 30 * SECOND)
        .unwrap()
    else {
        panic!("they are free");
    };
    let tokens_of_all = before.tokens_of(&all, &several);
    drop(before);

    let after = try_open(&path, &next_boot()).unwrap();
    let now_ns = 3_600 * SECOND;
    let me = session(&after);
    for (name, token) in [
        (&b"held"[..], held.token),
        (b"free", free.token),
        (b"detached", detached.token),
        (&long, with_long_name.token),
    ] {
        let grant = acquire(&after, me, name, now_ns).unwrap();
        assert!(grant.token > token, "{}", name.escape_ascii());
        assert_eq!(
            after.release(&grant, || now_ns),
            Released::Done { wake: None }
        );
        let next = acquire(&after, me, name, now_ns).unwrap();
        assert_eq!(next.token, grant.token + 1);
    }
    assert_eq!(after.lock_status(&name, now_ns).unwrap().waiters, 0);
    for (name, token) in several.iter().zip(tokens_of_all) {
        let attempt = after.try_acquire(name, me, now_ns, SECOND).unwrap();
        let Attempt::Granted(grant) = attempt else {
            panic!("what led them is no more");
        };
        assert!(grant.token > token);
        after.release(&grant, || now_ns);
    }
    assert_eq!(
        after.renew(&held, now_ns, SECOND).unwrap(),
        sprag_core::lock::Renewed::NotHeld
    );
    assert_eq!(after.concurrency(b"limiter").unwrap(), Some(limiter));
    let attempt = after.try_get(&key, slots, me, now_ns, SECOND).unwrap();
    assert!(matches!(attempt, Attempt::Granted(grant) if grant.token > slot.token));
    assert_eq!(after.fence_highest(&fence), 77);
    assert_eq!(after.counter_get(&counter), -77);
    assert_eq!(after.counter_get(&many), 120);
    let striped = after.counter_striped(&many, me, now_ns).unwrap();
    for lane in 0..40 {
        after.striped_add(&striped, lane, 1).unwrap();
    }
    assert_eq!(after.counter_get(&many), 160);
    assert!(store(&after, me, b"done", b"again", now_ns) > done);
    assert_eq!(after.check_region().findings, []);
    assert_eq!(after.check_region().waits, 0);
}

// property 2
#[test]
fn after_another_boot_coarse_locks_are_free_and_their_tokens_go_on_upward() {
    let (_directory, path) = place();
    let wants = Wants::Coarse(Coarse::Table);
    let take = |engine: &Engine, now_ns: u64| {
        let me = session(engine);
        let name = engine.lock_name(b"-").unwrap();
        match engine
            .try_get(&name, wants, me, now_ns, 30 * SECOND)
            .unwrap()
        {
            Attempt::Granted(grant) => grant.token,
            Attempt::Busy => panic!("nobody holds anything"),
        }
    };
    let before = open(&path);
    let token = take(&before, 0);
    drop(before);
    let after = try_open(&path, &next_boot()).unwrap();
    let status = after.coarse_status(Coarse::Partition(0), 0);
    assert!(status.holds.is_empty());
    assert!(take(&after, 3_600 * SECOND) > token);
}

#[test]
fn tokens_rise_past_those_whose_pages_a_power_failure_lost() {
    let (_directory, path) = place();
    let engine = open(&path);
    let me = session(&engine);
    let take = || {
        let hold = acquire(&engine, me, b"a", 0).unwrap();
        engine.release(&hold, || 0);
        hold.token
    };
    take();
    let on_disk = std::fs::read(&path).unwrap();
    let last = (0..10_000).map(|_| take()).max().unwrap();
    drop(engine);
    std::fs::write(&path, &on_disk).unwrap();

    let after = try_open(&path, &next_boot()).unwrap();
    let me = session(&after);
    assert!(acquire(&after, me, b"a", 3_600 * SECOND).unwrap().token > last);
}

#[test]
fn region_time_goes_on_with_wall_time() {
    let (_directory, path) = place();
    open(&path);
    let after = try_open(&path, &next_boot()).unwrap();
    let now_ns = 10 * SECOND.cast_signed() - after.region().base_boot_ns();
    assert_eq!(now_ns, 3_600 * SECOND.cast_signed());
    assert_eq!(after.region().base_unix_ns(), UNIX_NS);
}

#[test]
fn region_time_does_not_go_back_when_the_wall_clock_was_set_back() {
    let (_directory, path) = place();
    let before = open(&path);
    let me = session(&before);
    acquire(&before, me, b"a", 500 * SECOND).unwrap();
    drop(before);
    for unix_ns in [0, UNIX_NS - SECOND, UNIX_NS + 499 * SECOND] {
        let mut options = next_boot();
        options.birth.boot_id = [unix_ns, 9];
        options.birth.unix_ns = unix_ns;
        let after = try_open(&path, &options).unwrap();
        let now_ns = 10 * SECOND.cast_signed() - after.region().base_boot_ns();
        assert_eq!(now_ns, 500 * SECOND.cast_signed());
    }
}

#[test]
fn a_limiters_state_is_kept_and_its_rate_goes_on() {
    let (_directory, path) = place();
    let limit: Limit = "10/h".parse().unwrap();
    let before = open(&path);
    let me = session(&before);
    let limiter = before.open_limiter(b"api", limit, false, me, 0).unwrap();
    let take = |engine: &sprag_core::Engine, limiter, by, now_ns| {
        let checked = engine.check(limiter, b"key", 1, by, now_ns).unwrap();
        checked.decision.is_allowed()
    };
    let mut allowed = 0;
    while take(&before, &limiter, me, 0) {
        allowed += 1;
    }
    assert_eq!(allowed, 10);
    drop(before);

    let mut options = next_boot();
    options.birth.unix_ns = UNIX_NS + 60 * SECOND;
    let after = try_open(&path, &options).unwrap();
    let me = session(&after);
    let limiter = after.limiter(b"api").unwrap().unwrap();
    assert!(!take(&after, &limiter, me, 60 * SECOND), "still used up");
    assert!(take(&after, &limiter, me, 3_600 * SECOND));
}

#[test]
fn the_first_openers_of_a_boot_end_no_hold_of_each_other() {
    for _ in 0..20 {
        let (_directory, path) = place();
        let before = open(&path);
        let old = session(&before);
        for name in 0..4 {
            acquire(&before, old, &[name], 0).unwrap();
        }
        drop(before);
        let now_ns = 3_600 * SECOND;
        let engines = at_once(4, |i| {
            let engine = try_open(&path, &next_boot()).unwrap();
            let me = session(&engine);
            let hold = acquire(&engine, me, &[i], now_ns).unwrap();
            (engine, me, hold)
        });
        for (engine, me, hold) in &engines {
            assert!(engine.is_held(hold, now_ns));
            for i in 0..4 {
                assert!(acquire(engine, *me, &[i], now_ns).is_none());
            }
        }
    }
}

#[test]
fn a_second_opener_of_the_same_boot_changes_nothing() {
    let (_directory, path) = place();
    open(&path);
    let first = try_open(&path, &next_boot()).unwrap();
    let me = session(&first);
    let hold = acquire(&first, me, b"a", 3_600 * SECOND).unwrap();
    let mut options = next_boot();
    options.birth.boot_ns += 60 * SECOND;
    let second = try_open(&path, &options).unwrap();
    assert!(first.is_held(&hold, 3_600 * SECOND));
    assert_eq!(
        second.region().base_boot_ns(),
        first.region().base_boot_ns()
    );
}

#[test]
fn a_region_in_which_a_session_lives_is_not_taken_for_one_of_another_boot() {
    let (_directory, path) = place();
    let before = open(&path);
    let me = session(&before);
    let hold = acquire(&before, me, b"a", 0).unwrap();
    let result = try_open(&path, &next_boot()).map(drop);
    assert!(matches!(result, Err(Error::InUse { sessions: 1, .. })));
    assert!(before.is_held(&hold, 0));
}

#[test]
fn a_process_killed_at_any_system_call_of_bringing_a_region_here_is_followed_by_another() {
    let (_directory, path) = place();
    open(&path);
    let good = std::fs::read(&path).unwrap();
    kill_at_each_system_call(
        || {
            file::open(&path, &next_boot()).unwrap();
        },
        |_| {
            let engine = try_open(&path, &next_boot()).unwrap();
            let me = session(&engine);
            assert!(acquire(&engine, me, b"a", 3_600 * SECOND).is_some());
            drop(engine);
            std::fs::write(&path, &good).unwrap();
        },
    );
}

/// With `--features steps`: killed before each access to the region's words, one after another.
#[cfg(feature = "steps")]
#[test]
fn a_process_killed_at_any_step_of_bringing_a_region_here_is_followed_by_another() {
    use sprag_core::sync::steps;
    let (_directory, path) = place();
    let before = open(&path);
    let me = session(&before);
    let held = acquire(&before, me, b"a", 0).unwrap();
    drop(before);
    let good = std::fs::read(&path).unwrap();
    let mut last = held.token;
    for step in 1.. {
        std::fs::write(&path, &good).unwrap();
        let code = in_child(|| {
            steps::arm(Some((step, libc::SIGKILL)));
            file::open(&path, &next_boot()).unwrap();
            0
        });
        let engine = try_open(&path, &next_boot()).unwrap();
        let me = session(&engine);
        let hold = acquire(&engine, me, b"a", 3_600 * SECOND).unwrap();
        assert!(hold.token > held.token);
        last = last.max(hold.token);
        assert_eq!(engine.check_region().findings, []);
        if code == Some(0) {
            break;
        }
    }
    assert!(last > held.token);
}

#[test]
fn an_unknown_boot_is_taken_for_this_one_while_time_does_not_go_back() {
    let (_directory, path) = place();
    let before = open(&path);
    let me = session(&before);
    let hold = acquire(&before, me, b"a", 500 * SECOND).unwrap();
    let mut options = OPTIONS;
    options.birth.boot_id = [0; 2];
    options.birth.boot_ns = 1_500 * SECOND;
    try_open(&path, &options).unwrap();
    assert!(before.is_held(&hold, 500 * SECOND));
    drop(before);
    // A boot clock of less than the region's latest time: another boot, whatever its id.
    options.birth.boot_ns = 10 * SECOND;
    options.birth.unix_ns = UNIX_NS + 600 * SECOND;
    let after = try_open(&path, &options).unwrap();
    assert_eq!(file::probe(&path).unwrap().boot_id, [0; 2]);
    let now_ns = 10 * SECOND.cast_signed() - after.region().base_boot_ns();
    assert_eq!(now_ns, 600 * SECOND.cast_signed());
    let me = session(&after);
    let next = acquire(&after, me, b"a", 600 * SECOND).unwrap();
    assert!(next.token > hold.token);
}

#[test]
fn a_time_that_no_region_has_is_damage() {
    let (_directory, path) = place();
    open(&path);
    scribble(&path, LATEST, &u64::MAX.to_le_bytes());
    let result = try_open(&path, &next_boot()).map(drop);
    assert!(matches!(result, Err(Error::Damaged { .. })));
}

#[test]
fn tokens_end_at_the_highest_possible_and_never_wrap_after_many_boots() {
    let (_directory, path) = place();
    let mut options = OPTIONS;
    options.birth.floor = sprag_core::TOKEN_MAX - 10;
    try_open(&path, &options).unwrap();
    for boot in 0..3 {
        let mut options = next_boot();
        options.birth.boot_id = [boot, 99];
        let engine = try_open(&path, &options).unwrap();
        let me = session(&engine);
        let name = engine.lock_name(b"a").unwrap();
        let result = engine.try_acquire(&name, me, 3_600 * SECOND, SECOND);
        assert!(matches!(result, Err(Error::TokensExhausted { .. })));
    }
}

/// Pages of a region that nobody shut down are written back at different times.
#[test]
fn a_striped_counter_whose_words_are_of_different_times_counts_on() {
    let (_directory, path) = place();
    let before = open(&path);
    let me = session(&before);
    let many = before.counter(b"many").unwrap();
    let striped = before.counter_striped(&many, me, 0).unwrap();
    let closed = std::fs::read(&path).unwrap();
    for lane in 0..40 {
        before.striped_add(&striped, lane, 3).unwrap();
    }
    let open = std::fs::read(&path).unwrap();
    // Gathered, and opened once more.
    before.counter_add(&many, 1, me, 0).unwrap();
    for lane in 0..40 {
        before.striped_add(&striped, lane, 3).unwrap();
    }
    drop(before);
    let last = std::fs::read(&path).unwrap();

    // Of the counter's cell: its kind, the length of its name and, behind what differs, the name.
    let is_counters =
        |at: &usize| last[*at..].starts_with(&[4, 4, 0]) && last[*at + 8..].starts_with(b"many");
    let meta = (0..last.len() - 64).step_by(8).find(is_counters).unwrap();
    let word = meta - 16..meta;
    for (earlier, later) in [(&closed, &open), (&closed, &last), (&open, &last)] {
        let mut mixed = later.clone();
        mixed[word.clone()].copy_from_slice(&earlier[word.clone()]);
        std::fs::write(&path, mixed).unwrap();
        let after = try_open(&path, &next_boot()).unwrap();
        let me = session(&after);
        let many = after.counter(b"many").unwrap();
        let striped = after.counter_striped(&many, me, 0).unwrap();
        let mut number = after.counter_get(&many);
        for lane in 0..100 {
            after.striped_add(&striped, lane, 1).unwrap();
            number += 1;
            assert_eq!(after.counter_get(&many), number);
        }
        assert_eq!(after.check_region().findings, []);
    }
}

// property 12
#[test]
fn after_another_boot_a_key_is_under_its_override_though_its_page_is_from_before_that() {
    let (_directory, path) = place();
    let engine = open(&path);
    let me = session(&engine);
    let own: Limit = "9/day".parse().unwrap();
    let limiter = engine
        .open_limiter(b"l", "2/day".parse().unwrap(), false, me, 0)
        .unwrap();
    assert!(
        engine
            .check(&limiter, b"key", 1, me, 0)
            .unwrap()
            .decision
            .is_allowed()
    );
    let find = |bytes: &[u8]| {
        bytes
            .windows(16)
            .position(|it| it == b"key\0\0\0\0\0\0\0\0\0\0\0\0\0")
            .unwrap()
    };
    let old = std::fs::read(&path).unwrap();
    engine
        .set_override(&limiter, b"key", own, me, || 0)
        .unwrap();
    drop(engine);
    let mut bytes = std::fs::read(&path).unwrap();
    let state = find(&old) - 16..find(&old);
    assert_ne!(
        bytes[state.clone()],
        old[state.clone()],
        "the override moved it"
    );
    bytes[state.clone()].copy_from_slice(&old[state]);
    std::fs::write(&path, bytes).unwrap();

    let after = try_open(&path, &next_boot()).unwrap();
    let me = session(&after);
    let now_ns = 3_600 * SECOND;
    let limiter = after.limiter(b"l").unwrap().unwrap();
    assert_eq!(
        after.override_of(&limiter, b"key", || now_ns).unwrap(),
        Some(own)
    );
    let checked = after.check(&limiter, b"key", 1, me, now_ns).unwrap();
    assert_eq!(checked.decision.limit(), 9, "it has a limit of its own");
}
