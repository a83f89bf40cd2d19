//! Limiter keys at their cap one step after another, against a naive model. Times are arguments and
//! only rise.
//!
//! The arithmetic of limits has its own oracle (`limit_arithmetic`); here it is trusted, and what the
//! tables make of it is tested.

mod support;

use proptest::prelude::*;
use sprag_core::limit::{Moment, Prepared, Refund, Reserve, Verdict, convert};
use sprag_core::region::Caps;
use sprag_core::{Checked, Engine, Limit, LimiterRef, Refunded, SessionId};
use std::collections::BTreeMap;
use support::{SMALL, UNIX_NS, engine_with_session, model_config};

/// Limits that differ in every way that a change of limit can: kind, rate, burst, never refilled.
const LIMITS: [&str; 6] = [
    "3/second",
    "1/10s;burst=4",
    "2/second;window=fixed",
    "0/second",
    "2/second;window=sliding",
    "1000/second;burst=2",
];

/// A key's cap in these cases: few enough to be at it most of the time.
const KEY_CAP: usize = 4;

#[derive(Clone, Debug)]
enum LimiterStep {
    Pass { ns: u64 },
    Check { key: usize, cost: u64 },
    Reserve { key: usize, cost: u64 },
    Refund { which: usize },
    Peek { key: usize },
    Change { limit: usize },
    Override { key: usize, limit: usize },
    Clear { key: usize },
}

fn limiter_step() -> impl Strategy<Value = LimiterStep> {
    prop_oneof![
        3 => prop_oneof![1..1_000_000_u64, 1..3_000_000_000_u64].prop_map(|ns| LimiterStep::Pass { ns }),
        8 => (0..9_usize, 0..4_u64).prop_map(|(key, cost)| LimiterStep::Check { key, cost }),
        2 => (0..9_usize, 0..4_u64).prop_map(|(key, cost)| LimiterStep::Reserve { key, cost }),
        4 => any::<usize>().prop_map(|which| LimiterStep::Refund { which }),
        2 => (0..9_usize).prop_map(|key| LimiterStep::Peek { key }),
        1 => (0..LIMITS.len()).prop_map(|limit| LimiterStep::Change { limit }),
        1 => (0..9_usize, 0..LIMITS.len()).prop_map(|(key, limit)| LimiterStep::Override { key, limit }),
        1 => (0..9_usize).prop_map(|key| LimiterStep::Clear { key }),
    ]
}

/// Short and long keys.
fn key_bytes(key: usize) -> Vec<u8> {
    vec![b'k' + key as u8; if key.is_multiple_of(3) { 40 } else { 3 }]
}

/// What a table of `KEY_CAP` keys with one shared bucket for the rest does. Which of the idle keys makes
/// room for a new one is the table's own business, and a key that made room starts anew at the
/// bucket's level: so a key has every value that fits all that was seen.
struct LimiterModel {
    own: Prepared,
    /// Which limits keys have instead.
    overrides: BTreeMap<usize, usize>,
    moment: Moment,
    /// Keys that were given an entry, with the values they may have.
    keys: BTreeMap<usize, Vec<u128>>,
    /// The bucket of keys without room, of the limiter's own limit and of each that overrides have.
    overflows: BTreeMap<Option<usize>, u128>,
}

fn prepared(limit: usize) -> Prepared {
    Limit::parse(LIMITS[limit]).unwrap().prepare()
}

impl LimiterModel {
    /// What decides on the key: the limiter's own limit, or which of its own.
    fn rule(&self, key: usize) -> Option<usize> {
        self.overrides.get(&key).copied()
    }

    fn under(&self, rule: Option<usize>) -> Prepared {
        rule.map_or(self.own, prepared)
    }

    fn overflow(&self, key: usize) -> u128 {
        self.overflows.get(&self.rule(key)).copied().unwrap_or(0)
    }

    fn is_busy(&self, key: usize, value: u128) -> bool {
        !self.under(self.rule(key)).is_full(value, self.moment)
    }

    /// The least and the most of the other keys that can't make room now.
    fn others_busy(&self, key: usize) -> (usize, usize) {
        let others = || self.keys.iter().filter(|(other, _)| **other != key);
        let surely = others().filter(|(k, values)| values.iter().all(|v| self.is_busy(**k, *v)));
        let perhaps = others().filter(|(k, values)| values.iter().any(|v| self.is_busy(**k, *v)));
        (surely.count(), perhaps.count())
    }

    /// Puts a key under another rule; what it has used stays used.
    fn put_under(&mut self, key: usize, rule: Option<usize>) {
        let (old, new) = (self.under(self.rule(key)), self.under(rule));
        if self.rule(key) != rule {
            for value in self.keys.get_mut(&key).into_iter().flatten() {
                *value = convert(&old, *value, &new, self.moment);
            }
        }
        match rule {
            Some(limit) => self.overrides.insert(key, limit),
            None => self.overrides.remove(&key),
        };
    }

    /// What the key's value may be now, if it has an entry or is given one.
    fn values(&self, key: usize) -> Vec<u128> {
        let mut values = self.keys.get(&key).cloned().unwrap_or_default();
        if values.is_empty() || values.iter().any(|value| !self.is_busy(key, *value)) {
            values.push(self.overflow(key));
        }
        values
    }

    /// What may be after a reservation that waits up to a second, answered as `seen`.
    fn after_reserving(
        &self,
        key: usize,
        values: &[u128],
        cost: u64,
        seen: (bool, u64),
    ) -> Vec<u128> {
        let under = self.under(self.rule(key));
        let mut after = Vec::new();
        for &value in values {
            let reserved = under.reserve(value, self.moment, cost, WAIT_NS_MAX);
            match reserved {
                Reserve::Taken { new_value, wait_ns } if seen == (true, wait_ns) => {
                    after.push(new_value);
                }
                Reserve::TooLate | Reserve::Never if !seen.0 => after.push(value),
                _ => {}
            }
        }
        after
    }

    /// What may be after a refund that was answered as `refunded`. Whether the word was marked is not
    /// kept here.
    fn after_refund(&self, values: &[u128], taken: &Taken, refunded: Refunded) -> Vec<u128> {
        let mut after = Vec::new();
        for &value in values {
            for is_marked in [false, true] {
                let (end, cost) = (taken.end, taken.cost);
                let refund =
                    self.under(taken.rule)
                        .refund(value, is_marked, end, cost, self.moment);
                match (refund, refunded) {
                    (
                        Refund::Given {
                            new_value, amount, ..
                        },
                        Refunded::Given(given),
                    ) if amount == given => after.push(new_value),
                    (Refund::Over, Refunded::Over) | (_, Refunded::Void) => after.push(value),
                    _ => {}
                }
            }
        }
        after.sort_unstable();
        after.dedup();
        after
    }

    /// The values after a check that was answered as `seen`.
    fn after(&self, key: usize, values: Vec<u128>, cost: u64, seen: (bool, u64)) -> Vec<u128> {
        let under = self.under(self.rule(key));
        let mut after: Vec<u128> = values
            .into_iter()
            .filter_map(|value| {
                let verdict = under.check(value, self.moment, cost);
                let decision = under.decision(verdict, value, self.moment, cost);
                let after = match verdict {
                    Verdict::Allowed { new_value } => new_value,
                    Verdict::Refused | Verdict::Never => value,
                };
                ((decision.is_allowed(), decision.remaining()) == seen).then_some(after)
            })
            .collect();
        after.sort_unstable();
        after.dedup();
        after
    }
}

/// The longest wait of a reservation.
const WAIT_NS_MAX: u64 = 1_000_000_000;

/// An admission that may be given back.
struct Taken {
    checked: Checked,
    key: usize,
    /// What decided.
    rule: Option<usize>,
    /// The key's value right after, as the model has it.
    end: u128,
    cost: u64,
}

fn limiter_of(engine: &Engine, limit: &str, by: SessionId, now_ns: u64) -> LimiterRef {
    let limit = Limit::parse(limit).unwrap();
    engine.open_limiter(b"l", limit, true, by, now_ns).unwrap()
}

proptest! {
    #![proptest_config(model_config())]

    // property 11, property 12
    #[test]
    fn limiter_keys_and_their_overflow_do_what_a_naive_model_does(
        first in 0..LIMITS.len(),
        steps in prop::collection::vec(limiter_step(), 1..100),
    ) {
        let (engine, me) = engine_with_session(Caps { limiter_keys: KEY_CAP as u32, ..SMALL });
        let mut limiter = limiter_of(&engine, LIMITS[first], me, 0);
        let mut model = LimiterModel {
            own: limiter.limit().prepare(),
            overrides: BTreeMap::new(),
            moment: Moment { now_ns: 1, base_ns: UNIX_NS },
            keys: BTreeMap::new(),
            overflows: BTreeMap::new(),
        };
        let mut taken: Vec<Taken> = Vec::new();
        for step in steps {
            let moment = model.moment;
            match step {
                LimiterStep::Pass { ns } => model.moment.now_ns += ns,
                LimiterStep::Check { key, cost } => {
                    let checked =
                        engine.check(&limiter, &key_bytes(key), cost, me, moment.now_ns).unwrap();
                    let is_overflow = checked.is_overflow;
                    let seen = (checked.decision.is_allowed(), checked.decision.remaining());
                    let (surely, perhaps) = model.others_busy(key);
                    if is_overflow {
                        let may_be_out =
                            model.keys.get(&key).is_none_or(|v| v.iter().any(|v| !model.is_busy(key, *v)));
                        prop_assert!(may_be_out && perhaps >= KEY_CAP, "there was room");
                        let after = model.after(key, vec![model.overflow(key)], cost, seen);
                        prop_assert_eq!(after.len(), 1, "{:?} from the shared bucket", seen);
                        model.overflows.insert(model.rule(key), after[0]);
                        model.keys.remove(&key);
                    } else {
                        prop_assert!(surely < KEY_CAP, "there was no room");
                        let after = model.after(key, model.values(key), cost, seen);
                        prop_assert!(!after.is_empty(), "{:?} from {:?}", seen, model.values(key));
                        model.keys.insert(key, after);
                    }
                    prop_assert_eq!(checked.decision.limit(), model.under(model.rule(key)).limit());
                    let ends = if is_overflow { vec![model.overflow(key)] } else { model.keys[&key].clone() };
                    let rule = model.rule(key);
                    if let [end] = ends[..] && seen.0 && cost > 0 {
                        taken.push(Taken { checked, key, rule, end, cost });
                    }
                }
                LimiterStep::Reserve { key, cost } => {
                    let name = key_bytes(key);
                    let now_ns = moment.now_ns;
                    let reserved = engine.reserve(&limiter, &name, cost, WAIT_NS_MAX, me, now_ns);
                    let Ok(checked) = reserved else {
                        let under = model.under(model.rule(key)).definition();
                        prop_assert_eq!(under.to_string(), "2/second;window=sliding");
                        continue;
                    };
                    let seen = (checked.decision.is_allowed(), checked.wait_ns);
                    let end = if checked.is_overflow {
                        let after = model.after_reserving(key, &[model.overflow(key)], cost, seen);
                        prop_assert_eq!(after.len(), 1, "{:?} from the shared bucket", seen);
                        model.overflows.insert(model.rule(key), after[0]);
                        model.keys.remove(&key);
                        Some(after[0])
                    } else {
                        let mut after = model.after_reserving(key, &model.values(key), cost, seen);
                        after.sort_unstable();
                        after.dedup();
                        prop_assert!(!after.is_empty(), "{:?} from {:?}", seen, model.values(key));
                        let end = (after.len() == 1).then_some(after[0]);
                        model.keys.insert(key, after);
                        end
                    };
                    let rule = model.rule(key);
                    if let Some(end) = end && seen.0 && cost > 0 {
                        taken.push(Taken { checked, key, rule, end, cost });
                    }
                }
                LimiterStep::Refund { which } => {
                    if taken.is_empty() {
                        continue;
                    }
                    let mut taken = taken.swap_remove(which % taken.len());
                    let checked = std::mem::replace(
                        &mut taken.checked,
                        engine.peek(&limiter, b"none", moment.now_ns).unwrap(),
                    );
                    let is_overflow = checked.is_overflow;
                    let refunded = engine.refund(&limiter, checked, || moment.now_ns).unwrap();
                    if matches!(refunded, Refunded::Void) {
                        continue;
                    }
                    if is_overflow {
                        let before = model.overflows[&taken.rule];
                        let after = model.after_refund(&[before], &taken, refunded);
                        prop_assert!(!after.is_empty(), "{:?} from the shared bucket", refunded);
                        model.overflows.insert(taken.rule, after[0]);
                    } else {
                        prop_assert!(taken.rule == model.rule(taken.key), "void: it is under another limit");
                        let values = model.keys.get(&taken.key).cloned().unwrap_or_default();
                        let after = model.after_refund(&values, &taken, refunded);
                        prop_assert!(!after.is_empty(), "{:?} from {:?}", refunded, values);
                        model.keys.insert(taken.key, after);
                    }
                }
                LimiterStep::Peek { key } => {
                    let before = engine.limiter_key_count();
                    let peeked = engine.peek(&limiter, &key_bytes(key), moment.now_ns).unwrap();
                    prop_assert!(peeked.decision.is_allowed());
                    let seen = (true, peeked.decision.remaining());
                    prop_assert_eq!(peeked.decision.limit(), model.under(model.rule(key)).limit());
                    prop_assert!(!model.after(key, model.values(key), 0, seen).is_empty());
                    prop_assert_eq!(engine.limiter_key_count(), before);
                }
                LimiterStep::Change { limit } => {
                    let changed = limiter_of(&engine, LIMITS[limit], me, moment.now_ns);
                    let (old, new) = (model.own, changed.limit().prepare());
                    if old != new {
                        let overrides = &model.overrides;
                        let own = model.keys.iter_mut().filter(|(key, _)| !overrides.contains_key(key));
                        let all = own.flat_map(|(_, values)| values);
                        for value in all.chain(model.overflows.get_mut(&None)) {
                            *value = convert(&old, *value, &new, moment);
                        }
                    }
                    // A stale reference decides by the new limit too: keep it now and then.
                    if !limit.is_multiple_of(2) {
                        limiter = changed;
                    }
                    model.own = new;
                }
                LimiterStep::Override { key, limit: which } => {
                    let now_ns = || moment.now_ns;
                    let limit = Limit::parse(LIMITS[which]).unwrap();
                    engine.set_override(&limiter, &key_bytes(key), limit, me, now_ns).unwrap();
                    model.put_under(key, Some(which));
                    let set = engine.override_of(&limiter, &key_bytes(key), now_ns).unwrap();
                    prop_assert_eq!(set, Some(limit));
                }
                LimiterStep::Clear { key } => {
                    let now_ns = || moment.now_ns;
                    let had = engine.clear_override(&limiter, &key_bytes(key), now_ns).unwrap();
                    prop_assert_eq!(had, model.overrides.contains_key(&key));
                    model.put_under(key, None);
                    let set = engine.override_of(&limiter, &key_bytes(key), now_ns).unwrap();
                    prop_assert_eq!(set, None);
                }
            }
            prop_assert!(engine.limiter_key_count() <= KEY_CAP as u64);
            let mut listed = BTreeMap::new();
            engine.for_each_override(b"l", |_, key, limit| {
                listed.insert(key.to_vec(), limit);
            });
            let limits = model.overrides.iter();
            let set = limits.map(|(key, limit)| (key_bytes(*key), Limit::parse(LIMITS[*limit]).unwrap()));
            prop_assert_eq!(listed, set.collect());
        }
    }
}
