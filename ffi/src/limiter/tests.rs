use super::*;
use crate::decision::{
    sprag_decision_act_after_ns, sprag_decision_is_allowed, sprag_decision_is_overflow,
    sprag_decision_remaining, sprag_decision_retry_after_for_ns,
};
use crate::duration::SPRAG_NEVER;
use crate::duration::SPRAG_SECOND;
use crate::status::sprag_status::{
    SPRAG_ERROR_EMPTY, SPRAG_ERROR_NULL, SPRAG_ERROR_OUT_OF_RANGE, SPRAG_ERROR_UNSUPPORTED,
};
use crate::testing::{Scene, at, fails, limiter, outcome, told, works};
use std::mem::zeroed;
use std::ptr::{null, null_mut};

fn key(text: &str) -> sprag_bytes {
    sprag_bytes::of(text.as_bytes())
}

/// An empty decision.
fn empty() -> sprag_decision {
    // SAFETY: a decision of zero bytes is empty.
    unsafe { zeroed() }
}

/// A check's decision.
///
/// # Safety
///
/// The handle is open.
unsafe fn check(limiter: *const sprag_limiter, text: &str, cost: u64) -> sprag_decision {
    let mut decision = empty();
    let (key, to) = (key(text), &raw mut decision);
    // SAFETY: as this function's caller says; the rest are variables of its own.
    outcome(|error| unsafe { sprag_limiter_check(limiter, key.data, key.len, cost, to, error) })
        .unwrap();
    decision
}

#[test]
fn a_peek_takes_nothing() {
    let scene = Scene::new();
    let limiter = limiter(&scene, "api", c"3/hour");
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let _ = check(limiter, "ann", 1);
        for _ in 0..5 {
            let mut decision = empty();
            let (ann, to) = (key("ann"), &raw mut decision);
            works(|error| sprag_limiter_peek(limiter, ann.data, ann.len, to, error));
            assert!(sprag_decision_is_allowed(&raw const decision));
            assert_eq!(sprag_decision_remaining(&raw const decision), 2);
        }
        sprag_limiter_close(limiter);
    }
}

#[test]
fn a_decision_tells_the_wait_for_another_cost() {
    let scene = Scene::new();
    let limiter = limiter(&scene, "api", c"1/second;burst=4");
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let decision = check(limiter, "ann", 4);
        let wait = |cost| sprag_decision_retry_after_for_ns(&raw const decision, cost);
        assert_eq!((wait(0), wait(5)), (0, SPRAG_NEVER));
        assert_eq!((wait(1), wait(3)), (SPRAG_SECOND, 3 * SPRAG_SECOND));
        assert_eq!(sprag_decision_act_after_ns(&raw const decision), 0);
        assert!(!sprag_decision_is_overflow(&raw const decision));
        let none = empty();
        assert_eq!(
            sprag_decision_retry_after_for_ns(&raw const none, 0),
            SPRAG_NEVER
        );
        sprag_limiter_close(limiter);
    }
}

#[test]
fn keys_without_room_are_decided_by_one_bucket_and_say_so() {
    let scene = Scene::with(|options| options.limiter_keys = 1);
    let limiter = limiter(&scene, "api", c"1000/hour");
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let is_overflow = |text: &str| {
            let decision = check(limiter, text, 1);
            sprag_decision_is_overflow(&raw const decision)
        };
        assert!((0..200).any(|user| is_overflow(&user.to_string())));
        sprag_limiter_close(limiter);
    }
}

#[test]
fn a_batch_decides_each_key_by_itself_and_in_order() {
    let scene = Scene::new();
    let limiter = limiter(&scene, "api", c"2/hour");
    let keys = ["ann", "bob", "ann", "ann"].map(key);
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let (mut allowed, mut count) = ([false; 4], 0);
        let mut decisions = std::array::from_fn::<_, 4, _>(|_| empty());
        works(|error| {
            let (allowed, decisions) = (allowed.as_mut_ptr(), decisions.as_mut_ptr());
            let count = &raw mut count;
            sprag_limiter_check_batch(
                limiter,
                keys.as_ptr(),
                4,
                1,
                allowed,
                decisions,
                count,
                error,
            )
        });
        assert_eq!((allowed, count), ([true, true, true, false], 3));
        let remaining = decisions.each_ref().map(|of| sprag_decision_remaining(of));
        assert_eq!(remaining, [1, 1, 0, 0]);
        // Nothing is wanted, and nothing is there.
        let none = null_mut();
        works(|error| {
            sprag_limiter_check_batch(
                limiter,
                keys.as_ptr(),
                2,
                1,
                none,
                null_mut(),
                null_mut(),
                error,
            )
        });
        works(|error| {
            sprag_limiter_check_batch(limiter, null(), 0, 1, none, null_mut(), null_mut(), error)
        });
        let bob = check(limiter, "bob", 0);
        assert_eq!(sprag_decision_remaining(&raw const bob), 0);
        sprag_limiter_close(limiter);
    }
}

#[test]
fn a_batch_with_a_wrong_key_decides_none() {
    let scene = Scene::new();
    let limiter = limiter(&scene, "api", c"2/hour");
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let batch = |keys: *const sprag_bytes, count, allowed| {
            let (none, count_to) = (null_mut(), null_mut());
            fails(|error| {
                sprag_limiter_check_batch(limiter, keys, count, 1, allowed, none, count_to, error)
            })
        };
        let mut allowed = [true, true];
        let long = [b'a'; 1_025];
        let wrong = [
            (key(""), SPRAG_ERROR_OUT_OF_RANGE),
            (sprag_bytes::of(&long), SPRAG_ERROR_OUT_OF_RANGE),
            (
                sprag_bytes {
                    data: null(),
                    len: 1,
                },
                SPRAG_ERROR_NULL,
            ),
            (
                sprag_bytes {
                    data: long.as_ptr().cast(),
                    len: usize::MAX,
                },
                SPRAG_ERROR_OUT_OF_RANGE,
            ),
        ];
        for (wrong, status) in wrong {
            let keys = [key("ann"), wrong];
            assert_eq!(
                batch(keys.as_ptr(), 2, allowed.as_mut_ptr()),
                at(status, "key")
            );
        }
        assert_eq!(allowed, [true, true]);
        assert_eq!(batch(null(), 1, null_mut()), at(SPRAG_ERROR_NULL, "keys"));
        let keys = [key("ann")];
        let too_many = batch(keys.as_ptr(), usize::MAX, null_mut());
        assert_eq!(too_many, at(SPRAG_ERROR_OUT_OF_RANGE, "keys"));
        let ann = check(limiter, "ann", 0);
        assert_eq!(sprag_decision_remaining(&raw const ann), 2);
        sprag_limiter_close(limiter);
    }
}

#[test]
fn a_reservation_says_when_to_act() {
    let scene = Scene::new();
    let limiter = limiter(&scene, "mail", c"10/second;burst=1");
    let ann = key("ann");
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let reserve = |wait_max_ns| {
            let mut decision = empty();
            let (key, to) = (ann.data, &raw mut decision);
            let status = outcome(|error| {
                sprag_limiter_reserve(limiter, key, ann.len, 1, wait_max_ns, to, error)
            });
            (status, sprag_decision_act_after_ns(&raw const decision))
        };
        assert_eq!(reserve(0), (Ok(SPRAG_OK), 0));
        assert_eq!(reserve(SPRAG_SECOND), (Ok(SPRAG_OK), SPRAG_SECOND / 10));
        assert_eq!(reserve(u64::MAX), (Ok(SPRAG_OK), SPRAG_SECOND / 5));
        assert_eq!(reserve(0), (Ok(SPRAG_REFUSED), 0));
        let nowhere = fails(|error| {
            sprag_limiter_reserve(limiter, ann.data, ann.len, 1, 0, null_mut(), error)
        });
        assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "decision"));
        sprag_limiter_close(limiter);
    }
}

#[test]
fn a_sliding_window_has_no_reservations() {
    let scene = Scene::new();
    let limiter = limiter(&scene, "mail", c"10/second;window=sliding");
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let (ann, mut decision) = (key("ann"), empty());
        let to = &raw mut decision;
        let failed =
            fails(|error| sprag_limiter_reserve(limiter, ann.data, ann.len, 1, 0, to, error));
        assert_eq!(failed, (SPRAG_ERROR_UNSUPPORTED, None));
        assert_eq!(decision.private_state, 0);
        sprag_limiter_close(limiter);
    }
}

#[test]
fn a_refund_works_once() {
    let scene = Scene::new();
    let limiter = limiter(&scene, "mail", c"10/hour");
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let mut batch = check(limiter, "ann", 7);
        let batch = &raw mut batch;
        let (mut refund, mut amount) = (77, 0.0);
        works(|error| {
            sprag_limiter_refund(limiter, batch, &raw mut refund, &raw mut amount, error)
        });
        assert_eq!((refund, amount), (SPRAG_REFUND_GIVEN, 7.0));
        let again = fails(|error| {
            sprag_limiter_refund(limiter, batch, &raw mut refund, &raw mut amount, error)
        });
        assert_eq!(again, at(SPRAG_ERROR_EMPTY, "decision"));
        assert_eq!((refund, amount), (SPRAG_REFUND_GIVEN, 7.0));
        assert!(!sprag_decision_is_allowed(batch));

        let mut nothing = check(limiter, "ann", 0);
        let nothing = &raw mut nothing;
        works(|error| {
            sprag_limiter_refund(limiter, nothing, &raw mut refund, &raw mut amount, error)
        });
        assert_eq!((refund, amount), (SPRAG_REFUND_OVER, 0.0));

        let null = null_mut();
        let nowhere =
            fails(|error| sprag_limiter_refund(limiter, null, null_mut(), null_mut(), error));
        assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "decision"));
        sprag_limiter_close(limiter);
    }
}

#[test]
fn what_another_limiter_admitted_is_not_given_back() {
    let scene = Scene::new();
    let (mail, other) = (
        limiter(&scene, "mail", c"10/hour"),
        limiter(&scene, "other", c"10/hour"),
    );
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let mut batch = check(mail, "ann", 7);
        let (batch, mut refund) = (&raw mut batch, 77);
        works(|error| sprag_limiter_refund(other, batch, &raw mut refund, null_mut(), error));
        assert_eq!(refund, SPRAG_REFUND_VOID);
        sprag_limiter_close(mail);
        sprag_limiter_close(other);
    }
}

#[test]
fn name_and_limit_are_told_as_far_as_they_fit() {
    let scene = Scene::new();
    let limiter = limiter(&scene, "a\0b", c"100/minute;burst=20");
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let name = told(|name, max, len, error| sprag_limiter_name(limiter, name, max, len, error));
        assert_eq!(name, b"a\0b");
        let whole =
            told(|limit, max, len, error| sprag_limiter_limit(limiter, limit, max, len, error));
        assert_eq!(whole, b"100/minute;burst=20");
        assert!(whole.len() < SPRAG_LIMIT_BYTES_MAX);

        let (mut buffer, mut len) = (*b"xxxxx", 0);
        works(|error| {
            sprag_limiter_limit(limiter, buffer.as_mut_ptr().cast(), 4, &raw mut len, error)
        });
        assert_eq!(&buffer, b"100\0x");
        assert_eq!(len, whole.len());
        works(|error| sprag_limiter_limit(limiter, null_mut(), 0, &raw mut len, error));
        let nowhere = fails(|error| sprag_limiter_limit(limiter, null_mut(), 1, null_mut(), error));
        assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "limit"));
        let nowhere = fails(|error| sprag_limiter_name(limiter, null_mut(), 1, null_mut(), error));
        assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "name"));
        sprag_limiter_close(limiter);
    }
}

#[test]
fn the_longest_limit_has_room() {
    let scene = Scene::new();
    // A period of as many digits as there are.
    let limit = c"66999999/31535999999999999ns;window=sliding";
    let limiter = limiter(&scene, "api", limit);
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        let whole =
            told(|limit, max, len, error| sprag_limiter_limit(limiter, limit, max, len, error));
        assert!(whole.len() < SPRAG_LIMIT_BYTES_MAX);
        sprag_limiter_close(limiter);
    }
}
