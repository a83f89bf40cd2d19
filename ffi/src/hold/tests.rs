use super::*;
use crate::lock::{
    sprag_lock, sprag_lock_acquire, sprag_lock_close, sprag_lock_open, sprag_lock_release_token,
};
use crate::status::sprag_status::{SPRAG_ERROR_EMPTY, SPRAG_ERROR_LOST};
use crate::testing::{Scene, outcome, works};
use std::mem::zeroed;
use std::ptr::null_mut;

#[test]
fn a_hold_is_used_up_by_what_ends_it_and_may_be_moved_before() {
    let scene = Scene::new();
    let mut lock: *mut sprag_lock = null_mut();
    // SAFETY: as the contract asks: handles and variables of this test's own.
    unsafe {
        works(|error| {
            sprag_lock_open(
                scene.space,
                c"a".as_ptr().cast(),
                1,
                0,
                &raw mut lock,
                error,
            )
        });
        let (mut first, mut second): (sprag_hold, sprag_hold) = (zeroed(), zeroed());
        assert!(
            !sprag_hold_is_valid(&raw const first),
            "zero bytes are empty"
        );
        works(|error| sprag_lock_acquire(lock, 0, &raw mut first, error));
        let token = first.token;
        (&raw mut second).copy_from_nonoverlapping(&raw const first, 1);
        works(|error| sprag_hold_release(&raw mut second, error));
        assert_eq!(second.token, 0);
        let again = outcome(|error| sprag_hold_release(&raw mut second, error)).unwrap_err();
        assert_eq!(again.status, SPRAG_ERROR_EMPTY);
        assert_eq!(again.argument.as_deref(), Some("hold"));

        works(|error| sprag_lock_acquire(lock, 0, &raw mut first, error));
        assert_eq!(first.token, token + 1);
        let mut detached = 0;
        works(|error| sprag_hold_detach(&raw mut first, &raw mut detached, error));
        assert_eq!((first.token, detached), (0, token + 1));
        let renewed = outcome(|error| sprag_hold_renew(&raw mut first, error)).unwrap_err();
        assert_eq!(renewed.status, SPRAG_ERROR_EMPTY);
        works(|error| sprag_lock_release_token(lock, detached, error));
        let lost = outcome(|error| sprag_lock_release_token(lock, detached, error)).unwrap_err();
        assert_eq!(lost.status, SPRAG_ERROR_LOST);
        sprag_lock_close(lock);
    }
}
