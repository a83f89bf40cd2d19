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
mod ending;
pub(crate) mod engaged;
mod inspect;
mod renewal;
mod several;
mod shared;
mod state;
#[cfg(all(test, not(loom)))]
mod stopped;
pub(crate) mod together;

pub use coarse::Coarse;
pub use deadlock::{Deadlock, DeadlockedWait};
pub use ending::Broken;
pub use inspect::{BreakRecord, HoldStatus, LockStatus};
pub use several::{SEVERAL_MAX, check_number};
pub use shared::Upgrade;
pub(crate) use state::State;

use crate::admission::Wants;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::object::{Kind, Name, OWN, TOKEN_BITS, TOKEN_MAX};
use crate::permit::Permit;
use crate::pool::POOLED;
use crate::region::memory::Line;
use crate::session::SessionId;
use crate::sync::{Word, fence_after_exchange};
use crate::table::{Found, LIVE, field, phase};
use coarse::{is_shut, looks};
use core::sync::atomic::Ordering::{Acquire, Release};
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
    /// The lock's word as the grant left it: what a release that meets no one expects. Or the permit's. In halves, low
    /// one first, so that a grant lies wherever a word may, as in a C program's memory.
    halves: [u64; 2],
}

/// Set in a grant whose hold is a permit.
const BY_PERMIT: u32 = 1 << 31;

impl Grant {
    /// Who holds it: a grant says nothing any more once its hold was handed to another.
    fn by(&self) -> Option<SessionId> {
        State::decode(self.word()).holder
    }

    pub(crate) fn of_permit(token: u64, index: u32, word: u128) -> Self {
        Self {
            token,
            deadline_ns: Permit::decode(word).until_us * 1_000,
            cell: index | BY_PERMIT,
            halves: halves(word),
        }
    }

    #[inline(always)]
    pub(crate) fn word(&self) -> u128 {
        u128::from(self.halves[0]) | u128::from(self.halves[1]) << 64
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
            Some(_) => Permit::decode(self.word()).cell,
            None => self.cell,
        }
    }
}

/// The halves of a word, low one first.
#[inline(always)]
fn halves(word: u128) -> [u64; 2] {
    [word as u64, (word >> 64) as u64]
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
            halves: halves(after),
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
        if grant.word() & QUEUE == 0 && word.compare_exchange(grant.word(), freed).is_ok() {
            return Released::Done { wake: None };
        }
        self.release_grant_slowly(grant.cell, grant.token, grant.word(), now_ns())
    }

    /// Whether the hold is still the lock's. One load; `is_valid` by the holder's own deadline is
    /// cheaper still and needs no region.
    pub fn is_held(&self, grant: &Grant, now_ns: u64) -> bool {
        if let Some(index) = grant.permit() {
            return self.is_permit_held(index, grant.word(), now_ns / 1_000);
        }
        let state = self.lock_word(grant.cell).load();
        let lock = State::decode(state);
        phase(state) == LIVE
            && state & POOLED == 0
            && lock.is_of(grant)
            && !lock.has_expired(now_ns / 1_000)
    }
}
