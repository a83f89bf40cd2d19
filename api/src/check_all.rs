//! Checks of several limiters in one call.

use crate::counter::lane;
use crate::limiter::{Decision, Limiter};
use crate::{Error, Result, Space};
use sprag_core::limiter::{Asked, CHARGED_MAX};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The answers to several checks in one call, in the order in which they were asked: made by [`Space::check_all`].
#[derive(PartialEq, Eq)]
#[must_use]
pub struct Decisions {
    each: [Option<Decision>; CHARGED_MAX],
    is_allowed: bool,
}

impl Decisions {
    /// Whether all were admitted. If not, nothing was taken anywhere.
    #[inline]
    pub fn is_allowed(&self) -> bool {
        self.is_allowed
    }

    /// Each check's decision. Where a check was refused, those of the others that were not are what a check of cost 0
    /// would say.
    pub fn iter(&self) -> impl Iterator<Item = &Decision> {
        self.each.iter().flatten()
    }

    /// Which checks were refused, as places in the call; none if all is allowed.
    pub fn refused(&self) -> impl Iterator<Item = usize> {
        let each = self.iter().enumerate();
        each.filter(|(_, decision)| !decision.is_allowed())
            .map(|(at, _)| at)
    }

    /// How long to wait until the checks that were refused would be allowed, if nobody else takes any: zero if all were
    /// allowed, `None` if one never can be.
    pub fn retry_after(&self) -> Option<Duration> {
        self.iter().try_fold(Duration::ZERO, |longest, decision| {
            Some(longest.max(decision.retry_after()?))
        })
    }
}

impl IntoIterator for Decisions {
    type Item = Decision;
    type IntoIter = std::iter::Flatten<std::array::IntoIter<Option<Decision>, CHARGED_MAX>>;

    /// Each check's decision by itself, to give one back with [`Limiter::refund`].
    fn into_iter(self) -> Self::IntoIter {
        self.each.into_iter().flatten()
    }
}

impl fmt::Debug for Decisions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each: Vec<_> = self.iter().collect();
        formatter
            .debug_struct("Decisions")
            .field("is_allowed", &self.is_allowed)
            .field("each", &each)
            .finish()
    }
}

impl Space {
    /// Checks 1 to 8 limiters of this space in one call, each with a key and a cost: all are allowed and all is
    /// taken, or nothing is, also if the caller is killed in the middle. All are decided at one moment.
    ///
    /// A key that is named twice, under one limiter, is checked twice, one after the other; so are keys for which
    /// the region has no room, which share a bucket. A check of cost 0 takes nothing, and its answer may be of
    /// another moment during the call, unless all are of cost 0. A part of what was taken can be given back, with
    /// the decision and the limiter that it is of.
    ///
    /// For two keys that are there some five times as long as a single check of each: where some of one may be
    /// taken without the other, check one after the other. No write when refused. Others that check one of the
    /// keys meanwhile wait for the call, for a few microseconds at most: if it stands still they call it off, and
    /// it begins anew when it goes on.
    ///
    /// ```
    /// let space = sprag::Space::open("mem:")?;
    /// let per_user = space.limiter("per user", "2/hour")?;
    /// let global = space.limiter("global", "100/hour")?;
    /// let both = |user| space.check_all(&[(&per_user, user, 1), (&global, "all", 1)]);
    /// assert!(both("ann")?.is_allowed() && both("ann")?.is_allowed());
    ///
    /// let decisions = both("ann")?;
    /// assert!(!decisions.is_allowed());
    /// assert_eq!(decisions.refused().collect::<Vec<_>>(), [0]);
    /// assert_eq!(global.peek("all")?.remaining(), 98);
    /// # Ok::<(), sprag::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::OtherSpace`] for a limiter that was opened in another space, and within [`Error::Engine`] what
    /// [`Limiter::check`] fails with, [`OutOfRange`](crate::EngineError::OutOfRange) for none or more than 8
    /// checks, and [`Full`](crate::EngineError::Full) or [`ShareExceeded`](crate::EngineError::ShareExceeded)
    /// while too many threads are stopped in the middle of such calls. Nothing was taken then.
    pub fn check_all<K: AsRef<[u8]> + ?Sized>(
        &self,
        checks: &[(&Limiter, &K, u64)],
    ) -> Result<Decisions> {
        let inner = &*self.inner;
        inner.check_process()?;
        let now_ns = inner.now_ns();
        inner.check_in_place_now_and_then(now_ns)?;
        let is_of_here = |limiter: &Limiter| Arc::ptr_eq(&limiter.space.inner, &self.inner);
        if let Some((limiter, ..)) = checks.iter().find(|(limiter, ..)| !is_of_here(limiter)) {
            return Err(Error::other_space(&limiter.name()));
        }
        let asked = checks.iter().map(|(limiter, key, cost)| Asked {
            limiter: &limiter.limiter,
            key: (*key).as_ref(),
            cost: *cost,
        });
        let by = inner.session;
        // A number below 256.
        let near = lane(by.index()) as u32;
        // Not a constant: that would be copied whole.
        let mut decisions = Decisions {
            each: std::array::from_fn(|_| None),
            is_allowed: false,
        };
        let each = &mut decisions.each;
        decisions.is_allowed = inner
            .engine
            .check_all(asked, by, near, now_ns, |at, checked| {
                if let Some(decision) = each.get_mut(at) {
                    *decision = Some(Decision(checked));
                }
            })?;
        let is_overflow = decisions.iter().any(Decision::is_overflow);
        inner
            .counts
            .check_anywhere(decisions.is_allowed, is_overflow);
        Ok(decisions)
    }
}
