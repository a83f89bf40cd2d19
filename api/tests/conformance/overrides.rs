//! Limits of single keys' own, in place of their limiter's.

use super::tier::{Tier, small};
use sprag::{Caps, Decision, EngineError, Error, Limit, Limiter, OverrideInfo, Refunded};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

fn seen(decision: &Decision) -> (bool, u64, u64) {
    (
        decision.is_allowed(),
        decision.limit(),
        decision.remaining(),
    )
}

fn check(limiter: &Limiter, key: &str) -> (bool, u64, u64) {
    seen(&limiter.check(key, 1).unwrap())
}

fn limit(text: &str) -> Limit {
    Limit::parse(text).unwrap()
}

// property 12
pub(crate) fn an_override_decides_on_its_key_alone_and_for_everyone(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let limiter = space.limiter("l", "3/366d").unwrap();
    let others = other.limiter("l", "3/366d").unwrap();
    let long = "long".repeat(100);
    for key in ["short", &long] {
        assert_eq!(limiter.override_of(key).unwrap(), None);
        limiter.set_override(key, "5/366d").unwrap();
        assert_eq!(others.override_of(key).unwrap(), Some(limit("5/366d")));
        assert_eq!(seen(&others.peek(key).unwrap()), (true, 5, 5));
        assert_eq!(check(&others, key), (true, 5, 4));
        assert_eq!(check(&limiter, key), (true, 5, 3));
        let later = space.limiter("l", "3/366d").unwrap();
        assert_eq!(later.limit(), limit("3/366d"), "the limiter's own");
        assert_eq!(check(&later, key), (true, 5, 2));
        let reserved = limiter.reserve(key, 1, Duration::ZERO).unwrap();
        assert_eq!(seen(&reserved), (true, 5, 1));
        let mut batch = Vec::new();
        let each = |_, decision: Decision| batch.push(seen(&decision));
        limiter.check_batch(&[key, "none", key], 1, each).unwrap();
        assert_eq!((batch[0], batch[2]), ((true, 5, 0), (false, 5, 0)));
        assert_eq!(batch[1].1, 3);
    }
    // Nor does another limiter's key of that name have it.
    let another = space.limiter("l2", "3/366d").unwrap();
    assert_eq!(another.override_of("short").unwrap(), None);
    assert_eq!(check(&another, "short"), (true, 3, 2));
}

// property 12
pub(crate) fn what_was_used_stays_used_when_an_override_is_set_changed_or_cleared(
    tier: &impl Tier,
) {
    let space = tier.space();
    let limiter = space.limiter("l", "3/366d").unwrap();
    assert_eq!(check(&limiter, "k"), (true, 3, 2));
    limiter.set_override("k", "9/366d;window=fixed").unwrap();
    assert_eq!(check(&limiter, "k"), (true, 9, 7));
    limiter.set_override("k", "5/366d").unwrap();
    // Of a bucket something has come back, and what is left of one does not count.
    assert_eq!(check(&limiter, "k"), (true, 5, 2));
    assert!(limiter.clear_override("k").unwrap());
    assert_eq!(seen(&limiter.peek("k").unwrap()), (true, 3, 0));
    assert_eq!(check(&limiter, "k"), (false, 3, 0));
    assert!(
        !limiter.clear_override("k").unwrap(),
        "it has none any more"
    );
    assert_eq!(limiter.override_of("k").unwrap(), None);
}

pub(crate) fn a_key_that_is_shut_out_stays_out_until_it_is_cleared(tier: &impl Tier) {
    let space = tier.space();
    let limiter = space.limiter("l", "3/366d").unwrap();
    for key in ["new", "old"] {
        if key == "old" {
            assert_eq!(check(&limiter, key), (true, 3, 2));
        }
        limiter.set_override(key, "0/second").unwrap();
        for _ in 0..3 {
            let decision = limiter.check(key, 1).unwrap();
            assert_eq!(seen(&decision), (false, 0, 0));
            assert_eq!(decision.retry_after(), None);
        }
        limiter.clear_override(key).unwrap();
        let left = if key == "old" { 1 } else { 2 };
        assert_eq!(check(&limiter, key), (true, 3, left));
    }
}

// property 12
pub(crate) fn a_change_of_the_limit_leaves_overrides_alone(tier: &impl Tier) {
    let space = tier.space();
    let limiter = space.limiter("l", "3/366d").unwrap();
    limiter.set_override("k", "3/366d").unwrap();
    assert_eq!(check(&limiter, "k"), (true, 3, 2));
    assert_eq!(check(&limiter, "plain"), (true, 3, 2));
    let changed = space.limiter_updated("l", "9/366d").unwrap();
    for limiter in [&limiter, &changed] {
        assert_eq!(
            seen(&limiter.peek("k").unwrap()),
            (true, 3, 2),
            "even one of the same limit"
        );
        assert_eq!(seen(&limiter.check("plain", 0).unwrap()), (true, 9, 8));
        assert_eq!(limiter.override_of("k").unwrap(), Some(limit("3/366d")));
    }
    // Through a reference from before the change, it comes under the limit of now.
    assert!(limiter.clear_override("k").unwrap());
    assert_eq!(check(&limiter, "k"), (true, 9, 7));
}

pub(crate) fn what_was_admitted_under_another_limit_is_not_given_back(tier: &impl Tier) {
    let space = tier.space();
    let limiter = space.limiter("l", "3/366d;window=fixed").unwrap();
    let before = limiter.check("k", 1).unwrap();
    limiter.set_override("k", "9/366d;window=fixed").unwrap();
    assert_eq!(limiter.refund(before).unwrap(), Refunded::Void);
    let under = limiter.check("k", 2).unwrap();
    let kept = limiter.check("k", 3).unwrap();
    assert_eq!(limiter.refund(under).unwrap().cost(), 2);
    assert_eq!(limiter.peek("k").unwrap().remaining(), 9 - 1 - 3);
    limiter.clear_override("k").unwrap();
    assert_eq!(limiter.refund(kept).unwrap(), Refunded::Void);
    assert_eq!(limiter.peek("k").unwrap().remaining(), 0);
}

// property 11
pub(crate) fn an_override_outlives_its_key(tier: &impl Tier) {
    let caps = Caps {
        limiter_keys: 4,
        ..Caps::default()
    };
    let space = tier.open(small().caps(caps).share_percent(100)).unwrap();
    let limiter = space.limiter("l", "1000000/second").unwrap();
    limiter.set_override("k", "2000000/second").unwrap();
    for round in 0..100 {
        assert_eq!(limiter.check("k", 1).unwrap().limit(), 2_000_000);
        // All are full again at once, and make room for each other.
        for key in 0..20 {
            let decision = limiter.check(&format!("{round} {key}"), 1).unwrap();
            assert_eq!(decision.limit(), 1_000_000);
        }
    }
}

// property 12
pub(crate) fn keys_without_room_are_decided_by_the_bucket_of_their_own_limit(tier: &impl Tier) {
    let caps = Caps {
        limiter_keys: 2,
        ..Caps::default()
    };
    let space = tier.open(small().caps(caps).share_percent(100)).unwrap();
    let limiter = space.limiter("l", "3/366d").unwrap();
    let fill = space.limiter("fill", "1/366d").unwrap();
    for key in ["a", "b"] {
        assert!(!fill.check(key, 1).unwrap().is_overflow());
    }
    let shared = |key: &str| {
        let decision = limiter.check(key, 1).unwrap();
        assert!(decision.is_overflow());
        seen(&decision)
    };
    assert_eq!(shared("k"), (true, 3, 2));
    limiter.set_override("k", "5/366d").unwrap();
    limiter.set_override("k2", "5/366d").unwrap();
    assert_eq!(seen(&limiter.peek("k").unwrap()), (true, 5, 5));
    // What it took of the limiter's bucket it did not take of this one, which it shares.
    for left in [4, 3, 2, 1, 0] {
        assert_eq!(shared(if left > 2 { "k" } else { "k2" }), (true, 5, left));
    }
    assert_eq!(shared("k"), (false, 5, 0));
    limiter.clear_override("k").unwrap();
    assert_eq!(shared("k"), (true, 3, 1));
}

pub(crate) fn overrides_are_listed_by_limiter_and_key(tier: &impl Tier) {
    let space = tier.space();
    assert_eq!(space.overrides("").unwrap(), []);
    let binary: &[u8] = &[0, 1, 255];
    let api = space.limiter("api", "3/hour").unwrap();
    let mail = space.limiter("mail", "3/hour").unwrap();
    api.set_override("gold", "9/hour").unwrap();
    api.set_override(binary, "5/hour").unwrap();
    mail.set_override("gold", "7/hour").unwrap();
    mail.set_override("gone", "7/hour").unwrap();
    mail.clear_override("gone").unwrap();
    let info = |limiter: &str, key: &[u8], text| OverrideInfo {
        limiter: limiter.into(),
        key: key.into(),
        limit: limit(text),
    };
    let apis = [
        info("api", binary, "5/hour"),
        info("api", b"gold", "9/hour"),
    ];
    assert_eq!(space.overrides("api").unwrap(), apis);
    let mut all = apis.to_vec();
    all.push(info("mail", b"gold", "7/hour"));
    assert_eq!(space.overrides("").unwrap(), all);
    let limiter = space.find_limiter("api").unwrap().unwrap();
    assert_eq!(limiter.override_of("gold").unwrap(), Some(limit("9/hour")));
    assert!(space.find_limiter("none").unwrap().is_none());
}

// property 8, property 11
pub(crate) fn overrides_out_of_bounds_or_without_room_are_errors_that_say_so(tier: &impl Tier) {
    let caps = Caps {
        objects: 4,
        ..Caps::default()
    };
    let space = tier.open(small().caps(caps).share_percent(100)).unwrap();
    let limiter = space.limiter("l", "3/hour").unwrap();
    assert!(matches!(
        limiter.set_override("k", "3/fortnight"),
        Err(Error::Limit(_))
    ));
    for key in [String::new(), "k".repeat(1_025)] {
        let len_of = |error| match error {
            Error::Engine(EngineError::NameLength {
                what: "key", len, ..
            }) => Some(len),
            _ => None,
        };
        let error = limiter.set_override(&key, "3/hour").unwrap_err();
        assert_eq!(len_of(error), Some(key.len()));
        let error = limiter.clear_override(&key).unwrap_err();
        assert_eq!(len_of(error), Some(key.len()));
        let error = limiter.override_of(&key).unwrap_err();
        assert_eq!(len_of(error), Some(key.len()));
    }
    for key in ["a", "b", "c"] {
        limiter.set_override(key, "4/hour").unwrap();
    }
    let error = limiter.set_override("d", "4/hour").unwrap_err();
    assert!(
        matches!(&error, Error::Engine(EngineError::Full { what, cap: 4 }) if what.contains("override")),
        "{error}"
    );
    assert_eq!(check(&limiter, "d").1, 3);
    assert!(limiter.clear_override("b").unwrap());
    limiter.set_override("d", "4/hour").unwrap();
    assert_eq!(check(&limiter, "d").1, 4);
    limiter.set_override("d", "4/hour;window=sliding").unwrap();
    let error = limiter.reserve("d", 1, Duration::ZERO).unwrap_err();
    let told = "this key of the limiter l is under a sliding window";
    assert!(error.to_string().contains(told), "{error}");
}

pub(crate) fn a_long_key_takes_the_room_of_one_whose_override_was_cleared(tier: &impl Tier) {
    let caps = Caps {
        key_chunks: 64,
        ..Caps::default()
    };
    let space = tier.open(small().caps(caps)).unwrap();
    let limiter = space.limiter("l", "3/hour").unwrap();
    let set = |at: usize| limiter.set_override(&format!("{at:0100}"), "4/hour");
    let full = (0..64).find(|at| set(*at).is_err()).unwrap();
    for at in 0..3 {
        assert!(limiter.clear_override(&format!("{at:0100}")).unwrap());
        set(full + at).unwrap();
        set(64).unwrap_err();
    }
}

pub(crate) fn thousands_of_overrides_share_one_limit(tier: &impl Tier) {
    let space = tier.space();
    let limiter = space.limiter("l", "3/366d").unwrap();
    let keys: Vec<String> = (0..1_200).map(|i| format!("customer {i}")).collect();
    for key in &keys {
        limiter.set_override(key, "7/366d").unwrap();
    }
    for key in &keys {
        assert_eq!(check(&limiter, key), (true, 7, 6));
    }
    assert_eq!(space.limiters("l").unwrap()[0].keys, 1_200);
}

// property 12
pub(crate) fn no_check_after_an_override_was_set_or_cleared_is_decided_by_another_limit(
    tier: &impl Tier,
) {
    let space = tier.space();
    let other = tier.another(&space);
    let [set, seen_by] =
        [&space, &other].map(|space| space.limiter("l", "1000000/second").unwrap());
    // Even: the limiter's own. Odd: the override's. What was set last, doubled; one more while it changes.
    let turn = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(SeqCst) {
                    let before = turn.load(SeqCst);
                    let most = seen_by.check("k", 1).unwrap().limit();
                    if turn.load(SeqCst) == before && before.is_multiple_of(2) {
                        let expected = 1_000_000 * (1 + before / 2 % 2);
                        assert_eq!(most, expected, "by a limit that is over");
                    }
                }
            });
        }
        for round in 1..=500 {
            turn.fetch_add(1, SeqCst);
            if round % 2 == 1 {
                set.set_override("k", "2000000/second").unwrap();
            } else {
                assert!(set.clear_override("k").unwrap());
            }
            turn.fetch_add(1, SeqCst);
            let most = set.peek("k").unwrap().limit();
            assert_eq!(most, 1_000_000 * (1 + round % 2));
        }
        is_over.store(true, SeqCst);
    });
}

// property 12
pub(crate) fn checks_and_overrides_at_once_admit_no_more_than_the_widest_limit(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    let [set, checks] = [&space, &other].map(|space| space.limiter("l", "300/366d").unwrap());
    for key in (0..20).map(|i| format!("k{i}")) {
        let admitted = AtomicU64::new(0);
        let are_checking = AtomicU64::new(2);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..400 {
                        let decision = checks.check(&key, 1).unwrap();
                        assert!(!decision.is_overflow());
                        admitted.fetch_add(decision.is_allowed().into(), SeqCst);
                    }
                    are_checking.fetch_sub(1, SeqCst);
                });
            }
            while are_checking.load(SeqCst) > 0 {
                set.set_override(&key, "400/366d;window=fixed").unwrap();
                set.clear_override(&key).unwrap();
            }
        });
        let admitted = admitted.load(SeqCst);
        assert!((300..=400).contains(&admitted), "{admitted}");
    }
}
