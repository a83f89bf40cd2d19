//! The cases that every language shares, read from `tests/cases`; its README says what they mean.

use super::tier::Tier;
use serde_json::Value;
use sprag::{Error, Hold, Limit, Limiter, ManualClock, Space};
use std::collections::HashMap;
use std::time::Duration;

const LOCKS: &str = include_str!("../cases/locks.json");
const LIMITERS: &str = include_str!("../cases/limiters.json");

/// Calls `run` for each case that the tier can run, on a fresh space.
fn for_each_case<T: Tier>(
    tier: &T,
    file: &Value,
    run: impl Fn(&Space, Option<&ManualClock>, &Value, &str),
) {
    for case in file["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        match tier.with_clock() {
            Some((space, clock)) => run(&space, Some(&clock), case, name),
            None if case["clock"] == true => {}
            None => run(&T::new().space(), None, case, name),
        }
    }
}

fn text<'v>(step: &'v Value, field: &str) -> &'v str {
    step[field]
        .as_str()
        .unwrap_or_else(|| panic!("no `{field}` in {step}"))
}

fn milliseconds(step: &Value, field: &str) -> Option<Duration> {
    step.get(field)
        .map(|value| Duration::from_millis(value.as_u64().unwrap()))
}

fn outcome<T>(result: sprag::Result<T>) -> (&'static str, Option<T>) {
    match result {
        Ok(value) => ("ok", Some(value)),
        Err(Error::Lost { .. }) => ("lost", None),
        Err(Error::Stale { .. }) => ("stale", None),
        Err(Error::Duration { .. }) => ("out_of_range", None),
        Err(error) => panic!("{error}"),
    }
}

/// What the names of a case stand for.
#[derive(Default)]
struct Named<'s> {
    holds: HashMap<String, Hold<'s>>,
    tokens: HashMap<String, u64>,
}

impl<'s> Named<'s> {
    fn hold(&mut self, step: &Value) -> &mut Hold<'s> {
        self.holds
            .get_mut(text(step, "hold"))
            .expect("a hold of this name")
    }

    fn take(&mut self, step: &Value) -> Hold<'s> {
        self.holds
            .remove(text(step, "hold"))
            .expect("a hold of this name")
    }

    fn keep(&mut self, step: &Value, hold: Hold<'s>) {
        let name = text(step, "as").to_owned();
        self.tokens.insert(name.clone(), hold.token());
        self.holds.insert(name, hold);
    }

    /// The token that a name stands for, or the number itself.
    fn token(&self, value: &Value) -> u64 {
        match value {
            Value::String(name) => self.tokens[name],
            number => number.as_u64().unwrap(),
        }
    }
}

fn lock_step<'s>(
    space: &'s Space,
    clock: Option<&ManualClock>,
    named: &mut Named<'s>,
    step: &Value,
) {
    let expect = &step["expect"];
    let lock = || {
        let lock = space.lock(text(step, "lock")).unwrap();
        match milliseconds(step, "ttl_ms") {
            Some(ttl) => lock.ttl(ttl).unwrap(),
            None => lock,
        }
    };
    let token = |named: &Named<'_>| named.token(step.get("number").unwrap_or(&step["token"]));
    match text(step, "do") {
        "advance" => {
            clock.unwrap().advance(milliseconds(step, "ms").unwrap());
        }
        "try" => {
            let hold = lock().try_acquire().unwrap();
            assert_eq!(
                if hold.is_some() { "granted" } else { "busy" },
                expect,
                "{step}"
            );
            if let Some(hold) = hold {
                if let Some(before) = step.get("after") {
                    assert_eq!(hold.token(), named.token(before) + 1, "{step}");
                }
                named.keep(step, hold);
            }
        }
        "release" => assert_eq!(outcome(named.take(step).release()).0, expect, "{step}"),
        "detach" => assert_eq!(outcome(named.take(step).detach()).0, expect, "{step}"),
        "drop" => drop(named.take(step)),
        "renew" => assert_eq!(outcome(named.hold(step).renew()).0, expect, "{step}"),
        "extend" => {
            let ttl = milliseconds(step, "ttl_ms").unwrap();
            assert_eq!(outcome(named.hold(step).extend(ttl)).0, expect, "{step}");
        }
        "valid" => assert_eq!(named.hold(step).is_valid(), *expect, "{step}"),
        "release_token" => {
            assert_eq!(
                outcome(lock().release_token(token(named))).0,
                expect,
                "{step}"
            );
        }
        "renew_token" => assert_eq!(
            outcome(lock().renew_token(token(named))).0,
            expect,
            "{step}"
        ),
        "adopt" => {
            let (outcome, hold) = outcome(lock().adopt_token(token(named)));
            assert_eq!(outcome, expect, "{step}");
            if let Some(hold) = hold {
                named.keep(step, hold);
            }
        }
        "break" => {
            let broken = space.break_lock(text(step, "lock")).unwrap();
            let expected = (!expect.is_null()).then(|| named.token(expect));
            assert_eq!(broken, expected, "{step}");
        }
        "inspect" => {
            let locks = space.inspect(text(step, "lock")).unwrap();
            let info = locks.first().unwrap();
            for (field, value) in expect.as_object().unwrap() {
                match field.as_str() {
                    "held" => assert_eq!(info.is_held, *value, "{step}"),
                    "token" => assert_eq!(info.token, named.token(value), "{step}"),
                    "waiters" => assert_eq!(info.waiters, *value, "{step}"),
                    "lease_left_ms" => {
                        let left = Duration::from_millis(value.as_u64().unwrap());
                        assert_eq!(info.lease_left, left, "{step}");
                    }
                    _ => panic!("unknown field `{field}` in {step}"),
                }
            }
        }
        "admit" => {
            let fence = space.fence(text(step, "fence")).unwrap();
            assert_eq!(outcome(fence.admit(token(named))).0, expect, "{step}");
        }
        "admit_once" => {
            let fence = space.fence(text(step, "fence")).unwrap();
            assert_eq!(outcome(fence.admit_once(token(named))).0, expect, "{step}");
        }
        "highest" => {
            let fence = space.fence(text(step, "fence")).unwrap();
            assert_eq!(fence.highest(), named.token(expect), "{step}");
        }
        unknown => panic!("unknown step `{unknown}`"),
    }
}

// property 2, property 3, property 5, property 8
pub(crate) fn the_shared_cases_of_locks_hold(tier: &impl Tier) {
    let file: Value = serde_json::from_str(LOCKS).unwrap();
    for_each_case(tier, &file, |space, clock, case, name| {
        let mut named = Named::default();
        for (i, step) in case["steps"].as_array().unwrap().iter().enumerate() {
            println!("{name}, step {i}");
            lock_step(space, clock, &mut named, step);
        }
    });
}

fn limiter_step(space: &Space, clock: Option<&ManualClock>, limiter: &mut Limiter, step: &Value) {
    let cost = step.get("cost").map_or(1, |cost| cost.as_u64().unwrap());
    let decision = if let Some(key) = step.get("check") {
        limiter.check(key.as_str().unwrap(), cost).unwrap()
    } else if let Some(key) = step.get("peek") {
        limiter.peek(key.as_str().unwrap()).unwrap()
    } else if let Some(limit) = step.get("update") {
        *limiter = space
            .limiter_updated("limiter", limit.as_str().unwrap())
            .unwrap();
        return;
    } else if let Some(limit) = step.get("open") {
        let opened = space.limiter("limiter", limit.as_str().unwrap());
        assert_eq!(opened.is_err(), step["error"], "{step}");
        return;
    } else {
        let by = milliseconds(step, "advance_ms");
        let by = by.unwrap_or_else(|| Duration::from_nanos(step["advance_ns"].as_u64().unwrap()));
        clock.unwrap().advance(by);
        return;
    };
    let nanoseconds = |time: Option<Duration>| match time {
        Some(time) => Value::from(u64::try_from(time.as_nanos()).unwrap()),
        None => Value::Null,
    };
    for (field, value) in step.as_object().unwrap() {
        let seen = match field.as_str() {
            "check" | "peek" | "cost" => continue,
            "allowed" => decision.is_allowed().into(),
            "limit" => decision.limit().into(),
            "remaining" => decision.remaining().into(),
            "retry_after_ns" => nanoseconds(decision.retry_after()),
            "reset_after_ns" => nanoseconds(decision.reset_after()),
            _ => panic!("unknown field `{field}` in {step}"),
        };
        assert_eq!(seen, *value, "{field} of {step}");
    }
}

// property 8, property 9, property 12
pub(crate) fn the_shared_cases_of_limiters_hold(tier: &impl Tier) {
    let file: Value = serde_json::from_str(LIMITERS).unwrap();
    for limit in file["limits"].as_array().unwrap() {
        match Limit::parse(text(limit, "text")) {
            Ok(parsed) => assert_eq!(parsed.to_string(), text(limit, "is"), "{limit}"),
            Err(error) => assert_eq!(limit["error"], true, "{limit}: {error}"),
        }
    }
    for_each_case(tier, &file, |space, clock, case, name| {
        let mut limiter = space.limiter("limiter", text(case, "limit")).unwrap();
        for (i, step) in case["steps"].as_array().unwrap().iter().enumerate() {
            println!("{name}, step {i}");
            limiter_step(space, clock, &mut limiter, step);
        }
    });
}
