//! Holds: what has been acquired, by one token and lease, and how it is kept.

use crate::background::Kept;
use crate::lock::check_ttl;
use crate::metrics::{Often, Seldom};
use crate::share::Share;
use crate::space::Inner;
use crate::wait::{self, Granted, Want};
use crate::{Error, Result};
use sprag_core::SessionId;
use sprag_core::admission::Wants;
use sprag_core::lock::{Grant, Released, Renewed, Upgrade};
use sprag_core::readable::Readable;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Releases a hold by its grant; whether it was still held.
#[inline(always)]
pub(crate) fn release(inner: &Inner, grant: &Grant) -> bool {
    let released = inner.engine.release(grant, || inner.now_ns());
    finish_release(inner, released)
}

/// That a hold is lost, by the name of its lock if that can still be told. Counted, unless its `deadline_ns` says that
/// it was told before. Takes what it needs of the hold, not the hold: so that lives in registers.
#[cold]
#[inline(never)]
fn lost(inner: &Inner, grant: Grant, name_hash: u64, deadline_ns: u64) -> Error {
    if deadline_ns != 0 {
        inner.counts.seldom(Seldom::Lost);
    }
    told_lost(inner, grant, name_hash)
}

/// That a hold is lost, which was counted.
fn told_lost(inner: &Inner, grant: Grant, name_hash: u64) -> Error {
    let name = inner.engine.name_of_hold(&grant, name_hash);
    Error::lost(name.as_deref(), grant.token)
}

#[inline(always)]
pub(crate) fn finish_release(inner: &Inner, released: Released) -> bool {
    match released {
        Released::Done { wake } => {
            inner.wake(wake);
            true
        }
        Released::NotHeld => false,
    }
}

/// A hold on a lock; dropping it releases the lock.
///
/// A hold can end before it is dropped: when its lease ends, or somebody breaks the lock. Ask
/// [`is_valid`](Self::is_valid) before each step that needs the lock, and send [`token`](Self::token)
/// along to a fence, which is the only thing that stops a step already under way.
///
/// It borrows its space; one that is stored or sent is a `Hold<'static>`, by
/// [`into_owned`](Self::into_owned) or from a lock that was made [owned](crate::Lock::into_owned).
///
/// One that is forgotten ([`std::mem::forget`], a leak) holds the lock until its lease ends or the space is
/// closed; kept alive, until [`KeepAlive::at_most`] is over.
#[must_use = "dropping a hold releases the lock"]
pub struct Hold<'s> {
    space: Share<'s>,
    /// With no token, 0, once nothing is left to release: it is done, or handed on. No flag beside it, for
    /// a byte would cost as much as the release.
    grant: Grant,
    lease_ns: u64,
    /// Region time until which the holder may take the lock for its own; 0 once it was told that it is lost.
    deadline_ns: u64,
    /// To make sure of the lock's name when that is asked for.
    name_hash: u64,
    kept: Option<Kept>,
}

impl<'s> Hold<'s> {
    #[inline(always)]
    pub(crate) fn new(
        space: Share<'s>,
        grant: Grant,
        asked_at_ns: u64,
        lease_ns: u64,
        name_hash: u64,
    ) -> Self {
        Self {
            space,
            grant,
            lease_ns,
            // From before the request left, so never past the engine's own.
            deadline_ns: asked_at_ns.saturating_add(lease_ns),
            name_hash,
            kept: None,
        }
    }
}

impl Hold<'_> {
    /// The same hold, with a share of the space instead of a borrow of it: for a struct, a thread or a
    /// task.
    pub fn into_owned(mut self) -> Hold<'static> {
        Hold {
            space: self.space.to_owned(),
            grant: self.take_grant(),
            lease_ns: self.lease_ns,
            deadline_ns: self.deadline_ns,
            name_hash: self.name_hash,
            kept: self.kept.take(),
        }
    }

    /// The fencing token: higher than that of every earlier hold of this lock. Fits 53 bits.
    #[inline]
    pub fn token(&self) -> u64 {
        self.grant.token
    }

    /// A share of the space, for what is to be done once this is over.
    pub(crate) fn space(&self) -> Arc<Inner> {
        self.space.to_arc()
    }

    /// The grant, for whoever waits while this is held.
    pub(crate) fn grant(&self) -> Grant {
        self.grant
    }

    /// Whether the lease still runs, by the holder's own clock: a clock read, no shared memory. Errs
    /// towards `false` near the end; also `false` once a call told that the hold is lost. Async-signal-safe.
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.space.is_in_lease(self.deadline_ns())
    }

    /// What is left of the lease by the holder's own clock; zero once it is over.
    pub fn lease_left(&self) -> Duration {
        Duration::from_nanos(self.deadline_ns().saturating_sub(self.space.precise_ns()))
    }

    /// Whether the lock is still held under this token, by the engine's word: one load more than
    /// [`is_valid`](Self::is_valid), and also notices a broken lock.
    pub fn is_held(&self) -> bool {
        let inner = &*self.space;
        self.is_valid()
            && inner.engine.is_held(&self.grant, inner.precise_ns())
            && inner.check_in_place().is_ok()
    }

    /// Whether the engine knows of it, also when so little of the lease is left that the holder is told
    /// otherwise.
    pub(crate) fn is_held_by_engine(&self) -> bool {
        let inner = &*self.space;
        inner.engine.is_held(&self.grant, inner.precise_ns())
    }

    /// The grant, of which nothing is left to do here.
    #[inline(always)]
    fn take_grant(&mut self) -> Grant {
        let grant = self.grant;
        self.grant.token = 0;
        grant
    }

    /// The deadline, unless it lies where this is kept alive.
    pub(crate) fn own_deadline_ns(&self) -> Option<u64> {
        self.kept.is_none().then_some(self.deadline_ns)
    }

    pub(crate) fn deadline_ns(&self) -> u64 {
        match &self.kept {
            Some(kept) => kept.deadline_ns(),
            None => self.deadline_ns,
        }
    }

    /// That it is lost, which its holder sees from now on and which counts once.
    #[cold]
    fn lost(&mut self) -> Error {
        self.note_loss();
        told_lost(&self.space, self.grant, self.name_hash)
    }

    #[cold]
    pub(crate) fn note_loss(&mut self) {
        match &self.kept {
            Some(kept) => kept.note_loss(&self.space),
            None if self.deadline_ns != 0 => {
                self.deadline_ns = 0;
                self.space.counts.seldom(Seldom::Lost);
            }
            None => {}
        }
    }

    /// Starts the lease anew, from now, with the length it had. [`Error::Lost`] once it is over.
    pub fn renew(&mut self) -> Result<()> {
        let inner = &*self.space;
        inner.check_process()?;
        inner.check_in_place()?;
        let renewed = if let Some(kept) = &self.kept {
            kept.renew(inner, &self.grant, self.lease_ns)?
        } else {
            let now_ns = inner.precise_ns();
            let renewed = inner.engine.renew(&self.grant, now_ns, self.lease_ns)?;
            if let Renewed::Until(_) = renewed {
                self.deadline_ns = now_ns.saturating_add(self.lease_ns);
            }
            renewed
        };
        match renewed {
            Renewed::Until(_) => {
                self.space.counts.seldom(Seldom::Renewed);
                Ok(())
            }
            Renewed::NotHeld => Err(self.lost()),
        }
    }

    /// [`renew`](Self::renew) with another length: 1 ms to 366 days, else [`Error::Duration`].
    pub fn extend(&mut self, ttl: Duration) -> Result<()> {
        self.lease_ns = check_ttl(ttl)?;
        self.renew()
    }

    /// Has the lease renewed in the background, by one thread for the whole space, until the hold is
    /// dropped, lost, or `options.at_most` is over. A second call replaces what the first asked for, also its
    /// callback. [`Error::Lost`] if the hold was lost already, and nothing is called back then;
    /// [`Error::Thread`] if that thread can't be started.
    ///
    /// How often it is renewed, and when a loss is told: [`KeepAlive`].
    pub fn keep_alive(&mut self, options: KeepAlive) -> Result<()> {
        let deadline_ns = Arc::new(AtomicU64::new(self.deadline_ns()));
        self.replace_keep_alive(options, deadline_ns).map(drop)
    }

    /// [`keep_alive`](Self::keep_alive), with the hold's deadline in `deadline_ns` from then on; with what it replaces, for
    /// the caller to drop.
    pub(crate) fn replace_keep_alive(
        &mut self,
        options: KeepAlive,
        deadline_ns: Arc<AtomicU64>,
    ) -> Result<Option<Kept>> {
        let inner = self.space.to_arc();
        inner.check_process()?;
        inner.check_in_place()?;
        if !self.is_held_by_engine() {
            return Err(self.lost());
        }
        let kept =
            inner
                .background
                .keep(&inner, self.grant, deadline_ns, self.lease_ns, options)?;
        Ok(self.kept.replace(kept))
    }

    /// Whether others may hold the lock beside this one.
    pub fn is_shared(&self) -> bool {
        self.space.engine.is_shared(&self.grant)
    }

    /// Takes alone what this hold shares with others, waiting for them to release it. It keeps its share
    /// meanwhile, nobody new gets one, and those who queue come after. The hold has a new, higher token then, and
    /// its lease starts anew, unless it would have ended later. A hold that has its lock alone has what it wants
    /// already.
    ///
    /// # Errors
    ///
    /// [`Error::UpgradeConflict`] if another who shares the lock waits for the same: each would wait for the
    /// other, so release this hold, and acquire anew. It is held still, and shared. [`Error::Lost`] once
    /// it is over.
    pub fn upgrade(&mut self) -> Result<()> {
        while !self.upgrade_until(u64::MAX, &[])? {}
        Ok(())
    }

    /// [`upgrade`](Self::upgrade), waiting for at most `timeout`; `false` if others share it still, and so
    /// does this hold.
    pub fn upgrade_timeout(&mut self, timeout: Duration) -> Result<bool> {
        self.upgrade_until(self.space.until_ns(timeout), &[])
    }

    /// [`upgrade`](Self::upgrade) if that can be had at once.
    pub fn try_upgrade(&mut self) -> Result<bool> {
        self.upgrade_until(0, &[])
    }

    /// [`upgrade`](Self::upgrade), until `until_ns` of region time, while the owner has `holds`, this one among
    /// them.
    pub(crate) fn upgrade_until(&mut self, until_ns: u64, holds: &[Grant]) -> Result<bool> {
        let inner = &*self.space;
        inner.check_process()?;
        inner.check_in_place()?;
        let now_ns = inner.precise_ns();
        if self.grant.is_plain() {
            return if inner.engine.is_held(&self.grant, now_ns) {
                Ok(true)
            } else {
                Err(self.lost())
            };
        }
        match inner
            .engine
            .try_upgrade(&self.grant, now_ns, self.lease_ns)?
        {
            Upgrade::Granted(grant) => {
                inner.counts.often(Often::Acquired);
                self.replace(grant, now_ns).map(|()| true)
            }
            Upgrade::NotHeld => Err(self.lost()),
            Upgrade::Conflict => {
                let name = inner.engine.name_of_hold(&self.grant, self.name_hash);
                Err(Error::UpgradeConflict {
                    lock: name.map(|name| Readable(&name).to_string()),
                })
            }
            Upgrade::Shared if until_ns <= now_ns => {
                inner.counts.seldom(Seldom::Busy);
                self.end_upgrade();
                Ok(false)
            }
            Upgrade::Shared => {
                let upgraded = self.wait_for_upgrade(until_ns, holds);
                // A wait that was begun ends it itself; one for which there was no room has not.
                if upgraded.is_err() && self.space.check_process().is_ok() {
                    self.end_upgrade();
                }
                upgraded
            }
        }
    }

    /// Waits for those who share the lock too. This hold is the one whose turn it is.
    fn wait_for_upgrade(&mut self, until_ns: u64, holds: &[Grant]) -> Result<bool> {
        let inner = &*self.space;
        let name = inner.engine.name_of_hold(&self.grant, self.name_hash);
        let Some(name) = name else {
            return Err(self.lost());
        };
        let name = inner.engine.lock_name(&name)?;
        let want = Want {
            holds,
            ..Want::of(&name, Wants::Upgrade(self.grant))
        };
        match wait::wait(inner, &want, self.lease_ns, until_ns) {
            Ok(Some(Granted { grant, asked_at_ns })) => {
                self.replace(grant, asked_at_ns).map(|()| true)
            }
            Ok(None) => Ok(false),
            Err(error) => {
                if matches!(error, Error::Lost { .. }) {
                    self.note_loss();
                }
                Err(error)
            }
        }
    }

    /// Keeps others out no more, by an upgrade that did not come about.
    fn end_upgrade(&self) {
        let inner = &*self.space;
        let wake = inner.engine.end_upgrade(&self.grant, inner.precise_ns());
        inner.wake(wake);
    }

    /// Goes on sharing the lock with others instead of having it alone, with the same token and what is left of
    /// the lease. Those who wait for a share are let in. [`Error::Lost`] once the hold is over. A hold that is
    /// shared stays so.
    pub fn downgrade(&mut self) -> Result<()> {
        let inner = &*self.space;
        inner.check_process()?;
        inner.check_in_place()?;
        let now_ns = inner.precise_ns();
        let downgrade = || inner.engine.downgrade(&self.grant, now_ns);
        let downgraded = match &self.kept {
            Some(kept) => kept.exchange(inner, downgrade, |(grant, _)| *grant)?,
            None => downgrade()?,
        };
        let Some((grant, wake)) = downgraded else {
            return Err(self.lost());
        };
        inner.wake(wake);
        self.grant = grant;
        Ok(())
    }

    /// Goes on with another grant of the same hold, whose lease began at `asked_at_ns`.
    fn replace(&mut self, grant: Grant, asked_at_ns: u64) -> Result<()> {
        self.grant = grant;
        self.deadline_ns = asked_at_ns.saturating_add(self.lease_ns);
        match &self.kept {
            Some(kept) => kept.replace(&self.space, grant, self.deadline_ns),
            None => Ok(()),
        }
    }

    /// Releases the lock, and says whether it was still this hold's: [`Error::Lost`] if somebody else has
    /// taken it since. One whose lease is over is released all the same while nobody has.
    #[inline]
    pub fn release(mut self) -> Result<()> {
        self.end()
    }

    /// [`release`](Self::release) in place, after which there is nothing to do but to drop it: for hosts that keep holds in
    /// memory of their own.
    #[doc(hidden)]
    #[inline(always)]
    pub fn end(&mut self) -> Result<()> {
        // The renewal stops before the release, so that it never sees a hold that is not there.
        if self.kept.is_some() {
            self.stop_renewal();
        }
        let inner = &*self.space;
        // Field by field where it is: a copy of the whole would be read wider than it was written just now, and wait.
        let ended = match inner.check_process() {
            Ok(()) if release(inner, &self.grant) => Ok(()),
            Ok(()) => Err(lost(inner, self.grant, self.name_hash, self.deadline_ns)),
            Err(error) => Err(error),
        };
        self.grant.token = 0;
        ended
    }

    #[cold]
    fn stop_renewal(&mut self) {
        self.deadline_ns = self.deadline_ns();
        self.kept = None;
    }

    /// Lets the hold live on without this process, until its lease ends or somebody releases it by
    /// the token returned: for scripts that acquire and release with two commands. The lease starts anew.
    /// [`Error::Lost`] once it is over.
    ///
    /// ```
    /// use sprag::Space;
    ///
    /// let space = Space::open("mem:")?; // two processes would open the same shm:NAME
    /// let lock = space.lock("deploy")?;
    /// let token = lock.acquire()?.detach()?; // to be told to whoever goes on
    ///
    /// let hold = lock.adopt_token(token)?; // a Hold as any other, under the same token
    /// assert_eq!(hold.token(), token);
    /// hold.release()?;
    /// assert!(lock.release_token(token).is_err(), "nobody's any more");
    /// # Ok::<(), sprag::Error>(())
    /// ```
    pub fn detach(mut self) -> Result<u64> {
        self.stop_renewal();
        let inner = &*self.space;
        let to = SessionId::DETACHED;
        inner.check_process()?;
        let renewed = inner
            .engine
            .transfer(&self.grant, to, inner.precise_ns(), self.lease_ns)?;
        let grant = self.take_grant();
        match renewed {
            Renewed::Until(_) => Ok(grant.token),
            Renewed::NotHeld => Err(lost(&self.space, grant, self.name_hash, self.deadline_ns)),
        }
    }
}

impl Drop for Hold<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.grant.token != 0 {
            // A hold lost meanwhile has nothing to release; `release` is for those who want to know.
            let _ = self.end();
        }
    }
}

impl fmt::Debug for Hold<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.space.engine.name_of_hold(&self.grant, self.name_hash);
        formatter
            .debug_struct("Hold")
            .field("lock", &name.as_deref().map(Readable))
            .field("token", &self.token())
            .field("lease_left", &self.lease_left())
            .field("is_kept_alive", &self.kept.is_some())
            .finish_non_exhaustive()
    }
}

/// How a hold is kept alive.
///
/// The lease is renewed each time a third of it is over, so that two more tries fit before it ends, and the
/// hold is looked at every 200 ms besides. So a lock that was broken, or whose region was removed, is told
/// of within 200 ms, and a lease that could not be renewed by its end, as far as the system lets the
/// background thread run. From then on [`Hold::is_valid`] is false as well.
///
/// A callback captures what it is to know of the hold:
///
/// ```
/// use sprag::{KeepAlive, Space};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// let space = Space::open("mem:")?;
/// let (name, stop) = ("nightly-report", Arc::new(AtomicBool::new(false)));
/// let mut hold = space.lock(name)?.acquire()?;
/// let (token, told) = (hold.token(), stop.clone());
/// hold.keep_alive(KeepAlive {
///     on_lost: Some(Arc::new(move || {
///         eprintln!("lost {name}, held under token {token}");
///         told.store(true, Ordering::Relaxed);
///     })),
///     ..KeepAlive::default()
/// })?;
/// while !stop.load(Ordering::Relaxed) {
///     // A step of the work, for as long as there is some.
///     # break;
/// }
/// hold.release()?;
/// # Ok::<(), sprag::Error>(())
/// ```
#[derive(Clone)]
pub struct KeepAlive {
    /// How long after the call renewing stops; 24 hours by default. The hold then lasts until its lease
    /// ends, which counts as its loss and is told so. A holder that hangs for good must lose the lock one
    /// day; [`Duration::MAX`] for one that may not.
    pub at_most: Duration,
    /// Called once, in the background thread, when the hold is lost; nothing by default. Never for a hold
    /// that is released, dropped or detached. It must not block, since that thread renews the others.
    pub on_lost: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl fmt::Debug for KeepAlive {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("KeepAlive")
            .field("at_most", &self.at_most)
            .field(
                "on_lost",
                &self.on_lost.as_ref().map(|_| format_args!("..")),
            )
            .finish()
    }
}

impl Default for KeepAlive {
    fn default() -> Self {
        Self {
            at_most: Duration::from_hours(24),
            on_lost: None,
        }
    }
}
