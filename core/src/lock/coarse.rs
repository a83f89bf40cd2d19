//! Partition and table locks: one for all keys of a partition, one for all keys there are.
//!
//! Owns what excludes them and the locks beneath them from each other. Each has a word of its own, in a
//! place of its own, of the same form as any lock's; they are had alone only.
//!
//! # The gate
//!
//! A partition's word is the gate of the locks beneath. Whoever is granted one looks at the gate after the
//! exchange that granted it: shut (held, engaged, or waited for), the grant is undone before anyone
//! hears of it. Whoever wants the partition engages its word, then looks through the cells beneath: a
//! lock that is held there has come first. The two orders, each *publish, fence, look*, leave no way for both
//! to miss the other; and since an engaged word is undecided, the one beneath calls it off and stays, so that
//! they don't refuse each other either.
//!
//! The lock of the table leads ([`super::engaged`]) all partitions, so that one look at one word
//! tells of both.
//!
//! Who waits for a partition shuts its gate to newcomers, and marks the locks that are held beneath as waited for,
//! so that their release wakes it. It goes by tickets like all who wait: those beneath who came before are served
//! before, those who came after wait for it.

use super::engaged::{Engaged, Role};
use super::{Released, State};
use crate::admission::{Answer, Asker, QUEUE, is_queued};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::object::Objects;
#[cfg(all(not(loom), target_os = "linux"))]
use crate::object::serial;
use crate::pool::{Pool, is_pooled};
use crate::region::{CELLS_PER_BLOCK, Region};
use crate::session::SessionId;
use crate::sync::Wide;
use crate::table::{EMPTY, Found, LIVE, ROUNDS_MAX, phase};
use crate::waiter::{PROBE_NS, Waiter};
use core::sync::atomic::Ordering::Acquire;
#[cfg(all(not(loom), target_os = "linux"))]
use core::sync::atomic::Ordering::Relaxed;

/// Set in the cell of a coarse lock.
pub(crate) const COARSE: u32 = 1 << 30;

/// Looks at a word that is undecided before it is called off: whoever is at it is given the time that it
/// takes one who runs, and no more.
pub(crate) fn looks() -> u32 {
    if cfg!(any(loom, feature = "steps")) {
        0
    } else {
        200
    }
}

/// What lies beneath a coarse lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coarse {
    /// The locks of one partition.
    Partition(u32),
    /// All locks.
    Table,
}

impl Coarse {
    /// What it is called where a lock's name would stand.
    pub fn told(self) -> Vec<u8> {
        match self {
            Self::Partition(partition) => format!("partition {partition}").into(),
            Self::Table => b"the table".to_vec(),
        }
    }
}

/// Whether the gate of a partition, the low half of its word, is shut or must be looked at more closely: it is
/// *pooled*, *held* or has a *queue*.
#[inline(always)]
pub(crate) fn is_shut(gate: u64) -> bool {
    const SHUT: u64 = 0b111 << 2;
    gate & SHUT != 0
}

impl Engine {
    /// The lock that a cell number names, coarse or not.
    pub(crate) fn lock_at(&self, cell: u32) -> usize {
        if cell & COARSE == 0 {
            self.objects.at(cell)
        } else {
            self.region.coarse_at(cell & !COARSE)
        }
    }

    pub(crate) fn lock_word(&self, cell: u32) -> &Wide {
        self.region.wide(self.lock_at(cell))
    }

    pub(crate) fn coarse_cell(&self, coarse: Coarse) -> u32 {
        match coarse {
            Coarse::Partition(partition) => COARSE | partition,
            Coarse::Table => COARSE | self.region.partitions(),
        }
    }

    /// Which coarse lock a cell is of.
    pub(crate) fn coarse_of(&self, cell: u32) -> Option<Coarse> {
        if cell & COARSE == 0 {
            None
        } else if cell & !COARSE >= self.region.partitions() {
            Some(Coarse::Table)
        } else {
            Some(Coarse::Partition(cell & !COARSE))
        }
    }

    /// The partition of a lock's cell.
    pub(crate) fn partition_of_cell(&self, cell: u32) -> u32 {
        let partition = self.objects.partition(cell / CELLS_PER_BLOCK);
        partition.min(self.region.partitions() - 1)
    }

    /// Whether what two cells name excludes each other, each had alone.
    pub(crate) fn overlap(&self, one: u32, other: u32) -> bool {
        let of_key = |cell, coarse| {
            Objects::is_lock(&self.region, self.objects.at(cell))
                && match coarse {
                    Coarse::Partition(partition) => self.partition_of_cell(cell) == partition,
                    Coarse::Table => true,
                }
        };
        match (self.coarse_of(one), self.coarse_of(other)) {
            (None, None) => one == other,
            (None, Some(coarse)) => of_key(one, coarse),
            (Some(coarse), None) => of_key(other, coarse),
            (Some(Coarse::Partition(one)), Some(Coarse::Partition(other))) => one == other,
            _ => true,
        }
    }

    /// Whether a cell is that of a coarse lock over what `cell` names.
    pub(crate) fn is_above(&self, other: u32, cell: u32) -> bool {
        other & COARSE != 0 && self.overlap(other, cell)
    }

    /// A coarse lock's word. The first to come makes it live, with tokens above all that were handed out.
    pub(crate) fn find_coarse(&self, coarse: Coarse) -> Found {
        let cell = self.coarse_cell(coarse);
        let at = self.lock_at(cell);
        let word = self.region.wide(at);
        let state = word.load();
        if phase(state) != EMPTY {
            return Found { cell, at, state };
        }
        let floor = match coarse {
            Coarse::Partition(partition) => self.region.floor(partition).load(Acquire),
            Coarse::Table => {
                let floor = |partition| self.region.floor(partition).load(Acquire);
                (0..self.region.partitions()).map(floor).max().unwrap_or(0)
            }
        };
        // Losing means that somebody else did it.
        let _ = word.compare_exchange(state, State::free(floor).encode());
        let state = word.load();
        Found { cell, at, state }
    }

    /// The gate of the locks that hash so.
    #[inline(always)]
    pub(crate) fn gate_of(&self, hash: u64) -> &Wide {
        // As `Table::home` and `Table::partition` have it: a table is whole partitions.
        let partition = ((hash >> 32) * u64::from(self.region.partitions())) >> 32;
        self.region.wide(self.region.coarse_at(partition as u32))
    }

    /// Whether one who was just granted what lies in `cell`, or is about to be, may have it by the coarse
    /// locks above: *yes*, or *no*.
    pub(crate) fn answer_of_gate(&self, cell: u32, asker: &Asker) -> Answer {
        let gate = COARSE | self.partition_of_cell(cell);
        let at = self.lock_at(gate);
        for _ in 0..ROUNDS_MAX {
            let state = self.region.wide(at).load();
            if !is_shut(state as u64) || phase(state) != LIVE {
                return Answer::Yes;
            }
            let found = Found {
                cell: gate,
                at,
                state,
            };
            let is_in_the_way =
                |waiter: &Waiter| asker.number.is_none_or(|number| waiter.number < number);
            let above = |cell| self.is_above(cell, gate);
            let first = self.first_of(above, asker.now_ns, asker.probe, is_in_the_way);
            // Asked first: one who comes after the waiter would else call its taking off, again and again.
            if let Some(first) = first
                && !first.has_let_lie(self.free_since_ns(&found), asker.now_ns)
            {
                return Answer::Behind(first);
            }
            match self.is_free(&found, asker) {
                Answer::Yes => {}
                Answer::Again => continue,
                answer => return answer,
            }
            if first.is_none() {
                // Nobody who comes before; and should nobody wait at all, the next one need not look.
                if self
                    .first_of(above, asker.now_ns, false, |_| true)
                    .is_none()
                {
                    // One who came meanwhile is not to be woken for that, but is to find it shut.
                    if self.hand_on(gate, state, asker.now_ns).is_some() {
                        self.shut_gate(gate);
                        continue;
                    }
                }
                return Answer::Yes;
            }
            self.pass_over(&found, asker.now_ns);
        }
        Answer::No {
            look_again_ns: asker.now_ns.saturating_add(PROBE_NS),
        }
    }

    /// Whether no lock beneath a coarse one is held. Those that are held are marked as waited for if the asker
    /// waits, so that their release wakes it. Reads every cell there.
    pub(crate) fn answer_beneath(&self, coarse: Coarse, asker: &Asker) -> Answer {
        let mut look_again_ns = None;
        let visit = |cell, at, state| {
            if phase(state) != LIVE || !Objects::is_lock(&self.region, at) {
                return;
            }
            if let Some(until_ns) = self.held_until_ns(Found { cell, at, state }, asker) {
                look_again_ns = Some(look_again_ns.map_or(until_ns, |ns: u64| ns.min(until_ns)));
            }
        };
        match coarse {
            Coarse::Table => self.objects.for_each(&self.region, visit),
            Coarse::Partition(partition) => {
                self.objects.for_each_in(&self.region, partition, visit);
            }
        }
        match look_again_ns {
            None => Answer::Yes,
            Some(look_again_ns) => Answer::No { look_again_ns },
        }
    }

    /// Until when a lock beneath is held by somebody, in nanoseconds; `None` if it is not. One that is held by
    /// the dead, or past its lease, is freed; one that is undecided is called off.
    pub(super) fn held_until_ns(&self, mut found: Found, asker: &Asker) -> Option<u64> {
        let word = self.region.wide(found.at);
        for _ in 0..ROUNDS_MAX {
            // The kind after the word, each time: the cell may be another entry's by now.
            if phase(found.state) != LIVE || !Objects::is_lock(&self.region, found.at) {
                return None;
            }
            match self.is_free(&found, asker) {
                Answer::Yes => return None,
                Answer::No { look_again_ns }
                    if asker.number.is_none() || self.mark_held(&found) =>
                {
                    return Some(look_again_ns);
                }
                _ => {}
            }
            found.state = word.load();
        }
        Some(0)
    }

    /// Marks a lock that is held as waited for, so that whoever frees it finds the mark; `false` if it is not
    /// held any more.
    fn mark_held(&self, found: &Found) -> bool {
        let word = self.region.wide(found.at);
        for _ in 0..ROUNDS_MAX {
            let state = word.load();
            let is_held = if is_pooled(state) {
                Pool::decode(state).used > 0
            } else {
                // In plain form, only as it was when it was found held.
                state | QUEUE == found.state | QUEUE
            };
            if phase(state) != LIVE || !is_held || !Objects::is_lock(&self.region, found.at) {
                return false;
            }
            if is_queued(state) || word.compare_exchange(state, state | QUEUE).is_ok() {
                return true;
            }
        }
        false
    }

    /// Says of a coarse lock that it is waited for.
    pub(crate) fn shut_gate(&self, gate: u32) {
        let word = self.lock_word(gate);
        for _ in 0..ROUNDS_MAX {
            let raw = word.load();
            if phase(raw) != LIVE
                || is_queued(raw)
                || word.compare_exchange(raw, raw | QUEUE).is_ok()
            {
                return;
            }
        }
    }

    /// Frees a coarse lock if it is held as `is_hold` says.
    pub(super) fn release_coarse(
        &self,
        coarse: Coarse,
        now_ns: u64,
        is_hold: impl Fn(State) -> bool,
    ) -> Released {
        let cell = self.coarse_cell(coarse);
        let freed = self.change(cell, |state| {
            is_hold(state).then(|| state.freed(now_ns / 1_000))
        });
        let Some(freed) = freed else {
            return Released::NotHeld;
        };
        if coarse == Coarse::Table {
            let tag = Engaged::tag_of(freed.token);
            for partition in 0..self.region.partitions() {
                self.free_follower(COARSE | partition, cell, tag, now_ns);
            }
        }
        Released::Done {
            wake: self.wake_beneath(cell, 0),
        }
    }

    /// The words that a coarse lock takes, its own first.
    pub(crate) fn words_of(&self, coarse: Coarse) -> Vec<Found> {
        let partitions = match coarse {
            Coarse::Partition(_) => 0,
            Coarse::Table => self.region.partitions(),
        };
        let partitions = (0..partitions).map(Coarse::Partition);
        core::iter::once(coarse)
            .chain(partitions)
            .map(|coarse| self.find_coarse(coarse))
            .collect()
    }

    /// The error for a partition that there is none of.
    pub fn check_partition(&self, partition: u32) -> Result<()> {
        let partitions = self.region.partitions();
        if partition < partitions {
            return Ok(());
        }
        Err(Error::OutOfRange {
            what: "partition",
            value: partition.into(),
            min: 0,
            max: u64::from(partitions) - 1,
        })
    }
}

/// Whether an engaged lock is held, or may come to be. `false` for one that is void, which is free.
pub(crate) fn is_in_use(
    region: &Region,
    state: u128,
    is_alive: &mut dyn FnMut(SessionId) -> bool,
) -> bool {
    match Engaged::decode(state).role {
        Role::Leader(session) => is_alive(session),
        Role::Follower { leader, tag } => {
            let at = if leader & COARSE == 0 {
                let section = &region.geometry.objects;
                let block = (leader / CELLS_PER_BLOCK).min(section.units - 1);
                section.at(block) + 64 + (leader % CELLS_PER_BLOCK) as usize * 64
            } else {
                region.coarse_at(leader & !COARSE)
            };
            Engine::leads(region, leader, at, region.wide(at).load(), tag)
        }
    }
}

/// Notes the tokens of all coarse locks as floors, and forgets their words: for a region from another
/// boot, before anyone uses it.
#[cfg(all(not(loom), target_os = "linux"))]
pub(crate) fn settle(region: &Region) {
    for index in 0..=region.partitions() {
        let word = region.wide(region.coarse_at(index));
        let state = word.load();
        for partition in 0..region.partitions() {
            if index == partition || index == region.partitions() {
                region.floor(partition).fetch_max(serial(state), Relaxed);
            }
        }
        // It can only fail if something scribbles.
        let _ = word.compare_exchange(state, EMPTY);
    }
}
