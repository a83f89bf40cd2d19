//! Permits: one leased share each of a lock in shared use, or of a semaphore.
//!
//! Owns the records, and how they follow the word of the pool that they are members of
//! ([`crate::pool`]). How one is claimed is in [`claim`], how the late and the dead are ended in [`ending`].
//! Decides nothing about who may join.
//!
//! # The records
//!
//! | bytes | field |
//! |---|---|
//! | 0..16 | the word ([`state`]) |
//! | 16..24 | the token (bits 0..53), then the low bits of the permit's generation |
//! | 24..32 | how much of the pool it has |
//! | 32..40 | when it was granted, in nanoseconds of region time; [`verdict`] has more of it |
//! | 40..48 | the session whose share of the region it is of, whoever has it now |
//!
//! ```text
//!          claim            the pool's word names it as joined (anyone follows)
//!   free ─────────▶ claimed ─────────────────────────────────▶ active ◀──┐ renew, transfer
//!    ▲                 │ abandoned, or its session is dead       │  └────┘
//!    ├─────────────────┘                                         │ release, lease over, session dead,
//!    │                                                           ▼ broken: decides that it is over
//!    └─────────────────────────────────────────────────────── ended
//!          the pool's word names it as left (anyone follows)
//! ```
//!
//! A renewal and an end exchange the same word, so one of them fails. A permit that has ended is taken out
//! of its pool by whoever ended it or, should that one die, by whoever next finds too little room there.

mod claim;
mod ending;
mod state;
#[cfg(all(test, not(loom)))]
mod stopped;
mod verdict;

pub(crate) use claim::Claim;
pub(crate) use ending::Reaped;
pub(crate) use state::Permit;
pub(crate) use verdict::Verdict;

use self::state::{ACTIVE, CLAIMED, ENDED, FREE};
use crate::engine::Engine;
use crate::lock::coarse::looks;
use crate::lock::{Grant, State, until_us};
use crate::object::{OWN, Objects, TOKEN_MAX};
use crate::pool::{Mode, Pool, Step, has_same_step, is_pooled};
use crate::region::{Region, header};
use crate::session::SessionId;
use crate::sync::{Wide, Word, fence};
use crate::table::ROUNDS_MAX;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Offsets in a permit's line.
const TOKEN: usize = 16;
const AMOUNT: usize = 24;
const SINCE: usize = 32;
const CREATOR: usize = 40;

/// Frees every permit, generations kept: for a region from another boot, before anyone uses it.
#[cfg(all(not(loom), target_os = "linux"))]
pub(crate) fn clear_all(region: &Region) {
    for index in 0..region.caps().permits {
        let word = region.wide(region.permit_at(index));
        let state = word.load();
        // It can only fail if something scribbles.
        let _ = word.compare_exchange(state, Permit::decode(state).freed().encode());
    }
}

/// How many holds whose lease runs a session has by permits.
#[cfg(all(not(loom), target_os = "linux"))]
pub(crate) fn count_of(region: &Region, by: SessionId, now_us: u64) -> u32 {
    let is_its = |index: &u32| {
        let permit = Permit::decode(region.wide(region.permit_at(*index)).load());
        permit.is_active() && permit.by == by && !permit.has_expired(now_us)
    };
    (0..region.caps().permits).filter(is_its).count() as u32
}

/// How many permits are taken, by the dead and the late too.
pub(crate) fn taken_count(region: &Region) -> u64 {
    let high = region.word(header::PERMITS_HIGH).load(Acquire);
    let permits = 0..high.min(region.caps().permits.into()) as u32;
    let is_taken =
        |index: &u32| !Permit::decode(region.wide(region.permit_at(*index)).load()).is_free();
    permits.filter(is_taken).count() as u64
}

/// Calls `visit` with each permit that names `cell`, until it returns false. A word that no step makes is
/// skipped: no step could change it either.
pub(crate) fn for_each(region: &Region, cell: u32, mut visit: impl FnMut(u32, Permit) -> bool) {
    let high = region.word(header::PERMITS_HIGH).load(Acquire);
    for index in 0..high.min(region.caps().permits.into()) as u32 {
        let word = region.wide(region.permit_at(index)).load();
        let permit = Permit::decode(word);
        let is_its = permit.phase != FREE && permit.cell == cell && permit.encode() == word;
        if is_its && !visit(index, permit) {
            return;
        }
    }
}

/// Sees to it that the permit which the pool's word `raw`, at `at`, names last has followed. Before each
/// exchange of the word but one that keeps its step.
pub(crate) fn follow_step(region: &Region, at: usize, cell: u32, raw: u128) {
    if !is_pooled(raw) {
        return;
    }
    let (index, from) = match Pool::decode(raw).step {
        Step::Joined(index) => (index, CLAIMED),
        Step::Left(index) => (index, ENDED),
        Step::None => return,
    };
    let word = region.wide(region.permit_at(index));
    let state = word.load();
    // Asked after the permit was read: then that is its state under this step, and not one of a later
    // use. Of the step, and not of the whole word: that may be another for a moment, and this one again
    // when the caller exchanges it.
    if !has_same_step(region.wide(at).load(), raw) {
        return;
    }
    let permit = Permit::decode(state);
    if permit.phase != from || permit.cell != cell {
        return;
    }
    let next = if from == CLAIMED {
        permit.in_phase(ACTIVE)
    } else {
        permit.freed()
    };
    // Losing means that somebody else did it.
    let _ = word.compare_exchange(state, next.encode());
}

/// What a permit says besides its word.
pub(crate) struct Record {
    pub(crate) token: u64,
    pub(crate) amount: u32,
    /// `None` if it is not known.
    pub(crate) since_ns: Option<u64>,
    /// Whether it is about to be undone.
    pub(crate) is_void: bool,
}

impl Engine {
    pub(crate) fn permit(&self, index: u32) -> &Wide {
        self.region.wide(self.region.permit_at(index))
    }

    /// Valid if the permit's word is unchanged after.
    pub(crate) fn permit_record(&self, index: u32) -> Record {
        let word = |offset| {
            let at = self.region.permit_at(index) + offset;
            // Relaxed: written before the pool's word named it as joined, which the reader acquired.
            self.region.word(at).load(Relaxed)
        };
        Record {
            token: word(TOKEN) & TOKEN_MAX,
            amount: word(AMOUNT) as u32,
            since_ns: verdict::since_ns(word(SINCE)),
            is_void: verdict::is_void(word(SINCE)),
        }
    }

    /// Notes when a permit was granted, and so that the grant is not to be undone for a coarse lock's sake.
    pub(crate) fn note_permit(&self, index: u32, now_ns: u64) {
        let since = self.region.word(self.region.permit_at(index) + SINCE);
        let before = since.load(Relaxed);
        // By now it may be the permit of a limiter's key, of which nobody who is late may say that it stands.
        if verdict::since_ns(before).is_some() {
            // Release: after the look at the gate. Region time 0 would say nothing.
            let _ = since.compare_exchange(before, now_ns.max(1), Release, Relaxed);
        }
    }

    /// As [`is_settled`](Self::is_settled), of a permit that was found active.
    fn is_permit_settled(&self, index: u32, permit: Permit) -> bool {
        let since = self.region.word(self.region.permit_at(index) + SINCE);
        for _ in 0..looks() {
            // Acquire: pairs with the release in `note_permit`.
            if since.load(Acquire) != 0 {
                return true;
            }
            core::hint::spin_loop();
            if Permit::decode(self.permit(index).load()) != permit {
                return false;
            }
        }
        true
    }

    /// The word that has a permit's token.
    pub(crate) fn permit_token(&self, index: u32) -> &Word {
        self.region.word(self.region.permit_at(index) + TOKEN)
    }

    /// Notes that a hold goes on under another token, if its token's word is still what it was `before`: the
    /// generation is in it, for whoever is stopped before this may come when the permit is another's.
    pub(crate) fn replace_permit_token(&self, index: u32, hold: Permit, before: u64, token: u64) {
        let after = hold.with_token(token);
        let _ = self
            .permit_token(index)
            .compare_exchange(before, after, Relaxed, Relaxed);
    }

    /// Makes a claimed permit a member by exchanging the pool's word, which was `raw` and whose last
    /// step was followed. `None` when it changed since.
    pub(crate) fn join(
        &self,
        cell: u32,
        raw: u128,
        pool: Pool,
        claim: &Claim,
        amount: u32,
    ) -> Option<Grant> {
        let joined = pool.joined(claim.index, amount)?;
        // Relaxed: nobody else reads a claimed permit's token.
        let token = Permit::decode(claim.word).with_token(joined.token);
        self.permit_token(claim.index).store(token, Relaxed);
        let word = self.objects.state(&self.region, cell);
        word.compare_exchange(raw, joined.encode()).ok()?;
        self.follow_step(cell, joined.encode());
        Some(Grant::of_permit(
            joined.token,
            claim.index,
            Permit::decode(claim.word).in_phase(ACTIVE).encode(),
        ))
    }

    pub(crate) fn follow_step(&self, cell: u32, raw: u128) {
        follow_step(&self.region, self.objects.at(cell), cell, raw);
    }

    /// Takes a permit that has ended out of its pool; whether this call did it.
    fn take_out(&self, index: u32, ended: u128, now_ns: u64) -> bool {
        let cell = Permit::decode(ended).cell;
        let word = self.objects.state(&self.region, cell);
        for _ in 0..ROUNDS_MAX {
            let raw = word.load();
            if !is_pooled(raw) {
                // It is a member of nothing, which only damage, or a session taken for dead, brings about.
                let freed = Permit::decode(ended).freed().encode();
                let _ = self.permit(index).compare_exchange(ended, freed);
                return false;
            }
            self.follow_step(cell, raw);
            // Read after the word: a member still, if the word is exchanged as it was.
            if self.permit(index).load() != ended {
                return false;
            }
            let pool = Pool::decode(raw);
            let mut left = pool.left(index, self.permit_record(index).amount);
            if self.is_lock(cell)
                && [Mode::Upgrading(index), Mode::Exclusive(index)].contains(&pool.mode())
            {
                left = left.with_mode(Mode::Shared);
            }
            if word.compare_exchange(raw, left.encode()).is_ok() {
                // When there was room last, for those who wait. Relaxed: a hint.
                self.region
                    .word(self.objects.at(cell) + OWN)
                    .store(now_ns, Relaxed);
                self.follow_step(cell, left.encode());
                self.close_pool(cell, left.encode(), now_ns);
                return true;
            }
        }
        false
    }

    /// Gives a lock that nobody shares any more the plain form of a free one; whether it did.
    pub(crate) fn close_pool(&self, cell: u32, raw: u128, now_ns: u64) -> bool {
        let pool = Pool::decode(raw);
        if pool.used != 0 || !self.is_lock(cell) {
            return false;
        }
        self.follow_step(cell, raw);
        let free = State {
            queue: pool.queue,
            time_us: if pool.queue { now_ns / 1_000 } else { 0 },
            ..State::free(pool.token)
        };
        let word = self.objects.state(&self.region, cell);
        word.compare_exchange(raw, free.encode()).is_ok()
    }

    pub(crate) fn is_lock(&self, cell: u32) -> bool {
        Objects::is_lock(&self.region, self.objects.at(cell))
    }

    /// Exchanges an active permit's word for what `next` makes of it; `None` if it is not the hold of
    /// `hold`, or `next` declines.
    pub(crate) fn change_permit(
        &self,
        index: u32,
        hold: u128,
        mut next: impl FnMut(Permit) -> Option<Permit>,
    ) -> Option<Permit> {
        let word = self.permit(index);
        for _ in 0..ROUNDS_MAX {
            let state = word.load();
            let permit = Permit::decode(state);
            if !permit.is_active() || !permit.is_same_hold(Permit::decode(hold)) {
                return None;
            }
            let after = next(permit)?;
            if word.compare_exchange(state, after.encode()).is_ok() {
                return Some(after);
            }
        }
        None
    }

    /// Ends a hold by its permit; whether it was one.
    pub(crate) fn release_permit(&self, index: u32, hold: u128, now_ns: u64) -> bool {
        let ended = self.change_permit(index, hold, |permit| Some(permit.in_phase(ENDED)));
        let Some(ended) = ended else {
            return false;
        };
        // One that was adopted is of the share of whoever acquired it.
        if self.is_created_by(index, ended.by) {
            self.count_out_permit();
        }
        self.take_out(index, ended.encode(), now_ns);
        true
    }

    /// Moves the end of a permit's lease, and hands it `to` another session if one is given. `None` once the
    /// lease is over.
    pub(crate) fn renew_permit(
        &self,
        index: u32,
        hold: u128,
        to: Option<SessionId>,
        now_ns: u64,
        lease_ns: u64,
    ) -> Option<Permit> {
        self.change_permit(index, hold, |permit| {
            (!permit.has_expired(now_ns / 1_000)).then_some(Permit {
                by: to.unwrap_or(permit.by),
                until_us: until_us(now_ns, lease_ns),
                ..permit
            })
        })
    }

    /// [`renew_permit`](Self::renew_permit), but never to an earlier end than the lease has.
    pub(crate) fn extend_permit(
        &self,
        index: u32,
        hold: u128,
        now_ns: u64,
        lease_ns: u64,
    ) -> Option<Permit> {
        self.change_permit(index, hold, |permit| {
            (!permit.has_expired(now_ns / 1_000)).then_some(Permit {
                until_us: until_us(now_ns, lease_ns).max(permit.until_us),
                ..permit
            })
        })
    }

    /// Whether a permit is still of the use that `hold` was, whoever has it and whether its lease runs or not.
    pub(crate) fn is_permit_of(&self, index: u32, hold: u128) -> bool {
        let permit = Permit::decode(self.permit(index).load());
        permit.is_member() && permit.is_same_use(Permit::decode(hold))
    }

    pub(crate) fn is_permit_held(&self, index: u32, hold: u128, now_us: u64) -> bool {
        let permit = Permit::decode(self.permit(index).load());
        permit.is_active()
            && permit.is_same_hold(Permit::decode(hold))
            && !permit.has_expired(now_us)
    }

    /// The permit of the pool in `cell` that has this token, and its word.
    pub(crate) fn permit_of_token(&self, cell: u32, token: u64) -> Option<(u32, u128)> {
        let raw = self.objects.state(&self.region, cell).load();
        if !is_pooled(raw) {
            return None;
        }
        self.follow_step(cell, raw);
        let mut found = None;
        for_each(&self.region, cell, |index, permit| {
            let record = self.permit_record(index);
            // The record's loads come before the word's: unchanged means that it was this use's.
            fence(Acquire);
            let state = permit.encode();
            if permit.is_active() && record.token == token && self.permit(index).load() == state {
                found = Some((index, state));
            }
            found.is_none()
        });
        found
    }
}
