//! Fences.

use super::tier::Tier;
use sprag::Error;

fn highest(error: &Error) -> Option<(u64, u64)> {
    match error {
        Error::Stale { stale, .. } => Some((stale.token, stale.highest)),
        _ => None,
    }
}

pub(crate) fn a_fence_admits_what_is_not_older(tier: &impl Tier) {
    let space = tier.space();
    let fence = space.fence("a").unwrap();
    assert_eq!(fence.highest(), 0);
    for token in [5, 5, 7, 7] {
        fence.admit(token).unwrap();
        assert_eq!(fence.highest(), token);
    }
    assert_eq!(highest(&fence.admit(6).unwrap_err()), Some((6, 7)));
    assert_eq!(tier.another(&space).fence("a").unwrap().highest(), 7);
    assert_eq!(space.fence("b").unwrap().highest(), 0);
}

pub(crate) fn a_fence_admits_once_what_is_newer(tier: &impl Tier) {
    let space = tier.space();
    let fence = space.fence("a").unwrap();
    fence.admit_once(5).unwrap();
    assert_eq!(highest(&fence.admit_once(5).unwrap_err()), Some((5, 5)));
    fence.admit(5).unwrap();
    assert_eq!(highest(&fence.admit_once(4).unwrap_err()), Some((4, 5)));
    fence.admit_once(6).unwrap();
    assert_eq!(fence.highest(), 6);
}

pub(crate) fn a_fence_never_admits_zero_and_nothing_above_the_highest_token(tier: &impl Tier) {
    let space = tier.space();
    let fence = space.fence("a").unwrap();
    assert_eq!(highest(&fence.admit(0).unwrap_err()), Some((0, 0)));
    assert_eq!(highest(&fence.admit_once(0).unwrap_err()), Some((0, 0)));
    // No lock hands out a higher one, and admitting it would shut every holder out.
    let max = (1 << 53) - 1;
    for token in [max + 1, u64::MAX] {
        let error = fence.admit(token).unwrap_err().to_string();
        assert!(
            error.contains("token") && error.contains(&max.to_string()),
            "{error}"
        );
    }
    fence.admit_once(max).unwrap();
    fence.admit(max).unwrap();
    assert_eq!(
        highest(&fence.admit(max - 1).unwrap_err()),
        Some((max - 1, max))
    );
    assert_eq!(fence.highest(), max);
}

// property 3
pub(crate) fn a_fence_rejects_the_holder_before(tier: &impl Tier) {
    let space = tier.space();
    let fence = space.fence("resource").unwrap();
    let old = space.lock("a").unwrap().acquire().unwrap();
    fence.admit(old.token()).unwrap();
    space.break_lock("a").unwrap();
    let new = space.lock("a").unwrap().acquire().unwrap();
    fence.admit(new.token()).unwrap();
    assert!(matches!(fence.admit(old.token()), Err(Error::Stale { .. })));
}

// property 9
pub(crate) fn fences_and_locks_of_one_name_are_apart(tier: &impl Tier) {
    let space = tier.space();
    let _limiter = space.limiter("a", "1/second").unwrap();
    space.fence("a").unwrap().admit(1).unwrap();
    let hold = space.lock("a").unwrap().try_acquire().unwrap().unwrap();
    assert!(hold.is_held());
    assert_eq!(space.fence("a").unwrap().highest(), 1);
}

// property 9
pub(crate) fn fence_names_have_bounds(tier: &impl Tier) {
    let space = tier.space();
    for len in [1, 24, 25, 1024] {
        space
            .fence(&vec![7; len])
            .unwrap()
            .admit(len as u64)
            .unwrap();
    }
    for len in [1, 24, 25, 1024] {
        assert_eq!(space.fence(&vec![7; len]).unwrap().highest(), len as u64);
    }
}
