//! One entry of limits declared together: its words, and every step from one state of them to the next.
//!
//! Owns the protocol. Knows no names and finds no entry; whose it is, a key's cell or a definition's
//! overflow, makes no difference here.
//!
//! # The words
//!
//! | bytes | field |
//! |---|---|
//! | 0..16 | state word |
//! | 16..32 | the key ([`crate::joint_key`]); of an overflow not used |
//! | 32..48 … 112..128 | *values*, one for each limit, in their order: two to the first line |
//!
//! The bits of the state and of a value are in [`super::state`].
//!
//! Sum and then are the entry's *batch*: so much was admitted at that time. The total is what was admitted since the
//! values; where it isn't split, they are the same. A value includes all admissions up to some generation.
//!
//! ```text
//!                 exchange: the batch grows, or another takes its place
//!                     ┌──┐
//!                     │  ▼          close                          each value includes what the state says
//!  open, generation g ──────────▶ closed, generation g ─────────────────────────┐ (anyone)
//!  every tag is g - 1               tags are g - 1, or g                        ▼
//!        ▲                                                              every tag is g
//!        └── generation g + 1, with a batch of the closer's or none ────────────┘
//! ```
//!
//! What a limit has used is what its value becomes by the batch ([`Prepared::applied`]) or, if its bit of *by total* is
//! set, by the total ([`Prepared::added`]). A bucket that has not drained since its value takes the total, at whatever
//! times it came, and so does a window that has not ended; one that has drained need know of the batch alone. So
//! an admission by all limits is one exchange of the state wherever that says for every limit what the admission does:
//!
//! - the batch, grown by the cost, at its own time: where what was there has not drained, or in the same window;
//! - else a batch of the cost alone, now, in the place of the one before: where a limit has drained;
//! - with either, the total for those limits of which the batch does not say it.
//!
//! That is asked of the values that come out, not of the algorithms, so that it holds for stamps in any order.
//! Where neither does, or the total is more than a split state holds, the entry is closed first, and opened with the
//! admission as its batch: that exchange decides. Whoever meets a closed entry opens it without a batch, and
//! the closer begins again.
//!
//! # Who comes late
//!
//! - An exchange of a value was prepared from a word that never comes back, and after a look that the state was
//!   still the closed one. Once it is open again, all values are exchanged.
//! - An exchange of the state was prepared from a word that does not come back while the values stay: each admission
//!   takes some of every limit, so what they have used only grows. After that it would take 2^20 closings, and then
//!   the same batch at the same nanosecond.
//! - An entry's reader compares the tags with the state that it read before, and its own exchange, or a second
//!   look at the state, says that both stayed.

use super::Limits;
use super::state::{Batch, Candidates, State, Value};
use crate::error::{Error, Result};
use crate::limit::{Prepared, TIME_NS_MAX, Verdict};
use crate::region::Region;
use crate::sync::{Wide, fence};
use crate::table::{LIVE, ROUNDS_MAX, phase};
use core::sync::atomic::Ordering::Acquire;

/// The most limits that are declared together.
pub const LIMITS_MAX: usize = 6;
const VALUES: usize = 32;

/// What each limit has used, or its value; those past the last limit are 0.
pub(crate) type Values = [u128; LIMITS_MAX];

/// Which limits refused: bit i stands for the limit of index i.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refusals {
    /// For now.
    pub(crate) refused: u8,
    /// For ever.
    pub(crate) never: u8,
}

impl Refusals {
    #[inline(always)]
    pub(crate) fn are_none(self) -> bool {
        self.refused | self.never == 0
    }
}

#[inline(always)]
fn value_word(region: &Region, at: usize, index: usize) -> &Wide {
    region.wide(at + VALUES + index * 16)
}

#[inline(always)]
fn value(region: &Region, at: usize, index: usize) -> Value {
    // In halves, which while the entry is open differ in time only if the state does from what it was before; all who
    // use it ask, or exchange the value.
    Value(value_word(region, at, index).load_in_halves())
}

/// The same for one who has read `state`, be it closed: then the value may change while the state stays.
#[inline(always)]
fn value_by(region: &Region, at: usize, index: usize, state: State) -> Value {
    if state.is_closed() {
        return Value(value_word(region, at, index).load());
    }
    value(region, at, index)
}

/// What the limit of this index has used by `state`; `None` if that and `value` do not belong together.
#[inline(always)]
fn used(
    region: &Region,
    limit: &Prepared,
    index: usize,
    state: State,
    value: Value,
) -> Option<u128> {
    if value.is_before(state) {
        let since = state.batch().since(region, index);
        return Some(limit.after(value.value(), since));
    }
    (state.is_closed() && value.is_of(state.generation())).then(|| value.value())
}

/// What each limit has used; `None` if the entry at `at` was changed since its state was `state`.
pub(crate) fn seen(region: &Region, limits: &Limits, at: usize, state: State) -> Option<Values> {
    let mut all = [0; LIMITS_MAX];
    for (i, limit) in limits.iter().enumerate() {
        all[i] = used(region, limit, i, state, value_by(region, at, i, state))?;
    }
    // Acquire: the values that were read were this state's.
    fence(Acquire);
    (region.wide(at).load() == state.0).then_some(all)
}

/// Takes `cost`, at most [`COST_MAX`], at `now_ns` if every limit allows it, of the entry at `at` whose open state was
/// `state`. What each has used then goes to `values`. Nothing is written if one refuses. `None` if the entry
/// was changed meanwhile.
#[inline(always)]
pub(crate) fn check(
    region: &Region,
    limits: &Limits,
    at: usize,
    state: State,
    cost: u64,
    now_ns: u64,
    values: &mut Values,
) -> Option<Refusals> {
    if limits.are_narrow
        && let Some(after) = after_narrow(region, limits, at, state, cost, now_ns, values)
    {
        region.wide(at).compare_exchange(state.0, after.0).ok()?;
        return Some(Refusals::default());
    }
    check_any(region, limits, at, state, cost, now_ns, values)
}

/// The state after an admission of `cost` to limits that are all buckets of 64 bits, in the cases that are common where
/// a check costs much: something was admitted before, there is room, and no limit has drained of it, or again the same
/// ones have. Here for speed alone.
#[inline(always)]
fn after_narrow(
    region: &Region,
    limits: &Limits,
    at: usize,
    state: State,
    cost: u64,
    now_ns: u64,
    values: &mut Values,
) -> Option<State> {
    let before = state.batch();
    if cost == 0 || before.sum == 0 || now_ns > TIME_NS_MAX {
        return None;
    }
    let is_split = state.is_split();
    let mut by_total = 0;
    for (limit, (i, used)) in limits.iter().zip(values.iter_mut().enumerate()) {
        let value = value(region, at, i);
        let narrow = u64::try_from(value.value()).ok()?;
        if !value.is_before(state) {
            return None;
        }
        let since = before.since(region, i);
        let after = if is_split {
            let (after, is_by_total) = limit.fresh_in_64_bits(narrow, since, now_ns, cost)?;
            by_total |= u8::from(is_by_total) << i;
            after
        } else {
            limit.grown_in_64_bits(narrow, since, now_ns, cost)?
        };
        *used = after.into();
    }
    let (then_ns, sum) = if is_split {
        (now_ns, cost)
    } else {
        (before.then_ns, before.sum + cost)
    };
    state.with_batch(Batch {
        then_ns,
        sum,
        total: before.total + cost,
        by_total,
    })
}

/// [`check`] in all cases.
#[inline(never)]
fn check_any(
    region: &Region,
    limits: &Limits,
    at: usize,
    state: State,
    cost: u64,
    now_ns: u64,
    values: &mut Values,
) -> Option<Refusals> {
    let (now, batch) = (region.moment(now_ns), state.batch());
    let mut refusals = Refusals::default();
    let mut candidates = Candidates::new(batch, cost, now_ns);
    for (i, limit) in limits.iter().enumerate() {
        let before = value(region, at, i);
        if !before.is_before(state) {
            return None;
        }
        let since = batch.since(region, i);
        let (verdict, ways) = limit.check_after(before.value(), since, now, cost);
        candidates.ask(i, ways);
        match verdict {
            Verdict::Allowed { new_value } => values[i] = new_value,
            Verdict::Refused => refusals.refused |= 1 << i,
            Verdict::Never => refusals.never |= 1 << i,
        }
    }
    if !refusals.are_none() || cost == 0 {
        *values = seen(region, limits, at, state)?;
        return Some(refusals);
    }
    let Some(after) = candidates.state(state) else {
        return close_and_take(region, limits, at, state, cost, now_ns).then_some(refusals);
    };
    // Release: nothing but itself. Acquire: the caller goes on after its admission.
    region.wide(at).compare_exchange(state.0, after.0).ok()?;
    Some(refusals)
}

/// Takes `cost` where no state says so. The exchange that opens the entry again decides.
#[inline(never)]
fn close_and_take(
    region: &Region,
    limits: &Limits,
    at: usize,
    state: State,
    cost: u64,
    now_ns: u64,
) -> bool {
    let Some(closed) = close(region, at, state) else {
        return false;
    };
    include(region, Some(limits), at, closed);
    take(region, at, closed, cost, now_ns)
}

/// Closes an entry whose open state was `state`: its state now, unless somebody else changed it.
pub(super) fn close(region: &Region, at: usize, state: State) -> Option<State> {
    let (word, closed) = (region.wide(at), state.closed());
    word.compare_exchange(state.0, closed.0).ok()?;
    Some(closed)
}

/// Opens an entry whose values include what its state says with `cost` as the next batch; whether nobody else opened
/// it.
pub(super) fn take(region: &Region, at: usize, closed: State, cost: u64, now_ns: u64) -> bool {
    let opened = closed.opened(now_ns, cost);
    region.wide(at).compare_exchange(closed.0, opened.0).is_ok()
}

/// Has every value include what the entry's state says, which is `closed`. Any number may be at it.
pub(super) fn include(region: &Region, limits: Option<&Limits>, at: usize, closed: State) {
    // Of limits that cannot be read, what was used is not known either.
    let limits = limits.into_iter().flat_map(|limits| limits.iter());
    for (i, limit) in limits.enumerate() {
        include_in(region, limit, at, i, closed);
    }
}

pub(super) fn include_in(
    region: &Region,
    limit: &Prepared,
    at: usize,
    index: usize,
    closed: State,
) {
    let before = value(region, at, index);
    // Asked after the value was read, which is then one of this generation and not, however long ago this one
    // was closed, of one of the same number.
    if !before.is_before(closed) || region.wide(at).load() != closed.0 {
        return;
    }
    let since = closed.batch().since(region, index);
    let used = limit.after(before.value(), since);
    let after = before.next(closed.generation(), used);
    // Losing means that somebody else did it.
    let _ = value_word(region, at, index).compare_exchange(before.0, after.0);
}

/// Opens an entry that somebody closed, as `closed` says; whether it was this call that did.
pub(crate) fn open(region: &Region, limits: Option<&Limits>, at: usize, closed: State) -> bool {
    include(region, limits, at, closed);
    let opened = closed.opened(closed.then_ns(), 0);
    region.wide(at).compare_exchange(closed.0, opened.0).is_ok()
}

/// What each limit of an entry has used at some moment during the call, after which every exchange of its state that
/// was prepared before the call fails.
pub(crate) fn level(region: &Region, limits: &Limits, at: usize) -> Values {
    let word = region.wide(at);
    for _ in 0..ROUNDS_MAX {
        let state = State(word.load());
        if phase(state.0) != LIVE {
            break;
        }
        let closed = state.closed();
        // Closed by this call, it can be opened without an admission alone. Closed by another, it may have been
        // opened with one meanwhile, that was prepared before.
        let is_own = state != closed && word.compare_exchange(state.0, closed.0).is_ok();
        if !is_own && state != closed {
            continue;
        }
        if open(region, Some(limits), at, closed) || is_own {
            break;
        }
    }
    // They may include what came after the moment: that is not the caller's, and no less was used.
    let mut values = [0; LIMITS_MAX];
    for (i, _) in limits.iter().enumerate() {
        values[i] = Value(value_word(region, at, i).load()).value();
    }
    values
}

/// Makes the values of an entry that nobody uses yet such as [`begin`] expects. Nobody else writes to them but who
/// comes late from the entry before.
pub(crate) fn prepare(region: &Region, limits: &Limits, at: usize, generation: u64) {
    for (i, _) in limits.iter().enumerate() {
        replace(region, at, i, generation.wrapping_sub(2), |_| 0);
    }
}

/// Has every value of an entry that was prepared be what `first` gives, and include all before `generation`, for
/// as long as the entry's state is `claimed`. Any number may be at it.
pub(crate) fn begin(
    region: &Region,
    limits: &Limits,
    at: usize,
    claimed: u128,
    generation: u64,
    first: impl Fn(usize, &Prepared) -> u128,
) {
    for (i, limit) in limits.iter().enumerate() {
        let before = value(region, at, i);
        // Asked after the value was read: as in `include`.
        if before.is_of(generation.wrapping_sub(2)) && region.wide(at).load() == claimed {
            let after = before.next(generation.wrapping_sub(1), first(i, limit));
            let _ = value_word(region, at, i).compare_exchange(before.0, after.0);
        }
    }
}

/// Exchanges a value for what `make` makes of it, under a tag that includes `generation`.
fn replace(region: &Region, at: usize, index: usize, generation: u64, make: impl Fn(u128) -> u128) {
    let word = value_word(region, at, index);
    for _ in 0..ROUNDS_MAX {
        let before = Value(word.load());
        let after = before.next(generation, make(before.value()));
        if word.compare_exchange(before.0, after.0).is_ok() {
            return;
        }
    }
}

/// Whether the values of an entry belong to its state.
pub(crate) fn is_sound(region: &Region, limits: &Limits, at: usize, state: State) -> bool {
    (limits.iter().enumerate())
        .all(|(i, limit)| used(region, limit, i, state, value_by(region, at, i, state)).is_some())
}

/// Fails if the values of the entry at `at` do not belong to its state, as far as that is still `state`.
pub(crate) fn check_sound(region: &Region, limits: &Limits, at: usize, state: State) -> Result<()> {
    // The state was read before, and is once more after: else it is no fault.
    if !is_sound(region, limits, at, state) && region.wide(at).load() == state.0 {
        return Err(Error::Damaged {
            what: "what a joint key has used is of different times",
        });
    }
    Ok(())
}

/// Makes the entry at `at`, which nobody uses, open without a batch: with the values that it has, or fresh.
pub(crate) fn reset(region: &Region, limits: &Limits, at: usize, definition: u32, is_fresh: bool) {
    let word = region.wide(at);
    let before = State(word.load());
    let state = State::open(0, definition, before.generation().wrapping_add(1));
    for (i, _) in limits.iter().enumerate() {
        replace(region, at, i, before.generation(), |value| {
            if is_fresh { 0 } else { value }
        });
    }
    // It can only fail if something scribbles.
    let _ = word.compare_exchange(before.0, state.0);
}

/// Sets the values of an open entry without a batch that nobody else knows yet.
#[cfg(all(not(loom), target_os = "linux"))]
pub(crate) fn set(region: &Region, at: usize, values: &Values) {
    let state = State(region.wide(at).load());
    for (i, used) in values.iter().enumerate() {
        replace(region, at, i, state.generation().wrapping_sub(1), |_| *used);
    }
}

/// When every limit has nothing used any more if nothing is admitted, in nanoseconds of region time; `None` if the
/// entry was changed since its state was `state`.
pub(crate) fn full_at_ns(region: &Region, limits: &Limits, at: usize, state: State) -> Option<u64> {
    let mut latest_ns = 0;
    for (i, limit) in limits.iter().enumerate() {
        let used = used(region, limit, i, state, value_by(region, at, i, state))?;
        latest_ns = latest_ns.max(limit.full_at_ns(used, region.base_unix_ns()));
    }
    Some(latest_ns)
}
