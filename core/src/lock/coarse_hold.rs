//! The hold of a coarse lock by its token, for whoever was handed that; and what is told of one.
//!
//! Owns the ways to a coarse lock that is held. Takes none that is free: see [`super::coarse`].

use super::coarse::Coarse;
use super::engaged::is_engaged;
use super::{Broken, Grant, LockStatus, Released, State, halves};
use crate::engine::Engine;
use crate::error::Result;
use crate::object::serial;
use crate::session::{Process, SessionId};
use crate::table::{LIVE, phase};

impl Engine {
    /// Frees a coarse lock by the hold's token.
    pub fn release_coarse_by_token(&self, coarse: Coarse, token: u64, now_ns: u64) -> Released {
        self.release_coarse(coarse, now_ns, |state| {
            state.holder.is_some() && state.token == token
        })
    }

    /// Moves the end of the lease of the hold with this token to `now_ns + lease_ns`, and hands it `to` another
    /// session if one is given; the hold as it is then. `None` once the lease is over or the holder's session
    /// gone.
    pub fn renew_coarse_by_token(
        &self,
        coarse: Coarse,
        token: u64,
        to: Option<SessionId>,
        now_ns: u64,
        lease_ns: u64,
    ) -> Result<Option<Grant>> {
        let cell = self.coarse_cell(coarse);
        let is_live_hold =
            |state: State| state.token == token && state.holder.is_some_and(|by| self.is_alive(by));
        let renewed = self.renew_cell(cell, to, now_ns, lease_ns, is_live_hold)?;
        Ok(renewed.map(|state| Grant {
            token,
            deadline_ns: state.time_us * 1_000,
            cell,
            // As `decide` has it: there is more to free than this word.
            halves: halves(
                State {
                    queue: true,
                    ..state
                }
                .encode(),
            ),
        }))
    }

    /// Takes a coarse lock away from its holder, whoever that is, and notes who did it. `None` if it was not
    /// held. Of a partition that is held with the table, the table's hold ends.
    pub fn break_coarse(&self, coarse: Coarse, by: Process, now_ns: u64) -> Result<Option<Broken>> {
        let found = self.find_coarse(coarse);
        let of_table = self.leader_of(&found);
        let (held, token) = match of_table {
            Some((_, token)) => (Coarse::Table, token),
            None => (coarse, serial(found.state)),
        };
        let released = self.release_coarse_by_token(held, token, now_ns);
        let Released::Done { wake } = released else {
            return Ok(None);
        };
        self.note_break(&self.lock_name(&held.told())?, token, by, now_ns);
        Ok(Some(Broken { token, wake }))
    }

    /// What is known of a coarse lock. A system call for each wait.
    pub fn coarse_status(&self, coarse: Coarse, now_ns: u64) -> LockStatus {
        let cell = self.coarse_cell(coarse);
        let state = self.lock_word(cell).load();
        let hold = if is_engaged(state) {
            self.hold_of_leader(state, now_ns)
        } else {
            let lock = State::decode(state);
            lock.holder.filter(|_| phase(state) == LIVE).map(|by| {
                let since_ns = self.granted_at_ns(cell, lock.token);
                self.hold_status(lock.token, by, lock.time_us, since_ns, now_ns)
            })
        };
        let (waiters, waiters_dead) = self.count_waiters(cell);
        LockStatus {
            name: coarse.told(),
            token: serial(state),
            is_shared: false,
            holds: hold.into_iter().collect(),
            waiters,
            waiters_dead,
        }
    }
}
