//! # Concurrency limiters
//!
//! A concurrency limiter lets at most so many at once be held of each key, shared by everyone who opens it in the
//! same space. What a key can have is a semaphore: open a handle on it with sprag_concurrency_key(), and acquire as
//! many as are to be used at once.

use crate::border::{close, give, on, opaque, wanted};
use crate::bytes::{bytes, copy, writable};
use crate::error::sprag_error;
use crate::limiter::SPRAG_UPDATE;
use crate::options::check_flags;
use crate::semaphore::sprag_semaphore;
use crate::space::sprag_space;
use crate::status::sprag_status::{self, SPRAG_NONE, SPRAG_OK};
use sprag::Concurrency;
use std::ffi::c_void;

opaque! {
    /// An open concurrency limiter. Every call on it is safe from any thread.
    sprag_concurrency, Concurrency<'static>, "concurrency"
}

/// Opens the concurrency limiter of this name, and creates it if there is none: of each key at most so many permits
/// are held at once, 1 to 16,777,215. With permits 0, opens the one that there is, whatever it allows: SPRAG_NONE
/// if there is none. flags: 0 or SPRAG_UPDATE. It stays for as long as the region does; a limiter of a rate, or a
/// semaphore, of the same name is another thing.
///
/// SPRAG_ERROR_DEFINITION_DIFFERS if it allows another number, without SPRAG_UPDATE; SPRAG_ERROR_FULL and
/// SPRAG_ERROR_SHARE_EXCEEDED where the region has no room for it. After an update nobody acquires by the old
/// number. Who holds some keeps them, also if there are more then than permits; who waits for more than that fails
/// with SPRAG_ERROR_ABOVE_CAPACITY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_concurrency_open(
    space: *const sprag_space,
    name: *const c_void,
    name_len: usize,
    permits: u32,
    flags: u32,
    concurrency: *mut *mut sprag_concurrency,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            wanted(concurrency, "concurrency")?;
            check_flags(flags, SPRAG_UPDATE)?;
            let name = bytes(name, name_len, "name")?;
            let opened = if permits == 0 {
                match space.find_concurrency(name)? {
                    Some(found) => found,
                    None => return Ok(SPRAG_NONE),
                }
            } else if flags & SPRAG_UPDATE == 0 {
                space.concurrency(name, permits)?
            } else {
                space.concurrency_updated(name, permits)?
            };
            give(concurrency, sprag_concurrency::give(opened.into_owned()));
            Ok(SPRAG_OK)
        })
    }
}

/// Closes the handle; NULL is none. The limiter stays in its space.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_concurrency_close(concurrency: *mut sprag_concurrency) {
    // SAFETY: by every function's contract.
    unsafe { close(concurrency) };
}

/// Opens a handle on what a key can have at once, to be acquired as a semaphore's permits are, and closed as one.
/// Its holds are leased for ttl_ns: 1 ms to 366 days; 0 for 30 s. Nothing is created before some are acquired.
/// Some hundred nanoseconds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_concurrency_key(
    concurrency: *const sprag_concurrency,
    key: *const c_void,
    key_len: usize,
    ttl_ns: u64,
    semaphore: *mut *mut sprag_semaphore,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(concurrency, error, |concurrency| {
            wanted(semaphore, "semaphore")?;
            let opened = concurrency.key(bytes(key, key_len, "key")?)?;
            give(semaphore, sprag_semaphore::leased(opened, ttl_ns)?);
            Ok(SPRAG_OK)
        })
    }
}

/// Writes how many each key can have at once now, whatever this handle was opened with. A few loads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_concurrency_permits(
    concurrency: *const sprag_concurrency,
    permits: *mut u32,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(concurrency, error, |concurrency| {
            wanted(permits, "permits")?;
            give(permits, concurrency.permits()?);
            Ok(SPRAG_OK)
        })
    }
}

/// Writes the name, as far as it fits, and its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_concurrency_name(
    concurrency: *const sprag_concurrency,
    name: *mut c_void,
    name_max: usize,
    name_len: *mut usize,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(concurrency, error, |concurrency| {
            writable(name, name_max, "name")?;
            copy(&concurrency.name(), name, name_max, name_len);
            Ok(SPRAG_OK)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::{sprag_hold, sprag_hold_release};
    use crate::semaphore::{
        sprag_semaphore_acquire, sprag_semaphore_close, sprag_semaphore_name,
        sprag_semaphore_permits,
    };
    use crate::status::sprag_status::{
        SPRAG_BUSY, SPRAG_ERROR_ABOVE_CAPACITY, SPRAG_ERROR_DEFINITION_DIFFERS, SPRAG_ERROR_NULL,
        SPRAG_ERROR_OUT_OF_RANGE,
    };
    use crate::testing::{Failed, Scene, at, fails, outcome, told, works};
    use std::mem::zeroed;
    use std::ptr::null_mut;

    /// Opens the scene's limiter, and what came of it.
    fn open(
        scene: &Scene,
        permits: u32,
        flags: u32,
    ) -> (Result<sprag_status, Failed>, *mut sprag_concurrency) {
        let (name, mut opened) = (b"uploads".as_ptr().cast(), null_mut());
        let to = &raw mut opened;
        // SAFETY: the space is open; the rest are variables of this function's.
        let status = outcome(|error| unsafe {
            sprag_concurrency_open(scene.space, name, 7, permits, flags, to, error)
        });
        (status, opened)
    }

    #[test]
    fn each_key_has_so_many_at_once() {
        let scene = Scene::new();
        let (opened, uploads) = open(&scene, 1, 0);
        assert_eq!(opened, Ok(SPRAG_OK));
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let key = |key: &str| {
                let (mut semaphore, key, len) = (null_mut(), key.as_ptr().cast(), key.len());
                let to = &raw mut semaphore;
                works(|error| sprag_concurrency_key(uploads, key, len, 0, to, error));
                semaphore
            };
            let (ann, bob) = (key("ann"), key("bob"));
            let (mut hers, mut his): (sprag_hold, sprag_hold) = (zeroed(), zeroed());
            let (hers, his) = (&raw mut hers, &raw mut his);
            works(|error| sprag_semaphore_acquire(ann, 1, 0, hers, error));
            let second = outcome(|error| sprag_semaphore_acquire(ann, 1, 0, his, error));
            assert_eq!(second, Ok(SPRAG_BUSY));
            works(|error| sprag_semaphore_acquire(bob, 1, 0, his, error));
            let above = fails(|error| sprag_semaphore_acquire(bob, 2, 0, his, error));
            assert_eq!(above, (SPRAG_ERROR_ABOVE_CAPACITY, None));
            let name =
                told(|name, max, len, error| sprag_semaphore_name(ann, name, max, len, error));
            assert_eq!(name, b"ann");
            works(|error| sprag_hold_release(hers, error));
            works(|error| sprag_hold_release(his, error));
            sprag_semaphore_close(ann);
            sprag_semaphore_close(bob);
            sprag_concurrency_close(uploads);
        }
    }

    #[test]
    fn it_is_found_and_updated() {
        let scene = Scene::new();
        let (none, nothing) = open(&scene, 0, 0);
        assert_eq!((none, nothing), (Ok(SPRAG_NONE), null_mut()));
        let (_, first) = open(&scene, 2, 0);
        let (differs, nothing) = open(&scene, 3, 0);
        let status = differs.map_err(|failed| failed.status);
        assert_eq!(
            (status, nothing),
            (Err(SPRAG_ERROR_DEFINITION_DIFFERS), null_mut())
        );
        let (updated, second) = open(&scene, 3, SPRAG_UPDATE);
        let (found, third) = open(&scene, 0, 0);
        assert_eq!((updated, found), (Ok(SPRAG_OK), Ok(SPRAG_OK)));
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let (mut permits, mut ann) = (0, null_mut());
            for uploads in [first, second, third] {
                works(|error| sprag_concurrency_permits(uploads, &raw mut permits, error));
                assert_eq!(permits, 3);
                let name = told(|name, max, len, error| {
                    sprag_concurrency_name(uploads, name, max, len, error)
                });
                assert_eq!(name, b"uploads");
            }
            let key = b"ann".as_ptr().cast();
            works(|error| sprag_concurrency_key(first, key, 3, 0, &raw mut ann, error));
            assert_eq!(sprag_semaphore_permits(ann), 3);
            sprag_semaphore_close(ann);
            for uploads in [first, second, third] {
                sprag_concurrency_close(uploads);
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let scene = Scene::new();
        let wrong = |permits, flags| open(&scene, permits, flags).0.unwrap_err();
        assert_eq!(wrong(1 << 24, 0).status, SPRAG_ERROR_OUT_OF_RANGE);
        assert_eq!(wrong(1, 2).argument.as_deref(), Some("flags"));
        let (_, uploads) = open(&scene, 1, 0);
        // SAFETY: as the contract asks: handles and variables of this test's own.
        unsafe {
            let mut ann = null_mut();
            let key = |key: &[u8], to, error| {
                sprag_concurrency_key(uploads, key.as_ptr().cast(), key.len(), 0, to, error)
            };
            let nameless = fails(|error| key(b"", &raw mut ann, error));
            assert_eq!(nameless, at(SPRAG_ERROR_OUT_OF_RANGE, "key"));
            let nowhere = fails(|error| key(b"ann", null_mut(), error));
            assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "semaphore"));
            let nowhere = fails(|error| sprag_concurrency_permits(uploads, null_mut(), error));
            assert_eq!(nowhere, at(SPRAG_ERROR_NULL, "permits"));
            assert!(ann.is_null());
            sprag_concurrency_close(uploads);
        }
    }
}
