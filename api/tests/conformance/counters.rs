//! Counters.

use super::tier::{Tier, small};
use sprag::{Added, Caps, EngineError, Error};

pub(crate) fn a_counter_starts_at_0_and_tells_each_sum(tier: &impl Tier) {
    let space = tier.space();
    let counter = space.counter("a").unwrap();
    assert_eq!(counter.get().unwrap(), 0);
    assert_eq!(
        space.counters("").unwrap(),
        [],
        "nothing is made by looking"
    );
    for (delta, sum) in [(1, 1), (41, 42), (-50, -8), (0, -8), (8, 0)] {
        assert_eq!(counter.add(delta).unwrap(), sum);
        assert_eq!(counter.get().unwrap(), sum);
    }
    counter.add(7).unwrap();
    assert_eq!(tier.another(&space).counter("a").unwrap().get().unwrap(), 7);
    assert_eq!(space.counter("b").unwrap().get().unwrap(), 0);
    assert_eq!(counter.name(), b"a");
    assert!(format!("{counter:?}").contains('7'));
}

// property 10
pub(crate) fn an_addition_within_bounds_never_overdraws(tier: &impl Tier) {
    let space = tier.space();
    let counter = space.counter("a").unwrap();
    let add = |delta, bounds| counter.add_within(delta, bounds).unwrap();
    assert_eq!(add(-1, 0..=9), Added::Refused(0));
    assert_eq!(add(9, 0..=9), Added::To(9));
    assert_eq!(add(1, 0..=9), Added::Refused(9));
    assert_eq!(add(-9, 0..=9), Added::To(0));
    assert_eq!(add(0, 0..=9), Added::To(0));
    assert_eq!(add(0, 1..=9), Added::Refused(0));
    // From outside the bounds, only what brings it back.
    counter.swap(20).unwrap();
    assert_eq!(add(-5, 0..=9), Added::Refused(20));
    assert_eq!(add(-11, 0..=9), Added::To(9));
    // What is no number is outside all bounds.
    counter.swap(i64::MAX).unwrap();
    assert_eq!(add(1, i64::MIN..=i64::MAX), Added::Refused(i64::MAX));
    // Built so that no lint sees it.
    let (min, max) = (3, 2);
    let error = counter.add_within(1, min..=max).unwrap_err();
    assert!(error.to_string().contains("3 to 2"), "{error}");
    assert_eq!(counter.get().unwrap(), i64::MAX);
}

// property 8
pub(crate) fn a_sum_that_is_no_number_is_an_error_and_changes_nothing(tier: &impl Tier) {
    let space = tier.space();
    let counter = space.counter("the one").unwrap();
    for (number, delta) in [(i64::MAX, 1), (i64::MIN, -1), (1, i64::MAX), (-2, i64::MIN)] {
        counter.swap(number).unwrap();
        let error = counter.add(delta).unwrap_err();
        let text = error.to_string();
        for part in [
            "the one",
            &number.to_string(),
            &delta.to_string(),
            &i64::MIN.to_string(),
        ] {
            assert!(text.contains(part), "{text}");
        }
        let Error::Engine(EngineError::CounterOverflow {
            value, delta: by, ..
        }) = error
        else {
            panic!("{error}");
        };
        assert_eq!((value, by), (number, delta));
        assert_eq!(counter.get().unwrap(), number);
    }
}

pub(crate) fn a_swap_tells_what_was_and_a_comparison_what_is(tier: &impl Tier) {
    let space = tier.space();
    let counter = space.counter("a").unwrap();
    assert_eq!(counter.swap(5).unwrap(), 0);
    assert_eq!(counter.compare_exchange(4, 9).unwrap(), Err(5));
    assert_eq!(counter.compare_exchange(5, 9).unwrap(), Ok(()));
    assert_eq!(counter.compare_exchange(9, 9).unwrap(), Ok(()));
    assert_eq!(counter.swap(-1).unwrap(), 9);
    // One that is not there is at 0.
    let new = space.counter("b").unwrap();
    assert_eq!(new.compare_exchange(1, 2).unwrap(), Err(0));
    assert_eq!(new.compare_exchange(0, 2).unwrap(), Ok(()));
}

// property 11
pub(crate) fn a_counter_at_0_gives_its_room_and_all_others_keep_theirs(tier: &impl Tier) {
    let caps = Caps {
        objects: 4,
        ..Caps::default()
    };
    let space = tier.open(small().caps(caps).share_percent(100)).unwrap();
    let counters: Vec<_> = (0..4_u8)
        .map(|i| space.counter(&[b'c', i]).unwrap())
        .collect();
    for counter in &counters {
        counter.add(1).unwrap();
    }
    let more = space.counter("more").unwrap();
    let is_full = |error: &Error| {
        matches!(error, Error::Engine(EngineError::Full { .. }))
            && error.to_string().contains("counter")
    };
    // Twice: what was learned by the first look must not outlive the change.
    for _ in 0..2 {
        assert!(is_full(&more.add(1).unwrap_err()));
        assert!(is_full(&more.swap(1).unwrap_err()));
    }
    assert_eq!(more.get().unwrap(), 0);
    assert_eq!(more.add(0).unwrap(), 0, "what leaves it at 0 needs no room");
    counters[2].add(-1).unwrap();
    // One of these comes to lie where the handle found its counter, and is not taken for it.
    for i in 0..64_u8 {
        let other = space.counter(&[b'o', i]).unwrap();
        assert_eq!(other.add(10).unwrap(), 10);
        assert_eq!(counters[2].get().unwrap(), 0);
        assert!(is_full(&counters[2].add(1).unwrap_err()));
        assert_eq!(other.swap(0).unwrap(), 10);
    }
    let lock = space.lock("lock").unwrap().try_acquire().unwrap().unwrap();
    assert_eq!(more.get().unwrap(), 0);
    assert!(is_full(&more.add(1).unwrap_err()));
    lock.release().unwrap();
    assert_eq!(counters[2].add(1).unwrap(), 1);
    for counter in counters {
        assert_eq!(counter.get().unwrap(), 1);
    }
}

// property 9
pub(crate) fn counters_and_other_objects_of_one_name_are_apart(tier: &impl Tier) {
    let space = tier.space();
    let hold = space.lock("a").unwrap().try_acquire().unwrap().unwrap();
    space.fence("a").unwrap().admit(3).unwrap();
    space.counter("a").unwrap().add(5).unwrap();
    assert!(hold.is_held());
    assert_eq!(space.fence("a").unwrap().highest(), 3);
    for len in [1, 24, 25, 1024] {
        space
            .counter(&vec![7; len])
            .unwrap()
            .add(i64::try_from(len).unwrap())
            .unwrap();
    }
    for len in [1, 24, 25, 1024] {
        assert_eq!(
            space.counter(&vec![7; len]).unwrap().get().unwrap(),
            i64::try_from(len).unwrap()
        );
    }
    for len in [0, 1025] {
        assert!(space.counter(&vec![7; len]).is_err());
    }
}

pub(crate) fn counters_are_listed_by_prefix_in_order(tier: &impl Tier) {
    let space = tier.space();
    for (name, number) in [("b/2", -2), ("b/1", 1), ("a", 7), ("b/0", 0)] {
        let counter = space.counter(name).unwrap();
        counter.add(1).unwrap();
        counter.swap(number).unwrap();
    }
    let listed = space.counters("b/").unwrap();
    let listed: Vec<_> = listed.iter().map(|c| (&*c.name, c.number)).collect();
    assert_eq!(listed, [(&b"b/1"[..], 1), (b"b/2", -2)]);
    assert!(format!("{:?}", space.counters("a").unwrap()).contains("number: 7"));
}

// property 10
pub(crate) fn threads_that_count_at_once_miss_nothing_and_never_overdraw(tier: &impl Tier) {
    let space = tier.space();
    let [hits, stock] = ["hits", "stock"].map(|name| space.counter(name).unwrap().into_owned());
    stock.swap(1_000).unwrap();
    let sold: i64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (hits, stock) = (hits.clone(), stock.clone());
                scope.spawn(move || {
                    let mut sold = 0;
                    for _ in 0..2_000 {
                        hits.add(1).unwrap();
                        match stock.add_within(-1, 0..=i64::MAX).unwrap() {
                            Added::To(left) => {
                                assert!((0..1_000).contains(&left));
                                sold += 1;
                            }
                            Added::Refused(left) => assert_eq!(left, 0),
                        }
                    }
                    sold
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(
        (hits.get().unwrap(), stock.get().unwrap(), sold),
        (8_000, 0, 1_000)
    );
}

pub(crate) fn striped_and_plain_handles_are_of_one_counter(tier: &impl Tier) {
    let space = tier.space();
    let plain = space.counter("a").unwrap();
    plain.add(5).unwrap();
    let striped = space.counter("a").unwrap().striped().unwrap();
    let other = tier.another(&space);
    let others = other.counter("a").unwrap().striped().unwrap();
    let mut number = 5;
    // So often that it is opened and gathered again and again.
    for i in 0..200 {
        striped.add(2).unwrap();
        others.add(-1).unwrap();
        number += 1;
        if i % 40 == 39 {
            assert_eq!(plain.get().unwrap(), number);
            assert_eq!(plain.add(1).unwrap(), number + 1);
            number += 1;
        }
    }
    assert_eq!(striped.get().unwrap(), number);
    assert_eq!(space.counters("").unwrap()[0].number, number);
    assert_eq!(space.counters("").unwrap().len(), 1);
    assert_eq!(striped.swap(9).unwrap(), number);
    assert_eq!(others.compare_exchange(8, 1).unwrap(), Err(9));
    assert_eq!(others.compare_exchange(9, 1).unwrap(), Ok(()));
    assert_eq!(plain.get().unwrap(), 1);
    assert_eq!(striped.name(), b"a");
    assert!(format!("{striped:?}").starts_with("StripedCounter"));
}

// property 8, property 10
pub(crate) fn a_striped_counter_keeps_its_bounds_and_tells_an_overflow(tier: &impl Tier) {
    let space = tier.space();
    let striped = space.counter("a").unwrap().striped().unwrap().into_owned();
    let add = |delta| striped.add_within(delta, 0..=1_000).unwrap();
    for i in 0..500 {
        assert_eq!(add(2), Ok(()), "{i}");
    }
    assert_eq!(add(1), Err(1_000));
    for i in 0..1_000 {
        assert_eq!(add(-1), Ok(()), "{i}");
    }
    assert_eq!(add(-1), Err(0));
    // Opened by those who have all the room there is, and then kept within less.
    (0..100).for_each(|_| striped.add(1).unwrap());
    assert_eq!(striped.add_within(1, 0..=100).unwrap(), Err(100));
    let (min, max) = (3, 2);
    assert!(striped.add_within(1, min..=max).is_err());
    striped.swap(i64::MAX - 30).unwrap();
    for _ in 0..30 {
        striped.add(1).unwrap();
    }
    let error = striped.add(1).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Engine(EngineError::CounterOverflow {
                value: i64::MAX,
                delta: 1,
                ..
            })
        ),
        "{error}"
    );
    striped.add(i64::MIN).unwrap();
    assert_eq!(striped.get().unwrap(), -1);
}

// property 10
pub(crate) fn threads_on_a_striped_counter_miss_nothing_and_never_overdraw(tier: &impl Tier) {
    let space = tier.space();
    let [hits, stock] = ["hits", "stock"].map(|name| {
        let striped = space.counter(name).unwrap().striped().unwrap();
        striped.into_owned()
    });
    stock.swap(1_000).unwrap();
    let sold: i64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (hits, stock) = (hits.clone(), stock.clone());
                scope.spawn(move || {
                    let mut sold = 0;
                    for _ in 0..2_000 {
                        hits.add(1).unwrap();
                        match stock.add_within(-1, 0..=i64::MAX).unwrap() {
                            Ok(()) => sold += 1,
                            Err(left) => assert_eq!(left, 0),
                        }
                        assert!((0..=1_000).contains(&stock.get().unwrap()));
                    }
                    sold
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(
        (hits.get().unwrap(), stock.get().unwrap(), sold),
        (8_000, 0, 1_000)
    );
}
