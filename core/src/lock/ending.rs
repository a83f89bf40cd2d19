//! How holds end: released, taken away, or with the session that had them.
//!
//! Owns the exchanges that free a lock. The quick way of a plain hold's release is in [`super`]; whose turn it is
//! then, is in [`crate::waiter`].

use super::coarse::COARSE;
use super::engaged::{Engaged, is_engaged};
use super::{Grant, HoldOf, Released, State, halves};
use crate::engine::Engine;
use crate::object::Kind;
use crate::object::{Name, Object, Objects, serial};
use crate::pool::{POOLED, is_pooled};
use crate::session::Process;
use crate::table::{Entry as _, Found, LIVE, ROUNDS_MAX, phase};

impl Engine {
    /// By what it needs of the grant, which so stays in registers.
    #[cold]
    #[inline(never)]
    pub(super) fn release_grant_slowly(
        &self,
        cell: u32,
        token: u64,
        word: u128,
        now_ns: u64,
    ) -> Released {
        let grant = Grant {
            token,
            deadline_ns: 0,
            cell,
            halves: halves(word),
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
    pub(super) fn hold_of_token(&self, found: &Found, token: u64) -> (u32, u64) {
        self.leader_of(found)
            .filter(|_| serial(found.state) == token)
            .unwrap_or((found.cell, token))
    }

    #[cold]
    pub(super) fn release_slowly(
        &self,
        cell: u32,
        now_ns: u64,
        is_hold: impl Fn(State) -> bool,
    ) -> Released {
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

    pub(super) fn end_hold_of(&self, index: u16, cell: u32, mut state: u128, now_us: u64) {
        let is_its = |state: State| state.holder.is_some_and(|by| by.index() == index);
        for _ in 0..ROUNDS_MAX {
            if is_engaged(state) {
                return self.end_engaged_of(index, cell, state, now_us);
            }
            // The kind after the word, each time: the cell may be another entry's by now.
            let is_lock = self.coarse_of(cell).is_some() || self.is_lock(cell);
            let is_plain = phase(state) == LIVE && !is_pooled(state);
            if !is_lock || !is_plain || !is_its(State::decode(state)) {
                return;
            }
            let word = self.lock_word(cell);
            let freed = State::decode(state).freed(now_us).encode();
            if word.compare_exchange(state, freed).is_ok() {
                return;
            }
            state = word.load();
        }
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
