//! Entries: one to a name, counted right, and tokens that outlive them.

use sprag_core::lock::{Attempt, Grant};
use sprag_core::{Engine, Error, Name, SessionId};
use sprag_loom_tests::{CAPS, MS, both, engine, model};
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
    model("double insert").check(|| {
        let (engine, [one, two]) = engine(CAPS);
        let name = engine.lock_name(b"lock").unwrap();

        let (a, b) = {
            let (engine_2, name_2) = (engine.clone(), name.clone());
            both(
                &engine,
                || try_acquire(&engine, &name, one).unwrap(),
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
    model("insert beside insert").check(|| {
        let (engine, [one, two]) = engine(CAPS);
        let [a, b] = [b"a", b"b"].map(|name| engine.lock_name(name).unwrap());

        let granted = {
            let (engine_2, b) = (engine.clone(), b.clone());
            both(
                &engine,
                || try_acquire(&engine, &a, one),
                move || try_acquire(&engine_2, &b, two),
            )
        };
        assert!(
            matches!(granted, (Ok(Some(_)), Ok(Some(_)))),
            "entries: there is room for both, and a new lock is free"
        );
        check_unique(&engine);
        check_full_at_cap(&engine, one);
    });
}

#[test]
fn a_lock_taken_while_its_idle_entry_is_reclaimed_is_either_held_or_free_with_a_higher_token() {
    model("take against reclaim").check(|| {
        let (engine, [one, two]) = engine(CAPS);
        let [held, idle, new] =
            ["held", "idle", "new"].map(|name| engine.lock_name(name.as_bytes()).unwrap());
        let kept = try_acquire(&engine, &held, one).unwrap().unwrap();
        let before = touch(&engine, &idle, one);

        let (taken, reclaimed) = {
            let (engine_2, new) = (engine.clone(), new.clone());
            both(
                &engine,
                || engine.try_acquire_free(&idle, one, MS, 10 * MS),
                move || try_acquire(&engine_2, &new, two),
            )
        };
        check_unique(&engine);
        let last = if let Some(grant) = taken {
            assert!(
                engine.is_held(&grant, MS),
                "exclusion: an entry was reclaimed while held"
            );
            engine.release(&grant, || MS);
            grant.token
        } else {
            before
        };
        assert!(
            taken.is_some() != reclaimed.is_ok(),
            "entries: the last one went to both, or to neither"
        );
        // The cell that it had may be the new lock's; room is made in another, which knows other tokens.
        engine.release(&kept, || MS);
        assert!(
            touch(&engine, &idle, one) > last,
            "tokens: they rise though the entry was reclaimed"
        );
    });
}

#[test]
fn an_entry_reclaimed_before_its_inserter_saw_it_is_counted_out_once() {
    model("reclaim of a new entry").check(|| {
        let (engine, [one, two]) = engine(CAPS);
        // Making room for the third looks at its home first, which is the second's and not the first's.
        // The first is idle all the time, so there is always room to be made.
        let [idle, a, b] = ["p", "a", "c"].map(|name| engine.lock_name(name.as_bytes()).unwrap());
        touch(&engine, &idle, one);

        let engine_2 = engine.clone();
        let granted = both(
            &engine,
            || try_acquire(&engine, &a, one),
            move || try_acquire(&engine_2, &b, two),
        );
        assert!(
            matches!(granted, (Ok(Some(_)), Ok(Some(_)))),
            "entries: there is room for both, and nobody else wants them"
        );
        check_unique(&engine);
        check_full_at_cap(&engine, one);
    });
}
