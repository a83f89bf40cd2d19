//! Histories of real threads that share one lock, upgrade and downgrade it, of threads that take permits of
//! one semaphore, and of threads that take those of one key of a limiter while its capacity changes: each has an
//! order of one operation after another that explains every answer.

mod history;
#[path = "history/recorder.rs"]
mod recorder;
mod support;
#[path = "history/threads.rs"]
mod threads;

use history::{Event, Specification, is_linearizable};
use recorder::Recorder;
use sprag_core::admission::Wants;
use sprag_core::concurrency::ConcurrencyRef;
use sprag_core::lock::{Attempt, Grant, Released, Renewed, Upgrade};
use sprag_core::region::Caps;
use sprag_core::{Engine, Error, Name, SessionId};
use support::{FLOOR, engine, is_soak, session};
use threads::{THREADS, at_once};

/// How many histories of each kind: ten times as many with `SPRAG_SOAK=1`.
fn histories() -> u64 {
    if is_soak() { 10_000 } else { 1_000 }
}

/// Few permits, so that each is used again and again.
const CAPS: Caps = Caps {
    objects: 16,
    limiter_keys: 16,
    joint_keys: 16,
    sessions: 16,
    waiters: 16,
    permits: 6,
    key_chunks: 16,
};

/// Longer than any history: leases that run out are for the models of one step after another.
const LEASE_NS: u64 = 1_000_000_000;
const CAPACITY: u32 = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Call {
    Try(Wants),
    Release(u64),
    Renew(u64),
    Upgrade(u64),
    EndUpgrade(u64),
    Downgrade(u64),
    /// The capacity of the limiter's key is another from now on.
    Change(u32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    /// The token of the hold that began, went on or was ended.
    Done(u64),
    Refused,
    /// More is wanted than there can be.
    Above,
    /// To an upgrade: others share it still, and none but this one waits for that.
    Wait,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    last: u64,
    /// Token, how much, and whether alone; by token.
    holds: Vec<(u64, u32, bool)>,
    /// The token of the one that waits to have the lock alone.
    upgrading: Option<u64>,
    /// Of the limiter's key.
    capacity: u32,
}

struct Pool;

impl Specification for Pool {
    type State = State;
    type Call = Call;
    type Answer = Answer;

    fn step(state: &State, call: &Call, answer: &Answer) -> Option<State> {
        let mut after = state.clone();
        let place = |token: u64| state.holds.iter().position(|hold| hold.0 == token);
        let expected = match *call {
            Call::Try(wants) => {
                let (amount, is_alone) = match wants {
                    Wants::Permits { amount, .. } | Wants::Slots { amount, .. } => (amount, false),
                    wants => (1, wants == Wants::Exclusive),
                };
                let used: u32 = state.holds.iter().map(|hold| hold.1).sum();
                let has_room = match wants {
                    Wants::Permits { capacity, .. } => used + amount <= capacity,
                    Wants::Slots { .. } => used + amount <= state.capacity,
                    Wants::Exclusive => used == 0,
                    _ => state.upgrading.is_none() && !state.holds.iter().any(|hold| hold.2),
                };
                if matches!(wants, Wants::Slots { .. }) && amount > state.capacity {
                    Answer::Above
                } else if has_room {
                    after.last = match (wants, answer) {
                        // A grant that a change called off spends a token.
                        (Wants::Slots { .. }, Answer::Done(token)) => (*token).max(state.last + 1),
                        _ => state.last + 1,
                    };
                    after.holds.push((after.last, amount, is_alone));
                    Answer::Done(after.last)
                } else {
                    Answer::Refused
                }
            }
            Call::Change(capacity) => {
                after.capacity = capacity;
                Answer::Done(0)
            }
            Call::Release(token) => match place(token) {
                Some(at) => {
                    after.holds.remove(at);
                    after.upgrading = state.upgrading.filter(|upgrading| *upgrading != token);
                    Answer::Done(token)
                }
                None => Answer::Refused,
            },
            Call::Renew(token) => match place(token) {
                Some(_) => Answer::Done(token),
                None => Answer::Refused,
            },
            Call::Upgrade(token) => match (place(token), state.upgrading) {
                (None, _) => Answer::Refused,
                (_, Some(other)) if other != token => Answer::Refused,
                (Some(_), _) if state.holds.len() > 1 => {
                    after.upgrading = Some(token);
                    Answer::Wait
                }
                (Some(at), _) => {
                    after.upgrading = None;
                    if !state.holds[at].2 {
                        after.last += 1;
                        after.holds[at] = (after.last, 1, true);
                    }
                    Answer::Done(after.holds[at].0)
                }
            },
            Call::EndUpgrade(token) => {
                after.upgrading = state.upgrading.filter(|upgrading| *upgrading != token);
                Answer::Done(token)
            }
            Call::Downgrade(token) => match place(token) {
                Some(at) => {
                    after.holds[at].2 = false;
                    Answer::Done(token)
                }
                None => Answer::Refused,
            },
        };
        (expected == *answer).then_some(after)
    }
}

fn done(is_done: bool, token: u64) -> Answer {
    if is_done {
        Answer::Done(token)
    } else {
        Answer::Refused
    }
}

/// What histories are of: how it is named, and what is wanted of it.
trait Subject: Sync {
    fn name(&self, engine: &Engine) -> Name {
        engine.lock_name(b"one").unwrap()
    }

    fn wants(&self, random: &mut fastrand::Rng, engine: &Engine) -> Wants;

    /// The capacity that a thread sets now, if it does.
    fn change(&self, _: &mut fastrand::Rng) -> Option<u32> {
        None
    }
}

impl<F: Fn(&mut fastrand::Rng) -> Wants + Sync> Subject for F {
    fn wants(&self, random: &mut fastrand::Rng, _: &Engine) -> Wants {
        self(random)
    }
}

/// A key of a limiter whose capacity changes.
struct Key;

impl Key {
    fn open(engine: &Engine, capacity: u32, update: bool) -> ConcurrencyRef {
        let by = SessionId::DETACHED;
        let opened = engine.open_concurrency(b"limiter", capacity, update, by, 0, |_| {});
        opened.unwrap()
    }
}

impl Subject for Key {
    fn name(&self, engine: &Engine) -> Name {
        let limiter = Self::open(engine, CAPACITY, false);
        engine.slots_name(limiter, b"key").unwrap()
    }

    fn wants(&self, random: &mut fastrand::Rng, engine: &Engine) -> Wants {
        let limiter = engine.concurrency(b"limiter").unwrap().unwrap();
        Wants::slots(random.u32(1..=CAPACITY), limiter).unwrap()
    }

    fn change(&self, random: &mut fastrand::Rng) -> Option<u32> {
        (random.u8(0..4) == 0).then(|| random.u32(2..=CAPACITY))
    }
}

fn history(seed: u64, subject: &impl Subject) -> Vec<Event<Call, Answer>> {
    let engine = engine(CAPS);
    let sessions: Vec<SessionId> = (0..THREADS).map(|_| session(&engine)).collect();
    let (name, recorder) = (subject.name(&engine), Recorder::new());
    at_once(
        |thread, random| {
            let mut held: Option<Grant> = None;
            for _ in 0..7 {
                if let Some(capacity) = subject.change(random) {
                    recorder.record(Call::Change(capacity), || {
                        Key::open(&engine, capacity, true);
                        Answer::Done(0)
                    });
                    continue;
                }
                let Some(grant) = held else {
                    let wants = subject.wants(random, &engine);
                    let take = || {
                        let by = sessions[thread];
                        match engine.try_get(&name, wants, by, 0, LEASE_NS) {
                            Ok(Attempt::Granted(grant)) => {
                                held = Some(grant);
                                Answer::Done(grant.token)
                            }
                            Ok(Attempt::Busy) => Answer::Refused,
                            Err(Error::AboveCapacity { .. }) => Answer::Above,
                            Err(error) => panic!("{error}"),
                        }
                    };
                    recorder.record(Call::Try(wants), take);
                    continue;
                };
                let token = grant.token;
                let wants = subject.wants(random, &engine);
                let is_permit = matches!(wants, Wants::Permits { .. } | Wants::Slots { .. });
                match random.u8(0..8) {
                    0 => {
                        recorder.record(Call::Renew(token), || {
                            let renewed = engine.renew(&grant, 0, LEASE_NS).unwrap();
                            done(renewed != Renewed::NotHeld, token)
                        });
                    }
                    1..=3 if !is_permit && !grant.is_plain() => {
                        let answer = recorder.record(Call::Upgrade(token), || {
                            match engine.try_upgrade(&grant, 0, LEASE_NS).unwrap() {
                                Upgrade::Granted(grant) => {
                                    held = Some(grant);
                                    Answer::Done(grant.token)
                                }
                                Upgrade::Shared => Answer::Wait,
                                Upgrade::Conflict | Upgrade::NotHeld => Answer::Refused,
                            }
                        });
                        if answer == Answer::Wait {
                            recorder.record(Call::EndUpgrade(token), || {
                                engine.end_upgrade(&grant, 0);
                                Answer::Done(token)
                            });
                        }
                    }
                    4 if !is_permit => {
                        recorder.record(Call::Downgrade(token), || {
                            let downgraded = engine.downgrade(&grant, 0).unwrap();
                            held = downgraded.map(|(grant, _)| grant).or(held);
                            done(downgraded.is_some(), token)
                        });
                    }
                    // Now and then twice with the same grant: the second may free nothing.
                    _ => {
                        recorder.record(Call::Release(token), || {
                            let released = engine.release(&grant, || 0);
                            done(released != Released::NotHeld, token)
                        });
                        if random.bool() {
                            held = None;
                        }
                    }
                }
            }
        },
        seed,
    );
    let found = engine.check_region().findings;
    assert!(found.is_empty(), "history {seed}: {found:?}");
    recorder.into_events()
}

fn check(subject: &impl Subject) {
    let initial = State {
        last: FLOOR,
        holds: Vec::new(),
        upgrading: None,
        capacity: CAPACITY,
    };
    for seed in 0..histories() {
        let history = history(seed, subject);
        assert!(
            is_linearizable::<Pool>(&initial, &history),
            "history {seed}: {history:#?}"
        );
    }
}

// property 1, property 2, property 3
#[test]
fn every_history_of_a_lock_in_shared_use_has_an_order_that_explains_it() {
    check(&|random: &mut fastrand::Rng| match random.u8(0..4) {
        0 => Wants::Exclusive,
        _ => Wants::Shared,
    });
}

// property 1, property 2, property 3
#[test]
fn every_history_of_a_semaphore_has_an_order_that_explains_it() {
    check(&|random: &mut fastrand::Rng| {
        Wants::permits(random.u32(1..=CAPACITY), CAPACITY).unwrap()
    });
}

// property 1, property 2, property 3, property 12
#[test]
fn every_history_of_a_key_whose_capacity_changes_has_an_order_that_explains_it() {
    check(&Key);
}
