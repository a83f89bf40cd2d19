//! Locks: handles by which they are acquired. What one has then is a [`Hold`].

use crate::background::Wait;
use crate::hold::{Hold, finish_release};
use crate::metrics::{Often, Seldom};
use crate::share::Share;
use crate::space::Inner;
use crate::wait::{Granted, Want};
use crate::{Error, LockInfo, Owner, Result, Space};
use sprag_core::Name;
use sprag_core::admission::Wants;
use sprag_core::lock::{Grant, HoldOf, LEASE_NS_MAX, LEASE_NS_MIN, Renewed};
use sprag_core::readable::Readable;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
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
        Ok(Self::named(Share::borrow(&space.inner), name))
    }

    #[inline]
    pub(crate) fn named(space: Share<'s>, name: Name) -> Self {
        Self {
            space,
            name,
            lease_ns: DEFAULT_TTL_NS,
        }
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

    /// Who holds the lock and who waits for it, changing nothing; `None` if it has no entry in the region, and so
    /// nobody does. Needs no session.
    pub fn peek(&self) -> Result<Option<LockInfo>> {
        let inner = &*self.space;
        inner.check_to_list()?;
        let now_ns = inner.precise_ns();
        let status = inner.engine.lock_status(&self.name, now_ns);
        Ok(status.map(|status| LockInfo::new(status, now_ns)))
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
            None => self
                .acquire_until(self.space.until_ns(timeout))
                .map_err(|error| *error),
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
        inner.counts.often(Often::Acquired);
        Some(self.hold(grant, now_ns))
    }

    #[cold]
    fn try_acquire_slowly(&self) -> Result<Option<Hold<'s>>, Box<Error>> {
        Ok(self.try_get(Wants::Exclusive)?)
    }

    #[cold]
    fn acquire_slowly(&self) -> Result<Hold<'s>, Box<Error>> {
        Ok(self.get(Wants::Exclusive)?)
    }

    #[cold]
    fn acquire_until(&self, until_ns: u64) -> Result<Option<Hold<'s>>, Box<Error>> {
        Ok(self.get_until(Wants::Exclusive, until_ns)?)
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
        self.get_async(Wants::Exclusive, Vec::new())
    }

    /// Takes the lock beside others who share it, if nobody has it alone and nobody who wants it alone came
    /// before; `None` if not. Each has a token and a lease of its own. Costs a few hundred nanoseconds.
    pub fn try_acquire_shared(&self) -> Result<Option<Hold<'s>>> {
        self.try_get(Wants::Shared)
    }

    /// Takes the lock beside others who share it, waiting its turn for as long as it takes. All are served in
    /// the order in which they came, so neither those who share nor those who don't starve.
    pub fn acquire_shared(&self) -> Result<Hold<'s>> {
        self.get(Wants::Shared)
    }

    /// [`acquire_shared`](Self::acquire_shared), waiting for at most `timeout`; `None` if its turn did not
    /// come.
    pub fn acquire_shared_timeout(&self, timeout: Duration) -> Result<Option<Hold<'s>>> {
        self.get_timeout(Wants::Shared, timeout)
    }

    /// [`acquire_shared`](Self::acquire_shared) as a future, as [`acquire_async`](Self::acquire_async).
    pub fn acquire_shared_async(&self) -> Acquire<'s> {
        self.get_async(Wants::Shared, Vec::new())
    }

    /// Takes what is wanted if it can be had at once; else does not wait.
    pub(crate) fn try_get(&self, wants: Wants) -> Result<Option<Hold<'s>>> {
        let hold = self.get_at_once(wants)?;
        if hold.is_none() {
            self.space.counts.seldom(Seldom::Busy);
        }
        Ok(hold)
    }

    /// Takes what is wanted if it can be had at once.
    fn get_at_once(&self, wants: Wants) -> Result<Option<Hold<'s>>> {
        let want = Want::of(&self.name, wants);
        let granted = self.space.try_get(&want, self.lease_ns)?;
        Ok(granted.map(|granted| self.hold_of(&granted)))
    }

    /// Takes what is wanted, waiting for as long as it takes.
    pub(crate) fn get(&self, wants: Wants) -> Result<Hold<'s>> {
        loop {
            // `u64::MAX` of region time never comes, but the type does not say so.
            if let Some(hold) = self.get_until(wants, u64::MAX)? {
                return Ok(hold);
            }
        }
    }

    /// Takes what is wanted, waiting for at most `timeout`.
    pub(crate) fn get_timeout(&self, wants: Wants, timeout: Duration) -> Result<Option<Hold<'s>>> {
        self.get_until(wants, self.space.until_ns(timeout))
    }

    fn get_until(&self, wants: Wants, until_ns: u64) -> Result<Option<Hold<'s>>> {
        self.get_holding(wants, &[], until_ns)
    }

    /// Takes what is wanted while the owner has `holds`, until `until_ns` of region time.
    pub(crate) fn get_holding(
        &self,
        wants: Wants,
        holds: &[Grant],
        until_ns: u64,
    ) -> Result<Option<Hold<'s>>> {
        let want = Want {
            holds,
            ..Want::of(&self.name, wants)
        };
        let granted = self.space.get(&want, self.lease_ns, until_ns)?;
        Ok(granted.map(|granted| self.hold_of(&granted)))
    }

    pub(crate) fn get_async(&self, wants: Wants, holds: Vec<Grant>) -> Acquire<'s> {
        Acquire {
            lock: self.clone(),
            wants,
            holds,
            wait: None,
        }
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.space
    }

    pub(crate) fn lease_ns(&self) -> u64 {
        self.lease_ns
    }

    pub(crate) fn check_owner(&self, owner: &Owner) -> Result<()> {
        owner.check_space(&self.space)
    }

    pub(crate) fn until_ns(&self, timeout: Duration) -> u64 {
        self.space.until_ns(timeout)
    }

    /// The name, as the engine has it.
    pub(crate) fn engine_name(&self) -> &Name {
        &self.name
    }

    fn hold_of(&self, granted: &Granted) -> Hold<'s> {
        self.hold(granted.grant, granted.asked_at_ns)
    }

    /// Ends the hold with this token, whoever took it: the other half of [`Hold::detach`].
    /// [`Error::Lost`] if the lock is not held under this token.
    pub fn release_token(&self, token: u64) -> Result<()> {
        self.release_token_of(HoldOf::Lock, token)
    }

    pub(crate) fn release_token_of(&self, of: HoldOf, token: u64) -> Result<()> {
        let inner = &*self.space;
        inner.check_process()?;
        let released = inner
            .engine
            .release_by_name(of, &self.name, token, inner.precise_ns());
        if finish_release(inner, released) {
            Ok(())
        } else {
            Err(Error::lost(Some(&self.name()), token))
        }
    }

    /// Sets the lease of the hold with this token to this handle's, from now. [`Error::Lost`] if the lock
    /// is not held under this token, or its lease is over.
    pub fn renew_token(&self, token: u64) -> Result<()> {
        self.renew_token_of(HoldOf::Lock, token)
    }

    pub(crate) fn renew_token_of(&self, of: HoldOf, token: u64) -> Result<()> {
        let inner = &*self.space;
        inner.check_process()?;
        inner.check_in_place()?;
        let now_ns = inner.precise_ns();
        match inner
            .engine
            .renew_by_name(of, &self.name, token, now_ns, self.lease_ns)?
        {
            Renewed::Until(_) => Ok(()),
            Renewed::NotHeld => Err(Error::lost(Some(&self.name()), token)),
        }
    }

    /// Takes over the hold with this token from whoever has it, with this handle's lease: how a hold goes from one
    /// process to another. In the space that has it already, both are the same hold. [`Error::Lost`] if the lock
    /// is not held under this token, or its lease is over.
    pub fn adopt_token(&self, token: u64) -> Result<Hold<'s>> {
        self.adopt_token_of(HoldOf::Lock, token)
    }

    pub(crate) fn adopt_token_of(&self, of: HoldOf, token: u64) -> Result<Hold<'s>> {
        let inner = &*self.space;
        inner.check_usable()?;
        let now_ns = inner.precise_ns();
        let (name, to) = (&self.name, inner.session);
        match inner
            .engine
            .adopt(of, name, token, to, now_ns, self.lease_ns)?
        {
            Some(grant) => Ok(self.hold(grant, now_ns)),
            None => Err(Error::lost(Some(&self.name()), token)),
        }
    }

    /// Takes the lock away from whoever holds it, as [`Space::break_lock`].
    pub fn break_hold(&self) -> Result<Option<u64>> {
        let inner = &*self.space;
        inner.check_process()?;
        inner.check_in_place()?;
        let broken = inner
            .engine
            .break_lock(&self.name, inner.process, inner.precise_ns());
        Ok(broken.map(|broken| {
            inner.wake(broken.wake);
            broken.token
        }))
    }

    #[inline(always)]
    pub(crate) fn hold(&self, grant: Grant, asked_at_ns: u64) -> Hold<'s> {
        let space = self.space.clone();
        Hold::new(
            space,
            grant,
            asked_at_ns,
            self.lease_ns,
            self.name.raw_hash(),
        )
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

/// The future of [`Lock::acquire_async`]. Of a lock that was made [owned](Lock::into_owned), it can be
/// spawned.
#[must_use = "futures do nothing unless polled"]
pub struct Acquire<'s> {
    lock: Lock<'s>,
    wants: Wants,
    /// What the owner holds meanwhile.
    holds: Vec<Grant>,
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
        let want = Want {
            holds: &this.holds,
            ..Want::of(&this.lock.name, this.wants)
        };
        if this.wait.is_none() {
            let free = match this.wants {
                Wants::Exclusive => this.lock.take_if_free(),
                _ => None,
            };
            let at_once = match free {
                Some(hold) => Ok(Some(hold)),
                None => this.lock.get_at_once(this.wants),
            };
            match at_once {
                Ok(None) => {}
                Ok(Some(hold)) => return Poll::Ready(Ok(hold)),
                Err(error) => return Poll::Ready(Err(error)),
            }
            match Wait::begin(&this.lock.space.to_arc(), &want) {
                Ok(wait) => this.wait = Some(wait),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        let Some(wait) = &mut this.wait else {
            return Poll::Pending;
        };
        match wait.poll(&want, this.lock.lease_ns, context.waker()) {
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
