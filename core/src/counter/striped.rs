//! Striped counters: one number in several words on lines of their own, so that threads add without taking a
//! line from one another.
//!
//! The counter's own word says how its number is kept, for everyone who comes to it; the bits are in
//! [`super::state`]. Stripes are objects of the counter's name. They are added to only in the *epoch* in which they
//! were opened, and only while the counter is open in it or being closed:
//!
//! ```text
//!              striped()                opening                  whoever needs the whole
//!  PLAIN(n) ─────────────▶ CLOSED(e, n) ───────▶ OPEN(e, n) ─────────────────────────────▶ SEALING(e, n)
//!                              ▲  │ ▲              each stripe: open(e, 0), then added to        │
//!                              │  └─┘ as if plain  by one exchange at a time                     │
//!                              │                                                                 │
//!                              └───── CLOSED(e+1, n + stripes) ◀── every stripe: sealed(e, v) ◀──┘
//! ```
//!
//! 1. *Sealing* a stripe is an exchange that leaves it closed in the epoch with what was added. One that was not
//!    opened in the epoch is sealed too, so that nobody opens it late.
//! 2. Once all are sealed, none changes any more in this epoch, so whoever adds them up has the same whole. One
//!    exchange of the counter's word ends the epoch; from then on the stripes count for nothing.
//! 3. What needs the whole (a sum that is returned, a bound that is near, a comparison) is then decided on the
//!    counter's word alone, by one exchange, as on a plain counter.
//!
//! *Dead* between any two: whoever comes by seals the rest and ends the epoch; what has been added to a stripe that
//! is not sealed yet counts, and may be added to. *Stopped*: epochs only rise, in the counter and in each stripe, so
//! an exchange prepared in one that is over fails: the word that it expects is gone for good.
//!
//! Room within bounds is handed out at the opening: how far each stripe may go, so that the whole keeps its bounds
//! whatever they do. Where that is not enough for an addition, the counter is closed, and it is decided on the whole:
//! nothing is refused while there is room anywhere.
//!
//! A counter that was striped once is never reclaimed, and neither are stripes: their epochs must not begin anew.

use super::state::{Mode, STRIPES, State, Stripe, is_spread, number, with_number};
use super::{CounterRef, EVERYTHING, check_bounds};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::object::{Kind, Object};
#[cfg(all(not(loom), target_os = "linux"))]
use crate::region::Region;
use crate::session::SessionId;
use crate::sync::Wide;
use crate::table::{Found, ROUNDS_MAX};
use core::ops::RangeInclusive;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

/// A striped counter: where its words are. They stay where they are.
pub struct StripedRef {
    counter: CounterRef,
    /// Byte offset of the counter's state word.
    at: usize,
    /// Byte offsets of the stripes' state words.
    stripes: [usize; STRIPES],
    /// Additions to the counter's own word since it was last opened from here. Of this process.
    closed_additions: AtomicU32,
}

/// Additions to the counter's own word after which it is opened: so many make up for the closing.
/// A model has no time for so many.
const CLOSED_ADDITIONS: u32 = if cfg!(loom) { 1 } else { 16 };

/// How often a look at all the words that finds them changed looks again before it closes the counter.
const LOOKS: u32 = 3;

/// Closes a stripe, in a region that nobody uses and whose words may be of different times. If it is ahead of its
/// counter it counts for nothing from then on, and is added to no more.
#[cfg(all(not(loom), target_os = "linux"))]
pub(crate) fn close_stripe(region: &Region, at: usize, state: u128) {
    let closed = Stripe {
        is_open: false,
        ..Stripe::decode(state)
    };
    // It can only fail if something scribbles.
    let _ = region.wide(at).compare_exchange(state, closed.encode());
}

impl StripedRef {
    /// The counter, for all that needs the whole.
    pub fn counter(&self) -> &CounterRef {
        &self.counter
    }

    fn is_to_open(&self) -> bool {
        // Relaxed: counts, and orders nothing.
        self.closed_additions.load(Relaxed) >= CLOSED_ADDITIONS
    }
}

impl Clone for StripedRef {
    fn clone(&self) -> Self {
        Self {
            counter: self.counter.clone(),
            closed_additions: AtomicU32::new(0),
            ..*self
        }
    }
}

impl Engine {
    fn stripe<'a>(&'a self, counter: &'a CounterRef, stripe: usize) -> Object<'a> {
        Object {
            part: stripe as u8,
            ..self.object(Kind::Stripe, &counter.name)
        }
    }

    /// Makes the counter a striped one, for everyone, unless it is. Takes the room of nine objects for good; where
    /// there is less, it may keep what it got, for the next one who asks.
    pub fn counter_striped(
        &self,
        counter: &CounterRef,
        by: SessionId,
        now_ns: u64,
    ) -> Result<StripedRef> {
        let mut stripes = [0; STRIPES];
        for (index, at) in stripes.iter_mut().enumerate() {
            let object = self.stripe(counter, index);
            *at = match self.find_object(&object) {
                Some(found) => found.at,
                None => self.insert_object(&object, by, now_ns)?.at,
            };
        }
        let object = self.object(Kind::Counter, &counter.name);
        for _ in 0..ROUNDS_MAX {
            let found = match self.find_counter(counter, &object) {
                Some(found) => found,
                None => self.insert_object(&object, by, now_ns)?,
            };
            let state = State::decode(found.state);
            let epoch = |at: &usize| Stripe::decode(self.region.wide(*at).load()).epoch;
            let latest = stripes.iter().map(epoch).max().unwrap_or(0);
            // Nobody opens or seals the stripes of a plain or closed counter: these are their epochs for as long
            // as it is that. A closed one is past them, unless the words are of different times, after the machine
            // went down.
            let is_new = state.mode == Mode::Plain;
            if is_new || (state.mode == Mode::Closed && latest >= state.epoch) {
                let closed = state.closed(latest, state.number).encode();
                let word = self.region.wide(found.at);
                if word.compare_exchange(found.state, closed).is_err() {
                    continue;
                }
            } else if !found.is_unchanged(&self.region) {
                continue;
            }
            return Ok(StripedRef {
                counter: counter.clone(),
                at: found.at,
                stripes,
                closed_additions: AtomicU32::new(0),
            });
        }
        Err(Error::Damaged {
            what: "a counter never settles",
        })
    }

    /// Adds `delta`, by way of stripe number `lane`, which is brought into range; the sum is not known then. One
    /// load and one exchange on a line that no other lane writes.
    ///
    /// # Errors
    ///
    /// [`Error::CounterOverflow`] for a sum that is no 64-bit number, which changes nothing.
    pub fn striped_add(&self, striped: &StripedRef, lane: usize, delta: i64) -> Result<()> {
        if self.striped_add_known(striped, lane, delta) {
            return Ok(());
        }
        self.add_to(striped, lane, delta, &EVERYTHING)?
            .map_err(|number| striped.counter.overflow(number, delta))
    }

    /// The common case of [`striped_add`](Self::striped_add) alone: to a stripe that is open and has room. False
    /// says only that this was not the case.
    #[inline(always)]
    pub fn striped_add_known(&self, striped: &StripedRef, lane: usize, delta: i64) -> bool {
        let word = self.stripe_word(striped, lane);
        let state = word.load_in_halves();
        // The epoch goes on at least until the stripe is sealed, which would make this fail.
        Stripe::added(state, delta).is_some_and(|after| word.compare_exchange(state, after).is_ok())
    }

    /// Adds `delta` if the sum lies within `bounds`; else nothing changes, and the number is returned as `Err`.
    ///
    /// # Errors
    ///
    /// [`Error::NoBounds`] if the lower bound is above the upper one.
    pub fn striped_add_within(
        &self,
        striped: &StripedRef,
        lane: usize,
        delta: i64,
        bounds: &RangeInclusive<i64>,
    ) -> Result<Result<(), i64>> {
        check_bounds(bounds)?;
        self.add_to(striped, lane, delta, bounds)
    }

    #[inline(always)]
    fn stripe_word(&self, striped: &StripedRef, lane: usize) -> &Wide {
        self.region.wide(striped.stripes[lane % STRIPES])
    }

    fn add_to(
        &self,
        striped: &StripedRef,
        lane: usize,
        delta: i64,
        bounds: &RangeInclusive<i64>,
    ) -> Result<Result<(), i64>> {
        let word = self.region.wide(striped.at);
        let stripe = self.stripe_word(striped, lane);
        for _ in 0..ROUNDS_MAX {
            let seen = word.load();
            let state = State::decode(seen);
            if is_spread(seen) {
                // In this order: a stripe open in the counter's epoch means that the counter is as it was seen for
                // as long as the stripe is.
                let seen_stripe = stripe.load();
                let epoch = Stripe::decode(seen_stripe).epoch;
                if state.mode == Mode::Open && epoch < state.epoch {
                    let fresh = state.fresh_stripe().encode();
                    let _ = stripe.compare_exchange(seen_stripe, fresh);
                    continue;
                }
                let is_safe = epoch == state.epoch && state.is_within(bounds);
                if let Some(after) = Stripe::added(seen_stripe, delta).filter(|_| is_safe) {
                    if stripe.compare_exchange(seen_stripe, after).is_ok() {
                        return Ok(Ok(()));
                    }
                    continue;
                }
                self.gather(&striped.counter, striped.at, seen);
                continue;
            }
            let sum = state.number.checked_add(delta);
            let Some(sum) = sum.filter(|sum| bounds.contains(sum)) else {
                return Ok(Err(state.number));
            };
            if striped.is_to_open()
                && let Some(opened) = state.opened(bounds, delta)
            {
                striped.closed_additions.store(0, Relaxed);
                let _ = word.compare_exchange(seen, opened.encode());
                continue;
            }
            match word.compare_exchange(seen, with_number(seen, sum)) {
                Ok(()) => {
                    striped.closed_additions.fetch_add(1, Relaxed);
                    return Ok(Ok(()));
                }
                // Others are at it: what stripes are for.
                Err(_) => striped.closed_additions.store(CLOSED_ADDITIONS, Relaxed),
            }
        }
        Err(Error::Damaged {
            what: "a striped counter never settles",
        })
    }

    /// Takes a step towards having all of a counter's number in its word, which is at `at` and was `seen`.
    #[cold]
    pub(super) fn gather(&self, counter: &CounterRef, at: usize, seen: u128) {
        let word = self.region.wide(at);
        let state = State::decode(seen);
        if state.mode == Mode::Open {
            let _ = word.compare_exchange(seen, state.sealing().encode());
            return;
        }
        let (mut whole, mut latest) = (i128::from(state.number), state.epoch);
        for stripe in self.stripes_of(counter) {
            let Some(sealed) = self.seal(stripe, state.epoch) else {
                return;
            };
            // One that is ahead says that this epoch is over, and the exchange below fails; or the words are of
            // different times, after the machine went down, and then it counts for nothing.
            whole += i128::from(sealed.number_in(state.epoch));
            latest = latest.max(sealed.epoch);
        }
        // It fits: it was opened no wider than that.
        let whole = whole.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let _ = word.compare_exchange(seen, state.closed(latest, whole).encode());
    }

    /// Closes a stripe in `epoch`, unless it is ahead: what it is then, or `None` if others add to it all the time,
    /// which they can as often as there are changes left.
    fn seal(&self, stripe: Found, epoch: u64) -> Option<Stripe> {
        let word = self.region.wide(stripe.at);
        let mut seen = stripe.state;
        for _ in 0..ROUNDS_MAX {
            let stripe = Stripe::decode(seen);
            if stripe.epoch > epoch || (stripe.epoch == epoch && !stripe.is_open) {
                return Some(stripe);
            }
            let sealed = stripe.sealed(epoch);
            match word.compare_exchange(seen, sealed.encode()) {
                Ok(()) => return Some(sealed),
                Err(found) => seen = found,
            }
        }
        None
    }

    fn stripes_of<'a>(&'a self, counter: &'a CounterRef) -> impl Iterator<Item = Found> + 'a {
        (0..STRIPES).filter_map(|index| self.find_object(&self.stripe(counter, index)))
    }

    /// The number of a counter whose word was `seen`, if it and its stripes stay what they are for long enough.
    pub(super) fn spread_number(&self, counter: &CounterRef, at: usize, seen: u128) -> Option<i64> {
        let state = State::decode(seen);
        let stripes: Vec<Found> = self.stripes_of(counter).collect();
        let mut before: Vec<u128> = stripes.iter().map(|stripe| stripe.state).collect();
        for _ in 0..LOOKS {
            let now: Vec<u128> = stripes
                .iter()
                .map(|stripe| self.region.wide(stripe.at).load())
                .collect();
            if now == before {
                // No word comes back, so between the two looks all were what was seen.
                let numbers = now
                    .iter()
                    .map(|word| i128::from(Stripe::decode(*word).number_in(state.epoch)));
                let whole = i128::from(state.number) + numbers.sum::<i128>();
                let is_unchanged = self.region.wide(at).load() == seen;
                return i64::try_from(whole).ok().filter(|_| is_unchanged);
            }
            before = now;
        }
        None
    }

    /// The number in a counter's word that was just read, if it is all there.
    pub(super) fn whole(&self, counter: &CounterRef, at: usize, seen: u128) -> Option<i64> {
        if !is_spread(seen) {
            return Some(number(seen));
        }
        let whole = self.spread_number(counter, at, seen);
        if whole.is_none() {
            self.gather(counter, at, seen);
        }
        whole
    }
}
