//! Joint limiters: several limits over keys, decided together, shared by everyone who opens them.

use crate::{Decision, Error, IntoLimit, Limit, Result, Space};
use sprag_core::readable::Readable;
use sprag_core::{JointChecked, JointRef};
use std::fmt;
use std::time::Duration;

/// Limits declared together on each key: all of them admit a cost, or nothing is taken. Made by
/// [`Space::joint_limiter`].
///
/// Admissions can't be given back or reserved, and the limits can't be changed: for those, use a
/// [`Limiter`](crate::Limiter).
#[derive(Clone)]
pub struct JointLimiter {
    space: Space,
    joint: JointRef,
}

/// The answer to a check by several limits, and the key's state right after it. What costs a division is computed
/// when asked for.
#[derive(Clone, Copy)]
#[must_use]
pub struct JointDecision<'a>(JointChecked<'a>);

impl JointDecision<'_> {
    /// Whether the cost was admitted, by every limit.
    #[inline]
    pub fn is_allowed(&self) -> bool {
        self.0.is_allowed()
    }

    /// Which limit refuses longest, by its place among those that it was opened with, from 0; of two that are as
    /// long, the first. `None` if all admitted the cost.
    pub fn refused_by(&self) -> Option<usize> {
        self.0.refused_by()
    }

    /// What the limit at this place says for itself, for as many as there are. Where another one refused and
    /// nothing was taken, it allows what it would have admitted. It can't be refunded.
    pub fn of(&self, place: usize) -> Option<Decision> {
        self.0.checked(place).map(Decision)
    }

    /// The most that can be admitted at once: the least of the limits', and at most a cost's bound
    /// ([`check`](JointLimiter::check)).
    pub fn limit(&self) -> u64 {
        self.0.limit()
    }

    /// The greatest cost that another check at the same instant would be allowed, which is at most a cost's bound.
    pub fn remaining(&self) -> u64 {
        self.0.remaining()
    }

    /// How long to wait until the same cost would be allowed, if nobody else takes any: zero if it was, `None` if
    /// it never can be. The longest of those that refuse.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after_ns().map(Duration::from_nanos)
    }

    /// How long until a further check of `cost` would be allowed, if nobody else takes any: zero if it would be at
    /// once, `None` if it never can be, as with one above a cost's bound.
    pub fn retry_after_for(&self, cost: u64) -> Option<Duration> {
        self.0.wait_ns_for(cost).map(Duration::from_nanos)
    }

    /// How long until nothing is used any more under any limit, if nobody takes any; `None` for never.
    pub fn reset_after(&self) -> Option<Duration> {
        self.0.reset_after_ns().map(Duration::from_nanos)
    }

    /// Whether the region had no room for the key, so that an entry shared by all such keys decided.
    pub fn is_overflow(&self) -> bool {
        self.0.is_overflow
    }
}

impl fmt::Debug for JointDecision<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("JointDecision")
            .field("is_allowed", &self.is_allowed())
            .field("refused_by", &self.refused_by())
            .field("limit", &self.limit())
            .field("remaining", &self.remaining())
            .field("retry_after", &self.retry_after())
            .field("reset_after", &self.reset_after())
            .field("is_overflow", &self.is_overflow())
            .finish()
    }
}

impl JointLimiter {
    /// Checks `cost` of `key` (1 to 1,024 bytes) against all limits, and takes it from all if all allow it; a cost
    /// of 0 takes nothing. A cost is at most 67,108,863 (2^26 - 1). Tens of nanoseconds, and no write when
    /// refused.
    ///
    /// A region with no room for the key is no error: see [`JointDecision::is_overflow`].
    ///
    /// # Errors
    ///
    /// [`Error::Forked`], and [`Error::Engine`] for a key or a cost out of its bounds and a region that was replaced
    /// or is damaged.
    #[inline(always)]
    pub fn check<K: AsRef<[u8]> + ?Sized>(&self, key: &K, cost: u64) -> Result<JointDecision<'_>> {
        let inner = &*self.space.inner;
        if inner.check_process().is_ok() {
            let now_ns = inner.now_ns();
            let (engine, key) = (&inner.engine, key.as_ref());
            if !inner.is_to_look(now_ns)
                && let Some(checked) = engine.check_joint_known(&self.joint, key, cost, now_ns)
            {
                inner.counts.check(checked.is_allowed());
                return Ok(JointDecision(checked));
            }
        }
        // A return type of its own keeps the result of the common case in registers.
        self.check_slowly(key.as_ref(), cost)
            .map_err(|error| *error)
    }

    #[inline(never)]
    fn check_slowly(&self, key: &[u8], cost: u64) -> Result<JointDecision<'_>, Box<Error>> {
        let inner = &*self.space.inner;
        inner.check_process()?;
        let (by, now_ns) = (inner.session, inner.now_ns());
        inner.check_in_place_now_and_then(now_ns)?;
        let checked = inner.engine.check_joint(&self.joint, key, cost, by, now_ns);
        let checked = checked.map_err(Error::from)?;
        let is_allowed = checked.is_allowed();
        inner.counts.check_anywhere(is_allowed, checked.is_overflow);
        Ok(JointDecision(checked))
    }

    /// What a check of `key` would find, changing nothing. It fails as [`check`](Self::check) does.
    pub fn peek<K: AsRef<[u8]> + ?Sized>(&self, key: &K) -> Result<JointDecision<'_>> {
        let inner = &*self.space.inner;
        inner.check_process()?;
        let now_ns = inner.now_ns();
        inner.check_in_place_to_look(now_ns)?;
        let checked = inner.engine.peek_joint(&self.joint, key.as_ref(), now_ns)?;
        Ok(JointDecision(checked))
    }

    /// The limits, in their order.
    pub fn limits(&self) -> Vec<Limit> {
        self.joint.limits()
    }

    /// The name.
    pub fn name(&self) -> Vec<u8> {
        self.joint.name().to_vec()
    }
}

impl fmt::Debug for JointLimiter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("JointLimiter")
            .field("name", &Readable(&self.name()))
            .field("limits", &Texts(&self.limits()))
            .finish()
    }
}

/// What is known of a joint limiter.
#[derive(Clone, PartialEq, Eq)]
pub struct JointLimiterInfo {
    /// The limiter's name.
    pub name: Vec<u8>,
    /// Its limits, in their order.
    pub limits: Vec<Limit>,
    /// How many keys have an entry: those with something used, and full ones not reclaimed yet.
    pub keys: u64,
}

impl fmt::Debug for JointLimiterInfo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("JointLimiterInfo")
            .field("name", &Readable(&self.name))
            .field("limits", &Texts(&self.limits))
            .field("keys", &self.keys)
            .finish()
    }
}

/// Limits as they are written.
struct Texts<'a>(&'a [Limit]);

impl fmt::Debug for Texts<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = self.0.iter().map(Limit::to_string);
        formatter.debug_list().entries(texts).finish()
    }
}

impl Space {
    /// The joint limiter `name`, 1 to 1,024 bytes, created with `limits` if there is none: 2 to 6 limits, each a
    /// [`Limit`] or text as for [`limiter`](Self::limiter), that each key is under at once. Open it once and keep it.
    /// Its name has nothing to do with those of other limiters. A region has room for 256 of them, which stay for
    /// as long as it does.
    ///
    /// ```
    /// let space = sprag::Space::open("mem:")?;
    /// let api = space.joint_limiter("api", ["2/second", "100/hour"])?;
    /// assert!(api.check("ann", 1)?.is_allowed());
    /// assert!(api.check("ann", 1)?.is_allowed());
    /// let third = api.check("ann", 1)?;
    /// assert_eq!(third.refused_by(), Some(0), "2/second");
    /// assert_eq!(third.of(1).map(|hour| hour.remaining()), Some(98), "nothing was taken");
    /// # Ok::<(), sprag::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if one of `limits` is none;
    /// [`EngineError::JointLimitsDiffer`](crate::EngineError::JointLimitsDiffer) if it has others, or these in
    /// another order; [`EngineError::OutOfRange`](crate::EngineError::OutOfRange) for another number of limits;
    /// [`EngineError::Full`](crate::EngineError::Full) and
    /// [`EngineError::ShareExceeded`](crate::EngineError::ShareExceeded) where there is no room for it.
    pub fn joint_limiter<N: AsRef<[u8]> + ?Sized, L: IntoLimit>(
        &self,
        name: &N,
        limits: impl IntoIterator<Item = L>,
    ) -> Result<JointLimiter> {
        let inner = &*self.inner;
        inner.check_usable()?;
        let limits: Result<Vec<Limit>> = limits.into_iter().map(L::into_limit).collect();
        let now_ns = inner.precise_ns();
        let engine = &inner.engine;
        let joint = engine.open_joint(name.as_ref(), &limits?, inner.session, now_ns)?;
        Ok(JointLimiter {
            space: self.clone(),
            joint,
        })
    }

    /// The joint limiters whose names begin with `prefix`, by name. Reads the whole region; stops no one.
    pub fn joint_limiters<N: AsRef<[u8]> + ?Sized>(
        &self,
        prefix: &N,
    ) -> Result<Vec<JointLimiterInfo>> {
        self.inner.check_to_list()?;
        let mut limiters = Vec::new();
        self.inner
            .engine
            .for_each_joint(prefix.as_ref(), |name, limits, keys| {
                limiters.push(JointLimiterInfo { name, limits, keys });
            });
        limiters.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(limiters)
    }
}
