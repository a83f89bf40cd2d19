//! Joint limiters one step after another, against one bare limit for each of theirs: the same verdicts, and the same
//! left. Times are arguments.
//!
//! The arithmetic of limits has its own oracle (`limit_arithmetic`); here it is trusted, and that several limits
//! decide as one is tested, and what the table makes of it.

mod support;

use proptest::prelude::*;
use sprag_core::limit::{Moment, Prepared, Verdict};
use sprag_core::region::Caps;
use sprag_core::{Engine, JointChecked, JointRef, Limit, SessionId};
use std::collections::BTreeMap;
use support::{SMALL, UNIX_NS, engine_with_session, model_config};

/// Limits that differ in every way: kind, rate, width of a value, burst, never refilled, all but never used up.
const LIMITS: [&str; 12] = [
    "3/second",
    "7/10s;burst=4",
    "2/second;window=fixed",
    "0/second",
    "3/second;window=sliding",
    "1000/second;burst=2",
    "1000000000/second;burst=100",
    "30/minute;window=sliding",
    "5/3s;window=fixed",
    "999983/second;burst=1000000",
    "10/second;burst=3000",
    "1/5s;burst=9",
];

/// Keys' cap in the cases about room: few enough to be at it most of the time.
const KEY_CAP: usize = 4;

fn moment(now_ns: u64) -> Moment {
    Moment {
        now_ns,
        base_ns: UNIX_NS,
    }
}

fn open(engine: &Engine, limits: &[usize], by: SessionId) -> JointRef {
    let limits: Vec<Limit> = limits
        .iter()
        .map(|at| LIMITS[*at].parse().unwrap())
        .collect();
    engine.open_joint(b"j", &limits, by, 0).unwrap()
}

/// Short and long keys.
fn key_bytes(key: usize) -> Vec<u8> {
    vec![b'k' + key as u8; if key.is_multiple_of(3) { 40 } else { 3 }]
}

/// What each limit says of `values` to `cost`, and what they become: all of them, or none.
fn decided(
    limits: &[Prepared],
    values: &[u128],
    moment: Moment,
    cost: u64,
) -> (Vec<(bool, u64)>, Vec<u128>) {
    let verdicts = limits.iter().zip(values);
    let verdicts: Vec<Verdict> = verdicts
        .map(|(limit, value)| limit.check(*value, moment, cost))
        .collect();
    let allows = |verdict: &Verdict| matches!(verdict, Verdict::Allowed { .. });
    let is_allowed = verdicts.iter().all(allows);
    let after: Vec<u128> = (verdicts.iter().zip(values))
        .map(|(verdict, value)| match verdict {
            Verdict::Allowed { new_value } if is_allowed => *new_value,
            _ => *value,
        })
        .collect();
    let told = (limits.iter().zip(&verdicts).zip(&after))
        .map(|((limit, verdict), value)| (allows(verdict), limit.peek(*value, moment).remaining()))
        .collect();
    (told, after)
}

fn told(checked: &JointChecked<'_>) -> Vec<(bool, u64)> {
    checked
        .decisions()
        .map(|decision| (decision.is_allowed(), decision.remaining()))
        .collect()
}

/// Steps of time both ways: from none to windows' lengths.
fn passing() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => Just(0_i64),
        3 => 0..50_i64,
        3 => -50..50_i64,
        3 => -1_000_000..5_000_000_i64,
        3 => -500_000_000..1_500_000_000_i64,
        1 => -20_000_000_000..90_000_000_000_i64,
    ]
}

fn some_limits() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        3 => prop::collection::vec(0..LIMITS.len(), 2..=6),
        // Buckets of 64 bits, which have code of their own.
        1 => prop::collection::vec(prop::sample::select(vec![5, 6, 10, 11]), 2..=3),
        // Of which one has drained each time, and the other never has.
        1 => Just(vec![6, 10]),
    ]
}

proptest! {
    #![proptest_config(model_config())]

    // property 12
    #[test]
    fn several_limits_decide_as_each_of_them_would_with_stamps_in_any_order(
        limits in some_limits(),
        steps in prop::collection::vec((passing(), 0..3_usize, prop_oneof![0..4_u64, 0..100_u64, 0..200_u64, 67_108_860..67_108_864_u64], any::<bool>()), 1..150),
    ) {
        let (engine, me) = engine_with_session(SMALL);
        let joint = open(&engine, &limits, me);
        let prepared: Vec<Prepared> = joint.limits().iter().map(Limit::prepare).collect();
        let mut keys = vec![vec![0_u128; prepared.len()]; 3];
        let mut now_ns = 100_000_000_000_u64;
        for (ns, key, cost, is_peek) in steps {
            now_ns = now_ns.saturating_add_signed(ns);
            let moment = moment(now_ns);
            let cost = if is_peek { 0 } else { cost };
            let (expected, after) = decided(&prepared, &keys[key], moment, cost);
            keys[key] = after;
            let name = key_bytes(key);
            let checked = if is_peek {
                engine.peek_joint(&joint, &name, now_ns).unwrap()
            } else {
                engine.check_joint(&joint, &name, cost, me, now_ns).unwrap()
            };
            prop_assert_eq!(told(&checked), &expected[..], "of key {} at {}", key, now_ns);
            prop_assert_eq!(checked.is_allowed(), expected.iter().all(|(is_allowed, _)| *is_allowed));
            prop_assert!(!checked.is_overflow);
        }
        let check = engine.check_region();
        prop_assert!(check.findings.is_empty(), "{:?}", check.findings);
    }
}

/// What a table of `KEY_CAP` keys with one shared entry for the rest does. Which of the idle keys makes room for a
/// new one is the table's own business, and a key that made room starts anew at the shared entry's level: so a key
/// has every state that fits all that was seen.
struct Model {
    limits: Vec<Prepared>,
    moment: Moment,
    keys: BTreeMap<usize, Vec<Vec<u128>>>,
    overflow: Vec<u128>,
}

impl Model {
    fn is_busy(&self, values: &[u128]) -> bool {
        let mut both = self.limits.iter().zip(values);
        both.any(|(limit, value)| !limit.is_full(*value, self.moment))
    }

    /// The least and the most of the other keys that can't make room now.
    fn others_busy(&self, key: usize) -> (usize, usize) {
        let others = || self.keys.iter().filter(|(other, _)| **other != key);
        let surely = others().filter(|(_, states)| states.iter().all(|s| self.is_busy(s)));
        let perhaps = others().filter(|(_, states)| states.iter().any(|s| self.is_busy(s)));
        (surely.count(), perhaps.count())
    }

    /// What the key's state may be now, if it has an entry or is given one.
    fn states(&self, key: usize) -> Vec<Vec<u128>> {
        let mut states = self.keys.get(&key).cloned().unwrap_or_default();
        if states.is_empty() || states.iter().any(|state| !self.is_busy(state)) {
            states.push(self.overflow.clone());
        }
        states
    }

    /// The states after a check that was answered as `seen`.
    fn after(&self, states: Vec<Vec<u128>>, cost: u64, seen: &[(bool, u64)]) -> Vec<Vec<u128>> {
        let mut after: Vec<Vec<u128>> = states
            .into_iter()
            .filter_map(|state| {
                let (told, after) = decided(&self.limits, &state, self.moment, cost);
                (told == seen).then_some(after)
            })
            .collect();
        after.sort_unstable();
        after.dedup();
        after
    }
}

proptest! {
    #![proptest_config(model_config())]

    // property 11, property 12
    #[test]
    fn joint_keys_and_their_overflow_do_what_a_naive_model_does(
        limits in some_limits(),
        steps in prop::collection::vec((prop_oneof![2 => Just(0_u64), 1 => 1..1_000_000_u64, 1 => 1..3_000_000_000_u64], 0..9_usize, 0..4_u64, any::<bool>()), 1..100),
    ) {
        let (engine, me) = engine_with_session(Caps { joint_keys: KEY_CAP as u32, ..SMALL });
        let joint = open(&engine, &limits, me);
        let limits: Vec<Prepared> = joint.limits().iter().map(Limit::prepare).collect();
        let mut model = Model {
            overflow: vec![0; limits.len()],
            limits,
            moment: moment(1),
            keys: BTreeMap::new(),
        };
        for (ns, key, cost, is_peek) in steps {
            model.moment.now_ns += ns;
            let (name, now_ns) = (key_bytes(key), model.moment.now_ns);
            if is_peek && ns > 0 {
                let before = engine.joint_key_count();
                let seen = told(&engine.peek_joint(&joint, &name, now_ns).unwrap());
                prop_assert!(!model.after(model.states(key), 0, &seen).is_empty());
                prop_assert_eq!(engine.joint_key_count(), before);
                continue;
            }
            let checked = engine.check_joint(&joint, &name, cost, me, now_ns).unwrap();
            let seen = told(&checked);
            let (surely, perhaps) = model.others_busy(key);
            if checked.is_overflow {
                let may_be_out = model.keys.get(&key).is_none_or(|s| s.iter().any(|s| !model.is_busy(s)));
                prop_assert!(may_be_out && perhaps >= KEY_CAP, "there was room");
                let after = model.after(vec![model.overflow.clone()], cost, &seen);
                prop_assert_eq!(after.len(), 1, "{:?} from the shared entry", seen);
                model.overflow.clone_from(&after[0]);
                model.keys.remove(&key);
            } else {
                prop_assert!(surely < KEY_CAP, "there was no room");
                let after = model.after(model.states(key), cost, &seen);
                prop_assert!(!after.is_empty(), "{:?} from {:?}", seen, model.states(key));
                model.keys.insert(key, after);
            }
            prop_assert!(engine.joint_key_count() <= KEY_CAP as u64);
        }
        let check = engine.check_region();
        prop_assert!(check.findings.is_empty(), "{:?}", check.findings);
    }
}

// property 12
#[test]
fn a_limit_that_never_drains_counts_on_however_much_is_taken_while_another_drains() {
    let (engine, me) = engine_with_session(SMALL);
    let joint = open(&engine, &[6, 10], me);
    let (cost, mut now_ns) = (40, 1_000);
    // More than any state says at once, time and again.
    for left in (0..75).rev() {
        now_ns += 1_000;
        let checked = engine.check_joint(&joint, b"k", cost, me, now_ns).unwrap();
        assert!(checked.is_allowed());
        let seen = told(&checked);
        assert_eq!(
            seen,
            [(true, 60), (true, cost * left)],
            "limits: each counts it"
        );
    }
    let checked = engine.check_joint(&joint, b"k", cost, me, now_ns).unwrap();
    assert!(!checked.is_allowed());
}
