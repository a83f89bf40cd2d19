//! Where a key is decided: in its own cell or, where there is no room for it, in the bucket that such keys share.
//!
//! Owns how that word is found, or made, and under which limit it decides. Decides nothing.

use super::reserve::Ask;
use super::{LimiterRef, overflow_at, settle};
use crate::chunk;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::limiter_key::{KeyState, LimiterKey};
use crate::region::memory::Line;
use crate::session::SessionId;
use crate::table::{Found, LIVE, phase};
use core::sync::atomic::Ordering::Acquire;

/// The word that decides on a key, not engaged: its cell's or, where there is no room for it, that of the bucket that
/// such keys share.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Its byte offset.
    pub(super) at: usize,
    pub(super) state: KeyState,
    pub(super) is_overflow: bool,
}

impl Place {
    pub(super) fn of(found: &Found) -> Self {
        Self {
            at: found.at,
            state: KeyState(found.state),
            is_overflow: false,
        }
    }
}

impl Engine {
    /// A key under its limiter's own limit, wherever it is, and not engaged. Its arguments are few, and its result
    /// small, so that the common case need not keep its own in memory.
    #[inline(never)]
    pub(super) fn find_beyond(
        &self,
        limiter: &LimiterRef,
        key: &[u8],
        hash: u64,
    ) -> Option<(Line<'_>, u128)> {
        let entry = LimiterKey::hashed(self, limiter, key, hash);
        let found = self.limiter_keys.find(&self.region, hash, &entry)?;
        if KeyState(found.state).is_engaged() {
            return self.find_settled(&entry, found.at);
        }
        (KeyState(found.state).limit() == limiter.id)
            .then(|| (self.region.line(found.at), found.state))
    }

    /// The same key once the word at `at`, which was its own, is settled: the cell may be another's by then.
    #[cold]
    fn find_settled(&self, entry: &LimiterKey<'_>, at: usize) -> Option<(Line<'_>, u128)> {
        settle(&self.region, at).ok()?;
        let found = self.limiter_keys.find(&self.region, entry.hash, entry)?;
        let state = KeyState(found.state);
        (state.limit() == entry.limiter.id && !state.is_engaged())
            .then(|| (self.region.line(found.at), found.state))
    }

    /// Where a key is decided that is there, undisturbed, and its override if it has one. `None` says only that this
    /// was not the case.
    pub(super) fn place_known(
        &self,
        entry: &LimiterKey<'_>,
    ) -> Option<(Place, Option<LimiterRef>)> {
        let first = self
            .limiter_keys
            .find_first(&self.region, entry.hash, entry);
        let own = match first {
            Some((line, _, state)) => Some((line, state)),
            None => self.find_beyond(entry.limiter, entry.key.bytes, entry.hash),
        };
        let Some((line, state)) = own else {
            let (limiter, found) = self.find_overridden(entry)?;
            return Some((Place::of(&found), Some(limiter)));
        };
        let place = Place {
            at: self.region.offset_of(line),
            state: KeyState(state),
            is_overflow: false,
        };
        Some((place, None))
    }

    /// Where `ask` of a key is decided, and its override if it has one: by that or by the limit of now, which
    /// `limiter` is made. Finds the key or, for a session, inserts it. `None` if something changed meanwhile: look
    /// again.
    pub(super) fn place(
        &self,
        limiter: &mut LimiterRef,
        entry: &LimiterKey<'_>,
        ask: Ask,
        by: Option<SessionId>,
        now_ns: u64,
    ) -> Result<Option<(Place, Option<LimiterRef>)>> {
        let overriding = self.override_for(limiter, entry.key.bytes);
        let under = overriding.as_ref().unwrap_or(limiter);
        // Before the search: an insertion after this moves the bucket on, and the charge fails.
        let bucket_at = overflow_at(&self.region, under.id);
        let bucket = settle(&self.region, bucket_at)?;
        if !self.is_current_limit(limiter) {
            *limiter = self.reopened(limiter)?;
            return Ok(None);
        }
        if !under.can_decide(ask) {
            return Err(under.no_reservations());
        }
        // After the bucket: it is still that of the slot's use that was looked up.
        let is_current = |own: &LimiterRef| self.limit_control(own.id).load(Acquire) == own.control;
        if !overriding.as_ref().is_none_or(is_current) {
            return Ok(None);
        }
        if phase(bucket) != LIVE {
            // Not open yet: a key inserted now would start from nothing, whatever it has used of
            // the bucket before.
            self.open_overflow(limiter, now_ns);
            return Ok(None);
        }
        let entry = entry.of(limiter);
        let without_room = Place {
            at: bucket_at,
            state: KeyState(bucket),
            is_overflow: true,
        };
        let found = if let Some(by) = by {
            let actor = self.actor(by, self.region.caps().limiter_keys);
            self.limiter_keys
                .find_or_insert(&self.region, &actor, entry.hash, &entry, now_ns)
        } else {
            // One whose insertion was decided before starts from what the bucket was then.
            self.limiter_keys.finish_at(&self.region, entry.hash);
            let found = self.limiter_keys.find(&self.region, entry.hash, &entry);
            match found {
                Some(found) => Ok(found),
                None => return Ok(Some((without_room, overriding))),
            }
        };
        match found {
            Ok(found) if KeyState(found.state).is_engaged() => {
                settle(&self.region, found.at)?;
                Ok(None)
            }
            Ok(found) if KeyState(found.state).limit() != under.id => {
                if self.move_key(limiter, entry.key.bytes, &found, now_ns) {
                    return Ok(None);
                }
                let previous = KeyState(found.state).limit();
                match self.change_to(limiter, previous) {
                    Some(change) => {
                        self.convert_key(found.cell, found.state, &change, now_ns);
                    }
                    None => {
                        *limiter = self.reopened(limiter)?;
                    }
                }
                Ok(None)
            }
            Ok(found) => Ok(Some((Place::of(&found), overriding))),
            // Its limit was changed since it was looked up: look again.
            Err(Error::LimiterGone { .. }) => Ok(None),
            Err(error)
                if chunk::is_lacking(&error)
                    && by.is_some_and(|by| self.reclaim_long_names(by, now_ns)) =>
            {
                Ok(None)
            }
            // No room is not the key's fault: the bucket that such keys share decides.
            Err(Error::Full { .. } | Error::ShareExceeded { .. } | Error::NoSpace { .. }) => {
                Ok(Some((without_room, overriding)))
            }
            Err(error) => Err(error),
        }
    }

    /// A limiter whose limit was changed since `limiter` was opened, by the limit of now.
    pub(super) fn reopened(&self, limiter: &LimiterRef) -> Result<LimiterRef> {
        self.limiter_ref(&limiter.name)
            .ok_or_else(|| limiter.gone())
    }

    /// Opens the overflow bucket of a limit that has just replaced another.
    fn open_overflow(&self, limiter: &LimiterRef, now_ns: u64) {
        let change = limiter
            .previous
            .and_then(|previous| self.change_to(limiter, previous));
        if let Some(change) = change {
            self.move_overflow(&change, now_ns);
        }
    }
}
