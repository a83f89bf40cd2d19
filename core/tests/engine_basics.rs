//! The engine's operations one after another, on anonymous memory: the cases a reader would try first.

mod support;

use sprag_core::lock::{Attempt, Grant, Released, Renewed};
use sprag_core::region::Caps;
use sprag_core::waiter::Poll;
use sprag_core::{Engine, Error, Limit, SessionId};
use support::{SECOND, engine_with_session, session};

fn acquire(engine: &Engine, by: SessionId, name: &[u8], now_ns: u64) -> Option<Grant> {
    let name = engine.lock_name(name).unwrap();
    match engine.try_acquire(&name, by, now_ns, 30 * SECOND).unwrap() {
        Attempt::Granted(grant) => Some(grant),
        Attempt::Busy => None,
    }
}

#[test]
fn tokens_are_consecutive_and_start_above_the_unix_time_floor() {
    let (engine, me) = engine_with_session(Caps::default());
    let mut hold = acquire(&engine, me, b"a", 0).unwrap();
    assert_eq!(hold.token, (1_800_000_000 << 16) + 1);
    for _ in 0..10 {
        assert!(acquire(&engine, me, b"a", 0).is_none(), "held twice");
        assert_eq!(engine.release(&hold, || 0), Released::Done { wake: None });
        assert_eq!(
            engine.release(&hold, || 0),
            Released::NotHeld,
            "released twice"
        );
        let next = acquire(&engine, me, b"a", 0).unwrap();
        assert_eq!(next.token, hold.token + 1);
        assert_eq!(
            engine.release(&hold, || 0),
            Released::NotHeld,
            "an old release"
        );
        hold = next;
    }
}

#[test]
fn names_of_every_length_are_told_apart() {
    let (engine, me) = engine_with_session(Caps::default());
    let long = vec![b'x'; 1024];
    let mut tokens = Vec::new();
    for len in 1..=1024 {
        tokens.push(acquire(&engine, me, &long[..len], 0).expect("a new name is free"));
    }
    for len in 1..=1024 {
        assert!(acquire(&engine, me, &long[..len], 0).is_none(), "{len}");
        let status = engine
            .lock_status(&engine.lock_name(&long[..len]).unwrap(), 0)
            .unwrap();
        assert_eq!(status.name, &long[..len]);
    }
    assert!(matches!(
        engine.lock_name(b""),
        Err(Error::NameLength { len: 0, .. })
    ));
    assert!(matches!(
        engine.lock_name(&[0; 1025]),
        Err(Error::NameLength { len: 1025, .. })
    ));
}

#[test]
fn an_expired_hold_is_taken_over_and_its_late_steps_fail() {
    let (engine, me) = engine_with_session(Caps::default());
    let other = session(&engine);
    let old = acquire(&engine, me, b"a", 5).unwrap();
    assert_eq!(
        old.deadline_ns,
        30 * SECOND + 1_000,
        "rounded up to a microsecond"
    );
    assert!(acquire(&engine, other, b"a", old.deadline_ns - 1).is_none());
    let new = acquire(&engine, other, b"a", old.deadline_ns).unwrap();
    assert_eq!(new.token, old.token + 1);
    assert_eq!(engine.release(&old, || 0), Released::NotHeld);
    assert_eq!(engine.renew(&old, 6, SECOND).unwrap(), Renewed::NotHeld);
    assert!(engine.is_held(&new, old.deadline_ns));
}

#[test]
fn a_lease_can_be_renewed_until_it_ends_and_not_after() {
    let (engine, me) = engine_with_session(Caps::default());
    let hold = acquire(&engine, me, b"a", 0).unwrap();
    assert_eq!(
        engine.renew(&hold, 29 * SECOND, SECOND * 5).unwrap(),
        Renewed::Until(34 * SECOND)
    );
    assert_eq!(
        engine.renew(&hold, 34 * SECOND, SECOND).unwrap(),
        Renewed::NotHeld
    );
}

#[test]
fn a_dead_session_loses_its_hold_at_once() {
    let (engine, me) = engine_with_session(Caps::default());
    let other = session(&engine);
    let hold = acquire(&engine, other, b"a", 0).unwrap();
    assert!(acquire(&engine, me, b"a", 0).is_none());
    engine.close_session(other);
    assert_eq!(acquire(&engine, me, b"a", 0).unwrap().token, hold.token + 1);
}

#[test]
fn waiters_are_served_in_order() {
    let (engine, me) = engine_with_session(Caps::default());
    let name = engine.lock_name(b"a").unwrap();
    let mut hold = acquire(&engine, me, b"a", 0).unwrap();
    let tickets: Vec<_> = (0..5)
        .map(|_| engine.enqueue(&name, me, 0, u64::MAX).unwrap())
        .collect();
    let poll = |i: usize| {
        engine
            .poll(&tickets[i], &name, me, 1, SECOND, true)
            .unwrap()
    };
    for turn in 0..5 {
        for i in turn..5 {
            assert!(matches!(poll(i), Poll::Waiting { .. }), "held");
        }
        assert!(matches!(
            engine.release(&hold, || 1),
            Released::Done { wake: Some(_) }
        ));
        for i in turn + 1..5 {
            assert!(matches!(poll(i), Poll::Waiting { .. }), "not its turn");
        }
        assert_eq!(acquire(&engine, me, b"a", 1), None, "a newcomer barged in");
        let Poll::Granted { grant, .. } = poll(turn) else {
            panic!("the head was not granted")
        };
        hold = grant;
    }
    assert_eq!(engine.release(&hold, || 1), Released::Done { wake: None });
    let name_status = engine.lock_status(&name, 1).unwrap();
    assert_eq!((name_status.waiters, name_status.holds), (0, vec![]));
    assert!(acquire(&engine, me, b"a", 1).is_some());
}

#[test]
fn one_use_names_never_fill_a_region_and_tokens_rise_across_reclaims() {
    let caps = Caps {
        objects: 100,
        limiter_keys: 100,
        ..Caps::default()
    };
    let (engine, me) = engine_with_session(caps);
    let mut last = 0;
    for i in 0..20_000_u32 {
        let hold = acquire(&engine, me, &i.to_le_bytes(), 0).unwrap();
        engine.release(&hold, || 0);
        if i % 150 == 0 {
            let probe = acquire(&engine, me, b"probe", 0).unwrap();
            assert!(probe.token > last);
            last = probe.token;
            engine.release(&probe, || 0);
        }
    }
    // With all of them in use it is full, and says so.
    for i in 0..100_u32 {
        acquire(&engine, me, &i.to_be_bytes(), 0).unwrap();
    }
    let name = engine.lock_name(b"one more").unwrap();
    let error = engine.try_acquire(&name, me, 0, SECOND).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Full { cap: 100, .. } | Error::ShareExceeded { .. }
        ),
        "{error}"
    );
}

#[test]
fn a_limiter_admits_its_burst_then_its_rate() {
    let (engine, me) = engine_with_session(Caps::default());
    let limit = Limit::parse("10/second;burst=3").unwrap();
    let limiter = engine.open_limiter(b"api", limit, false, me, 0).unwrap();
    let hit = |key: &[u8], now| {
        engine
            .check(&limiter, key, 1, me, now)
            .unwrap()
            .decision
            .is_allowed()
    };
    let admitted: Vec<bool> = (0..5).map(|_| hit(b"user:42", SECOND)).collect();
    assert_eq!(admitted, [true, true, true, false, false]);
    assert!(!hit(b"user:42", SECOND + 99_999_999));
    assert!(hit(b"user:42", SECOND + 100_000_000));
    assert!(hit(b"user:43", SECOND));
    assert!(hit(&[7; 900], SECOND));
}

#[test]
fn a_changed_limit_keeps_what_was_used() {
    let (engine, me) = engine_with_session(Caps {
        limiter_keys: 1_000,
        ..Caps::default()
    });
    let old = Limit::parse("10/second").unwrap();
    let limiter = engine.open_limiter(b"api", old, false, me, 0).unwrap();
    for _ in 0..10 {
        assert!(
            engine
                .check(&limiter, b"k", 1, me, 0)
                .unwrap()
                .decision
                .is_allowed()
        );
    }
    let new = Limit::parse("20/second").unwrap();
    let error = engine
        .open_limiter(b"api", new, false, me, 0)
        .err()
        .unwrap();
    assert!(matches!(error, Error::LimitDiffers { .. }));
    let changed = engine.open_limiter(b"api", new, true, me, 0).unwrap();
    // Both the new reference and the stale one decide by the new limit.
    for (i, limiter) in [&limiter, &changed].into_iter().enumerate() {
        let checked = engine.check(limiter, b"k", 1, me, 0).unwrap();
        let remaining = checked.decision.remaining();
        assert_eq!(
            (checked.decision.is_allowed(), remaining),
            (true, 9 - i as u64)
        );
        assert_eq!(engine.peek(limiter, b"k", 0).unwrap().decision.limit(), 20);
    }
    for i in 0..3_000_u64 {
        let limit = Limit::token_bucket(i + 1, SECOND).unwrap();
        engine.open_limiter(b"often", limit, true, me, 0).unwrap();
    }
}

#[test]
fn at_the_cap_a_shared_bucket_decides_and_a_promoted_key_starts_at_its_level() {
    let caps = Caps {
        limiter_keys: 4,
        ..Caps::default()
    };
    let (engine, me) = engine_with_session(caps);
    let limiter = engine
        .open_limiter(b"api", Limit::parse("4/hour").unwrap(), false, me, 0)
        .unwrap();
    let hit = |key: &str, now| engine.check(&limiter, key.as_bytes(), 1, me, now).unwrap();
    for key in ["a", "b", "c", "d"] {
        assert!(!hit(key, 0).is_overflow);
    }
    for i in 0..6 {
        let checked = hit(&format!("late {i}"), 0);
        assert!(checked.is_overflow);
        assert_eq!(checked.decision.is_allowed(), i < 4);
    }
    // A quarter of an hour on, the first four are full again and so can be reclaimed.
    let quarter = 900 * SECOND;
    let promoted = hit("late 9", quarter);
    assert!(!promoted.is_overflow && promoted.decision.is_allowed());
    assert!(
        !hit("late 9", quarter).decision.is_allowed(),
        "it started at the bucket's level"
    );
}

#[test]
fn a_limiter_key_takes_forty_bytes_and_chunks_if_it_is_long() {
    let (engine, me) = engine_with_session(Caps::default());
    let limit = Limit::parse("1/day").unwrap();
    let limiter = engine.open_limiter(b"api", limit, false, me, 0).unwrap();
    let cases = [
        (1, 40),
        (16, 40),
        (17, 104),
        (48, 104),
        (49, 168),
        (1_024, 40 + 22 * 64),
    ];
    let mut expected = 0;
    for (length, bytes) in cases {
        let key = vec![b'k'; length];
        assert!(
            engine
                .check(&limiter, &key, 1, me, 0)
                .unwrap()
                .decision
                .is_allowed()
        );
        expected += bytes;
        assert_eq!(engine.limiter_key_bytes(), expected, "{length}");
    }
    assert_eq!(engine.limiter_key_count(), cases.len() as u64);
}

// property 15
#[test]
fn what_a_dead_session_left_is_no_later_ones_though_its_id_comes_round() {
    let caps = Caps {
        sessions: 1,
        ..Caps::default()
    };
    let (engine, first) = engine_with_session(caps);
    let mut by = first;
    for round in 1..=130 {
        let name = format!("{round}");
        acquire(&engine, by, name.as_bytes(), 0).unwrap();
        let wait = engine.lock_name(name.as_bytes()).unwrap();
        engine.enqueue(&wait, by, 0, u64::MAX).unwrap();
        engine.close_session(by);
        by = session(&engine);
        if by == first {
            // Nobody asked for any of these locks since.
            let (mut held, mut waiting) = (0, 0);
            engine.for_each_lock(b"", 0, |lock| {
                held += u32::from(lock.holds.iter().any(|hold| hold.is_alive));
                waiting += lock.waiters;
            });
            assert_eq!(
                (held, waiting),
                (0, 0),
                "of the dead, after {round} sessions"
            );
        }
    }
}
