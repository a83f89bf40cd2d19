//! Striped counters: one number that many threads and processes add to at once.

use super::Counter;
use crate::share::Share;
use crate::{Error, Result};
use sprag_core::StripedRef;
use sprag_core::readable::Readable;
use std::cell::Cell;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A counter in several parts, so that threads that add to it at once do not wait for one another's cache lines.
/// Made by [`Counter::striped`].
///
/// It is the same counter for everyone: who has a plain [`Counter`] of that name adds to the same number. What needs
/// the whole number has to gather it (about a microsecond, more with many adders), and takes the parts out of use for
/// the next few additions. So a plain handle's `add`, which tells the sum, is the wrong one for a hot counter.
///
/// - **Exact**: [`get`](Self::get) is a number that the counter had at one moment during the call. Whoever dies or is
///   stopped in an addition, it counts once or not at all.
/// - **Bounds** hold over all parts together, and nothing is refused while there is room anywhere. Near a bound every
///   addition is decided on the whole, as by a plain counter.
/// - **It stays** for as long as the region does, also at 0, and takes the room of nine objects.
///
/// ```
/// let space = sprag::Space::open("mem:")?;
/// let hits = space.counter("hits")?.striped()?;
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| (0..1_000).try_for_each(|_| hits.add(1)));
///     }
/// });
/// assert_eq!(hits.get()?, 4_000);
/// # Ok::<(), sprag::Error>(())
/// ```
#[derive(Clone)]
pub struct StripedCounter<'s> {
    space: Share<'s>,
    striped: StripedRef,
}

thread_local! {
    /// This thread's part; `usize::MAX` before it has one.
    static LANE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Each thread has a part of its own, as long as there are enough.
#[inline(always)]
pub(crate) fn lane(process: u16) -> usize {
    LANE.with(|lane| match lane.get() {
        usize::MAX => first_lane(lane, process),
        known => known,
    })
}

#[cold]
fn first_lane(lane: &Cell<usize>, process: u16) -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // Threads of one process take turns, and the first ones of two processes do not meet. Relaxed: a number.
    let next = NEXT
        .fetch_add(1, Relaxed)
        .wrapping_add(3 * usize::from(process));
    // Never the value that stands for none.
    lane.set(next % 256);
    next % 256
}

impl<'s> StripedCounter<'s> {
    pub(super) fn new(counter: Counter<'s>) -> Result<Self> {
        let now_ns = counter.now_ns()?;
        let inner = &*counter.space;
        let striped = inner
            .engine
            .counter_striped(&counter.counter, inner.session, now_ns)?;
        Ok(Self {
            space: counter.space,
            striped,
        })
    }

    /// The same counter, with a share of the space instead of a borrow of it: for a struct, a thread or a
    /// task.
    pub fn into_owned(self) -> StripedCounter<'static> {
        StripedCounter {
            space: self.space.to_owned(),
            striped: self.striped,
        }
    }

    /// The same counter, for what tells the number: a plain handle.
    fn plain(&self) -> Counter<'s> {
        Counter {
            space: self.space.clone(),
            counter: self.striped.counter().clone(),
        }
    }

    /// The name.
    pub fn name(&self) -> Vec<u8> {
        self.striped.counter().name().to_vec()
    }

    /// Adds `delta`, which may be negative. The sum is not told: nobody knows it without looking at all parts.
    ///
    /// # Errors
    ///
    /// Those of [`Counter::add`], but for a lack of room: it has all it needs.
    #[inline(always)]
    pub fn add(&self, delta: i64) -> Result<()> {
        let inner = &*self.space;
        if inner.check_process().is_ok()
            && inner.is_in_place_for_now()
            && inner
                .engine
                .striped_add_known(&self.striped, lane(inner.session.index()), delta)
        {
            return Ok(());
        }
        // A return type of its own keeps the result of the common case in registers.
        self.add_slowly(delta).map_err(|error| *error)
    }

    #[inline(never)]
    fn add_slowly(&self, delta: i64) -> Result<(), Box<Error>> {
        self.check()?;
        let inner = &*self.space;
        let lane = lane(inner.session.index());
        let added = inner.engine.striped_add(&self.striped, lane, delta);
        Ok(added.map_err(Error::from)?)
    }

    /// Adds `delta` if the sum lies within `bounds`: `Ok(())`; else it changes nothing and returns the number, as
    /// `Err`. Bounds that most calls share are the fastest; different ones take turns at gathering the whole.
    ///
    /// # Errors
    ///
    /// The outer ones are those of [`Counter::add_within`], but for a lack of room.
    pub fn add_within(&self, delta: i64, bounds: RangeInclusive<i64>) -> Result<Result<(), i64>> {
        self.check()?;
        let inner = &*self.space;
        let lane = lane(inner.session.index());
        Ok(inner
            .engine
            .striped_add_within(&self.striped, lane, delta, &bounds)?)
    }

    /// The number: one that the counter had at a moment during the call. See [`Counter::get`].
    pub fn get(&self) -> Result<i64> {
        self.plain().get()
    }

    /// See [`Counter::swap`].
    pub fn swap(&self, new: i64) -> Result<i64> {
        self.plain().swap(new)
    }

    /// See [`Counter::compare_exchange`].
    pub fn compare_exchange(&self, expected: i64, new: i64) -> Result<Result<(), i64>> {
        self.plain().compare_exchange(expected, new)
    }

    fn check(&self) -> Result<()> {
        let inner = &*self.space;
        inner.check_process()?;
        inner.check_in_place_now_and_then(inner.now_ns())
    }
}

impl fmt::Debug for StripedCounter<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StripedCounter")
            .field("name", &Readable(&self.name()))
            .finish_non_exhaustive()
    }
}
