//! Limiters: a rate over keys, shared by everyone who opens it.

use crate::space::Inner;
use crate::{Error, Limit, Result, Space};
use sprag_core::readable::Readable;
use sprag_core::{Checked, LimiterRef, Refunded};
use std::fmt;
use std::time::Duration;

/// A rate over keys. Made by [`Space::limiter`].
#[derive(Clone)]
pub struct Limiter {
    pub(crate) space: Space,
    pub(crate) limiter: LimiterRef,
}

/// The answer to a check or a reservation, and the key's state right after it. What costs a division is
/// computed when asked for. There are no copies of one: what it took can be given back once.
#[derive(PartialEq, Eq)]
#[must_use]
pub struct Decision(pub(crate) Checked);

impl Decision {
    /// Counts an answer among the space's.
    fn counted(inner: &Inner, checked: Checked) -> Self {
        let is_allowed = checked.decision.is_allowed();
        inner.counts.check_anywhere(is_allowed, checked.is_overflow);
        Self(checked)
    }

    /// Whether the cost was admitted.
    #[inline]
    pub fn is_allowed(&self) -> bool {
        self.0.decision.is_allowed()
    }

    /// The most that can be admitted at once: the burst, or a window's count.
    pub fn limit(&self) -> u64 {
        self.0.decision.limit()
    }

    /// The greatest cost that another check at the same instant would be allowed.
    pub fn remaining(&self) -> u64 {
        self.0.decision.remaining()
    }

    /// How long to wait until the same cost would be allowed, if nobody else takes any: zero if it
    /// was, `None` if it never can be (a cost above the limit, or a rate of zero).
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.decision.retry_after_ns().map(Duration::from_nanos)
    }

    /// How long until a further check of `cost` would be allowed, if nobody else takes any: zero if it
    /// would be at once, `None` if it never can be.
    pub fn retry_after_for(&self, cost: u64) -> Option<Duration> {
        self.0.decision.wait_ns_for(cost).map(Duration::from_nanos)
    }

    /// How long until nothing is used any more, if nobody takes any; `None` for never.
    pub fn reset_after(&self) -> Option<Duration> {
        self.0.decision.reset_after_ns().map(Duration::from_nanos)
    }

    /// How long to wait, from the call on, before acting on it: zero, but for a reservation
    /// ([`Limiter::reserve`]).
    #[inline]
    pub fn act_after(&self) -> Duration {
        Duration::from_nanos(self.0.wait_ns)
    }

    /// Takes out what can be given back, for [`Limiter::refund`]: for a decision that is to be read on. What is left
    /// says the same, and of it nothing can be given back: [`Refunded::Void`].
    ///
    /// ```
    /// use sprag::Refunded;
    ///
    /// let space = sprag::Space::open("mem:")?;
    /// let mail = space.limiter("mail", "10/hour")?;
    /// let mut batch = mail.check("ann", 7)?;
    /// assert!(matches!(mail.refund(batch.take())?, Refunded::Given(_)));
    /// assert_eq!(batch.remaining(), 3, "as it was");
    /// assert!(matches!(mail.refund(batch)?, Refunded::Void), "once only");
    /// # Ok::<(), sprag::Error>(())
    /// ```
    pub fn take(&mut self) -> Self {
        Self(self.0.take())
    }

    /// Whether the region had no room for the key, so that a bucket shared by all such keys decided.
    pub fn is_overflow(&self) -> bool {
        self.0.is_overflow
    }
}

impl fmt::Debug for Decision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Decision")
            .field("is_allowed", &self.is_allowed())
            .field("limit", &self.limit())
            .field("remaining", &self.remaining())
            .field("retry_after", &self.retry_after())
            .field("reset_after", &self.reset_after())
            .field("act_after", &self.act_after())
            .field("is_overflow", &self.is_overflow())
            .finish()
    }
}

impl Limiter {
    pub(crate) fn open(space: &Space, name: &[u8], limit: Limit, update: bool) -> Result<Self> {
        let inner = &*space.inner;
        inner.check_usable()?;
        let now_ns = || inner.precise_ns();
        let limiter =
            inner
                .engine
                .open_limiter_by_clock(name, limit, update, inner.session, now_ns)?;
        Ok(Self {
            space: space.clone(),
            limiter,
        })
    }

    /// Checks `cost` of `key` (1 to 1,024 bytes) and takes it if allowed; a cost of 0 takes nothing, one
    /// above [`Decision::limit`] is never allowed. Tens of nanoseconds, and no write when refused.
    ///
    /// A region with no room for the key is no error: see [`Decision::is_overflow`].
    ///
    /// # Errors
    ///
    /// [`Error::Forked`], and [`Error::Engine`] for a key out of its bounds and a region that was replaced
    /// or is damaged.
    #[inline(always)]
    pub fn check<K: AsRef<[u8]> + ?Sized>(&self, key: &K, cost: u64) -> Result<Decision> {
        let inner = &*self.space.inner;
        if inner.check_process().is_ok() {
            let now_ns = inner.now_ns();
            let (engine, key) = (&inner.engine, key.as_ref());
            if !inner.is_to_look(now_ns)
                && let Some(checked) = engine.check_known(&self.limiter, key, cost, now_ns)
            {
                inner.counts.check(checked.decision.is_allowed());
                return Ok(Decision(checked));
            }
        }
        // A return type of its own keeps the result of the common case in registers.
        self.check_slowly(key.as_ref(), cost)
            .map_err(|error| *error)
    }

    #[inline(never)]
    fn check_slowly(&self, key: &[u8], cost: u64) -> Result<Decision, Box<Error>> {
        let inner = &*self.space.inner;
        inner.check_process()?;
        let (by, now_ns) = (inner.session, inner.now_ns());
        inner.check_in_place_now_and_then(now_ns)?;
        let checked = inner.engine.check(&self.limiter, key, cost, by, now_ns);
        Ok(Decision::counted(inner, checked.map_err(Error::from)?))
    }

    /// Takes `cost` of `key` now, to be acted on later: after [`Decision::act_after`], which is at most
    /// `wait_max`. That is when a check would be allowed if nobody else came; whoever comes later finds the
    /// place taken and waits behind it. The limit's bound counts it at that time. Not allowed, and
    /// nothing is taken, if the wait would be longer ([`Decision::retry_after`] says how long) or the cost
    /// can never be had.
    ///
    /// Who does not want the place any more gives it back with [`refund`](Self::refund). Under a fixed
    /// window, a cost that the rest of a window has no room for closes that window: nothing more is
    /// allowed until the next one begins. A change of the limit keeps the promised time and counts what
    /// is reserved as used from then on. Well below a microsecond.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let space = sprag::Space::open("mem:")?;
    /// let mail = space.limiter("mail", "10/second;burst=1")?;
    /// let now = mail.reserve("ann", 1, Duration::ZERO)?;
    /// let next = mail.reserve("ann", 1, Duration::from_secs(1))?;
    /// assert_eq!(now.act_after(), Duration::ZERO);
    /// assert!(next.is_allowed() && next.act_after() <= Duration::from_millis(100));
    /// // After that wait: send.
    /// # Ok::<(), sprag::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`EngineError::NoReservations`](crate::EngineError::NoReservations) within [`Error::Engine`] for a sliding
    /// window; else as [`check`](Self::check).
    pub fn reserve<K: AsRef<[u8]> + ?Sized>(
        &self,
        key: &K,
        cost: u64,
        wait_max: Duration,
    ) -> Result<Decision> {
        let inner = &*self.space.inner;
        inner.check_process()?;
        let (by, now_ns) = (inner.session, inner.now_ns());
        inner.check_in_place_now_and_then(now_ns)?;
        let wait_ns_max = u64::try_from(wait_max.as_nanos()).unwrap_or(u64::MAX);
        let engine = &inner.engine;
        let checked = engine.reserve(&self.limiter, key.as_ref(), cost, wait_ns_max, by, now_ns)?;
        Ok(Decision::counted(inner, checked))
    }

    /// Gives back what a check or a reservation took, for what did not take place after all, as far as that
    /// raises no interval above the limit, and says how much that is. Works once: it takes the
    /// decision.
    ///
    /// A token bucket gives back what has not drained since: of a cost that was admitted at once into an
    /// empty bucket, the more the sooner; of one that came behind others, all until its turn. A window
    /// gives back the cost while it counts. Nothing is given back ([`Refunded::Void`]) where the key was
    /// reclaimed or its limit changed since, nor where another admission of the key was given back and
    /// then another made: so give back before the key's next check where that can be. What a later
    /// reservation rests on stays taken.
    ///
    /// ```
    /// let space = sprag::Space::open("mem:")?;
    /// let mail = space.limiter("mail", "10/hour")?;
    /// let batch = mail.check("ann", 7)?;
    /// // It could not be sent.
    /// let refunded = mail.refund(batch)?;
    /// assert!(matches!(refunded, sprag::Refunded::Given(amount) if amount.as_f64() > 6.9));
    /// assert_eq!(mail.peek("ann")?.remaining(), 10);
    /// # Ok::<(), sprag::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Forked`], and [`Error::Engine`] for a region that was replaced or is damaged. Nothing
    /// was given back then.
    pub fn refund(&self, decision: Decision) -> Result<Refunded> {
        let inner = &*self.space.inner;
        inner.check_process()?;
        inner.check_in_place_now_and_then(inner.now_ns())?;
        let now_ns = || inner.now_ns();
        Ok(inner.engine.refund(&self.limiter, decision.0, now_ns)?)
    }

    /// What a check of `key` would find, changing nothing. It fails as [`check`](Self::check) does.
    pub fn peek<K: AsRef<[u8]> + ?Sized>(&self, key: &K) -> Result<Decision> {
        let inner = &*self.space.inner;
        inner.check_process()?;
        let now_ns = inner.now_ns();
        inner.check_in_place_to_look(now_ns)?;
        let checked = inner.engine.peek(&self.limiter, key.as_ref(), now_ns)?;
        Ok(Decision(checked))
    }

    /// Checks many keys, each on its own and in order, for the same cost; `each` gets a key's index
    /// and its decision. One clock reading, and the memory of the next keys fetched ahead: for large
    /// tables about half the time of as many single checks. It fails as [`check`](Self::check) does: for a
    /// key out of its bounds before any is decided.
    ///
    /// ```
    /// let space = sprag::Space::open("mem:")?;
    /// let api = space.limiter("api", "2/hour")?;
    /// let mut refused = Vec::new();
    /// api.check_batch(&["ann", "bob", "ann", "ann"], 1, |at, decision| {
    ///     if !decision.is_allowed() {
    ///         refused.push(at);
    ///     }
    /// })?;
    /// assert_eq!(refused, [3], "ann's third");
    /// # Ok::<(), sprag::Error>(())
    /// ```
    pub fn check_batch<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        cost: u64,
        mut each: impl FnMut(usize, Decision),
    ) -> Result<()> {
        let inner = &*self.space.inner;
        inner.check_process()?;
        let now_ns = inner.now_ns();
        inner.check_in_place_now_and_then(now_ns)?;
        inner.engine.check_batch(
            &self.limiter,
            keys,
            cost,
            inner.session,
            now_ns,
            |index, checked| {
                each(index, Decision::counted(inner, checked));
                // It may have forked, and the child has no limits to take from.
                inner.check_process().is_ok()
            },
        )?;
        inner.check_process()
    }

    /// The limit that it was opened with. Checks are by the limit of now, if it was changed since.
    pub fn limit(&self) -> Limit {
        self.limiter.limit()
    }

    /// The name.
    pub fn name(&self) -> Vec<u8> {
        self.limiter.name().to_vec()
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Limiter")
            .field("name", &Readable(&self.name()))
            .field("limit", &format_args!("{}", self.limit()))
            .finish()
    }
}
