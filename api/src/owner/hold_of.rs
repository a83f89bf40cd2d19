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
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
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

    /// Forks while a wait of the owner's asks whether to stop, and has the child go on; how the child ended.
    fn in_child_of_a_wait(owner: &Owner, wait: impl FnOnce() -> Result<(), Error>) -> libc::c_int {
        let mut pid = 0;
        let stop = || {
            let busy = owner.shared.held.lock();
            // SAFETY: as above.
            pid = unsafe { libc::fork() };
            if pid == 0 {
                // SAFETY: no memory is passed.
                unsafe { libc::alarm(20) };
                std::mem::forget(busy);
            }
            pid != 0
        };
        let waited = crate::interruptible(stop, wait);
        if pid == 0 {
            // SAFETY: as above.
            unsafe { libc::_exit(i32::from(!matches!(waited, Err(Error::Forked)))) };
        }
        assert!(matches!(waited, Err(Error::Stopped)));
        let mut status = 0;
        // SAFETY: writes one int.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        status
    }

    #[test]
    fn a_child_that_was_forked_in_a_wait_waits_for_no_mutex_of_an_owner() {
        let space = Space::open("mem:").unwrap();
        let owner = space.owner();
        let lock = owner.lock("a").unwrap();
        let taken = space.lock("a").unwrap().acquire().unwrap();
        assert_eq!(in_child_of_a_wait(&owner, || lock.acquire().map(drop)), 0);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| lock.acquire().map(drop));
            while space.inspect("a").unwrap()[0].waiters == 0 {
                std::thread::yield_now();
            }
            assert_eq!(in_child_of_a_wait(&owner, || lock.acquire().map(drop)), 0);
            taken.release().unwrap();
            first.join().unwrap().unwrap();
        });
        let other = space.lock("a").unwrap().acquire_shared().unwrap();
        let mine = lock.acquire_shared().unwrap();
        assert_eq!(in_child_of_a_wait(&owner, || mine.upgrade()), 0);
        drop(other);
        mine.upgrade().unwrap();
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

    #[test]
    fn who_is_behind_another_of_the_same_owner_waits_by_the_spaces_clock_and_asks_whether_to_stop()
    {
        let clock = ManualClock::new();
        let space = Space::builder().clock(&clock).open("mem:").unwrap();
        let owner = space.owner();
        let taken = space.lock("a").unwrap().acquire().unwrap();
        let lock = owner.lock("a").unwrap();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| lock.acquire().map(drop));
            while !owner.shared.held.lock().contains_key(&b"a"[..]) {
                std::thread::yield_now();
            }
            let is_over = AtomicBool::new(false);
            let (stopped, asked, woken) = std::thread::scope(|changes| {
                let woken = changes.spawn(|| {
                    let mut woken = 0;
                    while woken < 100 && !is_over.load(Relaxed) {
                        woken += owner.shared.changed.notify_all();
                        std::thread::yield_now();
                    }
                    woken
                });
                let mut asked = 0;
                let third = || {
                    asked += 1;
                    asked == 3
                };
                let stopped = crate::interruptible(third, || lock.acquire().map(drop));
                is_over.store(true, Relaxed);
                (stopped, asked, woken.join().unwrap())
            });
            assert!(
                woken <= asked,
                "{woken} changes woke it, and it asked {asked} times"
            );
            assert!(matches!(stopped, Err(Error::Stopped)));

            let (told, tells) = std::sync::mpsc::channel();
            let lock = &lock;
            scope.spawn(move || {
                let behind = lock.acquire_timeout(Duration::from_millis(20));
                told.send(behind.unwrap().is_some()).unwrap();
            });
            let early = tells.recv_timeout(Duration::from_millis(200));
            assert!(early.is_err(), "the clock stands still: {early:?}");
            clock.advance(Duration::from_millis(20));
            assert!(!tells.recv().unwrap());
            taken.release().unwrap();
            first.join().unwrap().unwrap();
        });
    }
}
