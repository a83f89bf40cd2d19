//! Shared holds: beside others on the same lock, each with its own token and lease.
//!
//! Owns asking for one, and changing between the two ways of holding. What a shared hold is made of
//! is in [`crate::permit`], who may have one when in [`crate::admission`].
//!
//! # Upgrade
//!
//! Of several who share a lock and want it alone, each would wait for the others for ever. So only one at a
//! time may wait for that: the lock's word names its permit, and any other is told so at once. Whoever
//! waits keeps its share, lets nobody new in, and goes before all who queue. The hold that comes of it
//! is the same permit, under a new token: the lock's word says that it has the lock alone.

use super::{Attempt, Broken, Grant, LIVE, Released, State};
use crate::admission::{Asker, Wants};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::object::{Name, Object, TOKEN_MAX};
use crate::permit::{Permit, Reaped};
use crate::pool::{Mode, POOLED, Pool, is_pooled};
use crate::session::{Process, SessionId};
use crate::table::{Entry as _, Found, ROUNDS_MAX, phase};
use crate::waiter::Wake;
use core::sync::atomic::Ordering::Relaxed;

/// The answer to an attempt to have alone what one shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upgrade {
    /// The lock is the caller's alone, by this grant instead of the one before.
    Granted(Grant),
    /// Others share it still. The caller is the one who may wait for them, and must, or
    /// [`Engine::end_upgrade`].
    Shared,
    /// Another who shares it waits for the same: the two would wait for each other for ever.
    Conflict,
    /// The hold is no more.
    NotHeld,
}

impl Engine {
    /// Takes the lock in shared use if nobody has it alone, and nobody who wants it alone came before.
    pub fn try_acquire_shared(
        &self,
        name: &Name,
        by: SessionId,
        now_ns: u64,
        lease_ns: u64,
    ) -> Result<Attempt> {
        self.try_get(name, Wants::Shared, by, now_ns, lease_ns)
    }

    pub(super) fn release_by_permit(&self, index: u32, hold: u128, now_ns: u64) -> Released {
        if self.release_permit(index, hold, now_ns) {
            let cell = Permit::decode(hold).cell;
            let wake = self.hand_on_now(cell, now_ns);
            Released::Done { wake }
        } else {
            Released::NotHeld
        }
    }

    /// Whether a hold shares its lock, or has permits of a semaphore, rather than have a lock alone. A few
    /// loads.
    pub fn is_shared(&self, grant: &Grant) -> bool {
        grant.permit().is_some_and(|index| {
            let raw = self.objects.state(&self.region, grant.cell()).load();
            is_pooled(raw)
                && (!self.is_lock(grant.cell())
                    || Pool::decode(raw).mode() != Mode::Exclusive(index))
        })
    }

    /// Only a lock has two ways of being held.
    fn check_is_lock(&self, grant: &Grant) -> Result<()> {
        if self.is_lock(grant.cell()) {
            return Ok(());
        }
        Err(Error::NotALock { token: grant.token })
    }

    /// Takes alone what the caller shares by `grant`, if nobody else shares it any more; else makes the
    /// caller the one who waits for that. The lease then ends `lease_ns` from now, or later if it would have.
    pub fn try_upgrade(&self, grant: &Grant, now_ns: u64, lease_ns: u64) -> Result<Upgrade> {
        super::check_lease(lease_ns)?;
        let Some(index) = grant.permit() else {
            return Ok(Upgrade::NotHeld);
        };
        let by = Permit::decode(grant.word()).by;
        let asker = Asker {
            by,
            number: None,
            now_ns,
            lease_ns,
            probe: true,
        };
        let (cell, at) = (grant.cell(), self.objects.at(grant.cell()));
        let has_other = |raw| match Pool::decode(raw).mode() {
            Mode::Exclusive(other) | Mode::Upgrading(other) => is_pooled(raw) && other != index,
            Mode::Shared => false,
        };
        for _ in 0..ROUNDS_MAX {
            let state = self.region.wide(at).load();
            if !self.is_held(grant, now_ns) || !is_pooled(state) {
                return Ok(Upgrade::NotHeld);
            }
            self.check_is_lock(grant)?;
            self.follow_step(cell, state);
            let pool = Pool::decode(state);
            match pool.mode() {
                // It has what it wants, but for the lease.
                Mode::Exclusive(own) if own == index => {
                    let renewed = self.extend_permit(index, grant.word(), now_ns, lease_ns);
                    return Ok(renewed.map_or(Upgrade::NotHeld, |permit| {
                        Upgrade::Granted(Grant::of_permit(pool.token, index, permit.encode()))
                    }));
                }
                Mode::Exclusive(other) | Mode::Upgrading(other) if other != index => {
                    // Unless that one is dead, or its lease is over.
                    match self.reap(cell, state, by, now_ns, true) {
                        Reaped::Alive { raw, .. } if has_other(raw) => {
                            return Ok(Upgrade::Conflict);
                        }
                        _ => continue,
                    }
                }
                _ => {}
            }
            let found = Found { cell, at, state };
            if pool.used == 1 {
                Self::check_tokens(state)?;
                if let Some(grant) = self.complete_upgrade(&found, *grant, &asker) {
                    return Ok(Upgrade::Granted(grant));
                }
                continue;
            }
            // The dead share nothing any more.
            let Reaped::Alive { raw: state, .. } = self.reap(cell, state, by, now_ns, true) else {
                continue;
            };
            let pool = Pool::decode(state);
            // Asked after that word was read: the permit that it is to name is this hold's then.
            let is_held = is_pooled(state) && self.is_held(grant, now_ns);
            if !is_held || pool.used <= 1 || has_other(state) {
                continue;
            }
            let waiting = pool.with_mode(Mode::Upgrading(index)).encode();
            let word = self.region.wide(at);
            if state == waiting || word.compare_exchange(state, waiting).is_ok() {
                return Ok(Upgrade::Shared);
            }
        }
        Err(Error::Damaged {
            what: "a lock never settles",
        })
    }

    /// The exchange that makes the only one who shares a lock the one who has it alone.
    pub(crate) fn complete_upgrade(
        &self,
        found: &Found,
        grant: Grant,
        asker: &Asker,
    ) -> Option<Grant> {
        let index = grant.permit()?;
        // The lease first: once that is over, so is the hold. Never shortened: the exchange below may fail.
        let permit = self.extend_permit(index, grant.word(), asker.now_ns, asker.lease_ns)?;
        let before = self.permit_token(index).load(Relaxed);
        let pool = Pool::decode(found.state);
        let token = pool.token + 1;
        if token > TOKEN_MAX {
            return None;
        }
        let alone = Pool { token, ..pool }.with_mode(Mode::Exclusive(index));
        let word = self.region.wide(found.at);
        word.compare_exchange(found.state, alone.encode()).ok()?;
        self.replace_permit_token(index, permit, before, token);
        Some(Grant::of_permit(token, index, permit.encode()))
    }

    /// Says that the holder of `grant` no longer waits to have the lock alone. Those whom it kept out may be
    /// let in now: the one to wake.
    pub fn end_upgrade(&self, grant: &Grant, now_ns: u64) -> Option<Wake> {
        let index = grant.permit()?;
        self.share_plainly(grant, Mode::Upgrading(index), now_ns)
    }

    /// Goes on sharing a lock that the caller has alone, under the same token and lease. The grant that
    /// replaces `grant`, and a waiter who can share it now, to be woken. `None` once the hold is over.
    pub fn downgrade(&self, grant: &Grant, now_ns: u64) -> Result<Option<(Grant, Option<Wake>)>> {
        if let Some(index) = grant.permit() {
            if !self.is_held(grant, now_ns) {
                return Ok(None);
            }
            self.check_is_lock(grant)?;
            let wake = self.share_plainly(grant, Mode::Exclusive(index), now_ns);
            return Ok(Some((*grant, wake)));
        }
        let cell = grant.cell;
        let Some(by) = grant.by().filter(|_| self.coarse_of(cell).is_none()) else {
            return Ok(None);
        };
        let word = self.objects.state(&self.region, cell);
        for _ in 0..ROUNDS_MAX {
            let raw = word.load();
            let state = State::decode(raw);
            let is_held = phase(raw) == LIVE && raw & POOLED == 0 && state.is_of(grant);
            if !is_held || state.has_expired(now_ns / 1_000) {
                return Ok(None);
            }
            let claim = self.claim_permit(by, cell, state.time_us, 1, now_ns)?;
            // The hold is the same one, so its token is not spent anew.
            let Some(token) = state.token.checked_sub(1) else {
                return Ok(None);
            };
            let before = Pool::empty(token, state.queue);
            if let Some(grant) = self.join(cell, raw, before, &claim, 1) {
                self.note_permit(claim.index, now_ns);
                return Ok(Some((grant, self.hand_on_now(cell, now_ns))));
            }
            self.abandon_permit(&claim);
        }
        Ok(None)
    }

    /// Puts the lock of `grant` back from mode `from`, which names its permit, into plain shared use, and
    /// finds whom that lets in.
    pub(crate) fn share_plainly(&self, grant: &Grant, from: Mode, now_ns: u64) -> Option<Wake> {
        let (index, cell) = (grant.permit()?, grant.cell());
        let word = self.objects.state(&self.region, cell);
        for _ in 0..ROUNDS_MAX {
            let raw = word.load();
            let pool = Pool::decode(raw);
            // Asked after the word was read: then the permit that it names is this hold's, and not that of
            // a later one which has the same. An upgrade goes with its hold, should that be handed on.
            let is_its = match from {
                Mode::Exclusive(_) => self.is_held(grant, now_ns),
                _ => self.is_permit_of(index, grant.word()),
            };
            if !is_pooled(raw) || pool.mode() != from || !is_its {
                return None;
            }
            let shared = pool.with_mode(Mode::Shared);
            if word.compare_exchange(raw, shared.encode()).is_ok() {
                return self.hand_on(cell, shared.encode(), now_ns);
            }
        }
        None
    }

    /// Takes a lock away from all who share it.
    pub(super) fn break_shared(
        &self,
        object: &Object<'_>,
        cell: u32,
        by: Process,
        now_ns: u64,
    ) -> Option<Broken> {
        let line = self.region.line(self.objects.at(cell));
        let mut token = 0;
        let is_broken = self.end_members(cell, now_ns, |raw| {
            token = Pool::decode(raw).token;
            is_pooled(raw) && object.matches(&self.region, line, raw)
        });
        if !is_broken {
            return None;
        }
        self.note_break(object.name, token, by, now_ns);
        Some(Broken {
            token,
            wake: self.hand_on_now(cell, now_ns),
        })
    }
}
