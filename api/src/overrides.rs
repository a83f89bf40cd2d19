//! Overrides: a limit of its own for one key of a limiter.

use crate::{Error, IntoLimit, Limit, Limiter, Result, Space};
use sprag_core::readable::Readable;
use std::fmt;

/// What is known of an override.
#[derive(Clone, PartialEq, Eq)]
pub struct OverrideInfo {
    /// The limiter's name.
    pub limiter: Vec<u8>,
    /// The key.
    pub key: Vec<u8>,
    /// The limit that it has instead of the limiter's.
    pub limit: Limit,
}

impl fmt::Debug for OverrideInfo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OverrideInfo")
            .field("limiter", &Readable(&self.limiter))
            .field("key", &Readable(&self.key))
            .field("limit", &format_args!("{}", self.limit))
            .finish()
    }
}

impl Limiter {
    /// Gives `key` (1 to 1,024 bytes) a limit of its own, in place of the limiter's and of any that it was given
    /// before: a [`Limit`] or its text. It holds for all who use the limiter, until it is cleared; neither a change
    /// of the limiter's limit nor the key's being idle ends it. What the key has used stays used. `0/second` shuts
    /// a key out.
    ///
    /// Once this returns, no check that begins after is decided by another limit; what was admitted before can't
    /// be refunded any more. Checks of keys without one cost the same as before.
    ///
    /// An override takes one of the region's objects, of which a process may have a share only
    /// ([`Caps::objects`](crate::Caps::objects)). A region has 1,024 limit definitions; all overrides of a limiter
    /// with the same limit share one. Some microseconds.
    ///
    /// ```
    /// let space = sprag::Space::open("mem:")?;
    /// let api = space.limiter("api", "2/hour")?;
    /// api.set_override("bigcorp", "1000/hour")?;
    /// assert_eq!(api.check("bigcorp", 1)?.limit(), 1_000);
    /// assert_eq!(api.check("ann", 1)?.limit(), 2);
    /// # Ok::<(), sprag::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] for a text that is no limit, [`Error::Forked`], and [`Error::Engine`] for a key out of its
    /// bounds, a region that was replaced or is damaged, and where there is no room for the override or its limit:
    /// then nothing was changed.
    pub fn set_override<K: AsRef<[u8]> + ?Sized>(
        &self,
        key: &K,
        limit: impl IntoLimit,
    ) -> Result<()> {
        let limit = limit.into_limit()?;
        let inner = &*self.space.inner;
        inner.check_usable()?;
        let now_ns = || inner.precise_ns();
        inner
            .engine
            .set_override(&self.limiter, key.as_ref(), limit, inner.session, now_ns)
            .map_err(Error::from)
    }

    /// Takes `key`'s override away, so that the limiter's limit holds for it again: whether it had one. What the key
    /// has used stays used. Once this returns, no check that begins after is decided by the override. Some
    /// microseconds.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`], and [`Error::Engine`] for a key out of its bounds and a region that was replaced or is
    /// damaged.
    pub fn clear_override<K: AsRef<[u8]> + ?Sized>(&self, key: &K) -> Result<bool> {
        let inner = &*self.space.inner;
        inner.check_process()?;
        inner.check_in_place()?;
        let now_ns = || inner.precise_ns();
        let engine = &inner.engine;
        Ok(engine.clear_override(&self.limiter, key.as_ref(), now_ns)?)
    }

    /// The limit that `key` has instead of the limiter's; `None` if it has none. Where somebody died setting or
    /// clearing it, this finishes that. Fails as [`clear_override`](Self::clear_override) does.
    pub fn override_of<K: AsRef<[u8]> + ?Sized>(&self, key: &K) -> Result<Option<Limit>> {
        let inner = &*self.space.inner;
        inner.check_process()?;
        inner.check_in_place_to_look(inner.now_ns())?;
        let now_ns = || inner.precise_ns();
        let engine = &inner.engine;
        Ok(engine.override_of(&self.limiter, key.as_ref(), now_ns)?)
    }
}

impl Space {
    /// The limiter `name` with whatever limit it has; `None` if there is none. To look at its overrides, or change
    /// them, without knowing its limit.
    pub fn find_limiter<N: AsRef<[u8]> + ?Sized>(&self, name: &N) -> Result<Option<Limiter>> {
        self.inner.check_process()?;
        self.inner.check_in_place()?;
        let limiter = self.inner.engine.limiter(name.as_ref())?;
        Ok(limiter.map(|limiter| Limiter {
            space: self.clone(),
            limiter,
        }))
    }

    /// The overrides of limiters whose names begin with `prefix`, by limiter and key. Reads all objects of the
    /// region; stops no one, and changes nothing: one that is just being set or cleared may be among them.
    pub fn overrides<N: AsRef<[u8]> + ?Sized>(&self, prefix: &N) -> Result<Vec<OverrideInfo>> {
        self.inner.check_to_list()?;
        let mut overrides = Vec::new();
        self.inner
            .engine
            .for_each_override(prefix.as_ref(), |limiter, key, limit| {
                overrides.push(OverrideInfo {
                    limiter: limiter.to_vec(),
                    key: key.to_vec(),
                    limit,
                });
            });
        overrides.sort_by(|a, b| (&a.limiter, &a.key).cmp(&(&b.limiter, &b.key)));
        Ok(overrides)
    }
}
