//! Steps with idempotency keys.

use super::{World, milliseconds, outcome, text};
use serde_json::Value;
use sprag::{Attempt, Begun, OnceStatus};
use std::collections::HashMap;

/// What the names of a case stand for.
#[derive(Default)]
pub(super) struct Named {
    attempts: HashMap<String, Attempt<'static>>,
    tokens: HashMap<String, u64>,
}

pub(super) fn open(_: &World, _: &Value) -> Named {
    Named::default()
}

impl Named {
    fn attempt(&mut self, step: &Value) -> &mut Attempt<'static> {
        let name = text(step, "attempt");
        self.attempts
            .get_mut(name)
            .expect("an attempt of this name")
    }

    fn take(&mut self, step: &Value) -> Attempt<'static> {
        let name = text(step, "attempt");
        self.attempts.remove(name).expect("an attempt of this name")
    }
}

pub(super) fn step(world: &World, named: &mut Named, step: &Value) {
    let once = || world.space.once(text(step, "once")).unwrap().into_owned();
    let time = |field| milliseconds(step, field).unwrap();
    let token = |named: &Named| named.tokens[text(step, "token")];
    let mut result = None;
    let word = match text(step, "do") {
        "advance" => return world.advance(time("ms")),
        "begin" => match once().begin(time("ttl_ms")).unwrap() {
            Begun::Started(attempt) => {
                let (name, token) = (text(step, "as").to_owned(), attempt.token());
                if let Some(before) = step.get("after") {
                    assert_eq!(token, named.tokens[before.as_str().unwrap()] + 1, "{step}");
                }
                named.tokens.insert(name.clone(), token);
                named.attempts.insert(name, attempt);
                "started"
            }
            Begun::InProgress { .. } => "in_progress",
            Begun::Done(done) => {
                result = Some(done);
                "done"
            }
        },
        "status" => match once().status().unwrap() {
            OnceStatus::New => "none",
            OnceStatus::InProgress { .. } => "in_progress",
            OnceStatus::Done { result: done, .. } => {
                result = Some(done);
                "done"
            }
            OnceStatus::Unfinished => "unfinished",
        },
        "finish" => {
            let done = text(step, "result").as_bytes();
            outcome(named.attempt(step).finish(done, time("keep_ms"))).0
        }
        "abandon" => outcome(named.take(step).abandon()).0,
        "extend" => outcome(named.attempt(step).extend(time("ttl_ms"))).0,
        "detach" => outcome(named.take(step).detach()).0,
        "finish_token" => {
            let done = text(step, "result").as_bytes();
            outcome(once().finish_token(token(named), done, time("keep_ms"))).0
        }
        "abandon_token" => outcome(once().abandon_token(token(named))).0,
        "extend_token" => outcome(once().extend_token(token(named), time("ttl_ms"))).0,
        "valid" => {
            assert_eq!(named.attempt(step).is_valid(), step["expect"], "{step}");
            return;
        }
        "after_unfinished" => {
            let is_after_unfinished = named.attempt(step).is_after_unfinished();
            assert_eq!(is_after_unfinished, step["expect"], "{step}");
            return;
        }
        unknown => panic!("unknown step `{unknown}`"),
    };
    assert_eq!(word, step["expect"], "{step}");
    if let Some(result) = result {
        assert_eq!(result, text(step, "result").as_bytes(), "{step}");
    }
}
