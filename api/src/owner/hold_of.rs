//! Holds of locks that are not re-entrant, of which an owner knows so that deadlocks are found.

use super::Owner;
use crate::{AcquireAll, CoarseLock, Hold, HoldAll, Locks, Result};
use sprag_core::lock::Grant;
use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// A [`Hold`] or [`HoldAll`] of an owner, which counts among what that holds when it waits. Made by
/// [`CoarseLock::acquire_for`] and [`Locks::acquire_for`].
#[must_use = "dropping a hold releases the lock"]
pub struct HoldOf<H> {
    // Before the hold, and so dropped before it: whoever waits then waits for nothing that is not held.
    registered: Registered,
    hold: H,
}

/// An entry among what an owner holds.
struct Registered {
    owner: Owner,
    grant: Option<Grant>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        // In a forked child the owner's mutex may be held by a thread that is not there.
        if self.owner.space.inner.check_process().is_err() {
            return;
        }
        let mut others = self.owner.shared.others.lock();
        if let Some(at) = others.iter().position(|other| Some(*other) == self.grant) {
            others.swap_remove(at);
        }
    }
}

impl<H> HoldOf<H> {
    fn new(owner: &Owner, hold: H, grant: Option<Grant>) -> Self {
        owner.shared.others.lock().extend(grant);
        let registered = Registered {
            owner: owner.clone(),
            grant,
        };
        Self { registered, hold }
    }

    /// The hold itself, of which the owner knows no more.
    pub fn into_inner(self) -> H {
        drop(self.registered);
        self.hold
    }
}

impl<H> Deref for HoldOf<H> {
    type Target = H;

    fn deref(&self) -> &H {
        &self.hold
    }
}

impl<H> DerefMut for HoldOf<H> {
    fn deref_mut(&mut self) -> &mut H {
        &mut self.hold
    }
}

impl<H: fmt::Debug> fmt::Debug for HoldOf<H> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hold.fmt(formatter)
    }
}

impl<'s> CoarseLock<'s> {
    /// [`acquire_timeout`](Self::acquire_timeout) for an owner, or without an end for [`Duration::MAX`]:
    /// [`Error::Deadlock`](crate::Error::Deadlock) if it and others would wait for each other for ever. Not
    /// re-entrant: to wait for what the owner holds already is a deadlock too.
    pub fn acquire_for(
        &self,
        owner: &Owner,
        timeout: Duration,
    ) -> Result<Option<HoldOf<Hold<'s>>>> {
        let lock = self.lock();
        lock.check_owner(owner)?;
        let hold = lock.get_holding(self.wants(), &owner.grants(), lock.until_ns(timeout))?;
        Ok(hold.map(|hold| {
            let grant = hold.grant();
            HoldOf::new(owner, hold, Some(grant))
        }))
    }

    /// [`acquire_for`](Self::acquire_for) without an end, as a future.
    pub fn acquire_for_async(
        &self,
        owner: &Owner,
    ) -> impl Future<Output = Result<HoldOf<Hold<'s>>>> + Send + use<'s> {
        let (coarse, owner) = (self.clone(), owner.clone());
        async move {
            let lock = coarse.lock();
            lock.check_owner(&owner)?;
            // What it holds when it begins to wait.
            let hold = lock.get_async(coarse.wants(), owner.grants()).await?;
            let grant = hold.grant();
            Ok(HoldOf::new(&owner, hold, Some(grant)))
        }
    }
}

impl<'s> Locks<'s> {
    /// [`acquire_timeout`](Self::acquire_timeout) for an owner, or without an end for [`Duration::MAX`]:
    /// [`Error::Deadlock`](crate::Error::Deadlock) if it and others would wait for each other for ever. Not
    /// re-entrant: to wait for what the owner holds already is a deadlock too.
    pub fn acquire_for(
        &self,
        owner: &Owner,
        timeout: Duration,
    ) -> Result<Option<HoldOf<HoldAll<'s>>>> {
        self.check_owner(owner)?;
        let hold = self.acquire_until(self.until_ns(timeout), &owner.grants())?;
        Ok(hold.map(|hold| {
            let grant = hold.grant();
            HoldOf::new(owner, hold, grant)
        }))
    }

    /// [`acquire_for`](Self::acquire_for) without an end, as a future.
    pub fn acquire_for_async(
        &self,
        owner: &Owner,
    ) -> impl Future<Output = Result<HoldOf<HoldAll<'s>>>> + Send + use<'s> {
        let (locks, owner) = (self.clone(), owner.clone());
        async move {
            locks.check_owner(&owner)?;
            // What it holds when it begins to wait.
            let holds = owner.grants();
            let hold = AcquireAll::new(locks, holds).await?;
            let grant = hold.grant();
            Ok(HoldOf::new(&owner, hold, grant))
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use crate::owner::OwnerHold;
    use crate::{Error, KeepAlive, ManualClock, Owner, Space};
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    /// Runs `in_child` in a forked child, where another thread of the owner's would never let go of its mutexes; how
    /// the child ended. One that waits for them is killed.
    fn in_child_of_a_busy_owner(owner: &Owner, in_child: impl FnOnce() -> bool) -> libc::c_int {
        let _busy = (owner.shared.held.lock(), owner.shared.others.lock());
        // SAFETY: the child has this thread alone; it calls the library, whose promise is what is tested, and exits.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "{}", std::io::Error::last_os_error());
        if pid == 0 {
            // SAFETY: no memory is passed; the second ends the child without running what the parent registered.
            unsafe {
                libc::alarm(20);
                libc::_exit(i32::from(!in_child()));
            }
        }
        let mut status = 0;
        // SAFETY: writes one int.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        assert_eq!(waited, pid);
        status
    }

    #[test]
    fn a_forked_child_waits_for_no_mutex_of_an_owner() {
        let space = Space::open("mem:").unwrap();
        let owner = space.owner();
        let (several, table) = (space.locks(["a", "b"]).unwrap(), space.table().unwrap());
        let other = space.locks(["c"]).unwrap();
        let held = several.acquire_for(&owner, Duration::ZERO).unwrap();
        let taken = space.lock("d").unwrap().acquire().unwrap();
        let mut waits = pin!(owner.lock("d").unwrap().into_owned().acquire_async());
        let mut context = Context::from_waker(Waker::noop());
        assert!(waits.as_mut().poll(&mut context).is_pending());
        let ended = in_child_of_a_busy_owner(&owner, || {
            drop(held);
            let waited = waits.as_mut().poll(&mut context);
            matches!(waited, Poll::Ready(Err(Error::Forked)))
                && matches!(
                    other.acquire_for(&owner, Duration::ZERO),
                    Err(Error::Forked)
                )
                && matches!(
                    table.acquire_for(&owner, Duration::ZERO),
                    Err(Error::Forked)
                )
                && format!("{owner:?}").starts_with("Owner")
        });
        assert_eq!(ended, 0);
        taken.release().unwrap();
    }

    #[test]
    fn whether_an_owners_hold_is_valid_is_told_without_a_mutex() {
        let clock = ManualClock::new();
        let space = Space::builder().clock(&clock).open("mem:").unwrap();
        let owner = space.owner();
        let lock = owner.lock("a").unwrap();
        let valid_of_a_busy_owner = |hold: &OwnerHold<'_>| {
            let _busy = (owner.shared.held.lock(), owner.shared.others.lock());
            hold.is_valid()
        };
        let (first, again) = (lock.acquire().unwrap(), lock.acquire().unwrap());
        clock.advance(Duration::from_secs(29));
        assert!(valid_of_a_busy_owner(&first) && valid_of_a_busy_owner(&again));
        first.extend(Duration::from_secs(5)).unwrap();
        clock.advance(Duration::from_secs(4));
        assert!(valid_of_a_busy_owner(&again), "what one renews, all have");
        clock.advance(Duration::from_secs(1));
        assert!(!valid_of_a_busy_owner(&first) && !valid_of_a_busy_owner(&again));
        assert!(matches!(lock.acquire(), Err(Error::Lost { .. })));

        let kept = lock.acquire().unwrap();
        kept.keep_alive(KeepAlive::default()).unwrap();
        clock.advance(Duration::from_secs(20));
        while kept.lease_left() < Duration::from_secs(25) {
            std::thread::yield_now();
        }
        clock.advance(Duration::from_secs(20));
        assert!(valid_of_a_busy_owner(&kept), "renewed in the background");
        assert!(!valid_of_a_busy_owner(&first), "lost, whatever came after");
        space.break_lock("a").unwrap();
        while valid_of_a_busy_owner(&kept) {
            std::thread::yield_now();
        }
    }
}
