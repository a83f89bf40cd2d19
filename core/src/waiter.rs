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
//! The head of a lock's queue is its lowest ticket among those waiting. Only the head takes a lock that is free
//! with a queue, by its own exchange on the lock's word; one who wants it in shared use also when only others who
//! do are before it. Who may is said in [`crate::admission`]. Whoever frees the lock raises the head's signal, and
//! who got a share of it, that of the next. All else is a re-probe: each waiter looks again at least every
//! [`PROBE_NS`], drops waits of dead sessions, frees the lock of a dead or expired holder, and passes a lost wake
//! on. So:
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

mod poll;
mod queue;
mod turn;
mod wait;
mod wake;

pub use poll::Poll;
pub(crate) use wait::Wait;
pub use wake::{Sleeper, Wake};

use crate::admission::Wants;
use crate::engine::{Engine, Used};
use crate::error::{Error, Result};
use crate::lock::Grant;
use crate::region::{Region, header};
use crate::session::SessionId;
use crate::sync::fence;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};

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
    pub fn slot(&self) -> u32 {
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

/// How many slots are taken, by the dead too.
pub(crate) fn taken_count(region: &Region) -> u64 {
    let high = region.word(header::WAITERS_HIGH).load(Acquire);
    let slots = 0..high.min(region.caps().waiters.into()) as u32;
    // Relaxed: for counting.
    let is_taken = |slot: &u32| region.waiter_word(*slot).load(Relaxed) & 3 != FREE;
    slots.filter(is_taken).count() as u64
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
                // Before it is claimed: whoever scans for waits, or for what the dead left, looks far enough.
                self.region
                    .word(header::WAITERS_HIGH)
                    .fetch_max(u64::from(index) + 1, AcqRel);
                if slot
                    .compare_exchange(word, claimed, AcqRel, Relaxed)
                    .is_ok()
                {
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
}
