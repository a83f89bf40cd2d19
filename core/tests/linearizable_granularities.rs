//! Threads that try keys, several keys, a partition and the table at the same time: each history has an order
//! of one after another that explains it.
//!
//! With one exception, as documented: an attempt may be refused for another's sake that is refused itself, for a
//! coarse lock's, if that one's thread loses its processor in the middle. So refusals that overlap another
//! refused attempt at some of the same keys need no explanation.

mod history;
#[path = "history/recorder.rs"]
mod recorder;
mod support;
#[path = "history/threads.rs"]
mod threads;

use history::{Event, Specification, is_linearizable};
use recorder::Recorder;
use sprag_core::admission::Wants;
use sprag_core::lock::{Attempt, Coarse, Grant};
use sprag_core::{Engine, Name, SessionId};
use support::{SECOND, SMALL, engine, is_soak, session};
use threads::at_once;

const KEYS: usize = 3;

/// What is tried, with the keys that it covers: all of a partition's, of the table's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Scope {
    keys: u8,
    is_shared: bool,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Keys,
    Partition(u32),
    Table,
}

#[derive(Clone, Debug)]
enum Call {
    /// The last: whether a refusal needs no explanation.
    Try(What, Scope, bool),
    Release(Scope),
}

/// Scopes that are held; an answer is whether it was granted, or released.
struct Scopes;

impl Specification for Scopes {
    type State = Vec<Scope>;
    type Call = Call;
    type Answer = bool;

    fn step(state: &Vec<Scope>, call: &Call, answer: &bool) -> Option<Vec<Scope>> {
        let mut after = state.clone();
        match call {
            Call::Try(_, _, true) if !answer => {}
            Call::Try(_, scope, _) => {
                let is_free = state
                    .iter()
                    .all(|held| held.keys & scope.keys == 0 || (held.is_shared && scope.is_shared));
                if is_free {
                    after.push(*scope);
                    after.sort_unstable();
                }
                if is_free != *answer {
                    return None;
                }
            }
            Call::Release(scope) => {
                let at = after.iter().position(|held| held == scope)?;
                after.remove(at);
                if !answer {
                    return None;
                }
            }
        }
        Some(after)
    }
}

struct World {
    engine: Engine,
    by: SessionId,
    names: Vec<Name>,
    partitions: Vec<u32>,
}

impl World {
    fn new() -> Self {
        let engine = engine(SMALL);
        let by = session(&engine);
        let keys = (0..KEYS as u8).map(|key| [b'k', key]);
        let names = keys
            .clone()
            .map(|key| engine.lock_name(&key).unwrap())
            .collect();
        let partitions = keys.map(|key| engine.partition_of(&key)).collect();
        Self {
            engine,
            by,
            names,
            partitions,
        }
    }

    /// Keys by the bits of a number, and whatever covers no key of ours.
    fn draw(&self, random: &mut fastrand::Rng) -> (What, Scope) {
        let all = (1 << KEYS) - 1;
        let scope = |keys, is_shared| Scope { keys, is_shared };
        match random.u8(0..10) {
            0..=2 => (What::Keys, scope(1 << random.usize(..KEYS), false)),
            3..=4 => (What::Keys, scope(1 << random.usize(..KEYS), true)),
            5..=6 => (What::Keys, scope(random.u8(1..=all), false)),
            7..=8 => {
                let partition = self.partitions[random.usize(..KEYS)];
                let is_in = |key: &usize| self.partitions[*key] == partition;
                let keys = (0..KEYS).filter(is_in).map(|key| 1 << key).sum();
                (What::Partition(partition), scope(keys, false))
            }
            _ => (What::Table, scope(all, false)),
        }
    }

    fn names(&self, keys: u8) -> Vec<Name> {
        let is_in = |key: &usize| keys >> key & 1 != 0;
        let names = (0..KEYS).filter(is_in).map(|key| self.names[key].clone());
        names.collect()
    }

    fn attempt(&self, what: What, scope: Scope) -> Option<Grant> {
        let (engine, by) = (&self.engine, self.by);
        let names = self.names(scope.keys);
        let coarse = |coarse| engine.try_get(&names[0], Wants::Coarse(coarse), by, 1, SECOND);
        let attempt = match what {
            What::Partition(partition) => coarse(Coarse::Partition(partition)),
            What::Table => coarse(Coarse::Table),
            What::Keys if scope.is_shared => engine.try_acquire_shared(&names[0], by, 1, SECOND),
            What::Keys if names.len() == 1 => engine.try_acquire(&names[0], by, 1, SECOND),
            What::Keys => engine.try_acquire_all(&names, by, 1, SECOND),
        };
        match attempt.unwrap() {
            Attempt::Granted(grant) => Some(grant),
            Attempt::Busy => None,
        }
    }
}

fn history(seed: u64) -> Vec<Event<Call, bool>> {
    let world = World::new();
    let recorder = Recorder::new();
    at_once(
        |_, random| {
            let mut held: Vec<(Grant, Scope)> = Vec::new();
            for _ in 0..6 {
                if !held.is_empty() && random.u8(0..3) > 0 {
                    let (grant, scope) = held.swap_remove(random.usize(..held.len()));
                    recorder.record(Call::Release(scope), || {
                        let released = world.engine.release(&grant, || 1);
                        matches!(released, sprag_core::lock::Released::Done { .. })
                    });
                } else {
                    let (what, scope) = world.draw(random);
                    let mut granted = None;
                    recorder.record(Call::Try(what, scope, false), || {
                        granted = world.attempt(what, scope);
                        granted.is_some()
                    });
                    held.extend(granted.map(|grant| (grant, scope)));
                }
            }
        },
        seed,
    );
    recorder.into_events()
}

/// Marks the refusals that need no explanation.
fn mark_excused(history: &mut [Event<Call, bool>]) {
    let refused: Vec<_> = history
        .iter()
        .filter(|event| !event.answer)
        .filter_map(|event| match event.call {
            Call::Try(_, scope, _) => Some((event.asked, event.answered, scope)),
            Call::Release(_) => None,
        })
        .collect();
    for event in history {
        let (asked, answered) = (event.asked, event.answered);
        if let Call::Try(_, scope, is_excused) = &mut event.call {
            *is_excused = refused.iter().any(|(from, to, other)| {
                *from != asked && *from < answered && asked < *to && other.keys & scope.keys != 0
            });
        }
    }
}

/// A history, a line for each operation.
fn told(mut history: Vec<Event<Call, bool>>) -> String {
    history.sort_by_key(|event| event.asked);
    let line = |event: Event<Call, bool>| {
        let (asked, answered, answer) = (event.asked, event.answered, event.answer);
        let (what, scope) = match event.call {
            Call::Try(what, scope, _) => (format!("try {what:?}"), scope),
            Call::Release(scope) => ("release".to_owned(), scope),
        };
        let shared = if scope.is_shared { " shared" } else { "" };
        format!(
            "\n{asked:3}..{answered:3} {what} {:03b}{shared}: {answer}",
            scope.keys
        )
    };
    history.into_iter().map(line).collect()
}

// property 1, property 10
#[test]
fn every_history_of_all_granularities_has_an_order_that_explains_it() {
    let histories = if is_soak() { 200_000 } else { 3_000 };
    for seed in 0..histories {
        let mut history = history(seed);
        mark_excused(&mut history);
        assert!(
            is_linearizable::<Scopes>(&Vec::new(), &history),
            "history {seed}:{}",
            told(history)
        );
    }
}
