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

pub(crate) mod coarse;
mod coarse_hold;
pub(crate) mod deadlock;
pub(crate) mod engaged;
mod inspect;
mod several;
mod shared;
mod state;
#[cfg(all(test, not(loom)))]
mod stopped;

pub use coarse::Coarse;
pub use deadlock::{Deadlock, DeadlockedWait};
pub use inspect::{BreakRecord, HoldStatus, LockStatus};
pub use several::{SEVERAL_MAX, check_number};
pub use shared::Upgrade;
pub(crate) use state::State;

use crate::admission::Wants;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::object::{Kind, Name, OWN, Object, Objects, TOKEN_BITS, TOKEN_MAX, serial};
use crate::permit::Permit;
use crate::pool::{POOLED, is_pooled};
use crate::region::memory::Line;
use crate::session::{Process, SessionId};
use crate::sync::{Word, fence_after_exchange};
use crate::table::{Entry as _, Found, LIVE, ROUNDS_MAX, field, phase};
use coarse::{COARSE, is_shut, looks};
use core::sync::atomic::Ordering::{Acquire, Release};
use engaged::{Engaged, is_engaged};
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
    /// The lock's cell; with [`BY_PERMIT`], the index of a permit.
    cell: u32,
    /// The lock's word as the grant left it: what a release that meets no one expects. Or the permit's.
    pub(crate) word: u128,
}

/// Set in a grant whose hold is a permit.
const BY_PERMIT: u32 = 1 << 31;

impl Grant {
    /// Who holds it: a grant says nothing any more once its hold was handed to another.
    fn by(&self) -> Option<SessionId> {
        State::decode(self.word).holder
    }

    pub(crate) fn of_permit(token: u64, index: u32, word: u128) -> Self {
        Self {
            token,
            deadline_ns: Permit::decode(word).until_us * 1_000,
            cell: index | BY_PERMIT,
            word,
        }
    }

    /// Whether it is in the lock's own word, and so never shared.
    pub fn is_plain(&self) -> bool {
        self.permit().is_none()
    }

    /// The permit that is its hold, if it is one.
    pub(crate) fn permit(&self) -> Option<u32> {
        (self.cell & BY_PERMIT != 0).then_some(self.cell & !BY_PERMIT)
    }

    /// The cell of the lock or semaphore.
    pub(crate) fn cell(&self) -> u32 {
        match self.permit() {
            Some(_) => Permit::decode(self.word).cell,
            None => self.cell,
        }
    }
}

/// What a hold is of, beside its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldOf {
    /// A lock, alone or shared.
    Lock,
    /// A semaphore's permits.
    Semaphore,
    /// Permits of a key of a concurrency limiter.
    Slots,
}

impl HoldOf {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Lock => Kind::Lock,
            Self::Semaphore => Kind::Semaphore,
            Self::Slots => Kind::Slots,
        }
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

pub(crate) fn check_lease(lease_ns: u64) -> Result<()> {
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

/// Notes in a lock's own word when the hold with this token began. It says also that no coarse lock undid the
/// grant: until then, who finds the lock held looks again ([`Engine::is_settled`]). A stale store can
/// only make an inspection say "not known", and those who are refused look a few times more.
#[inline(always)]
pub(crate) fn note_granted(own: &Word, token: u64, now_ns: u64) {
    // Release: after the look at the gate.
    own.store(now_ns & !0xfff | token & 0xfff, Release);
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
        let grant = Self::take(line, cell, state, by, now_ns, lease_ns)?;
        // We published a hold, then look at the gate: pairs with the fence in `take_all`.
        fence_after_exchange();
        if is_shut(self.gate_of(object.hash()).load_low()) {
            self.undo(cell, grant.token, by, now_ns);
            return None;
        }
        note_granted(line.word(OWN), grant.token, now_ns);
        Some(grant)
    }

    /// Undoes a grant for a coarse lock's sake, to look again more closely. Whoever is to be woken by that finds
    /// out at the next look. Takes what it needs of the grant, so that this lives in registers.
    #[cold]
    #[inline(never)]
    fn undo(&self, cell: u32, token: u64, by: SessionId, now_ns: u64) {
        let _ = self.release_slowly(cell, now_ns, |state| {
            state.holder == Some(by) && state.token == token
        });
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
        self.try_get(name, Wants::Exclusive, by, now_ns, lease_ns)
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
        Some(Grant {
            token,
            deadline_ns: until_us * 1_000,
            cell,
            word: after,
        })
    }

    /// Whether a lock that was found held is so for good, and not by a grant that is about to be undone for a
    /// coarse lock's sake: nobody may be refused for that. Waits for as long as it takes one who runs.
    pub(crate) fn is_settled(&self, found: &Found) -> bool {
        let (word, own) = (self.region.wide(found.at), self.region.word(found.at + OWN));
        let token = State::decode(found.state).token;
        for _ in 0..looks() {
            // Acquire: pairs with the release in `note_granted`.
            if own.load(Acquire) & 0xfff == token & 0xfff {
                return true;
            }
            core::hint::spin_loop();
            if word.load() != found.state {
                return false;
            }
        }
        true
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
        self.release_grant_slowly(grant.cell, grant.token, grant.word, now_ns())
    }

    /// By what it needs of the grant, which so stays in registers.
    #[cold]
    #[inline(never)]
    fn release_grant_slowly(&self, cell: u32, token: u64, word: u128, now_ns: u64) -> Released {
        let grant = Grant {
            token,
            deadline_ns: 0,
            cell,
            word,
        };
        if let Some(index) = grant.permit() {
            return self.release_by_permit(index, word, now_ns);
        }
        match self.coarse_of(cell) {
            Some(coarse) => self.release_coarse(coarse, now_ns, |state| state.is_of(&grant)),
            None => self.release_slowly(cell, now_ns, |state| state.is_of(&grant)),
        }
    }

    /// Frees a hold by what it is of and its token.
    pub fn release_by_name(&self, of: HoldOf, name: &Name, token: u64, now_ns: u64) -> Released {
        let Some(found) = self.find_object(&self.object(of.kind(), name)) else {
            return Released::NotHeld;
        };
        if let Some((index, hold)) = self.permit_of_token(found.cell, token) {
            return self.release_by_permit(index, hold, now_ns);
        }
        let (cell, token) = self.hold_of_token(&found, token);
        self.release_slowly(cell, now_ns, |state| {
            state.holder.is_some() && state.token == token
        })
    }

    /// The cell and the token of the hold that a lock is held by under `token`: its own, or its leader's.
    fn hold_of_token(&self, found: &Found, token: u64) -> (u32, u64) {
        self.leader_of(found)
            .filter(|_| serial(found.state) == token)
            .unwrap_or((found.cell, token))
    }

    #[cold]
    fn release_slowly(&self, cell: u32, now_ns: u64, is_hold: impl Fn(State) -> bool) -> Released {
        let freed = self.change(cell, |state| {
            is_hold(state).then(|| state.freed(now_ns / 1_000))
        });
        match freed {
            Some(state) => Released::Done {
                wake: self.hand_on(cell, state.encode(), now_ns),
            },
            None => Released::NotHeld,
        }
    }

    /// Exchanges the word of a live lock in plain form for what `next` makes of it; `None` if `next`
    /// declines.
    pub(crate) fn change(
        &self,
        cell: u32,
        mut next: impl FnMut(State) -> Option<State>,
    ) -> Option<State> {
        let word = self.lock_word(cell);
        for _ in 0..ROUNDS_MAX {
            let state = word.load();
            if phase(state) != LIVE || state & POOLED != 0 {
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
            if phase(state) == LIVE && Objects::is_lock(&self.region, at) {
                self.end_hold_of(index, cell, state, now_us);
            }
        });
        for coarse in 0..=self.region.partitions() {
            let cell = COARSE | coarse;
            self.end_hold_of(index, cell, self.lock_word(cell).load(), now_us);
        }
    }

    fn end_hold_of(&self, index: u16, cell: u32, state: u128, now_us: u64) {
        let is_its = |state: State| state.holder.is_some_and(|by| by.index() == index);
        if is_engaged(state) {
            self.end_engaged_of(index, cell, state, now_us);
        } else if phase(state) == LIVE && !is_pooled(state) && is_its(State::decode(state)) {
            self.change(cell, |state| is_its(state).then(|| state.freed(now_us)));
        }
    }

    /// Moves the end of a hold's lease to `now_ns + lease_ns`. Fails once the lease is over, stolen
    /// or not: the holder has been told so by its own clock.
    pub fn renew(&self, grant: &Grant, now_ns: u64, lease_ns: u64) -> Result<Renewed> {
        self.renew_grant(grant, None, now_ns, lease_ns)
    }

    /// [`renew`](Self::renew) by what the hold is of and its token. Fails also once the holder's
    /// session is gone.
    pub fn renew_by_name(
        &self,
        of: HoldOf,
        name: &Name,
        token: u64,
        now_ns: u64,
        lease_ns: u64,
    ) -> Result<Renewed> {
        let renewed = self.renew_live(of, name, token, None, now_ns, lease_ns)?;
        Ok(renewed.map_or(Renewed::NotHeld, |grant| Renewed::Until(grant.deadline_ns)))
    }

    /// Hands a hold to another session, token kept, with a lease of its own.
    pub fn transfer(
        &self,
        grant: &Grant,
        to: SessionId,
        now_ns: u64,
        lease_ns: u64,
    ) -> Result<Renewed> {
        self.renew_grant(grant, Some(to), now_ns, lease_ns)
    }

    fn renew_grant(
        &self,
        grant: &Grant,
        to: Option<SessionId>,
        now_ns: u64,
        lease_ns: u64,
    ) -> Result<Renewed> {
        let Some(index) = grant.permit() else {
            let is_hold = |state: State| state.is_of(grant);
            let renewed = self.renew_cell(grant.cell, to, now_ns, lease_ns, is_hold)?;
            return Ok(Renewed::of(renewed));
        };
        check_lease(lease_ns)?;
        let renewed = self.renew_permit(index, grant.word, to, now_ns, lease_ns);
        Ok(renewed.map_or(Renewed::NotHeld, |permit| {
            Renewed::Until(permit.until_us * 1_000)
        }))
    }

    /// [`transfer`](Self::transfer) by what the hold is of and its token: how a process takes over
    /// a hold that it was handed. Gives the grant, so that the new holder can release by it.
    pub fn adopt(
        &self,
        of: HoldOf,
        name: &Name,
        token: u64,
        to: SessionId,
        now_ns: u64,
        lease_ns: u64,
    ) -> Result<Option<Grant>> {
        self.renew_live(of, name, token, Some(to), now_ns, lease_ns)
    }

    /// Renews the hold under `token`, if it is of one who is there, and hands it `to` another session if
    /// one is given; the hold as it is then. In a shared region a system call.
    fn renew_live(
        &self,
        of: HoldOf,
        name: &Name,
        token: u64,
        to: Option<SessionId>,
        now_ns: u64,
        lease_ns: u64,
    ) -> Result<Option<Grant>> {
        // Also where there is no such lock.
        check_lease(lease_ns)?;
        let object = self.object(of.kind(), name);
        let Some(found) = self.find_object(&object) else {
            return Ok(None);
        };
        if let Some((index, hold)) = self.permit_of_token(found.cell, token) {
            if !self.is_alive(Permit::decode(hold).by) {
                return Ok(None);
            }
            let renewed = self.renew_permit(index, hold, to, now_ns, lease_ns);
            return Ok(renewed.map(|permit| Grant::of_permit(token, index, permit.encode())));
        }
        let (cell, of_hold) = self.hold_of_token(&found, token);
        let is_live_hold = |state: State| {
            state.token == of_hold && state.holder.is_some_and(|holder| self.is_alive(holder))
        };
        let renewed = self.renew_cell(cell, to, now_ns, lease_ns, is_live_hold)?;
        Ok(renewed.map(|state| Grant {
            token: of_hold,
            deadline_ns: state.time_us * 1_000,
            cell,
            word: state.encode(),
        }))
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
        if let Some(index) = grant.permit() {
            return self.is_permit_held(index, grant.word, now_ns / 1_000);
        }
        let state = self.lock_word(grant.cell).load();
        let lock = State::decode(state);
        phase(state) == LIVE
            && state & POOLED == 0
            && lock.is_of(grant)
            && !lock.has_expired(now_ns / 1_000)
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
        let raw = line.state().load();
        if is_pooled(raw) && object.matches(&self.region, line, raw) {
            return self.break_shared(object, cell, by, now_ns);
        }
        let found = Found {
            cell,
            at: self.objects.at(cell),
            state: raw,
        };
        if let Some((leader, token)) = self.leader_of(&found)
            && object.matches(&self.region, line, raw)
        {
            let is_its = |state: State| state.holder.is_some() && state.token == token;
            self.change(leader, |state| {
                is_its(state).then(|| state.freed(now_ns / 1_000))
            })?;
            self.free_follower(cell, leader, Engaged::tag_of(token), now_ns);
            self.note_break(object.name, serial(raw), by, now_ns);
            return Some(Broken {
                token: serial(raw),
                wake: self.hand_on_now(cell, now_ns),
            });
        }
        let freed = self.change(cell, |state| {
            (state.holder.is_some() && object.matches(&self.region, line, state.encode()))
                .then(|| state.freed(now_ns / 1_000))
        })?;
        self.note_break(object.name, freed.token, by, now_ns);
        Some(Broken {
            token: freed.token,
            wake: self.hand_on(cell, freed.encode(), now_ns),
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
