//! Counters one step after another, against a map of numbers, in a region so small that those at 0 are
//! reclaimed.

mod support;

use proptest::prelude::*;
use sprag_core::region::Caps;
use sprag_core::{Added, CounterRef, Error};
use std::collections::BTreeMap;
use support::{NAMES, SMALL, engine_with_session, model_config};

#[derive(Clone, Debug)]
enum Step {
    Add(i64),
    AddWithin(i64, i64, i64),
    Swap(i64),
    CompareExchange(i64, i64),
    Get,
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => -3..4_i64,
        1 => Just(i64::MIN),
        1 => Just(i64::MAX),
        1 => any::<i64>(),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => number().prop_map(Step::Add),
        3 => (number(), number(), number()).prop_map(|(d, a, b)| Step::AddWithin(d, a, b)),
        2 => number().prop_map(Step::Swap),
        2 => (number(), number()).prop_map(|(a, b)| Step::CompareExchange(a, b)),
        1 => Just(Step::Get),
    ]
}

proptest! {
    #![proptest_config(model_config())]

    // property 8, property 10
    #[test]
    fn counters_do_what_a_map_of_numbers_does(
        steps in prop::collection::vec((0..3_usize, step(), any::<bool>()), 1..80),
    ) {
        let (engine, me) = engine_with_session(Caps { objects: 2, ..SMALL });
        let kept: Vec<CounterRef> = NAMES.map(|name| engine.counter(name).unwrap()).into();
        let mut numbers: BTreeMap<usize, i64> = BTreeMap::new();
        for (name, step, is_kept) in steps {
            let counter = if is_kept { kept[name].clone() } else { engine.counter(NAMES[name]).unwrap() };
            let before = numbers.get(&name).copied().unwrap_or(0);
            let is_full = before == 0 && numbers.len() == 2;
            let answer: Result<Result<i64, i64>, Error> = match step {
                Step::Add(delta) => engine.counter_add(&counter, delta, me, 0).map(Ok),
                Step::AddWithin(delta, min, max) => engine
                    .counter_add_within(&counter, delta, &(min..=max), me, 0)
                    .map(|added| match added {
                        Added::To(sum) => Ok(sum),
                        Added::Refused(number) => Err(number),
                    }),
                Step::Swap(new) => engine.counter_swap(&counter, new, me, 0).map(Ok),
                Step::CompareExchange(expected, new) => engine
                    .counter_compare_exchange(&counter, expected, new, me, 0)
                    .map(|exchanged| exchanged.map(|()| new)),
                Step::Get => Ok(Ok(engine.counter_get(&counter))),
            };
            // What the answer must be, and the number after.
            let (expected, after) = match step {
                Step::Add(delta) => if let Some(sum) = before.checked_add(delta) {
 (Ok(sum), sum)
} else {
                        let is_told = matches!(
                            answer,
                            Err(Error::CounterOverflow { value, delta: by, .. }) if (value, by) == (before, delta)
                        );
                        prop_assert!(is_told, "{answer:?}");
                        continue;
 },
                Step::AddWithin(_, min, max) if min > max => {
                    let is_told = matches!(answer, Err(Error::NoBounds { .. }));
                    prop_assert!(is_told, "{answer:?}");
                    continue;
                }
                Step::AddWithin(delta, min, max) => {
                    let sum = i128::from(before) + i128::from(delta);
                    if (i128::from(min)..=i128::from(max)).contains(&sum) {
                        (Ok(sum as i64), sum as i64)
                    } else {
                        (Err(before), before)
                    }
                }
                Step::Swap(new) => (Ok(before), new),
                Step::CompareExchange(expected, new) if expected == before => (Ok(new), new),
                Step::CompareExchange(..) => (Err(before), before),
                Step::Get => (Ok(before), before),
            };
            if is_full && after != 0 {
                let is_told = matches!(answer, Err(Error::Full { .. }));
                prop_assert!(is_told, "{answer:?}");
                continue;
            }
            prop_assert_eq!(answer.unwrap(), expected);
            numbers.insert(name, after);
            numbers.retain(|_, number| *number != 0);
        }
        for (name, counter) in kept.iter().enumerate() {
            prop_assert_eq!(engine.counter_get(counter), numbers.get(&name).copied().unwrap_or(0));
        }
        let mut seen = BTreeMap::new();
        engine.for_each_counter(b"", |name, number| {
            seen.insert(name, number);
        });
        seen.retain(|_, number| *number != 0);
        let expected = numbers.into_iter().map(|(name, number)| (NAMES[name].to_vec(), number));
        prop_assert_eq!(seen, expected.collect());
        prop_assert_eq!(engine.check_region().findings, []);
    }
}
