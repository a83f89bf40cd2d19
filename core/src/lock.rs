//! Locks: one holder per name, with a token and a lease, in one 128-bit word.
//!
//! Everything that must agree is in one word (its bits are in [`state`]), so each transition is one
//! exchange and there is no state in between to be finished by anyone:
//!
//! ```text
//!                 acquire: token + 1
//!  free(t) ─────────────────────────────▶ held(s, t+1, until) ◀──┐ renew, transfer: token kept,
//!    ▲                                        │   │              │ only before `until`
//!    │           release(t+1), break          │   └──────────────┘
//!    ├────────────────────────────────────────┤
//!    │   expired (until <= now) or s is dead  │  taken over at once by a newcomer when there is no
//!    └────────────────────────────────────────┘  queue: held(s', t+2, until')
//! ```
//!
//! A renewal and a steal exchange the same word, so one of them fails. A release, renewal or transfer
//! names its token and fails on any other; by its grant it fails also once the hold was handed to
//! another session. A word never repeats: tokens rise, and reclaiming the cell raises the serial that
//! the next entry's tokens start from.
//!
//! # With waiters
//!
//! A release only frees the word (keeping *queue*) and says whom to wake. The head of the queue then
//! takes the lock by its own exchange; nobody grants on behalf of another, so a grant is always to
//! one that lives and still wants it. See [`crate::waiter`].

mod inspect;
mod state;

pub use inspect::{BreakRecord, HoldStatus, LockStatus};
pub(crate) use state::State;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::object::{Kind, Name, OWN, Object, Objects, TOKEN_BITS, TOKEN_MAX};
use crate::region::memory::Line;
use crate::session::{Process, SessionId};
use crate::table::{Entry as _, Found, LIVE, ROUNDS_MAX, field, phase};
use core::sync::atomic::Ordering::Relaxed;
use state::{QUEUE, TIME_US_MAX, TOKEN};

/// The shortest lease, in nanoseconds: one millisecond.
pub const LEASE_NS_MIN: u64 = 1_000_000;
/// The longest lease, in nanoseconds: 366 days.
pub const LEASE_NS_MAX: u64 = 366 * 86_400 * 1_000_000_000;

/// A hold as the engine granted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The fencing token: higher than any granted on this lock before.
    pub token: u64,
    /// Region time at which the engine lets others have the lock, in nanoseconds.
    pub deadline_ns: u64,
    pub(crate) cell: u32,
    /// The lock's word as the grant left it: what a release that meets no one expects.
    word: u128,
}

impl Grant {
    /// Who holds it: a grant says nothing any more once its hold was handed to another.
    fn by(&self) -> Option<SessionId> {
        State::decode(self.word).holder
    }
}

/// The answer to an attempt at a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It is held by the caller now.
    Granted(Grant),
    /// Somebody else holds it, or is queued for it.
    Busy,
}

/// The answer to a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// Freed.
    Done {
        /// A waiter whose turn it is; wake it.
        wake: Option<crate::waiter::Wake>,
    },
    /// Not held under this token, any more or ever: nothing was changed.
    NotHeld,
}

/// The answer to a renewal or a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// The lease now ends at this region time, in nanoseconds.
    Until(u64),
    /// Not held under this token, any more or ever: nothing was changed.
    NotHeld,
}

impl Renewed {
    fn of(renewed: Option<State>) -> Self {
        renewed.map_or(Self::NotHeld, |state| Self::Until(state.time_us * 1_000))
    }
}

fn check_lease(lease_ns: u64) -> Result<()> {
    if (LEASE_NS_MIN..=LEASE_NS_MAX).contains(&lease_ns) {
        return Ok(());
    }
    Err(Error::OutOfRange {
        what: "lease (ns)",
        value: lease_ns,
        min: LEASE_NS_MIN,
        max: LEASE_NS_MAX,
    })
}

/// The engine's end of a lease, in microseconds: rounded up, so never before the holder's own.
#[inline(always)]
pub(crate) fn until_us(now_ns: u64, lease_ns: u64) -> u64 {
    // A time that no word can hold comes only from a region whose clock words are damaged.
    now_ns
        .saturating_add(lease_ns)
        .div_ceil(1_000)
        .min(TIME_US_MAX)
}

impl Engine {
    /// Prepares a lock's name. Names of at most 24 bytes allocate nothing.
    #[inline(always)]
    pub fn lock_name(&self, name: &[u8]) -> Result<Name> {
        Name::new(&self.region, "lock name", name)
    }

    #[inline(always)]
    pub(crate) fn find_lock(&self, name: &Name, by: SessionId, now_ns: u64) -> Result<Found> {
        let object = self.object(Kind::Lock, name);
        match self.find_object(&object) {
            Some(found) => Ok(found),
            None => self.insert_object(&object, by, now_ns),
        }
    }

    /// Takes the lock if it is free and nobody is queued for it, or if its holder's lease is over or
    /// its session dead. One exchange on one line when nobody else is about.
    #[inline]
    pub fn try_acquire(
        &self,
        name: &Name,
        by: SessionId,
        now_ns: u64,
        lease_ns: u64,
    ) -> Result<Attempt> {
        match self.try_acquire_free(name, by, now_ns, lease_ns) {
            Some(grant) => Ok(Attempt::Granted(grant)),
            None => self.try_acquire_slowly(name, by, now_ns, lease_ns),
        }
    }

    /// The common case of [`try_acquire`](Self::try_acquire) alone: takes a lock that is known, free and
    /// not queued for. `None` says only that this was not the case.
    #[inline(always)]
    pub fn try_acquire_free(
        &self,
        name: &Name,
        by: SessionId,
        now_ns: u64,
        lease_ns: u64,
    ) -> Option<Grant> {
        let object = self.object(Kind::Lock, name);
        let first = self
            .objects
            .find_first(&self.region, object.hash(), &object);
        let (line, cell, state) = match first {
            Some(found) => found,
            None => self.find_lock_beyond(name)?,
        };
        if !State::is_plainly_free(state) || !(LEASE_NS_MIN..=LEASE_NS_MAX).contains(&lease_ns) {
            return None;
        }
        Self::take(line, cell, state, by, now_ns, lease_ns)
    }

    /// A lock that is known, wherever it is.
    #[inline(never)]
    fn find_lock_beyond(&self, name: &Name) -> Option<(Line<'_>, u32, u128)> {
        let found = self.find_object(&self.object(Kind::Lock, name))?;
        Some((self.region.line(found.at), found.cell, found.state))
    }

    #[inline(never)]
    fn try_acquire_slowly(
        &self,
        name: &Name,
        by: SessionId,
        now_ns: u64,
        lease_ns: u64,
    ) -> Result<Attempt> {
        check_lease(lease_ns)?;
        for _ in 0..ROUNDS_MAX {
            let found = self.find_lock(name, by, now_ns)?;
            let state = State::decode(found.state);
            if !state.is_idle() && !self.may_take(&found, state, by, now_ns) {
                return Ok(Attempt::Busy);
            }
            let line = self.region.line(found.at);
            Self::check_tokens(found.state)?;
            if let Some(grant) = Self::take(line, found.cell, found.state, by, now_ns, lease_ns) {
                return Ok(Attempt::Granted(grant));
            }
        }
        Err(Error::Damaged {
            what: "a lock never settles",
        })
    }

    /// Whether a newcomer may take a lock that is not plainly free, if its word is still what was found.
    #[cold]
    fn may_take(&self, found: &Found, state: State, by: SessionId, now_ns: u64) -> bool {
        let now_us = now_ns / 1_000;
        let is_open = match state.holder {
            None => true,
            Some(holder) => {
                state.has_expired(now_us)
                    || (holder != by && !self.sessions.is_alive(&self.region, holder))
            }
        };
        if !is_open || !state.queue {
            return is_open;
        }
        let Some(first) = self.first_waiter(found.cell, now_ns, true) else {
            return true;
        };
        // Those who wait come first, each for as long as it may let the lock lie.
        if state.holder.is_none() {
            if !first.has_let_lie(state, now_ns) {
                return false;
            }
            // The word is another now, which the caller finds out and looks at anew.
            self.pass_over(found.cell, found.state, now_ns);
            return true;
        }
        // Their time counts from when the lock is free.
        let word = self.region.wide(found.at);
        let _ = word.compare_exchange(found.state, state.freed(now_us).encode());
        false
    }

    /// The granting exchange. `None` when the word changed since it was read, or tokens are used up.
    #[inline(always)]
    pub(crate) fn take(
        line: Line<'_>,
        cell: u32,
        state: u128,
        by: SessionId,
        now_ns: u64,
        lease_ns: u64,
    ) -> Option<Grant> {
        let until_us = until_us(now_ns, lease_ns);
        let (token, after) = State::granted(state, by, until_us)?;
        // Acquire: pairs with the release by which the last holder freed it, so the new holder sees
        // what the last one did. Release: publishes nothing but itself.
        line.state().compare_exchange(state, after).ok()?;
        // When it began, for inspection. Relaxed, and a plain store: a hint whose low bits say which
        // token it belongs to. A stale store can only make an inspection say "not known".
        line.word(OWN)
            .store(now_ns & !0xfff | token & 0xfff, Relaxed);
        Some(Grant {
            token,
            deadline_ns: until_us * 1_000,
            cell,
            word: after,
        })
    }

    /// Fails when the lock's tokens can rise no further.
    pub(crate) fn check_tokens(state: u128) -> Result<()> {
        match field(state, TOKEN, TOKEN_BITS) {
            TOKEN_MAX => Err(Error::TokensExhausted {
                token: TOKEN_MAX,
                max: TOKEN_MAX,
            }),
            _ => Ok(()),
        }
    }

    /// Frees a hold by its grant. One exchange when nobody waits; `now_ns` is asked only otherwise.
    #[inline(always)]
    pub fn release(&self, grant: &Grant, now_ns: impl FnOnce() -> u64) -> Released {
        // Expecting the word as the grant left it saves reading it first. Release: what the holder
        // did comes before; pairs with the next grant's acquire.
        let freed = LIVE | u128::from(grant.token) << TOKEN;
        let word = self.objects.state(&self.region, grant.cell);
        if grant.word & QUEUE == 0 && word.compare_exchange(grant.word, freed).is_ok() {
            return Released::Done { wake: None };
        }
        self.release_slowly(grant.cell, now_ns(), |state| state.is_of(grant))
    }

    /// Frees a hold by the lock's name and its token.
    pub fn release_by_name(&self, name: &Name, token: u64, now_ns: u64) -> Released {
        let object = self.object(Kind::Lock, name);
        match self.find_object(&object) {
            Some(found) => self.release_slowly(found.cell, now_ns, |state| {
                state.holder.is_some() && state.token == token
            }),
            None => Released::NotHeld,
        }
    }

    #[cold]
    fn release_slowly(&self, cell: u32, now_ns: u64, is_hold: impl Fn(State) -> bool) -> Released {
        let freed = self.change(cell, |state| {
            is_hold(state).then(|| state.freed(now_ns / 1_000))
        });
        match freed {
            Some(state) => Released::Done {
                wake: self.hand_on(cell, state, now_ns),
            },
            None => Released::NotHeld,
        }
    }

    /// Exchanges a live lock's word for what `next` makes of it; `None` if `next` declines.
    pub(crate) fn change(
        &self,
        cell: u32,
        mut next: impl FnMut(State) -> Option<State>,
    ) -> Option<State> {
        let word = self.objects.state(&self.region, cell);
        for _ in 0..ROUNDS_MAX {
            let state = word.load();
            if phase(state) != LIVE {
                return None;
            }
            let after = next(State::decode(state))?;
            if word.compare_exchange(state, after.encode()).is_ok() {
                return Some(after);
            }
        }
        None
    }

    /// Frees all that sessions that had this line hold.
    pub(crate) fn end_holds_of(&self, index: u16, now_us: u64) {
        self.objects.for_each(&self.region, |cell, at, state| {
            let is_its = |state: State| state.holder.is_some_and(|by| by.index() == index);
            if phase(state) == LIVE
                && Objects::is_lock(&self.region, at)
                && is_its(State::decode(state))
            {
                self.change(cell, |state| is_its(state).then(|| state.freed(now_us)));
            }
        });
    }

    /// Moves the end of a hold's lease to `now_ns + lease_ns`. Fails once the lease is over, stolen
    /// or not: the holder has been told so by its own clock.
    pub fn renew(&self, grant: &Grant, now_ns: u64, lease_ns: u64) -> Result<Renewed> {
        let is_hold = |state: State| state.is_of(grant);
        let renewed = self.renew_cell(grant.cell, None, now_ns, lease_ns, is_hold)?;
        Ok(Renewed::of(renewed))
    }

    /// [`renew`](Self::renew) by the lock's name and the hold's token. Fails also once the holder's
    /// session is gone.
    pub fn renew_by_name(
        &self,
        name: &Name,
        token: u64,
        now_ns: u64,
        lease_ns: u64,
    ) -> Result<Renewed> {
        let renewed = self.renew_live(name, token, None, now_ns, lease_ns)?;
        Ok(Renewed::of(renewed.map(|(_, state)| state)))
    }

    /// Hands a hold to another session, token kept, with a lease of its own.
    pub fn transfer(
        &self,
        grant: &Grant,
        to: SessionId,
        now_ns: u64,
        lease_ns: u64,
    ) -> Result<Renewed> {
        let is_hold = |state: State| state.is_of(grant);
        let renewed = self.renew_cell(grant.cell, Some(to), now_ns, lease_ns, is_hold)?;
        Ok(Renewed::of(renewed))
    }

    /// [`transfer`](Self::transfer) by the lock's name and the hold's token: how a process takes over
    /// a hold that it was handed. Gives the grant, so that the new holder can release by it.
    pub fn adopt(
        &self,
        name: &Name,
        token: u64,
        to: SessionId,
        now_ns: u64,
        lease_ns: u64,
    ) -> Result<Option<Grant>> {
        let adopted = self.renew_live(name, token, Some(to), now_ns, lease_ns)?;
        Ok(adopted.map(|(cell, state)| Grant {
            token,
            deadline_ns: state.time_us * 1_000,
            cell,
            word: state.encode(),
        }))
    }

    /// Renews the hold under `token`, if it is of one who is there, and hands it `to` another session if
    /// one is given; the lock's cell and new state. In a shared region a system call.
    fn renew_live(
        &self,
        name: &Name,
        token: u64,
        to: Option<SessionId>,
        now_ns: u64,
        lease_ns: u64,
    ) -> Result<Option<(u32, State)>> {
        // Also where there is no such lock.
        check_lease(lease_ns)?;
        let object = self.object(Kind::Lock, name);
        let Some(found) = self.find_object(&object) else {
            return Ok(None);
        };
        let is_live_hold = |state: State| {
            state.token == token && state.holder.is_some_and(|holder| self.is_alive(holder))
        };
        let renewed = self.renew_cell(found.cell, to, now_ns, lease_ns, is_live_hold)?;
        Ok(renewed.map(|state| (found.cell, state)))
    }

    fn renew_cell(
        &self,
        cell: u32,
        to: Option<SessionId>,
        now_ns: u64,
        lease_ns: u64,
        is_hold: impl Fn(State) -> bool,
    ) -> Result<Option<State>> {
        check_lease(lease_ns)?;
        let until_us = until_us(now_ns, lease_ns);
        Ok(self.change(cell, |state| {
            (is_hold(state) && !state.has_expired(now_ns / 1_000)).then_some(State {
                holder: to.or(state.holder),
                time_us: until_us,
                ..state
            })
        }))
    }

    /// Whether the hold is still the lock's. One load; `is_valid` by the holder's own deadline is
    /// cheaper still and needs no region.
    pub fn is_held(&self, grant: &Grant, now_ns: u64) -> bool {
        let state = self.objects.state(&self.region, grant.cell).load();
        let lock = State::decode(state);
        phase(state) == LIVE && lock.is_of(grant) && !lock.has_expired(now_ns / 1_000)
    }

    /// Takes a lock away from its holder, whoever that is, and notes who did it. `None` if it was
    /// not held. The holder's token stays spent, so a fence rejects what it still writes.
    pub fn break_lock(&self, name: &Name, by: Process, now_ns: u64) -> Option<Broken> {
        let object = self.object(Kind::Lock, name);
        let found = self.find_object(&object)?;
        self.break_found(&object, found.cell, by, now_ns)
    }

    /// Breaks a lock that was found in `cell`. By now the cell may be another lock's, and that one's
    /// holder is not to lose it.
    pub(crate) fn break_found(
        &self,
        object: &Object<'_>,
        cell: u32,
        by: Process,
        now_ns: u64,
    ) -> Option<Broken> {
        let line = self.region.line(self.objects.at(cell));
        let freed = self.change(cell, |state| {
            (state.holder.is_some() && object.matches(&self.region, line, state.encode()))
                .then(|| state.freed(now_ns / 1_000))
        })?;
        self.note_break(object.name, freed.token, by, now_ns);
        Some(Broken {
            token: freed.token,
            wake: self.hand_on(cell, freed, now_ns),
        })
    }
}

/// A lock that was taken away from its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The token of the hold that was ended.
    pub token: u64,
    /// A waiter whose turn it is; wake it.
    pub wake: Option<crate::waiter::Wake>,
}
