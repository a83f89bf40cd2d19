//! Counters: nothing is lost, nothing is counted twice, no bound is passed.

use sprag_core::lock::{Attempt, Released};
use sprag_core::region::Caps;
use sprag_core::{Added, CounterRef, Engine, Error, SessionId, StripedRef};
use sprag_loom_tests::{CAPS, MS, both, engine, model};
use std::sync::Arc;

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

/// Room for a striped counter, which has two stripes in a model.
const STRIPED: Caps = Caps { objects: 3, ..CAPS };

/// A counter at 9 that is open, with 1 of it in the first stripe.
fn open_counter() -> (Arc<Engine>, [SessionId; 2], CounterRef, StripedRef) {
    let (engine, sessions) = engine(STRIPED);
    let counter = engine.counter(b"counter").unwrap();
    let striped = engine.counter_striped(&counter, sessions[0], MS).unwrap();
    engine.counter_swap(&counter, 7, sessions[0], MS).unwrap();
    for _ in 0..2 {
        engine.striped_add(&striped, 0, 1).unwrap();
    }
    (engine, sessions, counter, striped)
}

#[test]
fn an_addition_beside_one_who_gathers_counts_once() {
    model("striped counter, gathered").check(|| {
        let (engine, [one, _], counter, striped) = open_counter();
        let sum = {
            let (engine_2, striped_2) = (engine.clone(), striped.clone());
            let (sum, ()) = both(
                &engine,
                || engine.counter_add(&counter, 10, one, MS).unwrap(),
                move || {
                    // To a stripe that nobody opened yet.
                    engine_2.striped_add(&striped_2, 1, 1).unwrap();
                },
            );
            sum
        };
        assert_eq!(
            engine.counter_get(&counter),
            20,
            "striped: something was lost or counted twice"
        );
        assert!((19..=20).contains(&sum), "striped: told {sum}");
    });
}

#[test]
fn two_who_gather_at_once_find_the_same_whole() {
    model("striped counter, gathered twice").check(|| {
        let (engine, [one, two], counter, _) = open_counter();
        let sums = {
            let (engine_2, counter_2) = (engine.clone(), counter.clone());
            both(
                &engine,
                || engine.counter_add(&counter, 10, one, MS).unwrap(),
                move || engine_2.counter_add(&counter_2, 100, two, MS).unwrap(),
            )
        };
        assert!(
            [(19, 119), (119, 109)].contains(&sums),
            "striped: no order of the two tells {sums:?}"
        );
        assert_eq!(engine.counter_get(&counter), 119, "striped: the whole");
    });
}

#[test]
fn a_look_beside_additions_of_both_signs_sees_a_number_that_was() {
    model("striped counter, looked at").check(|| {
        let (engine, _, counter, striped) = open_counter();
        let seen = {
            let (engine_2, striped_2) = (engine.clone(), striped.clone());
            let (seen, ()) = both(
                &engine,
                || engine.counter_get(&counter),
                move || {
                    // Up in one stripe, then down in the other: never below 9.
                    engine_2.striped_add(&striped_2, 0, 3).unwrap();
                    engine_2.striped_add(&striped_2, 1, -3).unwrap();
                },
            );
            seen
        };
        assert!([9, 12].contains(&seen), "striped: {seen} never was");
        assert_eq!(engine.counter_get(&counter), 9, "striped: the whole");
    });
}

#[test]
fn takers_of_the_last_ones_never_overdraw() {
    model("striped counter, bounded").check(|| {
        let (engine, _, counter, striped) = open_counter();
        // 9 are there, and both want more than half.
        let take = |engine: &Engine, striped: &StripedRef, lane| {
            engine
                .striped_add_within(striped, lane, -5, &(0..=20))
                .unwrap()
        };
        let (first, second) = {
            let (engine_2, striped_2) = (engine.clone(), striped.clone());
            both(
                &engine,
                || take(&engine, &striped, 0),
                move || take(&engine_2, &striped_2, 1),
            )
        };
        assert!(
            [(Ok(()), Err(4)), (Err(4), Ok(()))].contains(&(first, second)),
            "striped: {first:?} and {second:?} of 9"
        );
        assert_eq!(engine.counter_get(&counter), 4, "striped: what is left");
    });
}
