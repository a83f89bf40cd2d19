//! Histories of real threads on one lock, one fence, one counter and one limiter key: each has an order of one
//! operation after another that explains every answer. First the judge itself is judged.

mod history;
#[path = "history/recorder.rs"]
mod recorder;
mod support;
#[path = "history/threads.rs"]
mod threads;

use history::{Event, Specification, is_linearizable};
use recorder::Recorder;
use sprag_core::limit::{Moment, Prepared, Verdict};
use sprag_core::lock::{Attempt, Grant, Released, Renewed};
use sprag_core::region::Caps;
use sprag_core::session::Process;
use sprag_core::{Added, Checked, CounterRef, Engine, Error, Limit, SessionId};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use support::{FLOOR, SECOND, UNIX_NS, engine, engine_with_session, is_soak, session};
use threads::{THREADS, at_once};

/// How many histories of each kind: ten times as many with `SPRAG_SOAK=1`.
fn histories() -> u64 {
    if is_soak() { 10_000 } else { 1_000 }
}

const CAPS: Caps = Caps {
    objects: 16,
    limiter_keys: 16,
    joint_keys: 16,
    sessions: 16,
    waiters: 16,
    permits: 16,
    key_chunks: 16,
};

/// A cell that is written and read: the textbook's example, to judge the judge.
struct Cell;

#[derive(Clone, Debug)]
enum CellCall {
    Write(u32),
    Read,
}

impl Specification for Cell {
    type State = u32;
    type Call = CellCall;
    type Answer = u32;

    fn step(state: &u32, call: &CellCall, answer: &u32) -> Option<u32> {
        match call {
            CellCall::Write(value) => Some(*value),
            CellCall::Read => (answer == state).then_some(*state),
        }
    }
}

fn write(asked: u64, answered: u64, value: u32) -> Event<CellCall, u32> {
    Event {
        asked,
        answered,
        call: CellCall::Write(value),
        answer: 0,
    }
}

fn read(asked: u64, answered: u64, value: u32) -> Event<CellCall, u32> {
    Event {
        asked,
        answered,
        call: CellCall::Read,
        answer: value,
    }
}

#[test]
fn the_judge_accepts_what_has_an_explanation() {
    for history in [
        vec![],
        vec![write(0, 1, 1), read(2, 3, 1)],
        // A read beside a write may see either.
        vec![write(0, 3, 1), read(1, 2, 0)],
        vec![write(0, 3, 1), read(1, 2, 1)],
        // The later write may come first while both are open; each read decides it further.
        vec![
            write(0, 10, 1),
            write(1, 9, 2),
            read(2, 3, 2),
            read(4, 5, 1),
            read(11, 12, 1),
        ],
        // One that needs turning back: the greedy order fails.
        vec![
            write(0, 10, 1),
            read(1, 9, 2),
            write(2, 8, 2),
            read(11, 12, 1),
        ],
    ] {
        assert!(is_linearizable::<Cell>(&0, &history), "{history:?}");
    }
}

#[test]
fn the_judge_rejects_what_has_none() {
    for history in [
        vec![read(0, 1, 1)],
        // A read after a write has been answered sees it.
        vec![write(0, 1, 1), read(2, 3, 0)],
        // New, then old again.
        vec![write(0, 10, 1), read(1, 2, 1), read(3, 4, 0)],
        // Two reads, one after the other, that disagree about the order of two writes.
        vec![
            write(0, 20, 1),
            write(0, 20, 2),
            read(1, 2, 1),
            read(3, 4, 2),
            read(5, 6, 1),
        ],
        // Right but for the last answer, at the full length of a history.
        (0..63)
            .map(|i| write(2 * i, 2 * i + 1, 7))
            .chain([read(1_000, 1_001, 8)])
            .collect(),
    ] {
        assert!(!is_linearizable::<Cell>(&0, &history), "{history:?}");
    }
}

/// A lock that is tried, released, renewed and broken, with leases that run out.
struct LockSpecification;

#[derive(Clone, Debug)]
enum LockCall {
    Try {
        now_ns: u64,
        lease_ns: u64,
    },
    Release {
        token: u64,
    },
    Renew {
        token: u64,
        now_ns: u64,
        lease_ns: u64,
    },
    Break,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum LockAnswer {
    /// The token of the hold that began, went on or was ended.
    Done(u64),
    Refused,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LockState {
    last: u64,
    until_us: Option<u64>,
}

impl Specification for LockSpecification {
    type State = LockState;
    type Call = LockCall;
    type Answer = LockAnswer;

    fn step(state: &LockState, call: &LockCall, answer: &LockAnswer) -> Option<LockState> {
        let mut after = state.clone();
        let until = |now_ns: u64, lease_ns: u64| Some((now_ns + lease_ns).div_ceil(1_000));
        let expected = match *call {
            LockCall::Try { now_ns, lease_ns } => {
                if state
                    .until_us
                    .is_some_and(|until_us| until_us > now_ns / 1_000)
                {
                    LockAnswer::Refused
                } else {
                    after.last += 1;
                    after.until_us = until(now_ns, lease_ns);
                    LockAnswer::Done(after.last)
                }
            }
            LockCall::Release { token } => {
                if state.until_us.is_some() && state.last == token {
                    after.until_us = None;
                    LockAnswer::Done(token)
                } else {
                    LockAnswer::Refused
                }
            }
            LockCall::Renew {
                token,
                now_ns,
                lease_ns,
            } => {
                let is_running = state
                    .until_us
                    .is_some_and(|until_us| until_us > now_ns / 1_000);
                if is_running && state.last == token {
                    after.until_us = until(now_ns, lease_ns);
                    LockAnswer::Done(token)
                } else {
                    LockAnswer::Refused
                }
            }
            LockCall::Break => {
                if state.until_us.take_if_held(&mut after) {
                    LockAnswer::Done(state.last)
                } else {
                    LockAnswer::Refused
                }
            }
        };
        (expected == *answer).then_some(after)
    }
}

/// Ends a hold, if there is one.
trait TakeIfHeld {
    fn take_if_held(&self, after: &mut LockState) -> bool;
}

impl TakeIfHeld for Option<u64> {
    fn take_if_held(&self, after: &mut LockState) -> bool {
        after.until_us = None;
        self.is_some()
    }
}

fn lock_history(seed: u64) -> Vec<Event<LockCall, LockAnswer>> {
    let engine = engine(CAPS);
    let sessions: Vec<SessionId> = (0..THREADS).map(|_| session(&engine)).collect();
    let name = engine.lock_name(b"one").unwrap();
    let (recorder, now_ns) = (Recorder::new(), AtomicU64::new(0));
    let lease_ns = 2_000_000;
    at_once(
        |thread, random| {
            let mut grant: Option<Grant> = None;
            for _ in 0..7 {
                // Relaxed: any thread's stamp may be old, as real clocks' are.
                let now_ns = now_ns.fetch_add(random.u64(0..600_000), Ordering::Relaxed);
                match (random.u8(0..8), grant) {
                    (0, _) => {
                        recorder.record(LockCall::Break, || {
                            let broken = engine.break_lock(&name, Process::default(), now_ns);
                            broken.map_or(LockAnswer::Refused, |broken| {
                                LockAnswer::Done(broken.token)
                            })
                        });
                    }
                    (1..=2, Some(held)) => {
                        let token = held.token;
                        let call = LockCall::Renew {
                            token,
                            now_ns,
                            lease_ns,
                        };
                        recorder.record(call, || {
                            match engine.renew(&held, now_ns, lease_ns).unwrap() {
                                Renewed::Until(_) => LockAnswer::Done(token),
                                Renewed::NotHeld => LockAnswer::Refused,
                            }
                        });
                    }
                    // Now and then twice with the same grant: the second may free nothing.
                    (3..=5, Some(held)) => {
                        let token = held.token;
                        recorder.record(LockCall::Release { token }, || {
                            match engine.release(&held, || now_ns) {
                                Released::Done { .. } => LockAnswer::Done(token),
                                Released::NotHeld => LockAnswer::Refused,
                            }
                        });
                        if random.bool() {
                            grant = None;
                        }
                    }
                    _ => {
                        let mut granted = None;
                        recorder.record(LockCall::Try { now_ns, lease_ns }, || {
                            let by = sessions[thread];
                            match engine.try_acquire(&name, by, now_ns, lease_ns).unwrap() {
                                Attempt::Granted(new) => {
                                    granted = Some(new);
                                    LockAnswer::Done(new.token)
                                }
                                Attempt::Busy => LockAnswer::Refused,
                            }
                        });
                        grant = granted.or(grant);
                    }
                }
            }
        },
        seed,
    );
    recorder.into_events()
}

// property 1, property 2, property 3, property 5
#[test]
fn every_history_of_a_lock_has_an_order_that_explains_it() {
    let initial = LockState {
        last: FLOOR,
        until_us: None,
    };
    for seed in 0..histories() {
        let history = lock_history(seed);
        assert!(
            is_linearizable::<LockSpecification>(&initial, &history),
            "history {seed}: {history:#?}"
        );
    }
}

/// A fence: the highest token it admitted.
struct FenceSpecification;

#[derive(Clone, Debug)]
struct Admit {
    token: u64,
    once: bool,
}

impl Specification for FenceSpecification {
    type State = u64;
    type Call = Admit;
    type Answer = Result<(), u64>;

    fn step(state: &u64, call: &Admit, answer: &Result<(), u64>) -> Option<u64> {
        let is_fresh = call.token > *state || (!call.once && call.token == *state);
        match answer {
            Ok(()) => is_fresh.then_some(call.token),
            Err(highest) => (!is_fresh && highest == state).then_some(*state),
        }
    }
}

// property 3
#[test]
fn every_history_of_a_fence_has_an_order_that_explains_it() {
    for seed in 0..histories() {
        let (engine, me) = engine_with_session(CAPS);
        let name = engine.fence_name(b"one").unwrap();
        let recorder = Recorder::new();
        at_once(
            |_, random| {
                for _ in 0..8 {
                    let (token, once) = (random.u64(1..12), random.bool());
                    let _ = recorder.record(Admit { token, once }, || {
                        let admitted = engine.admit(&name, me, 0, token, once).unwrap();
                        admitted.map_err(|stale| stale.highest)
                    });
                }
            },
            seed,
        );
        let history = recorder.into_events();
        assert!(
            is_linearizable::<FenceSpecification>(&0, &history),
            "history {seed}: {history:#?}"
        );
    }
}

/// A counter: its number. One that is at 0 may be reclaimed, for names that nobody asks about.
struct CounterSpecification;

#[derive(Clone, Debug)]
enum CounterCall {
    Add(i64),
    AddWithin(i64, RangeInclusive<i64>),
    Swap(i64),
    CompareExchange(i64, i64),
    Get,
    /// By way of a stripe: the sum is not told.
    AddStriped(i64),
    AddStripedWithin(i64, RangeInclusive<i64>),
}

impl Specification for CounterSpecification {
    type State = i64;
    type Call = CounterCall;
    type Answer = Result<i64, i64>;

    fn step(number: &i64, call: &CounterCall, answer: &Result<i64, i64>) -> Option<i64> {
        let number = *number;
        let (expected, after) = match call {
            CounterCall::Add(delta) => (Ok(number + delta), number + delta),
            CounterCall::AddWithin(delta, bounds) if bounds.contains(&(number + delta)) => {
                (Ok(number + delta), number + delta)
            }
            CounterCall::Swap(new) => (Ok(number), *new),
            CounterCall::CompareExchange(expected, new) if *expected == number => (Ok(*new), *new),
            CounterCall::AddStriped(delta) => (Ok(0), number + delta),
            CounterCall::AddStripedWithin(delta, bounds) if bounds.contains(&(number + delta)) => {
                (Ok(0), number + delta)
            }
            CounterCall::AddWithin(..)
            | CounterCall::AddStripedWithin(..)
            | CounterCall::CompareExchange(..) => (Err(number), number),
            CounterCall::Get => (Ok(number), number),
        };
        (expected == *answer).then_some(after)
    }
}

// property 10
#[test]
fn every_history_of_a_counter_has_an_order_that_explains_it() {
    for seed in 0..histories() {
        // So few cells that one at 0 is soon reclaimed.
        let (engine, me) = engine_with_session(Caps { objects: 1, ..CAPS });
        let others = [&b"other"[..], b"another"].map(|name| engine.counter(name).unwrap());
        let counter = engine.counter(b"one").unwrap();
        let recorder = Recorder::new();
        at_once(
            |_, random| {
                let counter = counter.clone();
                for _ in 0..8 {
                    let (delta, bound) = (random.i64(-2..3), random.i64(-3..3));
                    let call = match random.u8(0..8) {
                        0..=2 => CounterCall::Add(delta),
                        3 | 4 => CounterCall::AddWithin(delta, bound..=bound + 3),
                        5 => CounterCall::Swap(0),
                        6 => CounterCall::CompareExchange(bound, 0),
                        _ => CounterCall::Get,
                    };
                    let _ = recorder
                        .record(call.clone(), || call_counter(&engine, &counter, &call, me));
                    // There may be no room while it is not at 0.
                    let other = &others[random.usize(..2)];
                    if engine.counter_add(other, 1, me, 0).is_ok() {
                        engine.counter_add(other, -1, me, 0).unwrap();
                    }
                }
            },
            seed,
        );
        let history = recorder.into_events();
        assert!(
            is_linearizable::<CounterSpecification>(&0, &history),
            "history {seed}: {history:#?}"
        );
    }
}

fn call_counter(
    engine: &Engine,
    counter: &CounterRef,
    call: &CounterCall,
    me: SessionId,
) -> Result<i64, i64> {
    // The other names give their cell back, so that there is room in the end.
    let until_room = |act: &dyn Fn() -> sprag_core::Result<Result<i64, i64>>| loop {
        match act() {
            Ok(answer) => return answer,
            Err(Error::Full { .. }) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    };
    until_room(&|| {
        Ok(match *call {
            CounterCall::Add(delta) => Ok(engine.counter_add(counter, delta, me, 0)?),
            CounterCall::AddWithin(delta, ref bounds) => {
                match engine.counter_add_within(counter, delta, bounds, me, 0)? {
                    Added::To(sum) => Ok(sum),
                    Added::Refused(number) => Err(number),
                }
            }
            CounterCall::Swap(new) => Ok(engine.counter_swap(counter, new, me, 0)?),
            CounterCall::CompareExchange(expected, new) => engine
                .counter_compare_exchange(counter, expected, new, me, 0)?
                .map(|()| new),
            CounterCall::Get => Ok(engine.counter_get(counter)),
            CounterCall::AddStriped(_) | CounterCall::AddStripedWithin(..) => {
                unreachable!("not by a plain handle")
            }
        })
    })
}

// property 10
#[test]
fn every_history_of_a_striped_counter_has_an_order_that_explains_it() {
    for seed in 0..histories() {
        let (engine, me) = engine_with_session(CAPS);
        let counter = engine.counter(b"one").unwrap();
        let striped = engine.counter_striped(&counter, me, 0).unwrap();
        // Open when it begins, with something in a stripe.
        for delta in [1, -1].into_iter().cycle().take(21) {
            engine.striped_add(&striped, 0, delta).unwrap();
        }
        let recorder = Recorder::new();
        at_once(
            |lane, random| {
                let add_striped = |call: &CounterCall| match call {
                    CounterCall::AddStripedWithin(delta, bounds) => engine
                        .striped_add_within(&striped, lane, *delta, bounds)
                        .unwrap()
                        .map(|()| 0),
                    CounterCall::AddStriped(delta) => {
                        engine.striped_add(&striped, lane, *delta).unwrap();
                        Ok(0)
                    }
                    call => call_counter(&engine, &counter, call, me),
                };
                for _ in 0..8 {
                    let (delta, bound) = (random.i64(-2..3), random.i64(-3..3));
                    let call = match random.u8(0..16) {
                        0..=6 => CounterCall::AddStriped(delta),
                        7 => CounterCall::AddStripedWithin(delta, bound..=bound + 3),
                        8 | 9 => CounterCall::AddStripedWithin(delta, -200..=200),
                        10 => CounterCall::Add(delta),
                        11 => CounterCall::Swap(bound),
                        _ => CounterCall::Get,
                    };
                    let _ = recorder.record(call.clone(), || add_striped(&call));
                }
            },
            seed,
        );
        let history = recorder.into_events();
        assert!(
            is_linearizable::<CounterSpecification>(&1, &history),
            "history {seed}: {history:#?}"
        );
    }
}

/// One key of a limiter: its value, stepped by the arithmetic that has its own proof.
struct KeySpecification;

#[derive(Clone, Debug)]
struct Check {
    prepared: Prepared,
    now_ns: u64,
    /// `None`: a peek.
    cost: Option<u64>,
}

impl Specification for KeySpecification {
    type State = u128;
    type Call = Check;
    type Answer = (bool, u64);

    fn step(value: &u128, call: &Check, answer: &(bool, u64)) -> Option<u128> {
        let moment = Moment {
            now_ns: call.now_ns,
            base_ns: UNIX_NS,
        };
        let cost = call.cost.unwrap_or(0);
        let verdict = call.prepared.check(*value, moment, cost);
        let decision = call.prepared.decision(verdict, *value, moment, cost);
        let after = match verdict {
            Verdict::Allowed { new_value } => new_value,
            Verdict::Refused | Verdict::Never => *value,
        };
        (*answer == (decision.is_allowed(), decision.remaining())).then_some(after)
    }
}

// property 12
#[test]
fn every_history_of_a_limiter_key_has_an_order_that_explains_it() {
    for seed in 0..histories() {
        let (engine, me) = engine_with_session(CAPS);
        let text = ["5/second", "1000/second;burst=6", "9/second;window=fixed"][seed as usize % 3];
        let limit = Limit::parse(text).unwrap();
        let limiter = engine.open_limiter(b"l", limit, false, me, 0).unwrap();
        let key = if seed.is_multiple_of(2) {
            b"short".to_vec()
        } else {
            vec![1; 40]
        };
        let (recorder, now_ns) = (Recorder::new(), AtomicU64::new(0));
        at_once(
            |_, random| {
                for _ in 0..8 {
                    let now_ns = now_ns.fetch_add(random.u64(0..SECOND / 100), Ordering::Relaxed);
                    let cost = random.bool().then(|| random.u64(0..3)).or(Some(1));
                    let cost = cost.filter(|_| random.u8(0..8) > 0);
                    let call = Check {
                        prepared: limit.prepare(),
                        now_ns,
                        cost,
                    };
                    recorder.record(call, || {
                        let checked = match cost {
                            Some(cost) => engine.check(&limiter, &key, cost, me, now_ns).unwrap(),
                            None => engine.peek(&limiter, &key, now_ns).unwrap(),
                        };
                        assert!(!checked.is_overflow);
                        (checked.decision.is_allowed(), checked.decision.remaining())
                    });
                }
            },
            seed,
        );
        let history = recorder.into_events();
        assert!(
            is_linearizable::<KeySpecification>(&0, &history),
            "history {seed}: {history:#?}"
        );
    }
}

// property 12
#[test]
fn no_key_gets_more_than_its_burst_from_threads_that_also_fight_for_the_last_cells() {
    for seed in 0..histories() / 10 {
        let (engine, me) = engine_with_session(CAPS);
        let limit = Limit::parse("5/366d").unwrap();
        let limiter = engine.open_limiter(b"l", limit, false, me, 0).unwrap();
        // More keys than the cap; costs of 0 leave some idle, so that cells change keys.
        let admitted: Vec<AtomicU64> = (0..40).map(|_| AtomicU64::new(0)).collect();
        at_once(
            |_, random| {
                for _ in 0..300 {
                    let (key, cost) = (random.u8(0..40), random.u64(0..3));
                    let checked = engine.check(&limiter, &[key], cost, me, 0).unwrap();
                    if checked.decision.is_allowed() {
                        admitted[usize::from(key)].fetch_add(cost, Ordering::Relaxed);
                    }
                }
            },
            seed,
        );
        for (key, admitted) in admitted.iter().enumerate() {
            let admitted = admitted.load(Ordering::Relaxed);
            assert!(admitted <= 5, "key {key} got {admitted}, run {seed}");
        }
        // Threads that are just inserting may pass the cap.
        assert!(engine.limiter_key_count() <= 16 + THREADS as u64);
    }
}

// property 12
#[test]
fn no_key_has_more_than_its_burst_taken_and_not_given_back_at_any_time() {
    for seed in 0..histories() / 10 {
        let (engine, me) = engine_with_session(CAPS);
        let text = ["5/366d", "5/366d;window=fixed", "5/366d;window=sliding"][seed as usize % 3];
        let limit = Limit::parse(text).unwrap();
        let limiter = engine.open_limiter(b"l", limit, false, me, 0).unwrap();
        let taken: Vec<AtomicU64> = (0..3).map(|_| AtomicU64::new(0)).collect();
        let given = AtomicU64::new(0);
        at_once(
            |_, random| {
                let mut outstanding = Vec::new();
                for _ in 0..200 {
                    let key = random.usize(0..3);
                    if random.bool() && !outstanding.is_empty() {
                        let (key, checked): (usize, Checked) =
                            outstanding.swap_remove(random.usize(0..outstanding.len()));
                        // Before: whoever takes what comes back is to find room for it.
                        let cost = checked.decision.cost();
                        taken[key].fetch_sub(cost, Ordering::Relaxed);
                        let refunded = engine.refund(&limiter, checked, || 0).unwrap();
                        given.fetch_add(refunded.cost(), Ordering::Relaxed);
                        taken[key].fetch_add(cost - refunded.cost(), Ordering::Relaxed);
                        continue;
                    }
                    let cost = random.u64(1..3);
                    let checked = engine.check(&limiter, &[key as u8], cost, me, 0).unwrap();
                    if checked.decision.is_allowed() {
                        let before = taken[key].fetch_add(cost, Ordering::Relaxed);
                        assert!(before + cost <= 5, "key {key}, run {seed}");
                        outstanding.push((key, checked));
                    }
                }
            },
            seed,
        );
        assert!(given.load(Ordering::Relaxed) > 0, "run {seed}");
    }
}

// property 12
#[test]
fn no_key_gets_more_than_the_greater_burst_while_its_limit_is_changed_back_and_forth() {
    for seed in 0..histories() / 10 {
        let (engine, me) = engine_with_session(CAPS);
        let limits = ["4/366d", "7/366d"].map(|text| Limit::parse(text).unwrap());
        let limiter = engine.open_limiter(b"l", limits[0], false, me, 0).unwrap();
        let admitted: Vec<AtomicU64> = (0..24).map(|_| AtomicU64::new(0)).collect();
        at_once(
            |thread, random| {
                let mut limiter = limiter.clone();
                for _ in 0..200 {
                    if thread == 0 && random.u8(0..8) == 0 {
                        let limit = limits[random.usize(0..2)];
                        limiter = engine.open_limiter(b"l", limit, true, me, 0).unwrap();
                    }
                    let key = random.u8(0..24);
                    let checked = engine.check(&limiter, &[key], 1, me, 0).unwrap();
                    if checked.decision.is_allowed() {
                        admitted[usize::from(key)].fetch_add(1, Ordering::Relaxed);
                    }
                }
            },
            seed,
        );
        for (key, admitted) in admitted.iter().enumerate() {
            let admitted = admitted.load(Ordering::Relaxed);
            assert!(admitted <= 7, "key {key} got {admitted}, run {seed}");
        }
    }
}
