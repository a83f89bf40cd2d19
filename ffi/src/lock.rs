//! # Locks
//!
//! A lock has one holder, or several that share it. Whoever waits is served in the order of coming. A hold has a
//! token, which rises with every grant, and a lease: not renewed in time, it is over, whatever its holder does.
//!
//! A sprag_lock is one of four, by the call that opened it: the lock of a name; several names, acquired all at
//! once or not at all; a partition, whose lock excludes the locks of all names in it; or the table, whose lock
//! excludes all.
//!
//! Not re-entrant: a second acquire waits for the first hold, unless both are for the same owner.

use crate::border::{Failure, Opaque, Outcome, close, give, on, opaque, wanted};
use crate::bytes::{bytes, sprag_bytes, values};
use crate::duration::lease;
use crate::error::sprag_error;
use crate::hold::{Other, sprag_hold};
use crate::options::{Options, check_reserved, read};
use crate::owner::sprag_owner;
use crate::space::sprag_space;
use crate::status::sprag_status::{self, SPRAG_BUSY, SPRAG_NONE, SPRAG_OK};
use sprag::{CoarseLock, Hold, Lock, Locks, Owner};
use std::ffi::c_void;
use std::time::Duration;

/// What a handle is on.
pub enum Kind {
    /// The lock of a name.
    Name(Lock<'static>),
    /// Several of those.
    Several(Locks<'static>),
    /// A partition, or the table.
    Coarse(CoarseLock<'static>),
}

opaque! {
    /// A handle on a lock. Every call on it is safe from any thread. Nothing is created before it is acquired.
    sprag_lock, Kind, "lock"
}

/// Opens a handle on the lock of a name. Its holds are leased for ttl_ns: 1 ms to 366 days; 0 for 30 s.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_lock_open(
    space: *const sprag_space,
    name: *const c_void,
    name_len: usize,
    ttl_ns: u64,
    lock: *mut *mut sprag_lock,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            wanted(lock, "lock")?;
            let mut opened = space.lock(bytes(name, name_len, "name")?)?.into_owned();
            if let Some(ttl) = lease(ttl_ns) {
                opened = opened.ttl(ttl)?;
            }
            give(lock, sprag_lock::give(Kind::Name(opened)));
            Ok(SPRAG_OK)
        })
    }
}

/// Opens a handle on the locks of 1 to 64 names, which are acquired all at once or not at all, in whatever order
/// they are named; one named twice is one lock. ttl_ns as for sprag_lock_open().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_lock_open_several(
    space: *const sprag_space,
    names: *const sprag_bytes,
    count: usize,
    ttl_ns: u64,
    lock: *mut *mut sprag_lock,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            wanted(lock, "lock")?;
            let names = values(names, count, "names")?.iter();
            let names = names.map(|name| bytes(name.data, name.len, "name"));
            let names = names.collect::<Result<Vec<_>, _>>()?;
            let mut opened = space.locks(names)?.into_owned();
            if let Some(ttl) = lease(ttl_ns) {
                opened = opened.ttl(ttl)?;
            }
            give(lock, sprag_lock::give(Kind::Several(opened)));
            Ok(SPRAG_OK)
        })
    }
}

/// Opens a handle on the lock of a partition, from 0, of sprag_space_partitions(). ttl_ns as for
/// sprag_lock_open(). To acquire it looks at every lock beneath, some 10 us: for what is done seldom.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_lock_open_partition(
    space: *const sprag_space,
    partition: u32,
    ttl_ns: u64,
    lock: *mut *mut sprag_lock,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            wanted(lock, "lock")?;
            let opened = coarse(space.partition(partition)?, ttl_ns)?;
            give(lock, sprag_lock::give(opened));
            Ok(SPRAG_OK)
        })
    }
}

/// Opens a handle on the lock of the table: it excludes all locks of names and of partitions. ttl_ns as for
/// sprag_lock_open().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_lock_open_table(
    space: *const sprag_space,
    ttl_ns: u64,
    lock: *mut *mut sprag_lock,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            wanted(lock, "lock")?;
            let opened = coarse(space.table()?, ttl_ns)?;
            give(lock, sprag_lock::give(opened));
            Ok(SPRAG_OK)
        })
    }
}

fn coarse(opened: CoarseLock<'_>, ttl_ns: u64) -> Result<Kind, Failure> {
    let opened = opened.into_owned();
    Ok(Kind::Coarse(match lease(ttl_ns) {
        Some(ttl) => opened.ttl(ttl)?,
        None => opened,
    }))
}

/// Closes the handle; NULL is none. Its holds go on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_lock_close(lock: *mut sprag_lock) {
    // SAFETY: by every function's contract.
    unsafe { close(lock) };
}

/// Acquires the lock alone, waiting its turn for at most timeout_ns: 0 to try, SPRAG_FOREVER without an end.
/// SPRAG_OK, and the hold is written; or SPRAG_BUSY, and it is not, and nothing is left behind. Tens of
/// nanoseconds where the lock is free; the table's and a partition's looks at all locks beneath.
///
/// SPRAG_ERROR_FULL and SPRAG_ERROR_SHARE_EXCEEDED where the region has no room for another lock, or for another
/// waiter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_lock_acquire(
    lock: *const sprag_lock,
    timeout_ns: u64,
    hold: *mut sprag_hold,
    error: *mut *mut sprag_error,
) -> sprag_status {
    let timeout = Duration::from_nanos(timeout_ns);
    // SAFETY: by every function's contract.
    unsafe {
        on(lock, error, |lock| {
            wanted(hold, "hold")?;
            match lock {
                Kind::Name(lock) if timeout_ns == 0 => Ok(one(hold, lock.try_acquire()?)),
                Kind::Name(lock) => Ok(one(hold, lock.acquire_timeout(timeout)?)),
                Kind::Coarse(lock) if timeout_ns == 0 => Ok(one(hold, lock.try_acquire()?)),
                Kind::Coarse(lock) => Ok(one(hold, lock.acquire_timeout(timeout)?)),
                Kind::Several(lock) => several(hold, lock, timeout_ns),
            }
        })
    }
}

/// Writes a hold if there is one.
///
/// # Safety
///
/// `to` may be written.
#[inline(always)]
pub(crate) unsafe fn one(to: *mut sprag_hold, held: Option<Hold<'static>>) -> sprag_status {
    match held {
        Some(held) => {
            // SAFETY: by this function's contract.
            unsafe { sprag_hold::fill(to, held) };
            SPRAG_OK
        }
        None => SPRAG_BUSY,
    }
}

/// Writes a hold of another kind if there is one.
///
/// # Safety
///
/// `to` may be written.
unsafe fn other<H>(
    to: *mut sprag_hold,
    held: Option<H>,
    kind: impl FnOnce(H) -> Other,
) -> sprag_status {
    match held {
        Some(held) => {
            // SAFETY: by this function's contract.
            unsafe { sprag_hold::fill_other(to, kind(held)) };
            SPRAG_OK
        }
        None => SPRAG_BUSY,
    }
}

/// Acquires several.
///
/// # Safety
///
/// `to` may be written.
unsafe fn several(to: *mut sprag_hold, locks: &Locks<'static>, timeout_ns: u64) -> Outcome {
    let held = if timeout_ns == 0 {
        locks.try_acquire()?
    } else {
        locks.acquire_timeout(Duration::from_nanos(timeout_ns))?
    };
    // SAFETY: by this function's contract.
    Ok(unsafe { other(to, held, Other::Several) })
}

/// Alone: nobody else has the lock meanwhile.
pub const SPRAG_EXCLUSIVE: u32 = 0;
/// Beside others who share it.
pub const SPRAG_SHARED: u32 = 1;

/// How a lock is acquired. Begins with its size; what is zero has its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sprag_acquire_options {
    /// sizeof(sprag_acquire_options).
    pub size: usize,
    /// How long to wait at most; 0 to try, SPRAG_FOREVER without an end.
    pub timeout_ns: u64,
    /// For whom; NULL for nobody but the hold itself. Of the lock's space, and need not stay open.
    pub owner: *const sprag_owner,
    /// SPRAG_EXCLUSIVE or SPRAG_SHARED; the latter only of the lock of a name.
    pub mode: u32,
    /// Zero.
    pub reserved: u32,
}

// SAFETY: as the trait asks: `repr(C)`, its size first, and numbers and a pointer, for which any bytes will do.
unsafe impl Options for sprag_acquire_options {
    const BYTES_MIN: usize = 32;
}

/// sprag_lock_acquire() with options: shared, or for an owner.
///
/// SPRAG_ERROR_DEADLOCK, SPRAG_ERROR_OWNER_SHARES and SPRAG_ERROR_TOO_DEEP for an owner; SPRAG_ERROR_OTHER_SPACE or
/// SPRAG_ERROR_UNSUPPORTED for one of another space. A few hundred nanoseconds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_lock_acquire_with(
    lock: *const sprag_lock,
    options: *const sprag_acquire_options,
    hold: *mut sprag_hold,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(lock, error, |lock| {
            wanted(hold, "hold")?;
            let options = read(options)?;
            check_reserved(options.reserved)?;
            let is_shared = match options.mode {
                SPRAG_EXCLUSIVE => false,
                SPRAG_SHARED => true,
                other => {
                    return Err(Failure::Bounds {
                        argument: "options.mode",
                        value: other.into(),
                        min: SPRAG_EXCLUSIVE.into(),
                        max: SPRAG_SHARED.into(),
                    });
                }
            };
            if is_shared && !matches!(lock, Kind::Name(_)) {
                return Err(Failure::Unsupported(
                    "several locks, a partition and the table can only be held alone; share the lock of a name",
                ));
            }
            let timeout = Duration::from_nanos(options.timeout_ns);
            match (lock, options.owner.as_ref()) {
                (Kind::Name(lock), None) if is_shared && options.timeout_ns == 0 => {
                    Ok(one(hold, lock.try_acquire_shared()?))
                }
                (Kind::Name(lock), None) if is_shared => {
                    Ok(one(hold, lock.acquire_shared_timeout(timeout)?))
                }
                (Kind::Name(lock), None) => Ok(one(hold, lock.acquire_timeout(timeout)?)),
                (Kind::Coarse(lock), None) => Ok(one(hold, lock.acquire_timeout(timeout)?)),
                (Kind::Several(lock), None) => several(hold, lock, options.timeout_ns),
                (lock, Some(owner)) => {
                    acquire_for(hold, lock, owner.handle().get()?, is_shared, timeout)
                }
            }
        })
    }
}

/// Acquires for an owner.
///
/// # Safety
///
/// `to` may be written.
unsafe fn acquire_for(
    to: *mut sprag_hold,
    lock: &Kind,
    owner: &Owner,
    is_shared: bool,
    timeout: Duration,
) -> Outcome {
    // SAFETY: by this function's contract.
    Ok(unsafe {
        match lock {
            Kind::Name(lock) => {
                let lock = owner.lock_of(lock)?;
                let held = if is_shared {
                    lock.acquire_shared_timeout(timeout)?
                } else {
                    lock.acquire_timeout(timeout)?
                };
                other(to, held, |held| Other::Owner(held.into_owned()))
            }
            Kind::Coarse(lock) => other(to, lock.acquire_for(owner, timeout)?, Other::Coarse),
            Kind::Several(lock) => {
                other(to, lock.acquire_for(owner, timeout)?, Other::OwnerSeveral)
            }
        }
    })
}

const NOT_OF_SEVERAL: Failure = Failure::Unsupported(
    "several locks cannot be told by one token; open a handle on each for that",
);

/// Ends the hold with this token, whoever took it: the other half of sprag_hold_detach(). SPRAG_ERROR_LOST if the
/// lock is not held under it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_lock_release_token(
    lock: *const sprag_lock,
    token: u64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(lock, error, |lock| {
            match lock {
                Kind::Name(lock) => lock.release_token(token)?,
                Kind::Coarse(lock) => lock.release_token(token)?,
                Kind::Several(_) => return Err(NOT_OF_SEVERAL),
            }
            Ok(SPRAG_OK)
        })
    }
}

/// Sets the lease of the hold with this token to the handle's, from now. SPRAG_ERROR_LOST if the lock is not held
/// under it, or its lease is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_lock_renew_token(
    lock: *const sprag_lock,
    token: u64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(lock, error, |lock| {
            match lock {
                Kind::Name(lock) => lock.renew_token(token)?,
                Kind::Coarse(lock) => lock.renew_token(token)?,
                Kind::Several(_) => return Err(NOT_OF_SEVERAL),
            }
            Ok(SPRAG_OK)
        })
    }
}

/// Takes over the hold with this token from whoever has it, with the handle's lease: how a hold goes from one
/// process to another. SPRAG_ERROR_LOST if the lock is not held under it, or its lease is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_lock_adopt_token(
    lock: *const sprag_lock,
    token: u64,
    hold: *mut sprag_hold,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(lock, error, |lock| {
            wanted(hold, "hold")?;
            let adopted = match lock {
                Kind::Name(lock) => lock.adopt_token(token)?,
                Kind::Coarse(lock) => lock.adopt_token(token)?,
                Kind::Several(_) => return Err(NOT_OF_SEVERAL),
            };
            Ok(one(hold, Some(adopted)))
        })
    }
}

/// Takes the lock away from whoever holds it, and notes who did it. SPRAG_OK, and the token that was ended is
/// written to token, if that is not NULL; SPRAG_NONE if it was not held. What the holder still writes, a fence
/// rejects.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_lock_break(
    lock: *const sprag_lock,
    token: *mut u64,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(lock, error, |lock| {
            let broken = match lock {
                Kind::Name(lock) => lock.break_hold()?,
                Kind::Coarse(lock) => lock.break_hold()?,
                Kind::Several(_) => return Err(NOT_OF_SEVERAL),
            };
            let Some(broken) = broken else {
                return Ok(SPRAG_NONE);
            };
            give(token, broken);
            Ok(SPRAG_OK)
        })
    }
}
