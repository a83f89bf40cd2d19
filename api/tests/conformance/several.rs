//! Several limiters in one call: all or none. Limits of a year, so that nothing drains.

use super::tier::{Tier, small};
use sprag::{Caps, Decisions, EngineError, Error, Limiter, Refunded, Space};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn limiters(space: &Space) -> [Limiter; 3] {
    ["2/366d", "9/366d;window=fixed", "9/366d;window=sliding"]
        .map(|limit| space.limiter(limit, limit).unwrap())
}

fn remaining(decisions: &Decisions) -> Vec<u64> {
    decisions.iter().map(sprag::Decision::remaining).collect()
}

// property 10
pub(crate) fn all_limits_are_charged_or_none_is(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let [bucket, fixed, sliding] = limiters(&space);
    let long = "a key that is much too long to fit in its cell";
    for left in [[1, 6, 7], [0, 3, 5]] {
        let decisions =
            space.check_all(&[(&bucket, "k", 1), (&fixed, long, 3), (&sliding, "k", 2)]);
        let decisions = decisions.unwrap();
        assert!(decisions.is_allowed() && decisions.refused().next().is_none());
        let shown = format!("{decisions:?}");
        assert_eq!(shown.matches("Decision {").count(), 3, "{shown}");
        assert!(
            shown.starts_with("Decisions { is_allowed: true, each: [Decision {"),
            "{shown}"
        );
        assert_eq!(remaining(&decisions), left);
    }
    let [bucket, fixed, sliding] = limiters(&other);
    let refused = other.check_all(&[(&fixed, long, 3), (&bucket, "k", 1), (&sliding, "k", 6)]);
    let refused = refused.unwrap();
    assert!(!refused.is_allowed());
    assert_eq!(refused.refused().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(remaining(&refused), [3, 0, 5]);
    let wait = refused.iter().nth(1).unwrap().retry_after();
    assert!(wait.is_some_and(|wait| !wait.is_zero()));
    let longest = refused.iter().map(sprag::Decision::retry_after).max();
    assert_eq!(longest, Some(refused.retry_after()), "the longest wait");
    assert_eq!(
        fixed.peek(long).unwrap().remaining(),
        3,
        "refused: nothing is taken"
    );
    assert_eq!(
        sliding.peek("k").unwrap().remaining(),
        5,
        "refused: nothing is taken"
    );
    let some = other.check_all(&[(&bucket, "k", 0), (&fixed, long, 1), (&sliding, "k", 0)]);
    let some = some.unwrap();
    assert!(some.is_allowed(), "cost 0: asks for nothing");
    assert_eq!(some.retry_after(), Some(Duration::ZERO));
    let never = other.check_all(&[(&fixed, long, 1), (&bucket, "k", 3)]);
    assert_eq!(never.unwrap().retry_after(), None, "more than its burst");
    assert_eq!(remaining(&some), [0, 2, 5]);
}

pub(crate) fn a_key_with_an_override_is_charged_by_that(tier: &impl Tier) {
    let space = tier.space();
    let [bucket, fixed, _] = limiters(&space);
    bucket.set_override("vip", "5/366d;window=fixed").unwrap();
    let all = |key| {
        space
            .check_all(&[(&bucket, key, 2), (&fixed, key, 1)])
            .unwrap()
    };
    assert_eq!(remaining(&all("vip")), [3, 8]);
    assert_eq!(remaining(&all("k")), [0, 8]);
    assert_eq!(remaining(&all("vip")), [1, 7]);
    let refused = all("vip");
    assert_eq!(refused.refused().collect::<Vec<_>>(), [0]);
    assert!(bucket.clear_override("vip").unwrap());
    assert_eq!(remaining(&all("vip")), [0, 7], "what it used stays used");
    fixed.set_override("k", "100/366d").unwrap();
    let refused = all("k");
    assert_eq!(refused.refused().collect::<Vec<_>>(), [0]);
    assert_eq!(remaining(&refused), [0, 99]);
}

pub(crate) fn a_key_that_is_named_twice_is_checked_twice(tier: &impl Tier) {
    let space = tier.space();
    let [_, fixed, sliding] = limiters(&space);
    let twice = |first, second| {
        let checks = [
            (&fixed, "k", first),
            (&sliding, "k", 1),
            (&fixed, "k", second),
        ];
        space.check_all(&checks).unwrap()
    };
    assert!(!twice(5, 5).is_allowed());
    let decisions = twice(4, 5);
    assert!(decisions.is_allowed());
    assert_eq!(remaining(&decisions), [5, 8, 0]);
    assert_eq!(twice(1, 1).refused().collect::<Vec<_>>(), [0, 2]);
}

// property 12
pub(crate) fn each_part_of_a_call_is_given_back_by_itself(tier: &impl Tier) {
    let space = tier.space();
    let [bucket, fixed, _] = limiters(&space);
    let call = || {
        let decisions = space
            .check_all(&[(&bucket, "k", 2), (&fixed, "k", 2)])
            .unwrap();
        assert!(decisions.is_allowed());
        decisions.into_iter()
    };
    let mut decisions = call();
    let (of_bucket, of_fixed) = (decisions.next().unwrap(), decisions.next().unwrap());
    assert!(matches!(
        fixed.refund(of_fixed).unwrap(),
        Refunded::Given(_)
    ));
    assert_eq!(fixed.peek("k").unwrap().remaining(), 9);
    assert_eq!(bucket.peek("k").unwrap().remaining(), 0);
    assert!(matches!(
        bucket.refund(of_bucket).unwrap(),
        Refunded::Given(_)
    ));
    // Of another limiter: nothing is known of it there.
    let of_bucket = call().next().unwrap();
    assert_eq!(fixed.refund(of_bucket).unwrap(), Refunded::Void);
    // And of a call that was refused, nothing was taken.
    let refused = space
        .check_all(&[(&bucket, "k", 2), (&fixed, "k", 2)])
        .unwrap();
    for decision in refused {
        assert_eq!(fixed.refund(decision).unwrap(), Refunded::Over);
    }
}

// property 8
pub(crate) fn none_too_many_and_limiters_of_another_space_are_errors(tier: &impl Tier) {
    let space = tier.space();
    let [bucket, fixed, _] = limiters(&space);
    let none: [(&Limiter, &str, u64); 0] = [];
    for result in [
        space.check_all(&none),
        space.check_all(&[(&bucket, "k", 1); 9]),
    ] {
        let error = result.unwrap_err();
        assert!(matches!(
            error,
            Error::Engine(EngineError::OutOfRange { min: 1, max: 8, .. })
        ));
        assert!(error.to_string().contains("number of limits in one call"));
    }
    let name = space.check_all(&[(&bucket, "k", 1), (&fixed, "", 1)]);
    assert!(matches!(
        name.unwrap_err(),
        Error::Engine(EngineError::NameLength { len: 0, .. })
    ));
    let elsewhere = Space::open("mem:").unwrap();
    let strange = elsewhere.limiter("strange", "1/s").unwrap();
    let error = space.check_all(&[(&bucket, "k", 1), (&strange, "k", 1)]);
    let error = error.unwrap_err();
    assert!(matches!(&error, Error::OtherSpace { limiter } if limiter == "strange"));
    assert_eq!(bucket.peek("k").unwrap().remaining(), 2);
}

// property 10, property 11
pub(crate) fn keys_without_room_are_charged_in_one_call_with_others(tier: &impl Tier) {
    let space = tier.open(small().caps(Caps {
        limiter_keys: 1,
        ..Caps::default()
    }));
    let space = space.unwrap();
    let [bucket, fixed, _] = limiters(&space);
    assert!(fixed.check("there", 1).unwrap().is_allowed());
    let call = |cost| {
        let checks = [
            (&bucket, "a", cost),
            (&fixed, "there", 1),
            (&bucket, "b", 1),
        ];
        space.check_all(&checks).unwrap()
    };
    assert_eq!(call(2).refused().collect::<Vec<_>>(), [2]);
    let decisions = call(1);
    assert!(decisions.is_allowed());
    assert_eq!(remaining(&decisions), [1, 7, 0]);
    let overflows: Vec<_> = decisions.iter().map(sprag::Decision::is_overflow).collect();
    assert_eq!(overflows, [true, false, true]);
}

// property 10, property 12
pub(crate) fn a_change_of_a_limit_keeps_what_calls_have_taken_together(tier: &impl Tier) {
    let space = tier.space();
    let [_, fixed, sliding] = limiters(&space);
    let is_over = AtomicBool::new(false);
    let taken = std::thread::scope(|scope| {
        let caller = scope.spawn(|| {
            let mut taken = 0;
            while !is_over.load(Ordering::Relaxed) {
                let decisions = space.check_all(&[(&fixed, "k", 1), (&sliding, "k", 1)]);
                taken += u64::from(decisions.unwrap().is_allowed());
            }
            taken
        });
        for round in 1..40 {
            // Up, and past what can be used.
            let limit = format!("{}/366d;window=fixed", 9 + 100 * round);
            space
                .limiter_updated("9/366d;window=fixed", limit.as_str())
                .unwrap();
            let limit = format!("{}/366d;window=sliding", 9 + 100 * round);
            space
                .limiter_updated("9/366d;window=sliding", limit.as_str())
                .unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        caller.join().unwrap()
    });
    let used = |limiter: &Limiter| {
        let peeked = limiter.peek("k").unwrap();
        peeked.limit() - peeked.remaining()
    };
    assert_eq!(
        used(&fixed),
        used(&sliding),
        "all: one was charged without the other"
    );
    assert_eq!(used(&fixed), taken);
}
