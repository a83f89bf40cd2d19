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
