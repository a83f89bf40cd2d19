//! Who may have a lock or a semaphore now: the one set of rules for newcomers and for those who wait.
//!
//! Owns the question whether a word, as it was read, lets somebody in, and the exchange that does. Where the
//! word is held by one who is dead or whose lease is over, it is freed first; where it is one's turn that
//! lets the lock lie, that one is passed over. So each answer but *yes* and *no* is: look again.
//!
//! The order is that of tickets. One who wants a lock in shared use goes before those who want it alone
//! only if it came before them; whoever wants it alone waits for all before it. So neither kind starves.

use crate::concurrency::ConcurrencyRef;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::lock::coarse::Coarse;
use crate::lock::engaged::is_engaged;
use crate::lock::together::Took;
use crate::lock::{Attempt, Grant, State, check_lease, note_granted, until_us};
use crate::object::{Kind, Name, OWN};
use crate::permit::{Claim, Reaped};
use crate::pool::{Mode, Pool, USED_MAX, is_pooled};
use crate::session::SessionId;
use crate::sync::fence;
use crate::table::{Found, ROUNDS_MAX};
use crate::waiter::{PROBE_NS, Waiter};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

/// How often one who wants a coarse lock is called off by those beneath before it is told that it is held.
const TRIES: u32 = 32;
/// How long one who waits for it lets them be then, in nanoseconds.
const RETRY_NS: u64 = 1_000_000;

/// What is wanted of a lock or a semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// A lock, alone.
    Exclusive,
    /// A lock, beside others who share it.
    Shared,
    /// A lock that the caller shares by this grant, alone.
    Upgrade(Grant),
    /// All locks of a partition, or of the table, alone. The name stands for nothing then.
    Coarse(Coarse),
    /// Several locks at once, each alone.
    Several,
    /// Permits of a semaphore.
    Permits {
        /// How many at once.
        amount: u32,
        /// How many there are.
        capacity: u32,
    },
    /// Permits of a key of a concurrency limiter: [`Wants::slots`].
    Slots {
        /// How many at once.
        amount: u32,
        /// Which limiter's.
        limiter: ConcurrencyRef,
    },
}

impl Wants {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Permits { .. } => Kind::Semaphore,
            Self::Slots { .. } => Kind::Slots,
            _ => Kind::Lock,
        }
    }

    /// As a waiter's record has it: 0 alone, an amount otherwise, all ones to upgrade.
    pub(crate) fn code(self) -> u32 {
        match self {
            Self::Exclusive | Self::Coarse(_) | Self::Several => ALONE,
            Self::Shared => 1,
            Self::Permits { amount, .. } | Self::Slots { amount, .. } => amount,
            Self::Upgrade(_) => UPGRADE,
        }
    }

    fn amount(self) -> u32 {
        match self {
            Self::Permits { amount, .. } | Self::Slots { amount, .. } => amount,
            _ => 1,
        }
    }
}

pub(crate) const ALONE: u32 = 0;
pub(crate) const UPGRADE: u32 = u32::MAX;

/// Who asks.
#[derive(Clone, Copy)]
pub(crate) struct Asker {
    pub(crate) by: SessionId,
    /// Its place in the queue; a newcomer has none, and is behind all.
    pub(crate) number: Option<u64>,
    pub(crate) now_ns: u64,
    pub(crate) lease_ns: u64,
    /// Whether to look for the dead too, for a system call each.
    pub(crate) probe: bool,
}

/// The answer to one who asks by a word as it was read.
pub(crate) enum Answer {
    /// It may, if the word is still the same.
    Yes,
    /// Not before this region time (ns), unless somebody gives way.
    No { look_again_ns: u64 },
    /// Not its turn, but that of this waiter.
    Behind(Waiter),
    /// The word is another now, or was changed: look again.
    Again,
    /// One who let the lock lie was passed over: look again.
    Passed,
    /// Another holder waits to have the lock alone already.
    Conflict,
    /// The hold that was to be upgraded is no more.
    Lost,
}

impl Engine {
    /// Whether `asker` may have what it `wants` by a word that was found.
    pub(crate) fn answer(&self, found: &Found, wants: Wants, asker: &Asker) -> Answer {
        if let Wants::Upgrade(grant) = wants
            && !self.is_held(&grant, asker.now_ns)
        {
            return Answer::Lost;
        }
        let room = match wants {
            Wants::Coarse(Coarse::Table) => self.is_table_free(found, asker),
            Wants::Coarse(_) | Wants::Several => self.is_free(found, asker),
            _ if is_pooled(found.state) => self.room_in_pool(found, wants, asker),
            _ => self.room_in_lock(found, asker),
        };
        let is_ordered = match wants {
            Wants::Upgrade(_) => false,
            // Also those who wait for what is beneath come before who comes after them.
            Wants::Coarse(_) => true,
            _ => is_queued(found.state),
        };
        match room {
            Answer::Yes if is_ordered => self.turn(found, wants, asker),
            answer => answer,
        }
    }

    /// Whether a lock in plain form can be had: free, or held by one whose time is over while nobody waits.
    fn room_in_lock(&self, found: &Found, asker: &Asker) -> Answer {
        let state = State::decode(found.state);
        if !is_engaged(found.state) && !state.queue && self.is_over(state, asker) {
            // In one exchange, so that nobody whose clock is behind comes in between.
            return Answer::Yes;
        }
        self.is_free(found, asker)
    }

    /// Whether a lock is free; one that is held by nobody who counts is freed, for whoever's turn it is.
    pub(crate) fn is_free(&self, found: &Found, asker: &Asker) -> Answer {
        if is_engaged(found.state) {
            return self.room_in_engaged(found, asker);
        }
        // A coarse lock is shared only in a damaged region; then it counts as free.
        if is_pooled(found.state) && self.coarse_of(found.cell).is_none() {
            return self.room_in_pool(found, Wants::Exclusive, asker);
        }
        let state = State::decode(found.state);
        if state.holder.is_none() {
            return Answer::Yes;
        }
        if !self.is_over(state, asker) {
            if !self.is_settled(found) {
                return Answer::Again;
            }
            return Answer::No {
                look_again_ns: state.time_us * 1_000,
            };
        }
        // Only one of all who try succeeds.
        let word = self.region.wide(found.at);
        let freed = state.freed(asker.now_ns / 1_000).encode();
        let _ = word.compare_exchange(found.state, freed);
        Answer::Again
    }

    fn is_over(&self, state: State, asker: &Asker) -> bool {
        state.holder.is_some_and(|holder| {
            state.has_expired(asker.now_ns / 1_000)
                || (asker.probe && holder != asker.by && !self.is_alive(holder))
        })
    }

    /// Whether the lock of the table is free, and those of all partitions.
    fn is_table_free(&self, found: &Found, asker: &Asker) -> Answer {
        for partition in 0..self.region.partitions() {
            let found = self.find_coarse(Coarse::Partition(partition));
            match self.is_free(&found, asker) {
                Answer::Yes => {}
                answer => return answer,
            }
        }
        self.is_free(found, asker)
    }

    /// Whether a pool has room.
    fn room_in_pool(&self, found: &Found, wants: Wants, asker: &Asker) -> Answer {
        let (cell, raw) = (found.cell, found.state);
        self.follow_step(cell, raw);
        match self.room_by(raw, wants) {
            Answer::No { .. } => {}
            Answer::Again if wants.kind() == Kind::Lock => {
                // Nobody has it: it becomes a lock in plain form again.
                self.close_pool(cell, raw, asker.now_ns);
                return Answer::Again;
            }
            answer => return answer,
        }
        let reaped = self.reap(cell, raw, asker.by, asker.now_ns, asker.probe);
        let Reaped::Alive { raw, until_us } = reaped else {
            return Answer::Again;
        };
        // By the later word, which may have room now.
        if !is_pooled(raw) || !matches!(self.room_by(raw, wants), Answer::No { .. }) {
            return Answer::Again;
        }
        Answer::No {
            look_again_ns: until_us.saturating_mul(1_000),
        }
    }

    /// Whether a pool has room by its word alone; *again* for a lock that nobody shares any more, and for a
    /// limiter that never has as much.
    fn room_by(&self, raw: u128, wants: Wants) -> Answer {
        let pool = Pool::decode(raw);
        let has_room = match wants {
            Wants::Permits { amount, capacity } => {
                pool.terms == capacity && pool.used.saturating_add(amount) <= capacity
            }
            Wants::Slots { amount, limiter } => match self.has_slots(limiter, pool.used, amount) {
                Some(has_room) => has_room,
                // Which is told where it is looked for again.
                None => return Answer::Again,
            },
            Wants::Upgrade(grant) => {
                let own = grant.permit().unwrap_or(u32::MAX);
                match pool.mode() {
                    Mode::Upgrading(other) | Mode::Exclusive(other) if other != own => {
                        return Answer::Conflict;
                    }
                    _ => pool.used == 1,
                }
            }
            _ if pool.used == 0 => return Answer::Again,
            Wants::Shared => pool.mode() == Mode::Shared && pool.used < USED_MAX,
            Wants::Exclusive | Wants::Coarse(_) | Wants::Several => false,
        };
        if has_room {
            return Answer::Yes;
        }
        Answer::No { look_again_ns: 0 }
    }

    /// Whether nobody who came before is to be served first.
    fn turn(&self, found: &Found, wants: Wants, asker: &Asker) -> Answer {
        let is_in_the_way = |waiter: &Waiter| {
            asker.number.is_none_or(|number| waiter.number < number)
                && !(wants == Wants::Shared && waiter.wants == 1)
                // Whom an upgrade keeps out, the lock's word says, for as long as its hold is there.
                && waiter.wants != UPGRADE
        };
        let (now_ns, probe) = (asker.now_ns, asker.probe);
        let first = match wants {
            Wants::Coarse(_) => {
                let overlaps = |cell| self.overlap(cell, found.cell);
                self.first_of(overlaps, now_ns, probe, is_in_the_way)
            }
            _ => self.first_of(|cell| cell == found.cell, now_ns, probe, is_in_the_way),
        };
        let Some(first) = first else {
            return Answer::Yes;
        };
        if is_queued(found.state) && first.has_let_lie(self.free_since_ns(found), now_ns) {
            self.pass_over(found, now_ns);
            return Answer::Passed;
        }
        Answer::Behind(first)
    }

    /// Since when those who wait could have had what was found, in nanoseconds.
    pub(crate) fn free_since_ns(&self, found: &Found) -> u64 {
        if is_pooled(found.state) {
            // Relaxed: a hint, for patience.
            self.region.word(found.at + OWN).load(Relaxed)
        } else if is_engaged(found.state) {
            // It does not say: since they looked last.
            0
        } else {
            State::decode(found.state).time_us.saturating_mul(1_000)
        }
    }

    /// Lets `asker` in by the word that was found, if it is still the same and no coarse lock is in the way.
    /// `claim` keeps what was claimed for it, for a next try.
    pub(crate) fn let_in(
        &self,
        found: &Found,
        wants: Wants,
        asker: &Asker,
        claim: &mut Option<Claim>,
    ) -> Result<Took> {
        Self::check_tokens(found.state)?;
        let is_beneath = matches!(wants, Wants::Exclusive | Wants::Shared);
        // A look before as well spares the lock a token, and those who wait for the partition a hold that
        // is none.
        if is_beneath && let Some(kept_out) = self.kept_out(found.cell, asker) {
            return Ok(kept_out);
        }
        let granted = match wants {
            Wants::Exclusive => {
                let line = self.region.line(found.at);
                let (by, now_ns, lease_ns) = (asker.by, asker.now_ns, asker.lease_ns);
                Self::take(line, found.cell, found.state, by, now_ns, lease_ns)
            }
            Wants::Shared | Wants::Permits { .. } => self.let_join(found, wants, asker, claim)?,
            Wants::Slots { .. } => self.let_join_slots(found, wants, asker, claim)?,
            Wants::Upgrade(grant) => self.complete_upgrade(found, grant, asker),
            Wants::Coarse(coarse) => return self.take_coarse(coarse, asker),
            // Taken with the others.
            Wants::Several => None,
        };
        let Some(grant) = granted else {
            return Ok(Took::Again);
        };
        if is_beneath {
            // We published a hold, then look at the gate: pairs with the fence in `take_all`.
            fence(SeqCst);
            if let Some(kept_out) = self.kept_out(found.cell, asker) {
                // Whoever is to be woken by that finds out at the next look: who waits for the partition
                // has seen a hold that was none.
                let _ = self.release(&grant, || asker.now_ns);
                *claim = None;
                return Ok(kept_out);
            }
        }
        // Of a limiter's key that is said already.
        if !matches!(wants, Wants::Slots { .. }) {
            self.settle(found, &grant, asker.now_ns);
        }
        Ok(Took::Granted(grant))
    }

    /// What is said to one whom a coarse lock keeps from the lock in `cell`; `None` if none does.
    fn kept_out(&self, cell: u32, asker: &Asker) -> Option<Took> {
        let look_again_ns = match self.answer_of_gate(cell, asker) {
            Answer::Yes => return None,
            Answer::No { look_again_ns } => look_again_ns,
            _ => asker.now_ns.saturating_add(PROBE_NS),
        };
        Some(Took::Held { look_again_ns })
    }

    /// Says that a grant is not to be undone.
    fn settle(&self, found: &Found, grant: &Grant, now_ns: u64) {
        match grant.permit() {
            Some(index) => self.note_permit(index, now_ns),
            None => note_granted(self.region.word(found.at + OWN), grant.token, now_ns),
        }
    }

    fn take_coarse(&self, coarse: Coarse, asker: &Asker) -> Result<Took> {
        for _ in 0..TRIES {
            match self.try_coarse(coarse, asker)? {
                Took::Again => {}
                took => return Ok(took),
            }
        }
        // Something beneath was held all the time, if not the same.
        Ok(Took::Held {
            look_again_ns: asker.now_ns.saturating_add(RETRY_NS),
        })
    }

    fn try_coarse(&self, coarse: Coarse, asker: &Asker) -> Result<Took> {
        match self.answer_beneath(coarse, asker) {
            Answer::Yes => {}
            Answer::No { look_again_ns } => return Ok(Took::Held { look_again_ns }),
            _ => return Ok(Took::Again),
        }
        let found = self.words_of(coarse);
        // What was free a moment ago may be held by now; engaging it would then be no step of a free lock.
        for found in &found {
            match self.is_free(found, asker) {
                Answer::Yes => {}
                _ => return Ok(Took::Again),
            }
        }
        self.take_all(&found, Some(coarse), asker)
    }

    /// Makes `asker` a member of a pool, or of the one that a free lock becomes.
    fn let_join(
        &self,
        found: &Found,
        wants: Wants,
        asker: &Asker,
        claim: &mut Option<Claim>,
    ) -> Result<Option<Grant>> {
        let (cell, raw) = (found.cell, found.state);
        let pool = if is_pooled(raw) {
            Pool::decode(raw)
        } else {
            let state = State::decode(raw);
            Pool::empty(state.token, state.queue)
        };
        let amount = wants.amount();
        let claim = self.claim_for(cell, amount, asker, claim)?;
        Ok(self.join(cell, raw, pool, claim, amount))
    }

    /// A claim for `amount` of the pool in `cell`: what was claimed before, or a new one.
    pub(crate) fn claim_for<'c>(
        &self,
        cell: u32,
        amount: u32,
        asker: &Asker,
        claim: &'c mut Option<Claim>,
    ) -> Result<&'c Claim> {
        if claim.as_ref().is_some_and(|claim| !claim.is_for(cell)) {
            self.give_back_claim(claim);
        }
        Ok(match claim {
            Some(claim) => claim,
            none => {
                let until_us = until_us(asker.now_ns, asker.lease_ns);
                none.insert(self.claim_permit(asker.by, cell, until_us, amount, asker.now_ns)?)
            }
        })
    }

    /// The entry of what is wanted, inserted if it is not there.
    pub(crate) fn find_wanted(
        &self,
        name: &Name,
        wants: Wants,
        by: SessionId,
        now_ns: u64,
    ) -> Result<Found> {
        match wants {
            Wants::Permits { capacity, .. } => self.find_semaphore(name, capacity, by, now_ns),
            Wants::Slots { amount, limiter } => {
                self.check_slots(limiter, amount)?;
                self.find_slots(name, by, now_ns)
            }
            Wants::Coarse(coarse) => Ok(self.find_coarse(coarse)),
            _ => self.find_lock(name, by, now_ns),
        }
    }

    /// Gives back what was claimed and not used.
    pub(crate) fn give_back_claim(&self, claim: &mut Option<Claim>) {
        if let Some(claim) = claim.take() {
            self.abandon_permit(&claim);
        }
    }

    /// Takes what a newcomer wants, if it can be had at once.
    pub fn try_get(
        &self,
        name: &Name,
        wants: Wants,
        by: SessionId,
        now_ns: u64,
        lease_ns: u64,
    ) -> Result<Attempt> {
        check_lease(lease_ns)?;
        let asker = Asker {
            by,
            number: None,
            now_ns,
            lease_ns,
            probe: true,
        };
        let mut claim = None;
        let mut last = Err(Error::Damaged {
            what: "a lock never settles",
        });
        for _ in 0..ROUNDS_MAX {
            let found = match self.find_wanted(name, wants, by, now_ns) {
                Ok(found) => found,
                Err(error) => {
                    last = Err(error);
                    break;
                }
            };
            match self.answer(&found, wants, &asker) {
                Answer::Yes => match self.let_in(&found, wants, &asker, &mut claim) {
                    Ok(Took::Granted(grant)) => return Ok(Attempt::Granted(grant)),
                    Ok(Took::Again) => {}
                    Ok(Took::Held { .. }) => {
                        last = Ok(Attempt::Busy);
                        break;
                    }
                    Err(error) => {
                        last = Err(error);
                        break;
                    }
                },
                Answer::Again | Answer::Passed => {}
                Answer::No { .. } | Answer::Behind(_) | Answer::Conflict | Answer::Lost => {
                    last = Ok(Attempt::Busy);
                    break;
                }
            }
        }
        self.give_back_claim(&mut claim);
        last
    }
}

/// Set in a live word of any form when there may be waiters.
pub(crate) const QUEUE: u128 = 1 << 4;

/// Whether a word of either form says that there may be waiters.
pub(crate) fn is_queued(state: u128) -> bool {
    state & QUEUE != 0
}
