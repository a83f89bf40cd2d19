//! Taking the words of several locks together: engaged one by one, decided by one exchange, called off by
//! whoever meets them undecided.
//!
//! Owns those exchanges. What the words say is in [`super::engaged`]; which words a coarse lock takes is in
//! [`super::coarse`], which several names do in [`super::several`].

use super::coarse::{COARSE, Coarse, looks};
use super::engaged::{Engaged, Role, is_engaged};
use super::{Grant, State, halves};
use crate::admission::{Answer, Asker, is_queued};
use crate::engine::Engine;
use crate::error::Result;
use crate::object::{OWN, Objects};
use crate::pool::is_pooled;
use crate::region::Region;
use crate::sync::fence;
use crate::table::{Found, LIVE, ROUNDS_MAX, phase};
use crate::waiter::PROBE_NS;
use core::sync::atomic::Ordering::SeqCst;

/// What taking several words together came to.
pub(crate) enum Took {
    Granted(Grant),
    /// Somebody was faster, or called it off: look again.
    Again,
    /// A lock beneath is held, or a gate is shut, until this region time (ns) at the least.
    Held {
        look_again_ns: u64,
    },
}

impl Engine {
    /// Takes all of `cells`, each a lock that was free a moment ago, the first as the leader: all or none.
    /// `coarse`: what lies beneath the first, and must be free as well.
    pub(crate) fn take_all(
        &self,
        found: &[Found],
        coarse: Option<Coarse>,
        asker: &Asker,
    ) -> Result<Took> {
        let Some((first, followers)) = found.split_first() else {
            return Ok(Took::Again);
        };
        for found in found {
            Self::check_tokens(found.state)?;
        }
        let leader = first.cell;
        let Some(token) = self.engage(first, Role::Leader(asker.by)) else {
            return Ok(Took::Again);
        };
        let tag = Engaged::tag_of(token);
        let role = Role::Follower { leader, tag };
        let mut took = Took::Again;
        let is_engaged = followers
            .iter()
            .all(|found| self.engage(found, role).is_some());
        if is_engaged {
            // We engaged our words, then look: pairs with the fence that follows each grant beneath, and with the
            // one of whoever waits.
            fence(SeqCst);
            took = match self.answer_of_others(found, coarse, asker) {
                Answer::Yes => self.decide(leader, token, asker),
                Answer::No { look_again_ns } => Took::Held { look_again_ns },
                Answer::Behind(_) => Took::Held {
                    look_again_ns: asker.now_ns.saturating_add(PROBE_NS),
                },
                _ => Took::Again,
            };
        }
        if !matches!(took, Took::Granted(_)) {
            self.call_off(leader, token, asker.now_ns);
            for found in followers {
                self.free_follower(found.cell, leader, tag, asker.now_ns);
            }
        }
        Ok(took)
    }

    /// Whether an engaged lock can be had: a void one is freed, an undecided one called off.
    pub(crate) fn room_in_engaged(&self, found: &Found, asker: &Asker) -> Answer {
        let word = self.region.wide(found.at);
        let engaged = Engaged::decode(found.state);
        match engaged.role {
            Role::Leader(_) => {
                for _ in 0..looks() {
                    core::hint::spin_loop();
                    if word.load() != found.state {
                        return Answer::Again;
                    }
                }
                let _ = word.compare_exchange(found.state, Self::disengaged(engaged, asker.now_ns));
                Answer::Again
            }
            Role::Follower { leader, tag } => {
                let at = self.lock_at(leader);
                let state = self.region.wide(at).load();
                let of_leader = Found {
                    cell: leader,
                    at,
                    state,
                };
                if Self::leads(&self.region, leader, at, state, tag) {
                    if is_engaged(state) {
                        return self.room_in_engaged(&of_leader, asker);
                    }
                    let lock = State::decode(state);
                    let is_over = lock.has_expired(asker.now_ns / 1_000)
                        || lock.holder.is_none_or(|holder| {
                            asker.probe && holder != asker.by && !self.is_alive(holder)
                        });
                    if !is_over {
                        return Answer::No {
                            look_again_ns: lock.time_us * 1_000,
                        };
                    }
                    let freed = lock.freed(asker.now_ns / 1_000).encode();
                    let _ = self.region.wide(at).compare_exchange(state, freed);
                    return Answer::Again;
                }
                // Void. It was a follower's when it was read, and the leader's word came after.
                let _ = word.compare_exchange(found.state, Self::disengaged(engaged, asker.now_ns));
                Answer::Again
            }
        }
    }

    /// Whether a word that was read in a leader's cell is of a hold that followers with this tag follow, decided
    /// or not. The cell may be no lock's by now: then that was so before the word was read, or the word is
    /// another by now.
    pub(crate) fn leads(region: &Region, leader: u32, at: usize, state: u128, tag: u64) -> bool {
        if leader & COARSE == 0 && !Objects::is_lock(region, at) {
            return false;
        }
        let token = if is_engaged(state) {
            let engaged = Engaged::decode(state);
            matches!(engaged.role, Role::Leader(_)).then_some(engaged.token)
        } else {
            let is_held = phase(state) == LIVE && !is_pooled(state);
            let lock = State::decode(state);
            (is_held && lock.holder.is_some()).then_some(lock.token)
        };
        token.is_some_and(|token| Engaged::tag_of(token) == tag)
    }

    /// The word of a lock that is no longer engaged: free. The token is spent.
    fn disengaged(engaged: Engaged, now_ns: u64) -> u128 {
        State {
            queue: engaged.queue,
            time_us: if engaged.queue { now_ns / 1_000 } else { 0 },
            ..State::free(engaged.token)
        }
        .encode()
    }

    /// Engages a lock that was found free, under its next token, which is given; `None` if its word is
    /// another by now.
    pub(super) fn engage(&self, found: &Found, role: Role) -> Option<u64> {
        let state = State::decode(found.state);
        let token = state.token + 1;
        let engaged = Engaged {
            queue: state.queue,
            role,
            token,
        };
        let word = self.region.wide(found.at);
        word.compare_exchange(found.state, engaged.encode()).ok()?;
        Some(token)
    }

    /// The exchange that grants: the leader's word from undecided to held.
    pub(super) fn decide(&self, leader: u32, token: u64, asker: &Asker) -> Took {
        let word = self.lock_word(leader);
        let until_us = super::until_us(asker.now_ns, asker.lease_ns);
        for _ in 0..ROUNDS_MAX {
            let raw = word.load();
            if !is_engaged(raw) || Engaged::decode(raw).token != token {
                return Took::Again;
            }
            let held = State {
                holder: Some(asker.by),
                queue: is_queued(raw),
                time_us: until_us,
                token,
            };
            if word.compare_exchange(raw, held.encode()).is_ok() {
                super::note_granted(
                    self.region.word(self.lock_at(leader) + OWN),
                    token,
                    asker.now_ns,
                );
                return Took::Granted(Grant {
                    token,
                    deadline_ns: until_us * 1_000,
                    cell: leader,
                    // With *queue* set, so that no release takes it for one of a single lock.
                    halves: halves(
                        State {
                            queue: true,
                            ..held
                        }
                        .encode(),
                    ),
                });
            }
        }
        Took::Again
    }

    /// Frees a leader that is undecided still.
    pub(super) fn call_off(&self, leader: u32, token: u64, now_ns: u64) {
        let word = self.lock_word(leader);
        for _ in 0..ROUNDS_MAX {
            let raw = word.load();
            let engaged = Engaged::decode(raw);
            if !is_engaged(raw)
                || engaged.token != token
                || !matches!(engaged.role, Role::Leader(_))
            {
                return;
            }
            if word
                .compare_exchange(raw, Self::disengaged(engaged, now_ns))
                .is_ok()
            {
                return;
            }
        }
    }

    /// Calls off what sessions that had this line began to take.
    pub(super) fn end_engaged_of(&self, line: u16, cell: u32, state: u128, now_us: u64) {
        let engaged = Engaged::decode(state);
        if matches!(engaged.role, Role::Leader(by) if by.index() == line) {
            self.call_off(cell, engaged.token, now_us * 1_000);
        }
    }

    /// Frees a lock if it follows this hold of the leader, which is over.
    pub(crate) fn free_follower(&self, cell: u32, leader: u32, tag: u64, now_ns: u64) {
        let word = self.lock_word(cell);
        for _ in 0..ROUNDS_MAX {
            let raw = word.load();
            let engaged = Engaged::decode(raw);
            if !is_engaged(raw) || engaged.role != (Role::Follower { leader, tag }) {
                return;
            }
            let freed = Self::disengaged(engaged, now_ns);
            if word.compare_exchange(raw, freed).is_ok() {
                return;
            }
        }
    }

    /// Whether nothing that is held, beneath or above what was engaged, keeps it from being granted.
    fn answer_of_others(&self, found: &[Found], coarse: Option<Coarse>, asker: &Asker) -> Answer {
        if let Some(coarse) = coarse {
            return self.answer_beneath(coarse, asker);
        }
        for found in found {
            match self.answer_of_gate(found.cell, asker) {
                Answer::Yes => {}
                answer => return answer,
            }
        }
        Answer::Yes
    }

    /// Whose hold a lock is of that follows another: the leader's cell and token. `None` for one that does
    /// not, or is void.
    pub(crate) fn leader_of(&self, found: &Found) -> Option<(u32, u64)> {
        if !is_engaged(found.state) {
            return None;
        }
        let Role::Follower { leader, tag } = Engaged::decode(found.state).role else {
            return None;
        };
        let at = self.lock_at(leader);
        let state = self.region.wide(at).load();
        let is_held = !is_engaged(state) && Self::leads(&self.region, leader, at, state, tag);
        is_held.then(|| (leader, State::decode(state).token))
    }
}
