//! Deadlocks: waits that wait for each other in a circle, found at once instead of waited out.
//!
//! Owns looking for such circles. Changes no lock; what is done about one is for those who wait.
//!
//! # Who waits for whom
//!
//! A wait waits for all who hold what it wants, or some of it, and for all who queued for that before. Only who
//! holds something can be waited for because of that, so each wait says what its owner holds: before it is
//! looked for circles, and again at each probe, it leaves a *mark* beside each of these holds, that names
//! its slot:
//!
//! | bits | field |
//! |---|---|
//! | 0..17 | slot of the wait, plus 1 |
//! | 17..29 | generation of the slot |
//! | 29..64 | the low bits of the hold's token |
//!
//! A mark is of the hold under that token and of the wait in that generation, and void once either is over. Who
//! ends its wait takes its marks away; those of the dead are beside holds that are nobody's any more.
//!
//! # Why none is missed, and none is reported that is none
//!
//! A wait publishes its slot and its marks, fences (`SeqCst`), and then walks from wait to wait. Of several that
//! close a circle together, the one whose fence comes last sees all the others. A circle that was walked is
//! told only if, after that, every word on the way is still what it was: words of locks, permits and waits
//! never repeat, so all of it was true at one moment; and since each waits for all of those before it,
//! nothing but a timeout or the end of a lease can undo it then. The youngest wait whose owner holds something
//! in the circle fails.

use super::coarse::COARSE;
use super::engaged::{Engaged, Role, is_engaged};
use super::{Grant, State};
use crate::admission::UPGRADE;
use crate::engine::Engine;
use crate::object::{OWN, Objects};
use crate::permit::{self, Permit};
use crate::pool::{Mode, Pool, is_pooled};
use crate::session::{Process, Sessions};
use crate::sync::fence;
use crate::table::{LIVE, phase};
use crate::waiter::{Ticket, Wait};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use std::fmt;

/// Where the mark of a permit lies in its line.
const PERMIT_MARK: usize = 48;
/// Where the mark of a lock lies in its line.
pub(crate) const MARK: usize = OWN + 8;

const SLOT_BITS: u32 = 17;
const GENERATION_BITS: u32 = 12;
const TAG_SHIFT: u32 = SLOT_BITS + GENERATION_BITS;

/// Waits that one walk looks at. More than that wait for each other only where thousands of owners do.
const WALK_MAX: usize = 4_096;

/// One wait of a circle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlockedWait {
    /// What is waited for, in words: a lock's name, or which coarse lock.
    pub lock: Vec<u8>,
    /// The process that waits; `None` if its session was closed.
    pub process: Option<Process>,
}

/// A circle of waits: each waits for the next, the last for the first, which is the one that was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// The waits.
    pub waits: Vec<DeadlockedWait>,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, wait) in self.waits.iter().enumerate() {
            let arrow = if i == 0 { "" } else { ", then " };
            let lock = crate::readable::Readable(&wait.lock);
            match wait.process {
                Some(process) => write!(formatter, "{arrow}{lock} (by process {})", process.pid)?,
                None => write!(formatter, "{arrow}{lock}")?,
            }
        }
        Ok(())
    }
}

/// What a search came to.
pub(crate) enum Search {
    /// The caller's wait is the one to fail.
    Found(Deadlock),
    /// The wait in this slot is the one to fail, and is to look.
    Other(u32),
    Nothing,
}

/// A word that an edge rests on, and what it was.
#[derive(Clone, Copy)]
enum Evidence {
    Wide(usize, u128),
    Mark(usize, u64),
}

/// That one wait waits for another.
struct Edge {
    to: Wait,
    /// Whether for what the other's owner holds, and not for its place in a queue.
    is_hold: bool,
    evidence: Vec<Evidence>,
}

/// Who holds something, by the place of the mark that may say for what its owner waits.
struct Holder {
    mark_at: usize,
    token: u64,
    evidence: Vec<Evidence>,
}

impl Engine {
    /// Says beside each of an owner's holds that the owner waits now, by `ticket`.
    pub(crate) fn mark_holds(&self, ticket: &Ticket) {
        let Some(wait) = self.wait_of(ticket) else {
            return;
        };
        for grant in ticket.holds() {
            let word = self.region.word(self.mark_at(grant));
            let mark = mark_of(&wait, grant.token);
            // A few times: whoever else marks it has the hold no more, or has it now.
            for _ in 0..3 {
                let before = word.load(Acquire);
                if before == mark || !self.is_held(grant, 0) {
                    break;
                }
                // Only over what was there while the hold was the owner's.
                if word.compare_exchange(before, mark, AcqRel, Relaxed).is_ok() {
                    break;
                }
            }
        }
    }

    /// Takes away what [`mark_holds`](Self::mark_holds) said: the owner waits no more.
    pub(crate) fn unmark_holds(&self, ticket: &Ticket) {
        let slot = u64::from(ticket.slot() + 1);
        for grant in ticket.holds() {
            let word = self.region.word(self.mark_at(grant));
            let mark = word.load(Relaxed);
            // Losing means that another's is there by now.
            if mark & ((1 << SLOT_BITS) - 1) == slot {
                let _ = word.compare_exchange(mark, 0, AcqRel, Relaxed);
            }
        }
    }

    /// Where the mark of a hold lies.
    fn mark_at(&self, grant: &Grant) -> usize {
        match grant.permit() {
            Some(index) => self.region.permit_at(index) + PERMIT_MARK,
            None => self.lock_at(grant.cell()) + MARK,
        }
    }

    /// Looks for a circle that the wait of `ticket`, whose holds are marked, is part of.
    pub(crate) fn find_deadlock(&self, ticket: &Ticket, now_ns: u64) -> Search {
        let Some(start) = self.wait_of(ticket) else {
            return Search::Nothing;
        };
        // We published our wait and our marks, then walk: pairs with itself in all others.
        fence(SeqCst);
        let mut seen = vec![start.slot];
        let mut path: Vec<(Edge, Vec<Edge>)> = Vec::new();
        let mut edges = self.edges_of(&start, now_ns);
        loop {
            let Some(edge) = edges.pop() else {
                // Nothing more from here: back to where it came from.
                match path.pop() {
                    Some((_, before)) => edges = before,
                    None => return Search::Nothing,
                }
                continue;
            };
            if edge.to.slot == start.slot {
                if edge.to.word != start.word {
                    continue;
                }
                path.push((edge, Vec::new()));
                let circle: Vec<Edge> = path.into_iter().map(|(edge, _)| edge).collect();
                return self.judge(&start, &circle);
            }
            if seen.contains(&edge.to.slot) || seen.len() >= WALK_MAX {
                continue;
            }
            seen.push(edge.to.slot);
            let next = self.edges_of(&edge.to, now_ns);
            path.push((edge, core::mem::replace(&mut edges, next)));
        }
    }

    /// Whether a circle is one still, and who of it is to fail.
    fn judge(&self, start: &Wait, circle: &[Edge]) -> Search {
        fence(SeqCst);
        let is_unchanged = circle.iter().all(|edge| {
            self.is_waiting_still(&edge.to, edge.is_hold)
                && edge.evidence.iter().all(|evidence| match *evidence {
                    Evidence::Wide(at, value) => self.region.wide(at).load() == value,
                    Evidence::Mark(at, value) => self.region.word(at).load(Acquire) == value,
                })
        });
        let youngest = circle
            .iter()
            .filter(|edge| edge.is_hold)
            .max_by_key(|edge| edge.to.age);
        match youngest {
            Some(youngest) if is_unchanged => {
                if youngest.to.slot != start.slot {
                    return Search::Other(youngest.to.slot);
                }
                // The first is the caller's own, the last edge leads back to it.
                let waits = core::iter::once(start).chain(circle.iter().map(|edge| &edge.to));
                Search::Found(Deadlock {
                    waits: waits
                        .take(circle.len())
                        .map(|wait| self.told(wait))
                        .collect(),
                })
            }
            _ => Search::Nothing,
        }
    }

    fn told(&self, wait: &Wait) -> DeadlockedWait {
        let lock = match self.coarse_of(wait.cell) {
            Some(coarse) => coarse.told(),
            None => Objects::name(&self.region, self.objects.at(wait.cell)),
        };
        DeadlockedWait {
            lock,
            process: Sessions::process(&self.region, wait.session),
        }
    }

    /// All that a wait waits for.
    fn edges_of(&self, wait: &Wait, now_ns: u64) -> Vec<Edge> {
        let mut edges = Vec::new();
        for place in self.places_of(wait) {
            let is_of_lock = self.coarse_of(place.cell).is_some()
                || Objects::is_lock(&self.region, self.objects.at(place.cell));
            if !is_of_lock {
                continue;
            }
            for holder in self.holders(&place, now_ns) {
                edges.extend(self.edge_to_owner(holder, now_ns));
            }
            let ahead = |other: &Wait| {
                other.is_in_turn()
                    && other.number < wait.number
                    && place.wants != UPGRADE
                    && !(place.wants == 1 && other.wants == 1)
                    && self.overlap(other.cell, place.cell)
            };
            for other in self.waits(now_ns).filter(ahead) {
                let Some(to) = self.primary_of(&other) else {
                    continue;
                };
                edges.push(Edge {
                    to,
                    is_hold: false,
                    evidence: Vec::new(),
                });
            }
        }
        edges
    }

    /// The wait of a holder's owner, if it waits.
    fn edge_to_owner(&self, mut holder: Holder, now_ns: u64) -> Option<Edge> {
        // Acquire: pairs with the exchange in `mark_holds`.
        let mark = self.region.word(holder.mark_at).load(Acquire);
        let slot = (mark & ((1 << SLOT_BITS) - 1)).checked_sub(1)?;
        let to = self.wait_in(slot as u32, now_ns)?;
        (mark == mark_of(&to, holder.token)).then(|| {
            holder.evidence.push(Evidence::Mark(holder.mark_at, mark));
            Edge {
                to,
                is_hold: true,
                evidence: holder.evidence,
            }
        })
    }

    /// All whose holds keep a place from what it waits for. Those whose lease is over or whose session is
    /// dead keep nobody from anything.
    fn holders(&self, place: &Wait, now_ns: u64) -> Vec<Holder> {
        let mut holders = Vec::new();
        match self.coarse_of(place.cell) {
            None => {
                self.add_holders(place.cell, place, now_ns, &mut holders);
                let gate = COARSE | self.partition_of_cell(place.cell);
                self.add_holders(gate, place, now_ns, &mut holders);
            }
            Some(coarse) => {
                let beneath = |cell: u32, at: usize, state: u128| {
                    if phase(state) == LIVE && Objects::is_lock(&self.region, at) {
                        self.add_holders(cell, place, now_ns, &mut holders);
                    }
                };
                match coarse {
                    super::Coarse::Table => self.objects.for_each(&self.region, beneath),
                    super::Coarse::Partition(partition) => {
                        self.objects.for_each_in(&self.region, partition, beneath);
                    }
                }
                for index in 0..=self.region.partitions() {
                    if self.overlap(COARSE | index, place.cell) {
                        self.add_holders(COARSE | index, place, now_ns, &mut holders);
                    }
                }
            }
        }
        holders
    }

    /// Those who hold the lock in `cell` against `place`.
    fn add_holders(&self, cell: u32, place: &Wait, now_ns: u64, holders: &mut Vec<Holder>) {
        let at = self.lock_at(cell);
        let state = self.region.wide(at).load();
        if phase(state) != LIVE {
            return;
        }
        let now_us = now_ns / 1_000;
        if is_pooled(state) {
            let pool = Pool::decode(state);
            if place.wants == 1 && pool.mode() == Mode::Shared {
                return;
            }
            permit::for_each(&self.region, cell, |index, permit| {
                let counts = permit.is_active()
                    && !permit.has_expired(now_us)
                    && self.is_alive(permit.by)
                    && !(place.wants == UPGRADE && pool.mode() == Mode::Upgrading(index));
                if counts {
                    holders.push(self.holder_by_permit(index, permit, at, state));
                }
                true
            });
            return;
        }
        let mut evidence = vec![Evidence::Wide(at, state)];
        let (mut at, mut state) = (at, state);
        if is_engaged(state) {
            let Role::Follower { leader, tag } = Engaged::decode(state).role else {
                return;
            };
            at = self.lock_at(leader);
            state = self.region.wide(at).load();
            if is_engaged(state) || !Self::leads(&self.region, leader, at, state, tag) {
                return;
            }
            evidence.push(Evidence::Wide(at, state));
        }
        let lock = State::decode(state);
        if lock
            .holder
            .is_some_and(|by| !lock.has_expired(now_us) && self.is_alive(by))
        {
            holders.push(Holder {
                mark_at: at + MARK,
                token: lock.token,
                evidence,
            });
        }
    }

    fn holder_by_permit(&self, index: u32, permit: Permit, at: usize, state: u128) -> Holder {
        let line = self.region.permit_at(index);
        Holder {
            mark_at: line + PERMIT_MARK,
            token: self.permit_record(index).token,
            evidence: vec![
                Evidence::Wide(at, state),
                Evidence::Wide(line, permit.encode()),
            ],
        }
    }
}

fn mark_of(wait: &Wait, token: u64) -> u64 {
    u64::from(wait.slot + 1)
        | (wait.word >> 52) << SLOT_BITS
        | (token & ((1 << (64 - TAG_SHIFT)) - 1)) << TAG_SHIFT
}
