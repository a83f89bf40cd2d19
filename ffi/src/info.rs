//! # What an inspection tells
//!
//! A visitor is called with a pointer to one of the structs below, once for each thing that there is, and returns
//! whether it wants more. What it was given, and all that this points at, lives until it returns. It may call
//! anything of this library, but must not close the handle that is inspected, nor leave in another way than by
//! returning.
//!
//! Each struct begins with its size as the library knows it: a newer one may append fields, and a program that was
//! written for those must ask whether the size reaches them.

use crate::bytes::sprag_bytes;
use crate::duration::{SPRAG_UNKNOWN, nanoseconds};
use crate::error::text;
use crate::status::sprag_status::{
    self, SPRAG_DONE, SPRAG_IN_PROGRESS, SPRAG_NONE, SPRAG_UNFINISHED,
};
use sprag::{
    BreakRecord, ConcurrencyInfo, CounterInfo, HoldInfo, JointLimiterInfo, LimiterInfo, LockInfo,
    OnceInfo, OnceStatus, OverrideInfo, SemaphoreInfo,
};
use std::ffi::{CString, c_char};
use std::time::Duration;

/// One hold of a lock or a semaphore.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sprag_hold_info {
    /// sizeof(sprag_hold_info).
    pub size: usize,
    /// Its token.
    pub token: u64,
    /// What is left of the lease in nanoseconds; 0 once it is over.
    pub lease_left_ns: u64,
    /// How long it has been held, in nanoseconds; SPRAG_UNKNOWN if not known.
    pub held_for_ns: u64,
    /// The holder's process id in its own namespace, also of one that died; 0 if detached, or not known any more.
    pub pid: u32,
    /// How many of a semaphore's permits it has; 1 of a lock.
    pub permits: u32,
    /// Whether it holds, and not merely by an expired lease or by a process that died.
    pub is_live: bool,
    /// Whether it belongs to no process: somebody holds it by its token.
    pub is_detached: bool,
    /// Zero.
    pub reserved: [u8; 6],
}

impl sprag_hold_info {
    fn new(info: &HoldInfo) -> Self {
        Self {
            size: size_of::<Self>(),
            token: info.token,
            lease_left_ns: nanoseconds(info.lease_left),
            held_for_ns: info.held_for.map_or(SPRAG_UNKNOWN, nanoseconds),
            pid: info.pid.unwrap_or(0),
            permits: info.permits,
            is_live: info.is_live,
            is_detached: info.is_detached,
            reserved: [0; 6],
        }
    }
}

/// Structs of the library's own, and an array of pointers to them, which stays one however the structs grow.
struct Listed<T> {
    pointers: Vec<*const T>,
    /// What those point at; it is not touched any more.
    _all: Vec<T>,
}

impl<T> Listed<T> {
    fn new(all: impl Iterator<Item = T>) -> Self {
        let all: Vec<T> = all.collect();
        Self {
            pointers: all.iter().map(std::ptr::from_ref).collect(),
            _all: all,
        }
    }
}

/// A lock of a name, a partition or the table.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sprag_lock_info {
    /// sizeof(sprag_lock_info).
    pub size: usize,
    /// The lock's name; of coarse ones "partition 3" and "the table".
    pub name: sprag_bytes,
    /// The token of the holder, or of the last one; of a lock that nobody held yet, the one below its first.
    pub token: u64,
    /// What is left of the lease in nanoseconds; 0 if not held, or once it is over.
    pub lease_left_ns: u64,
    /// How long it has been held, in nanoseconds; SPRAG_UNKNOWN if not held or not known.
    pub held_for_ns: u64,
    /// The holder's process id in its own namespace, also of one that died; 0 if not held, detached, or not known
    /// any more. This and what is said above of the holder is said of the one whose lease lasts longest.
    pub holder_pid: u32,
    /// How many hold it, and not merely by an expired lease or by a process that died: one at most, unless it is
    /// shared.
    pub holders: u32,
    /// How many wait for it.
    pub waiters: u32,
    /// How many more died while they waited; whoever comes for the lock clears them away.
    pub waiters_dead: u32,
    /// Whether it is held, and not merely by an expired lease or by a process that died.
    pub is_held: bool,
    /// Whether its holder died, or closed its space, without releasing it: the next one that comes for it gets it.
    pub is_holder_dead: bool,
    /// Whether those who hold it share it.
    pub is_shared: bool,
    /// Whether the hold belongs to no process: somebody holds it by its token.
    pub is_detached: bool,
    /// Zero.
    pub reserved: [u8; 4],
    /// Each hold on it, by token, those included that are over or whose process died: so many pointers.
    pub holds: *const *const sprag_hold_info,
    /// How many there are.
    pub hold_count: usize,
}

impl sprag_lock_info {
    pub(crate) fn show(info: &LockInfo, visit: impl FnOnce(*const Self) -> bool) -> bool {
        let holds = Listed::new(info.holds.iter().map(sprag_hold_info::new));
        visit(&Self {
            size: size_of::<Self>(),
            name: sprag_bytes::of(&info.name),
            token: info.token,
            lease_left_ns: nanoseconds(info.lease_left),
            held_for_ns: info.held_for.map_or(SPRAG_UNKNOWN, nanoseconds),
            holder_pid: info.holder_pid.unwrap_or(0),
            holders: info.holders,
            waiters: info.waiters,
            waiters_dead: info.waiters_dead,
            is_held: info.is_held,
            is_holder_dead: info.is_holder_dead,
            is_shared: info.is_shared,
            is_detached: info.is_detached,
            reserved: [0; 4],
            holds: holds.pointers.as_ptr(),
            hold_count: holds.pointers.len(),
        })
    }
}

/// A semaphore, or what is held of a key of a concurrency limiter.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sprag_semaphore_info {
    /// sizeof(sprag_semaphore_info).
    pub size: usize,
    /// The semaphore's name, or the key.
    pub name: sprag_bytes,
    /// How many permits there are.
    pub permits: u32,
    /// How many of them are taken, those of the dead and the late included until somebody needs them.
    pub taken: u32,
    /// How many are held, and not merely by an expired lease or by a process that died.
    pub used: u32,
    /// The most that could be had beside those, if nobody waits.
    pub remaining: u32,
    /// How many hold some, and not merely by an expired lease or by a process that died.
    pub holders: u32,
    /// How many wait for some.
    pub waiters: u32,
    /// How many more died while they waited.
    pub waiters_dead: u32,
    /// Zero.
    pub reserved: u32,
    /// Each hold of some, by token, those included that are over or whose process died: so many pointers.
    pub holds: *const *const sprag_hold_info,
    /// How many there are.
    pub hold_count: usize,
}

impl sprag_semaphore_info {
    fn new(info: &SemaphoreInfo, holds: &Listed<sprag_hold_info>) -> Self {
        Self {
            size: size_of::<Self>(),
            name: sprag_bytes::of(&info.name),
            permits: info.permits,
            taken: info.taken,
            used: info.used(),
            remaining: info.remaining(),
            holders: info.holders,
            waiters: info.waiters,
            waiters_dead: info.waiters_dead,
            reserved: 0,
            holds: holds.pointers.as_ptr(),
            hold_count: holds.pointers.len(),
        }
    }

    fn holds(info: &SemaphoreInfo) -> Listed<sprag_hold_info> {
        Listed::new(info.holds.iter().map(sprag_hold_info::new))
    }

    pub(crate) fn show(info: &SemaphoreInfo, visit: impl FnOnce(*const Self) -> bool) -> bool {
        visit(&Self::new(info, &Self::holds(info)))
    }
}

/// A concurrency limiter.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sprag_concurrency_info {
    /// sizeof(sprag_concurrency_info).
    pub size: usize,
    /// The limiter's name.
    pub name: sprag_bytes,
    /// How many each key can have at once.
    pub permits: u32,
    /// Zero.
    pub reserved: u32,
    /// The keys that have an entry, by name: those of which some are held or waited for, and idle ones not
    /// reclaimed yet: so many pointers.
    pub keys: *const *const sprag_semaphore_info,
    /// How many there are.
    pub key_count: usize,
}

impl sprag_concurrency_info {
    pub(crate) fn show(info: &ConcurrencyInfo, visit: impl FnOnce(*const Self) -> bool) -> bool {
        let holds: Vec<_> = info.keys.iter().map(sprag_semaphore_info::holds).collect();
        let keys = info.keys.iter().zip(&holds);
        let keys = Listed::new(keys.map(|(key, holds)| sprag_semaphore_info::new(key, holds)));
        visit(&Self {
            size: size_of::<Self>(),
            name: sprag_bytes::of(&info.name),
            permits: info.permits,
            reserved: 0,
            keys: keys.pointers.as_ptr(),
            key_count: keys.pointers.len(),
        })
    }
}

/// A limiter.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sprag_limiter_info {
    /// sizeof(sprag_limiter_info).
    pub size: usize,
    /// The limiter's name.
    pub name: sprag_bytes,
    /// Its limit, as text.
    pub limit: *const c_char,
    /// How many keys have an entry: those with something used, and full ones not reclaimed yet.
    pub keys: u64,
}

impl sprag_limiter_info {
    pub(crate) fn show(info: &LimiterInfo, visit: impl FnOnce(*const Self) -> bool) -> bool {
        let limit = text(info.limit.to_string());
        visit(&Self {
            size: size_of::<Self>(),
            name: sprag_bytes::of(&info.name),
            limit: limit.as_ptr(),
            keys: info.keys,
        })
    }
}

/// An override: a key's own limit.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sprag_override_info {
    /// sizeof(sprag_override_info).
    pub size: usize,
    /// The limiter's name.
    pub limiter: sprag_bytes,
    /// The key.
    pub key: sprag_bytes,
    /// The limit that it has instead of the limiter's, as text.
    pub limit: *const c_char,
}

impl sprag_override_info {
    pub(crate) fn show(info: &OverrideInfo, visit: impl FnOnce(*const Self) -> bool) -> bool {
        let limit = text(info.limit.to_string());
        visit(&Self {
            size: size_of::<Self>(),
            limiter: sprag_bytes::of(&info.limiter),
            key: sprag_bytes::of(&info.key),
            limit: limit.as_ptr(),
        })
    }
}

/// A joint limiter.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sprag_joint_limiter_info {
    /// sizeof(sprag_joint_limiter_info).
    pub size: usize,
    /// The limiter's name.
    pub name: sprag_bytes,
    /// Its limits, in their order, as texts: so many pointers.
    pub limits: *const *const c_char,
    /// How many there are.
    pub limit_count: usize,
    /// How many keys have an entry: those with something used, and full ones not reclaimed yet.
    pub keys: u64,
}

impl sprag_joint_limiter_info {
    pub(crate) fn show(info: &JointLimiterInfo, visit: impl FnOnce(*const Self) -> bool) -> bool {
        let limits = info.limits.iter().map(|limit| text(limit.to_string()));
        let limits: Vec<CString> = limits.collect();
        let pointers: Vec<_> = limits.iter().map(|limit| limit.as_ptr()).collect();
        visit(&Self {
            size: size_of::<Self>(),
            name: sprag_bytes::of(&info.name),
            limits: pointers.as_ptr(),
            limit_count: pointers.len(),
            keys: info.keys,
        })
    }
}

/// A counter.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sprag_counter_info {
    /// sizeof(sprag_counter_info).
    pub size: usize,
    /// The counter's name.
    pub name: sprag_bytes,
    /// What it is at.
    pub number: i64,
}

impl sprag_counter_info {
    pub(crate) fn show(info: &CounterInfo, visit: impl FnOnce(*const Self) -> bool) -> bool {
        visit(&Self {
            size: size_of::<Self>(),
            name: sprag_bytes::of(&info.name),
            number: info.number,
        })
    }
}

/// An idempotency key.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sprag_once_info {
    /// sizeof(sprag_once_info).
    pub size: usize,
    /// The key.
    pub name: sprag_bytes,
    /// SPRAG_IN_PROGRESS, SPRAG_DONE or SPRAG_UNFINISHED, as sprag_once_status() returns.
    pub status: sprag_status,
    /// The owner's process id in its own namespace; 0 if the attempt is detached, not known any more, or over.
    pub holder_pid: u32,
    /// What is left until the attempt's deadline, in nanoseconds; of one that is done, for how much longer its
    /// result is kept at least.
    pub left_ns: u64,
    /// The result, if it is done.
    pub result: sprag_bytes,
}

impl sprag_once_info {
    pub(crate) fn show(info: &OnceInfo, visit: impl FnOnce(*const Self) -> bool) -> bool {
        let (status, holder_pid, left, result): (_, _, _, &[u8]) = match &info.status {
            OnceStatus::New => (SPRAG_NONE, None, Duration::ZERO, &[]),
            OnceStatus::InProgress {
                holder_pid,
                deadline_left,
            } => (SPRAG_IN_PROGRESS, *holder_pid, *deadline_left, &[]),
            OnceStatus::Done { result, kept_left } => (SPRAG_DONE, None, *kept_left, result),
            OnceStatus::Unfinished => (SPRAG_UNFINISHED, None, Duration::ZERO, &[]),
        };
        visit(&Self {
            size: size_of::<Self>(),
            name: sprag_bytes::of(&info.name),
            status,
            holder_pid: holder_pid.unwrap_or(0),
            left_ns: nanoseconds(left),
            result: sprag_bytes::of(result),
        })
    }
}

/// A forced release.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sprag_break_info {
    /// sizeof(sprag_break_info).
    pub size: usize,
    /// The lock's name, its first 96 bytes.
    pub name: sprag_bytes,
    /// The token of the hold that was ended.
    pub token: u64,
    /// When, in nanoseconds since 1970-01-01 UTC.
    pub at_unix_ns: u64,
    /// The process id of whoever did it.
    pub by_pid: u32,
    /// Zero.
    pub reserved: u32,
}

impl sprag_break_info {
    pub(crate) fn show(info: &BreakRecord, visit: impl FnOnce(*const Self) -> bool) -> bool {
        visit(&Self {
            size: size_of::<Self>(),
            name: sprag_bytes::of(&info.name),
            token: info.token,
            at_unix_ns: info.at_ns,
            by_pid: info.by_pid,
            reserved: 0,
        })
    }
}
