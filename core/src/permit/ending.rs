//! Permits that others end: of those who are dead or late, of a session whose id comes round, of a lock that
//! is broken.
//!
//! Owns finding them; how one leaves its pool is in [`crate::permit`].

use super::{ACTIVE, CLAIMED, ENDED, Permit, Verdict, for_each};
use crate::engine::Engine;
use crate::object::Objects;
use crate::pool::{Pool, Step, is_pooled};
use crate::region::header;
use crate::session::SessionId;
use crate::sync::fence;
use crate::table::ROUNDS_MAX;
use core::sync::atomic::Ordering::Acquire;

/// What became of the members of a pool.
pub(crate) enum Reaped {
    /// Some were ended, or their sum was set right: look again.
    Ended,
    /// All that the pool has by this later word are alive and within their leases, of which the first to end does so
    /// at `until_us`.
    Alive {
        /// The word, read after all members were.
        raw: u128,
        /// In region time, microseconds. One who joined meanwhile may be earlier.
        until_us: u64,
    },
}

/// How often the members of a limiter's key are looked at while others join and leave. After that one may be
/// refused for another that is void: which takes a change of the limiter and as many others at the same time.
const LOOKS: u32 = 8;

impl Engine {
    /// Ends the members of the pool with the word `raw` whose lease is over or, with `probe`, whose session is
    /// dead, and takes out all that have ended. Reads every permit in use.
    ///
    /// Others may join and leave all the while, and none of them makes this start anew: a member by the later
    /// word was there before and found alive, or joined since, and then it was. Of a limiter's key that is not
    /// enough, since what joined may be void: its members are looked at again then, a few times.
    pub(crate) fn reap(
        &self,
        cell: u32,
        mut raw: u128,
        by: SessionId,
        now_ns: u64,
        probe: bool,
    ) -> Reaped {
        let is_limited = self.limiter_of(cell).is_some();
        for _ in 1..LOOKS {
            match self.reap_once(cell, raw, is_limited, by, now_ns, probe) {
                // If it is still a pool: the entry may have been reclaimed, and its cell claimed anew.
                Reaped::Alive { raw: later, .. }
                    if is_limited && later != raw && is_pooled(later) =>
                {
                    raw = later;
                }
                reaped => return reaped,
            }
        }
        self.reap_once(cell, raw, is_limited, by, now_ns, probe)
    }

    fn reap_once(
        &self,
        cell: u32,
        raw: u128,
        is_limited: bool,
        by: SessionId,
        now_ns: u64,
        probe: bool,
    ) -> Reaped {
        let at = self.objects.at(cell);
        let word = self.region.wide(at);
        self.follow_step(cell, raw);
        let identity = Objects::identity(&self.region, at);
        let (mut until_us, mut sum) = (u64::MAX, 0_u32);
        let (mut has_ended, mut is_certain) = (false, true);
        let (now_us, step) = (now_ns / 1_000, Pool::decode(raw).step);
        for_each(&self.region, cell, |index, permit| {
            if permit.phase == CLAIMED {
                // The last to join may not have followed, should the word have changed meanwhile.
                is_certain &= step != Step::Joined(index);
                return true;
            }
            let is_over = permit.phase == ENDED
                || permit.has_expired(now_us)
                || (probe && permit.by != by && !self.is_alive(permit.by));
            let verdict = if is_over {
                Verdict::Void
            } else if is_limited {
                // By the limiter that the cell is of now: for as long as it has this member, it is of no other.
                let serial = || self.serial_of(self.limiter_of(cell)?);
                self.verdict(index, permit, serial, now_ns)
            } else {
                is_certain &= self.is_permit_settled(index, permit);
                Verdict::Stands
            };
            match verdict {
                Verdict::Void => {
                    // Whoever takes it out, or renews it first, the word is another then, or the permit is.
                    self.end_and_take_out(index, permit, now_ns);
                    has_ended = true;
                }
                Verdict::Stands => {
                    until_us = until_us.min(permit.until_us);
                    sum = sum.saturating_add(self.permit_record(index).amount);
                }
                Verdict::Over => is_certain = false,
            }
            true
        });
        let later = word.load();
        // Acquire: pairs with the fence in `Table::insert`. If the word is a later entry's, so is what the cell
        // says of itself.
        fence(Acquire);
        if has_ended || Objects::identity(&self.region, at) != identity {
            return Reaped::Ended;
        }
        let pool = Pool::decode(raw);
        // No member came or went while they were counted, so this is what they have. It differs only after
        // damage, or after a session that was taken for dead went on.
        if later == raw && is_certain && pool.used != sum {
            let counted = Pool { used: sum, ..pool };
            let _ = word.compare_exchange(raw, counted.encode());
            return Reaped::Ended;
        }
        Reaped::Alive {
            raw: later,
            until_us,
        }
    }

    fn end_and_take_out(&self, index: u32, permit: Permit, now_ns: u64) -> bool {
        let ended = permit.in_phase(ENDED).encode();
        let word = self.permit(index);
        let is_ended =
            permit.phase == ENDED || word.compare_exchange(permit.encode(), ended).is_ok();
        is_ended && self.take_out(index, ended, now_ns)
    }

    /// Ends every permit whose lease is over or whose session is dead, and frees what the dead claimed;
    /// whether there was any. Those who wait find out at their next look.
    pub(crate) fn reap_all(&self, now_ns: u64) -> bool {
        let is_over = |permit: Permit| {
            (permit.phase != CLAIMED && permit.has_expired(now_ns / 1_000))
                || !self.is_alive(permit.by)
        };
        self.end_permits(is_over, now_ns)
    }

    /// Ends all permits of sessions that had this line.
    pub(crate) fn end_permits_of(&self, line: u16, now_us: u64) {
        self.end_permits(|permit| permit.by.index() == line, now_us * 1_000);
    }

    fn end_permits(&self, is_over: impl Fn(Permit) -> bool, now_ns: u64) -> bool {
        let high = self.region.word(header::PERMITS_HIGH).load(Acquire);
        let mut has_ended = false;
        for index in 0..high.min(self.region.caps().permits.into()) as u32 {
            let word = self.permit(index);
            let mut permit = Permit::decode(word.load());
            if permit.phase == CLAIMED && is_over(permit) {
                // Its pool may name it as joined already, and only be waiting for it to follow.
                let raw = self.objects.state(&self.region, permit.cell).load();
                if is_pooled(raw) {
                    self.follow_step(permit.cell, raw);
                }
                let state = word.load();
                permit = Permit::decode(state);
                if permit.phase == CLAIMED && is_over(permit) {
                    has_ended |= word
                        .compare_exchange(state, permit.freed().encode())
                        .is_ok();
                    continue;
                }
            }
            if permit.phase == ENDED || (permit.phase == ACTIVE && is_over(permit)) {
                has_ended |= self.end_and_take_out(index, permit, now_ns);
            }
        }
        has_ended
    }

    /// Ends all members of the pool in `cell`, if that is still the one that `is_it` knows by its word; whether
    /// there was any. Members are gathered before that is asked: those of a pool that has the cell by then
    /// were not there, or are gone.
    pub(crate) fn end_members(
        &self,
        cell: u32,
        now_ns: u64,
        is_it: impl FnOnce(u128) -> bool,
    ) -> bool {
        let word = self.objects.state(&self.region, cell);
        self.follow_step(cell, word.load());
        let mut members = Vec::new();
        for_each(&self.region, cell, |index, permit| {
            if permit.is_member() {
                members.push((index, permit));
            }
            true
        });
        // The loads above come before the one below; pairs with the fence in `Table::insert`.
        fence(Acquire);
        if !is_it(word.load()) {
            return false;
        }
        for (index, member) in &members {
            self.end_use(*index, *member, now_ns);
        }
        !members.is_empty()
    }

    /// Ends one use of a permit, also if it is renewed or handed on meanwhile.
    fn end_use(&self, index: u32, member: Permit, now_ns: u64) {
        for _ in 0..ROUNDS_MAX {
            let permit = Permit::decode(self.permit(index).load());
            if !permit.is_member() || !permit.is_same_use(member) {
                return;
            }
            let ended = permit.in_phase(ENDED).encode();
            if permit.phase == ENDED
                || self
                    .permit(index)
                    .compare_exchange(permit.encode(), ended)
                    .is_ok()
            {
                self.take_out(index, ended, now_ns);
                return;
            }
        }
    }
}
