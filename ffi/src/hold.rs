//! # Holds
//!
//! A sprag_hold is what was acquired, of a lock or of a semaphore (whose sections follow): a value in the caller's
//! own memory, filled in by an acquire. It may be moved, as by memcpy or realloc, but only one copy of it may go
//! on being used. It ends by sprag_hold_release() or sprag_hold_detach(), which leave it empty; one that is
//! forgotten, or written over by another acquire, ends with its lease, and keeps its space's session for as long as
//! the process runs. A hold of zero bytes is empty.
//!
//! A hold can end before it is released: when its lease ends, or somebody breaks the lock. Ask
//! sprag_hold_is_valid() before each step that needs the lock, and send the token along to a fence, which is the
//! only thing that stops a step already under way.
//!
//! A hold is for one thread at a time.

use crate::border::{Failure, Outcome, call, forget_payload, give, guarded, wanted};
use crate::duration::nanoseconds;
use crate::error::sprag_error;
use crate::status::sprag_status::{self, SPRAG_BUSY, SPRAG_OK};
use sprag::{Hold, HoldAll, HoldOf, OwnerHold};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// A hold. All of its fields but the token are the library's own.
#[repr(C)]
pub struct sprag_hold {
    /// The fencing token: higher than that of every earlier hold of the lock, and below 2^53. 0 if the hold is
    /// empty.
    pub token: u64,
    /// The library's own.
    pub private_state: u64,
    /// The library's own.
    pub private_words: [MaybeUninit<u64>; 18],
}

/// What tells a hold that was filled in from memory that was not, or is empty: its words are a [`Hold`].
const PLAIN: u64 = 0x686f_6c64_2070_6c61;
/// The same: its words are a box of [`Other`].
const OTHER: u64 = 0x686f_6c64_206f_7468;
/// The same: a call on it panicked.
const POISONED: u64 = 0x686f_6c64_2070_6f69;

const _: () = {
    assert!(size_of::<Hold<'static>>() <= 18 * size_of::<u64>());
    assert!(align_of::<Hold<'static>>() <= align_of::<sprag_hold>());
};

/// A hold of another kind than most.
pub(crate) enum Other {
    /// An owner's of a lock.
    Owner(OwnerHold<'static>),
    /// An owner's of a partition or the table.
    Coarse(HoldOf<Hold<'static>>),
    /// Of several locks.
    Several(HoldAll<'static>),
    /// An owner's of several locks.
    OwnerSeveral(HoldOf<HoldAll<'static>>),
}

/// Where what a hold is lies: in its words, or in a box.
#[derive(Clone, Copy)]
enum Held {
    One(*mut Hold<'static>),
    Other(*mut Other),
}

/// A hold that is changed.
pub(crate) enum Changed<'h> {
    One(&'h mut Hold<'static>),
    Owner(&'h mut OwnerHold<'static>),
    Several(&'h mut HoldAll<'static>),
}

/// A hold that is looked at.
enum Seen<'h> {
    One(&'h Hold<'static>),
    Owner(&'h OwnerHold<'static>),
    Several(&'h HoldAll<'static>),
}

impl Held {
    /// The hold, to change it.
    ///
    /// # Safety
    ///
    /// It is there for `'h`, and nothing else touches it.
    #[inline(always)]
    unsafe fn change<'h>(self) -> Changed<'h> {
        match self {
            // SAFETY: by this function's contract.
            Self::One(hold) => Changed::One(unsafe { &mut *hold }),
            // SAFETY: by this function's contract.
            Self::Other(other) => match unsafe { &mut *other } {
                Other::Owner(hold) => Changed::Owner(hold),
                Other::Coarse(hold) => Changed::One(hold),
                Other::Several(hold) => Changed::Several(hold),
                Other::OwnerSeveral(hold) => Changed::Several(hold),
            },
        }
    }

    /// The hold, to look at it.
    ///
    /// # Safety
    ///
    /// It is there for `'h`, and nothing changes it.
    #[inline(always)]
    unsafe fn see<'h>(self) -> Seen<'h> {
        match self {
            // SAFETY: by this function's contract.
            Self::One(hold) => Seen::One(unsafe { &*hold }),
            // SAFETY: by this function's contract.
            Self::Other(other) => match unsafe { &*other } {
                Other::Owner(hold) => Seen::Owner(hold),
                Other::Coarse(hold) => Seen::One(hold),
                Other::Several(hold) => Seen::Several(hold),
                Other::OwnerSeveral(hold) => Seen::Several(hold),
            },
        }
    }
}

/// The highest token of several: that of the lock that leads.
pub(crate) fn leading(hold: &HoldAll<'static>) -> u64 {
    hold.tokens().iter().copied().max().unwrap_or(0)
}

const NOT_OF_SEVERAL: Failure = Failure::Unsupported(
    "a hold of several locks cannot be upgraded, downgraded or detached; release it, and acquire each by itself",
);
const NOT_OF_OWNERS: Failure = Failure::Unsupported(
    "a hold of an owner's cannot be detached; acquire the lock without the owner for that",
);

impl sprag_hold {
    /// Fills in the hold at `to`.
    ///
    /// # Safety
    ///
    /// `to` may be written.
    #[inline(always)]
    pub(crate) unsafe fn fill(to: *mut Self, hold: Hold<'static>) {
        // SAFETY: it may be written, and has room enough and the alignment, as asserted above.
        unsafe {
            (&raw mut (*to).token).write(hold.token());
            (&raw mut (*to).private_state).write(PLAIN);
            Self::words(to).cast::<Hold<'static>>().write(hold);
        }
    }

    /// The same for another kind.
    ///
    /// # Safety
    ///
    /// `to` may be written.
    pub(crate) unsafe fn fill_other(to: *mut Self, other: Other) {
        let token = match &other {
            Other::Owner(hold) => hold.token(),
            Other::Coarse(hold) => hold.token(),
            Other::Several(hold) => leading(hold),
            Other::OwnerSeveral(hold) => leading(hold),
        };
        let other = Box::new(other);
        // SAFETY: as above.
        unsafe {
            (&raw mut (*to).token).write(token);
            (&raw mut (*to).private_state).write(OTHER);
            Self::words(to)
                .cast::<*mut Other>()
                .write(Box::into_raw(other));
        }
    }

    /// Where the words begin.
    ///
    /// # Safety
    ///
    /// `at` points at memory of a hold's size.
    #[inline(always)]
    unsafe fn words(at: *mut Self) -> *mut c_void {
        // SAFETY: by this function's contract.
        unsafe { (&raw mut (*at).private_words).cast() }
    }

    /// Leaves nothing at `at`.
    ///
    /// # Safety
    ///
    /// `at` may be written, and what was there is somebody's.
    #[inline(always)]
    unsafe fn empty(at: *mut Self) {
        // SAFETY: by this function's contract.
        unsafe {
            (*at).private_state = 0;
            (*at).token = 0;
        }
    }

    /// What the hold at `at` is.
    ///
    /// # Safety
    ///
    /// `at` is NULL, or a hold that may be read, with a state of the above only if this library wrote it; and what
    /// is given here is used before anything else touches it, to look only if others look.
    #[inline(always)]
    unsafe fn held(at: *mut Self) -> Result<Held, Failure> {
        if at.is_null() {
            return Err(Failure::Null("hold"));
        }
        // SAFETY: by this function's contract.
        let (state, words) = unsafe { ((*at).private_state, Self::words(at)) };
        match state {
            PLAIN => Ok(Held::One(words.cast())),
            // SAFETY: the state says what was written there.
            OTHER => Ok(Held::Other(unsafe { words.cast::<*mut Other>().read() })),
            POISONED => Err(Failure::Poisoned),
            _ => Err(Failure::Empty("hold")),
        }
    }

    /// A call on the hold at `at`, which may change it; it is poisoned if it panics.
    ///
    /// # Safety
    ///
    /// As for [`held`](Self::held), and it may be written.
    pub(crate) unsafe fn on(
        at: *mut Self,
        error: *mut *mut sprag_error,
        act: impl FnOnce(Changed<'_>) -> Outcome,
    ) -> sprag_status {
        guarded(
            error,
            // SAFETY: by this function's contract: it is this call's alone.
            || act(unsafe { Self::held(at)?.change() }),
            || {
                // SAFETY: by this function's contract; NULL does not panic.
                unsafe { (*at).private_state = POISONED }
            },
        )
    }

    /// What `of` tells of the hold at `at`; `otherwise` if it is empty.
    ///
    /// # Safety
    ///
    /// As for [`held`](Self::held).
    #[inline(always)]
    unsafe fn tell<T: Copy>(at: *const Self, otherwise: T, of: impl FnOnce(Seen<'_>) -> T) -> T {
        let told = || {
            // SAFETY: by this function's contract; `of` only looks.
            unsafe { Self::held(at.cast_mut()).map(|held| of(held.see())) }
        };
        match catch_unwind(AssertUnwindSafe(told)) {
            Ok(Ok(told)) => told,
            Ok(Err(_)) => otherwise,
            Err(payload) => {
                forget_payload(payload);
                otherwise
            }
        }
    }
}

/// Releases what is held, and leaves the hold empty, also where that fails: SPRAG_ERROR_LOST if somebody else has
/// taken it since. One whose lease is over is released all the same while nobody has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_hold_release(
    hold: *mut sprag_hold,
    error: *mut *mut sprag_error,
) -> sprag_status {
    call(error, || {
        // SAFETY: by every function's contract: it is this call's alone, here and below.
        let held = unsafe { sprag_hold::held(hold)? };
        // SAFETY: as above. From here on it is empty, whatever comes of it.
        unsafe { sprag_hold::empty(hold) };
        match held {
            Held::One(one) => {
                // SAFETY: as above, and as it is empty, this is the last that is done with it. In place, since
                // what is copied would wait for the acquire's writes.
                let ended = unsafe {
                    let ended = (*one).end();
                    one.drop_in_place();
                    ended
                };
                ended?;
            }
            // SAFETY: as above; it came from a box.
            Held::Other(other) => match *unsafe { Box::from_raw(other) } {
                Other::Owner(hold) => hold.release()?,
                Other::Coarse(hold) => hold.into_inner().release()?,
                Other::Several(hold) => hold.release()?,
                Other::OwnerSeveral(hold) => hold.into_inner().release()?,
            },
        }
        Ok(SPRAG_OK)
    })
}

/// Whether the lease still runs, by this process's own clock: a clock reading, no shared memory. Errs towards false
/// near the end; false for an empty one.
///
/// Async-signal-safe, as no other call on a hold is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_hold_is_valid(hold: *const sprag_hold) -> bool {
    // SAFETY: by every function's contract.
    unsafe {
        sprag_hold::tell(hold, false, |held| match held {
            Seen::One(hold) => hold.is_valid(),
            Seen::Owner(hold) => hold.is_valid(),
            Seen::Several(hold) => hold.is_valid(),
        })
    }
}

/// Whether it is still held under its token, by the shared word: one load more, and also notices a broken lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_hold_is_held(hold: *const sprag_hold) -> bool {
    // SAFETY: by every function's contract.
    unsafe {
        sprag_hold::tell(hold, false, |held| match held {
            Seen::One(hold) => hold.is_held(),
            Seen::Owner(hold) => hold.is_held(),
            Seen::Several(hold) => hold.is_held(),
        })
    }
}

/// Whether others may hold the lock beside this one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_hold_is_shared(hold: *const sprag_hold) -> bool {
    // SAFETY: by every function's contract.
    unsafe {
        sprag_hold::tell(hold, false, |held| match held {
            Seen::One(hold) => hold.is_shared(),
            Seen::Owner(hold) => hold.is_shared(),
            Seen::Several(_) => false,
        })
    }
}

/// What is left of the lease in nanoseconds, by this process's own clock; 0 once it is over, and for an empty hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_hold_lease_left_ns(hold: *const sprag_hold) -> u64 {
    // SAFETY: by every function's contract.
    let left = unsafe {
        sprag_hold::tell(hold, Duration::ZERO, |held| match held {
            Seen::One(hold) => hold.lease_left(),
            Seen::Owner(hold) => hold.lease_left(),
            Seen::Several(hold) => hold.lease_left(),
        })
    };
    nanoseconds(left)
}

/// Writes the tokens of a hold of several locks, in the order in which those were named, into the array of
/// tokens_max elements, as far as they fit, and how many there are, to count. A hold of one lock has one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_hold_tokens(
    hold: *const sprag_hold,
    tokens: *mut u64,
    tokens_max: usize,
    count: *mut usize,
    error: *mut *mut sprag_error,
) -> sprag_status {
    call(error, || {
        if tokens_max > 0 {
            wanted(tokens, "tokens")?;
        }
        let write = |all: &[u64]| {
            for (at, token) in all.iter().take(tokens_max).enumerate() {
                // SAFETY: by every function's contract: there is room for `tokens_max`.
                unsafe { tokens.add(at).write(*token) };
            }
            // SAFETY: by every function's contract.
            unsafe { give(count, all.len()) };
        };
        // SAFETY: by every function's contract; here it is only looked at.
        unsafe {
            match sprag_hold::held(hold.cast_mut())?.see() {
                Seen::One(hold) => write(&[hold.token()]),
                Seen::Owner(hold) => write(&[hold.token()]),
                Seen::Several(hold) => write(hold.tokens()),
            }
        }
        Ok(SPRAG_OK)
    })
}

/// Starts the lease anew, from now, with the length it had. SPRAG_ERROR_LOST once it is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_hold_renew(
    hold: *mut sprag_hold,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        sprag_hold::on(hold, error, |held| {
            match held {
                Changed::One(hold) => hold.renew()?,
                Changed::Owner(hold) => hold.renew()?,
                Changed::Several(hold) => hold.renew()?,
            }
            Ok(SPRAG_OK)
        })
    }
}

/// sprag_hold_renew() with another length: 1 ms to 366 days.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_hold_extend(
    hold: *mut sprag_hold,
    ttl_ns: u64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    let ttl = Duration::from_nanos(ttl_ns);
    // SAFETY: by every function's contract.
    unsafe {
        sprag_hold::on(hold, error, |held| {
            match held {
                Changed::One(hold) => hold.extend(ttl)?,
                Changed::Owner(hold) => hold.extend(ttl)?,
                Changed::Several(hold) => hold.extend(ttl)?,
            }
            Ok(SPRAG_OK)
        })
    }
}

/// Takes alone what this hold shares with others, waiting for them to release it for at most timeout_ns: SPRAG_OK,
/// or SPRAG_BUSY if others share it still, as this hold does. It has a new, higher token then, and its lease
/// starts anew.
///
/// SPRAG_ERROR_UPGRADE_CONFLICT if another who shares it waits for the same: release this one, and acquire anew.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_hold_upgrade(
    hold: *mut sprag_hold,
    timeout_ns: u64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    let timeout = Duration::from_nanos(timeout_ns);
    // SAFETY: by every function's contract.
    unsafe {
        sprag_hold::on(hold, error, |held| {
            let (is_alone, token) = match held {
                Changed::One(one) if timeout_ns == 0 => (one.try_upgrade()?, one.token()),
                Changed::One(one) => (one.upgrade_timeout(timeout)?, one.token()),
                Changed::Owner(one) if timeout_ns == 0 => (one.try_upgrade()?, one.token()),
                Changed::Owner(one) => (one.upgrade_timeout(timeout)?, one.token()),
                Changed::Several(_) => return Err(NOT_OF_SEVERAL),
            };
            (*hold).token = token;
            Ok(if is_alone { SPRAG_OK } else { SPRAG_BUSY })
        })
    }
}

/// Goes on sharing the lock with others instead of having it alone, with the same token and what is left of the
/// lease.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_hold_downgrade(
    hold: *mut sprag_hold,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        sprag_hold::on(hold, error, |held| {
            match held {
                Changed::One(hold) => hold.downgrade()?,
                Changed::Owner(hold) => hold.downgrade()?,
                Changed::Several(_) => return Err(NOT_OF_SEVERAL),
            }
            Ok(SPRAG_OK)
        })
    }
}

/// Lets what is held live on without this process, until its lease ends or somebody releases it by its token,
/// which is written to token; the lease starts anew. The hold is left empty, also where that fails:
/// SPRAG_ERROR_LOST once it is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_hold_detach(
    hold: *mut sprag_hold,
    token: *mut u64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    call(error, || {
        wanted(token, "token")?;
        // SAFETY: by every function's contract: it is this call's alone, here and below.
        let held = unsafe { sprag_hold::held(hold)? };
        // SAFETY: as above.
        match unsafe { held.see() } {
            Seen::One(_) => {}
            Seen::Owner(_) => return Err(NOT_OF_OWNERS),
            Seen::Several(_) => return Err(NOT_OF_SEVERAL),
        }
        // SAFETY: as above. From here on it is empty, whatever comes of it.
        unsafe { sprag_hold::empty(hold) };
        let one = match held {
            // SAFETY: as above, and as it is empty, nobody reads it again.
            Held::One(one) => unsafe { one.read() },
            // SAFETY: as above; it came from a box.
            Held::Other(other) => match *unsafe { Box::from_raw(other) } {
                Other::Coarse(hold) => hold.into_inner(),
                Other::Owner(_) | Other::Several(_) | Other::OwnerSeveral(_) => {
                    return Err(NOT_OF_OWNERS);
                }
            },
        };
        let detached = one.detach()?;
        // SAFETY: by every function's contract.
        unsafe { give(token, detached) };
        Ok(SPRAG_OK)
    })
}

#[cfg(test)]
mod tests;
