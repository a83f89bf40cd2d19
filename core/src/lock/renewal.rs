//! Moving the end of a hold's lease, and handing a hold on.
//!
//! Owns the exchanges that keep a token and change its lease or its holder. Grants and frees nothing.

use super::{Grant, HoldOf, Renewed, State, check_lease, halves, until_us};
use crate::engine::Engine;
use crate::error::Result;
use crate::object::Name;
use crate::permit::Permit;
use crate::session::SessionId;

impl Engine {
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
        let renewed = self.renew_permit(index, grant.word(), to, now_ns, lease_ns);
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
            halves: halves(state.encode()),
        }))
    }

    pub(super) fn renew_cell(
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
}
