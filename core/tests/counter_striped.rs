//! Striped counters: against a number one step after another, and by many threads at once.

mod support;

use proptest::prelude::*;
use sprag_core::region::Caps;
use sprag_core::{Added, CounterRef, Engine, Error, SessionId, StripedRef};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use support::{SMALL, engine_with_session, is_soak, model_config};

fn striped(engine: &Engine, me: SessionId) -> (CounterRef, StripedRef) {
    let counter = engine.counter(b"hits").unwrap();
    let striped = engine.counter_striped(&counter, me, 0).unwrap();
    (counter, striped)
}

#[derive(Clone, Debug)]
enum Step {
    Add(usize, i64),
    /// Enough of them to open the counter.
    AddOften(usize, i64),
    AddWithin(usize, i64, i64, i64),
    PlainAdd(i64),
    PlainAddWithin(i64, i64, i64),
    Swap(i64),
    CompareExchange(i64, i64),
    Get,
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        8 => -20..21_i64,
        2 => -5_000_000_000..5_000_000_000_i64,
        1 => Just(i64::MIN),
        1 => Just(i64::MAX),
        1 => any::<i64>(),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let lane = 0..10_usize;
    prop_oneof![
        4 => (lane.clone(), number()).prop_map(|(lane, delta)| Step::Add(lane, delta)),
        4 => (lane.clone(), -3..4_i64).prop_map(|(lane, delta)| Step::AddOften(lane, delta)),
        4 => (lane, number(), number(), number()).prop_map(|(l, d, a, b)| Step::AddWithin(l, d, a, b)),
        1 => number().prop_map(Step::PlainAdd),
        1 => (number(), number(), number()).prop_map(|(d, a, b)| Step::PlainAddWithin(d, a, b)),
        1 => number().prop_map(Step::Swap),
        1 => (number(), number()).prop_map(|(a, b)| Step::CompareExchange(a, b)),
        3 => Just(Step::Get),
    ]
}

/// What an addition must answer: the sum, or the number that refused it.
fn within(number: i64, delta: i64, min: i64, max: i64) -> Result<i64, i64> {
    let sum = number.checked_add(delta);
    sum.filter(|sum| (min..=max).contains(sum)).ok_or(number)
}

proptest! {
    #![proptest_config(model_config())]

    // property 8, property 10
    #[test]
    fn a_striped_counter_does_what_one_number_does(
        start in number(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let (engine, me) = engine_with_session(SMALL);
        let (counter, striped) = striped(&engine, me);
        engine.counter_swap(&counter, start, me, 0).unwrap();
        let mut number = start;
        for step in steps {
            match step {
                Step::Add(lane, delta) => {
                    let added = engine.striped_add(&striped, lane, delta);
                    if let Some(sum) = number.checked_add(delta) {
                        prop_assert!(added.is_ok());
                        number = sum;
                    } else {
                        let is_told = matches!(added, Err(Error::CounterOverflow { value, .. }) if value == number);
                        prop_assert!(is_told, "{:?}", added);
                    }
                }
                Step::AddOften(lane, delta) => for i in 0..20 {
                    if let Some(sum) = number.checked_add(delta) {
                        engine.striped_add(&striped, lane + i % 3, delta).unwrap();
                        number = sum;
                    }
                },
                Step::AddWithin(lane, delta, min, max) => {
                    let added = engine.striped_add_within(&striped, lane, delta, &(min..=max));
                    if min > max {
                        let is_told = matches!(added, Err(Error::NoBounds { .. }));
                        prop_assert!(is_told, "{:?}", added);
                        continue;
                    }
                    let expected = within(number, delta, min, max);
                    prop_assert_eq!(added.unwrap(), expected.map(drop));
                    number = expected.unwrap_or(number);
                }
                Step::PlainAdd(delta) => {
                    if let Some(sum) = number.checked_add(delta) {
                        prop_assert_eq!(engine.counter_add(&counter, delta, me, 0).unwrap(), sum);
                        number = sum;
                    }
                }
                Step::PlainAddWithin(delta, min, max) if min <= max => {
                    let added = engine.counter_add_within(&counter, delta, &(min..=max), me, 0);
                    let expected = within(number, delta, min, max);
                    prop_assert_eq!(added.unwrap(), expected.map_or_else(Added::Refused, Added::To));
                    number = expected.unwrap_or(number);
                }
                Step::PlainAddWithin(..) => {}
                Step::Swap(new) => {
                    prop_assert_eq!(engine.counter_swap(&counter, new, me, 0).unwrap(), number);
                    number = new;
                }
                Step::CompareExchange(expected, new) => {
                    let done = engine.counter_compare_exchange(&counter, expected, new, me, 0).unwrap();
                    if expected == number {
                        prop_assert_eq!(done, Ok(()));
                        number = new;
                    } else {
                        prop_assert_eq!(done, Err(number));
                    }
                }
                Step::Get => prop_assert_eq!(engine.counter_get(&counter), number),
            }
        }
        prop_assert_eq!(engine.counter_get(&counter), number);
        let mut seen = Vec::new();
        engine.for_each_counter(b"", |name, number| seen.push((name, number)));
        prop_assert_eq!(seen, [(b"hits".to_vec(), number)]);
        prop_assert_eq!(engine.check_region().findings, []);
    }
}

fn rounds() -> usize {
    if is_soak() { 400 } else { 40 }
}

/// Adds from three threads while a fourth looks, and calls `look` with each number and with the sums of what was
/// known to be added before the look, and after it at the most.
fn beside_a_reader(
    add: impl Fn(&Engine, &StripedRef, usize, usize) -> i64 + Sync,
    look: impl Fn(i64, i64, i64) + Sync,
) -> i64 {
    const THREADS: usize = 3;
    let (engine, me) = engine_with_session(SMALL);
    let (counter, _) = striped(&engine, me);
    let (before, after) = (AtomicI64::new(0), AtomicI64::new(0));
    let (start, is_over) = (Barrier::new(THREADS + 1), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            start.wait();
            while !is_over.load(Ordering::SeqCst) {
                let least = after.load(Ordering::SeqCst);
                let number = engine.counter_get(&counter);
                look(number, least, before.load(Ordering::SeqCst));
            }
        });
        let adders: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (engine, add) = (&engine, &add);
                let (before, after, start) = (&before, &after, &start);
                scope.spawn(move || {
                    let (_, striped) = striped(engine, me);
                    start.wait();
                    for i in 0..2_000 {
                        // Room for what is about to be added, which is 1 at most.
                        before.fetch_add(1, Ordering::SeqCst);
                        let added = add(engine, &striped, thread, i);
                        before.fetch_add(added - 1, Ordering::SeqCst);
                        after.fetch_add(added, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        for adder in adders {
            adder.join().unwrap();
        }
        is_over.store(true, Ordering::SeqCst);
        reader.join().unwrap();
    });
    let number = engine.counter_get(&counter);
    assert_eq!(number, after.load(Ordering::SeqCst), "nothing is lost");
    number
}

// property 10
#[test]
fn a_read_beside_additions_lies_between_the_number_before_and_after() {
    for _ in 0..rounds() {
        beside_a_reader(
            |engine, striped, lane, _| {
                engine.striped_add(striped, lane, 1).unwrap();
                1
            },
            |number, least, most| {
                assert!(
                    (least..=most).contains(&number),
                    "{number}: {least} to {most}"
                );
            },
        );
    }
}

// property 10
#[test]
fn additions_of_both_signs_within_bounds_never_show_a_number_outside_them() {
    for _ in 0..rounds() {
        beside_a_reader(
            |engine, striped, lane, i| {
                // Those of one lane lean up, those of another down.
                let delta =
                    if (i + lane) % 3 == 0 { -1 } else { 1 } * if lane == 1 { -1 } else { 1 };
                let added = engine
                    .striped_add_within(striped, lane, delta, &(0..=100))
                    .unwrap();
                added.map_or(0, |()| delta)
            },
            |number, _, _| assert!((0..=100).contains(&number), "{number}"),
        );
    }
}

// property 10
#[test]
fn what_is_there_is_given_out_to_the_last_and_no_further() {
    for _ in 0..rounds() {
        let (engine, me) = engine_with_session(SMALL);
        let (counter, one) = striped(&engine, me);
        engine.counter_swap(&counter, 3_000, me, 0).unwrap();
        let taken: i64 = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..3)
                .map(|lane| {
                    let (engine, striped) = (&engine, one.clone());
                    scope.spawn(move || {
                        let take =
                            || engine.striped_add_within(&striped, lane, -1, &(0..=i64::MAX));
                        let mut taken = 0;
                        loop {
                            match take().unwrap() {
                                Ok(()) => taken += 1,
                                // Refused only when nothing is left.
                                Err(left) => {
                                    assert_eq!(left, 0);
                                    return taken;
                                }
                            }
                        }
                    })
                })
                .collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).sum()
        });
        assert_eq!((taken, engine.counter_get(&counter)), (3_000, 0));
    }
}

// property 11
#[test]
fn a_striped_counter_stays_and_what_has_no_room_is_told_so() {
    let (engine, me) = engine_with_session(Caps {
        objects: 9,
        ..SMALL
    });
    let (counter, striped) = striped(&engine, me);
    engine.striped_add(&striped, 0, 1).unwrap();
    engine.striped_add(&striped, 1, -1).unwrap();
    let other = engine.counter(b"other").unwrap();
    assert!(matches!(
        engine.counter_add(&other, 1, me, 0),
        Err(Error::Full { .. })
    ));
    assert!(matches!(
        engine.counter_striped(&other, me, 0),
        Err(Error::Full { .. })
    ));
    // A second call is told of the same words.
    let again = engine.counter_striped(&counter, me, 0).unwrap();
    for _ in 0..100 {
        engine.striped_add(&again, 3, 2).unwrap();
        engine.striped_add(&striped, 9, 3).unwrap();
    }
    assert_eq!(engine.counter_get(&counter), 500);
    assert_eq!(engine.check_region().findings, []);
}
