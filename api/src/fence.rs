//! A fence: the resource's side of a lock's token.

use crate::{Error, Result, Space};
use sprag_core::Name;
use sprag_core::readable::Readable;
use std::fmt;

/// Remembers the highest token it admitted and rejects older ones. Made by [`Space::fence`].
///
/// For a fence beside your own data, in your own transactions, see [`crate::embed::Fence`].
#[derive(Clone)]
pub struct Fence {
    space: Space,
    name: Name,
}

impl Fence {
    pub(crate) fn new(space: &Space, name: &[u8]) -> Result<Self> {
        let name = space.inner.engine.fence_name(name)?;
        Ok(Self {
            space: space.clone(),
            name,
        })
    }

    /// Admits a token not lower than the highest admitted, in one step; each token from 1 to
    /// [`TOKEN_MAX`](crate::TOKEN_MAX). Writes nothing if it is the highest itself.
    ///
    /// # Errors
    ///
    /// [`Error::Stale`] for a lower token and for 0; [`Error::Engine`] for one above the bound, and when the
    /// region has no room for the fence.
    pub fn admit(&self, token: u64) -> Result<()> {
        self.step(token, false)
    }

    /// [`admit`](Self::admit) for a token strictly higher than the highest admitted: each token once.
    pub fn admit_once(&self, token: u64) -> Result<()> {
        self.step(token, true)
    }

    /// The highest token admitted; 0 if none was.
    pub fn highest(&self) -> u64 {
        self.space.inner.engine.fence_highest(&self.name)
    }

    fn step(&self, token: u64, once: bool) -> Result<()> {
        let inner = &*self.space.inner;
        inner.check_process()?;
        let now_ns = inner.now_ns();
        inner.check_in_place_now_and_then(now_ns)?;
        inner
            .engine
            .admit(&self.name, inner.session, now_ns, token, once)?
            .map_err(|stale| Error::Stale {
                fence: Readable(&self.name.to_vec()).to_string(),
                stale,
            })
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Fence")
            .field("name", &Readable(&self.name.to_vec()))
            .field("highest", &self.highest())
            .finish_non_exhaustive()
    }
}
