//! Counters: a number by name, shared by everyone who opens the space.

use crate::share::Share;
use crate::{Error, Result, Space};
use sprag_core::CounterRef;
use sprag_core::readable::Readable;
use std::fmt;
use std::ops::RangeInclusive;

mod striped;

pub use sprag_core::Added;
pub use striped::StripedCounter;
pub(crate) use striped::lane;

/// A signed 64-bit number by name, 0 until somebody changes it. Made by [`Space::counter`]; cheap to make,
/// for a call or for good: one that is kept finds its number faster.
///
/// It borrows its space; to store one, or send it to a thread or a task, see [`into_owned`](Self::into_owned).
///
/// Each call is one step: all of it happened or nothing did, also if its caller is killed. A counter at 0
/// takes no room that another name needs.
///
/// ```
/// use sprag::Added;
///
/// let space = sprag::Space::open("mem:")?;
/// let stock = space.counter("stock/apples")?;
/// assert_eq!(stock.add(10)?, 10);
/// assert_eq!(stock.add_within(-7, 0..=i64::MAX)?, Added::To(3));
/// assert_eq!(stock.add_within(-7, 0..=i64::MAX)?, Added::Refused(3), "no overdraft");
/// assert_eq!(stock.compare_exchange(4, 5)?, Err(3));
/// assert_eq!(stock.swap(0)?, 3);
/// # Ok::<(), sprag::Error>(())
/// ```
#[derive(Clone)]
pub struct Counter<'s> {
    space: Share<'s>,
    counter: CounterRef,
}

impl<'s> Counter<'s> {
    #[inline(always)]
    pub(crate) fn new(space: &'s Space, name: &[u8]) -> Result<Self> {
        Ok(Self {
            counter: space.inner.engine.counter(name)?,
            space: Share::borrow(&space.inner),
        })
    }

    /// The same counter, with a share of the space instead of a borrow of it: for a struct, a thread or a
    /// task.
    pub fn into_owned(self) -> Counter<'static> {
        Counter {
            space: self.space.to_owned(),
            counter: self.counter,
        }
    }

    /// The same counter in several parts, for additions by many threads or processes at once: see
    /// [`StripedCounter`]. It is striped for everyone from then on.
    ///
    /// # Errors
    ///
    /// As for [`add`](Self::add): it takes the room of nine objects, and where there is less may keep what it got for
    /// whoever asks next.
    pub fn striped(self) -> Result<StripedCounter<'s>> {
        StripedCounter::new(self)
    }

    /// The name.
    pub fn name(&self) -> Vec<u8> {
        self.counter.name().to_vec()
    }

    /// Adds `delta`, which may be negative, and returns the sum. Some nanoseconds.
    ///
    /// # Errors
    ///
    /// As for every change: [`Error::Forked`], and [`Error::Engine`] when the region has no room for another
    /// counter, was replaced or is damaged. Also
    /// [`CounterOverflow`](crate::EngineError::CounterOverflow) for a sum below [`i64::MIN`] or above [`i64::MAX`];
    /// the counter stays what it is.
    #[inline(always)]
    pub fn add(&self, delta: i64) -> Result<i64> {
        let inner = &*self.space;
        if inner.check_process().is_ok()
            && inner.is_in_place_for_now()
            && let Some(sum) = inner.engine.counter_add_known(&self.counter, delta)
        {
            return Ok(sum);
        }
        // A return type of its own keeps the result of the common case in registers.
        self.add_slowly(delta).map_err(|error| *error)
    }

    #[inline(never)]
    fn add_slowly(&self, delta: i64) -> Result<i64, Box<Error>> {
        let now_ns = self.now_ns()?;
        let inner = &*self.space;
        let added = inner
            .engine
            .counter_add(&self.counter, delta, inner.session, now_ns);
        Ok(added.map_err(Error::from)?)
    }

    /// Adds `delta` if the sum lies within `bounds`; else it changes and writes nothing. With bounds from 0 on,
    /// nobody overdraws, however many try at once. Where the number lies outside the bounds already, only
    /// what brings it back within them is added.
    ///
    /// # Errors
    ///
    /// Those of every change, see [`add`](Self::add), and
    /// [`NoBounds`](crate::EngineError::NoBounds) if the lower bound is above the upper one.
    pub fn add_within(&self, delta: i64, bounds: RangeInclusive<i64>) -> Result<Added> {
        let now_ns = self.now_ns()?;
        let inner = &*self.space;
        Ok(inner
            .engine
            .counter_add_within(&self.counter, delta, &bounds, inner.session, now_ns)?)
    }

    /// The number. A load, and nothing is created by looking.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`], and [`Error::Engine`] if the region was replaced.
    pub fn get(&self) -> Result<i64> {
        let inner = &*self.space;
        inner.check_process()?;
        inner.check_in_place_to_look(inner.now_ns())?;
        Ok(inner.engine.counter_get(&self.counter))
    }

    /// Sets the number, and returns what it was; errors as for [`add`](Self::add). Swapping it for 0 gives its
    /// room back.
    pub fn swap(&self, new: i64) -> Result<i64> {
        let now_ns = self.now_ns()?;
        let inner = &*self.space;
        Ok(inner
            .engine
            .counter_swap(&self.counter, new, inner.session, now_ns)?)
    }

    /// Sets the number to `new` if it is `expected`; if not, changes nothing and returns what it is, as
    /// `Err`. The outer errors are those of [`add`](Self::add).
    pub fn compare_exchange(&self, expected: i64, new: i64) -> Result<Result<(), i64>> {
        let now_ns = self.now_ns()?;
        let inner = &*self.space;
        Ok(inner.engine.counter_compare_exchange(
            &self.counter,
            expected,
            new,
            inner.session,
            now_ns,
        )?)
    }

    /// The time, if the space may be used.
    fn now_ns(&self) -> Result<u64> {
        let inner = &*self.space;
        inner.check_process()?;
        let now_ns = inner.now_ns();
        inner.check_in_place_now_and_then(now_ns)?;
        Ok(now_ns)
    }
}

impl fmt::Debug for Counter<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Counter")
            .field("name", &Readable(&self.name()))
            .field("number", &self.space.engine.counter_get(&self.counter))
            .finish_non_exhaustive()
    }
}
