//! Counters: nothing is lost, nothing is counted twice, no bound is passed.

use sprag_core::lock::{Attempt, Released};
use sprag_core::{Added, CounterRef, Engine, Error};
use sprag_loom_tests::{CAPS, MS, both, engine, model};

#[test]
fn a_counter_that_two_threads_change_loses_nothing_and_keeps_its_bounds() {
    model("counter").check(|| {
        let (engine, [one, two]) = engine(CAPS);
        let counter = engine.counter(b"counter").unwrap();
        engine.counter_add(&counter, 1, one, MS).unwrap();

        let take = move |engine: &Engine, counter: &CounterRef, by| {
            engine
                .counter_add_within(counter, -1, &(0..=9), by, MS)
                .unwrap()
        };
        let (first, second) = {
            let (engine_2, counter_2) = (engine.clone(), counter.clone());
            both(
                &engine,
                || {
                    let taken = take(&engine, &counter, one);
                    (taken, engine.counter_add(&counter, 2, one, MS).unwrap())
                },
                move || take(&engine_2, &counter_2, two),
            )
        };
        let taken = |added| matches!(added, Added::To(left) if left >= 0);
        let refused = |added| matches!(added, Added::Refused(0));
        let (first, sum) = first;
        assert!(
            [first, second].iter().all(|a| taken(*a) || refused(*a)),
            "counter: overdrawn: {first:?}, {second:?}"
        );
        let left = 3 - i64::from(taken(first)) - i64::from(taken(second));
        assert_eq!(engine.counter_get(&counter), left, "counter: the sum");
        assert!(
            [left, left + 1].contains(&sum),
            "counter: told {sum} at {left}"
        );
    });
}

#[test]
fn a_counter_that_is_reclaimed_at_0_takes_no_addition_with_it() {
    model("counter, reclaimed").check(|| {
        let (engine, [one, _]) = engine(CAPS);
        let acquire =
            |engine: &sprag_core::Engine, name, by| match engine.try_acquire(name, by, MS, 10 * MS)
            {
                Ok(Attempt::Granted(grant)) => Some(grant),
                Ok(Attempt::Busy) => unreachable!("nobody else has it"),
                Err(Error::Full { .. }) => None,
                Err(error) => panic!("{error}"),
            };
        let [held, new] = ["held", "new"].map(|name| engine.lock_name(name.as_bytes()).unwrap());
        acquire(&engine, &held, one).unwrap();
        // Keeps its place.
        let counter = engine.counter(b"counter").unwrap();
        engine.counter_add(&counter, 1, one, MS).unwrap();
        engine.counter_add(&counter, -1, one, MS).unwrap();

        let (grant, sum) = {
            let (engine_2, counter_2) = (engine.clone(), counter.clone());
            both(
                &engine,
                || acquire(&engine, &new, one),
                // To a counter that is there: one that is not there any more is for others to insert.
                move || engine_2.counter_add_known(&counter_2, 1),
            )
        };
        let number = engine.counter_get(&counter);
        assert_eq!(number, sum.unwrap_or(0), "counter: what was added");
        assert!(
            sum.is_none() || grant.is_none(),
            "counter: reclaimed with {number} in it"
        );
        if let Some(grant) = grant {
            let released = engine.release(&grant, || MS);
            assert_eq!(
                released,
                Released::Done { wake: None },
                "counter: an addition reached a lock"
            );
        }
    });
}
