//! Onces (idempotency keys): the first caller owns the key until a deadline and may store a small result;
//! the others are told that it is in progress, or the result.
//!
//! Everything that must agree is in one word (its bits are in [`state`]), so each transition is one
//! exchange:
//!
//! ```text
//!              begin: token + 1                        finish(t+1), only before `until`
//!  open(t) ───────────────────────▶ in progress(s, t+1, until) ─────────────▶ done(t+1, result, kept)
//!    ▲  ▲                               │   │     ▲   │ renew, transfer: token kept,      │
//!    │  │  abandon(t+1): the flag stays │   │     └───┘ only before `until`               │ kept is
//!    │  └───────────────────────────────┘   │                                             │ over
//!    │     dropped; `until` passed or s died, noted by who meets it: flag *unfinished*    │
//!    └──────────────────────────────────────┘         begin: in progress(s', t+2, until') ◀┘
//! ```
//!
//! Begin takes over an attempt that is over by its deadline, or whose session is dead, in the same
//! exchange that starts its own. Finishing and taking over exchange the same word, so one of them fails:
//! a late owner stores nothing. Whoever is told that an attempt ended unfinished was told so by a word
//! that the late owner's exchange no longer fits, so what was told stays true.
//!
//! A word never repeats: tokens rise with each attempt, and over reclaiming as those of locks do.
//!
//! # When an entry may be reclaimed
//!
//! Open: at any time, but one that says *unfinished* is kept for [`UNFINISHED_KEPT_NS`] from when that
//! was noted, or from the deadline that passed unnoticed, for the next caller must know that the work may
//! have been done in part. Done: when its keeping is over. Where results are stored is in [`result`].

mod inspect;
mod result;
mod state;
#[cfg(all(test, not(loom)))]
mod stopped;

pub use inspect::{OnceStatus, Progress};
pub(crate) use state::{State, Status};

use crate::chunk;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::lock::until_us;
use crate::object::{Kind, Name, Objects, TOKEN_MAX};
use crate::region::Region;
use crate::session::SessionId;
use crate::sync::fence;
use crate::table::{Found, Idle, LIVE, ROUNDS_MAX, phase};
use core::sync::atomic::Ordering::Acquire;

/// The longest result, in bytes.
pub const RESULT_BYTES_MAX: usize = 1_024;
/// The shortest time that an attempt or a result can be given, in nanoseconds: one millisecond.
pub const TTL_NS_MIN: u64 = crate::lock::LEASE_NS_MIN;
/// The longest, in nanoseconds: 366 days.
pub const TTL_NS_MAX: u64 = crate::lock::LEASE_NS_MAX;
/// For how long it is remembered at least that an attempt ended unfinished, in nanoseconds: one hour.
/// After that, until its room is needed.
pub const UNFINISHED_KEPT_NS: u64 = 3_600_000_000_000;

/// An attempt as the engine granted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The attempt's token: higher than that of any attempt at this key before.
    pub token: u64,
    /// Region time at which the engine lets others begin, in nanoseconds.
    pub deadline_ns: u64,
    /// Whether an attempt before this one ended unfinished, so that its work may have been done in part.
    pub is_after_unfinished: bool,
    cell: u32,
}

/// The answer to a beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The caller owns the key now.
    Started(Attempt),
    /// Another attempt is under way.
    InProgress(Progress),
    /// It was done; the result.
    Done(Vec<u8>),
}

fn check_time(what: &'static str, ns: u64) -> Result<()> {
    if (TTL_NS_MIN..=TTL_NS_MAX).contains(&ns) {
        return Ok(());
    }
    Err(Error::OutOfRange {
        what,
        value: ns,
        min: TTL_NS_MIN,
        max: TTL_NS_MAX,
    })
}

fn never_settles() -> Error {
    Error::Damaged {
        what: "a once never settles",
    }
}

impl Engine {
    /// Prepares a once's name. Names of at most 24 bytes allocate nothing.
    #[inline]
    pub fn once_name(&self, name: &[u8]) -> Result<Name> {
        Name::new(&self.region, "once key", name)
    }

    /// Begins an attempt, until `now_ns + ttl_ns`, unless one is in progress or the key is done.
    pub fn begin(&self, name: &Name, by: SessionId, now_ns: u64, ttl_ns: u64) -> Result<Begun> {
        check_time("ttl (ns)", ttl_ns)?;
        let object = self.object(Kind::Once, name);
        for _ in 0..ROUNDS_MAX {
            let found = match self.find_object(&object) {
                Some(found) => found,
                None => self.insert_object(&object, by, now_ns)?,
            };
            if let Some(begun) = self.begin_found(&found, by, now_ns, ttl_ns)? {
                return Ok(begun);
            }
        }
        Err(never_settles())
    }

    /// The common case of [`begin`](Self::begin) alone: the result of a key that is done, where most keys are.
    /// `None` says only that this was not the case.
    #[inline(always)]
    pub fn result_if_done(&self, name: &Name, now_ns: u64) -> Option<Vec<u8>> {
        let object = self.object(Kind::Once, name);
        let (line, _, state) = self
            .objects
            .find_first(&self.region, object.hash(), &object)?;
        let Status::Done { first, until_ms } = State::decode(state).status else {
            return None;
        };
        if now_ns / 1_000_000 >= until_ms {
            return None;
        }
        let result = self.read_result(first);
        // Acquire: as in `Found::is_unchanged`.
        fence(Acquire);
        (line.state().load() == state).then_some(result)
    }

    /// `None` if the word changed since it was found.
    fn begin_found(
        &self,
        found: &Found,
        by: SessionId,
        now_ns: u64,
        ttl_ns: u64,
    ) -> Result<Option<Begun>> {
        let state = State::decode(found.state);
        let is_after_unfinished = match state.status {
            Status::Done { first, until_ms } if now_ns / 1_000_000 < until_ms => {
                let result = self.read_result(first);
                return Ok(found
                    .is_unchanged(&self.region)
                    .then_some(Begun::Done(result)));
            }
            Status::Done { .. } => false,
            Status::Open { unfinished_us } => unfinished_us.is_some(),
            Status::InProgress { .. } => {
                if let Some(owner) = self.live_owner(state, now_ns) {
                    let progress = self.progress(owner, state, now_ns);
                    return Ok(found
                        .is_unchanged(&self.region)
                        .then_some(Begun::InProgress(progress)));
                }
                true
            }
        };
        if state.token >= TOKEN_MAX {
            return Err(Error::TokensExhausted {
                token: TOKEN_MAX,
                max: TOKEN_MAX,
            });
        }
        let until_us = until_us(now_ns, ttl_ns);
        let after = State {
            token: state.token + 1,
            status: Status::InProgress {
                by,
                until_us,
                is_after_unfinished,
            },
        };
        // Acquire: the new owner sees what the last one did. Release: publishes nothing but itself.
        let word = self.region.wide(found.at);
        if word.compare_exchange(found.state, after.encode()).is_err() {
            return Ok(None);
        }
        if is_after_unfinished {
            // It was to be kept until a time that a sweep may have published, and may be idle before.
            self.objects.stir(&self.region);
        }
        Ok(Some(Begun::Started(Attempt {
            token: after.token,
            deadline_ns: until_us * 1_000,
            is_after_unfinished,
            cell: found.cell,
        })))
    }

    /// The owner of an attempt that is in progress, neither past its deadline nor of a session that is dead.
    fn live_owner(&self, state: State, now_ns: u64) -> Option<SessionId> {
        let owner = state.owner(now_ns / 1_000)?;
        self.is_alive(owner).then_some(owner)
    }

    /// Stores the result of an attempt, 0 to [`RESULT_BYTES_MAX`] bytes, until `now_ns + keep_ns` at
    /// least. `false`: the attempt is over, by its deadline or since another began, and nothing was
    /// stored. `by` is an open session of the caller's.
    pub fn finish(
        &self,
        attempt: &Attempt,
        by: SessionId,
        result: &[u8],
        now_ns: u64,
        keep_ns: u64,
    ) -> Result<bool> {
        result::check_len(result)?;
        check_time("keep (ns)", keep_ns)?;
        self.finish_cell(attempt.cell, attempt.token, by, result, now_ns, keep_ns)
    }

    /// [`finish`](Self::finish) by the key and the attempt's token. `false` also once the owner's
    /// session is gone.
    pub fn finish_by_name(
        &self,
        name: &Name,
        token: u64,
        by: SessionId,
        result: &[u8],
        now_ns: u64,
        keep_ns: u64,
    ) -> Result<bool> {
        // Also where there is no such key.
        result::check_len(result)?;
        check_time("keep (ns)", keep_ns)?;
        match self.find_attempt(name, token, now_ns) {
            Some(cell) => self.finish_cell(cell, token, by, result, now_ns, keep_ns),
            None => Ok(false),
        }
    }

    fn finish_cell(
        &self,
        cell: u32,
        token: u64,
        by: SessionId,
        result: &[u8],
        now_ns: u64,
        keep_ns: u64,
    ) -> Result<bool> {
        // Before anything is written: one that is over needs no room.
        if !self.may_go_on(cell, token, now_ns) {
            return Ok(false);
        }
        let written = match self.write_result(cell, token, by, result) {
            Err(error) if chunk::is_lacking(&error) && self.reclaim_long_names(by, now_ns) => {
                self.write_result(cell, token, by, result)
            }
            written => written,
        }?;
        let until_ms = now_ns.saturating_add(keep_ns).div_ceil(1_000_000);
        let status = Status::Done {
            first: written.first(),
            until_ms,
        };
        // Release: the result comes before; pairs with the acquire of whoever reads it.
        let is_stored = self.change_attempt(cell, token, Some(now_ns), |state| state.with(status));
        if is_stored.is_none() {
            self.give_back(cell, token, &written);
        }
        Ok(is_stored.is_some())
    }

    /// Frees the key for the next caller, who is told nothing of this attempt if `is_clean`, else that
    /// it ended unfinished. `false`: it was over already, and nothing was changed.
    pub fn abandon(&self, attempt: &Attempt, now_ns: u64, is_clean: bool) -> bool {
        self.abandon_cell(attempt.cell, attempt.token, now_ns, is_clean)
    }

    /// [`abandon`](Self::abandon), cleanly, by the key and the attempt's token.
    pub fn abandon_by_name(&self, name: &Name, token: u64, now_ns: u64) -> bool {
        self.find_attempt(name, token, now_ns)
            .is_some_and(|cell| self.abandon_cell(cell, token, now_ns, true))
    }

    fn abandon_cell(&self, cell: u32, token: u64, now_ns: u64, is_clean: bool) -> bool {
        let now_us = now_ns / 1_000;
        let abandoned = self.change_attempt(cell, token, None, |state| match state.status {
            Status::InProgress {
                is_after_unfinished: false,
                ..
            } if is_clean => State::open(token),
            _ => state.left_unfinished(now_us),
        });
        abandoned.is_some()
    }

    /// Moves the deadline of an attempt to `now_ns + ttl_ns`, in nanoseconds of region time; the new
    /// deadline. `None`: it is over, and nothing was changed.
    pub fn extend(&self, attempt: &Attempt, now_ns: u64, ttl_ns: u64) -> Result<Option<u64>> {
        self.extend_cell(attempt.cell, attempt.token, None, now_ns, ttl_ns)
    }

    /// [`extend`](Self::extend) by the key and the attempt's token. `None` also once the owner's session
    /// is gone.
    pub fn extend_by_name(
        &self,
        name: &Name,
        token: u64,
        now_ns: u64,
        ttl_ns: u64,
    ) -> Result<Option<u64>> {
        check_time("ttl (ns)", ttl_ns)?;
        match self.find_attempt(name, token, now_ns) {
            Some(cell) => self.extend_cell(cell, token, None, now_ns, ttl_ns),
            None => Ok(None),
        }
    }

    /// Makes an attempt nobody's session's, token kept, with a deadline of its own.
    pub fn detach_attempt(
        &self,
        attempt: &Attempt,
        now_ns: u64,
        ttl_ns: u64,
    ) -> Result<Option<u64>> {
        let to = Some(SessionId::DETACHED);
        self.extend_cell(attempt.cell, attempt.token, to, now_ns, ttl_ns)
    }

    fn extend_cell(
        &self,
        cell: u32,
        token: u64,
        to: Option<SessionId>,
        now_ns: u64,
        ttl_ns: u64,
    ) -> Result<Option<u64>> {
        check_time("ttl (ns)", ttl_ns)?;
        let deadline_us = until_us(now_ns, ttl_ns);
        let extended = self.change_attempt(cell, token, Some(now_ns), |state| match state.status {
            Status::InProgress {
                by,
                is_after_unfinished,
                ..
            } => state.with(Status::InProgress {
                by: to.unwrap_or(by),
                until_us: deadline_us,
                is_after_unfinished,
            }),
            _ => state,
        });
        Ok(extended.map(|_| deadline_us * 1_000))
    }

    /// Whether the attempt is still under way by the engine's word. One load.
    pub fn is_attempt_held(&self, attempt: &Attempt, now_ns: u64) -> bool {
        self.may_go_on(attempt.cell, attempt.token, now_ns)
    }

    fn may_go_on(&self, cell: u32, token: u64, now_ns: u64) -> bool {
        let word = self.objects.state(&self.region, cell).load();
        let state = State::decode(word);
        phase(word) == LIVE
            && self.is_once(cell)
            && state.is_attempt(token)
            && state.owner(now_ns / 1_000).is_some()
    }

    /// Where the attempt under `token` at this key is, if it is in progress and its owner there. In a shared
    /// region a system call.
    fn find_attempt(&self, name: &Name, token: u64, now_ns: u64) -> Option<u32> {
        let found = self.find_object(&self.object(Kind::Once, name))?;
        let state = State::decode(found.state);
        let is_there = state.is_attempt(token) && self.live_owner(state, now_ns).is_some();
        is_there.then_some(found.cell)
    }

    fn is_once(&self, cell: u32) -> bool {
        Objects::is(&self.region, self.objects.at(cell), Kind::Once)
    }

    /// Exchanges the word of an attempt in progress for what `next` makes of it; the new state. `None` if the
    /// attempt is over, and if `before_ns` is given also past its deadline at that time. No other entry that
    /// ever is in the cell has an attempt of this token, so the token alone tells it.
    fn change_attempt(
        &self,
        cell: u32,
        token: u64,
        before_ns: Option<u64>,
        next: impl Fn(State) -> State,
    ) -> Option<State> {
        let word = self.objects.state(&self.region, cell);
        for _ in 0..ROUNDS_MAX {
            let now = word.load();
            let state = State::decode(now);
            let is_late = before_ns.is_some_and(|now_ns| state.owner(now_ns / 1_000).is_none());
            if phase(now) != LIVE || !self.is_once(cell) || !state.is_attempt(token) || is_late {
                return None;
            }
            let after = next(state);
            if word.compare_exchange(now, after.encode()).is_ok() {
                return Some(after);
            }
        }
        None
    }

    /// Ends the attempts of all sessions that had this line, unfinished.
    pub(crate) fn end_attempts_of(&self, index: u16, now_us: u64) {
        self.objects.for_each(&self.region, |cell, at, word| {
            let state = State::decode(word);
            let is_its =
                matches!(state.status, Status::InProgress { by, .. } if by.index() == index);
            if phase(word) == LIVE && self.is_once(cell) && is_its {
                let after = state.left_unfinished(now_us);
                // It fails where somebody else ended it, for no session of this line lives to renew it.
                let _ = self.region.wide(at).compare_exchange(word, after.encode());
            }
        });
    }
}

/// When an entry may be reclaimed.
pub(crate) fn idle(
    region: &Region,
    at: usize,
    live: u128,
    now_ns: u64,
    is_alive: &mut dyn FnMut(SessionId) -> bool,
) -> Idle {
    let state = State::decode(live);
    let now_us = now_ns / 1_000;
    let kept_from = |time_us: u64| Idle::At((time_us * 1_000).saturating_add(UNFINISHED_KEPT_NS));
    match state.status {
        Status::Open {
            unfinished_us: None,
        } => Idle::Now,
        Status::Open {
            unfinished_us: Some(since_us),
        } => kept_from(since_us),
        Status::Done { until_ms, .. } => Idle::At(until_ms * 1_000_000),
        Status::InProgress { by, until_us, .. } => {
            if until_us > now_us && is_alive(by) {
                return Idle::Unforeseen;
            }
            let over_us = until_us.min(now_us);
            let kept = kept_from(over_us);
            if matches!(kept, Idle::At(at_ns) if at_ns <= now_ns) {
                return kept;
            }
            // Noted, so that the answer stays true: a late owner doesn't finish any more, and the deadline of
            // one who died may be a year off.
            let after = state.left_unfinished(over_us);
            match region.wide(at).compare_exchange(live, after.encode()) {
                Ok(()) => kept,
                Err(_) => Idle::Unforeseen,
            }
        }
    }
}
