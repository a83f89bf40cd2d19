//! Several limiters checked in one call, one step after another, against one value for each key: all or nothing,
//! among single checks, refunds and changes of limits. The arithmetic of limits has its own oracle.

mod support;

use proptest::prelude::*;
use sprag_core::limit::{Moment, Prepared, Verdict, convert};
use sprag_core::limiter::{Asked, CHARGED_MAX};
use sprag_core::region::Caps;
use sprag_core::{Checked, Engine, Error, LimiterRef, Refunded, SessionId};
use std::collections::HashMap;
use support::{SECOND, SMALL, UNIX_NS, engine_with_session, model_config};

/// One limiter of each kind, and what it is changed to.
const LIMITS: [[&str; 2]; 4] = [
    ["3/second", "5/second;burst=2"],
    ["1/10s;burst=4", "1/10s;burst=6"],
    ["4/second;window=fixed", "3/minute;window=fixed"],
    ["4/second;window=sliding", "6/second;window=sliding"],
];
const KEYS: usize = 3;

fn key_bytes(key: usize) -> Vec<u8> {
    vec![b'k' + key as u8; if key == 0 { 40 } else { 3 }]
}

fn limiter_of(engine: &Engine, which: usize, text: &str, by: SessionId, now_ns: u64) -> LimiterRef {
    let (name, limit) = ([b'l', which as u8], text.parse().unwrap());
    engine.open_limiter(&name, limit, true, by, now_ns).unwrap()
}

/// A limiter, a key and a cost.
type Wanted = (usize, usize, u64);

#[derive(Clone, Debug)]
enum Step {
    Pass(u64),
    Single(Wanted),
    Several(Vec<Wanted>),
    Refund(usize),
    Change(usize, usize),
}

fn wanted() -> impl Strategy<Value = Wanted> {
    (0..LIMITS.len(), 0..KEYS, 0..4_u64)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => prop_oneof![1..1_000_000_u64, 1..3 * SECOND].prop_map(Step::Pass),
        3 => wanted().prop_map(Step::Single),
        8 => prop::collection::vec(wanted(), 1..=CHARGED_MAX).prop_map(Step::Several),
        2 => any::<usize>().prop_map(Step::Refund),
        1 => (0..LIMITS.len(), 0..2_usize).prop_map(|(which, to)| Step::Change(which, to)),
    ]
}

struct Model {
    prepared: Vec<Prepared>,
    values: HashMap<(usize, usize), u128>,
    moment: Moment,
}

impl Model {
    fn value(&self, (which, key, _): Wanted) -> u128 {
        self.values.get(&(which, key)).copied().unwrap_or_default()
    }

    /// What each check says, one after another, and whether all are taken.
    fn check(&mut self, all: &[Wanted]) -> Vec<bool> {
        let before = self.values.clone();
        let mut answers = Vec::new();
        for &wanted in all {
            let (which, key, cost) = wanted;
            let verdict = self.prepared[which].check(self.value(wanted), self.moment, cost);
            answers.push(matches!(verdict, Verdict::Allowed { .. }));
            if let Verdict::Allowed { new_value } = verdict {
                self.values.insert((which, key), new_value);
            }
        }
        if answers.contains(&false) {
            self.values = before;
        }
        answers
    }

    fn remaining(&self, wanted: Wanted) -> u64 {
        self.prepared[wanted.0]
            .peek(self.value(wanted), self.moment)
            .remaining()
    }
}

fn check_all(
    engine: &Engine,
    limiters: &[LimiterRef],
    all: &[Wanted],
    by: SessionId,
    now_ns: u64,
) -> (bool, Vec<Checked>) {
    let keys: Vec<Vec<u8>> = all.iter().map(|(_, key, _)| key_bytes(*key)).collect();
    let asked = all.iter().zip(&keys).map(|((which, _, cost), key)| Asked {
        limiter: &limiters[*which],
        key,
        cost: *cost,
    });
    let mut answers = Vec::new();
    let is_allowed = engine
        .check_all(asked, by, 0, now_ns, |at, checked| {
            assert_eq!(at, answers.len());
            answers.push(checked);
        })
        .unwrap();
    (is_allowed, answers)
}

proptest! {
    #![proptest_config(model_config())]

    // property 10, property 12
    #[test]
    fn several_limiters_in_one_call_take_all_or_nothing(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let (engine, me) = engine_with_session(SMALL);
        let mut limiters: Vec<LimiterRef> = (0..LIMITS.len())
            .map(|which| limiter_of(&engine, which, LIMITS[which][0], me, 0))
            .collect();
        let mut model = Model {
            prepared: limiters.iter().map(|limiter| limiter.limit().prepare()).collect(),
            values: HashMap::new(),
            moment: Moment { now_ns: 1, base_ns: UNIX_NS },
        };
        let mut taken: Vec<(Wanted, Checked)> = Vec::new();
        for step in steps {
            let now_ns = model.moment.now_ns;
            match step {
                Step::Pass(ns) => model.moment.now_ns += ns,
                Step::Single(wanted) => {
                    let (which, key, cost) = wanted;
                    let limiter = &limiters[which];
                    let checked = engine.check(limiter, &key_bytes(key), cost, me, now_ns).unwrap();
                    let is_allowed = model.check(&[wanted])[0];
                    prop_assert_eq!(checked.decision.is_allowed(), is_allowed);
                    prop_assert_eq!(checked.decision.remaining(), model.remaining(wanted));
                    taken.push((wanted, checked));
                }
                Step::Several(all) => {
                    let (is_allowed, answers) = check_all(&engine, &limiters, &all, me, now_ns);
                    let expected = model.check(&all);
                    prop_assert_eq!(is_allowed, !expected.contains(&false), "all: {:?}", expected);
                    prop_assert_eq!(answers.len(), all.len());
                    for ((wanted, checked), expected) in all.into_iter().zip(answers).zip(expected) {
                        prop_assert_eq!(checked.decision.is_allowed(), expected);
                        prop_assert!(!checked.is_overflow);
                        if is_allowed {
                            taken.push((wanted, checked));
                        } else if expected {
                            prop_assert_eq!(checked.decision.cost(), 0);
                            prop_assert_eq!(checked.decision.remaining(), model.remaining(wanted));
                        }
                    }
                }
                Step::Refund(which) if !taken.is_empty() => {
                    let (wanted, checked) = taken.swap_remove(which % taken.len());
                    let before = engine.peek(&limiters[wanted.0], &key_bytes(wanted.1), now_ns);
                    let before = before.unwrap().decision.remaining();
                    let refunded = engine.refund(&limiters[wanted.0], checked, || now_ns).unwrap();
                    let after = engine.peek(&limiters[wanted.0], &key_bytes(wanted.1), now_ns);
                    let after = after.unwrap().decision.remaining();
                    prop_assert!(after - before <= wanted.2, "refund: {refunded:?}");
                    // What comes back in part is the arithmetic's to say: the key is begun anew, full.
                    if after != before || !matches!(refunded, Refunded::Void | Refunded::Over) {
                        model.moment.now_ns += 100 * SECOND;
                    }
                }
                Step::Refund(_) => {}
                Step::Change(which, to) => {
                    let changed = limiter_of(&engine, which, LIMITS[which][to], me, now_ns);
                    let (old, new) = (model.prepared[which], changed.limit().prepare());
                    if old != new {
                        for ((limiter, _), value) in &mut model.values {
                            if *limiter == which {
                                *value = convert(&old, *value, &new, model.moment);
                            }
                        }
                    }
                    // A stale reference decides by the new limit too: keep it now and then.
                    if now_ns.is_multiple_of(2) {
                        limiters[which] = changed;
                    }
                    model.prepared[which] = new;
                }
            }
            for (which, limiter) in limiters.iter().enumerate() {
                for key in 0..KEYS {
                    let now_ns = model.moment.now_ns;
                    let peeked = engine.peek(limiter, &key_bytes(key), now_ns).unwrap();
                    let expected = model.remaining((which, key, 0));
                    prop_assert_eq!(peeked.decision.remaining(), expected, "{} of {}", key, which);
                }
            }
            let check = engine.check_region();
            prop_assert_eq!((check.charges, check.findings), (0, vec![]));
        }
    }
}

fn world(limiter_keys: u32) -> (Engine, SessionId) {
    engine_with_session(Caps {
        limiter_keys,
        ..SMALL
    })
}

fn asked<'a>(limiter: &'a LimiterRef, key: &'a str, cost: u64) -> Asked<'a> {
    Asked {
        limiter,
        key: key.as_bytes(),
        cost,
    }
}

/// Whether all are allowed, and which of the answers came from the bucket of keys without room.
fn take(engine: &Engine, me: SessionId, all: &[Asked<'_>]) -> (bool, Vec<bool>) {
    let mut overflows = Vec::new();
    let taken = engine.check_all(all.iter().copied(), me, 0, 1, |_, checked| {
        overflows.push(checked.is_overflow);
    });
    (taken.unwrap(), overflows)
}

fn left(engine: &Engine, limiter: &LimiterRef, key: &str) -> u64 {
    let peeked = engine.peek(limiter, key.as_bytes(), 1).unwrap();
    peeked.decision.remaining()
}

// property 10, property 11
#[test]
fn more_keys_than_there_is_room_for_are_decided_by_the_bucket_that_they_share() {
    let (engine, me) = world(1);
    let limiter = limiter_of(&engine, 0, "4/day", me, 0);
    let call = |a, b| {
        take(
            &engine,
            me,
            &[asked(&limiter, "a", a), asked(&limiter, "b", b)],
        )
    };
    let (is_allowed, overflows) = call(1, 1);
    assert!(is_allowed && overflows.contains(&true), "{overflows:?}");
    // The other takes what is left, and one too much takes nothing.
    let (with_room, without) = if overflows[0] { ("b", "a") } else { ("a", "b") };
    let sum = |engine: &Engine| left(engine, &limiter, with_room) + left(engine, &limiter, without);
    assert_eq!(sum(&engine), 6);
    let most = asked(&limiter, without, 4);
    assert!(!take(&engine, me, &[asked(&limiter, with_room, 1), most]).0);
    assert_eq!(sum(&engine), 6);
}

// property 10
#[test]
fn keys_without_room_in_one_call_share_what_their_bucket_has() {
    let (engine, me) = world(1);
    let limiter = limiter_of(&engine, 0, "4/day", me, 0);
    assert!(take(&engine, me, &[asked(&limiter, "full", 1)]).0);
    let call = |a, b| {
        take(
            &engine,
            me,
            &[asked(&limiter, "a", a), asked(&limiter, "b", b)],
        )
    };
    assert_eq!(call(2, 3), (false, vec![true, true]));
    assert_eq!(left(&engine, &limiter, "a"), 4, "refused: nothing is taken");
    assert_eq!(call(2, 2), (true, vec![true, true]));
    assert_eq!(left(&engine, &limiter, "b"), 0);
}

// property 8
#[test]
fn none_and_too_many_at_once_are_refused_with_the_bounds() {
    let (engine, me) = world(16);
    let limiter = limiter_of(&engine, 0, "4/day", me, 0);
    for number in [0, CHARGED_MAX + 1] {
        let all = vec![asked(&limiter, "key", 1); number];
        let refused = engine.check_all(all, me, 0, 1, |_, _| panic!("no answer"));
        assert!(
            matches!(refused, Err(Error::OutOfRange { value, min: 1, max: 8, .. }) if value == number as u64)
        );
    }
    let all = [asked(&limiter, "key", 1), asked(&limiter, "", 1)];
    let refused = engine.check_all(all, me, 0, 1, |_, _| panic!("no answer"));
    assert!(matches!(refused, Err(Error::NameLength { len: 0, .. })));
    assert_eq!(left(&engine, &limiter, "key"), 4);
}

// property 12
#[test]
fn each_part_of_a_call_can_be_given_back_alone() {
    let (engine, me) = world(16);
    let limiters = [
        limiter_of(&engine, 0, "4/day", me, 0),
        limiter_of(&engine, 1, "9/day", me, 0),
    ];
    let mut answers = Vec::new();
    let all = [asked(&limiters[0], "key", 2), asked(&limiters[1], "key", 2)];
    let taken = engine.check_all(all, me, 0, 0, |_, checked| answers.push(checked));
    assert!(taken.unwrap());
    let refunded = engine
        .refund(&limiters[1], answers.remove(1), || 0)
        .unwrap();
    assert_eq!(refunded.cost(), 2);
    assert_eq!(left(&engine, &limiters[0], "key"), 2);
    assert_eq!(left(&engine, &limiters[1], "key"), 9);
}
