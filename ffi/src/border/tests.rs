use super::*;
use crate::clock::{
    sprag_manual_clock, sprag_manual_clock_close, sprag_manual_clock_open,
    sprag_manual_clock_unix_ns,
};
use crate::status::sprag_status::SPRAG_OK;
use crate::testing::{at, fails, outcome, works};
use std::ptr::{null, null_mut};

/// What is panicked with here panics once more when it is dropped.
struct Spiteful;

impl Drop for Spiteful {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

fn clock() -> *mut sprag_manual_clock {
    let mut clock = null_mut();
    // SAFETY: a variable of this function's.
    works(|error| unsafe { sprag_manual_clock_open(&raw mut clock, error) });
    clock
}

#[test]
fn a_panic_becomes_a_status_and_poisons_the_handle() {
    // SAFETY: as the contract asks: a handle of this test's own.
    unsafe {
        let (spoilt, other) = (clock(), clock());
        let panicked = outcome(|error| on(spoilt, error, |_| panic!("at {}", 7))).unwrap_err();
        assert_eq!(panicked.status, SPRAG_ERROR_PANICKED);
        assert!(panicked.message.contains("(at 7)"), "{panicked:?}");
        let poisoned = fails(|error| on(spoilt, error, |_| Ok(SPRAG_OK)));
        assert_eq!(poisoned, (SPRAG_ERROR_POISONED, None));
        assert_eq!(sprag_manual_clock_unix_ns(spoilt), 0);
        works(|error| on(other, error, |_| Ok(SPRAG_OK)));
        sprag_manual_clock_close(spoilt);
        sprag_manual_clock_close(other);
    }
}

#[test]
fn what_was_panicked_with_is_never_dropped() {
    let act = || std::panic::panic_any(Spiteful);
    assert_eq!(
        fails(|error| call(error, act)),
        (SPRAG_ERROR_PANICKED, None)
    );
    // SAFETY: as the contract asks: a handle of this test's own.
    unsafe {
        let clock = clock();
        let seen = look(clock, 7, |_| std::panic::panic_any(Spiteful));
        assert_eq!(seen, 7);
        sprag_manual_clock_close(clock);
    }
}

#[test]
fn a_handle_that_is_null_is_named() {
    // SAFETY: there is no handle.
    unsafe {
        let null = null::<sprag_manual_clock>();
        let failed = fails(|error| on(null, error, |_| Ok(SPRAG_OK)));
        assert_eq!(failed, at(SPRAG_ERROR_NULL, "clock"));
        assert_eq!(look(null, 7, |_| 8), 7);
        close::<sprag_manual_clock>(null_mut());
    }
}

#[test]
fn an_error_is_wanted_or_not() {
    let status = call(null_mut(), || Err(Failure::Null("here")));
    assert_eq!(status, SPRAG_ERROR_NULL);
}
