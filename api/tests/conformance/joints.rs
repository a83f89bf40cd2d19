//! Limits declared together, as far as they need no clock that is moved by hand.

use super::tier::{Tier, small};
use sprag::{Caps, Decision, EngineError, Error, JointDecision, JointLimiter, Limit, Refunded};
use std::time::Duration;

/// Whether it was allowed, and what is left of each limit.
fn seen(decision: &JointDecision<'_>) -> (bool, Vec<u64>) {
    let each = (0..).map_while(|place| decision.of(place));
    (
        decision.is_allowed(),
        each.map(|decision| decision.remaining()).collect(),
    )
}

fn check(limiter: &JointLimiter, key: &str, cost: u64) -> (bool, Vec<u64>) {
    seen(&limiter.check(key, cost).unwrap())
}

// property 10, property 12
pub(crate) fn all_limits_allow_or_nothing_is_taken(tier: &impl Tier) {
    let space = tier.space();
    let limits = ["3/366d", "5/366d;window=fixed", "4/366d;window=sliding"];
    let limiter = space.joint_limiter("j", limits).unwrap();
    assert_eq!(limiter.name(), b"j");
    assert_eq!(
        limiter.limits(),
        limits.map(|text| Limit::parse(text).unwrap())
    );
    assert_eq!(check(&limiter, "k", 2), (true, vec![1, 3, 2]));
    let refused = limiter.check("k", 2).unwrap();
    assert_eq!(seen(&refused), (false, vec![1, 3, 2]), "nothing is taken");
    assert_eq!(refused.refused_by(), Some(0));
    assert_eq!((refused.limit(), refused.remaining()), (3, 1));
    // Each says what it would have done.
    let each: Vec<_> = (0..3).map(|place| refused.of(place).unwrap()).collect();
    let allows: Vec<_> = each.iter().map(Decision::is_allowed).collect();
    assert_eq!(allows, [false, true, true]);
    assert_eq!(refused.retry_after(), each[0].retry_after());
    assert_eq!(
        refused.reset_after(),
        each.iter().map(Decision::reset_after).max().unwrap()
    );
    assert!(refused.of(3).is_none());
    assert_eq!(check(&limiter, "k", 1), (true, vec![0, 2, 1]));
    assert_eq!(check(&limiter, "another", 3), (true, vec![0, 2, 1]));
}

// property 1
pub(crate) fn a_region_that_is_full_of_them_says_that_no_resize_helps(tier: &impl Tier) {
    let space = tier.space();
    let open = |number: u32| space.joint_limiter(&number.to_be_bytes(), ["1/s", "2/h"]);
    let error = (0..=256).find_map(|number| open(number).err()).unwrap();
    let text = error.to_string();
    assert!(!text.contains("resize"), "{text}");
    assert!(!text.contains("release some"), "{text}");
}

// property 12
pub(crate) fn the_limit_that_refuses_longest_is_told(tier: &impl Tier) {
    let space = tier.space();
    let limits = ["2/366d", "1/2d", "0/second", "9/366d"];
    let limiter = space.joint_limiter("j", [limits[0], limits[1]]).unwrap();
    assert_eq!(check(&limiter, "k", 1), (true, vec![1, 0]));
    let refused = limiter.check("k", 1).unwrap();
    assert_eq!(refused.refused_by(), Some(1));
    let wait = refused.retry_after().unwrap();
    assert!(wait > Duration::from_hours(47) && wait <= Duration::from_hours(48));
    // One that never allows is told before one that does later.
    let never = space.joint_limiter("never", limits).unwrap();
    let refused = never.check("k", 1).unwrap();
    assert_eq!(
        (refused.refused_by(), refused.retry_after()),
        (Some(2), None)
    );
    assert_eq!(refused.remaining(), 0);
    let above = limiter.check("k", 3).unwrap();
    assert_eq!((above.refused_by(), above.retry_after()), (Some(0), None));
    assert!(above.retry_after_for(1).is_some_and(|left| left <= wait));
}

pub(crate) fn a_peek_changes_nothing_and_a_cost_of_zero_takes_nothing(tier: &impl Tier) {
    let space = tier.space();
    let limiter = space.joint_limiter("j", ["2/366d", "3/366d"]).unwrap();
    for _ in 0..3 {
        assert_eq!(seen(&limiter.peek("k").unwrap()), (true, vec![2, 3]));
        assert_eq!(check(&limiter, "k", 0), (true, vec![2, 3]));
    }
    assert_eq!(check(&limiter, "k", 2), (true, vec![0, 1]));
    assert_eq!(check(&limiter, "k", 0), (true, vec![0, 1]));
    let peeked = limiter.peek("k").unwrap();
    assert_eq!(seen(&peeked), (true, vec![0, 1]));
    assert!(
        peeked
            .retry_after_for(1)
            .is_some_and(|wait| wait > Duration::ZERO)
    );
}

// property 8
pub(crate) fn costs_and_numbers_of_limits_out_of_bounds_are_errors(tier: &impl Tier) {
    let space = tier.space();
    let most = (1 << 26) - 1;
    let limiter = space
        .joint_limiter("j", ["1000000000/366d", "2000000000/366d"])
        .unwrap();
    // Past what one batch of admissions holds.
    for left in [1_u64, 2, 3] {
        let expected = [1_000_000_000, 2_000_000_000].map(|limit| limit - left * most);
        assert_eq!(check(&limiter, "k", most), (true, expected.to_vec()));
    }
    let error = limiter.check("k", most + 1).unwrap_err();
    let Error::Engine(EngineError::OutOfRange {
        what, value, max, ..
    }) = error
    else {
        panic!("{error}")
    };
    assert!(what.contains("cost"));
    assert_eq!((value, max), (most + 1, most));
    for count in [0, 1, 7] {
        let error = space
            .joint_limiter("bad", vec!["1/s"; count])
            .err()
            .unwrap();
        assert!(
            matches!(error, Error::Engine(EngineError::OutOfRange { value, min: 2, max: 6, .. }) if value == count as u64),
            "{error}"
        );
    }
    assert!(space.joint_limiter("six", ["1/s"; 6]).is_ok());
    let error = space.joint_limiter("bad", ["1/s", "x"]).err().unwrap();
    assert!(matches!(error, Error::Limit(_)));
    for bad in ["", &"x".repeat(1_025)] {
        assert!(space.joint_limiter(bad, ["1/s", "2/s"]).is_err());
        assert!(limiter.check(bad, 1).is_err() && limiter.peek(bad).is_err());
    }
}

// property 9
pub(crate) fn other_limits_under_a_name_are_an_error_that_names_both(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let limiter = space.joint_limiter("j", ["3/hour", "9/day"]).unwrap();
    for another in [
        vec!["9/day", "3/hour"],
        vec!["3/hour", "8/day"],
        vec!["3/hour", "9/day", "9/day"],
    ] {
        let error = other.joint_limiter("j", another.clone()).err().unwrap();
        let Error::Engine(EngineError::JointLimitsDiffer {
            existing, asked, ..
        }) = error
        else {
            panic!("{error}")
        };
        assert_eq!(existing, "3/hour and 9/day");
        assert_eq!(asked, another.join(" and "));
    }
    let same = other.joint_limiter("j", [" 3 / 1 hour ", "9/24h"]).unwrap();
    assert_eq!(same.limits(), limiter.limits());
    // A limiter of the same name has nothing to do with it.
    let single = space.limiter("j", "1/hour").unwrap();
    assert!(single.check("k", 1).unwrap().is_allowed());
    assert_eq!(check(&same, "k", 1), (true, vec![2, 8]));
    assert_eq!(check(&limiter, "k", 1), (true, vec![1, 7]));
}

// property 9
pub(crate) fn keys_under_several_limits_are_bytes_of_every_length(tier: &impl Tier) {
    let space = tier.space();
    let limiter = space.joint_limiter("j", ["1/366d", "2/366d"]).unwrap();
    let zeros = [0; 1024];
    for len in 1..=1024 {
        let first = limiter.check(&zeros[..len], 1).unwrap();
        assert!(first.is_allowed() && !first.is_overflow(), "{len}");
    }
    for len in 1..=1024 {
        let second = limiter.check(&zeros[..len], 1).unwrap();
        assert!(!second.is_allowed(), "{len}");
    }
    let mut other = zeros;
    other[1023] = 1;
    assert!(limiter.check(&other, 1).unwrap().is_allowed());
    let infos = space.joint_limiters("").unwrap();
    assert_eq!(infos.len(), 1);
    assert_eq!((&infos[0].name[..], infos[0].keys), (&b"j"[..], 1_025));
    assert_eq!(infos[0].limits, limiter.limits());
    assert!(space.joint_limiters("k").unwrap().is_empty());
    assert!(format!("{:?} {:?} {limiter:?}", infos, limiter.peek("k")).contains("2/366d"));
}

// property 11, property 12
pub(crate) fn at_the_cap_shared_limits_decide_and_say_so(tier: &impl Tier) {
    let caps = Caps {
        joint_keys: 4,
        ..Caps::default()
    };
    let space = tier.open(small().caps(caps).share_percent(100)).unwrap();
    let limiter = space.joint_limiter("j", ["2/366d", "9/366d"]).unwrap();
    for key in ["a", "b", "c", "d"] {
        let decision = limiter.check(key, 1).unwrap();
        assert!(decision.is_allowed() && !decision.is_overflow());
    }
    let late: Vec<_> = (0..4)
        .map(|i| {
            let decision = limiter.check(&format!("late {i}"), 1).unwrap();
            (decision.is_allowed(), decision.is_overflow())
        })
        .collect();
    assert_eq!(
        late,
        [(true, true), (true, true), (false, true), (false, true)]
    );
    let early = limiter.check("a", 1).unwrap();
    assert!(early.is_allowed() && !early.is_overflow());
    let own = limiter.check("a", 1).unwrap().of(0).unwrap();
    let limiter = space.limiter("l", "1/366d").unwrap();
    assert_eq!(
        limiter.refund(own).unwrap(),
        Refunded::Over,
        "it took nothing"
    );
}

// property 12
pub(crate) fn threads_get_no_more_than_any_of_several_limits(tier: &impl Tier) {
    let space = tier.space();
    // One drains between two checks, one does not.
    let limits = [
        "100/366d",
        "1000000000/second;burst=2",
        "150/366d;window=fixed",
    ];
    let allowed: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let space = tier.another(&space);
                scope.spawn(move || {
                    let limiter = space.joint_limiter("j", limits).unwrap();
                    let checks = (0..300).filter(|_| limiter.check("k", 1).unwrap().is_allowed());
                    checks.count() as u64
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    let limiter = space.joint_limiter("j", limits).unwrap();
    let left = limiter.peek("k").unwrap().of(0).unwrap().remaining();
    assert_eq!((allowed, left), (100, 0));
}

// property 12
pub(crate) fn what_is_said_to_be_left_can_be_had_in_one_call(tier: &impl Tier) {
    const COST_MAX: u64 = (1 << 26) - 1;
    let space = tier.space();
    let limits = ["100000000/366d", "200000000/366d"];
    let limiter = space.joint_limiter("j", limits).unwrap();
    let free = limiter.peek("k").unwrap();
    assert_eq!((free.limit(), free.remaining()), (COST_MAX, COST_MAX));
    assert_eq!(free.of(0).map(|one| one.remaining()), Some(100_000_000));
    // A check of more is an error, so no wait is long enough.
    assert_eq!(free.retry_after_for(COST_MAX), Some(Duration::ZERO));
    assert_eq!(free.retry_after_for(COST_MAX + 1), None);
    assert!(limiter.check("k", COST_MAX + 1).is_err());
    let taken = limiter.check("k", free.remaining()).unwrap();
    assert!(taken.is_allowed());
    assert_eq!(taken.remaining(), 100_000_000 - COST_MAX);
}
