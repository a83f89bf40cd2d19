//! Onces: idempotency keys.

use super::tier::Tier;
use sprag::{Attempt, Begun, EngineError, Error, Once, OnceStatus, RESULT_BYTES_MAX, Space};
use std::time::Duration;

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

fn start<'s>(once: &Once<'s>, ttl: Duration) -> Attempt<'s> {
    match once.begin(ttl).unwrap() {
        Begun::Started(attempt) => attempt,
        other => panic!("{other:?}"),
    }
}

fn is_in_progress(once: &Once<'_>) -> bool {
    matches!(once.begin(MINUTE).unwrap(), Begun::InProgress { .. })
}

fn done(once: &Once<'_>) -> Option<Vec<u8>> {
    match once.begin(MINUTE).unwrap() {
        Begun::Done(result) => Some(result),
        _ => None,
    }
}

fn is_lost(result: &Result<(), Error>) -> bool {
    matches!(result, Err(Error::AttemptLost { .. }))
}

pub(crate) fn the_first_caller_owns_the_key_and_the_others_get_its_result(tier: &impl Tier) {
    let space = tier.space();
    let another = tier.another(&space);
    let (mine, theirs) = (space.once("a").unwrap(), another.once("a").unwrap());
    assert_eq!(mine.status().unwrap(), OnceStatus::New);
    assert!(
        space.onces("").unwrap().is_empty(),
        "asking creates nothing"
    );
    let mut attempt = start(&mine, MINUTE);
    assert!(attempt.is_valid() && attempt.is_held() && !attempt.is_after_unfinished());
    for once in [&mine, &theirs] {
        match once.begin(MINUTE).unwrap() {
            Begun::InProgress {
                holder_pid,
                deadline_left,
            } => {
                assert_eq!(holder_pid, Some(std::process::id()));
                assert!(deadline_left > Duration::ZERO && deadline_left < HOUR);
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(
            once.status().unwrap(),
            OnceStatus::InProgress { .. }
        ));
    }
    attempt.finish(b"result", HOUR).unwrap();
    for once in [&mine, &theirs] {
        assert_eq!(done(once), Some(b"result".to_vec()));
        match once.status().unwrap() {
            OnceStatus::Done { result, kept_left } => {
                assert_eq!(result, b"result");
                assert!(kept_left > Duration::ZERO && kept_left < DAY);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(!attempt.is_valid() && !attempt.is_held());
    assert!(is_lost(&attempt.finish(b"again", HOUR)), "it is over");
    drop(attempt);
    assert_eq!(
        done(&mine),
        Some(b"result".to_vec()),
        "dropping what is finished changes nothing"
    );
}

// property 8, property 10
pub(crate) fn results_of_every_length_come_back_whole_and_longer_ones_are_errors(tier: &impl Tier) {
    let space = tier.space();
    for len in [0, 1, 47, 48, 49, 96, 97, 1_023, RESULT_BYTES_MAX] {
        let result: Vec<u8> = (0..len).map(|i| (i * 7 + len) as u8).collect();
        for name in [len.to_string(), "n".repeat(100) + &len.to_string()] {
            let once = space.once(&name).unwrap();
            let mut attempt = start(&once, MINUTE);
            let too_long = attempt.finish(&vec![0; RESULT_BYTES_MAX + 1], HOUR);
            assert_eq!(
                too_long.unwrap_err().to_string(),
                "result (bytes) is 1025; it must be 0 to 1024"
            );
            assert!(is_in_progress(&once), "an error changes nothing");
            attempt.finish(&result, HOUR).unwrap();
            assert_eq!(done(&once), Some(result.clone()), "{len}");
        }
    }
}

// property 5
pub(crate) fn an_owner_whose_deadline_has_passed_stores_nothing(tier: &impl Tier) {
    let space = tier.space();
    let once = space.once("a").unwrap();
    let short = Duration::from_millis(1);
    // Nobody came yet.
    let mut late = start(&once, short);
    super::until(|| !late.is_valid());
    super::until(|| late.deadline_left().is_zero());
    super::until(|| once.status().unwrap() == OnceStatus::Unfinished);
    assert!(is_lost(&late.finish(b"late", HOUR)));
    assert_eq!(once.status().unwrap(), OnceStatus::Unfinished);
    assert!(is_lost(&late.renew()), "it is over here too");
    // Somebody else began.
    let mut late = start(&once, short);
    assert!(late.is_after_unfinished());
    super::until(|| late.deadline_left().is_zero());
    let mut next = loop {
        match once.begin(MINUTE).unwrap() {
            Begun::Started(next) => break next,
            Begun::InProgress { .. } => std::thread::yield_now(),
            other @ Begun::Done(_) => panic!("{other:?}"),
        }
    };
    assert!(next.token() > late.token() && next.is_after_unfinished());
    assert!(is_lost(&late.extend(MINUTE)));
    assert!(is_lost(&late.finish(b"late", HOUR)));
    assert!(is_in_progress(&once), "a late owner ends nobody's attempt");
    next.finish(b"next", HOUR).unwrap();
    assert_eq!(done(&once), Some(b"next".to_vec()));
}

pub(crate) fn an_attempt_that_is_abandoned_frees_the_key_and_a_dropped_one_is_told_of(
    tier: &impl Tier,
) {
    let space = tier.space();
    let once = space.once("a").unwrap();
    let first = start(&once, MINUTE);
    let token = first.token();
    first.abandon().unwrap();
    assert_eq!(once.status().unwrap(), OnceStatus::New);
    let second = start(&once, MINUTE);
    assert!(second.token() > token && !second.is_after_unfinished());
    drop(second);
    assert_eq!(once.status().unwrap(), OnceStatus::Unfinished);
    // What was left undone stays so until somebody finishes, whoever gives up meanwhile.
    let third = start(&once, MINUTE);
    assert!(third.is_after_unfinished());
    third.abandon().unwrap();
    assert_eq!(once.status().unwrap(), OnceStatus::Unfinished);
    let mut fourth = start(&once, MINUTE);
    assert!(fourth.is_after_unfinished());
    fourth.finish(b"", Duration::from_millis(1)).unwrap();
    super::until(|| once.status().unwrap() == OnceStatus::New);
    assert!(!start(&once, MINUTE).is_after_unfinished());
}

// property 5
pub(crate) fn an_owner_moves_its_deadline_while_it_is_to_come(tier: &impl Tier) {
    let space = tier.space();
    let once = space.once("a").unwrap();
    let mut attempt = start(&once, MINUTE);
    let left = |once: &Once<'_>| match once.status().unwrap() {
        OnceStatus::InProgress { deadline_left, .. } => deadline_left,
        other => panic!("{other:?}"),
    };
    attempt.extend(DAY).unwrap();
    assert!(left(&once) > HOUR && attempt.deadline_left() > HOUR);
    attempt.renew().unwrap();
    assert!(left(&once) > HOUR);
    attempt.extend(MINUTE).unwrap();
    assert!(left(&once) < HOUR && attempt.deadline_left() <= MINUTE);
    attempt.finish(b"", HOUR).unwrap();
    assert!(is_lost(&attempt.renew()));
}

pub(crate) fn a_detached_attempt_goes_on_by_its_token(tier: &impl Tier) {
    let space = tier.space();
    let another = tier.another(&space);
    let (mine, theirs) = (space.once("a").unwrap(), another.once("a").unwrap());
    let token = start(&mine, MINUTE).detach().unwrap();
    assert!(is_in_progress(&mine) && is_in_progress(&theirs));
    assert!(matches!(
        theirs.status().unwrap(),
        OnceStatus::InProgress {
            holder_pid: None,
            ..
        }
    ));
    assert!(is_lost(&theirs.finish_token(token + 1, b"", HOUR)));
    theirs.extend_token(token, HOUR).unwrap();
    theirs.finish_token(token, b"by token", HOUR).unwrap();
    for once in [&mine, &theirs] {
        assert!(is_lost(&once.finish_token(token, b"", HOUR)));
        assert!(is_lost(&once.abandon_token(token)));
        assert!(is_lost(&once.extend_token(token, HOUR)));
        assert_eq!(done(once), Some(b"by token".to_vec()));
    }
    let other = space.once("b").unwrap();
    let token = start(&other, MINUTE).detach().unwrap();
    other.abandon_token(token).unwrap();
    assert_eq!(other.status().unwrap(), OnceStatus::New);
}

// property 15
pub(crate) fn an_attempt_ends_with_its_session(tier: &impl Tier) {
    if !tier.has_sessions() {
        return;
    }
    let space = tier.space();
    let another = tier.another(&space);
    let once = space.once("a").unwrap();
    std::mem::forget(start(&another.once("a").unwrap(), DAY));
    let detached = start(&another.once("b").unwrap(), DAY).detach().unwrap();
    assert!(is_in_progress(&once));
    drop(another);
    assert_eq!(once.status().unwrap(), OnceStatus::Unfinished);
    assert!(start(&once, MINUTE).is_after_unfinished());
    let once = space.once("b").unwrap();
    assert!(is_in_progress(&once));
    once.finish_token(detached, b"", HOUR).unwrap();
}

pub(crate) fn owned_onces_and_attempts_outlive_the_space_they_came_from(tier: &impl Tier) {
    let space = tier.space();
    let once: Once<'static> = space.once("a").unwrap().into_owned();
    let attempt: Attempt<'static> = start(&space.once("a").unwrap(), MINUTE).into_owned();
    drop(space);
    let finished = std::thread::spawn(move || {
        let mut attempt = attempt;
        attempt.finish(b"elsewhere", HOUR)
    });
    finished.join().unwrap().unwrap();
    assert_eq!(done(&once), Some(b"elsewhere".to_vec()));
}

// property 8
pub(crate) fn times_of_onces_outside_their_bounds_are_errors_that_name_them(tier: &impl Tier) {
    let space = tier.space();
    let once = space.once("a").unwrap();
    let mut attempt = start(&once, MINUTE);
    for bad in [
        Duration::ZERO,
        Duration::from_micros(999),
        DAY * 367,
        Duration::MAX,
    ] {
        for (what, result) in [
            ("ttl", once.begin(bad).map(drop)),
            ("ttl", once.extend_token(attempt.token(), bad)),
            ("ttl", attempt.extend(bad)),
            ("keep_for", attempt.finish(b"", bad)),
            ("keep_for", once.finish_token(attempt.token(), b"", bad)),
        ] {
            match result {
                Err(Error::Duration { what: named, .. }) => assert_eq!(named, what),
                other => panic!("{what}: {other:?}"),
            }
        }
    }
    assert!(attempt.is_held());
}

// property 9
pub(crate) fn once_keys_are_bytes_apart_from_other_names(tier: &impl Tier) {
    let space = tier.space();
    let _hold = space.lock("a").unwrap().acquire().unwrap();
    space.fence("a").unwrap().admit(1).unwrap();
    let mut names: Vec<Vec<u8>> = [1, 24, 25, 1024]
        .iter()
        .map(|len| vec![0xff; *len])
        .collect();
    names.push(b"a".to_vec());
    for name in &names {
        let mut attempt = start(&space.once(name).unwrap(), MINUTE);
        attempt.finish(&name.len().to_le_bytes(), HOUR).unwrap();
    }
    for name in &names {
        let found = done(&space.once(name).unwrap());
        assert_eq!(found, Some(name.len().to_le_bytes().to_vec()));
    }
    let listed: Vec<_> = space
        .onces("")
        .unwrap()
        .into_iter()
        .map(|once| once.name)
        .collect();
    names.sort();
    assert_eq!(listed, names);
    assert_eq!(space.onces("a").unwrap().len(), 1);
    for len in [0, 1025] {
        let error = space.once(&vec![1; len]).unwrap_err();
        assert!(matches!(
            error,
            Error::Engine(EngineError::NameLength { .. })
        ));
    }
}

// property 11
pub(crate) fn a_table_full_of_onces_refuses_until_one_is_not_kept_any_more(tier: &impl Tier) {
    let caps = sprag::Caps {
        objects: 4,
        ..sprag::Caps::default()
    };
    let space = tier
        .open(Space::builder().caps(caps).share_percent(100))
        .unwrap();
    let finish =
        |name: &str, keep_for| start(&space.once(name).unwrap(), MINUTE).finish(b"kept", keep_for);
    for name in ["a", "b", "c"] {
        finish(name, HOUR).unwrap();
    }
    drop(start(&space.once("unfinished").unwrap(), MINUTE));
    match space.once("e").unwrap().begin(MINUTE) {
        Err(Error::Engine(EngineError::Full { cap: 4, .. })) => {}
        other => panic!("{other:?}"),
    }
    // What is known of the four is kept all the same.
    assert!(
        start(&space.once("unfinished").unwrap(), MINUTE)
            .abandon()
            .is_ok()
    );
    assert_eq!(done(&space.once("c").unwrap()), Some(b"kept".to_vec()));
    let mut attempt = start(&space.once("unfinished").unwrap(), MINUTE);
    attempt.finish(b"", Duration::from_millis(1)).unwrap();
    super::until(|| {
        matches!(
            space.once("e").unwrap().begin(MINUTE),
            Ok(Begun::Started(_))
        )
    });
}

// property 1, property 10
pub(crate) fn of_many_threads_one_does_it_and_all_read_what_it_stored(tier: &impl Tier) {
    const THREADS: usize = 4;
    let space = tier.space();
    let barrier = std::sync::Barrier::new(THREADS);
    for round in 0..200_u32 {
        let name = format!("round {}", round / 2);
        let started = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (barrier, started, name) = (&barrier, &started, &name);
                let another = tier.another(&space);
                scope.spawn(move || {
                    let once = another.once(name).unwrap();
                    barrier.wait();
                    let result = loop {
                        match once.begin(MINUTE).unwrap() {
                            Begun::Started(mut attempt) => {
                                started.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                                attempt.finish(&[thread as u8; 300], HOUR).unwrap();
                            }
                            Begun::InProgress { .. } => std::thread::yield_now(),
                            Begun::Done(result) => break result,
                        }
                    };
                    assert_eq!(result, [result[0]; 300]);
                });
            }
        });
        assert_eq!(started.into_inner() as u32, 1 - round % 2, "{name}");
    }
}

pub(crate) fn errors_and_debug_output_of_onces_name_the_key(tier: &impl Tier) {
    let space = tier.space();
    let once = space.once("order 42").unwrap();
    let attempt = start(&once, MINUTE);
    assert!(
        format!("{once:?} {attempt:?}")
            .matches("\"order 42\"")
            .count()
            == 2
    );
    let token = attempt.token();
    attempt.abandon().unwrap();
    let error = once.finish_token(token, b"", HOUR).unwrap_err().to_string();
    assert!(
        error.contains("order 42") && error.contains(&token.to_string()),
        "{error}"
    );
    let mut attempt = start(&once, MINUTE);
    attempt.finish(b"", HOUR).unwrap();
    let listed = format!("{:?}", space.onces("order").unwrap());
    assert!(
        listed.contains("\"order 42\"") && listed.contains("Done"),
        "{listed}"
    );
}
