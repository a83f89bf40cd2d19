//! Limiters: a rate over keys, shared by everyone who opens it.

use crate::{Error, Limit, Result, Space};
use sprag_core::readable::Readable;
use sprag_core::{Checked, LimiterRef};
use std::fmt;
use std::time::Duration;

/// A rate over keys. Made by [`Space::limiter`].
#[derive(Clone)]
pub struct Limiter {
    space: Space,
    limiter: LimiterRef,
}

/// The answer to a check, and the key's state right after it. What costs a division is computed when
/// asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Decision(Checked);

impl Decision {
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
            .field("is_overflow", &self.is_overflow())
            .finish()
    }
}

impl Limiter {
    pub(crate) fn open(space: &Space, name: &[u8], limit: Limit, update: bool) -> Result<Self> {
        let inner = &*space.inner;
        inner.check_process()?;
        inner.check_session()?;
        inner.check_in_place()?;
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
        Ok(Decision(checked.map_err(Error::from)?))
    }

    /// What a check of `key` would find, changing nothing.
    pub fn peek<K: AsRef<[u8]> + ?Sized>(&self, key: &K) -> Result<Decision> {
        let inner = &*self.space.inner;
        inner.check_process()?;
        Ok(Decision(inner.engine.peek(
            &self.limiter,
            key.as_ref(),
            inner.now_ns(),
        )?))
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
                each(index, Decision(checked));
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
