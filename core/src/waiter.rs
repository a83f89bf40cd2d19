//! Waiting for a lock: tickets, turns, and who to wake. How a sleeper is woken is in [`wake`].
//!
//! Each wait has a slot: a word, all of them side by side so that a queue is found by scanning, and a
//! record on a line of its own.
//!
//! # The word of a wait
//!
//! | bits | field |
//! |---|---|
//! | 0..2 | phase: 0 free, 1 claimed, 2 waiting, 3 passed over |
//! | 2..8, 8..20 | generation and line of the waiting session |
//! | 20..52 | the lock's cell |
//! | 52..64 | generation of the slot, one higher for each wait |
//!
//! # Its record
//!
//! | bytes | field |
//! |---|---|
//! | 0..4 | *signal*: raised to wake it; a thread parks on this word |
//! | 4..8 | *sleeper*: 1 while a thread may be asleep on the signal, 2 while its session's doorbell is to be rung instead |
//! | 8..16 | ticket: its place in the lock's queue |
//! | 16..24 | region time at which it gives up, in nanoseconds |
//! | 24..32 | region time at which it last looked, or queued, in nanoseconds |
//! | 32..40 | what it wants: 0 the lock alone, else how much, all ones to have alone what it shares already |
//! | 40..48 | of a wait for several locks: the slot that is woken for it, plus 1; else 0 |
//! | 48..56 | its age: lower for one that came earlier |
//!
//! ```text
//!            claim                  publish               taken the lock, gave up (self);
//!   free ───────────▶ claimed ───────────────▶ waiting ── its session is dead (anyone) ──▶ free
//!                                               │   ▲                                       ▲
//!     its turn, and it let the lock lie (anyone) ▼   │ looked again (self)                   │
//!                                             passed over ────────── as from waiting ───────┘
//! ```
//!
//! # The turn
//!
//! The head of a lock's queue is its lowest ticket among those waiting. Only the head takes a lock
//! that is free with a queue, by its own exchange on the lock's word; one who wants it in shared use also
//! when only others who do are before it. Who may is said in [`crate::admission`]. Whoever frees the lock
//! raises the head's signal, and who got a share of it, that of the next. All else is a re-probe: each waiter looks again at least every
//! [`PROBE_NS`], drops waits of dead sessions, frees the lock of a dead or expired holder, and passes
//! a lost wake on. So:
//!
//! - *dead between freeing and waking*: found at the next probe;
//! - *head dead*: dropped at the next probe, the next one is head;
//! - *head stopped*: when the lock has been free for [`PATIENCE_NS`], all who have not looked for as long
//!   are passed over, and the next one is head, until they look again themselves and have their places
//!   back;
//! - *cancel against grant*: there is no grant by others. A wait that gives up leaves its slot, then
//!   looks at the lock and passes on the wake that may have been meant for it.
//!
//! # The queue bit
//!
//! A waiter publishes its word, fences, reads the lock and sets *queue* if it is clear. Whoever finds
//! no waiter clears *queue*, fences, scans again and, if it now finds one, wakes it (which sets the
//! bit again). Both fences are `SeqCst`: at least one of the two sees the other's write.

mod wake;

pub use wake::{Sleeper, Wake};

pub(crate) use crate::admission::UPGRADE;
use crate::admission::{ALONE, Answer, Asker, Wants, is_queued};
use crate::engine::{Engine, Used};
use crate::error::{Error, Result};
use crate::lock::Deadlock;
use crate::lock::coarse::{Coarse, Took};
use crate::lock::deadlock::Search;
use crate::lock::engaged::{Engaged, is_engaged};
use crate::lock::{Grant, State, check_number};
use crate::object::{Name, OWN, Objects};
use crate::permit::Claim;
use crate::pool::{Mode, Pool, is_pooled};
use crate::region::{Region, header};
use crate::session::SessionId;
use crate::sync::fence;
use crate::table::{Entry as _, Found, LIVE, ROUNDS_MAX, phase};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

/// The longest a waiter goes without looking again, in nanoseconds.
pub const PROBE_NS: u64 = 50_000_000;
/// How long a free lock is kept for a head that does not take it, in nanoseconds.
pub const PATIENCE_NS: u64 = 200_000_000;

/// What there is no room for, in errors.
const WHAT: &str = "waiter";

const FREE: u64 = 0;
const CLAIMED: u64 = 1;
const WAITING: u64 = 2;
const PASSED: u64 = 3;

/// A wait in a lock's queue, or in those of several under one number.
#[derive(Debug)]
pub struct Ticket {
    places: Places,
    number: u64,
    wants: Wants,
    /// What its owner holds meanwhile.
    holds: Vec<Grant>,
}

/// A slot in one lock's queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    index: u32,
    word: u64,
    cell: u32,
}

/// The slots of one wait. The first is the one that is woken, for all.
#[derive(Debug, Default)]
struct Places {
    first: Option<Place>,
    more: Vec<Place>,
}

impl Places {
    fn push(&mut self, place: Place) {
        match self.first {
            None => self.first = Some(place),
            Some(_) => self.more.push(place),
        }
    }
}

impl Ticket {
    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        self.places.first.iter().chain(&self.places.more)
    }

    /// The slot whose signal wakes it; a ticket that was handed out has one.
    pub(crate) fn slot(&self) -> u32 {
        self.places.first.map_or(0, |first| first.index)
    }

    pub(crate) fn holds(&self) -> &[Grant] {
        &self.holds
    }
}

/// A wait as a scan of the queue found it.
#[derive(Clone, Copy)]
pub(crate) struct Waiter {
    index: u32,
    pub(crate) number: u64,
    until_ns: u64,
    looked_ns: u64,
    /// What it wants, as [`Wants::code`] says.
    pub(crate) wants: u32,
}

impl Waiter {
    /// Whether what it could have had since `free_since_ns` has lain for [`PATIENCE_NS`] without its looking.
    pub(crate) fn has_let_lie(&self, free_since_ns: u64, now_ns: u64) -> bool {
        let since_ns = self.looked_ns.max(free_since_ns);
        since_ns.saturating_add(PATIENCE_NS) <= now_ns
    }
}

/// A wait as a search for deadlocks sees it.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    pub(crate) slot: u32,
    pub(crate) word: u64,
    pub(crate) cell: u32,
    pub(crate) session: SessionId,
    pub(crate) number: u64,
    pub(crate) wants: u32,
    primary: u32,
    pub(crate) age: u64,
}

impl Wait {
    /// Whether it is served before those who came after it: it was not passed over.
    pub(crate) fn is_in_turn(&self) -> bool {
        self.word & 3 == WAITING
    }
}

/// The answer to a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Poll {
    /// The lock is the caller's; the wait is over and its slot free.
    Granted {
        /// The grant.
        grant: Grant,
        /// Another waiter who can have its share too; wake it.
        wake: Option<Wake>,
    },
    /// Not yet: look again when the signal rises, or at this region time (ns) at the latest.
    Waiting {
        /// Region time to look again at, in nanoseconds.
        look_again_ns: u64,
        /// Another waiter whose turn it seems to be; wake it.
        wake: Option<Wake>,
    },
    /// The lock's entry was reclaimed before the wait was seen. The slot is free; wait anew.
    Moved,
    /// The hold that was to be upgraded is no more. The slot is free.
    Lost,
    /// It would wait for itself for ever, and is the one to give up. The slot is free.
    Deadlock(Deadlock),
}

fn word_of(phase: u64, session: SessionId, cell: u32, generation: u64) -> u64 {
    phase | (session.bits() as u64) << 2 | u64::from(cell) << 20 | (generation & 0xfff) << 52
}

fn cell_of(word: u64) -> u32 {
    (word >> 20) as u32
}

fn session_of(word: u64) -> SessionId {
    SessionId::from_bits(word >> 2)
}

/// Frees every slot, generations kept: for a region from another boot, before anyone uses it.
#[cfg(all(not(loom), target_os = "linux"))]
pub(crate) fn clear_all(region: &Region) {
    for index in 0..region.caps().waiters {
        // Relaxed: published by the boot id's store.
        let slot = region.waiter_word(index);
        slot.store(slot.load(Relaxed) & !((1 << 52) - 1), Relaxed);
    }
}

/// Calls `visit` with the slot and the word of each wait for one of these cells, passed over or not, until
/// it returns false.
fn for_each(region: &Region, is_of: impl Fn(u32) -> bool, mut visit: impl FnMut(u32, u64) -> bool) {
    let high = region.word(header::WAITERS_HIGH).load(Acquire);
    for index in 0..high.min(region.caps().waiters.into()) as u32 {
        // Acquire: pairs with the publishing store, so that the record is complete.
        let word = region.waiter_word(index).load(Acquire);
        if word & WAITING != 0 && is_of(cell_of(word)) && !visit(index, word) {
            return;
        }
    }
}

/// Whether anyone who lives and has not given up waits for `cell`. One who was passed over doesn't
/// count: should the entry go, it finds out and waits anew.
pub(crate) fn is_awaited(
    region: &Region,
    cell: u32,
    now_ns: u64,
    is_alive: &mut dyn FnMut(SessionId) -> bool,
) -> bool {
    let mut is_awaited = false;
    let is_of = |other| other == cell;
    for_each(region, is_of, |index, word| {
        let until_ns = region.word(region.waiter_at(index) + 16).load(Relaxed);
        is_awaited = word & 3 == WAITING && until_ns > now_ns && is_alive(session_of(word));
        !is_awaited
    });
    is_awaited
}

impl Engine {
    /// Queues for a lock, until `until_ns` of region time. The caller then polls.
    pub fn enqueue(
        &self,
        name: &Name,
        by: SessionId,
        now_ns: u64,
        until_ns: u64,
    ) -> Result<Ticket> {
        let names = core::slice::from_ref(name);
        self.enqueue_for(names, Wants::Exclusive, by, now_ns, until_ns)
    }

    /// [`enqueue`](Self::enqueue) for whatever is wanted: several locks, or what one name says. One who is to
    /// be upgraded goes before all who wait, since they wait for it; [`Engine::try_upgrade`] must have said
    /// that nobody else is.
    pub fn enqueue_for(
        &self,
        names: &[Name],
        wants: Wants,
        by: SessionId,
        now_ns: u64,
        until_ns: u64,
    ) -> Result<Ticket> {
        check_number(names.len())?;
        let age = self.region.word(header::TICKETS).fetch_add(1, Relaxed);
        let number = match wants {
            // Before all.
            Wants::Upgrade(_) => 0,
            _ => age.saturating_add(1),
        };
        let mut ticket = Ticket {
            places: Places::default(),
            number,
            wants,
            holds: Vec::new(),
        };
        for name in names {
            match self.take_place(&ticket, age, name, by, now_ns, until_ns) {
                Ok(place) => ticket.places.push(place),
                Err(error) => {
                    self.leave(&ticket);
                    return Err(error);
                }
            }
        }
        self.shut_gates(wants);
        Ok(ticket)
    }

    /// Queues for one lock under the ticket's number.
    fn take_place(
        &self,
        ticket: &Ticket,
        age: u64,
        name: &Name,
        by: SessionId,
        now_ns: u64,
        until_ns: u64,
    ) -> Result<Place> {
        let (index, claimed) = self.claim_waiter(by)?;
        let record = self.region.waiter_at(index);
        let put = |offset, value| self.region.word(record + offset).store(value, Relaxed);
        let mut failed = Error::Damaged {
            what: "a lock never settles",
        };
        for _ in 0..ROUNDS_MAX {
            let found = match self.find_wanted(name, ticket.wants, by, now_ns) {
                Ok(found) => found,
                Err(error) => {
                    failed = error;
                    break;
                }
            };
            self.region.half(record + 4).store(0, Relaxed);
            put(8, ticket.number);
            put(16, until_ns);
            put(24, now_ns);
            put(32, ticket.wants.code().into());
            put(48, age);
            put(
                40,
                ticket
                    .places
                    .first
                    .map_or(0, |first| u64::from(first.index) + 1),
            );
            let word = word_of(WAITING, by, found.cell, claimed >> 52);
            // Release: the record comes before. Only this thread writes a claimed slot.
            self.region.waiter_word(index).store(word, Release);
            // Pairs with the fence in `hand_on`: we publish then read the lock, it clears *queue*
            // then scans.
            fence(SeqCst);
            let place = Place {
                index,
                word,
                cell: found.cell,
            };
            if self.set_queue(&place, name, ticket.wants, now_ns) {
                return Ok(place);
            }
            self.region.waiter_word(index).store(claimed, Release);
        }
        self.free_waiter(index, claimed);
        self.count_out_wait();
        Err(failed)
    }

    /// The word of one lock that is waited for, its queue bit set; `None` if the entry is gone.
    pub(crate) fn found_of_place(
        &self,
        place: &Place,
        name: &Name,
        wants: Wants,
        now_ns: u64,
    ) -> Option<Found> {
        let (cell, at) = (place.cell, self.lock_at(place.cell));
        for _ in 0..ROUNDS_MAX {
            let state = self.region.wide(at).load();
            if !self.is_entry(cell, name, wants, state) {
                return None;
            }
            if is_queued(state) {
                return Some(Found { cell, at, state });
            }
            if !self.set_queue(place, name, wants, now_ns) {
                return None;
            }
        }
        None
    }

    /// Whether a word that was read in `cell` is that of what is wanted.
    fn is_entry(&self, cell: u32, name: &Name, wants: Wants, state: u128) -> bool {
        if let Wants::Coarse(_) = wants {
            return phase(state) == LIVE;
        }
        let line = self.region.line(self.lock_at(cell));
        let object = self.object(wants.kind(), name);
        object.matches(&self.region, line, state)
    }

    /// Sets the lock's queue bit; `false` if its entry is gone.
    fn set_queue(&self, place: &Place, name: &Name, wants: Wants, now_ns: u64) -> bool {
        let line = self.region.line(self.lock_at(place.cell));
        for _ in 0..ROUNDS_MAX {
            let raw = line.state().load();
            if !self.is_entry(place.cell, name, wants, raw) {
                return false;
            }
            let after = if is_engaged(raw) {
                let engaged = Engaged::decode(raw);
                Engaged {
                    queue: true,
                    ..engaged
                }
                .encode()
            } else if is_pooled(raw) {
                let pool = Pool::decode(raw);
                Pool {
                    queue: true,
                    ..pool
                }
                .encode()
            } else {
                let state = State::decode(raw);
                // A lock found free counts as freed now: its head has `PATIENCE_NS` from here.
                let time_us = if state.is_idle() {
                    now_ns / 1_000
                } else {
                    state.time_us
                };
                State {
                    queue: true,
                    time_us,
                    ..state
                }
                .encode()
            };
            if line.state().compare_exchange(raw, after).is_ok() {
                return true;
            }
        }
        false
    }

    /// Shuts the gates of all partitions if the table is wanted. At each look: while one who waits is passed
    /// over, whoever finds a gate shut for nobody opens it.
    fn shut_gates(&self, wants: Wants) {
        if wants == Wants::Coarse(Coarse::Table) {
            for found in self.words_of(Coarse::Table) {
                self.shut_gate(found.cell);
            }
        }
    }

    fn claim_waiter(&self, by: SessionId) -> Result<(u32, u64)> {
        let cap = self.region.caps().waiters;
        if self.has_share() {
            Used::add(&self.used.waits, 1, self.share_of(cap), WHAT)?;
        }
        for recover in [false, true] {
            for index in 0..cap {
                let slot = self.region.waiter_word(index);
                let mut word = slot.load(Acquire);
                if recover && word & 3 != FREE {
                    self.drop_if_dead(index, word);
                    word = slot.load(Acquire);
                }
                if word & 3 != FREE {
                    continue;
                }
                let claimed = word_of(CLAIMED, by, 0, (word >> 52) + 1);
                if slot
                    .compare_exchange(word, claimed, AcqRel, Relaxed)
                    .is_ok()
                {
                    // Before the wait is published: whoever scans after that looks far enough.
                    self.region
                        .word(header::WAITERS_HIGH)
                        .fetch_max(u64::from(index) + 1, AcqRel);
                    return Ok((index, claimed));
                }
            }
        }
        self.count_out_wait();
        Err(Error::Full {
            what: WHAT,
            cap: cap.into(),
        })
    }

    fn free_waiter(&self, index: u32, word: u64) -> bool {
        let free = word & !((1 << 52) - 1);
        self.region
            .waiter_word(index)
            .compare_exchange(word, free, AcqRel, Relaxed)
            .is_ok()
    }

    /// Ends the caller's own wait, whether it was passed over or not.
    pub(crate) fn leave(&self, ticket: &Ticket) {
        self.unmark_holds(ticket);
        for place in ticket.places() {
            // Only its own waiter takes a wait back from passed over, so one of the two succeeds, unless
            // the session is taken for dead.
            let _ = self.free_waiter(place.index, place.word)
                || self.free_waiter(place.index, place.word | PASSED);
            self.count_out_wait();
        }
    }

    fn count_out_wait(&self) {
        if self.has_share() {
            self.used.waits.fetch_sub(1, Relaxed);
        }
    }

    /// Takes the turns of all waits that let what was found lie for [`PATIENCE_NS`].
    pub(crate) fn pass_over(&self, found: &Found, now_ns: u64) {
        let since_ns = self.free_since_ns(found);
        // The next one's time counts from now: said before the others are passed over, so that nobody
        // takes the time before for the next one's. Who dies in between costs those who wait the same
        // time once more.
        let is_first = if is_pooled(found.state) {
            let since = self.region.word(found.at + OWN);
            since
                .compare_exchange(since_ns, now_ns, Relaxed, Relaxed)
                .is_ok()
        } else {
            let freed = State::decode(found.state).freed(now_ns / 1_000);
            let word = self.region.wide(found.at);
            word.compare_exchange(found.state, freed.encode()).is_ok()
        };
        if !is_first {
            return;
        }
        let is_of = |cell| self.overlap(cell, found.cell);
        for_each(&self.region, is_of, |index, word| {
            if word & 3 == WAITING && self.waiter_at(index).has_let_lie(since_ns, now_ns) {
                // Losing means that it was served, or left.
                let slot = self.region.waiter_word(index);
                let _ = slot.compare_exchange(word, word | PASSED, AcqRel, Relaxed);
            }
            true
        });
    }

    fn waiter_at(&self, index: u32) -> Waiter {
        let record = self.region.waiter_at(index);
        Waiter {
            index,
            number: self.region.word(record + 8).load(Relaxed),
            until_ns: self.region.word(record + 16).load(Relaxed),
            looked_ns: self.region.word(record + 24).load(Relaxed),
            wants: self.region.word(record + 32).load(Relaxed) as u32,
        }
    }

    /// Says that the waiter looks, and gives it its place back, should it have been passed over.
    pub(crate) fn look(&self, ticket: &Ticket, now_ns: u64) {
        for place in ticket.places() {
            let record = self.region.waiter_at(place.index);
            self.region.word(record + 24).store(now_ns, Relaxed);
            let slot = self.region.waiter_word(place.index);
            let passed = place.word | PASSED;
            // Relaxed: passed over right after, it has its place back at the next look.
            if slot.load(Relaxed) == passed
                && slot
                    .compare_exchange(passed, place.word, AcqRel, Relaxed)
                    .is_ok()
            {
                // As in `enqueue`: it waits, then reads the lock.
                fence(SeqCst);
            }
        }
    }

    /// Ends the waits of all sessions that had this line.
    pub(crate) fn end_waits_of(&self, line: u16) {
        for index in 0..self.region.caps().waiters {
            let word = self.region.waiter_word(index).load(Acquire);
            if word & 3 != FREE && session_of(word).index() == line {
                self.free_waiter(index, word);
            }
        }
    }

    /// Says what the owner of a wait holds meanwhile, so that a deadlock is found in which it waits for itself.
    /// From then on each poll that ends in waiting looks for one.
    pub fn set_holds(&self, ticket: &mut Ticket, holds: Vec<Grant>) {
        ticket.holds = holds;
    }

    /// What a wait that goes on comes to: a deadlock that it is part of, if its owner holds something.
    fn go_on(&self, ticket: &Ticket, waiting: Poll, now_ns: u64) -> Poll {
        if ticket.holds.is_empty() {
            return waiting;
        }
        self.mark_holds(ticket);
        match (self.find_deadlock(ticket, now_ns), waiting) {
            (Search::Found(deadlock), _) => {
                self.leave(ticket);
                if let Wants::Upgrade(grant) = ticket.wants {
                    // Whom that lets in finds out at its next look.
                    let _ = self.end_upgrade(&grant, now_ns);
                }
                Poll::Deadlock(deadlock)
            }
            (
                Search::Other(slot),
                Poll::Waiting {
                    look_again_ns,
                    wake: None,
                },
            ) => Poll::Waiting {
                look_again_ns,
                wake: Some(self.raise(slot)),
            },
            (_, waiting) => waiting,
        }
    }

    /// The wait in a slot, as it is now; `None` if there is none, or it has given up, or is of a dead session.
    pub(crate) fn wait_in(&self, slot: u32, now_ns: u64) -> Option<Wait> {
        let slot = slot.min(self.region.caps().waiters - 1);
        // Acquire: pairs with the publishing store, so that the record is complete.
        let word = self.region.waiter_word(slot).load(Acquire);
        let session = session_of(word);
        if word & WAITING == 0 || !self.is_alive(session) {
            return None;
        }
        let record = self.region.waiter_at(slot);
        let get = |offset| self.region.word(record + offset).load(Relaxed);
        (get(16) > now_ns).then(|| Wait {
            slot,
            word,
            cell: cell_of(word),
            session,
            number: get(8),
            wants: get(32) as u32,
            primary: get(40)
                .checked_sub(1)
                .map_or(slot, |primary| primary as u32),
            age: get(48),
        })
    }

    /// All waits, each slot of those for several locks.
    pub(crate) fn waits(&self, now_ns: u64) -> impl Iterator<Item = Wait> {
        let high = self.region.word(header::WAITERS_HIGH).load(Acquire);
        let slots = 0..high.min(self.region.caps().waiters.into()) as u32;
        slots.filter_map(move |slot| self.wait_in(slot, now_ns))
    }

    /// The first slot of the wait that a slot is of.
    pub(crate) fn primary_of(&self, wait: &Wait) -> Option<Wait> {
        if wait.primary == wait.slot {
            return Some(*wait);
        }
        self.wait_in(wait.primary, 0)
    }

    /// All slots of a wait.
    pub(crate) fn places_of(&self, wait: &Wait) -> Vec<Wait> {
        let slot = wait.slot;
        let is_its = |other: &Wait| other.primary == slot && other.slot != slot;
        let mut places = vec![*wait];
        if wait.wants == ALONE {
            places.extend(self.waits(0).filter(is_its));
        }
        places
    }

    pub(crate) fn wait_of(&self, ticket: &Ticket) -> Option<Wait> {
        self.wait_in(ticket.slot(), 0)
    }

    /// Whether a wait goes on as it was seen, be it passed over, if that is all the same.
    pub(crate) fn is_waiting_still(&self, wait: &Wait, may_be_passed: bool) -> bool {
        let word = self.region.waiter_word(wait.slot).load(Acquire);
        word == wait.word || (may_be_passed && word | PASSED == wait.word | PASSED)
    }

    /// The first slot from `from` on that waits for one of these cells.
    fn next_of(&self, is_of: impl Fn(u32) -> bool, from: u32) -> Option<u32> {
        let mut found = None;
        for_each(&self.region, is_of, |index, _| {
            if index >= from {
                found = Some(index);
            }
            found.is_none()
        });
        found
    }

    fn drop_if_dead(&self, index: u32, word: u64) -> bool {
        !self.sessions.is_alive(&self.region, session_of(word)) && self.free_waiter(index, word)
    }

    /// The cell that the wait in a slot waits for, 0 while it is not published; `None` if the slot is
    /// free.
    pub(crate) fn waits_for(&self, index: u32) -> Option<u32> {
        let word = self.region.waiter_word(index).load(Acquire);
        (word & 3 != FREE).then_some((word >> 20) as u32)
    }

    /// How many wait for `cell`, and how many more are of dead sessions; a system call each.
    pub(crate) fn count_waiters(&self, cell: u32) -> (u32, u32) {
        let (mut alive, mut dead) = (0, 0);
        for_each(
            &self.region,
            |other| other == cell,
            |_, word| {
                if self.sessions.is_alive(&self.region, session_of(word)) {
                    alive += 1;
                } else {
                    dead += 1;
                }
                true
            },
        );
        (alive, dead)
    }

    /// The lowest ticket among the waits for these cells that are wanted, and have neither given up nor been
    /// passed over; with `probe` also not of a dead session, for the price of a system call each.
    pub(crate) fn first_of(
        &self,
        is_of: impl Fn(u32) -> bool,
        now_ns: u64,
        probe: bool,
        is_wanted: impl Fn(&Waiter) -> bool,
    ) -> Option<Waiter> {
        let mut first: Option<Waiter> = None;
        for_each(&self.region, is_of, |index, word| {
            let waiter = self.waiter_at(index);
            let is_first = word & 3 == WAITING
                && waiter.until_ns > now_ns
                && is_wanted(&waiter)
                && first.is_none_or(|first| waiter.number < first.number);
            // The dead who were passed over are in nobody's way, but it is here that they are met.
            if (is_first || word & 3 == PASSED) && probe && self.drop_if_dead(index, word) {
                return true;
            }
            if is_first {
                first = Some(waiter);
            }
            true
        });
        first
    }

    /// After there came to be room, by an exchange that left the word `raw`: finds whose turn it is, or
    /// clears the queue bit when nobody waits.
    pub(crate) fn hand_on(&self, cell: u32, raw: u128, now_ns: u64) -> Option<Wake> {
        if !is_queued(raw) {
            return None;
        }
        // Pairs with the fence in `enqueue`: we freed the lock, then scan.
        fence(SeqCst);
        // Those who wait for what is above as well: a lock that is free may be all that they lack.
        let is_of = |other| other == cell || self.is_above(other, cell);
        if let Some(mut first) = self.first_of(is_of, now_ns, false, |_| true) {
            if first.wants == UPGRADE && !self.is_room_for(cell, raw, UPGRADE) {
                let is_other = |waiter: &Waiter| waiter.wants != UPGRADE;
                first = self.first_of(is_of, now_ns, false, is_other)?;
            }
            return self
                .is_room_for(cell, raw, first.wants)
                .then(|| self.raise(first.index));
        }
        let word = self.lock_word(cell);
        let cleared = if is_engaged(raw) {
            let engaged = Engaged::decode(raw);
            Engaged {
                queue: false,
                ..engaged
            }
            .encode()
        } else if is_pooled(raw) {
            let pool = Pool::decode(raw);
            Pool {
                queue: false,
                ..pool
            }
            .encode()
        } else {
            State {
                queue: false,
                time_us: 0,
                ..State::decode(raw)
            }
            .encode()
        };
        if word.compare_exchange(raw, cleared).is_ok() {
            // Pairs with the fence in `enqueue`: we cleared *queue*, then scan again.
            fence(SeqCst);
            if let Some(first) = self.first_of(is_of, now_ns, false, |_| true) {
                return Some(self.raise(first.index));
            }
        }
        None
    }

    /// Whether one who `wants` what its record says can have it by the word `raw`, for all it says.
    fn is_room_for(&self, cell: u32, raw: u128, wants: u32) -> bool {
        if !is_pooled(raw) {
            return is_engaged(raw) || State::decode(raw).holder.is_none();
        }
        let pool = Pool::decode(raw);
        match wants {
            ALONE => pool.used == 0,
            // Not if its hold is gone, which it finds out by itself.
            UPGRADE => pool.used == 1 && pool.mode() != Mode::Shared,
            amount if Objects::is_lock(&self.region, self.objects.at(cell)) => {
                amount == 1 && pool.mode() == Mode::Shared
            }
            amount => pool.used.saturating_add(amount) <= pool.terms,
        }
    }

    /// Hands on to whoever can have the word as it is now.
    pub(crate) fn hand_on_now(&self, cell: u32, now_ns: u64) -> Option<Wake> {
        let raw = self.lock_word(cell).load();
        let is_plain = !is_pooled(raw) && !is_engaged(raw);
        if phase(raw) != LIVE || (is_plain && State::decode(raw).holder.is_some()) {
            return None;
        }
        self.hand_on(cell, raw, now_ns)
    }

    /// Takes the lock if it is the waiter's turn. `probe`: also look for the dead, with system calls; wanted at
    /// the first poll and whenever `look_again_ns` has come.
    pub fn poll(
        &self,
        ticket: &Ticket,
        name: &Name,
        by: SessionId,
        now_ns: u64,
        lease_ns: u64,
        probe: bool,
    ) -> Result<Poll> {
        let names = core::slice::from_ref(name);
        self.poll_for(ticket, names, by, now_ns, lease_ns, probe)
    }

    /// [`poll`](Self::poll) for whatever was queued for by these names.
    pub fn poll_for(
        &self,
        ticket: &Ticket,
        names: &[Name],
        by: SessionId,
        now_ns: u64,
        lease_ns: u64,
        probe: bool,
    ) -> Result<Poll> {
        let asker = Asker {
            by,
            number: Some(ticket.number),
            now_ns,
            lease_ns,
            probe,
        };
        self.look(ticket, now_ns);
        let poll = match (ticket.wants, names) {
            (Wants::Several, names) => self.poll_all(ticket, names, &asker)?,
            (_, [name, ..]) => {
                let mut claim = None;
                let poll = self.poll_by(ticket, name, &asker, &mut claim);
                self.give_back_claim(&mut claim);
                poll?
            }
            (_, []) => Poll::Moved,
        };
        match poll {
            waiting @ Poll::Waiting { .. } => Ok(self.go_on(ticket, waiting, now_ns)),
            poll => Ok(poll),
        }
    }

    fn poll_by(
        &self,
        ticket: &Ticket,
        name: &Name,
        asker: &Asker,
        claim: &mut Option<Claim>,
    ) -> Result<Poll> {
        let Asker { now_ns, probe, .. } = *asker;
        let mut has_passed = false;
        self.shut_gates(ticket.wants);
        for _ in 0..ROUNDS_MAX {
            let place = ticket.places.first;
            let found =
                place.and_then(|place| self.found_of_place(&place, name, ticket.wants, now_ns));
            let Some(found) = found else {
                self.leave(ticket);
                return Ok(Poll::Moved);
            };
            if let Wants::Permits { capacity, .. } = ticket.wants
                && Pool::decode(found.state).terms != capacity
            {
                // Passed over, its semaphore was made anew: whoever waits for it anew is told by whom.
                self.leave(ticket);
                return Ok(Poll::Moved);
            }
            let probe_ns = now_ns.saturating_add(PROBE_NS);
            match self.answer(&found, ticket.wants, asker) {
                Answer::Yes => {
                    match self.let_in(&found, ticket.wants, asker, claim)? {
                        Took::Granted(grant) => {
                            *claim = None;
                            self.leave(ticket);
                            // Who shares may not be the only one whose turn it is.
                            let wake = match ticket.wants {
                                Wants::Shared | Wants::Permits { .. } => {
                                    self.hand_on_now(found.cell, now_ns)
                                }
                                _ => None,
                            };
                            return Ok(Poll::Granted { grant, wake });
                        }
                        Took::Again => {}
                        Took::Held { look_again_ns } => {
                            return Ok(Poll::Waiting {
                                look_again_ns: look_again_ns.min(probe_ns),
                                wake: None,
                            });
                        }
                    }
                }
                Answer::Again => {}
                Answer::Passed => has_passed = true,
                Answer::No { look_again_ns } => {
                    return Ok(Poll::Waiting {
                        look_again_ns: look_again_ns.min(probe_ns),
                        wake: None,
                    });
                }
                Answer::Behind(ahead) => {
                    // It is another's turn. On a probe, its wake may have been lost with whoever sent it.
                    let wake = (probe || has_passed).then(|| self.raise(ahead.index));
                    return Ok(Poll::Waiting {
                        look_again_ns: probe_ns,
                        wake,
                    });
                }
                // Nobody else could begin to wait for that while this one does, but after its hold was lost.
                Answer::Lost | Answer::Conflict => {
                    self.leave(ticket);
                    return Ok(Poll::Lost);
                }
            }
        }
        Err(Error::Damaged {
            what: "a lock never settles",
        })
    }

    /// Leaves the queue. If the lock is free, its wake may have been meant for this waiter: whose turn it is
    /// now is given to `wake`.
    #[expect(clippy::needless_pass_by_value, reason = "a ticket is left once")]
    pub fn cancel(&self, ticket: Ticket, now_ns: u64, mut wake: impl FnMut(Wake)) {
        self.leave(&ticket);
        if let Wants::Upgrade(grant) = ticket.wants {
            self.end_upgrade(&grant, now_ns).map(&mut wake);
        }
        // We left, then read the lock: whoever freed it before saw us, whoever frees it after does not.
        fence(SeqCst);
        for place in ticket.places() {
            self.hand_on_now(place.cell, now_ns).map(&mut wake);
            // It kept out those who came after it for what lies beneath.
            if self.coarse_of(place.cell).is_some() {
                self.wake_beneath(place.cell, 0).map(&mut wake);
            }
        }
    }
}
