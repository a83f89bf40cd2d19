//! Counters: a signed 64-bit number by name, that is added to, swapped and compared in one exchange.
//!
//! In a space a counter is an object: its number is the value of its state word (see [`crate::object`]).
//! One that is at 0 is no different from one that nobody used, so it may be reclaimed, and one that is
//! not there is at 0.
//!
//! This file owns counters in one word, and everything that needs the whole of one; the parts of a striped one are
//! in [`striped`].
//!
//! # The word may come back
//!
//! A word keeps its serial for as long as the counter has its cell, so a counter that returns to a number has the
//! word that it had then. Whoever prepared an exchange before meets the same counter at the same number, and
//! does what he would have done at once: nothing of a counter is decided by anything else. Reclaiming the cell
//! raises the serial, so no exchange reaches the next entry. Why changes are not numbered is in
//! docs/decisions/0006.

mod state;
mod striped;

pub use striped::StripedRef;
#[cfg(all(not(loom), target_os = "linux"))]
pub(crate) use striped::close_stripe;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::object::{Kind, Name, Object, Objects};
use crate::readable::Readable;
use crate::region::memory::Line;
use crate::session::SessionId;
use crate::table::{Entry as _, Found, Idle, LIVE, ROUNDS_MAX, phase};
use core::ops::RangeInclusive;
use core::sync::atomic::Ordering::Relaxed;
use state::{Mode, State, is_spread, number, with_number};
// Of this process, and only a hint.
use core::sync::atomic::AtomicU32;

/// A counter's name, and in which cell it was last found.
pub struct CounterRef {
    name: Name,
    /// Whatever it says, the cell is looked at before it is taken for the counter's.
    cell: AtomicU32,
}

impl Clone for CounterRef {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            cell: AtomicU32::new(self.cell.load(Relaxed)),
        }
    }
}

impl CounterRef {
    /// The counter's name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    #[cold]
    fn overflow(&self, value: i64, delta: i64) -> Error {
        Error::CounterOverflow {
            counter: Readable(&self.name.to_vec()).to_string(),
            value,
            delta,
        }
    }
}

/// The answer to an addition within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Added {
    /// It was added, and this is the sum.
    To(i64),
    /// The sum would lie outside the bounds: nothing was changed, and this is the number.
    Refused(i64),
}

/// No cell is known.
const NOWHERE: u32 = u32::MAX;

/// The bounds of an addition that names none.
const EVERYTHING: RangeInclusive<i64> = i64::MIN..=i64::MAX;

/// When the counter with this state is no different from a new one.
pub(crate) fn idle(live: u128) -> Idle {
    match State::decode(live) {
        // Its epochs must not begin anew.
        State {
            mode: Mode::Closed | Mode::Open | Mode::Sealing,
            ..
        } => Idle::Never,
        State { number: 0, .. } => Idle::Now,
        State { .. } => Idle::Unforeseen,
    }
}

fn check_bounds(bounds: &RangeInclusive<i64>) -> Result<()> {
    let (min, max) = (*bounds.start(), *bounds.end());
    if min > max {
        return Err(Error::NoBounds { min, max });
    }
    Ok(())
}

impl Engine {
    /// Prepares a counter's name. Names of at most 24 bytes allocate nothing.
    #[inline(always)]
    pub fn counter(&self, name: &[u8]) -> Result<CounterRef> {
        Ok(CounterRef {
            name: Name::new(&self.region, "counter name", name)?,
            cell: AtomicU32::new(NOWHERE),
        })
    }

    /// Adds `delta`, and returns the sum. One load and one exchange on one line.
    ///
    /// # Errors
    ///
    /// [`Error::CounterOverflow`] for a sum that is no 64-bit number, which changes nothing.
    #[inline]
    pub fn counter_add(
        &self,
        counter: &CounterRef,
        delta: i64,
        by: SessionId,
        now_ns: u64,
    ) -> Result<i64> {
        match self.counter_add_known(counter, delta) {
            Some(sum) => Ok(sum),
            None => self
                .change_counter(counter, by, now_ns, |number| number.checked_add(delta))?
                .map_err(|number| counter.overflow(number, delta))
                .map(|(_, sum)| sum),
        }
    }

    /// The common case of [`counter_add`](Self::counter_add) alone: a counter that is there, undisturbed.
    /// `None` says only that this was not the case.
    #[inline(always)]
    pub fn counter_add_known(&self, counter: &CounterRef, delta: i64) -> Option<i64> {
        let (line, state) = self.known_counter(counter)?;
        if is_spread(state) {
            return None;
        }
        let sum = number(state).checked_add(delta)?;
        // AcqRel: whoever sees the sum sees what was done before it was added to.
        line.state()
            .compare_exchange(state, with_number(state, sum))
            .ok()?;
        Some(sum)
    }

    /// Adds `delta` if the sum lies within `bounds`; else nothing is written.
    ///
    /// # Errors
    ///
    /// [`Error::NoBounds`] if the lower bound is above the upper one.
    pub fn counter_add_within(
        &self,
        counter: &CounterRef,
        delta: i64,
        bounds: &RangeInclusive<i64>,
        by: SessionId,
        now_ns: u64,
    ) -> Result<Added> {
        check_bounds(bounds)?;
        let within = |number: i64| number.checked_add(delta).filter(|sum| bounds.contains(sum));
        Ok(match self.change_counter(counter, by, now_ns, within)? {
            Ok((_, sum)) => Added::To(sum),
            Err(number) => Added::Refused(number),
        })
    }

    /// Sets the counter to `new`, and returns what it was.
    pub fn counter_swap(
        &self,
        counter: &CounterRef,
        new: i64,
        by: SessionId,
        now_ns: u64,
    ) -> Result<i64> {
        self.change_counter(counter, by, now_ns, |_| Some(new))
            .map(|changed| changed.map_or_else(|number| number, |(before, _)| before))
    }

    /// Sets the counter to `new` if it is `expected`; else says what it is.
    pub fn counter_compare_exchange(
        &self,
        counter: &CounterRef,
        expected: i64,
        new: i64,
        by: SessionId,
        now_ns: u64,
    ) -> Result<Result<(), i64>> {
        let replace = |number| (number == expected).then_some(new);
        Ok(self.change_counter(counter, by, now_ns, replace)?.map(drop))
    }

    /// The number; 0 if there is no such counter, which is not made by looking.
    #[inline]
    pub fn counter_get(&self, counter: &CounterRef) -> i64 {
        let object = self.object(Kind::Counter, &counter.name);
        for _ in 0..ROUNDS_MAX {
            let Some(found) = self.find_counter(counter, &object) else {
                return 0;
            };
            if found.is_unchanged(&self.region)
                && let Some(number) = self.whole(counter, found.at, found.state)
            {
                return number;
            }
        }
        // Only a scribbled region gets here, where no answer is right.
        0
    }

    /// Calls `visit` with the name and the number of each counter whose name begins with `prefix`.
    pub fn for_each_counter(&self, prefix: &[u8], mut visit: impl FnMut(Vec<u8>, i64)) {
        self.objects.for_each(&self.region, |cell, at, state| {
            if phase(state) != LIVE || !Objects::is(&self.region, at, Kind::Counter) {
                return;
            }
            let name = Objects::name(&self.region, at);
            let found = Found { cell, at, state };
            // Changed since, or in several words: if it is still the same counter, a look by its name tells.
            let number = if found.is_unchanged(&self.region) && !is_spread(state) {
                number(state)
            } else {
                match self.counter(&name) {
                    Ok(counter) => self.counter_get(&counter),
                    Err(_) => return,
                }
            };
            if name.starts_with(prefix) {
                visit(name, number);
            }
        });
    }

    /// Where a counter is, if it is where it was last or where most are.
    #[inline(always)]
    fn known_counter(&self, counter: &CounterRef) -> Option<(Line<'_>, u128)> {
        let object = self.object(Kind::Counter, &counter.name);
        // Relaxed: what it says is looked at.
        let cell = counter.cell.load(Relaxed);
        if cell != NOWHERE {
            let line = self.region.line(self.objects.at(cell));
            // Acquire: pairs with the exchange that made the cell LIVE, as in `Table::find_first`.
            let state = line.state().load_in_halves();
            if object.matches(&self.region, line, state) {
                return Some((line, state));
            }
        }
        let (line, cell, state) = self
            .objects
            .find_first(&self.region, object.hash(), &object)?;
        counter.cell.store(cell, Relaxed);
        Some((line, state))
    }

    fn find_counter(&self, counter: &CounterRef, object: &Object<'_>) -> Option<Found> {
        let found = self.find_object(object)?;
        counter.cell.store(found.cell, Relaxed);
        Some(found)
    }

    /// Replaces the counter's number by what `next` makes of it: the number before and after. `Err`: by none,
    /// for this number; then nothing is written, as if it stays what it is.
    fn change_counter(
        &self,
        counter: &CounterRef,
        by: SessionId,
        now_ns: u64,
        next: impl Fn(i64) -> Option<i64>,
    ) -> Result<Result<(i64, i64), i64>> {
        let object = self.object(Kind::Counter, &counter.name);
        for _ in 0..ROUNDS_MAX {
            let Some(found) = self.find_counter(counter, &object) else {
                match next(0) {
                    None => return Ok(Err(0)),
                    // No different from one that is not there.
                    Some(0) => return Ok(Ok((0, 0))),
                    Some(_) => self.insert_object(&object, by, now_ns)?,
                };
                continue;
            };
            if is_spread(found.state) {
                self.gather(counter, found.at, found.state);
                continue;
            }
            let before = number(found.state);
            let after = next(before);
            let word = self.region.wide(found.at);
            match after {
                Some(after) if after != before => {
                    // AcqRel: as in `counter_add_known`.
                    let exchanged = with_number(found.state, after);
                    if word.compare_exchange(found.state, exchanged).is_ok() {
                        return Ok(Ok((before, after)));
                    }
                }
                _ if found.is_unchanged(&self.region) => {
                    return Ok(after.map(|after| (before, after)).ok_or(before));
                }
                _ => {}
            }
        }
        Err(Error::Damaged {
            what: "a counter never settles",
        })
    }
}
