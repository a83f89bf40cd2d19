//! Steps with counters.

use super::{World, number, outcome, text};
use serde_json::Value;
use sprag::{Added, Counter, Result, StripedCounter};

/// What a call came to, and the number that it told, if it tells one.
type Told = (&'static str, Option<i64>);

fn integer(step: &Value, field: &str) -> i64 {
    i64::try_from(number(&step[field])).unwrap()
}

/// What a call that tells a number came to.
fn told(result: Result<i64>) -> Told {
    outcome(result)
}

fn on_plain(counter: &Counter<'_>, step: &Value) -> Told {
    match text(step, "do") {
        "add" => told(counter.add(integer(step, "delta"))),
        "add_within" => {
            let bounds = integer(step, "min")..=integer(step, "max");
            match outcome(counter.add_within(integer(step, "delta"), bounds)) {
                (word, Some(Added::To(sum))) => (word, Some(sum)),
                (_, Some(Added::Refused(number))) => ("refused", Some(number)),
                (word, None) => (word, None),
            }
        }
        "get" => told(counter.get()),
        "swap" => told(counter.swap(integer(step, "to"))),
        "compare_exchange" => {
            let from = integer(step, "from");
            match counter.compare_exchange(from, integer(step, "to")).unwrap() {
                Ok(()) => ("ok", Some(from)),
                Err(was) => ("differs", Some(was)),
            }
        }
        unknown => panic!("unknown step `{unknown}`"),
    }
}

fn on_striped(counter: &StripedCounter<'_>, step: &Value) -> Told {
    match text(step, "do") {
        "add" => (outcome(counter.add(integer(step, "delta"))).0, None),
        "get" => told(counter.get()),
        unknown => panic!("unknown step `{unknown}` of a striped counter"),
    }
}

pub(super) fn step(world: &World, (): &mut (), step: &Value) {
    let (word, number) = match step.get("striped") {
        Some(name) => {
            let counter = world.space.counter(name.as_str().unwrap()).unwrap();
            on_striped(&counter.striped().unwrap(), step)
        }
        None => on_plain(&world.space.counter(text(step, "counter")).unwrap(), step),
    };
    assert_eq!(word, step.get("expect").unwrap_or(&"ok".into()), "{step}");
    if step.get("is").is_some() {
        assert_eq!(number, Some(integer(step, "is")), "{step}");
    }
}
