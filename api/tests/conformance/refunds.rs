//! Refunds and reservations, as far as they need no clock that is moved by hand: limits of a year.

use super::tier::Tier;
use sprag::{EngineError, Error, Refunded};
use std::time::Duration;

const DAY: Duration = Duration::from_hours(24);

// property 12
pub(crate) fn a_refund_gives_back_what_was_taken(tier: &impl Tier) {
    let space = tier.space();
    let other = tier.another(&space);
    for limit in ["9/366d", "9/366d;window=fixed", "9/366d;window=sliding"] {
        let limiter = space.limiter(limit, limit).unwrap();
        for key in ["k", "a key that is much too long to fit in its cell"] {
            let first = limiter.check(key, 2).unwrap();
            let second = limiter.check(key, 3).unwrap();
            let third = limiter.check(key, 4).unwrap();
            assert!(!limiter.check(key, 1).unwrap().is_allowed());
            // Through any handle of the limiter, in any order.
            let handle = other.limiter(limit, limit).unwrap();
            for (decision, left) in [(second, 3), (first, 5), (third, 9)] {
                let refunded = handle.refund(decision).unwrap();
                assert!(
                    matches!(refunded, Refunded::Given(_)),
                    "{limit}: {refunded:?}"
                );
                assert_eq!(limiter.peek(key).unwrap().remaining(), left, "{limit}");
            }
        }
    }
}

pub(crate) fn a_refund_of_what_took_nothing_gives_nothing(tier: &impl Tier) {
    let space = tier.space();
    let limiter = space.limiter("l", "2/366d").unwrap();
    let refused = limiter.check("k", 3).unwrap();
    assert_eq!(limiter.refund(refused).unwrap(), Refunded::Over);
    let peeked = limiter.peek("k").unwrap();
    assert_eq!(limiter.refund(peeked).unwrap(), Refunded::Over);
}

// property 12
pub(crate) fn a_refund_after_a_change_or_of_another_limiter_is_void(tier: &impl Tier) {
    let space = tier.space();
    let limiter = space.limiter("l", "5/366d").unwrap();
    let decision = limiter.check("k", 5).unwrap();
    let changed = space.limiter_updated("l", "6/366d").unwrap();
    assert_eq!(limiter.refund(decision).unwrap(), Refunded::Void);
    assert_eq!(changed.peek("k").unwrap().remaining(), 1);
    let another = space.limiter("another", "5/366d").unwrap();
    let decision = another.check("k", 5).unwrap();
    assert_eq!(changed.refund(decision).unwrap(), Refunded::Void);
    // Nor of another space, whose limiter has the same name and limit.
    let elsewhere = sprag::Space::open("mem:").unwrap();
    let there = elsewhere.limiter("l", "6/366d").unwrap();
    let decision = changed.check("fresh", 5).unwrap();
    let _ = there.check("fresh", 5).unwrap();
    assert_eq!(there.refund(decision).unwrap(), Refunded::Void);
    assert_eq!(there.peek("fresh").unwrap().remaining(), 1);
}

// property 12
pub(crate) fn a_place_is_reserved_once_and_can_be_given_back(tier: &impl Tier) {
    let space = tier.space();
    let limiter = space.limiter("l", "366/366d;burst=1").unwrap();
    let now = limiter.reserve("k", 1, Duration::ZERO).unwrap();
    assert!(now.is_allowed());
    assert_eq!(now.act_after(), Duration::ZERO);
    let refused = limiter.reserve("k", 1, DAY / 2).unwrap();
    assert!(!refused.is_allowed());
    assert!(refused.retry_after().is_some_and(|wait| wait > DAY / 2));
    let next = limiter.reserve("k", 1, DAY).unwrap();
    let after = limiter.reserve("k", 1, 2 * DAY).unwrap();
    assert!(next.is_allowed() && next.act_after() <= DAY);
    assert_eq!(
        after.act_after().saturating_sub(next.act_after()).as_secs(),
        DAY.as_secs() - 1
    );
    // The one after rests on it; given back in turn, all comes back.
    assert_eq!(limiter.refund(after).unwrap().cost(), 1);
    assert_eq!(limiter.refund(next).unwrap().cost(), 1);
    let again = limiter.reserve("k", 1, DAY).unwrap();
    assert!(again.is_allowed());
    let never = limiter.reserve("k", 2, Duration::MAX).unwrap();
    assert_eq!((never.is_allowed(), never.retry_after()), (false, None));
}

// property 8
pub(crate) fn a_sliding_window_has_no_reservations_and_says_so(tier: &impl Tier) {
    let space = tier.space();
    let limiter = space.limiter("l", "2/366d;window=sliding").unwrap();
    let error = limiter.reserve("k", 1, DAY).unwrap_err();
    assert!(matches!(
        error,
        Error::Engine(EngineError::NoReservations { .. })
    ));
    assert!(error.to_string().contains("check and come back"), "{error}");
    assert_eq!(limiter.peek("k").unwrap().remaining(), 2);
    assert!(limiter.reserve("", 1, DAY).is_err());
}
