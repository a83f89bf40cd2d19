//! Locks and holds.

use crate::background::{Kept, Wait};
use crate::share::Share;
use crate::space::Inner;
use crate::wait::{self, Granted};
use crate::{Error, Result, Space};
use sprag_core::lock::{Attempt, Grant, LEASE_NS_MAX, LEASE_NS_MIN, Released, Renewed};
use sprag_core::readable::Readable;
use sprag_core::{Name, SessionId};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// The lease of a hold that asks for no other: 30 seconds.
pub(crate) const DEFAULT_TTL_NS: u64 = 30_000_000_000;

/// A handle on a named lock. Made by [`Space::lock`]; cheap to make, for a call or for good.
///
/// Not re-entrant: a second acquire waits for the first hold. For re-entry see [`Space::owner`].
///
/// It borrows its space, and so do its holds. One that is to be stored, or sent to a thread or a task, takes
/// a share of the space instead: [`into_owned`](Self::into_owned), which holds have as well.
///
/// ```
/// use sprag::{Hold, Lock, Space};
///
/// struct Worker {
///     lock: Lock<'static>,
///     hold: Option<Hold<'static>>,
/// }
///
/// let space = Space::open("mem:")?;
/// let lock = space.lock("orders/42")?.into_owned();
/// let mut worker = Worker { lock, hold: None };
/// let worker = std::thread::spawn(move || {
///     worker.hold = worker.lock.try_acquire()?;
///     Ok::<_, sprag::Error>(worker)
/// });
/// let worker = worker.join().expect("no panic")?;
/// assert!(worker.hold.is_some_and(|hold| hold.is_valid()));
/// # Ok::<(), sprag::Error>(())
/// ```
#[derive(Clone)]
pub struct Lock<'s> {
    space: Share<'s>,
    name: Name,
    lease_ns: u64,
}

impl<'s> Lock<'s> {
    #[inline]
    pub(crate) fn new(space: &'s Space, name: &[u8]) -> Result<Self> {
        let name = space.inner.engine.lock_name(name)?;
        Ok(Self {
            space: Share::borrow(&space.inner),
            name,
            lease_ns: DEFAULT_TTL_NS,
        })
    }

    /// The same lock, with a share of the space instead of a borrow of it: for a struct, a thread or a
    /// task. Its holds and futures have a share each, which costs two atomic additions more.
    pub fn into_owned(self) -> Lock<'static> {
        Lock {
            space: self.space.to_owned(),
            name: self.name,
            lease_ns: self.lease_ns,
        }
    }

    /// Sets the lease of the holds to come: 1 ms to 366 days, else [`Error::Duration`]; 30 s if not set. A
    /// hold that is not renewed ends then, whatever its holder does.
    #[inline]
    pub fn ttl(mut self, ttl: Duration) -> Result<Self> {
        self.lease_ns = check_ttl(ttl)?;
        Ok(self)
    }

    /// The name.
    pub fn name(&self) -> Vec<u8> {
        self.name.to_vec()
    }

    /// Takes the lock if it can be had at once; `None` if not. Tens of nanoseconds when it is free.
    ///
    /// # Errors
    ///
    /// As for every way to acquire: [`Error::Forked`], and [`Error::Engine`] when the region has no room
    /// for another lock (or, to wait, for another waiter), was replaced or is damaged.
    #[inline(always)]
    pub fn try_acquire(&self) -> Result<Option<Hold<'s>>> {
        match self.take_if_free() {
            Some(hold) => Ok(Some(hold)),
            // A return type of its own keeps the result of the common case in registers.
            None => self.try_acquire_slowly().map_err(|error| *error),
        }
    }

    /// Takes the lock, waiting its turn for as long as it takes.
    #[inline(always)]
    pub fn acquire(&self) -> Result<Hold<'s>> {
        match self.take_if_free() {
            Some(hold) => Ok(hold),
            None => self.acquire_slowly().map_err(|error| *error),
        }
    }

    /// Takes the lock, waiting its turn for at most `timeout`; `None` if it did not come. A wait that
    /// times out leaves nothing behind.
    #[inline(always)]
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<Option<Hold<'s>>> {
        match self.take_if_free() {
            Some(hold) => Ok(Some(hold)),
            None if timeout.is_zero() => self.try_acquire_slowly().map_err(|error| *error),
            None => {
                let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
                let until_ns = self.space.precise_ns().saturating_add(timeout_ns);
                self.acquire_until(until_ns).map_err(|error| *error)
            }
        }
    }

    /// The common case: the lock is known, where most are, free, and nobody waits for it. In line
    /// wherever it is called: a hold handed over through memory costs as much as the acquire itself,
    /// for it is written in words and read, at once, in wider pieces than the processor forwards.
    #[inline(always)]
    fn take_if_free(&self) -> Option<Hold<'s>> {
        let inner = &*self.space;
        inner.check_process().ok()?;
        let now_ns = inner.now_ns();
        if inner.is_to_look(now_ns) {
            return None;
        }
        let (name, by) = (&self.name, inner.session);
        let grant = inner
            .engine
            .try_acquire_free(name, by, now_ns, self.lease_ns)?;
        Some(self.hold(grant, now_ns))
    }

    #[cold]
    fn try_acquire_slowly(&self) -> Result<Option<Hold<'s>>, Box<Error>> {
        let inner = &*self.space;
        inner.check_process()?;
        // It may take the lock from a holder whose lease is over.
        let now_ns = inner.precise_ns();
        inner.check_in_place_now_and_then(now_ns)?;
        let (name, by) = (&self.name, inner.session);
        match inner
            .engine
            .try_acquire(name, by, now_ns, self.lease_ns)
            .map_err(Error::from)?
        {
            Attempt::Granted(grant) => Ok(Some(self.hold(grant, now_ns))),
            Attempt::Busy => Ok(None),
        }
    }

    #[cold]
    fn acquire_slowly(&self) -> Result<Hold<'s>, Box<Error>> {
        loop {
            // `u64::MAX` of region time never comes, but the type does not say so.
            if let Some(hold) = self.acquire_until(u64::MAX)? {
                return Ok(hold);
            }
        }
    }

    #[cold]
    fn acquire_until(&self, until_ns: u64) -> Result<Option<Hold<'s>>, Box<Error>> {
        if let Some(hold) = self.try_acquire_slowly()? {
            return Ok(Some(hold));
        }
        let inner = &*self.space;
        let granted = wait::wait(inner, &self.name, self.lease_ns, until_ns)?;
        Ok(granted.map(|Granted { grant, asked_at_ns }| self.hold(grant, asked_at_ns)))
    }

    /// [`acquire`](Self::acquire) as a future of no particular runtime. Ready at once, without a trip
    /// through the runtime, when the lock is free. Dropping it leaves the queue, or releases what was
    /// granted meanwhile. It fails as [`try_acquire`](Self::try_acquire) does, and with [`Error::Thread`].
    ///
    /// ```
    /// use sprag::{Lock, Space};
    ///
    /// async fn report(lock: Lock<'static>) -> sprag::Result<u64> {
    ///     let hold = lock.acquire_async().await?; // may be held across other awaits
    ///     let token = hold.token();
    ///     hold.release()?;
    ///     Ok(token)
    /// }
    ///
    /// let space = Space::open("mem:")?;
    /// let task = report(space.lock("nightly-report")?.into_owned()); // can be spawned
    /// # let mut task = std::pin::pin!(task);
    /// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// # assert!(task.as_mut().poll(&mut context).is_ready());
    /// # Ok::<(), sprag::Error>(())
    /// ```
    pub fn acquire_async(&self) -> Acquire<'s> {
        Acquire {
            lock: self.clone(),
            wait: None,
        }
    }

    /// Ends the hold with this token, whoever took it: the other half of [`Hold::detach`].
    /// [`Error::Lost`] if the lock is not held under this token.
    pub fn release_token(&self, token: u64) -> Result<()> {
        let inner = &*self.space;
        inner.check_process()?;
        let released = inner
            .engine
            .release_by_name(&self.name, token, inner.precise_ns());
        if finish_release(inner, released) {
            Ok(())
        } else {
            Err(Error::lost(Some(&self.name()), token))
        }
    }

    /// Sets the lease of the hold with this token to this handle's, from now. [`Error::Lost`] if the lock
    /// is not held under this token, or its lease is over.
    pub fn renew_token(&self, token: u64) -> Result<()> {
        let inner = &*self.space;
        inner.check_process()?;
        inner.check_in_place()?;
        let now_ns = inner.precise_ns();
        match inner
            .engine
            .renew_by_name(&self.name, token, now_ns, self.lease_ns)?
        {
            Renewed::Until(_) => Ok(()),
            Renewed::NotHeld => Err(Error::lost(Some(&self.name()), token)),
        }
    }

    /// Takes over the hold with this token from whoever has it, with this handle's lease: how a hold
    /// goes from one process to another. In the space that has it already, both are the same hold. [`Error::Lost`] if the lock is not held under this token, or its
    /// lease is over.
    pub fn adopt_token(&self, token: u64) -> Result<Hold<'s>> {
        let inner = &*self.space;
        inner.check_process()?;
        inner.check_session()?;
        inner.check_in_place()?;
        let now_ns = inner.precise_ns();
        let (name, to) = (&self.name, inner.session);
        match inner.engine.adopt(name, token, to, now_ns, self.lease_ns)? {
            Some(grant) => Ok(self.hold(grant, now_ns)),
            None => Err(Error::lost(Some(&self.name()), token)),
        }
    }

    #[inline(always)]
    fn hold(&self, grant: Grant, asked_at_ns: u64) -> Hold<'s> {
        Hold {
            space: self.space.clone(),
            grant,
            lease_ns: self.lease_ns,
            // From before the request left, so never past the engine's own.
            deadline_ns: asked_at_ns + self.lease_ns,
            name_hash: self.name.raw_hash(),
            kept: None,
        }
    }
}

impl fmt::Debug for Lock<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Lock")
            .field("name", &Readable(&self.name()))
            .field("ttl", &Duration::from_nanos(self.lease_ns))
            .finish()
    }
}

pub(crate) fn check_ttl(ttl: Duration) -> Result<u64> {
    check_time("ttl", ttl)
}

/// Checks a time that something is held or kept, named in the error, against the bounds of leases.
pub(crate) fn check_time(what: &'static str, time: Duration) -> Result<u64> {
    match u64::try_from(time.as_nanos()) {
        Ok(time_ns) if (LEASE_NS_MIN..=LEASE_NS_MAX).contains(&time_ns) => Ok(time_ns),
        _ => Err(Error::Duration {
            what,
            value: time,
            min: Duration::from_nanos(LEASE_NS_MIN),
            max: Duration::from_nanos(LEASE_NS_MAX),
        }),
    }
}

/// Releases a hold by its grant; whether it was still held.
#[inline(always)]
pub(crate) fn release(inner: &Inner, grant: &Grant) -> bool {
    let released = inner.engine.release(grant, || inner.now_ns());
    finish_release(inner, released)
}

/// That a hold is lost, by the name of its lock if that can still be told. Takes what it needs of the hold,
/// not the hold: so that lives in registers.
#[cold]
#[inline(never)]
fn lost(inner: &Inner, grant: Grant, name_hash: u64) -> Error {
    let name = inner.engine.name_of_hold(&grant, name_hash);
    Error::lost(name.as_deref(), grant.token)
}

#[inline(always)]
fn finish_release(inner: &Inner, released: Released) -> bool {
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
/// [`into_owned`](Self::into_owned) or from a lock that was made [owned](Lock::into_owned).
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
    /// Region time until which the holder may take the lock for its own.
    deadline_ns: u64,
    /// To make sure of the lock's name when that is asked for.
    name_hash: u64,
    kept: Option<Kept>,
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

    /// Whether the lease still runs, by the holder's own clock: a clock read, no shared memory. Errs
    /// towards `false` near the end. Async-signal-safe.
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

    fn deadline_ns(&self) -> u64 {
        match &self.kept {
            Some(kept) => kept.deadline_ns(),
            None => self.deadline_ns,
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
                self.deadline_ns = now_ns + self.lease_ns;
            }
            renewed
        };
        match renewed {
            Renewed::Until(_) => Ok(()),
            Renewed::NotHeld => Err(lost(&self.space, self.grant, self.name_hash)),
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
        self.replace_keep_alive(options).map(drop)
    }

    /// [`keep_alive`](Self::keep_alive), with what it replaces, for the caller to drop.
    pub(crate) fn replace_keep_alive(&mut self, options: KeepAlive) -> Result<Option<Kept>> {
        let inner = self.space.to_arc();
        inner.check_process()?;
        inner.check_in_place()?;
        if !self.is_held_by_engine() {
            return Err(lost(&inner, self.grant, self.name_hash));
        }
        let kept = inner.background.keep(
            &inner,
            self.grant,
            self.deadline_ns(),
            self.lease_ns,
            options,
        )?;
        Ok(self.kept.replace(kept))
    }

    /// Releases the lock, and says whether it was still this hold's: [`Error::Lost`] if somebody else has
    /// taken it since. One whose lease is over is released all the same while nobody has.
    #[inline]
    pub fn release(mut self) -> Result<()> {
        self.end()
    }

    #[inline(always)]
    fn end(&mut self) -> Result<()> {
        let grant = self.take_grant();
        // The renewal stops before the release, so that it never sees a hold that is not there.
        if self.kept.is_some() {
            self.stop_renewal();
        }
        let inner = &*self.space;
        inner.check_process()?;
        if release(inner, &grant) {
            Ok(())
        } else {
            Err(lost(inner, grant, self.name_hash))
        }
    }

    #[cold]
    fn stop_renewal(&mut self) {
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
        self.kept = None;
        let inner = &*self.space;
        let to = SessionId::DETACHED;
        inner.check_process()?;
        let renewed = inner
            .engine
            .transfer(&self.grant, to, inner.precise_ns(), self.lease_ns)?;
        let name_hash = self.name_hash;
        let grant = self.take_grant();
        match renewed {
            Renewed::Until(_) => Ok(grant.token),
            Renewed::NotHeld => Err(lost(&self.space, grant, name_hash)),
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

/// The future of [`Lock::acquire_async`]. Of a lock that was made [owned](Lock::into_owned), it can be
/// spawned.
#[must_use = "futures do nothing unless polled"]
pub struct Acquire<'s> {
    lock: Lock<'s>,
    wait: Option<Wait>,
}

impl fmt::Debug for Acquire<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Acquire")
            .field("lock", &self.lock)
            .field("is_queued", &self.wait.is_some())
            .finish()
    }
}

impl<'s> Future for Acquire<'s> {
    type Output = Result<Hold<'s>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.wait.is_none() {
            match this.lock.try_acquire() {
                Ok(None) => {}
                Ok(Some(hold)) => return Poll::Ready(Ok(hold)),
                Err(error) => return Poll::Ready(Err(error)),
            }
            match Wait::begin(&this.lock.space.to_arc(), &this.lock.name) {
                Ok(wait) => this.wait = Some(wait),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        let Some(wait) = &mut this.wait else {
            return Poll::Pending;
        };
        match wait.poll(&this.lock.name, this.lock.lease_ns, context.waker()) {
            Ok(Some(Granted { grant, asked_at_ns })) => {
                this.wait = None;
                Poll::Ready(Ok(this.lock.hold(grant, asked_at_ns)))
            }
            Ok(None) => Poll::Pending,
            Err(error) => {
                this.wait = None;
                Poll::Ready(Err(error))
            }
        }
    }
}
