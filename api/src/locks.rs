//! Several locks in one acquire.

mod future;

pub use future::AcquireAll;

use crate::hold::{Hold, KeepAlive};
use crate::lock::{DEFAULT_TTL_NS, check_ttl};
use crate::metrics::Seldom;
use crate::share::Share;
use crate::space::Inner;
use crate::wait::{Granted, Want};
use crate::{Error, LockInfo, Owner, Result, Space};
use sprag_core::Name;
use sprag_core::admission::Wants;
use sprag_core::lock::{Grant, SEVERAL_MAX};
use sprag_core::readable::Readable;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A handle on several locks, acquired together: all or none. Made by [`Space::locks`].
///
/// Who waits for them takes none before all can be had, and has its turn in the queue of each; so such acquires
/// never deadlock with each other, in whatever order they name the locks.
#[derive(Clone)]
pub struct Locks<'s> {
    space: Share<'s>,
    names: Arc<[Name]>,
    lease_ns: u64,
}

impl<'s> Locks<'s> {
    pub(crate) fn new<N: AsRef<[u8]>>(
        space: &'s Space,
        names: impl IntoIterator<Item = N>,
    ) -> Result<Self> {
        let engine = &space.inner.engine;
        // One more than the most, so that there is something to refuse.
        let names = names.into_iter().take(SEVERAL_MAX + 1);
        let names: Result<Vec<Name>, _> =
            names.map(|name| engine.lock_name(name.as_ref())).collect();
        let names = names?;
        sprag_core::lock::check_number(names.len())?;
        Ok(Self {
            space: Share::borrow(&space.inner),
            names: names.into(),
            lease_ns: DEFAULT_TTL_NS,
        })
    }

    /// The same locks, with a share of the space instead of a borrow of it, as
    /// [`Lock::into_owned`](crate::Lock::into_owned).
    pub fn into_owned(self) -> Locks<'static> {
        Locks {
            space: self.space.to_owned(),
            names: self.names,
            lease_ns: self.lease_ns,
        }
    }

    /// Sets the lease of the holds to come, as [`Lock::ttl`](crate::Lock::ttl): 30 s if not set. There is
    /// one for all.
    pub fn ttl(mut self, ttl: Duration) -> Result<Self> {
        self.lease_ns = check_ttl(ttl)?;
        Ok(self)
    }

    /// The names, in the order in which they were given.
    pub fn names(&self) -> Vec<Vec<u8>> {
        self.names.iter().map(Name::to_vec).collect()
    }

    /// Who holds the locks and who waits for them, changing nothing, in the order of the names; `None` for one
    /// that has no entry in the region, and so is free. Needs no session.
    pub fn peek(&self) -> Result<Vec<Option<LockInfo>>> {
        let inner = &*self.space;
        inner.check_to_list()?;
        let now_ns = inner.precise_ns();
        let statuses = self
            .names
            .iter()
            .map(|name| inner.engine.lock_status(name, now_ns));
        let infos = statuses.map(|status| status.map(|status| LockInfo::new(status, now_ns)));
        Ok(infos.collect())
    }

    /// Takes all the locks if they can be had at once; `None`, and none is taken, if not.
    pub fn try_acquire(&self) -> Result<Option<HoldAll<'s>>> {
        let hold = self.get_at_once()?;
        if hold.is_none() {
            self.space.counts.seldom(Seldom::Busy);
        }
        Ok(hold)
    }

    /// The same, for one who waits if not.
    fn get_at_once(&self) -> Result<Option<HoldAll<'s>>> {
        let granted = self.space.try_get(&self.want(&[]), self.lease_ns)?;
        Ok(granted.map(|granted| self.hold(&granted)))
    }

    /// Takes all the locks, waiting for as long as it takes.
    pub fn acquire(&self) -> Result<HoldAll<'s>> {
        loop {
            // `u64::MAX` of region time never comes, but the type does not say so.
            if let Some(hold) = self.acquire_until(u64::MAX, &[])? {
                return Ok(hold);
            }
        }
    }

    /// Takes all the locks, waiting for at most `timeout`; `None`, and none is taken, if they did not come.
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<Option<HoldAll<'s>>> {
        self.acquire_until(self.space.until_ns(timeout), &[])
    }

    /// [`acquire`](Self::acquire) as a future, as [`Lock::acquire_async`](crate::Lock::acquire_async).
    pub fn acquire_async(&self) -> AcquireAll<'s> {
        AcquireAll::new(self.clone(), Vec::new())
    }

    /// Takes all the locks while the owner has `holds`.
    pub(crate) fn acquire_until(
        &self,
        until_ns: u64,
        holds: &[Grant],
    ) -> Result<Option<HoldAll<'s>>> {
        let granted = self.space.get(&self.want(holds), self.lease_ns, until_ns)?;
        Ok(granted.map(|granted| self.hold(&granted)))
    }

    pub(crate) fn check_owner(&self, owner: &Owner) -> Result<()> {
        owner.check_space(&self.space)
    }

    pub(crate) fn until_ns(&self, timeout: Duration) -> u64 {
        self.space.until_ns(timeout)
    }

    fn want<'a>(&'a self, holds: &'a [Grant]) -> Want<'a> {
        Want {
            names: &self.names,
            wants: Wants::Several,
            holds,
        }
    }

    fn hold(&self, granted: &Granted) -> HoldAll<'s> {
        let Granted { grant, asked_at_ns } = *granted;
        let space = self.space.clone();
        let tokens = space.engine.tokens_of(&grant, &self.names);
        // The name that errors tell is the one of the lock that leads.
        let leads = tokens.iter().position(|token| *token == grant.token);
        let name_hash = self.names[leads.unwrap_or(0)].raw_hash();
        HoldAll {
            hold: Some(Hold::new(
                space,
                grant,
                asked_at_ns,
                self.lease_ns,
                name_hash,
            )),
            names: self.names.clone(),
            tokens,
        }
    }
}

impl fmt::Debug for Locks<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names();
        let names: Vec<Readable<'_>> = names.iter().map(|name| Readable(name)).collect();
        formatter
            .debug_struct("Locks")
            .field("names", &names)
            .field("ttl", &Duration::from_nanos(self.lease_ns))
            .finish()
    }
}

/// A hold on several locks, with one lease for all; dropping it releases them.
///
/// Each lock has a token of its own, for the fences of what it protects. Breaking one of the locks ends the
/// whole hold.
#[must_use = "dropping a hold releases the locks"]
pub struct HoldAll<'s> {
    /// Of the lock that leads. `None` once it is over.
    hold: Option<Hold<'s>>,
    names: Arc<[Name]>,
    tokens: Vec<u64>,
}

impl<'s> HoldAll<'s> {
    /// The same hold, with a share of the space instead of a borrow of it.
    pub fn into_owned(mut self) -> HoldAll<'static> {
        HoldAll {
            hold: self.hold.take().map(Hold::into_owned),
            names: self.names.clone(),
            tokens: std::mem::take(&mut self.tokens),
        }
    }

    /// The fencing tokens, in the order in which the names were given. 0, which no fence admits, for a lock
    /// that was lost again before the acquire returned.
    pub fn tokens(&self) -> &[u64] {
        &self.tokens
    }

    /// Whether the lease still runs, by the holder's own clock, as [`Hold::is_valid`].
    pub fn is_valid(&self) -> bool {
        self.hold.as_ref().is_some_and(Hold::is_valid)
    }

    /// What is left of the lease by the holder's own clock; zero once it is over.
    pub fn lease_left(&self) -> Duration {
        self.hold.as_ref().map_or(Duration::ZERO, Hold::lease_left)
    }

    /// Whether the locks are still held, by the engine's word, as [`Hold::is_held`].
    pub fn is_held(&self) -> bool {
        self.hold.as_ref().is_some_and(Hold::is_held)
    }

    /// Starts the lease anew, as [`Hold::renew`].
    pub fn renew(&mut self) -> Result<()> {
        self.with(Hold::renew)
    }

    /// [`renew`](Self::renew) with another length, as [`Hold::extend`].
    pub fn extend(&mut self, ttl: Duration) -> Result<()> {
        self.with(|hold| hold.extend(ttl))
    }

    /// Has the lease renewed in the background, as [`Hold::keep_alive`].
    pub fn keep_alive(&mut self, options: KeepAlive) -> Result<()> {
        self.with(|hold| hold.keep_alive(options))
    }

    /// Releases all the locks, as [`Hold::release`].
    pub fn release(mut self) -> Result<()> {
        self.end()
    }

    pub(crate) fn grant(&self) -> Option<Grant> {
        self.hold.as_ref().map(Hold::grant)
    }

    fn with(&mut self, act: impl FnOnce(&mut Hold<'s>) -> Result<()>) -> Result<()> {
        match &mut self.hold {
            Some(hold) => act(hold),
            // Gone only while it is being dropped.
            None => Err(Error::lost(None, 0)),
        }
    }

    fn end(&mut self) -> Result<()> {
        let Some(hold) = self.hold.take() else {
            return Ok(());
        };
        let (grant, space) = (hold.grant(), hold.space());
        // The lock that leads first: with it, all are free.
        let released = hold.release();
        if space.check_process().is_ok() {
            release_followers(&space, &grant, &self.names);
        }
        released
    }
}

/// Frees the locks that followed, and wakes those who wait for them.
fn release_followers(space: &Inner, grant: &Grant, names: &[Name]) {
    let now_ns = space.precise_ns();
    space
        .engine
        .release_followers(grant, names, now_ns, |wake| space.wake(Some(wake)));
}

impl Drop for HoldAll<'_> {
    fn drop(&mut self) {
        // A hold lost meanwhile has nothing to release; `release` is for those who want to know.
        let _ = self.end();
    }
}

impl fmt::Debug for HoldAll<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HoldAll")
            .field("tokens", &self.tokens)
            .field("lease_left", &self.lease_left())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use crate::Space;

    #[test]
    fn a_look_at_locks_tells_who_holds_them_and_creates_nothing() {
        let space = Space::open("mem:").unwrap();
        let lock = space.lock("a").unwrap();
        let several = space.locks(["b", "a"]).unwrap();
        assert_eq!(lock.peek().unwrap(), None);
        assert_eq!(several.peek().unwrap(), [None, None]);
        let hold = lock.acquire().unwrap();
        let info = lock.peek().unwrap().unwrap();
        assert_eq!(
            (info.is_held, info.token, info.holders),
            (true, hold.token(), 1)
        );
        assert_eq!(
            several.peek().unwrap()[1].as_ref().unwrap().token,
            info.token
        );
        assert!(!space.table().unwrap().peek().unwrap().is_held);
        drop(hold);
        let table = space.table().unwrap();
        let _all = table.acquire().unwrap();
        assert!(table.peek().unwrap().is_held);
    }
}
