//! Steps with limiters: of one limit, of several over one key, and several limiters in one call.

use super::{World, list, milliseconds, outcome, text, unsigned};
use serde_json::Value;
use sprag::{Decision, JointDecision, JointLimiter, Limiter, Refunded};
use std::collections::HashMap;
use std::time::Duration;

fn nanoseconds(time: Option<Duration>) -> Value {
    match time {
        Some(time) => Value::from(u64::try_from(time.as_nanos()).unwrap()),
        None => Value::Null,
    }
}

fn cost(step: &Value) -> u64 {
    step.get("cost").map_or(1, unsigned)
}

/// Moves the clock if that is what the step does.
fn advances(world: &World, step: &Value) -> bool {
    let by = milliseconds(step, "advance_ms").or_else(|| {
        step.get("advance_ns")
            .map(|by| Duration::from_nanos(unsigned(by)))
    });
    by.map(|by| world.advance(by)).is_some()
}

/// A limiter, and decisions by the names that they were given.
pub(super) struct Scene {
    limiter: Limiter,
    decisions: HashMap<String, Decision>,
}

pub(super) fn open(world: &World, case: &Value) -> Scene {
    let limiter = world.space.limiter("limiter", text(case, "limit"));
    Scene {
        limiter: limiter.unwrap(),
        decisions: HashMap::new(),
    }
}

pub(super) fn step(world: &World, scene: &mut Scene, step: &Value) {
    let limiter = &scene.limiter;
    let field = |name: &str| step.get(name).map(|value| value.as_str().unwrap());
    let decision = if let Some(key) = field("check") {
        limiter.check(key, cost(step)).unwrap()
    } else if let Some(key) = field("peek") {
        limiter.peek(key).unwrap()
    } else if let Some(key) = field("reserve") {
        let wait_max = milliseconds(step, "wait_max_ms").unwrap();
        limiter.reserve(key, cost(step), wait_max).unwrap()
    } else if let Some(name) = field("refund") {
        let taken = scene.decisions.remove(name).unwrap();
        let refunded = limiter.refund(taken).unwrap();
        let word = match refunded {
            Refunded::Given(_) => "given",
            Refunded::Over => "over",
            Refunded::Void => "void",
            _ => panic!("a refund that no case has"),
        };
        assert_eq!(word, step["expect"], "{step}");
        let amount = step.get("amount").map_or(0, unsigned);
        assert_eq!(refunded.cost(), amount, "{step}");
        return;
    } else if let Some(key) = field("override") {
        return limiter.set_override(key, text(step, "is")).unwrap();
    } else if let Some(key) = field("clear_override") {
        let is_cleared = limiter.clear_override(key).unwrap();
        assert_eq!(is_cleared, step["expect"], "{step}");
        return;
    } else if let Some(key) = field("override_of") {
        let limit = limiter.override_of(key).unwrap();
        let limit = limit.map_or(Value::Null, |limit| limit.to_string().into());
        assert_eq!(limit, step["expect"], "{step}");
        return;
    } else if let Some(limit) = field("update") {
        scene.limiter = world.space.limiter_updated("limiter", limit).unwrap();
        return;
    } else if let Some(limit) = field("open") {
        let opened = world.space.limiter("limiter", limit);
        assert_eq!(opened.is_err(), step["error"], "{step}");
        return;
    } else {
        assert!(advances(world, step), "unknown step {step}");
        return;
    };
    for (field, value) in step.as_object().unwrap() {
        let seen: Value = match field.as_str() {
            "check" | "peek" | "reserve" | "wait_max_ms" | "cost" | "as" => continue,
            "allowed" => decision.is_allowed().into(),
            "limit" => decision.limit().into(),
            "remaining" => decision.remaining().into(),
            "retry_after_ns" => nanoseconds(decision.retry_after()),
            "reset_after_ns" => nanoseconds(decision.reset_after()),
            "act_after_ns" => nanoseconds(Some(decision.act_after())),
            _ => panic!("unknown field `{field}` in {step}"),
        };
        assert_eq!(seen, *value, "{field} of {step}");
    }
    if let Some(name) = field("as") {
        scene.decisions.insert(name.to_owned(), decision);
    }
}

pub(super) fn open_joint(world: &World, case: &Value) -> JointLimiter {
    joint(world, &case["limits"]).unwrap()
}

fn joint(world: &World, limits: &Value) -> sprag::Result<JointLimiter> {
    let limits = list(limits).iter().map(|limit| limit.as_str().unwrap());
    world.space.joint_limiter("limiter", limits)
}

pub(super) fn joint_step(world: &World, limiter: &mut JointLimiter, step: &Value) {
    let decision: JointDecision<'_> = if let Some(key) = step.get("check") {
        limiter.check(key.as_str().unwrap(), cost(step)).unwrap()
    } else if let Some(key) = step.get("peek") {
        limiter.peek(key.as_str().unwrap()).unwrap()
    } else if let Some(limits) = step.get("open") {
        let opened = joint(world, limits);
        assert_eq!(opened.is_err(), step["error"], "{step}");
        return;
    } else {
        assert!(advances(world, step), "unknown step {step}");
        return;
    };
    for (field, value) in step.as_object().unwrap() {
        let seen: Value = match field.as_str() {
            "check" | "peek" | "cost" => continue,
            "allowed" => decision.is_allowed().into(),
            "refused_by" => decision.refused_by().into(),
            "limit" => decision.limit().into(),
            "remaining" => decision.remaining().into(),
            "retry_after_ns" => nanoseconds(decision.retry_after()),
            "reset_after_ns" => nanoseconds(decision.reset_after()),
            "of" => (0..)
                .map_while(|place| decision.of(place))
                .map(|of| of.remaining())
                .collect(),
            _ => panic!("unknown field `{field}` in {step}"),
        };
        assert_eq!(seen, *value, "{field} of {step}");
    }
}

pub(super) fn open_several(world: &World, case: &Value) -> HashMap<String, Limiter> {
    let limiters = case["limiters"].as_object().unwrap().iter();
    let open = |(name, limit): (&String, &Value)| {
        let limiter = world.space.limiter(name, limit.as_str().unwrap());
        (name.clone(), limiter.unwrap())
    };
    limiters.map(open).collect()
}

pub(super) fn several_step(world: &World, limiters: &mut HashMap<String, Limiter>, step: &Value) {
    let checks = list(&step["check_all"]).iter().map(|check| {
        let limiter = &limiters[check[0].as_str().unwrap()];
        (limiter, check[1].as_str().unwrap(), unsigned(&check[2]))
    });
    let checks: Vec<_> = checks.collect();
    let (word, decisions) = outcome(world.space.check_all(&checks));
    assert_eq!(word, step.get("error").unwrap_or(&"ok".into()), "{step}");
    let Some(decisions) = decisions else { return };
    for (field, value) in step.as_object().unwrap() {
        let seen: Value = match field.as_str() {
            "check_all" => continue,
            "allowed" => decisions.is_allowed().into(),
            "each" => decisions.iter().map(Decision::is_allowed).collect(),
            "remaining" => decisions.iter().map(Decision::remaining).collect(),
            _ => panic!("unknown field `{field}` in {step}"),
        };
        assert_eq!(seen, *value, "{field} of {step}");
    }
}
