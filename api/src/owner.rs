//! Owners: handles whose locks are re-entrant.
//!
//! Depth is counted here, in the owner's handle; the engine sees one acquire and one release. So a
//! retried release never counts twice, and an owner may cross threads and tasks at will.

mod future;
mod hold;
mod hold_of;

pub use future::OwnerAcquire;
pub use hold::OwnerHold;
pub use hold_of::HoldOf;

use crate::lock::check_ttl;
use crate::space::Inner;
use crate::{Error, Hold, Lock, Result, Space, stop};
use parking_lot::{Condvar, Mutex, MutexGuard};
use sprag_core::admission::Wants;
use sprag_core::lock::Grant;
use sprag_core::readable::Readable;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Waker;
use std::time::Duration;

/// Who holds: an explicit handle, never a thread. Made by [`Space::owner`]; clones are the same owner.
///
/// An owner that acquires a lock it already holds gets the same hold again: same token, same lease.
/// The lock is released with the last of them. Who asks for a share of what the owner has alone gets
/// that; who asks alone for what it shares is told to [upgrade](OwnerHold::upgrade).
///
/// Owners that wait for each other in a circle, in whichever threads and processes they are, find that out at
/// once: the one that began to wait last gets [`Error::Deadlock`]. What an owner holds counts from when it
/// begins to wait, so an owner is for one line of work: threads that go on, and release, while another of the
/// same owner waits are better off with an owner each. Holds of no owner are not looked at.
///
/// ```
/// use sprag::{KeepAlive, Owner, Space};
///
/// fn transfer(owner: &Owner) -> sprag::Result<()> {
///     let hold = owner.lock("accounts")?.acquire()?;
///     hold.keep_alive(KeepAlive::default())?; // however long it takes
///     audit(owner)?;
///     hold.release()
/// }
///
/// fn audit(owner: &Owner) -> sprag::Result<()> {
///     let _hold = owner.lock("accounts")?.acquire()?; // no deadlock: it is this owner's already
///     Ok(())
/// }
///
/// let space = Space::open("mem:")?;
/// transfer(&space.owner())?;
/// # Ok::<(), sprag::Error>(())
/// ```
#[derive(Clone)]
pub struct Owner {
    space: Space,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    held: Mutex<HashMap<Vec<u8>, Held>>,
    /// The serial of the last hold.
    serial: AtomicU64,
    /// Threads and futures that are behind another of the same owner.
    changed: Condvar,
    behind: Mutex<Vec<Waker>>,
    /// What it holds besides, through locks that are not re-entrant.
    others: Mutex<Vec<Grant>>,
}

impl Shared {
    /// Waits until something changed for those who are behind, or until `until_ns` of region time, or for no reason.
    /// [`Error::Stopped`] if the caller says so, who is asked without the owner's mutex; and may fork.
    fn wait_for_change<'a>(
        &'a self,
        space: &Inner,
        mut held: MutexGuard<'a, HashMap<Vec<u8>, Held>>,
        until_ns: u64,
    ) -> Result<MutexGuard<'a, HashMap<Vec<u8>, Held>>> {
        let mut longest = (until_ns != u64::MAX)
            .then(|| space.longest_sleep(until_ns.saturating_sub(space.precise_ns())));
        if stop::is_installed() {
            let look = Duration::from_nanos(stop::LOOK_NS);
            longest = Some(longest.map_or(look, |longest| longest.min(look)));
        }
        match longest {
            Some(longest) => {
                self.changed.wait_for(&mut held, longest);
            }
            None => self.changed.wait(&mut held),
        }
        if stop::is_installed() {
            // Asked whatever woke it: an owner that is busy with other locks tells of changes all the time.
            drop(held);
            stop::check()?;
            space.check_process()?;
            held = self.held.lock();
        }
        Ok(held)
    }

    fn wake_when_changed(&self, waker: &Waker) {
        let mut behind = self.behind.lock();
        if !behind.iter().any(|known| known.will_wake(waker)) {
            behind.push(waker.clone());
        }
    }

    /// Called without the owner's mutex: a waker may run what it wakes.
    fn tell_changed(&self) {
        self.changed.notify_all();
        let behind = std::mem::take(&mut *self.behind.lock());
        behind.into_iter().for_each(Waker::wake);
    }
}

/// A lock that the owner holds, or that one of its threads is about to.
enum Held {
    Acquiring,
    By(Beneath),
    /// One of its threads waits to have alone what the owner shares; it has the hold meanwhile.
    Upgrading,
}

/// The one hold beneath all depths.
struct Beneath {
    hold: Hold<'static>,
    depth: u32,
    /// Tells it from those that the owner had before, whatever its token: that rises with an upgrade.
    serial: u64,
    /// The hold's deadline, for all of them to look at without the owner's mutex.
    deadline_ns: Arc<AtomicU64>,
}

impl Beneath {
    /// Asks the hold, whose deadline may be another then.
    fn ask<T>(&mut self, ask: impl FnOnce(&mut Hold<'static>) -> T) -> T {
        let answer = ask(&mut self.hold);
        // One that is kept alive has its deadline there itself.
        if let Some(deadline_ns) = self.hold.own_deadline_ns() {
            // Relaxed: one number, compared with a clock.
            self.deadline_ns.store(deadline_ns, Relaxed);
        }
        answer
    }
}

/// That a lock is being acquired. Dropped, also by a panic, nobody acquires it any more.
struct Acquiring<'a> {
    shared: &'a Shared,
    name: &'a [u8],
}

impl Drop for Acquiring<'_> {
    fn drop(&mut self) {
        self.shared.held.lock().remove(self.name);
        self.shared.tell_changed();
    }
}

/// A hold that is being upgraded. Dropped, also by a panic, it is the owner's again; but not in a child that was forked
/// meanwhile, where the owner's mutex may be held by a thread that is not there.
struct Upgrading<'a> {
    space: &'a Inner,
    shared: &'a Shared,
    name: &'a [u8],
    beneath: Option<Beneath>,
}

impl Drop for Upgrading<'_> {
    fn drop(&mut self) {
        if self.space.check_process().is_err() {
            return;
        }
        let beneath = self.beneath.take().map(Held::By);
        let entry = beneath.map(|beneath| (self.name.to_vec(), beneath));
        self.shared.held.lock().extend(entry);
        self.shared.tell_changed();
    }
}

/// What one who comes for a lock finds of its owner.
enum Entry<'o> {
    /// The owner has it, and one more depth now.
    Again(OwnerHold<'o>),
    /// Another waits for it.
    Behind,
    /// Nobody: the one who came waits for the owner.
    First,
    /// The owner had it, and lost it. To be dropped without the owner's mutex.
    Lost { lost: Option<Held>, token: u64 },
}

impl Owner {
    pub(crate) fn new(space: &Space) -> Self {
        Self {
            space: space.clone(),
            shared: Arc::default(),
        }
    }

    /// What it holds, by whichever handle.
    pub(crate) fn grants(&self) -> Vec<Grant> {
        let held = self.shared.held.lock();
        let by_name = held.values().filter_map(|held| match held {
            Held::By(beneath) => Some(beneath.hold.grant()),
            Held::Acquiring | Held::Upgrading => None,
        });
        let others = self.shared.others.lock();
        by_name.chain(others.iter().copied()).collect()
    }

    /// Fails unless this is an owner of the space whose engine is given, opened by this process.
    pub(crate) fn check_space(&self, space: &Inner) -> Result<()> {
        // First of all: in a forked child the owner's mutexes may be held by a thread that is not there.
        space.check_process()?;
        if std::ptr::eq(std::ptr::from_ref(&*self.space.inner), space) {
            return Ok(());
        }
        Err(Error::NotHere {
            what: "an owner of another space",
            url: space.url().to_owned(),
            way_out: "make one of this space",
        })
    }

    /// A handle on the lock `name`, 1 to 1,024 bytes, re-entrant for this owner.
    pub fn lock<N: AsRef<[u8]> + ?Sized>(&self, name: &N) -> Result<OwnerLock<'_>> {
        self.space.lock(name)?;
        Ok(OwnerLock {
            owner: Cow::Borrowed(self),
            name: name.as_ref().to_vec(),
            ttl: None,
        })
    }

    /// [`lock`](Self::lock) for a lock of which there is a handle, with that one's lease.
    /// [`Error::NotHere`] if it is of another space.
    pub fn lock_of(&self, lock: &Lock<'_>) -> Result<OwnerLock<'_>> {
        lock.check_owner(self)?;
        Ok(OwnerLock {
            owner: Cow::Borrowed(self),
            name: lock.name(),
            ttl: Some(Duration::from_nanos(lock.lease_ns())),
        })
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut owner = formatter.debug_struct("Owner");
        // In a forked child it has none, and its mutex may be held by a thread that is not there.
        if self.space.inner.check_process().is_ok() {
            let held = self.shared.held.lock();
            let names: Vec<Readable<'_>> = held.keys().map(|name| Readable(name)).collect();
            owner.field("locks", &names);
        }
        owner.finish_non_exhaustive()
    }
}

/// A handle on a named lock, re-entrant for its owner. Made by [`Owner::lock`]; to store or send one, see
/// [`into_owned`](Self::into_owned).
#[derive(Clone)]
pub struct OwnerLock<'o> {
    owner: Cow<'o, Owner>,
    name: Vec<u8>,
    ttl: Option<Duration>,
}

impl<'o> OwnerLock<'o> {
    /// The same lock, with a share of the owner instead of a borrow of it: for a struct, a thread or a
    /// task. Its holds have one each.
    pub fn into_owned(self) -> OwnerLock<'static> {
        OwnerLock {
            owner: Cow::Owned(self.owner.into_owned()),
            name: self.name,
            ttl: self.ttl,
        }
    }

    /// Sets the lease of a first acquire, as [`crate::Lock::ttl`]. Re-entry keeps the first's.
    pub fn ttl(mut self, ttl: Duration) -> Result<Self> {
        check_ttl(ttl)?;
        self.ttl = Some(ttl);
        Ok(self)
    }

    /// Takes the lock if it can be had at once, or is this owner's already.
    ///
    /// # Errors
    ///
    /// As for every way to acquire here: those of [`crate::Lock::try_acquire`], [`Error::Lost`] if the owner
    /// had the lock and lost it, which is told once, [`Error::TooDeep`], and [`Error::OwnerShares`] if the
    /// owner shares it with others.
    pub fn try_acquire(&self) -> Result<Option<OwnerHold<'o>>> {
        self.acquire_timeout(Duration::ZERO)
    }

    /// Takes the lock, waiting its turn for as long as it takes.
    pub fn acquire(&self) -> Result<OwnerHold<'o>> {
        self.get(Wants::Exclusive)
    }

    /// Takes the lock, waiting its turn for at most `timeout`; `None` if it did not come.
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<Option<OwnerHold<'o>>> {
        self.get_timeout(Wants::Exclusive, timeout)
    }

    /// The same as a future, which any executor can drive; dropping it leaves the queue. While one is
    /// pending, it waits for the whole owner: its threads and other futures get the lock with it, so poll
    /// it or drop it.
    pub fn acquire_async(&self) -> OwnerAcquire<'o> {
        OwnerAcquire::new(self.clone(), Wants::Exclusive)
    }

    /// Takes the lock beside others who share it, if that can be had at once, or the owner has it already,
    /// shared or alone.
    pub fn try_acquire_shared(&self) -> Result<Option<OwnerHold<'o>>> {
        self.acquire_shared_timeout(Duration::ZERO)
    }

    /// Takes the lock beside others who share it, waiting its turn for as long as it takes.
    pub fn acquire_shared(&self) -> Result<OwnerHold<'o>> {
        self.get(Wants::Shared)
    }

    /// [`acquire_shared`](Self::acquire_shared), waiting for at most `timeout`; `None` if its turn did not
    /// come.
    pub fn acquire_shared_timeout(&self, timeout: Duration) -> Result<Option<OwnerHold<'o>>> {
        self.get_timeout(Wants::Shared, timeout)
    }

    /// [`acquire_shared`](Self::acquire_shared) as a future, as [`acquire_async`](Self::acquire_async).
    pub fn acquire_shared_async(&self) -> OwnerAcquire<'o> {
        OwnerAcquire::new(self.clone(), Wants::Shared)
    }

    fn get(&self, wants: Wants) -> Result<OwnerHold<'o>> {
        loop {
            if let Some(hold) = self.get_timeout(wants, Duration::MAX)? {
                return Ok(hold);
            }
        }
    }

    fn get_timeout(&self, wants: Wants, timeout: Duration) -> Result<Option<OwnerHold<'o>>> {
        let (owner, shared) = (&*self.owner, &*self.owner.shared);
        owner.space.inner.check_process()?;
        let until_ns = owner.space.inner.until_ns(timeout);
        let mut held = shared.held.lock();
        loop {
            match self.enter(&mut held, wants)? {
                Entry::Again(hold) => return Ok(Some(hold)),
                Entry::First => break,
                Entry::Lost { lost, token } => {
                    drop(held);
                    // With its callback, whose captures may have a hold of this owner's to drop.
                    drop(lost);
                    return Err(Error::lost(Some(&self.name), token));
                }
                Entry::Behind if until_ns <= owner.space.inner.precise_ns() => {
                    return Ok(None);
                }
                Entry::Behind => {
                    held = shared.wait_for_change(&owner.space.inner, held, until_ns)?;
                }
            }
        }
        drop(held);
        let acquiring = Acquiring {
            shared,
            name: &self.name,
        };
        let acquired = self.acquire_first(wants, until_ns);
        std::mem::forget(acquiring);
        self.settle(acquired)
    }

    /// What the owner has of the lock. One who is first must [`settle`](Self::settle).
    fn enter(&self, held: &mut HashMap<Vec<u8>, Held>, wants: Wants) -> Result<Entry<'o>> {
        Ok(match held.get_mut(&self.name) {
            None => {
                held.insert(self.name.clone(), Held::Acquiring);
                Entry::First
            }
            Some(Held::By(beneath)) => {
                let token = beneath.hold.token();
                if !beneath.hold.is_held_by_engine() {
                    beneath.ask(Hold::note_loss);
                    // Told once; the next one begins anew, also if a hold was forgotten.
                    let lost = held.remove(&self.name);
                    return Ok(Entry::Lost { lost, token });
                }
                let lock = || Readable(&self.name).to_string();
                if wants == Wants::Exclusive && beneath.hold.is_shared() {
                    return Err(Error::OwnerShares { lock: lock() });
                }
                beneath.depth = beneath.depth.checked_add(1).ok_or_else(|| Error::TooDeep {
                    lock: lock(),
                    depth: beneath.depth,
                })?;
                Entry::Again(self.hold(token, beneath, true))
            }
            // Another of the same owner waits for it: share what that one gets.
            Some(Held::Acquiring | Held::Upgrading) => Entry::Behind,
        })
    }

    /// Says how it went for the first, to all of the owner.
    fn settle(&self, acquired: Result<Option<Hold<'static>>>) -> Result<Option<OwnerHold<'o>>> {
        // In a child that was forked meanwhile the owner's mutex may be held by a thread that is not there.
        self.owner.space.inner.check_process()?;
        let shared = &*self.owner.shared;
        let mut held = shared.held.lock();
        let result = match acquired {
            Ok(Some(hold)) => {
                let token = hold.token();
                // Relaxed: a number of this owner's, told under its mutex.
                let serial = shared.serial.fetch_add(1, Relaxed);
                let deadline_ns = Arc::new(AtomicU64::new(hold.deadline_ns()));
                let beneath = Beneath {
                    hold,
                    depth: 1,
                    serial,
                    deadline_ns,
                };
                let hold = self.hold(token, &beneath, false);
                held.insert(self.name.clone(), Held::By(beneath));
                Ok(Some(hold))
            }
            none => {
                held.remove(&self.name);
                none.map(|_| None)
            }
        };
        drop(held);
        shared.tell_changed();
        result
    }

    /// The lock itself.
    fn plain(&self) -> Result<Lock<'_>> {
        let lock = self.owner.space.lock(&self.name)?;
        match self.ttl {
            Some(ttl) => lock.ttl(ttl),
            None => Ok(lock),
        }
    }

    fn acquire_first(&self, wants: Wants, until_ns: u64) -> Result<Option<Hold<'static>>> {
        let lock = self.plain()?;
        let holds = self.owner.grants();
        let hold = lock.get_holding(wants, &holds, until_ns)?;
        Ok(hold.map(Hold::into_owned))
    }

    fn hold(&self, token: u64, beneath: &Beneath, is_reentry: bool) -> OwnerHold<'o> {
        OwnerHold {
            owner: self.owner.clone(),
            name: self.name.clone(),
            token,
            serial: beneath.serial,
            deadline_ns: beneath.deadline_ns.clone(),
            is_reentry,
            is_over: false,
        }
    }
}

impl fmt::Debug for OwnerLock<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OwnerLock")
            .field("name", &Readable(&self.name))
            .field("ttl", &self.ttl)
            .finish()
    }
}
