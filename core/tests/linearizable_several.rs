//! Histories of real threads that check several limiters in one call, or one of them: each has an order of one
//! operation after another that explains every answer.

mod history;
#[path = "history/recorder.rs"]
mod recorder;
mod support;
#[path = "history/threads.rs"]
mod threads;

use history::{Event, Specification, is_linearizable};
use recorder::Recorder;
use sprag_core::limit::{Moment, Prepared, Verdict};
use sprag_core::limiter::Asked;
use sprag_core::{Checked, Engine, LimiterRef, SessionId};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use support::{SECOND, SMALL, UNIX_NS, engine_with_session, is_soak};
use threads::{THREADS, at_once};

/// One limiter of each kind, with one key each.
const LIMITS: [&str; 3] = ["5/second", "1000/second;burst=6", "9/second;window=fixed"];

/// Which limiters, and how much of each: all above 0, or none.
#[derive(Clone, Debug)]
struct Call {
    parts: Vec<(usize, u64)>,
    now_ns: u64,
    prepared: [Prepared; 3],
}

struct Keys;

impl Specification for Keys {
    type State = [u128; 3];
    type Call = Call;
    /// Of each check, whether it was allowed and what remained.
    type Answer = Vec<(bool, u64)>;

    fn step(values: &[u128; 3], call: &Call, answer: &Vec<(bool, u64)>) -> Option<[u128; 3]> {
        let moment = Moment {
            now_ns: call.now_ns,
            base_ns: UNIX_NS,
        };
        let (mut after, mut all, mut alone) = (*values, Vec::new(), Vec::new());
        for &(which, cost) in &call.parts {
            let (prepared, value) = (&call.prepared[which], after[which]);
            let verdict = prepared.check(value, moment, cost);
            let decision = prepared.decision(verdict, value, moment, cost);
            all.push((decision.is_allowed(), decision.remaining()));
            let peeked = prepared.peek(values[which], moment);
            alone.push((true, peeked.remaining()));
            if let Verdict::Allowed { new_value } = verdict {
                after[which] = new_value;
            }
        }
        if all.iter().all(|(is_allowed, _)| *is_allowed) {
            return (*answer == all).then_some(after);
        }
        // Those that would be allowed say what is there.
        let told = all.iter().zip(alone);
        let told: Vec<_> = told
            .map(|(all, alone)| if all.0 { alone } else { *all })
            .collect();
        (*answer == told).then_some(*values)
    }
}

struct World {
    engine: Engine,
    me: SessionId,
    limiters: Vec<LimiterRef>,
    /// Keys that fit a cell, or that don't.
    key: Vec<u8>,
}

impl World {
    fn new(key_len: usize) -> Self {
        let (engine, me) = engine_with_session(SMALL);
        let open = |(which, text): (usize, &&str)| {
            let name = [b'l', which as u8];
            let limit = text.parse().unwrap();
            engine.open_limiter(&name, limit, false, me, 0).unwrap()
        };
        let limiters = LIMITS.iter().enumerate().map(open).collect();
        Self {
            engine,
            me,
            limiters,
            key: vec![b'k'; key_len],
        }
    }

    fn check(&self, parts: &[(usize, u64)], near: u32, now_ns: u64) -> (bool, Vec<Checked>) {
        let asked = parts.iter().map(|(which, cost)| Asked {
            limiter: &self.limiters[*which],
            key: &self.key,
            cost: *cost,
        });
        let mut answers = Vec::new();
        let is_allowed = self
            .engine
            .check_all(asked, self.me, near, now_ns, |_, checked| {
                answers.push(checked);
            });
        (is_allowed.unwrap(), answers)
    }
}

fn history(seed: u64) -> Vec<Event<Call, Vec<(bool, u64)>>> {
    let world = World::new(if seed.is_multiple_of(2) { 5 } else { 40 });
    let prepared = [0, 1, 2].map(|which| world.limiters[which].limit().prepare());
    let (recorder, now_ns) = (Recorder::new(), AtomicU64::new(0));
    at_once(
        |thread, random| {
            for _ in 0..8 {
                let now_ns = now_ns.fetch_add(random.u64(0..SECOND / 100), Ordering::Relaxed);
                let mut which = [0, 1, 2];
                random.shuffle(&mut which);
                let count = random.usize(1..=3);
                let is_look = random.u8(0..5) == 0;
                let cost = |random: &mut fastrand::Rng| if is_look { 0 } else { random.u64(1..3) };
                let parts: Vec<_> = which[..count]
                    .iter()
                    .map(|which| (*which, cost(random)))
                    .collect();
                let call = Call {
                    parts: parts.clone(),
                    now_ns,
                    prepared,
                };
                recorder.record(call, || {
                    if let [(which, cost)] = parts[..]
                        && random.bool()
                    {
                        let limiter = &world.limiters[which];
                        let checked = world
                            .engine
                            .check(limiter, &world.key, cost, world.me, now_ns)
                            .unwrap();
                        return vec![(checked.decision.is_allowed(), checked.decision.remaining())];
                    }
                    // Charges of their own, and the same one.
                    let near = thread as u32 % (1 + seed as u32 % 4);
                    let (_, answers) = world.check(&parts, near, now_ns);
                    answers
                        .iter()
                        .map(|checked| {
                            (checked.decision.is_allowed(), checked.decision.remaining())
                        })
                        .collect()
                });
            }
        },
        seed,
    );
    assert_eq!(world.engine.check_region().charges, 0);
    recorder.into_events()
}

// property 10, property 12
#[test]
fn every_history_of_several_limiters_in_one_call_has_an_order_that_explains_it() {
    let histories = if is_soak() { 10_000 } else { 1_000 };
    for seed in 0..histories {
        let history = history(seed);
        assert!(
            is_linearizable::<Keys>(&[0; 3], &history),
            "history {seed}: {history:#?}"
        );
    }
}

// property 10
#[test]
fn two_limiters_that_are_always_charged_together_have_the_same_used_at_every_look() {
    const CALLS: usize = 4_000;
    let (engine, me) = engine_with_session(SMALL);
    // Whole days, so that nothing drains.
    let open = |name: &[u8]| {
        let limit = "900000/day;window=fixed".parse().unwrap();
        engine.open_limiter(name, limit, false, me, 0).unwrap()
    };
    let limiters = [open(b"one"), open(b"two")];
    let keys: [&[u8]; 2] = [b"ann", b"all"];
    let call = |order: [usize; 2], cost: u64, near: u32| {
        let mut used = [0; 2];
        let asked = order.map(|which| Asked {
            limiter: &limiters[which],
            key: keys[which],
            cost,
        });
        let is_allowed = engine.check_all(asked, me, near, 0, |at, checked| {
            used[order[at]] = checked.decision.limit() - checked.decision.remaining();
        });
        assert!(is_allowed.unwrap());
        used
    };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let [one, two] = call([0, 1], 0, 0);
                assert_eq!(one, two, "all: a look saw one without the other");
            }
        });
        at_once(
            |thread, _| {
                // In both orders; and each answer is of one moment.
                let order = [[0, 1], [1, 0]][thread % 2];
                for _ in 0..CALLS {
                    let [one, two] = call(order, 1, thread as u32);
                    assert_eq!(one, two, "all: an answer saw one without the other");
                }
            },
            0,
        );
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(call([0, 1], 0, 0), [(THREADS * CALLS) as u64; 2]);
}
