//! Entries: one to a name, counted right, and tokens that outlive them.
#![cfg(loom)]

use sprag_core::lock::{Attempt, Grant};
use sprag_core::{Engine, Error, Name, SessionId};
use sprag_loom_tests::{CAPS, MS, both, check, engine};
use std::collections::BTreeSet;

/// Tries to take a lock; `Err` when the table has no room for it.
fn try_acquire(engine: &Engine, name: &Name, by: SessionId) -> Result<Option<Grant>, ()> {
    match engine.try_acquire(name, by, MS, 10 * MS) {
        Ok(Attempt::Granted(grant)) => Ok(Some(grant)),
        Ok(Attempt::Busy) => Ok(None),
        Err(Error::Full { .. } | Error::ShareExceeded { .. }) => Err(()),
        Err(error) => panic!("{error}"),
    }
}

/// Takes a new lock and frees it; returns its token.
fn touch(engine: &Engine, name: &Name, by: SessionId) -> u64 {
    let grant = try_acquire(engine, name, by).unwrap().unwrap();
    engine.release(&grant, || MS);
    grant.token
}

/// The names of all live locks, once for each entry.
fn live(engine: &Engine) -> Vec<Vec<u8>> {
    let mut names = Vec::new();
    engine.for_each_lock(b"", MS, |status| names.push(status.name));
    names
}

/// Checks that no name has two entries.
fn check_unique(engine: &Engine) {
    let names = live(engine);
    let unique: BTreeSet<_> = names.iter().collect();
    assert_eq!(unique.len(), names.len(), "entries: at most one to a name");
}

/// Takes new locks until the table is full and checks how many there are.
fn check_full_at_cap(engine: &Engine, by: SessionId) {
    for i in 0..=engine.region().caps().objects {
        let name = engine.lock_name(&[b'0' + i as u8]).unwrap();
        if try_acquire(engine, &name, by).is_err() {
            break;
        }
    }
    assert_eq!(
        live(engine).len(),
        engine.region().caps().objects as usize,
        "count: a table is full at its cap, no sooner and no later"
    );
}

#[test]
fn two_threads_that_insert_one_name_make_one_entry_and_count_it_once() {
    check("double insert", || {
        let (engine, [one, two]) = engine(CAPS);
        let name = engine.lock_name(b"lock").unwrap();

        let (a, b) = {
            let (engine, name) = (engine.clone(), name.clone());
            let (engine_2, name_2) = (engine.clone(), name.clone());
            both(
                move || try_acquire(&engine, &name, one).unwrap(),
                move || try_acquire(&engine_2, &name_2, two).unwrap(),
            )
        };
        check_unique(&engine);
        assert!(
            a.is_some() != b.is_some(),
            "entries: two threads hold one lock through two entries, or none does"
        );
        check_full_at_cap(&engine, one);
    });
}

#[test]
fn two_threads_that_insert_different_names_at_one_home_both_get_an_entry() {
    check("insert beside insert", || {
        let (engine, [one, two]) = engine(CAPS);
        let [a, b] = [b"a", b"b"].map(|name| engine.lock_name(name).unwrap());

        let granted = {
            let (engine, a) = (engine.clone(), a.clone());
            let (engine_2, b) = (engine.clone(), b.clone());
            both(
                move || try_acquire(&engine, &a, one).unwrap(),
                move || try_acquire(&engine_2, &b, two).unwrap(),
            )
        };
        assert!(
            matches!(granted, (Some(_), Some(_))),
            "entries: a new lock is free"
        );
        check_unique(&engine);
        check_full_at_cap(&engine, one);
    });
}

#[test]
fn a_lock_acquired_while_its_idle_entry_is_reclaimed_gives_a_higher_token() {
    check("insert against reclaim", || {
        let (engine, [one, two]) = engine(CAPS);
        let [held, idle, new] =
            ["held", "idle", "new"].map(|name| engine.lock_name(name.as_bytes()).unwrap());
        try_acquire(&engine, &held, one).unwrap().unwrap();
        let before = touch(&engine, &idle, one);

        let (a, b) = {
            let (engine, idle) = (engine.clone(), idle.clone());
            let engine_2 = engine.clone();
            both(
                move || try_acquire(&engine, &idle, one),
                move || {
                    try_acquire(&engine_2, &new, two)
                        .map(|grant| engine_2.release(&grant.expect("a new lock is free"), || MS))
                },
            )
        };
        if let Ok(grant) = a {
            let grant = grant.expect("exclusion: nobody else wants it");
            assert!(
                grant.token > before,
                "tokens: they rise though the entry was reclaimed"
            );
            assert!(
                engine.is_held(&grant, MS),
                "exclusion: a held entry is not reclaimed"
            );
        }
        assert!(a.is_ok() || b.is_ok(), "entries: one of two finds room");
        check_unique(&engine);
    });
}

#[test]
fn an_entry_reclaimed_before_its_inserter_saw_it_is_counted_out_once() {
    check("reclaim of a new entry", || {
        let (engine, [one, two]) = engine(CAPS);
        // Making room for the third looks at its home first, which is the second's and not the first's.
        // The first is idle all the time, so there is always room to be made.
        let [idle, a, b] = ["p", "a", "c"].map(|name| engine.lock_name(name.as_bytes()).unwrap());
        touch(&engine, &idle, one);

        let (engine_1, a_1) = (engine.clone(), a.clone());
        let engine_2 = engine.clone();
        both(
            move || touch(&engine_1, &a_1, one),
            move || {
                while engine_2.lock_status(&a, MS).is_none() {
                    loom::thread::yield_now();
                }
                touch(&engine_2, &b, two)
            },
        );
        check_unique(&engine);
        check_full_at_cap(&engine, one);
    });
}

#[test]
fn a_sweep_that_finds_nothing_does_not_hide_an_entry_inserted_meanwhile() {
    check("sweep against insert", || {
        let (engine, [one, two]) = engine(CAPS);
        let fence = engine.fence_name(b"fence").unwrap();
        engine.admit(&fence, one, MS, 1, false).unwrap().unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| engine.lock_name(name.as_bytes()).unwrap());

        let engine_1 = engine.clone();
        let engine_2 = engine.clone();
        both(
            move || {
                try_acquire(&engine_1, &a, one)
                    .map(|grant| engine_1.release(&grant.unwrap(), || MS))
            },
            move || {
                try_acquire(&engine_2, &b, two)
                    .map(|grant| engine_2.release(&grant.unwrap(), || MS))
            },
        );
        assert!(
            try_acquire(&engine, &c, one).is_ok(),
            "reclaim: a table is not full while an entry is idle"
        );
    });
}
