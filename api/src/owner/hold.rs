//! Holds of an owner's: each is one depth of the hold beneath, which the owner has once.

use super::{Held, Owner, Upgrading};
use crate::{Error, Hold, KeepAlive, Result};
use parking_lot::MutexGuard;
use sprag_core::lock::Grant;
use sprag_core::readable::Readable;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// One of an owner's holds on a lock; the last one dropped releases it.
///
/// There is one lease beneath all of them: what one renews, extends or keeps alive, all have, and when it
/// is over or the lock is broken, all have lost it. A lease that is kept alive stays so until the last of
/// them is released.
#[must_use = "dropping the last hold releases the lock"]
pub struct OwnerHold<'o> {
    pub(super) owner: Cow<'o, Owner>,
    pub(super) name: Vec<u8>,
    /// As it was granted.
    pub(super) token: u64,
    pub(super) serial: u64,
    /// Of the hold beneath.
    pub(super) deadline_ns: Arc<AtomicU64>,
    pub(super) is_reentry: bool,
    /// Whether it was given up, or handed on.
    pub(super) is_over: bool,
}

impl OwnerHold<'_> {
    /// The same hold, with a share of the owner instead of a borrow of it: for a struct, a thread or a
    /// task.
    pub fn into_owned(mut self) -> OwnerHold<'static> {
        self.is_over = true;
        OwnerHold {
            owner: Cow::Owned(Owner::clone(&self.owner)),
            name: std::mem::take(&mut self.name),
            token: self.token,
            serial: self.serial,
            deadline_ns: self.deadline_ns.clone(),
            is_reentry: self.is_reentry,
            is_over: false,
        }
    }

    /// Whether the owner had the lock already when this was acquired: then the lease is the earlier hold's, and so is
    /// what that asked for of it.
    pub fn is_reentry(&self) -> bool {
        self.is_reentry
    }

    /// The fencing token; the same for every re-entry, and higher for all of them after an
    /// [`upgrade`](Self::upgrade). Once the hold is lost, the one that it was granted under.
    pub fn token(&self) -> u64 {
        self.with(|hold| hold.token()).unwrap_or(self.token)
    }

    /// Whether others may hold the lock beside this owner, as [`Hold::is_shared`].
    pub fn is_shared(&self) -> bool {
        self.with(|hold| hold.is_shared()).unwrap_or(false)
    }

    /// Takes alone what the owner shares with others, for every depth, as [`Hold::upgrade`]. While one of its
    /// threads waits for that, what the others ask of their holds on this lock waits as well.
    pub fn upgrade(&self) -> Result<()> {
        self.upgrade_by(|hold, holds| {
            while !hold.upgrade_until(u64::MAX, holds)? {}
            Ok(())
        })
    }

    /// [`upgrade`](Self::upgrade), waiting for at most `timeout`; `false` if others share it still, and so
    /// does this owner.
    pub fn upgrade_timeout(&self, timeout: Duration) -> Result<bool> {
        let until_ns = self.owner.space.inner.until_ns(timeout);
        self.upgrade_by(|hold, holds| hold.upgrade_until(until_ns, holds))
    }

    /// [`upgrade`](Self::upgrade) if that can be had at once.
    pub fn try_upgrade(&self) -> Result<bool> {
        self.with(Hold::try_upgrade)?
    }

    /// Goes on sharing the lock with others, for every depth, as [`Hold::downgrade`].
    pub fn downgrade(&self) -> Result<()> {
        self.with(Hold::downgrade)?
    }

    /// Whether the lease still runs, by the holder's own clock, as [`Hold::is_valid`] says; also async-signal-safe.
    pub fn is_valid(&self) -> bool {
        // Relaxed: one number, compared with a clock.
        let deadline_ns = self.deadline_ns.load(Relaxed);
        self.owner.space.inner.is_in_lease(deadline_ns)
    }

    /// What is left of the lease by the holder's own clock; zero once it is over.
    pub fn lease_left(&self) -> Duration {
        self.with(|hold| hold.lease_left()).unwrap_or_default()
    }

    /// Whether the lock is still held under this token, by the engine's word, as [`Hold::is_held`] says.
    pub fn is_held(&self) -> bool {
        self.with(|hold| hold.is_held()).unwrap_or(false)
    }

    /// Starts the lease anew for every depth, as [`Hold::renew`]. [`Error::Lost`] once it is over.
    pub fn renew(&self) -> Result<()> {
        self.with(Hold::renew)?
    }

    /// [`renew`](Self::renew) with another length: 1 ms to 366 days.
    pub fn extend(&self, ttl: Duration) -> Result<()> {
        self.with(|hold| hold.extend(ttl))?
    }

    /// Has the lease renewed in the background for every depth, as [`Hold::keep_alive`], until the last
    /// hold is released. It replaces what an earlier call asked for, at whichever depth that was.
    pub fn keep_alive(&self, options: KeepAlive) -> Result<()> {
        // A callback's captures may have a hold of this owner's to drop, so the last of the one refused and
        // of the one replaced go here, without the owner's mutex.
        let _on_lost = options.on_lost.clone();
        let deadline_ns = self.deadline_ns.clone();
        let replaced = self.with(|hold| hold.replace_keep_alive(options, deadline_ns))?;
        replaced.map(drop)
    }

    /// Gives up this hold; the last one releases the lock. [`Error::Lost`] if it was lost before.
    pub fn release(mut self) -> Result<()> {
        self.end()
    }

    /// Asks the one hold beneath all depths. [`Error::Lost`] if the owner has it no more.
    fn with<T>(&self, ask: impl FnOnce(&mut Hold<'static>) -> T) -> Result<T> {
        self.owner.space.inner.check_process()?;
        let mut held = self.held()?;
        match held.get_mut(&self.name) {
            Some(Held::By(beneath)) if beneath.serial == self.serial => Ok(beneath.ask(ask)),
            // Another one: lost, and the owner has the lock again by a later hold.
            _ => Err(Error::lost(Some(&self.name), self.token)),
        }
    }

    /// What the owner has, once none of its threads is upgrading this lock.
    fn held(&self) -> Result<MutexGuard<'_, HashMap<Vec<u8>, Held>>> {
        let shared = &*self.owner.shared;
        let mut held = shared.held.lock();
        while matches!(held.get(&self.name), Some(Held::Upgrading)) {
            held = shared.wait_for_change(&self.owner.space.inner, held, u64::MAX)?;
        }
        Ok(held)
    }

    /// Asks the one hold beneath all depths what may take its time, without the owner's mutex.
    /// `ask` is given what the owner holds.
    fn upgrade_by<T>(
        &self,
        ask: impl FnOnce(&mut Hold<'static>, &[Grant]) -> Result<T>,
    ) -> Result<T> {
        self.owner.space.inner.check_process()?;
        let holds = self.owner.grants();
        let mut held = self.held()?;
        let beneath = match held.remove(&self.name) {
            Some(Held::By(beneath)) if beneath.serial == self.serial => beneath,
            other => {
                held.extend(other.map(|other| (self.name.clone(), other)));
                return Err(Error::lost(Some(&self.name), self.token));
            }
        };
        held.insert(self.name.clone(), Held::Upgrading);
        drop(held);
        let mut upgrading = Upgrading {
            space: &self.owner.space.inner,
            shared: &self.owner.shared,
            name: &self.name,
            beneath: Some(beneath),
        };
        match &mut upgrading.beneath {
            Some(beneath) => beneath.ask(|hold| ask(hold, &holds)),
            None => Err(Error::lost(Some(&self.name), self.token)),
        }
    }

    fn end(&mut self) -> Result<()> {
        self.is_over = true;
        self.owner.space.inner.check_process()?;
        let shared = &*self.owner.shared;
        let mut held = shared.held.lock();
        // Not to be stopped: what is given up has to be.
        while matches!(held.get(&self.name), Some(Held::Upgrading)) {
            shared.changed.wait(&mut held);
        }
        match held.get_mut(&self.name) {
            Some(Held::By(beneath)) if beneath.serial == self.serial => {
                if beneath.depth > 1 {
                    beneath.depth -= 1;
                    return Ok(());
                }
            }
            // Another one: lost, and the owner has the lock again by a later hold.
            _ => return Err(Error::lost(Some(&self.name), self.token)),
        }
        let last = held.remove(&self.name);
        drop(held);
        match last {
            Some(Held::By(beneath)) => beneath.hold.release(),
            _ => Ok(()),
        }
    }
}

impl Drop for OwnerHold<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = self.end();
        }
    }
}

impl fmt::Debug for OwnerHold<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OwnerHold")
            .field("name", &Readable(&self.name))
            .field("token", &self.token)
            .field("is_valid", &self.is_valid())
            .finish()
    }
}
