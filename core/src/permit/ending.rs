//! Permits that others end: of those who are dead or late, of a session whose id comes round, of a lock that
//! is broken.
//!
//! Owns finding them; how one leaves its pool is in [`crate::permit`].

use super::{ACTIVE, CLAIMED, ENDED, Permit, Verdict, for_each};
use crate::concurrency::ConcurrencyRef;
use crate::engine::Engine;
use crate::pool::{Pool, Step, is_pooled};
use crate::region::header;
use crate::session::SessionId;
use crate::sync::fence;
use crate::table::ROUNDS_MAX;
use core::sync::atomic::Ordering::Acquire;

impl Engine {
    /// Ends the members of the pool with the word `raw` whose lease is over or, with `probe`, whose session is
    /// dead, and takes out all that have ended. Whether there may be more room now, or the word is another;
    /// else when the next lease ends, in microseconds. Reads every permit in use.
    pub(crate) fn reap(
        &self,
        cell: u32,
        raw: u128,
        by: SessionId,
        now_ns: u64,
        probe: bool,
    ) -> Result<(), u64> {
        let word = self.objects.state(&self.region, cell);
        self.follow_step(cell, raw);
        let (mut next_us, mut sum) = (u64::MAX, 0_u32);
        let (mut is_to_look_again, mut is_certain) = (false, true);
        let (now_us, step) = (now_ns / 1_000, Pool::decode(raw).step);
        let limiter = self.limiter_of(cell);
        for_each(&self.region, cell, |index, permit| {
            if permit.phase == CLAIMED {
                // The last to join may not have followed, should the word have changed meanwhile.
                is_certain &= step != Step::Joined(index);
                return true;
            }
            let is_over = permit.phase == ENDED
                || permit.has_expired(now_us)
                || (probe && permit.by != by && !self.is_alive(permit.by));
            if is_over {
                // Whoever takes it out, or renews it first, the word is another then, or the permit is.
                self.end_and_take_out(index, permit, now_ns);
                is_to_look_again = true;
            } else if self.counts(index, permit, limiter, now_ns) {
                next_us = next_us.min(permit.until_us);
                sum = sum.saturating_add(self.permit_record(index).amount);
            } else {
                is_to_look_again = true;
            }
            true
        });
        // Also where somebody left, or joined, while they were counted.
        if is_to_look_again || word.load() != raw {
            return Ok(());
        }
        let pool = Pool::decode(raw);
        // No member came or went while they were counted, so this is what they have. It differs only after
        // damage, or after a session that was taken for dead went on.
        if is_certain && pool.used != sum {
            let counted = Pool { used: sum, ..pool };
            let _ = word.compare_exchange(raw, counted.encode());
            return Ok(());
        }
        Err(next_us)
    }

    /// Whether a member holds what it has for good, so that others may be refused for it. One of a limiter's key
    /// that does not is taken out.
    fn counts(
        &self,
        index: u32,
        permit: Permit,
        limiter: Option<ConcurrencyRef>,
        now_ns: u64,
    ) -> bool {
        let Some(limiter) = limiter else {
            return self.is_permit_settled(index, permit);
        };
        match self.verdict(index, permit, || self.serial_of(limiter), now_ns) {
            Verdict::Stands => true,
            Verdict::Void => {
                self.end_and_take_out(index, permit, now_ns);
                false
            }
            Verdict::Over => false,
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
