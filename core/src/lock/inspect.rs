//! Looking at locks: the status of one, the list of all, and the record of those that were broken.
//!
//! Owns what is shown to people; changes no lock.

use super::engaged::is_engaged;
use super::{Grant, State};
use crate::admission::is_queued;
use crate::engine::Engine;
use crate::object::{Kind, Name, OWN, Objects, serial};
use crate::permit::{self, Permit};
use crate::pool::{Mode, Pool, is_pooled};
use crate::readable::Readable;
use crate::region::{BREAKS, header};
use crate::session::{Process, SessionId, Sessions};
use crate::sync::fence;
use crate::table::{Found, LIVE, ROUNDS_MAX, phase};
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use std::fmt;

/// What an inspection saw of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockStatus {
    /// The lock's name.
    pub name: Vec<u8>,
    /// The last token granted, or the one that the next grant follows.
    pub token: u64,
    /// Whether those who hold it share it.
    pub is_shared: bool,
    /// The holds on it: one at most, unless it is shared.
    pub holds: Vec<HoldStatus>,
    /// How many wait for it.
    pub waiters: u32,
    /// How many more died while they waited, and are not cleared away yet.
    pub waiters_dead: u32,
}

/// What an inspection saw of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldStatus {
    /// Its token.
    pub token: u64,
    /// How many of a semaphore's permits it has; 1 of a lock.
    pub amount: u32,
    /// The holder's process; `None` if its session was closed, or the hold is detached.
    pub process: Option<Process>,
    /// Whether the holder's session lives, or the hold is detached. If not, the next one that comes for
    /// the lock gets it.
    pub is_alive: bool,
    /// Whether the hold belongs to no session and lives until its lease ends.
    pub detached: bool,
    /// What is left of the lease, in nanoseconds; 0 once it is over.
    pub lease_left_ns: u64,
    /// Region time of the grant, in nanoseconds; `None` if not known.
    pub since_ns: Option<u64>,
}

/// One forced release, for audit.
#[derive(Clone, PartialEq, Eq)]
pub struct BreakRecord {
    /// When, in nanoseconds: region time from [`Engine::breaks`]; unix time from a space of the `sprag`
    /// crate.
    pub at_ns: u64,
    /// The token of the hold that was ended.
    pub token: u64,
    /// Process id of whoever did it.
    pub by_pid: u32,
    /// The lock's name, its first 96 bytes.
    pub name: Vec<u8>,
}

impl fmt::Debug for BreakRecord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("BreakRecord")
            .field("at_ns", &self.at_ns)
            .field("token", &self.token)
            .field("by_pid", &self.by_pid)
            .field("name", &Readable(&self.name))
            .finish()
    }
}

impl Engine {
    /// What is known of one lock; `None` if it has no entry, which means free.
    pub fn lock_status(&self, name: &Name, now_ns: u64) -> Option<LockStatus> {
        let object = self.object(Kind::Lock, name);
        let found = self.find_object(&object)?;
        self.status(found.cell, now_ns)
    }

    /// Calls `visit` with each lock whose name begins with `prefix`, in no particular order. A lock
    /// that changes hands meanwhile is seen before or after, never in between.
    pub fn for_each_lock(&self, prefix: &[u8], now_ns: u64, mut visit: impl FnMut(LockStatus)) {
        self.objects.for_each(&self.region, |cell, at, state| {
            if phase(state) == LIVE
                && Objects::is_lock(&self.region, at)
                && Objects::name(&self.region, at).starts_with(prefix)
                && let Some(status) = self.status(cell, now_ns)
                // The cell may have become another lock's since.
                && status.name.starts_with(prefix)
            {
                visit(status);
            }
        });
    }

    fn status(&self, cell: u32, now_ns: u64) -> Option<LockStatus> {
        let at = self.objects.at(cell);
        let word = self.region.wide(at);
        for _ in 0..ROUNDS_MAX {
            let state = word.load();
            if phase(state) != LIVE || !Objects::is_lock(&self.region, at) {
                return None;
            }
            let name = Objects::name(&self.region, at);
            let since = self.region.word(at + OWN).load(Relaxed);
            // The loads above come before the one below; pairs with the fence in `Table::insert`.
            // Unchanged means that the name and the note were this state's.
            fence(Acquire);
            if word.load() != state {
                continue;
            }
            let (is_shared, holds) = if is_engaged(state) {
                (
                    false,
                    self.hold_of_leader(state, now_ns).into_iter().collect(),
                )
            } else if is_pooled(state) {
                let is_alone = matches!(Pool::decode(state).mode(), Mode::Exclusive(_));
                (!is_alone, self.shared_holds(cell, now_ns))
            } else {
                let lock = State::decode(state);
                let since = (since & 0xfff == lock.token & 0xfff).then_some(since & !0xfff);
                let hold = |by| self.hold_status(lock.token, by, lock.time_us, since, now_ns);
                (false, lock.holder.map(hold).into_iter().collect())
            };
            let (waiters, waiters_dead) = if is_queued(state) {
                self.count_waiters(cell)
            } else {
                (0, 0)
            };
            return Some(LockStatus {
                name,
                token: serial(state),
                is_shared,
                holds,
                waiters,
                waiters_dead,
            });
        }
        None
    }

    pub(super) fn hold_status(
        &self,
        token: u64,
        by: SessionId,
        until_us: u64,
        since_ns: Option<u64>,
        now_ns: u64,
    ) -> HoldStatus {
        HoldStatus {
            token,
            amount: 1,
            process: Sessions::process(&self.region, by),
            is_alive: self.is_alive(by),
            detached: by == SessionId::DETACHED,
            lease_left_ns: (until_us * 1_000).saturating_sub(now_ns),
            since_ns,
        }
    }

    /// The hold of a lock that follows another, which is that one's; `None` for one that is void, or undecided.
    pub(super) fn hold_of_leader(&self, state: u128, now_ns: u64) -> Option<HoldStatus> {
        let found = Found {
            cell: 0,
            at: 0,
            state,
        };
        let (leader, token) = self.leader_of(&found)?;
        let lock = State::decode(self.lock_word(leader).load());
        let by = lock.holder.filter(|_| lock.token == token)?;
        let since_ns = self.granted_at_ns(leader, token);
        Some(self.hold_status(serial(state), by, lock.time_us, since_ns, now_ns))
    }

    /// When the hold with this token began, if that is known.
    pub(super) fn granted_at_ns(&self, cell: u32, token: u64) -> Option<u64> {
        let since = self.region.word(self.lock_at(cell) + OWN).load(Relaxed);
        (since & 0xfff == token & 0xfff).then_some(since & !0xfff)
    }

    /// The holds of those who share what is in `cell`, by token. Each is seen as it was at some time.
    pub(crate) fn shared_holds(&self, cell: u32, now_ns: u64) -> Vec<HoldStatus> {
        let mut holds = Vec::new();
        permit::for_each(&self.region, cell, |index, permit| {
            let record = self.permit_record(index);
            // As in `status`.
            fence(Acquire);
            let is_unchanged = Permit::decode(self.permit(index).load()) == permit;
            if permit.is_active() && is_unchanged && !record.is_void {
                let since = record.since_ns;
                let (by, until_us) = (permit.by, permit.until_us);
                holds.push(HoldStatus {
                    amount: record.amount,
                    ..self.hold_status(record.token, by, until_us, since, now_ns)
                });
            }
            true
        });
        holds.sort_by_key(|hold| hold.token);
        holds
    }

    /// The name of the lock that this was a hold of, its name's hash being `name_hash`; `None` if its
    /// entry was reclaimed since.
    pub fn name_of_hold(&self, grant: &Grant, name_hash: u64) -> Option<Vec<u8>> {
        if let Some(coarse) = self.coarse_of(grant.cell()) {
            return Some(coarse.told());
        }
        let at = self.objects.at(grant.cell());
        let name = Objects::name(&self.region, at);
        if !Objects::has_tokens(&self.region, at) {
            return None;
        }
        let is_its = self.region.hasher.hash(&name) == name_hash;
        is_its.then(|| Objects::told(&self.region, at, name))
    }

    pub(super) fn note_break(&self, name: &Name, token: u64, by: Process, now_ns: u64) {
        let hint = self.region.word(header::BREAK_HINT).fetch_add(1, Relaxed);
        let at = self.region.break_at(hint as u32 % BREAKS);
        let name = name.to_vec();
        let put = |i: usize, value| self.region.word(at + i * 8).store(value, Relaxed);
        // A record is torn only if the ring goes once round during these stores; it is for people.
        put(0, now_ns);
        put(1, token);
        put(2, u64::from(by.pid));
        put(3, name.len() as u64);
        for (i, chunk) in name.chunks(8).take(12).enumerate() {
            let mut padded = [0; 8];
            padded[..chunk.len()].copy_from_slice(chunk);
            put(4 + i, u64::from_le_bytes(padded));
        }
    }

    /// The last forced releases, oldest first, at most 64.
    pub fn breaks(&self) -> Vec<BreakRecord> {
        let next = self.region.word(header::BREAK_HINT).load(Acquire);
        let first = next.saturating_sub(u64::from(BREAKS));
        (first..next)
            .map(|i| {
                let at = self.region.break_at((i % u64::from(BREAKS)) as u32);
                let get = |i: usize| self.region.word(at + i * 8).load(Relaxed);
                let mut name: Vec<u8> = (4..16).flat_map(|i| get(i).to_le_bytes()).collect();
                name.truncate(get(3).min(96) as usize);
                BreakRecord {
                    at_ns: get(0),
                    token: get(1),
                    by_pid: get(2) as u32,
                    name,
                }
            })
            .collect()
    }
}
