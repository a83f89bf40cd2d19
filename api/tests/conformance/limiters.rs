//! Limiters, as far as they need no clock that is moved by hand: what a period of a year admits.

use super::tier::{Tier, small};
use sprag::{Caps, Decision, Error, Limit};
use sprag_core::limit::LimitError;
use std::time::Duration;

fn seen(decision: &Decision) -> (bool, u64, u64) {
    (
        decision.is_allowed(),
        decision.limit(),
        decision.remaining(),
    )
}

// property 12
pub(crate) fn a_limiter_admits_its_burst_and_no_more(tier: &impl Tier) {
    let space = tier.space();
    let limiter = space.limiter("l", "3/366d").unwrap();
    let decisions: Vec<_> = (0..5).map(|_| limiter.check("k", 1).unwrap()).collect();
    let remaining: Vec<_> = decisions.iter().map(seen).collect();
    assert_eq!(
        remaining,
        [
            (true, 3, 2),
            (true, 3, 1),
            (true, 3, 0),
            (false, 3, 0),
            (false, 3, 0)
        ]
    );
    assert_eq!(decisions[0].retry_after(), Some(Duration::ZERO));
    let third = Duration::from_hours(366 * 24 / 3);
    assert!(
        decisions[3]
            .retry_after()
            .is_some_and(|wait| wait > Duration::ZERO && wait <= third)
    );
    assert!(
        decisions[3]
            .reset_after()
            .is_some_and(|wait| wait > 2 * third)
    );
    assert!(decisions.iter().all(|decision| !decision.is_overflow()));
    assert_eq!(seen(&limiter.check("another", 3).unwrap()), (true, 3, 0));
}

pub(crate) fn a_peek_changes_nothing_and_a_cost_of_zero_takes_nothing(tier: &impl Tier) {
    let space = tier.space();
    let limiter = space.limiter("l", "2/366d").unwrap();
    for _ in 0..3 {
        assert_eq!(seen(&limiter.peek("k").unwrap()), (true, 2, 2));
        assert_eq!(seen(&limiter.check("k", 0).unwrap()), (true, 2, 2));
    }
    assert_eq!(seen(&limiter.check("k", 2).unwrap()), (true, 2, 0));
    assert_eq!(seen(&limiter.peek("k").unwrap()), (true, 2, 0));
    assert_eq!(
        seen(&limiter.check("k", 0).unwrap()),
        (true, 2, 0),
        "zero is always there"
    );
    assert_eq!(seen(&limiter.check("k", 1).unwrap()), (false, 2, 0));
}

// property 8, property 12
pub(crate) fn a_cost_above_the_burst_is_never_admitted(tier: &impl Tier) {
    let space = tier.space();
    for text in [
        "3/second",
        "9/second;burst=3",
        "3/366d;window=fixed",
        "3/366d;window=sliding",
    ] {
        let limiter = space.limiter(text, text).unwrap();
        for cost in [4, u64::MAX] {
            let decision = limiter.check("k", cost).unwrap();
            assert!(!decision.is_allowed(), "{text}");
            assert_eq!(decision.retry_after(), None, "{text}");
            assert_eq!(decision.remaining(), 3, "refused, and nothing taken");
        }
        assert!(limiter.check("k", 3).unwrap().is_allowed(), "{text}");
    }
}

pub(crate) fn a_rate_of_zero_admits_nothing(tier: &impl Tier) {
    let space = tier.space();
    let limiter = space.limiter("l", "0/second").unwrap();
    let decision = limiter.check("k", 1).unwrap();
    assert_eq!(seen(&decision), (false, 0, 0));
    assert_eq!(decision.retry_after(), None);
    assert!(limiter.check("k", 0).unwrap().is_allowed());
}

pub(crate) fn a_batch_decides_as_one_by_one(tier: &impl Tier) {
    let space = tier.space();
    let batched = space.limiter("batched", "2/366d").unwrap();
    let single = space.limiter("single", "2/366d").unwrap();
    // More than are looked at ahead, with repeats, short and long.
    let keys: Vec<Vec<u8>> = (0..200_u32)
        .map(|i| vec![(i * 7 % 50) as u8; if i % 50 < 10 { 40 } else { 8 }])
        .collect();
    let mut decisions: Vec<_> = keys.iter().map(|_| None).collect();
    let mut order = Vec::new();
    batched
        .check_batch(&keys, 1, |index, decision| {
            order.push(index);
            decisions[index] = Some(decision);
        })
        .unwrap();
    assert_eq!(order, (0..keys.len()).collect::<Vec<_>>());
    for (key, batched) in keys.iter().zip(decisions) {
        let single = single.check(key, 1).unwrap();
        assert_eq!(seen(&batched.unwrap()), seen(&single));
    }
}

// property 10
pub(crate) fn a_batch_with_a_bad_key_decides_nothing(tier: &impl Tier) {
    let space = tier.space();
    let limiter = space.limiter("l", "2/366d").unwrap();
    let keys: [&[u8]; 3] = [b"a", b"b", b""];
    let error = limiter
        .check_batch(&keys, 1, |_, _| panic!("decided"))
        .unwrap_err();
    assert!(matches!(
        error,
        Error::Engine(sprag_core::Error::NameLength { len: 0, .. })
    ));
    assert_eq!(limiter.peek("a").unwrap().remaining(), 2);
}

// property 9
pub(crate) fn another_definition_is_an_error_unless_it_says_update(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let limiter = space.limiter("l", "3/hour").unwrap();
    assert_eq!(limiter.limit(), Limit::parse("3/hour").unwrap());
    for another in [
        "4/hour",
        "3/minute",
        "3/hour;burst=2",
        "3/hour;window=fixed",
        "3/hour;window=sliding",
    ] {
        let error = other.limiter("l", another).err().unwrap();
        let Error::Engine(sprag_core::Error::LimitDiffers {
            existing, asked, ..
        }) = error
        else {
            panic!("{error}")
        };
        assert_eq!((existing.as_str(), asked.as_str()), ("3/hour", another));
    }
    // Written otherwise it is the same.
    for same in ["3/h", " 3 / 1 hour ", "3/60minutes;burst=3"] {
        assert_eq!(other.limiter("l", same).unwrap().limit(), limiter.limit());
    }
    let limit = Limit::parse("4/hour").unwrap();
    assert_eq!(other.limiter_updated("l", limit).unwrap().limit(), limit);
    assert!(other.limiter("l", "3/hour").is_err());
    assert!(other.limiter("l", &"4/hour".to_owned()).is_ok());
}

// property 12
pub(crate) fn an_update_keeps_what_was_used(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let old = space.limiter("l", "5/366d").unwrap();
    for key in ["short", "a key that is much too long to fit in its cell"] {
        assert!(old.check(key, 5).unwrap().is_allowed());
    }
    let new = other.limiter_updated("l", "8/366d").unwrap();
    for key in ["short", "a key that is much too long to fit in its cell"] {
        assert_eq!(seen(&new.peek(key).unwrap()), (true, 8, 3));
        // A handle from before decides by the new limit.
        assert_eq!(seen(&old.check(key, 3).unwrap()), (true, 8, 0));
        assert!(!new.check(key, 1).unwrap().is_allowed());
    }
    assert_eq!(seen(&old.check("fresh", 8).unwrap()), (true, 8, 0));
}

pub(crate) fn limiters_of_one_name_share_their_keys(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let handles = [
        space.limiter("l", "3/366d").unwrap(),
        other.limiter("l", "3/366d").unwrap(),
        space.clone().limiter("l", "3/366d").unwrap(),
        other.limiter("l", "3/366d").unwrap().clone(),
    ];
    let admitted: Vec<bool> = handles
        .iter()
        .map(|l| l.check("k", 1).unwrap().is_allowed())
        .collect();
    assert_eq!(admitted, [true, true, true, false]);
}

// property 9
pub(crate) fn limiters_of_two_names_do_not(tier: &impl Tier) {
    let space = tier.space();
    let (one, two) = (
        space.limiter("1", "1/366d").unwrap(),
        space.limiter("2", "1/366d").unwrap(),
    );
    assert!(one.check("k", 1).unwrap().is_allowed());
    assert!(two.check("k", 1).unwrap().is_allowed());
    assert!(!one.check("k", 1).unwrap().is_allowed());
}

// property 9
pub(crate) fn keys_are_bytes_of_every_length(tier: &impl Tier) {
    let space = tier.space();
    let limiter = space.limiter("l", "1/366d").unwrap();
    let zeros = [0; 1024];
    for len in 1..=1024 {
        let first = limiter.check(&zeros[..len], 1).unwrap();
        assert!(first.is_allowed() && !first.is_overflow(), "{len}");
    }
    for len in 1..=1024 {
        assert!(
            !limiter.check(&zeros[..len], 1).unwrap().is_allowed(),
            "{len}"
        );
    }
    let mut other = zeros;
    other[1023] = 1;
    assert!(
        limiter.check(&other, 1).unwrap().is_allowed(),
        "only the last byte differs"
    );
}

// property 11, property 12
pub(crate) fn at_the_cap_a_shared_bucket_decides_and_says_so(tier: &impl Tier) {
    let caps = Caps {
        limiter_keys: 4,
        ..Caps::default()
    };
    let space = tier.open(small().caps(caps).share_percent(100)).unwrap();
    let limiter = space.limiter("l", "2/366d").unwrap();
    for key in ["a", "b", "c", "d"] {
        let decision = limiter.check(key, 1).unwrap();
        assert!(decision.is_allowed() && !decision.is_overflow());
    }
    let late: Vec<_> = (0..4)
        .map(|i| limiter.check(&format!("late {i}"), 1).unwrap())
        .map(|decision| (decision.is_allowed(), decision.is_overflow()))
        .collect();
    assert_eq!(
        late,
        [(true, true), (true, true), (false, true), (false, true)]
    );
    let early = limiter.check("a", 1).unwrap();
    assert!(
        early.is_allowed() && !early.is_overflow(),
        "those that were there go on as before"
    );
}

// property 8
pub(crate) fn limits_are_read_from_text_and_refused_with_a_reason(tier: &impl Tier) {
    let space = tier.space();
    for bad in [
        "",
        "100",
        "x/second",
        "-1/second",
        "1/fortnight",
        "1/second;burst=0",
        "1/0s",
        "1/second;window=fixed;burst=2",
        "1/second;window=sliding;burst=2",
        "99999999/second;window=sliding",
        "99999999999999999999/second",
        "1/second;colour=red",
    ] {
        let error = space.limiter("l", bad).err().unwrap();
        assert!(matches!(error, Error::Limit(_)), "{bad}: {error}");
    }
    let error = space.limiter("l", "1/second;burst=0").err().unwrap();
    assert!(matches!(
        error,
        Error::Limit(LimitError::Burst { burst: 0, .. })
    ));
    // None of them left anything behind.
    assert!(space.limiter("l", "1/second").is_ok());
}

// property 11
pub(crate) fn a_limiter_that_found_no_room_leaves_nothing(tier: &impl Tier) {
    let space = tier.open(small()).unwrap();
    // More than there is room for of limits, and then than there is of names.
    let is_there = |at: &u32| {
        let name = format!("l{at}");
        let limiter = space.limiter(&name, "1/second").map(drop);
        let joint = space
            .joint_limiter(&name, ["1/second", "2/second"])
            .map(drop);
        limiter.is_ok() || joint.is_ok()
    };
    let made = (0..4_000).filter(is_there).count();
    assert!((500..=1_024).contains(&made), "{made}");
    assert!(space.lock("a").unwrap().try_acquire().unwrap().is_some());
    let limiters = space.limiters("").unwrap().len() + space.joint_limiters("").unwrap().len();
    assert!(limiters <= 1_280, "{limiters}");
}
