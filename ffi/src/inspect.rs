//! # Inspections
//!
//! What there is in a space, and who holds what. A prefix of 0 bytes is all names. All that is told is gathered before the
//! first visit, so that a visitor may change what it is told of; a visitor that returns false ends the visits, which is
//! no error.

use crate::border::{Failure, on};
use crate::bytes::bytes;
use crate::error::sprag_error;
use crate::info::{
    sprag_break_info, sprag_concurrency_info, sprag_counter_info, sprag_joint_limiter_info,
    sprag_limiter_info, sprag_lock_info, sprag_once_info, sprag_override_info,
    sprag_semaphore_info,
};
use crate::lock::{Kind, sprag_lock};
use crate::semaphore::sprag_semaphore;
use crate::space::sprag_space;
use crate::status::sprag_status::{self, SPRAG_NONE, SPRAG_OK};
use std::ffi::c_void;

/// Shows what there is, one after the other, until somebody has seen enough.
fn each<T>(all: &[T], show: impl FnMut(&T) -> bool) -> sprag_status {
    all.iter().all(show);
    SPRAG_OK
}

const NO_VISITOR: Failure = Failure::Null("visit");

/// Is shown a lock; returns whether it wants more.
pub type sprag_visit_lock =
    Option<extern "C" fn(lock: *const sprag_lock_info, context: *mut c_void) -> bool>;

/// The locks whose names begin with prefix, by name. Reads the whole table; stops no one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_space_each_lock(
    space: *const sprag_space,
    prefix: *const c_void,
    prefix_len: usize,
    visit: sprag_visit_lock,
    context: *mut c_void,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            let visit = visit.ok_or(NO_VISITOR)?;
            let all = space.inspect(bytes(prefix, prefix_len, "prefix")?)?;
            Ok(each(&all, |info| {
                sprag_lock_info::show(info, |info| visit(info, context))
            }))
        })
    }
}

/// The locks of partitions and of the table that are held or waited for. While the table is held, so are all partitions, with a
/// token of their own each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_space_each_coarse_lock(
    space: *const sprag_space,
    visit: sprag_visit_lock,
    context: *mut c_void,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            let visit = visit.ok_or(NO_VISITOR)?;
            let all = space.inspect_coarse()?;
            Ok(each(&all, |info| {
                sprag_lock_info::show(info, |info| visit(info, context))
            }))
        })
    }
}

/// Is shown a semaphore; returns whether it wants more.
pub type sprag_visit_semaphore =
    Option<extern "C" fn(semaphore: *const sprag_semaphore_info, context: *mut c_void) -> bool>;

/// The semaphores whose names begin with prefix, by name. Reads the whole table; stops no one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_space_each_semaphore(
    space: *const sprag_space,
    prefix: *const c_void,
    prefix_len: usize,
    visit: sprag_visit_semaphore,
    context: *mut c_void,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            let visit = visit.ok_or(NO_VISITOR)?;
            let all = space.semaphores(bytes(prefix, prefix_len, "prefix")?)?;
            Ok(each(&all, |info| {
                sprag_semaphore_info::show(info, |info| visit(info, context))
            }))
        })
    }
}

/// Is shown a concurrency limiter; returns whether it wants more.
pub type sprag_visit_concurrency =
    Option<extern "C" fn(concurrency: *const sprag_concurrency_info, context: *mut c_void) -> bool>;

/// The concurrency limiters whose names begin with prefix, by name, and what is held of their keys. Reads the whole table;
/// stops no one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_space_each_concurrency(
    space: *const sprag_space,
    prefix: *const c_void,
    prefix_len: usize,
    visit: sprag_visit_concurrency,
    context: *mut c_void,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            let visit = visit.ok_or(NO_VISITOR)?;
            let all = space.concurrency_limiters(bytes(prefix, prefix_len, "prefix")?)?;
            Ok(each(&all, |info| {
                sprag_concurrency_info::show(info, |info| visit(info, context))
            }))
        })
    }
}

/// Is shown a limiter; returns whether it wants more.
pub type sprag_visit_limiter =
    Option<extern "C" fn(limiter: *const sprag_limiter_info, context: *mut c_void) -> bool>;

/// The limiters whose names begin with prefix, by name. Reads the whole region; stops no one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_space_each_limiter(
    space: *const sprag_space,
    prefix: *const c_void,
    prefix_len: usize,
    visit: sprag_visit_limiter,
    context: *mut c_void,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            let visit = visit.ok_or(NO_VISITOR)?;
            let all = space.limiters(bytes(prefix, prefix_len, "prefix")?)?;
            Ok(each(&all, |info| {
                sprag_limiter_info::show(info, |info| visit(info, context))
            }))
        })
    }
}

/// Is shown an override; returns whether it wants more.
pub type sprag_visit_override =
    Option<extern "C" fn(overriding: *const sprag_override_info, context: *mut c_void) -> bool>;

/// The overrides of limiters whose names begin with prefix, by limiter and key. Reads all objects of the region; stops no
/// one: an override that is just being set or cleared may be among them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_space_each_override(
    space: *const sprag_space,
    prefix: *const c_void,
    prefix_len: usize,
    visit: sprag_visit_override,
    context: *mut c_void,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            let visit = visit.ok_or(NO_VISITOR)?;
            let all = space.overrides(bytes(prefix, prefix_len, "prefix")?)?;
            Ok(each(&all, |info| {
                sprag_override_info::show(info, |info| visit(info, context))
            }))
        })
    }
}

/// Is shown a joint limiter; returns whether it wants more.
pub type sprag_visit_joint_limiter = Option<
    extern "C" fn(joint_limiter: *const sprag_joint_limiter_info, context: *mut c_void) -> bool,
>;

/// The joint limiters whose names begin with prefix, by name. Reads the whole region; stops no one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_space_each_joint_limiter(
    space: *const sprag_space,
    prefix: *const c_void,
    prefix_len: usize,
    visit: sprag_visit_joint_limiter,
    context: *mut c_void,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            let visit = visit.ok_or(NO_VISITOR)?;
            let all = space.joint_limiters(bytes(prefix, prefix_len, "prefix")?)?;
            Ok(each(&all, |info| {
                sprag_joint_limiter_info::show(info, |info| visit(info, context))
            }))
        })
    }
}

/// Is shown a counter; returns whether it wants more.
pub type sprag_visit_counter =
    Option<extern "C" fn(counter: *const sprag_counter_info, context: *mut c_void) -> bool>;

/// The counters that are not at 0 and whose names begin with prefix, by name. Reads the whole table; stops no one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_space_each_counter(
    space: *const sprag_space,
    prefix: *const c_void,
    prefix_len: usize,
    visit: sprag_visit_counter,
    context: *mut c_void,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            let visit = visit.ok_or(NO_VISITOR)?;
            let all = space.counters(bytes(prefix, prefix_len, "prefix")?)?;
            Ok(each(&all, |info| {
                sprag_counter_info::show(info, |info| visit(info, context))
            }))
        })
    }
}

/// Is shown an idempotency key; returns whether it wants more.
pub type sprag_visit_once =
    Option<extern "C" fn(once: *const sprag_once_info, context: *mut c_void) -> bool>;

/// The idempotency keys that begin with prefix, by name, but for new ones. Reads the whole table; stops no one, also not an
/// owner that is late: what is told of it here, sprag_once_status() makes sure of.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_space_each_once(
    space: *const sprag_space,
    prefix: *const c_void,
    prefix_len: usize,
    visit: sprag_visit_once,
    context: *mut c_void,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            let visit = visit.ok_or(NO_VISITOR)?;
            let all = space.onces(bytes(prefix, prefix_len, "prefix")?)?;
            Ok(each(&all, |info| {
                sprag_once_info::show(info, |info| visit(info, context))
            }))
        })
    }
}

/// Is shown a forced release; returns whether it wants more.
pub type sprag_visit_break =
    Option<extern "C" fn(broken: *const sprag_break_info, context: *mut c_void) -> bool>;

/// The last forced releases, oldest first, at most 64.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_space_each_break(
    space: *const sprag_space,
    visit: sprag_visit_break,
    context: *mut c_void,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(space, error, |space| {
            let visit = visit.ok_or(NO_VISITOR)?;
            Ok(each(&space.breaks(), |info| {
                sprag_break_info::show(info, |info| visit(info, context))
            }))
        })
    }
}

/// Who holds a lock and who waits for it, changing nothing; of several locks each that has an entry in the region, in the
/// order in which they were named. SPRAG_NONE, and there is no visit, if none has one, so that nobody holds it. Needs no
/// session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_lock_peek(
    lock: *const sprag_lock,
    visit: sprag_visit_lock,
    context: *mut c_void,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(lock, error, |lock| {
            let visit = visit.ok_or(NO_VISITOR)?;
            let seen = match lock {
                Kind::Name(lock) => lock.peek()?.into_iter().collect(),
                Kind::Several(locks) => locks.peek()?.into_iter().flatten().collect(),
                Kind::Coarse(lock) => vec![lock.peek()?],
            };
            if seen.is_empty() {
                return Ok(SPRAG_NONE);
            }
            Ok(each(&seen, |info| {
                sprag_lock_info::show(info, |info| visit(info, context))
            }))
        })
    }
}

/// Who has permits and who waits for some, changing nothing: one visit, also if nobody does. Reads all holds of the space
/// that are by permits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sprag_semaphore_peek(
    semaphore: *const sprag_semaphore,
    visit: sprag_visit_semaphore,
    context: *mut c_void,
    error: *mut *mut sprag_error,
) -> sprag_status {
    // SAFETY: by every function's contract.
    unsafe {
        on(semaphore, error, |semaphore| {
            let visit = visit.ok_or(NO_VISITOR)?;
            let info = semaphore.peek()?;
            sprag_semaphore_info::show(&info, |info| visit(info, context));
            Ok(SPRAG_OK)
        })
    }
}

#[cfg(test)]
mod tests;
