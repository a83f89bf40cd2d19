//! Histories of real threads on one key under several limits: each has an order of one operation after another that
//! explains every answer, of every limit. And keys that fight for cells: none gets more than any of its limits.

mod history;
#[path = "history/recorder.rs"]
mod recorder;
mod support;
#[path = "history/threads.rs"]
mod threads;

use history::{Specification, is_linearizable};
use recorder::Recorder;
use sprag_core::Limit;
use sprag_core::limit::{Moment, Prepared, Verdict};
use sprag_core::region::Caps;
use std::sync::atomic::{AtomicU64, Ordering};
use support::{SECOND, SMALL, UNIX_NS, engine_with_session, is_soak};
use threads::{THREADS, at_once};

/// How many histories: ten times as many with `SPRAG_SOAK=1`.
fn histories() -> u64 {
    if is_soak() { 10_000 } else { 1_000 }
}

/// One key: what each of its limits has used, stepped by the arithmetic that has its own proof.
struct KeySpecification;

#[derive(Clone, Debug)]
struct Check {
    limits: Vec<Prepared>,
    now_ns: u64,
    /// `None`: a peek.
    cost: Option<u64>,
}

impl Specification for KeySpecification {
    type State = Vec<u128>;
    type Call = Check;
    /// Of each limit: whether it allows, and what is left of it.
    type Answer = Vec<(bool, u64)>;

    fn step(values: &Vec<u128>, call: &Check, answer: &Vec<(bool, u64)>) -> Option<Vec<u128>> {
        let moment = Moment {
            now_ns: call.now_ns,
            base_ns: UNIX_NS,
        };
        let cost = call.cost.unwrap_or(0);
        let each = || call.limits.iter().zip(values);
        let verdicts: Vec<Verdict> = each()
            .map(|(limit, value)| limit.check(*value, moment, cost))
            .collect();
        let allows = |verdict: &Verdict| matches!(verdict, Verdict::Allowed { .. });
        let is_allowed = verdicts.iter().all(allows);
        let after: Vec<u128> = each()
            .zip(&verdicts)
            .map(|((_, value), verdict)| match verdict {
                Verdict::Allowed { new_value } if is_allowed => *new_value,
                _ => *value,
            })
            .collect();
        let told =
            (call.limits.iter().zip(&after).zip(&verdicts)).map(|((limit, value), verdict)| {
                (allows(verdict), limit.peek(*value, moment).remaining())
            });
        answer.iter().copied().eq(told).then_some(after)
    }
}

/// Limits of which some drain while others do not, so that all ways of an admission are met.
const MIXES: [&[&str]; 4] = [
    &["5/second", "1000/second;burst=3"],
    &["1000/second;burst=6", "9/second;window=fixed"],
    &["20/second;window=sliding", "300/second;burst=2", "7/minute"],
    &[
        "4/100ms;window=fixed",
        "2/5ms;burst=9",
        "8/second;window=sliding",
        "100/3s",
    ],
];

// property 10, property 12
#[test]
fn every_history_of_a_key_under_several_limits_has_an_order_that_explains_it() {
    for seed in 0..histories() {
        let (engine, me) = engine_with_session(SMALL);
        let mix = MIXES[seed as usize % MIXES.len()];
        let limits: Vec<Limit> = mix.iter().map(|text| text.parse().unwrap()).collect();
        let joint = engine.open_joint(b"j", &limits, me, 0).unwrap();
        let prepared: Vec<Prepared> = limits.iter().map(Limit::prepare).collect();
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
                        limits: prepared.clone(),
                        now_ns,
                        cost,
                    };
                    recorder.record(call, || {
                        let checked = match cost {
                            Some(cost) => engine.check_joint(&joint, &key, cost, me, now_ns),
                            None => engine.peek_joint(&joint, &key, now_ns),
                        };
                        let checked = checked.unwrap();
                        assert!(!checked.is_overflow);
                        checked
                            .decisions()
                            .map(|decision| (decision.is_allowed(), decision.remaining()))
                            .collect::<Vec<_>>()
                    });
                }
            },
            seed,
        );
        let history = recorder.into_events();
        assert!(
            is_linearizable::<KeySpecification>(&vec![0; limits.len()], &history),
            "history {seed}: {history:#?}"
        );
        assert_eq!(engine.check_region().findings, []);
    }
}

// property 11, property 12
#[test]
fn no_key_gets_more_than_the_least_of_its_limits_from_threads_that_also_fight_for_the_last_cells() {
    for seed in 0..histories() / 10 {
        let (engine, me) = engine_with_session(Caps {
            joint_keys: 16,
            ..SMALL
        });
        let limits = ["5/366d", "7/366d;window=fixed", "1000/second;burst=6"];
        let limits = limits.map(|text| text.parse().unwrap());
        let joint = engine.open_joint(b"j", &limits, me, 0).unwrap();
        // More keys than the cap; costs of 0 leave some idle, so that cells change keys.
        let admitted: Vec<AtomicU64> = (0..40).map(|_| AtomicU64::new(0)).collect();
        let now_ns = AtomicU64::new(0);
        at_once(
            |_, random| {
                for _ in 0..300 {
                    let (key, cost) = (random.u8(0..40), random.u64(0..3));
                    let now_ns = now_ns.fetch_add(random.u64(0..2_000_000), Ordering::Relaxed);
                    let checked = engine
                        .check_joint(&joint, &[key], cost, me, now_ns)
                        .unwrap();
                    if checked.is_allowed() {
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
        assert!(engine.joint_key_count() <= 16 + THREADS as u64);
        assert_eq!(engine.check_region().findings, []);
    }
}
